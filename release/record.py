"""Records studies of every kind with this release, for the tests of later ones; run by ``make recorded``.

Writes ``tests/data/recorded-VERSION.db``, and beside it, as JSON, what this release makes of each study: its
recommended setting, its next question, and the one after that has been answered.
"""

import json
import platform
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import askwise as aw

DATA = Path(__file__).parents[1] / "tests" / "data"
GAIN = aw.Real(0, 40, unit="dB")
WINES = {"name": ["Chablis", "Rioja", "Riesling", "Merlot"], "sugar": [1.2, 2.5, 9.0, 2.0]}
Setting = Mapping[str, Any]


def main() -> None:
    """Record the studies, then write down what they come to."""
    torch.set_num_threads(1)
    path = DATA / f"recorded-{version('askwise')}.db"
    path.unlink(missing_ok=True)
    found = {name: record(str(path)) for name, record in STUDIES.items()}
    head = {"torch": str(torch.__version__), "processor": platform.processor() or platform.machine()}
    text = json.dumps(
        head | {"numerics": aw.numerics.VERSION, "studies": found}, indent=1, ensure_ascii=False
    )
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")


def yes_no(storage: str) -> dict[str, Any]:
    """Did it work?  With a level, lapses, a skip and an answer that is taken back."""
    space = aw.Space(force=aw.Real(2, 40, log=True), grip=aw.Choice(["soft", "hard"]), bands=aw.Integer(1, 8))
    study = aw.Study(space, "binary", storage=storage, name="yes-no", level=0.8, guess=0.1, seed=3)
    for number in range(16):
        question = study.ask()
        if number == 5:
            study.skip(question, reason="power was off")
        else:
            study.tell(question, 4 < question.options[0]["force"] < 20, seconds=1.5)
    study.undo()
    return outcome(study, {"answer": True})


def duels(storage: str) -> dict[str, Any]:
    """Which is better?  With ties, corrections, repeats, constraints and a change of the plan."""
    space = aw.Space(gain=GAIN, cutoff=aw.Real(100, 10_000, log=True), rate=aw.Fixed(48_000))
    study = aw.Study(space.where("50 * gain + cutoff <= 11000"), storage=storage, name="duels", repeats=0.1)
    for number in range(24):
        question = study.ask()
        study.tell(question, nearer(question, "gain", 25) if number % 7 else None, seconds=2.0)
        if number == 12:
            study.amend(3, 1, reason="wrong key")
            study.void(4, reason="interrupted")
            study.change(space=study.space.replaced(gain=aw.Real(0, 60, unit="dB")), reason="too narrow")
    return outcome(study, {"answer": 1})


def one_kernel(storage: str) -> dict[str, Any]:
    """Duels about ordered values and items, with the kernel of highest posterior."""
    space = aw.Space(wine=aw.Items(WINES, features=["sugar"], id="name"), cool=aw.Ordinal([8, 10, 14, 18]))
    study = aw.Study(space, storage=storage, name="one kernel", kernel="matern52", initial=4, lapses=0)
    for _ in range(14):
        question = study.ask()
        study.tell(question, nearer(question, "cool", 10))
    return outcome(study, {"answer": 0})


def contexts(storage: str) -> dict[str, Any]:
    """What is given and not chosen."""
    space = aw.Space(gain=GAIN, room=aw.Choice(["quiet", "loud"], context=True))
    study = aw.Study(space, storage=storage, name="contexts", initial=4, seed=1)
    for number in range(16):
        room = ("quiet", "loud")[number % 2]
        question = study.ask(context={"room": room})
        study.tell(question, nearer(question, "gain", 30 if room == "loud" else 12))
    return outcome(study, {"answer": None}, context={"room": "loud"})


def batches(storage: str) -> dict[str, Any]:
    """Compare four: the best, the worst, a ranking, pairs."""
    study = aw.Study(
        aw.Space(gain=GAIN, width=aw.Real(0, 1)), "batch", size=4, storage=storage, name="batches"
    )
    told: list[dict[str, Any]] = [
        {"winner": 0},
        {"worst": 2},
        {"ranking": [3, 0]},
        {"pairs": [(1, 2), (0, 3)]},
    ]
    for number in range(8):
        study.tell(study.ask(), **told[number % 4])
    return outcome(study, {"ranking": [2, 0, 1, 3]})


def population(storage: str) -> dict[str, Any]:
    """People whose tastes have something in common."""
    return of_people(storage, "population", None)


def separate(storage: str) -> dict[str, Any]:
    """People who have nothing to do with each other."""
    return of_people(storage, "separate", "anna")


def of_people(storage: str, participants: str, whose: str | None) -> dict[str, Any]:
    """Duels that two people answer in turn."""
    study = aw.Study(
        aw.Space(gain=GAIN), storage=storage, name=participants, participants=participants, initial=4
    )
    for _ in range(9):
        for who, liked in {"anna": 12, "bela": 30}.items():
            question = study.ask(who)
            study.tell(question, nearer(question, "gain", liked), seconds=1.0)
    return outcome(study, {"answer": 0}, whose=whose)


def nearer(question: aw.Question, name: str, liked: float) -> int:
    """The option whose value is nearer to what somebody likes."""
    far = [abs(option[name] - liked) for option in question.options]
    return far.index(min(far))


def outcome(
    study: aw.Study, told: dict[str, Any], context: Setting | None = None, whose: str | None = None
) -> dict[str, Any]:
    """What this release makes of the record, which stays as it is."""
    best, status = study.best(context, participant=whose), study.status(context, whose)
    kept: dict[str, Any] = {
        "context": context,
        "participant": whose,
        "questions": len(study.history()),
        "answers": status.answers,
    }
    kept |= {"best": dict(best.params), "mean": best.mean, "std": best.std, "probability": best.probability}
    kept |= {"gain": status.gain, "told": told}
    with tempfile.TemporaryDirectory() as folder:
        study.backup(f"{folder}/study.db")
        study.close()
        with aw.Study.open(f"{folder}/study.db", study.name) as copy:
            asked = copy.ask("the next one", context)
            copy.tell(asked, **told)
            then = copy.ask("one more", context)
    return kept | {
        name: {"options": list(one.options), "order": list(one.order)}
        for name, one in (("next", asked), ("then", then))
    }


STUDIES: dict[str, Callable[[str], dict[str, Any]]] = {
    "yes-no": yes_no,
    "duels": duels,
    "one kernel": one_kernel,
    "contexts": contexts,
    "batches": batches,
    "population": population,
    "separate": separate,
}

if __name__ == "__main__":
    main()
