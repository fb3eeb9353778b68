"""Made-up results, scripts as modules, and parsers of Markdown and LaTeX."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType

import numpy as np

from askwise.bench.chunks import Chunk, Folder
from askwise.bench.experiments import EXPERIMENTS, Experiment
from askwise.bench.functions import FUNCTIONS
from askwise.bench.lanes import RunId
from askwise.bench.regret import levels

HOUSE = r"(?s)^.+ must .+; got .+\. .+"
BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
SHOWN = ("ackley", "ursem_waves")  # the paper shows one of them or both in each setting


@contextmanager
def script(name: str) -> Iterator[ModuleType]:
    """A script of benchmarks/ as a module, which worker processes can import as well."""
    where = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    sys.modules[name] = module = importlib.util.module_from_spec(where)
    sys.path.insert(0, str(BENCHMARKS))
    try:
        where.loader.exec_module(module)
        yield module
    finally:
        sys.path.remove(str(BENCHMARKS))
        del sys.modules[name]


def made_up(experiment: Experiment, seed: int = 0) -> dict[str, np.ndarray]:
    """Scores [function, replicate, iteration] that improve, each arm at another speed."""
    source = np.random.default_rng(seed)
    shape = (experiment.replicates, experiment.iterations)
    found = {}
    for number, arm in enumerate(experiment.arms):
        speed = 1 / (1 + number)
        each = []
        for function in experiment.functions:
            level = levels(function, experiment.scale, experiment.score)
            steps = np.arange(experiment.iterations)
            regret = np.exp(-speed * steps) * source.lognormal(0, 0.3, shape)
            scores = level.best - regret * (level.best - level.usual)
            each.append(scores.clip(0, 1) if experiment.score == "probability" else scores)
        found[arm.label] = np.stack(each)
    return found


def keep(directory: Path, experiment: Experiment, scores: dict[str, np.ndarray]) -> Path:
    """Write these scores as a campaign would."""
    directory.mkdir(parents=True)
    folder = Folder(directory)
    folder.write_about(
        {
            "experiment": asdict(experiment),
            "seed": "hash of the cell's name",
            "seconds": 1234.567,
            "lane_iterations_per_second": 98.7654,
            "command": ["askwise bench run a", "askwise bench run b"],
            "torch": ["2.11.0"],
            "hardware": ["a fast_processor"],
        }
    )
    n, t = experiment.replicates, experiment.iterations
    for arm in experiment.arms:
        for d in {FUNCTIONS[function].dim for function in experiment.functions}:
            rows = [row for row, name in enumerate(experiment.functions) if FUNCTIONS[name].dim == d]
            names, lanes = [experiment.functions[row] for row in rows], n * len(rows)
            folder.write(
                Chunk(
                    tuple(RunId(experiment.name, name, arm.label, k) for name in names for k in range(n)),
                    questions=np.zeros((lanes, t, arm.m, d)),
                    answers=np.zeros((lanes, t, arm.pairs), np.int8),
                    optima=np.zeros((lanes, t, d)),
                    scores=scores[arm.label][rows].reshape(lanes, t),
                    converged=np.ones((lanes, t), bool),
                    seconds=np.zeros(t),
                    hardware="none",
                )
            )
    return directory


def small(name: str, functions: tuple[str, ...] = SHOWN) -> Experiment:
    return replace(EXPERIMENTS[name], functions=functions, replicates=10, iterations=6, initial=2)


def part(text: str, heading: str) -> str:
    """The text below a heading, up to the next one of the same level or higher."""
    level = heading.split()[0]
    begin = text.index(f"{heading}\n") + len(heading)
    end = re.search(rf"(?m)^#{{1,{len(level)}}} ", text[begin:])
    return text[begin : begin + end.start()] if end else text[begin:]


def table(text: str, caption: str) -> dict[str, dict[str, str]]:
    """The table below a caption without markup, by the first cell of the row and the name of the column."""
    lines = text[text.index(caption) :].split("\n\n")[1].splitlines()
    cells = [[cell.strip().strip("*").strip("`") for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0]: dict(zip(cells[0], row, strict=True)) for row in cells[2:]}


def check_latex(tex: str) -> None:
    """Braces and environments match, rows have all columns, and special characters are escaped."""
    bare = "\n".join(re.sub(r"(?<!\\)%.*", "", line) for line in tex.splitlines())
    plain = re.sub(r"\\[\\{}_&%#$]", lambda found: "\\\\" if found[0] == "\\\\" else "", bare)
    assert plain.count("{") == plain.count("}")
    assert plain.count("$") % 2 == 0
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", plain):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    unlabelled = re.sub(r"\\(label\{[^}]*\}|cmidrule\(lr\)\{[^}]*\})", "", plain)
    outside_math = re.sub(r"\$[^$]*\$", "", unlabelled)
    assert not re.search(r"[_#^~<>]", outside_math)
    (columns,) = re.findall(r"\\begin\{tabular\}\{(.*)\}\n", bare)
    count = len(re.sub(r"\{[^}]*\}", "", columns))
    rows = [line for line in plain.splitlines() if line.endswith("\\\\")]
    assert len(rows) > 1
    for row in rows:
        spans = [int(span) - 1 for span in re.findall(r"\\multicolumn\{(\d+)\}", row)]
        assert row.count("&") + sum(spans) == count - 1
