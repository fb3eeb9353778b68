"""The report says what the ranking and the effects say, in Markdown, LaTeX and figures."""

import ast
import importlib
import re
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread

from askwise.bench.effects import superiority
from askwise.bench.experiments import EXPERIMENTS, Arm
from askwise.bench.published import PAPER, PUBLISHED
from askwise.bench.ranking import ranks_at, spreads_at
from askwise.bench.report import _analyses, analysis, figures, write
from askwise.bench.report.analysis import Analysis
from askwise.bench.report.looks import looks
from askwise.bench.report.page import measured, spelled
from askwise.bench.results import load
from askwise.rules import RULES
from campaigns import HOUSE, SHOWN, check_latex, keep, made_up, part, small, table

ALPHAS = (5e-4, 0.005, 0.05)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The nine experiments, small."""
    root = tmp_path_factory.mktemp("results")
    names = (
        *(f"{key}{way}" for key in PUBLISHED for way in ("-as-run", "")),
        "beta",
        "batch-sizes",
        "pbo-learned",
    )
    for seed, name in enumerate(names):
        experiment = small(name)
        keep(root / name, experiment, made_up(experiment, seed))
    return {name: root / name for name in names}


@pytest.fixture(scope="module")
def report(results, tmp_path_factory):
    """A report about all of them, with findings; of each kind of figure only the first is drawn."""
    out = tmp_path_factory.mktemp("report")
    (out / "findings.md").write_text("## What is new\n\nNothing changes.\n\n")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("score_curves", "regret_curves", "win_matrices", "superiority_of_best"):
            patch.setattr(figures, name, only_once(getattr(figures, name)))
        write(list(results.values()), out / "page", findings=out / "findings.md")
    return out / "page"


def only_once(draw):
    """The first figure, then blank ones."""
    calls = iter([draw])
    return lambda *data: next(calls, blank)(*data)


def blank(*_: object) -> Figure:
    return Figure(figsize=(1, 1))


def kind(name: str) -> str:
    return Path(name).stem.split("-")[0]


@pytest.fixture(scope="module")
def text(report):
    return (report / "report.md").read_text()


def test_the_ranking_is_that_of_ranking_at_each_level(results, text):
    for key, title in (("bbo", "## Yes or no"), ("pbo", "## Duels"), ("batch", "## Batches")):
        for way, name in (("as run", f"{key}-as-run"), ("standardised", key)):
            scores, paper = load(results[name]).scores, PUBLISHED[key].rules
            check_ranking(
                text, title, "Rank of the paper's rules", way, {rule: scores[rule] for rule in paper}
            )
            if scores.keys() - set(paper):
                check_ranking(text, title, "Rank of all rules", way, scores)
        bold = re.findall(r"\*\*(\d+) \(\d+(?: ± \d+)?\)\*\*", part(text, title))
        assert set(bold) == {"1"}


def check_ranking(text, title, caption, way, scores):
    rows = table(part(text, title), caption)
    spreads = spreads_at(scores, ALPHAS)
    for alpha, ranking in ranks_at(scores, ALPHAS).items():
        shown = {rule: row[f"{way}<br>{alpha:g}"].strip("*") for rule, row in rows.items()}
        assert {rule: cell for rule, cell in shown.items() if cell != "\u2013"} == {
            spelled(row.rule): f"{row.rank} ({row.borda} ± {spreads[alpha].error(row.rule):.0f})"
            for row in ranking.rows
        }


def test_the_published_ranking_is_beside_ours(text):
    rows = table(part(text, "## Duels"), "Rank of the paper's rules")
    assert [
        rows[rule]["published<br>0.0005"] for rule in ("muc", "dueling_ucb", "bivariate_ei", "random")
    ] == [
        "1 (141)",
        "1 (141)",
        "3 (111)",
        "9 (21)",
    ]


def test_the_advantage_of_the_best_is_its_probability_of_superiority(results, text):
    scores = load(results["pbo"]).scores
    best = ranks_at(scores, ALPHAS)[5e-4].rules[0]
    rows = table(part(text, "## Duels"), f"Probability that a run of `{best}`, the best standardised")
    assert rows.keys() == {spelled(rule) for rule in scores.keys() - {best}}
    borda = {row.rule: row.borda for row in ranks_at(scores, ALPHAS)[5e-4].rows}
    spread = spreads_at(scores, (5e-4,))[5e-4]
    for of, column in (("final", "final score"), ("auc", "AUC")):
        found = superiority(scores, of=of)
        for rule in scores.keys() - {best}:
            row, one = rows[spelled(rule)], found.of(best, rule)
            numbers = [one.fixed.mean, one.fixed.low, one.fixed.high, one.drawn.low, one.drawn.high]
            shown = row[f"{column}<br>these functions"] + row[f"{column}<br>functions like these"]
            assert [float(n) for n in re.findall(r"[\d.]+", shown)] == pytest.approx(numbers, abs=6e-4)
            fixed, drawn = spread.errors_between(best, rule)
            assert (
                row["Borda score ahead by<br>these functions"] == f"{borda[best] - borda[rule]} ± {fixed:.0f}"
            )
            assert row["Borda score ahead by<br>functions like these"] == f"± {drawn:.0f}"


def test_regrets_of_a_scenario_are_means_over_functions(results, text):
    run = Analysis(load(results["batch-as-run"]), results["batch-as-run"])
    rows = table(part(text, "## Batches"), "Normalised regret after the last query, as run")
    for rule in run.arms:
        last = run.regret[rule][..., -1]
        assert first(rows[rule]["mean<br>these functions"]) == pytest.approx(last.mean(), abs=6e-4)
        median = first(rows[rule]["median<br>these functions"])
        assert median == pytest.approx(np.median(last, 1).mean(), abs=6e-4)
        assert rows[rule]["runs above 1"] == f"{100 * (last > 1).mean():.1f} %"
        if rule != run.best:
            behind = first(rows[rule]["mean, minus that of the best<br>these functions"])
            assert behind == pytest.approx(last.mean() - run.regret[run.best][..., -1].mean(), abs=6e-4)


def first(cell: str) -> float:
    """The number before the interval."""
    return float(cell.split()[0].strip("*"))


def test_every_pair_has_its_differences_and_clear_ones_are_bold(results, text):
    run = Analysis(load(results["bbo"]), results["bbo"])
    folded = text[text.index("standardised (<code>bbo</code>)</summary>") :].split("</details>")[0]
    lines = [line.strip("| ").split(" | ") for line in folded.splitlines() if line.startswith("| `")]
    assert len(lines) == len(run.arms) * (len(run.arms) - 1) // 2
    named = {spelled(label): label for label in run.arms}
    for rule, other, chance, like, mean, *_ in lines:
        pair = named[rule.strip("`")], named[other.strip("`")]
        assert first(chance) == pytest.approx(run.superiority[0].of(*pair).fixed.mean, abs=6e-4)
        drawn = run.superiority[0].of(*pair).drawn
        assert like == f"[{drawn.low:.3f}, {drawn.high:.3f}]"
        assert chance.startswith("**") == (not drawn.low <= 0.5 <= drawn.high)
        assert first(mean) == pytest.approx(run.final_regret.differences.of(*pair).fixed.mean, abs=6e-4)


def test_scores_have_every_rule_and_function_and_the_best_in_bold(results, text):
    for name, directory in results.items():
        held = load(directory)
        below = part(text, "## Scores on each function")
        folded = below[below.index(f"(<code>{name}</code>)</summary>") :].split("</details>")[0]
        rows = table(folded, "Mean final score")
        assert tuple(rows) == held.functions
        for place, function in enumerate(held.functions):
            line = next(line for line in folded.splitlines() if line.startswith(f"| `{function}`"))
            means = {label: scores[place, :, -1].mean() for label, scores in held.scores.items()}
            errors = {
                label: scores[place, :, -1].std(ddof=1) / 10**0.5 for label, scores in held.scores.items()
            }
            for label in means:
                expected = measured(means[label], errors[label])
                assert rows[function][spelled(label)] == expected
                assert (f"**{expected}**" in line) or means[label] < max(means.values())
            assert line.count("**") == 2


def test_the_page_explains_every_rule(results, text):
    rules = table(text, "The rules compared.")
    used = {
        arm.rule.split("(")[0] for directory in results.values() for arm in load(directory).experiment.arms
    }
    assert rules.keys() == used
    assert all(rules[key]["name"] == RULES[key].title for key in used)


def test_findings_come_after_the_introduction(text):
    assert text.index("# Acquisition rules compared") < text.index(
        "## What is new\n\nNothing changes.\n\n## Yes or no"
    )


def test_every_table_says_how_it_is_made(results, text):
    assert text.count("*Made by `askwise bench report ") == len(re.findall(r"(?m)^\| :--", text))
    runs = "askwise bench run pbo-as-run --functions ackley,ursem_waves --replicates 10"
    assert f"askwise bench report {results['pbo-as-run']} {results['pbo']}`, from the runs of `{runs}" in text


def test_the_page_says_how_each_experiment_was_run(text):
    rows = table(part(text, "## How the experiments were run"), "Duels, as the published table was made.")
    said = {name: row["pbo-as-run"] for name, row in rows.items()}
    assert said["seconds"] == "1235"
    assert said["lane iterations per second"] == "98.77"
    assert said["command"] == "askwise bench run a; askwise bench run b"
    assert said["hardware"] == "a fast_processor"
    assert said["inference"] == "converged after 100 % of the queries"
    assert said["design"] == "10 replicates per rule and function, of 6 queries, the first 2 at random"
    assert not any("experiment" in name for name in said)


def test_beta_has_its_defaults_marked_and_its_regrets_sorted(results, text):
    run = Analysis(load(results["beta"]), results["beta"])
    found = run.by_beta()
    assert [one.value for one in found if one.default] == [RULES["ucb_f"].beta, RULES["ucb_phi"].beta]
    assert [(one.rule, one.value) for one in found] == sorted((one.rule, one.value) for one in found)
    lines = [line for line in part(text, "## Sensitivity to β").splitlines() if "(default)" in line]
    assert len(lines) == 2
    assert lines[0].startswith("| `ucb_f` | 1 (default) |")
    assert f"{run.final_regret.each['ucb_phi'].fixed.mean:.3f}" in lines[1]
    other = next(
        line for line in part(text, "## Sensitivity to β").splitlines() if "| `ucb_f` | 0.5 |" in line
    )
    assert f"{run.superiority[0].of('ucb_f(beta=0.5)', 'ucb_f').fixed.mean:.3f} [" in other


def test_batch_sizes_are_a_table_of_rules_by_sizes(results, text):
    run = Analysis(load(results["batch-sizes"]), results["batch-sizes"])
    rows = table(part(text, "## Batch sizes"), "Mean normalised regret after the last query")
    for arm in run.results.experiment.arms:
        shown = rows[arm.rule][f"m = {arm.m}"]
        assert first(shown) == pytest.approx(run.final_regret.each[arm.label].fixed.mean, abs=6e-4)
    pairs = part(text, "## Batch sizes").split("Pairs of rules")[1]
    shown = re.findall(r"^\| `(\w+) m=(\d)` \| `(\w+) m=(\d)` \|", pairs, re.MULTILINE)
    assert len(shown) == 4 * 3
    assert all(m == n for _, m, _, n in shown)


def test_learned_is_beside_known(results, text):
    section = part(text, "## Known and learned hyperparameters")
    rows, regrets = table(section, "Normalised regret after the last"), {}
    for way, name in (("known", "pbo"), ("learned", "pbo-learned")):
        run = Analysis(load(results[name]), results[name])
        for row in run.tables[5e-4].rows:
            shown = rows[spelled(row.rule)]
            error = run.spreads[5e-4].error(row.rule)
            assert shown[f"rank (Borda)<br>{way}"] == f"{row.rank} ({row.borda} ± {error:.0f})"
            regrets[way, row.rule] = run.final_regret.each[row.rule].fixed.mean
            assert first(shown[f"mean regret<br>{way}"]) == pytest.approx(regrets[way, row.rule], abs=6e-4)
    for rule, row in table(section, "Learned against known kernels").items():
        shown = first(row["difference of mean regrets<br>these functions"])
        label = next(label for _, label in regrets if spelled(label) == rule)
        assert shown == pytest.approx(regrets["learned", label] - regrets["known", label], abs=6e-4)


def test_coinciding_points_are_counted_in_the_first_runs(results, text):
    held = load(results["pbo"])
    apart = {key: replace(one, questions=one.questions + 0.0) for key, one in held.firsts.items()}
    initial = held.experiment.initial
    for (arm, _), one in apart.items():
        one.questions[:, 1] += 0.5
        if arm == "muc":
            one.questions[initial, 1] = one.questions[initial, 0] + 9e-4
    run = Analysis(replace(held, firsts=apart), results["pbo"])
    assert run.coincident("kss") == 0
    assert run.coincident("muc") == pytest.approx(1 / (held.experiment.iterations - initial))
    rows = table(part(text, "## What goes wrong"), "Queries in which two points coincide")
    assert rows["muc"]["pbo"] == "100.0 %"  # made up: all points are zero
    assert rows["muc"]["batch-as-run"] == "100.0 %"
    assert rows["ei"]["batch-as-run"] == "\u2013"
    sizes = table(part(text, "## What goes wrong"), "Queries in which two points coincide, `batch-sizes`")
    assert set(sizes["muc_joint"].values()) == {"muc_joint", "100.0 %"}


def test_functions_with_wide_priors_are_apart(tmp_path, monkeypatch):
    for name in ("score_curves", "regret_curves", "win_matrices", "superiority_of_best"):
        monkeypatch.setattr(figures, name, blank)
    functions = (
        "ackley",
        "dixon_price",
        "sphere",
        "trid",
    )  # the first has a variance of 1, the last two 20000
    experiment = small("bbo", functions)
    write([keep(tmp_path / "bbo", experiment, made_up(experiment))], tmp_path / "out")
    text = part((tmp_path / "out" / "report.md").read_text(), "## What goes wrong")
    assert (
        "2 of the 3 functions with a prior standard deviation above 100 sit on that bound (sphere, trid)"
        in text
    )
    run, rows = (
        Analysis(load(tmp_path / "bbo"), tmp_path),
        table(text, "Normalised regret after the last query"),
    )
    for rule in run.arms:
        last, row = run.regret[rule][..., -1], rows[spelled(rule)]
        assert first(row["3 with wide priors<br>mean"]) == pytest.approx(last[1:].mean(), abs=6e-4)
        assert first(row["1 others<br>median"]) == pytest.approx(np.median(last[0]), abs=6e-4)


def test_tables_are_also_written_in_latex(report, text):
    files = sorted((report / "tables").glob("*.tex"))
    assert len(files) == text.count("*Made by")
    for file in files:
        check_latex(file.read_text())


def test_there_is_a_figure_wherever_one_is_shown(report, text):
    named = re.findall(r"!\[[\w-]+\]\((figures/[\w-]+\.png)\)", text)
    assert sorted(named) == sorted(f"figures/{file.name}" for file in (report / "figures").iterdir())
    kinds = Counter(map(kind, named))
    assert kinds == {"runs": 9, "examples": 6, "wins": 3, "superiority": 3, "beta": 1, "batch": 1}
    for first in {kind(name): name for name in reversed(named)}.values():
        check_figure(report / first)


def check_figure(file: Path) -> None:
    image = imread(file)
    assert min(image.shape[:2]) > 200
    assert max(image.shape[:2]) < 2500
    ink = (image[..., :3] < 0.95).any(-1)
    assert 0.01 < ink.mean() < 0.9
    shades = (255 * image[::3, ::3, :3]).astype(int) @ [1, 256, 65536]
    assert len(np.unique(shades)) > 20


@pytest.mark.slow
def test_every_figure_shows_something(results, tmp_path):
    write(list(results.values()), tmp_path)
    files = list((tmp_path / "figures").iterdir())
    assert len(files) == 23
    for file in files:
        check_figure(file)


@pytest.mark.slow
def test_a_whole_experiment_is_reported_within_a_minute(tmp_path):
    experiment = EXPERIMENTS["pbo"]
    keep(tmp_path / "pbo", experiment, made_up(experiment))
    began = time.perf_counter()
    write([tmp_path / "pbo"], tmp_path / "out")
    assert time.perf_counter() - began < 60
    rows = table((tmp_path / "out" / "report.md").read_text(), "Mean final score")
    assert tuple(rows) == PAPER
    assert tuple(rows["ackley"])[1:] == tuple(arm.label for arm in experiment.arms)


def test_sections_about_missing_experiments_are_left_out(results, tmp_path, monkeypatch):
    for name in ("score_curves", "regret_curves", "win_matrices", "superiority_of_best"):
        monkeypatch.setattr(figures, name, blank)
    write([results["batch-as-run"]], tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert re.findall(r"(?m)^## (.*)", text) == [
        "How to read this page",
        "Batches",
        "What goes wrong",
        "Scores on each function",
        "How the experiments were run",
    ]
    assert "standardised<br>" not in text
    assert not list(tmp_path.glob("*/*bo*"))


def test_the_page_has_its_own_order(results):
    found = _analyses([results[name] for name in sorted(results)])
    assert list(found) == list(results)


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """An experiment of two rules, one of a single rule, and one with few replicates."""
    root = tmp_path_factory.mktemp("others")
    two = replace(small("pbo", SHOWN[:2]), name="mine", title="My own", arms=(Arm("kss", 2), Arm("eubo", 2)))
    one = replace(small("bbo", SHOWN[:1]), arms=(Arm("thompson", 1),), replicates=1)
    few = replace(two, name="few", title="My short one", replicates=3)
    folders = [keep(root / each.name, each, made_up(each)) for each in (two, one, few)]
    write(folders, root / "out")
    return folders, root / "out"


def test_other_experiments_have_a_section_and_a_single_rule_has_no_ranking(others):
    _, out = others
    text = (out / "report.md").read_text()
    assert table(part(text, "## My own"), "Rank of all rules").keys() == {"kss", "eubo"}
    assert "### Ranking" not in part(text, "## Yes or no")
    assert (out / "figures" / "examples-bbo.png").exists() is False
    assert (out / "figures" / "runs-bbo.png").exists()


def test_ranks_without_a_chance_of_significance_say_so_below_the_table(others):
    (*_, folder), out = others
    at = ranks_at(load(folder).scores, ALPHAS)
    said = re.findall(
        r"^\*\*(?:Mine|Few), level (.+):\*\* (.+)$", (out / "report.md").read_text(), re.MULTILINE
    )
    assert said == [(f"{alpha:g}", at[alpha].undecidable) for alpha in ALPHAS if at[alpha].undecidable]
    assert [level for level, _ in said] == ["0.0005", "0.005"]


def test_the_same_results_make_the_same_report(others, tmp_path):
    folders, out = others
    write(folders, tmp_path)
    files = sorted(file.relative_to(tmp_path) for file in tmp_path.rglob("*.*"))
    assert files == sorted(file.relative_to(out) for file in out.rglob("*.*"))
    for file in files:
        assert (tmp_path / file).read_bytes() == (out / file).read_bytes()


def test_no_results_duplicates_and_missing_findings_are_refused(results, tmp_path):
    with pytest.raises(ValueError, match=HOUSE):
        write([], tmp_path)
    with pytest.raises(ValueError, match=HOUSE):
        write([results["beta"], results["beta"]], tmp_path)
    with pytest.raises(ValueError, match=HOUSE):
        write([results["beta"]], tmp_path, findings=tmp_path / "none.md")
    assert not list(tmp_path.iterdir())


def test_a_report_without_matplotlib_is_refused(monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("matplotlib", "askwise.bench.report"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=HOUSE) as caught:
        importlib.import_module("askwise.bench.report")
    assert "Run `pip install askwise[plots]`." in str(caught.value)


def test_rules_of_an_experiment_look_different_and_each_the_same_everywhere():
    for experiment in EXPERIMENTS.values():
        found = looks({arm.label: arm.rule for arm in experiment.arms})
        assert found.keys() == {arm.label for arm in experiment.arms}
        assert len({(look.colour, str(look.dash)) for look in found.values()}) == len(found)
    alone, among = looks({"muc": "muc"}), looks({"random": "random", "muc": "muc"})
    assert alone["muc"] == among["muc"]


def test_only_figures_import_matplotlib():
    root = Path(analysis.__file__).parents[1]
    files = set(root.rglob("*.py")) - {root / "report" / "figures.py", root / "report" / "looks.py"}
    assert len(files) > 20
    for file in files:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
                assert not any("matplotlib" in name for name in names), file
