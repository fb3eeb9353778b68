"""What the README shows and what `make demo` runs, run."""

import re
import runpy
from pathlib import Path

import pytest

import askwise as aw

ROOT = Path(__file__).parents[2]


def test_the_lines_of_the_readme_run(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    shown: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), shown)
    study = shown["study"]
    assert isinstance(study, aw.Study)
    assert study.best().params["gain"] > 35
    assert "probability=" in capsys.readouterr().out


def test_the_demo_finds_the_hidden_best_and_draws_it(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "demo.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert (tmp_path / "out" / "demo.png").stat().st_size > 10_000
    worth = int(re.findall(r"worth +(\d+)% of the hidden best", printed)[-1])
    assert worth >= 90
    last = printed.splitlines()[-3:]
    assert [line.partition(":")[0] for line in last] == ["Recommended", "Picture", "Now you"]
    assert re.search(r"gain \d+\.\d dB, cutoff \d+ Hz", last[0])
    assert "out/demo.png" in last[1]
    assert "make serve" in last[2]


@pytest.mark.slow
def test_the_puddings_are_worth_what_the_page_says(capsys):
    runpy.run_path(str(ROOT / "examples" / "springall.py"), run_name="__main__")
    printed = capsys.readouterr().out.strip()
    (shown,) = re.findall(
        r"```text\n(885 duels.*?)```", (ROOT / "docs" / "real-data.md").read_text(), re.DOTALL
    )
    assert [line.partition(":")[0] for line in printed.splitlines()] == [
        line.partition(":")[0] for line in shown.strip().splitlines()
    ]
    values = [[float(one) for one in re.findall(r"worth +(-?[\d.]+)", text)] for text in (printed, shown)]
    assert len(values[0]) == 18
    assert values[0] == pytest.approx(values[1], abs=0.03)
