"""How fast campaigns are here: every rule, on a CPU core and on a GPU, and what the paper's experiments take.

    python benchmarks/campaign_speed.py            # a minute or two; prints the table

Cost is counted in lane-iterations: one question of one run, inferred, judged and chosen.  Each rule is timed
in the middle of its runs, after half of its questions at random, on typical functions of each number of
dimensions; the rate of an experiment weighs these by how many functions have as many.
"""

import argparse
import time
from collections import Counter

import torch

from askwise.bench.experiments import EXPERIMENTS, Arm, Experiment
from askwise.bench.functions import FUNCTIONS
from askwise.bench.problems import Problem
from askwise.data import Data
from askwise.kernels import kernel
from askwise.loop import Query, next_query
from askwise.rules import parse
from askwise.seeds import generator

NAMES = ("bbo", "pbo", "batch")
TYPICAL = {
    1: ("gramacy_lee",),
    # draws take random features on a fifth of the functions of two dimensions, over a thousand on another
    2: ("ackley", "shubert", "levy", "ursem_waves", "trid"),
    3: ("hartmann3",),
    4: ("hartmann4",),
    6: ("hartmann6",),
}
LANES = {"cpu": 24, "cuda": 1024}
MANY_ALIKE, FEWER = 2, 24  # beyond so many dimensions there are few functions, and so many lanes
STEPS = 1


def seconds(experiment: Experiment, arm: Arm, function: str, device: str, lanes: int) -> float:
    """Seconds of one lane-iteration, at half of the run."""
    problem, source = Problem.of(function, experiment.scale), generator("speed", arm.label, function)
    known, half = problem.hyperparameters(experiment.prior), experiment.iterations // 2
    assert known is not None
    prior = kernel(known.kernel, known.lengthscale, known.outputscale).to(device)
    shape, pairs = (lanes, half, arm.m, problem.function.dim), max(1, arm.m * (arm.m - 1) // 2)
    asked = torch.rand(shape, generator=source, dtype=torch.float64).to(device)
    chance = torch.rand(lanes, half + STEPS, pairs, generator=source, dtype=torch.float64).to(device)
    query: Query | None = None
    rule, times = parse(arm.rule), []
    for step in range(STEPS + 1):  # the first infers from nothing and warms up
        if query is not None:
            asked = torch.cat([asked, query.points[:, None]], 1)
        begin = time.perf_counter()
        answers = experiment.user.answers(problem.value(asked), chance[:, : half + step])
        data = Data.batches(asked, answers) if arm.m > 1 else Data.binary(asked[:, :, 0], answers[..., 0])
        sources = [generator("speed", lane, step) for lane in range(lanes)]
        warm = None if query is None else query.belief
        query = next_query(data, rule, prior, arm.m, sources, warm=warm, identify=True)
        query.points.cpu()  # a GPU is done when its numbers are here
        times.append(time.perf_counter() - begin)
    return sum(times[1:]) / STEPS / lanes


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
            for d, functions in TYPICAL.items():
                if time.monotonic() - began > budget:  # what is not measured counts like the last
                    costs[d] = costs[max(costs)] if costs else float("nan")
                    continue
                lanes = LANES[device] if d <= MANY_ALIKE else FEWER
                each = [seconds(experiment, arm, name, device, lanes) for name in functions]
                costs[d] = sum(each) / len(each)
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
