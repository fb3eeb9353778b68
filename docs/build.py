"""Writes docs/rules.md and the pictures of the documentation; run by ``make docs``."""

import inspect
import io
import math
import re
from collections.abc import Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import torch
from matplotlib.figure import Figure
from PIL import Image
from torch import Tensor

import askwise as aw
from askwise import plots
from askwise.kernels import covariance
from askwise.linalg import cholesky
from askwise.rules import RULES, Asks, Rule
from askwise.seeds import generator

DOCS = Path(__file__).parent
KINDS = {Asks.BINARY: "yes/no questions", Asks.DUEL: "duels", Asks.BATCH: "batches"}
SIZES = {Asks.BINARY: 1, Asks.DUEL: 2, Asks.BATCH: 4}
DUELS, YES_NO = 12, 14
STUDY_FIGURES = ("slices", "maps", "uncertainty", "score", "progress")
UCB_SEED = 47
"""Of 0 to 59, one of the six for which UCB_f asks in [0.85, 1] for a yes that is 99% sure."""

INTRO = """\
# Rules

A rule chooses the next question. Give it by name, with settings in brackets if the defaults do not suit:
`aw.rules.parse("{example}")`.

| name | rule | asks |
|---|---|---|
{table}

Throughout, f is what is sought to be high, $\\mathscr D$ the answers so far, $\\mu_f(x)$ and $\\sigma_f(x)$
the mean and standard deviation of the belief about $f(x)$, c the next answer, and $\\Phi$ the normal
distribution function: a yes has probability $\\Phi(f(x))$, a win of x over x' $\\Phi(f(x) - f(x'))$.

**The pictures** show what each rule asks after the same {duels} duels, or the same {yes_no} yes/no answers,
about one hidden function, with answers chosen so that the rules differ. Above is what is believed of f, and
the points that the rule asks about; then the answers so far, a row each; below the score that the rule
maximises. A rule that draws f at random shows the draws above, and, if it has no other score, below what it
asks with other seeds.

This page and its pictures are written by `make docs` from the rules' own source.
"""


def main() -> None:
    """Write everything."""
    torch.set_num_threads(1)
    (DOCS / "rules").mkdir(exist_ok=True)
    (DOCS / "rules.md").write_text(rules_page(), encoding="utf-8")
    (DOCS / "study").mkdir(exist_ok=True)
    study = espresso()
    for kind in STUDY_FIGURES:
        save(getattr(plots, f"study_{kind}")(study), f"study/{kind}.png", Image.Quantize.MAXCOVERAGE)
    beliefs = {Asks.BINARY: yes_no_belief(), Asks.DUEL: duel_belief(), Asks.BATCH: duel_belief()}
    for rule in RULES.values():
        for kind, name in pictures(rule).items():
            save(plots.question(beliefs[kind], rule(), SIZES[kind]), name)
    save(plots.decomposition_maps(), "decomposition.png", Image.Quantize.MAXCOVERAGE)
    save(plots.bounds_compared(ucb_belief()), "ucb.png")


def espresso() -> aw.Study:
    """A study of three parameters after thirty duels of a simulated taster."""
    space = aw.Space(
        grind=aw.Real(200, 800, log=True, unit="µm"),
        temperature=aw.Integer(86, 96, unit="°C"),
        roast=aw.Choice(["light", "dark"]),
    )
    study, source = aw.Study(space, feedback="duel", seed=1), generator("espresso")
    for number in range(30):
        question = study.ask()
        first, second = (_deliciousness(cup) for cup in question.options)
        felt = first - second + torch.randn((), generator=source).item()
        seconds = 3 + 4 * torch.rand((), generator=source).item()
        study.tell(question, None if abs(felt) < 0.2 else int(felt < 0), seconds=round(seconds, 1))
        if number == 11:
            study.void(11)
    return study


def _deliciousness(cup: dict[str, Any]) -> float:
    grind, heat = math.log(cup["grind"] / 350) / 0.35, (cup["temperature"] - 92) / 3
    return 3 * math.exp(-(grind**2) - heat**2) + (0.5 if cup["roast"] == "dark" else 0.0)


def save(figure: Figure, name: str, palette: Image.Quantize = Image.Quantize.MEDIANCUT) -> None:
    """Write a small picture of 256 colours."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110)
    small = Image.open(drawn).convert("RGB").quantize(256, palette, dither=Image.Dither.NONE)
    small.save(DOCS / name, optimize=True)


def hidden(x: Tensor) -> Tensor:
    """A bumpy function whose best point is not where it seems at first."""
    return 3 * torch.exp(-(((x - 0.72) / 0.1) ** 2)) + 2 * torch.exp(-(((x - 0.25) / 0.13) ** 2)) - 1


def duel_belief() -> aw.Belief:
    """What some duels tell of the hidden function."""
    source = generator("docs", "duels", 5)
    x = torch.rand(DUELS, 2, 1, generator=source, dtype=torch.float64)
    noise = torch.randn(DUELS, generator=source, dtype=torch.float64)
    won = hidden(x[:, 0, 0]) - hidden(x[:, 1, 0]) + noise > 0
    return aw.infer(aw.Data.duels(x, won), aw.kernel("se", 0.12, 3.0))


def yes_no_belief() -> aw.Belief:
    """What some yes/no answers tell of the hidden function."""
    source = generator("docs", "yes/no", 3)
    x = torch.rand(YES_NO, 1, generator=source, dtype=torch.float64)
    noise = torch.randn(YES_NO, generator=source, dtype=torch.float64)
    return aw.infer(aw.Data.binary(x, hidden(x[:, 0]) + noise > 0), aw.kernel("se", 0.12, 3.0))


def ucb_belief(seed: int = UCB_SEED) -> aw.Belief:
    """The supplement's example: 100 yes/no answers, 80 of them in [0.85, 0.98], about 4 times a draw."""
    kernel = aw.kernel("matern52", math.exp(-1), math.exp(1))
    source = generator("ucb", seed)
    grid = torch.linspace(0, 1, 1000, dtype=torch.float64)
    lower, _ = cholesky(covariance(kernel).cross(grid[:, None], grid[:, None]))
    g = 4 * lower @ torch.randn(1000, generator=source, dtype=torch.float64)
    uniform = torch.rand(100, generator=source, dtype=torch.float64)
    x = torch.cat([uniform[:20], 0.85 + 0.13 * uniform[20:]])
    chance = torch.special.ndtr(g[(999 * x).round().long()])
    yes = torch.rand(100, generator=source, dtype=torch.float64) < chance
    return aw.infer(aw.Data.binary(x[:, None], yes), kernel)


