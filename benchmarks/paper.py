"""All experiments in full, run and packed: those of the paper and ours.

    python benchmarks/paper.py                                  # all of them, on this machine's CPU
    python benchmarks/paper.py --device cuda --workers 12 pbo bbo batch
    python benchmarks/paper.py pbo --rules "eiig(k=0.1)" eubo  # some of the rules

An interrupted experiment resumes when it is started again.  Several processes can share one GPU; NVIDIA's
multi-process service lets them compute in parallel (`nvidia-cuda-mps-control -d`).
"""

import argparse
import sys
import time
from pathlib import Path

from askwise.bench.campaign import Campaign
from askwise.bench.executors import Processes
from askwise.bench.experiments import EXPERIMENTS
from askwise.bench.results import pack

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Run and pack experiments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("experiments", nargs="*", help="names; by default all")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lanes", type=int, help="maximum number of runs computed together")
    parser.add_argument("--rules", nargs="+", help="labels of the arms to run; by default all")
    parser.add_argument("--replicates", type=int)
    parser.add_argument("--iterations", type=int)
    parser.add_argument("--work", type=Path, default=ROOT / "out" / "bench", help="where runs are stored")
    parser.add_argument("--packed", type=Path, default=ROOT / "results", help="where packed results go")
    options = parser.parse_args()
    for name in options.experiments or EXPERIMENTS:
        rules = None if options.rules is None else tuple(options.rules)
        lengths = {"replicates": options.replicates, "iterations": options.iterations}
        experiment = EXPERIMENTS[name].reduced(rules=rules, **lengths)
        start = time.monotonic()
        campaign = Campaign(experiment, options.work / name, options.device, options.lanes)
        campaign.run(Processes(options.workers), sys.stderr)
        print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
        pack(options.work / name, options.packed / name)


if __name__ == "__main__":
    main()
