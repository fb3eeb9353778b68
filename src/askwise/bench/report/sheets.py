"""A table that is written in Markdown and in LaTeX."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

__all__ = ["MISSING", "Cell", "Column", "Recipe", "Sheet", "code"]

_WIDE = 90  # characters in a line, beyond which a table is shrunk to the width of the page

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "_": r"\_",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "$": r"\$",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": "$<$",
    ">": "$>$",
    "\u00b1": r"$\pm$",
    "\u00d7": r"$\times$",
    "\u03b2": r"$\beta$",
    "\u03a6": r"$\Phi$",
    "\u2013": "--",
}
Align = Literal["l", "r", "p"]
"""To the left, to the right, or a paragraph of text."""
_ALIGNED = {"l": "l", "r": "r", "p": r"p{0.75\textwidth}"}
_NEGATIVE = re.compile(r"(?<![\w.)-])-(?=[\d.])")  # a minus before a number is no hyphen


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table, as plain text."""

    text: str
    bold: bool = False
    code: bool = False

    def markdown(self) -> str:
        """The text marked up; a bar would end the cell."""
        text = self.text.replace("|", "\\|")
        text = f"`{text}`" if self.code else text
        return f"**{text}**" if self.bold and text else text

    def latex(self) -> str:
        """The text escaped and marked up."""
        text = _escaped(self.text)
        text = rf"\texttt{{{text}}}" if self.code else text
        return rf"\textbf{{{text}}}" if self.bold and text else text


MISSING = Cell("\u2013")


def code(text: str, bold: bool = False) -> Cell:
    """A cell with the name of something in the program."""
    return Cell(text, bold, code=True)


@dataclass(frozen=True)
class Column:
    """A column's name; neighbours of one group share a heading above theirs."""

    name: Cell
    group: str = ""
    align: Align = "r"

    @classmethod
    def of(cls, name: str, group: str = "", align: Align = "r") -> "Column":
        """A column with a plain name."""
        return cls(Cell(name), group, align)


@dataclass(frozen=True)
class Recipe:
    """The commands that make a table: one that writes it, and those that ran what it is about."""

    report: str
    runs: tuple[str, ...] = ()

    def markdown(self) -> str:
        """In a sentence."""
        runs = f", from the runs of {', '.join(f'`{run}`' for run in self.runs)}" if self.runs else ""
        return f"*Made by `{self.report}`{runs}.*"

    def latex(self) -> str:
        """As comments."""
        return "\n".join(f"% {line}" for line in (*self.runs, self.report))


@dataclass(frozen=True)
class Sheet:
    """A table with its caption, and how to make it again."""

    name: str
    """Of the file, and the label in LaTeX."""
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    recipe: Recipe

    def __post_init__(self) -> None:
        """Refuse rows that do not fit the columns."""
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"rows of {self.name} must have {len(self.columns)} cells; got {len(row)}. Fill the gaps."
                )

    def markdown(self) -> str:
        """The table, and below it how it is made again."""
        names = [
            f"{column.group}<br>{column.name.markdown()}" if column.group else column.name.markdown()
            for column in self.columns
        ]
        lines = [names, ["--:" if column.align == "r" else ":--" for column in self.columns]]
        lines += [[cell.markdown() for cell in row] for row in self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{self.caption}\n\n{table}\n\n{self.recipe.markdown()}"

    def latex(self) -> str:
        """The table in a float, for the packages booktabs and graphicx."""
        head = [_line([column.name.latex() for column in self.columns])]
        if any(column.group for column in self.columns):
            head = [*self._groups(), *head]
        body = [_line([cell.latex() for cell in row]) for row in self.rows]
        lines = [
            self.recipe.latex(),
            r"\begin{table}",
            r"\centering",
            r"\small",
            rf"\caption{{{_escaped(self.caption.replace('`', ''))}}}",
            rf"\label{{tab:{self.name}}}",
            *([r"\resizebox{\textwidth}{!}{%"] if self._wide else []),
            rf"\begin{{tabular}}{{{''.join(_ALIGNED[column.align] for column in self.columns)}}}",
            r"\toprule",
            *head,
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
        lines = [[column.name for column in self.columns], *self.rows]
        return sum(max(len(cell.text) for cell in column) for column in zip(*lines, strict=True)) > _WIDE

    def _groups(self) -> list[str]:
        """The headings above the names, and the rules below them."""
        cells, rules, first = [], [], 1
        for group, members in groupby(self.columns, lambda column: column.group):
            span = len(list(members))
            cells.append(rf"\multicolumn{{{span}}}{{c}}{{{_escaped(group)}}}")
            if group:
                rules.append(rf"\cmidrule(lr){{{first}-{first + span - 1}}}")
            first += span
        return [_line(cells), " ".join(rules)]


def _line(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _escaped(text: str) -> str:
    marked = _NEGATIVE.sub("\0", text)
    return "".join(_LATEX.get(letter, letter) for letter in marked).replace("\0", "$-$")