def rules_page() -> str:
    """The page on all rules that there are."""
    groups: dict[tuple[Asks, ...], list[type[Rule]]] = {}
    for _, rule in sorted(RULES.items()):
        groups.setdefault(kinds(rule), []).append(rule)
    ordered = [rule for group in sorted(groups, key=_order) for rule in groups[group]]
    table = "\n".join(
        f"| [`{rule.key}`](#{_anchor(rule.title)}) | {rule.title} | {_listed(kinds(rule))} |"
        for rule in ordered
    )
    example = next(spelt for rule in ordered if (spelt := _with_setting(rule)))
    parts = [INTRO.format(table=table, example=example, duels=DUELS, yes_no=YES_NO)]
    for group in sorted(groups, key=_order):
        parts.append(f"## {_listed(group).capitalize()}\n")
        parts.extend(section(rule) for rule in groups[group])
    return "\n".join(parts)


def section(rule: type[Rule]) -> str:
    """All there is to say about a rule."""
    facts = [
        f"Name: `{rule.key}`",
        f"Asks: {_listed(kinds(rule))}",
        f"Settings: {', '.join(settings(rule)) or 'none'}",
        f"Source: {rule.source}",
        f"Cost: {rule.cost}",
    ]
    shown = [f"![{rule.title}: the {_single(kind)} it asks]({name})" for kind, name in pictures(rule).items()]
    blocks = [f"### {rule.title}", prose(rule), "\n".join(f"- {fact}" for fact in facts), "\n".join(shown)]
    return "\n\n".join(blocks) + "\n"


def kinds(rule: type[Rule]) -> tuple[Asks, ...]:
    """What a rule asks, simplest first."""
    return tuple(kind for kind in KINDS if kind in rule.asks)


def pictures(rule: type[Rule]) -> dict[Asks, str]:
    """The picture of each kind of question that a rule asks; the simplest has the plain name."""
    first, *others = kinds(rule)
    return {first: f"rules/{rule.key}.png"} | {kind: f"rules/{rule.key}-{kind}.png" for kind in others}


def settings(rule: type[Rule]) -> Iterator[str]:
    """The settings of a rule with their defaults, and what else they may be."""
    hints = get_type_hints(rule)
    for setting in fields(rule):
        hint = hints[setting.name]
        others = [value for value in get_args(hint) if value != setting.default]
        choice = f" (or {_or(others)})" if get_origin(hint) is Literal else ""
        yield f"`{setting.name}={_short(setting)}`{choice}"


def prose(rule: type[Rule]) -> str:
    """The docstring of a rule as Markdown."""
    text = inspect.cleandoc(rule.__doc__ or "")
    text = text.replace("``", "`").replace(".  ", ". ")
    text = re.sub(r"^\.\. math::(.*?)(?=^\S|\Z)", _equation, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r":math:`([^`]*)`", lambda found: f"${_inline(found[1])}$", text)
    return re.sub(r":\w+:`([^`]*)`", r"`\1`", text).strip()


def _equation(found: re.Match[str]) -> str:
    lines = [line.strip() for line in found[1].strip().splitlines()]
    body = "\n".join(lines)
    if "&" in body or r"\\" in body:
        body = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
    return f"```math\n{body}\n```\n\n"


def _inline(formula: str) -> str:
    """Without what Markdown would take for an escape, on one line."""
    return re.sub(r"\s+", " ", formula.replace(r"\,", r"\thinspace "))


def _order(group: tuple[Asks, ...]) -> tuple[int, list[int]]:
    return len(group), [list(KINDS).index(kind) for kind in group]


def _listed(group: tuple[Asks, ...]) -> str:
    *others, last = [KINDS[kind] for kind in group]
    return f"{', '.join(others)} and {last}" if others else last


def _single(kind: Asks) -> str:
    return {1: "question", 2: "duel"}.get(SIZES[kind], f"batch of {SIZES[kind]}")


def _anchor(title: str) -> str:
    """The link that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _short(setting: "Field[Any]") -> str:
    value = setting.default
    return f"{value:.4g}" if isinstance(value, float) else repr(value)


def _or(values: list[object]) -> str:
    return " or ".join(f"`{value!r}`" for value in values)


def _with_setting(rule: type[Rule]) -> str:
    """How a rule with a number for a setting is spelt, or nothing."""
    numbers = [setting for setting in fields(rule) if isinstance(setting.default, float)]
    return f"{rule.key}({numbers[0].name}=2)" if numbers else ""


if __name__ == "__main__":
    main()
