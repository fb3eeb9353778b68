"""Results in tables and sentences, for the terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from rich.console import Console

from askwise.cli import people
from askwise.cli.app import counted
from askwise.cli.listing import prediction_notes, prediction_table
from askwise.cli.screen import name_of, question_table, table
from askwise.cli.session import Case, Session
from askwise.space import readable
from askwise.study import (
    UNTRUSTED,
    Best,
    Estimate,
    LevelSet,
    Raters,
    Status,
    Study,
    YesNo,
    level_sentence,
    percent,
)
from askwise.study.program import differences
from askwise.study.questions import Replayed


def print_best(
    out: Console, session: Session, found: Best, has_reference: bool = False, participant: str | None = None
) -> None:
    """Show a recommended setting, and how likely it is to be preferred or to work."""
    study, who = session.study, session.study.whose(participant)
    answered = [entry for entry in study.history() if entry.status == "answered"]
    if study.plan.people.participants == "separate":
        answered = [entry for entry in answered if entry.participant == who]
    if not answered:
        out.print("No answers yet, so this is a guess; `askwise run` asks.")
    elif not study.plan.kind.compares and not any(entry.answer == YesNo(True) for entry in answered):
        out.print("Nothing has worked yet, so this is a guess.")
    whom = [entry.participant for entry in answered]
    after = counted(len(answered), "answer")
    if study.plan.people.participants == "population" and who is not None:
        after = f"{counted(whom.count(who), 'answer')} and {len(whom) - whom.count(who)} by others"
    elif study.plan.people.participants == "population" and len(set(whom)) > 1:
        after = f"{after} by {len(set(whom))} people"
    whose = "" if who is None else f" for {who}"
    if study.plan.people.participants == "population" and who is None:
        whose = " for all"
    out.print(f"Recommended setting{whose}, after {after}:\n")
    out.print(question_table([found.params], session.config.space, headed=False))
    out.print()
    out.print(study.plan.kind.sentence(found.probability, has_reference))
    if study.plan.level is not None and found.above_level is not None:
        out.print(level_sentence(study.plan.level, found.above_level))
        out.print("`askwise level` shows all settings that do.")
    if study.plan.people.participants == "population" and who is None:
        out.print("That is about the taste that all have in common; --participant NAME shows one person's.")
    if flagged := [check.detail for check in study.checks(who) if check.flagged]:
        out.print(f"\n{' '.join([*flagged, UNTRUSTED])}", style="bold")


def print_status(
    out: Console, session: Session, found: Status, raters: Raters | None, participant: str | None
) -> None:
    """Show how far a study has come, what the answers say of the people, and whether to go on."""
    study, config = session.study, session.config
    out.print(f"{config.name}: {config.question}\n")
    whole = asdict(found)
    counts = {name: n for name, n in whole.items() if isinstance(n, int) and (n or name == "answers")}
    if participant is not None:
        out.print(f"For {participant}:\n")
        counts["answers"] = study.answers_by_participant().get(participant, 0)
        if others := found.answers - counts["answers"]:
            counts["answers by others"] = others
    out.print(table(["", ""], counts.items()))
    if found.gain is not None and found.regret is not None:
        out.print(
            f"\nOne more answer is expected to improve the setting by {readable(found.gain)}, all further "
            f"ones together by {readable(found.regret)} ({study.plan.kind.unit})."
        )
    if found.misclassified is not None:
        out.print(
            "\n`askwise level` shows which settings work often enough, which do not, and the safest ones."
        )
    if raters is not None:
        _print_raters(out, study, raters)
    out.print(f"\n{found.hint}")


def print_level(out: Console, session: Session, found: LevelSet, participant: str | None) -> None:
    """Show which share of the space works at least so often, and the safest settings."""
    study, whose = session.study, "" if participant is None else f" for {participant}"
    rate, sure = f"{100 * found.level:.4g}%", f"with a probability of {100 * found.confidence:.4g}% or more"
    answers = counted(study.count(), "answer")
    out.print(f"Settings that work at least {rate} of the time{whose}, after {answers}:\n")
    sides = {"inside": f"do, {sure}", "outside": f"do not, {sure}", "unclear": "not known yet"}
    rows = [(side, _share(getattr(found, side)), words) for side, words in sides.items()]
    out.print(table(["", "share of the space", ""], rows, right=[1]))
    every = found.inside.interval is None
    out.print(
        f"\nThe true share is expected to be {_share(found.share)}. If every setting is put on its likelier "
        f"side, {percent(found.misclassified)} of the space is expected to be on the wrong one.\n"
        f"Shares are of {counted(found.settings, 'setting')}, "
        f"{'all there are' if every else 'spread evenly'}, with intervals of 95% in brackets."
    )
    out.print("\nThe safest settings:\n")
    out.print(prediction_table(found.safest, study, found.level))
    out.print(f"\n{prediction_notes(study, found.level)}")


def _share(found: Estimate) -> str:
    """A share with its interval; without one, it is known."""
    return percent(found.value) if found.interval is None else people.percent(found)


def _print_raters(out: Console, study: Study, found: Raters) -> None:
    out.print("\nWhat the answers say of the people, with 95% intervals in brackets:\n")
    if len(found.each) > 1:
        cells = [(name_of(who), *rest) for who, *rest in people.rows(study, found)]
        out.print(table(["", "answers", "without looking", "noise"], cells, right=[1, 2, 3]))
        out.print("\nWithout looking: share of the answers that have nothing to do with the question.")
        out.print("Noise: how much answers vary; 1 is typical, 2 twice as much.")
    for sentence in people.sentences(study.space, found):
        out.print(sentence)


def print_statuses(out: Console, session: Session, found: Sequence[tuple[Case, Status]]) -> None:
    """Show how far each of several people has come, and each context, in a row."""
    study = session.study
    out.print(f"{session.config.name}: {session.config.question}\n")
    heads = _heads(study, [case for case, _ in found])
    rows = [(*_cells(case, study, heads), case.answers(study), its.short_hint) for case, its in found]
    out.print(table([*heads, "answers", "hint"], rows, right=[len(heads)]))
    out.print(f"\n`askwise status {' '.join(_options(heads))}` says why, and more.")


def _heads(study: Study, cases: Sequence[Case]) -> list[str]:
    """The columns that tell cases apart: a nameless one of people, and those of contexts."""
    several = len({case.participant for case in cases}) > 1
    return [*[""] * several, *(study.space.contexts if cases[0].context else ())]


def _cells(case: Case, study: Study, heads: Sequence[str]) -> list[str]:
    context, parameters = case.context or {}, study.space.parameters
    return [parameters[head].text(context[head]) if head else name_of(case.participant) for head in heads]


def _options(heads: Sequence[str]) -> list[str]:
    """How to ask for one of the rows."""
    return [f"--context {head}=VALUE" if head else "--participant NAME" for head in heads]


def print_bests(
    out: Console, session: Session, found: Sequence[tuple[Case, Best]], has_reference: bool
) -> None:
    """Show the recommended setting of each of several people, and in each context, in a row."""
    study, heads = session.study, _heads(session.study, [case for case, _ in found])
    chosen = {name: p for name, p in session.config.space.parameters.items() if name not in heads}
    out.print("Recommended setting for each:\n")
    chance, meaning = study.plan.kind.column(has_reference)
    rows = [
        (
            *_cells(case, study, heads),
            case.answers(study),
            *(parameter.text(its.params[name]) for name, parameter in chosen.items()),
            f"{its.probability:.0%}",
        )
        for case, its in found
    ]
    columns = [*heads, "answers", *chosen, chance]
    out.print(table(columns, rows, right=range(len(heads), len(columns))))
    out.print(f"\n{meaning}")
    for who in dict.fromkeys(case.participant for case, _ in found):
        if flagged := [check.detail for check in study.checks(who) if check.flagged]:
            whose = f"{name_of(who)}: " if "" in heads else ""
            out.print(f"\n{whose}{' '.join([*flagged, UNTRUSTED])}", style="bold")


def other_programs(replayed: Iterable[Replayed]) -> list[str]:
    """By which other versions these questions were asked, in sentences."""
    groups: dict[str, list[int]] = {}
    for one in replayed:
        groups.setdefault(differences(one.program), []).append(one.id)
    groups.pop("", None)
    return [f"Questions {min(ids)} to {max(ids)} were asked with {what}." for what, ids in groups.items()]
