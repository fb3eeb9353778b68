"""Checks of the answers: how often good people are flagged, and careless ones found.

    python benchmarks/checks.py [--workers N]    # prints the tables and puts them into docs/answer-checks.md

Good people have a taste drawn from what the study expects, as in `askwise simulate`.  Each study is kept in
out/checks, so that an interrupted run goes on where it was.
"""

import argparse
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when scipy is imported

import torch
from scipy.stats import binom

import askwise as aw
from askwise.numerics import generator
from askwise.study import Answer, Plan, Preference, Question, Simulation, Study
from askwise.study.answers import Ranking
from askwise.study.checks import REPEATS_LIMIT, SIDES_LIMIT, place_ratio, repeat_ratio
from askwise.study.simulation import SimulatedUser

ROOT = Path(__file__).resolve().parent.parent
OUT, KEPT = ROOT / "docs" / "answer-checks.md", ROOT / "out" / "checks"
FIRST_SEED = 10  # the studies of earlier seeds were looked at to choose the limits
ANSWERS = {"duel": 50, "binary": 50, "batch": 30}
LOOKS = range(20, 51, 5)
LAPSES = 0.02
NAMES = {"duel": "duels", "binary": "yes/no", "batch": "batches of 3"}
PEOPLE = {
    "good": "good",
    "lapses": "good, 2% lapses",
    "coin": "coin flips",
    "left": "always the first",
}
USERS = {  # for each number of parameters, 1 to 4
    ("duel", 0.0): {"good": 25, "lapses": 25, "coin": 25, "left": 10},
    ("binary", 0.0): {"good": 20, "lapses": 10, "coin": 20},
    ("batch", 0.0): {"good": 6, "coin": 6, "left": 4},  # half a minute each
    ("duel", 0.2): {"good": 10, "coin": 10},
}


@dataclass(frozen=True)
class Case:
    """One simulated user."""

    feedback: str
    repeats: float
    parameters: int
    person: str
    seed: int

    @property
    def file(self) -> Path:
        """Where the result is kept."""
        return KEPT / f"{'-'.join(map(str, asdict(self).values()))}.json"


def cases() -> Iterator[Case]:
    """All users, in such an order that the first ones are of every kind."""
    for turn in range(max(max(users.values()) for users in USERS.values())):
        for (feedback, repeats), users in USERS.items():
            for person, count in users.items():
                if turn < count:
                    for d in range(1, 5):
                        yield Case(feedback, repeats, d, person, FIRST_SEED + turn)


def answering(case: Case, plan: Plan) -> Callable[[Question], Answer]:
    """How this person answers."""
    source = generator("answer checks", case.feedback, case.parameters, case.person, case.seed)
    index = case.seed + 1000 * (case.person == "lapses")
    user = SimulatedUser(Simulation(plan, ANSWERS[case.feedback], 1, index), index)
    nothing = torch.zeros(plan.size, dtype=torch.float64)

    def answer(question: Question) -> Answer:
        if case.person == "left":
            first = Ranking.given([*range(plan.size)], plan.size, "")
            return Preference(0) if case.feedback == "duel" else first
        lapse = case.person == "coin" or float(torch.rand((), generator=source)) < LAPSES
        if case.person == "good" or not lapse:
            return user.answer(question)
        return plan.kind.simulated(nothing, source)

    return answer


def judged(case: Case) -> dict[str, Any]:
    """Which checks are flagged at each look, and what is said at the end."""
    if case.file.exists():
        return json.loads(case.file.read_text())
    torch.set_num_threads(1)
    space = aw.Space(**{f"x{k}": aw.Real(0, 1) for k in range(case.parameters)})
    plan = Plan.checked(space, case.feedback, seed=case.seed, repeats=case.repeats, kernel="matern52")
    study, answer, looks = Study.of(plan), answering(case, plan), {}
    for count in range(1, ANSWERS[case.feedback] + 1):
        question = study.ask()
        study.tell(question, answer(question))
        if count in LOOKS:
            checks = study.checks()
            looks[str(count)] = [check.name for check in checks if check.flagged]
    found = {check.name: check.detail for check in checks}
    stop = study.status().hint.startswith("You may stop")
    result = {"looks": looks, "stop": stop, "probability": study.best().probability, "found": found}
    case.file.parent.mkdir(parents=True, exist_ok=True)
    case.file.write_text(json.dumps(result))
    return result


def wilson(hits: int, total: int) -> str:
    """A share with its 95% Wilson interval."""
    z, p = 1.96, hits / total
    middle, half = p + z * z / (2 * total), z * math.sqrt(p * (1 - p) / total + (z / (2 * total)) ** 2)
    low, high = ((middle + side * half) / (1 + z * z / total) for side in (-1, 1))
    return f"{p:.0%} ({max(0.0, low):.0%} to {high:.0%})"


def table(results: dict[Case, dict[str, Any]]) -> str:
    """For each kind of study and person: how often each check was flagged, ever and at the end."""
    lines = ["| study | person | users | check | ever flagged | at the end |", "|---" * 6 + "|"]
    for (feedback, repeats), users in USERS.items():
        shown = ["repeats"] if repeats else ["sides", "model"] if feedback != "binary" else ["model"]
        for person in users:
            found = [
                result["looks"]
                for case, result in results.items()
                if (case.feedback, case.repeats, case.person) == (feedback, repeats, person)
            ]
            for check in [*shown, *(["any"] if len(shown) > 1 else [])]:
                flags = [
                    [bool(at) if check == "any" else check in at for at in one.values()] for one in found
                ]
                ever, last = sum(any(one) for one in flags), sum(one[-1] for one in flags)
                name = NAMES[feedback] + (f", repeats {repeats:g}" if repeats else "")
                rates = f"{wilson(ever, len(found))} | {wilson(last, len(found))}"
                lines.append(f"| {name} | {PEOPLE[person]} | {len(found)} | {check} | {rates} |")
    return "\n".join(lines)


