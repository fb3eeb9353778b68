"""The page being written, its tables in Markdown and LaTeX, and the format of its numbers."""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from askwise.bench.estimates import Interval
from askwise.errors import Refused
from askwise.storage import overwritable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DPI, _COLOURS = 130, 128
_LONG = re.compile(r"\d+\.\d{4,}")
_PLAIN = (-4, 5)  # powers of ten between which numbers are written out
_WIDE = 90  # characters per line, beyond which a LaTeX table is shrunk to the width of the page
_MATH = {"<": "<", ">": ">", "\u00b1": r"\pm", "\u00d7": r"\times", "\u03b2": r"\beta", "\u03a6": r"\Phi"}
_NAMED = {"\\": "backslash", "^": "asciicircum", "~": "asciitilde"}
_LATEX = str.maketrans(
    {letter: f"\\{letter}" for letter in "{}_&%#$"}
    | {letter: rf"\text{name}{{}}" for letter, name in _NAMED.items()}
    | {letter: f"${symbol}$" for letter, symbol in _MATH.items()}
    | {"\u2013": "--", "\0": "$-$"}
)
_NEGATIVE = re.compile(r"(?<![\w.)-])-(?=[\d.])")  # a minus sign, not a hyphen
_ALIGNED = {"l": "l", "r": "r", "p": r"p{0.75\textwidth}"}
Align = Literal["l", "r", "p"]
"""Left, right, or a paragraph of text."""


@dataclass(frozen=True)
class Cell:
    """One cell of a table, as plain text."""

    text: str
    bold: bool = False
    code: bool = False

    def markdown(self) -> str:
        """The text with markup; bars are escaped."""
        text = self.text.replace("|", "\\|")
        text = f"`{text}`" if self.code else text
        return f"**{text}**" if self.bold and text else text

    def latex(self) -> str:
        """The text escaped and with markup."""
        text = _escaped(self.text)
        text = rf"\texttt{{{text}}}" if self.code else text
        return rf"\textbf{{{text}}}" if self.bold and text else text


MISSING = Cell("\u2013")


def code(text: str) -> Cell:
    """A cell with a name from the program."""
    return Cell(text, code=True)


@dataclass(frozen=True)
class Column(Cell):
    """The name of a column; neighbours of one group share a heading above."""

    group: str = ""
    align: Align = "r"


@dataclass(frozen=True)
class Recipe:
    """The commands that reproduce a table: the report, and the runs it is about."""

    report: str
    runs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sheet:
    """A table with its caption and recipe."""

    name: str
    """File name, and label in LaTeX."""
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    recipe: Recipe

    def __post_init__(self) -> None:
        """Refuse rows that do not fit the columns."""
        for row in self.rows:
            if len(row) != len(self.columns):
                expected = f"have {len(self.columns)} cells"
                raise Refused(f"rows of {self.name}", expected, len(row), "Fill the gaps.")

    def markdown(self) -> str:
        """Caption, table and recipe."""
        names = [f"{one.group}<br>{one.markdown()}" if one.group else one.markdown() for one in self.columns]
        lines = [names, ["--:" if column.align == "r" else ":--" for column in self.columns]]
        lines += [[cell.markdown() for cell in row] for row in self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        made, runs = self.recipe.report, ", ".join(f"`{run}`" for run in self.recipe.runs)
        source = f"*Made by `{made}`{', from the runs of ' if runs else ''}{runs}.*"
        return f"{self.caption}\n\n{table}\n\n{source}"

    def latex(self) -> str:
        """A float for the packages booktabs and graphicx."""
        head, *body = (_line([cell.latex() for cell in row]) for row in (self.columns, *self.rows))
        lines = [
            *(f"% {line}" for line in (*self.recipe.runs, self.recipe.report)),
            r"\begin{table}",
            r"\centering",
            r"\small",
            rf"\caption{{{_escaped(self.caption.replace('`', ''))}}}",
            rf"\label{{tab:{self.name}}}",
            *([r"\resizebox{\textwidth}{!}{%"] if self._wide else []),
            rf"\begin{{tabular}}{{{''.join(_ALIGNED[column.align] for column in self.columns)}}}",
            r"\toprule",
            *self._groups(),
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}%",
            *(["}"] if self._wide else []),
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    @property
    def _wide(self) -> bool:
        if any(column.align == "p" for column in self.columns):
            return False
        columns = zip(self.columns, *self.rows, strict=True)
        return sum(max(len(cell.text) for cell in column) for column in columns) > _WIDE

    def _groups(self) -> list[str]:
        """The headings above the column names, if any, and the rules below them."""
        if not any(column.group for column in self.columns):
            return []
        cells, rules, first = [], [], 1
        for group, members in groupby(self.columns, lambda column: column.group):
            span = len(list(members))
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{_escaped(group)}}}")
            if group:
                rules.append(rf"\cmidrule(lr){{{first}-{first + span - 1}}}")
            first += span
        return [_line(cells), " ".join(rules)]


