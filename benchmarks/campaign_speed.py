"""Speed of campaigns on this machine: rates of every rule, and the time that the paper's experiments take.

    python benchmarks/campaign_speed.py            # prints the table, in a minute or two

Cost is counted in lane-iterations: one step of one run (infer, score, choose the next query).  Each rule is
timed halfway through a run, after random queries, on typical functions of each dimension; the rate of an
experiment weights these by the number of functions of that dimension.
"""

import argparse
import time
from collections import Counter

import torch

from askwise.bench.experiments import EXPERIMENTS, Arm, Experiment
from askwise.bench.functions import named
from askwise.bench.problems import Problem
from askwise.bench.published import PAPER
from askwise.loop import Query, next_query
from askwise.model import Data
from askwise.numerics import generator
from askwise.rules import parse

NAMES = ("bbo", "pbo", "batch")
TYPICAL = {
    1: ("gramacy_lee",),
    # draws need random features on a fifth of the 2-D functions, and over a thousand on another fifth
    2: ("ackley", "shubert", "levy", "ursem_waves", "trid"),
    3: ("hartmann3",),
    4: ("hartmann4",),
    6: ("hartmann6",),
}
LANES = {"cpu": 24, "cuda": 1024}
MANY_ALIKE, FEWER = 2, 24  # beyond two dimensions there are few functions, hence fewer lanes
STEPS = 1


def seconds(experiment: Experiment, arm: Arm, function: str, device: str, lanes: int) -> float:
    """Seconds per lane-iteration, halfway through a run."""
    problem, source = Problem.of(function, experiment.scale), generator("speed", arm.label, function)
    known, half = problem.hyperparameters(experiment.prior), experiment.iterations // 2
    assert known is not None
    prior = known.gpytorch().to(device)
    shape = (lanes, half, arm.m, problem.function.dim)
    asked = torch.rand(shape, generator=source, dtype=torch.float64).to(device)
    chance = torch.rand(lanes, half + STEPS, arm.pairs, generator=source, dtype=torch.float64).to(device)
    query: Query | None = None
    rule, times = parse(arm.rule), []
    for step in range(STEPS + 1):  # the first infers from scratch and warms up
        if query is not None:
            asked = torch.cat([asked, query.points[:, None]], 1)
        begin = time.perf_counter()
        answers = experiment.user.answers(problem.value(asked), chance[:, : half + step])
        data = Data.batches(asked, answers) if arm.m > 1 else Data.binary(asked[:, :, 0], answers[..., 0])
        sources = [generator("speed", lane, step) for lane in range(lanes)]
        warm = None if query is None else query.belief
        query = next_query(data, rule, prior, arm.m, sources, warm=warm, identify=True)
        query.points.cpu()  # waits for a GPU
        times.append(time.perf_counter() - begin)
    return sum(times[1:]) / STEPS / lanes


def measured(device: str, budget: float) -> None:
    """Print the rate of each rule, and the total time, for one worker."""
    weights = Counter(named(name).dim for name in PAPER)
    total, began = 0.0, time.monotonic()
    print(f"\n{device}, one worker, {LANES[device]} lanes together: lane-iterations per second")
    print("| experiment | rule | " + " | ".join(f"{d}-D" for d in TYPICAL) + " | all 34 | hours |")
    print("|---" * (len(TYPICAL) + 4) + "|")
    for name in NAMES:
        experiment = EXPERIMENTS[name]
        for arm in experiment.arms:
            costs: dict[int, float] = {}
            for d, functions in TYPICAL.items():
                if time.monotonic() - began > budget:  # unmeasured dimensions count like the last
                    costs[d] = costs[max(costs)] if costs else float("nan")
                    continue
                lanes = LANES[device] if d <= MANY_ALIKE else FEWER
                each = [seconds(experiment, arm, name, device, lanes) for name in functions]
                costs[d] = sum(each) / len(each)
            mean = sum(weights[d] * cost for d, cost in costs.items()) / sum(weights.values())
            hours = mean * experiment.lane_iterations / len(experiment.arms) / 3600
            total += hours
            cells = " | ".join(f"{1 / cost:.0f}" for cost in costs.values())
            print(f"| {name} | `{arm.label}` | {cells} | {1 / mean:.0f} | {hours:.2f} |", flush=True)
    print(f"\nAll three experiments: {total:.1f} hours of one worker.")


def main() -> None:
    """Measure on the CPU, and on a GPU if there is one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=180.0, help="time budget")
    options = parser.parse_args()
    torch.set_num_threads(1)
    devices = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    for device in devices:
        measured(device, options.seconds / len(devices))


if __name__ == "__main__":
    main()