def by_parameters(results: dict[Case, dict[str, Any]]) -> str:
    """The check of the model for each number of parameters, at the end."""
    lines = ["| study | parameters | good people flagged | coin flips found |", "|---" * 4 + "|"]
    for feedback in ANSWERS:
        for d in range(1, 5):
            cells = []
            for people in (("good", "lapses"), ("coin", "left")):
                flags = [
                    "model" in list(result["looks"].values())[-1]
                    for case, result in results.items()
                    if (case.feedback, case.repeats, case.parameters) == (feedback, 0.0, d)
                    and case.person in people
                ]
                cells.append(f"{sum(flags)} of {len(flags)}")
            lines.append(f"| {NAMES[feedback]} | {d} | {' | '.join(cells)} |")
    return "\n".join(lines)


def stops(results: dict[Case, dict[str, Any]]) -> str:
    """Who is told to stop at the end."""
    lines = ["| study | person | told to stop | highest probability of `best` | of those not flagged |"]
    lines.append("|---" * 5 + "|")
    for (feedback, repeats), users in USERS.items():
        for person in users if not repeats else ():
            found = [
                result
                for case, result in results.items()
                if (case.feedback, case.repeats, case.person) == (feedback, repeats, person)
            ]
            silent = [one["probability"] for one in found if not list(one["looks"].values())[-1]]
            highest = max(one["probability"] for one in found)
            unflagged = f"{max(silent):.2f} ({len(silent)} users)" if silent else "all flagged"
            told = f"{sum(one['stop'] for one in found)} of {len(found)}"
            lines.append(f"| {NAMES[feedback]} | {PEOPLE[person]} | {told} | {highest:.2f} | {unflagged} |")
    return "\n".join(lines)


def ever(chance: float, count: int, flagged: Callable[[int, int], bool]) -> float:
    """Probability to be flagged after any of so many trials, each a hit with this chance."""
    running, total = {0: 1.0}, 0.0
    for n in range(1, count + 1):
        after: dict[int, float] = {}
        for hits, weight in running.items():
            after[hits + 1] = after.get(hits + 1, 0.0) + weight * chance
            after[hits] = after.get(hits, 0.0) + weight * (1 - chance)
        total += sum(weight for hits, weight in after.items() if flagged(hits, n - hits))
        running = {hits: weight for hits, weight in after.items() if not flagged(hits, n - hits)}
    return total


def exact(chances: dict[str, float], counts: tuple[int, ...], flagged: Callable[[int, int], bool]) -> str:
    """Exact probabilities to be ever flagged, by the chance of a hit and the number of trials."""
    lines = ["| | " + " | ".join(f"after {n}" for n in counts) + " |", "|---" * (1 + len(counts)) + "|"]
    for name, chance in chances.items():
        cells = " | ".join(f"{ever(chance, n, flagged):.1%}" for n in counts)
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)


def exact_tables() -> dict[str, str]:
    """What needs no simulation."""
    by_side = {"honest": 0.5, "70% the first": 0.7, "80% the first": 0.8, "always the first": 1.0}
    by_repeat = {"at random": 0.5, "80% alike": 0.8, "90% alike": 0.9, "97% alike": 0.97}
    shares = (0.01, 0.05, 0.1, 0.3, 0.5)
    return {
        "sides": exact(by_side, (20, 50, 500), lambda a, b: place_ratio([a, b]) >= math.log(SIDES_LIMIT)),
        "repeats": exact(
            by_repeat, (3, 8, 12, 20), lambda a, b: repeat_ratio(a, b, 2) >= math.log(REPEATS_LIMIT)
        ),
        "speed": "\n".join(
            [
                "| share of answers below 0.3 s | " + " | ".join(f"{share:.0%}" for share in shares) + " |",
                "|---" * (1 + len(shares)) + "|",
                "| flagged | " + " | ".join(f"{binom.sf(10, 50, share):.1%}" for share in shares) + " |",
            ]
        ),
    }


def main() -> None:
    """Run all users and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--finished", action="store_true", help="only what is in out/checks")
    given = parser.parse_args()
    wanted = [case for case in cases() if case.file.exists() or not given.finished]
    if given.workers == 1:
        results = {case: judged(case) for case in wanted}
    else:
        with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
            results = dict(zip(wanted, pool.map(judged, wanted), strict=True))
    tables = {"table": table(results), "parameters": by_parameters(results), "stops": stops(results)}
    page = OUT.read_text(encoding="utf-8")
    for name, rows in {**tables, **exact_tables()}.items():
        print(f"{rows}\n")
        begin, end = re.escape(f"<!-- {name} -->"), re.escape("<!-- end -->")
        before, _, after = re.split(rf"(?<={begin})(.*?)(?={end})", page, maxsplit=1, flags=re.DOTALL)
        page = f"{before}\n\n{rows}\n\n{after}"
    OUT.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