class Page:
    """A page of Markdown in a folder, with its tables in LaTeX and its figures beside it."""

    def __init__(self, out: Path) -> None:
        """An empty page; creates the folder."""
        self._out = out
        self._blocks: list[str] = []
        for part in ("tables", "figures"):
            (out / part).mkdir(parents=True, exist_ok=True)

    def text(self, markdown: str) -> None:
        """Add headings or paragraphs."""
        self._blocks.append(markdown)

    def sheet(self, sheet: Sheet, folded: str = "") -> None:
        """Add a table, collapsed behind the line ``folded`` if there is one."""
        overwritable(self._out / "tables" / f"{sheet.name}.tex").write_text(sheet.latex(), encoding="utf-8")
        table = sheet.markdown()
        if folded:
            table = f"<details>\n<summary>{folded}</summary>\n\n{table}\n\n</details>"
        self._blocks.append(table)

    def figure(self, name: str, figure: "Figure", caption: str) -> None:
        """Add a figure with its caption; the colour palette shrinks the file to a third."""
        from PIL import Image

        path, drawn = f"figures/{name}.png", io.BytesIO()
        figure.savefig(drawn, dpi=_DPI, format="png")
        with Image.open(drawn) as image:
            small = image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
        small.save(overwritable(self._out / path), optimize=True)
        self._blocks.append(f"![{name}]({path})\n\n{caption}")

    def save(self) -> None:
        """Write the page."""
        overwritable(self._out / "report.md").write_text("\n\n".join(self._blocks) + "\n", encoding="utf-8")


def measured(mean: float, error: float) -> str:
    """A mean ± its standard error, both to the second digit of the error; without an error, the mean.

    >>> measured(3.14159, 0.0271), measured(-123456.0, 4321.0), measured(2.5, 0.0)
    ('3.142 ± 0.027', '-1.235e5 ± 0.043e5', '2.5 ± 0')
    """
    if not math.isfinite(error):
        return short(mean)
    if error == 0:
        return f"{short(mean)} ± 0"
    power = _power(max(abs(mean), error))
    unit, suffix = (1.0, "") if _PLAIN[0] <= power < _PLAIN[1] else (10.0**power, f"e{power}")
    places = max(0, 1 - _power(error / unit))
    return f"{_fixed(mean / unit, places)}{suffix} ± {error / unit:.{places}f}{suffix}"


def within(interval: Interval, places: int = 3) -> str:
    """A mean and its interval; without a finite interval, the mean.

    >>> within(Interval(0.51234, 0.49, 0.53))
    '0.512 [0.490, 0.530]'
    """
    mean = _fixed(interval.mean, places)
    if not math.isfinite(interval.high - interval.low):
        return mean
    return f"{mean} [{_fixed(interval.low, places)}, {_fixed(interval.high, places)}]"


def span(interval: Interval, places: int = 3) -> str:
    """An interval without its mean; a dash if it is not finite.

    >>> span(Interval(0.51234, 0.49, 0.53))
    '[0.490, 0.530]'
    """
    if not math.isfinite(interval.high - interval.low):
        return MISSING.text
    return f"[{_fixed(interval.low, places)}, {_fixed(interval.high, places)}]"


def short(value: float) -> str:
    """A number to four digits.

    >>> short(0.00012345), short(1234567.0), short(-0.0)
    ('0.0001234', '1.235e6', '0')
    """
    power = _power(value)
    if value == 0 or _PLAIN[0] <= power < _PLAIN[1]:
        return f"{value + 0.0:.4g}"
    return f"{value / 10.0**power:.4g}e{power}"


def spelled(label: str) -> str:
    """The label of an arm, with numbers to at most four digits.

    >>> spelled("ucb_f(beta=2.3263478740408408)"), spelled("muc m=5")
    ('ucb_f(beta=2.326)', 'muc m=5')
    """
    return _LONG.sub(lambda found: f"{float(found[0]):.4g}", label)


def _fixed(value: float, places: int) -> str:
    text = f"{value:.{places}f}"
    return text.lstrip("-") if float(text) == 0 else text  # never minus zero


def _power(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 0


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _escaped(text: str) -> str:
    return _NEGATIVE.sub("\0", text).translate(_LATEX)
