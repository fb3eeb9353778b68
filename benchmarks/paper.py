"""All experiments in full, run and packed: those of the paper and ours.

    python benchmarks/paper.py                                  # all of them, on this machine's CPU
    python benchmarks/paper.py --device cuda --workers 12 pbo bbo batch
    python benchmarks/paper.py pbo --rules "eiig(k=0.1)" eubo  # some of the rules
    python benchmarks/paper.py pbo-learned+pbo-learned-3       # in the same lanes: faster on a GPU

An interrupted experiment resumes when it is started again.  Several processes can share one GPU; NVIDIA's
multi-process service lets them compute in parallel (`nvidia-cuda-mps-control -d`).
"""

import argparse
import sys
import time
from pathlib import Path

from askwise.bench.campaign import Campaign, run_together
from askwise.bench.executors import Processes
from askwise.bench.experiments import EXPERIMENTS
from askwise.bench.results import pack

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run and pack experiments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("experiments", nargs="*", help="names, joined by + to share lanes; by default all")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lanes", type=int, help="maximum number of runs computed together")
    parser.add_argument("--rules", nargs="+", help="labels of the arms to run; by default all")
    parser.add_argument("--functions", help="names, separated by commas; by default all")
    parser.add_argument("--replicates", type=int)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "bench", help="where runs are stored")
    parser.add_argument("--packed", type=Path, default=ROOT / "results", help="where packed results go")
    options = parser.parse_args()
    rules = None if options.rules is None else tuple(options.rules)
    functions = None if options.functions is None else tuple(options.functions.split(","))
    lengths = {"replicates": options.replicates, "iterations": options.iterations}
    for names in options.experiments or EXPERIMENTS:
        start, campaigns = time.monotonic(), []
        for name in names.split("+"):
            experiment = EXPERIMENTS[name].reduced(functions, rules, **lengths)
            campaigns.append(Campaign(experiment, options.work / name, options.device, options.lanes))
        run_together(campaigns, Processes(options.workers), sys.stderr)
        print(f"{names}: {time.monotonic() - start:.0f} s", flush=True)
        for name in names.split("+"):
            pack(options.work / name, options.packed / name)


if __name__ == "__main__":
    main()
