"""Runs the notebooks of docs/notebooks and writes each as a page, with what it prints and draws.

Notebooks are Python files with cells (``# %%``), which Jupyter opens through jupytext, and so do editors.
Run with ``make docs``.
"""

import ast
import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import torch
from matplotlib.figure import Figure
from PIL import Image

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
_CELL = re.compile(r"^# %%(.*)\n", re.MULTILINE)


def main() -> None:
    """Write all pages."""
    torch.set_num_threads(1)
    for path in sorted(NOTEBOOKS.glob("*.py")):
        path.with_suffix(".md").write_text(page(path, path.parent), encoding="utf-8")
        sys.stderr.write(f"{path.stem}\n")


def cells(text: str) -> Iterator[tuple[bool, str]]:
    """The cells of a notebook, and whether each is text."""
    _, *parts = _CELL.split(text)
    for kind, body in zip(parts[::2], parts[1::2], strict=True):
        if "[markdown]" in kind:
            yield True, re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE)
        else:
            yield False, body.strip()


def page(path: Path, pictures: Path) -> str:
    """The notebook as Markdown, run in its folder; what it draws goes into the folder ``pictures``."""
    names: dict[str, Any] = {"__name__": "__main__"}
    parts, drawn = [], 0
    with contextlib.chdir(path.parent):
        for is_text, body in cells(path.read_text(encoding="utf-8")):
            if is_text:
                parts.append(body)
                continue
            printed, value = run(body, names, str(path))
            parts.append(f"```python\n{body}\n```")
            if isinstance(value, Figure):
                drawn += 1
                name = f"{path.stem}-{drawn}.png"
                save(value, pictures / name)
                parts.append(f"![What this cell draws]({name})")
            elif value is not None:
                printed += f"{value!r}\n"
            if printed:
                parts.append(f"```text\n{printed.rstrip()}\n```")
    made = f"This page is [a notebook]({path.name}), run by `make docs`."
    title, *rest = parts
    head, _, more = title.partition("\n")
    return "\n\n".join([head, made, more.strip(), *rest]) + "\n"


def run(body: str, names: dict[str, Any], name: str) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line if that is an expression."""
    tree = ast.parse(body)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(tree, name, "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), names)  # type: ignore[attr-defined]
    return out.getvalue(), value


def save(figure: Figure, path: Path) -> None:
    """Write a small picture of 256 colours."""
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=110)
    small = Image.open(drawn).convert("RGB").quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
