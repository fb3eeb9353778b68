"""How fast campaigns are here: every rule, on a CPU core and on a GPU, and what the paper's experiments take.

    python benchmarks/campaign_speed.py            # two minutes; prints the table

Cost is counted in lane-iterations: one question of one run, inferred, judged and chosen.  Each rule is timed
in the middle of its runs, after half of its questions at random, on one function of each number of
dimensions; the rate of an experiment weighs these by how many functions are alike.
"""

import argparse
import time
from collections import Counter
from dataclasses import replace

import torch

from askwise.bench.experiments import EXPERIMENTS, Arm, Experiment
from askwise.bench.functions import FUNCTIONS
from askwise.bench.lanes import Cell, run

NAMES = ("bbo", "pbo", "batch")
TYPICAL = {1: "gramacy_lee", 2: "ursem_waves", 3: "hartmann3", 4: "hartmann4", 6: "hartmann6"}
LANES = {"cpu": 20, "cuda": 1024}
STEPS = 1


def seconds(experiment: Experiment, arm: Arm, function: str, device: str, lanes: int) -> float:
    """Seconds of one lane-iteration, at half of the run."""
    half = experiment.iterations // 2
    short = replace(experiment, initial=half, iterations=half + STEPS + 1, replicates=lanes)
    runs = run(short, [Cell(experiment.name, function, arm.label, lane) for lane in range(lanes)], device)
    return float(runs.seconds[half:-1].mean()) / lanes


def measured(device: str, budget: float) -> None:
    """Print the rate of each rule, and the time of everything, for one worker."""
    weights = Counter(function.dim for function in FUNCTIONS.values())
    total, began = 0.0, time.monotonic()
    print(f"\n{device}, one worker, {LANES[device]} lanes together: lane-iterations a second")
    print("| experiment | rule | " + " | ".join(f"{d}-D" for d in TYPICAL) + " | all 34 | hours |")
    print("|---" * (len(TYPICAL) + 4) + "|")
    for name in NAMES:
        experiment = EXPERIMENTS[name]
        for arm in experiment.arms:
            costs: dict[int, float] = {}
            for d, function in TYPICAL.items():
                if time.monotonic() - began > budget:  # what is not measured counts like the last
                    costs[d] = costs[max(costs)] if costs else float("nan")
                else:
                    costs[d] = seconds(experiment, arm, function, device, LANES[device] if d < 3 else 20)
            mean = sum(weights[d] * cost for d, cost in costs.items()) / sum(weights.values())
            hours = mean * experiment.iterations_of_lanes / len(experiment.arms) / 3600
            total += hours
            cells = " | ".join(f"{1 / cost:.0f}" for cost in costs.values())
            print(f"| {name} | `{arm.label}` | {cells} | {1 / mean:.0f} | {hours:.2f} |", flush=True)
    print(f"\nAll three experiments: {total:.1f} hours of one worker.")


def main() -> None:
    """Measure what is here."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=180.0, help="after which nothing new is begun")
    options = parser.parse_args()
    torch.set_num_threads(1)
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for device in devices:
        measured(device, options.seconds / len(devices))


if __name__ == "__main__":
    main()
