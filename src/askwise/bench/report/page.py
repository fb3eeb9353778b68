"""The page as it grows: text, tables, figures."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

from askwise.bench.report.sheets import Sheet

if TYPE_CHECKING:
    import matplotlib.figure

__all__ = ["Page"]

_DPI, _COLOURS = 130, 128


class Page:
    """A page of Markdown in a folder, with its tables in LaTeX and its figures beside it."""

    def __init__(self, out: Path) -> None:
        """An empty page; the folder is made."""
        self._out = out
        self._blocks: list[str] = []
        for part in ("tables", "figures"):
            (out / part).mkdir(parents=True, exist_ok=True)

    def heading(self, level: int, text: str) -> None:
        """Begin a part of the page."""
        self._blocks.append(f"{'#' * level} {text}")

    def text(self, markdown: str) -> None:
        """Add a paragraph or more."""
        self._blocks.append(markdown)

    def sheet(self, sheet: Sheet, folded: str = "") -> None:
        """Add a table, behind a line to click on if ``folded`` says what is there."""
        (self._out / "tables" / f"{sheet.name}.tex").write_text(sheet.latex(), encoding="utf-8")
        table = sheet.markdown()
        if folded:
            table = f"<details>\n<summary>{folded}</summary>\n\n{table}\n\n</details>"
        self._blocks.append(table)

    def figure(self, name: str, figure: "matplotlib.figure.Figure", caption: str) -> None:
        """Add a figure with what is to be seen in it."""
        path = f"figures/{name}.png"
        _save_small(figure, self._out / path)
        self._blocks.append(f"![{name}]({path})\n\n{caption}")

    def save(self) -> None:
        """Write the page."""
        (self._out / "report.md").write_text("\n\n".join(self._blocks) + "\n", encoding="utf-8")


def _save_small(figure: "matplotlib.figure.Figure", path: Path) -> None:
    """Save with a palette of colours: a third of the size, and no difference to be seen."""
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=_DPI, format="png")
    with Image.open(drawn) as image:
        image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
