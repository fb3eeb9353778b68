"""The moving picture of the README and the picture of docs/model.md, as SVG; run by ``make docs``."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

import askwise as aw
from askwise.numerics.seeds import generator

DOCS = Path(__file__).parent
ANSWERS, SEED = 20, 3
STEP, REST, TIMES = 0.55, 3.5, 3  # seconds per answer and at the end, and how often it is shown
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 330, 32, 54, 688, 268
RANGE = 3.4  # of utilities, on either side of their average
INK, GREY, BLUE, RED, GOLD = "#222", "#767676", "#3b5998", "#d55e00", "#e69f00"
FONT = "font-family='system-ui,sans-serif'"
SPACE = aw.Space(gain=aw.Real(0, 40, unit="dB"))


@dataclass(frozen=True)
class Frame:
    """What is known after some answers."""

    mean: Tensor
    deviation: Tensor
    best: float
    """Place of the recommended setting."""
    asked: tuple[float, float]
    """Places of the options that are asked next: the one that will win first."""


def main() -> None:
    """Write both pictures."""
    torch.set_num_threads(1)
    (DOCS / "converging.svg").write_text(converging(frames()), encoding="utf-8")
    (DOCS / "model").mkdir(exist_ok=True)
    (DOCS / "model" / "rows.svg").write_text(rows(), encoding="utf-8")


def taste(place: Tensor) -> Tensor:
    """What the listener likes, unknown to the study: a hill at 29 dB, and a lower one at 8 dB."""
    high, low = (place - 29 / 40) / 0.13, (place - 8 / 40) / 0.12
    return 4.2 * torch.exp(-high.square()) + 2.2 * torch.exp(-low.square())


def frames() -> list[Frame]:
    """A study of one parameter, after each answer."""
    study, source = (
        aw.Study(SPACE, seed=SEED, initial=4, lapses=0, kernel="se"),
        generator("converging", SEED),
    )
    found = []
    for _ in range(ANSWERS + 1):
        question = study.ask()
        options = [option["gain"] / 40 for option in question.options]
        first, second = taste(torch.tensor(options, dtype=torch.float64)).tolist()
        won = int(first - second + torch.randn((), generator=source).item() < 0)
        found.append(_frame(study, (options[won], options[1 - won])))
        study.tell(question, won)
    return found


def _frame(study: aw.Study, asked: tuple[float, float]) -> Frame:
    """Mean and deviation of f minus its average, since duels say nothing of that."""
    grid = _grid()
    mean, cov = study.belief().joint(grid[:, None])
    centre = torch.eye(len(grid), dtype=torch.float64) - 1 / len(grid)
    deviation = (centre @ cov @ centre).diagonal().clamp_min(0).sqrt()
    return Frame(centre @ mean, deviation, study.best().params["gain"] / 40, asked)


def _grid() -> Tensor:
    return torch.linspace(0, 1, 61, dtype=torch.float64)


def converging(found: Sequence[Frame]) -> str:
    """The frames as one SVG that moves, and shows the last one where nothing moves."""
    hidden = taste(_grid())
    hidden = hidden - hidden.mean()
    last = found[-1]
    marks = [_at(frame.best, _height(frame.mean, frame.best)) for frame in found]
    clip = f"x='{LEFT}' y='{TOP - 14}' width='{RIGHT - LEFT}' height='{BOTTOM - TOP + 14}'"
    bands, lines = [_band(frame) for frame in found], [_line(frame.mean) for frame in found]
    star = f"<path fill='{RED}' stroke='#fff' d='{_star()}' transform='translate({marks[-1]})'>"
    shown = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {HEIGHT}' role='img'>",
        f"<title>{ANSWERS} duels about the gain of a hearing aid</title>",
        f"<rect width='{WIDTH}' height='{HEIGHT}' rx='8' fill='#fff'/>",
        f"<clipPath id='c'><rect {clip}/></clipPath>",
        "<g clip-path='url(#c)'>",
        f"<path fill='{BLUE}' opacity='.18' d='{_band(last)}'>{_moving('d', bands)}</path>",
        f"<path fill='none' stroke='{GREY}' stroke-width='2' stroke-dasharray='5 5' d='{_line(hidden)}'/>",
        f"<path fill='none' stroke='{BLUE}' stroke-width='3' d='{lines[-1]}'>{_moving('d', lines)}</path>",
        "</g>",
        *_dots(found),
        f"{star}{_moving('transform', marks, 'animateTransform')}</path>",
        *_words(len(found)),
        "</svg>\n",
    ]
    return "\n".join(shown)


def _dots(found: Sequence[Frame]) -> list[str]:
    """The two options of each question on the axis, the winner filled."""
    dots = []
    for which, fill in ((1, "#fff"), (0, GOLD)):
        places = [f"{_x(frame.asked[which]):.0f}" for frame in found]
        dots.append(
            f"<circle r='7' cy='{BOTTOM}' cx='{places[-1]}' fill='{fill}' stroke='{INK}' stroke-width='1.5'>"
            f"{_moving('cx', places)}</circle>"
        )
    return dots


def _words(count: int) -> list[str]:
    """The axis, the legend, and how many answers there are."""
    text = f"<text {FONT} font-size='13' fill='{INK}'"
    lines = [f"<path fill='none' stroke='{INK}' d='M{LEFT} {BOTTOM}H{RIGHT}'/>"]
    for value in range(0, 41, 10):
        x = _x(value / 40)
        lines.append(f"{text} x='{x:.0f}' y='{BOTTOM + 24}' text-anchor='middle'>{value} dB</text>")
    legend = (
        (LEFT, 22, GREY, "a hidden taste"),
        (185, 22, BLUE, "what is believed, 95% band"),
        (410, 22, RED, "recommended"),
        (LEFT, HEIGHT - 16, GOLD, "wins this duel"),
        (185, HEIGHT - 16, "#fff", "loses it"),
    )
    for x, y, colour, words in legend:
        edge = f" stroke='{INK}'" if y > BOTTOM else ""
        lines.append(f"<circle r='5' cx='{x + 5}' cy='{y}' fill='{colour}'{edge}/>")
        lines.append(f"{text} x='{x + 16}' y='{y + 5}'>{words}</text>")
    return [*lines, *(_count(number, count) for number in range(count))]


def _count(number: int, count: int) -> str:
    """The number of answers, which is visible at its time only; the last one stays."""
    begin, end = (k * STEP / _length(count) for k in (number, number + 1))
    is_last = number == count - 1
    times = [("0", "hidden"), (f"{begin:.4f}", "visible"), (f"{end:.4f}", "hidden")][: 2 if is_last else 3]
    keys, values = (";".join(pair) for pair in zip(*times[number == 0 :], strict=True))
    place = f"x='{RIGHT}' y='27' text-anchor='end' visibility='{'visible' if is_last else 'hidden'}'"
    return (
        f"<text {FONT} font-size='15' font-weight='600' fill='{INK}' {place}>"
        f"{number} answer{'s' * (number != 1)}<animate attributeName='visibility' calcMode='discrete' "
        f"{_timing(count)} keyTimes='{keys}' values='{values}'/></text>"
    )


def _length(count: int) -> float:
    return (count - 1) * STEP + REST


def _moving(name: str, values: Sequence[str], element: str = "animate") -> str:
    """An attribute that goes through these values in even steps, and rests at the last."""
    times = [number * STEP / _length(len(values)) for number in range(len(values))]
    keys = ";".join(f"{time:.4f}".rstrip("0").rstrip(".") for time in [*times, 1.0])
    all_values = ";".join([*values, values[-1]])
    timing = f"{_timing(len(values))} keyTimes='{keys}' values='{all_values}'"
    return f"<{element} attributeName='{name}' {timing}/>"


def _timing(count: int) -> str:
    return f"dur='{_length(count):.2f}s' repeatCount='{TIMES}' fill='freeze'"


def _band(frame: Frame) -> str:
    upper, lower = frame.mean + 1.96 * frame.deviation, frame.mean - 1.96 * frame.deviation
    there, back = (_points(values) for values in (upper, lower))
    return f"M{'L'.join(there)}L{'L'.join(reversed(back))}Z"


def _line(values: Tensor) -> str:
    return f"M{'L'.join(_points(values))}"


def _points(values: Tensor) -> list[str]:
    places = _grid().tolist()
    return [_at(place, value) for place, value in zip(places, values.tolist(), strict=True)]


def _at(place: float, value: float) -> str:
    middle, half = (TOP + BOTTOM) / 2, (BOTTOM - TOP) / 2
    y = middle - half * max(min(value / RANGE, 1.6), -1.6)
    return f"{_x(place):.0f} {y:.0f}"


def _x(place: float) -> float:
    return LEFT + place * (RIGHT - LEFT)


def _height(mean: Tensor, place: float) -> float:
    return float(mean[round(place * (len(mean) - 1))])


def _star() -> str:
    corners = []
    for k in range(10):
        radius, angle = (11 if k % 2 == 0 else 4.5), math.pi * k / 5
        corners.append(f"{radius * math.sin(angle):.1f} {-radius * math.cos(angle):.1f}")
    return f"M{'L'.join(corners)}Z"


ROWS = (
    ("it worked at C", (0, 0, 1, 0)),
    ("it did not work at A", (-1, 0, 0, 0)),
    ("B is better than A", (-1, 1, 0, 0)),
    ("D is the best of B, C, D", (0, -1, 0, 1)),
    ("", (0, 0, -1, 1)),
)


def rows() -> str:
    """Answers as rows of a matrix with signs, one column for each setting."""
    left, top, cell, line = 250, 56, 64, 38
    height = top + line * len(ROWS) + 14
    text = f"<text {FONT} font-size='15' fill='{INK}'"
    shown = [f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 {height}' role='img'>"]
    shown += [
        "<title>Answers as rows with signs</title>",
        f"<rect width='720' height='{height}' rx='8' fill='#fff'/>",
    ]
    shown.append(f"{text} x='20' y='36' font-weight='600'>answer</text>")
    for column, name in enumerate("ABCD"):
        x = left + cell * (column + 0.5)
        shown.append(f"{text} x='{x}' y='36' text-anchor='middle' font-weight='600'>{name}</text>")
    shown.append(f"{text} x='{left + 4 * cell + 24}' y='36' font-weight='600'>says about f</text>")
    for row, (words, signs) in enumerate(ROWS):
        y = top + line * row
        shown.append(f"{text} x='20' y='{y + 24}'>{words}</text>")
        for column, sign in enumerate(signs):
            fill = {1: BLUE, -1: RED, 0: "#f1f1f1"}[sign]
            x = left + cell * column
            shown.append(
                f"<rect x='{x + 2}' y='{y + 2}' width='{cell - 4}' height='{line - 4}' rx='4' fill='{fill}'/>"
            )
            mark, ink = {1: ("+1", "#fff"), -1: ("\u22121", "#fff"), 0: ("0", GREY)}[sign]
            place = f"x='{x + cell / 2}' y='{y + 25}' text-anchor='middle'"
            shown.append(f"<text {FONT} font-size='15' fill='{ink}' {place}>{mark}</text>")
        plus = "".join(f"f({name})" for name, sign in zip("ABCD", signs, strict=True) if sign > 0)
        minus = "".join(f" \u2212 f({name})" for name, sign in zip("ABCD", signs, strict=True) if sign < 0)
        shown.append(
            f"{text} x='{left + 4 * cell + 24}' y='{y + 24}'>{(plus + minus).strip()} + noise &gt; 0</text>"
        )
    return "\n".join([*shown, "</svg>\n"])


if __name__ == "__main__":
    main()
