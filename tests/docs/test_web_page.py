"""The study files on the page about the participants' page are read as it says."""

import re
from pathlib import Path

import pytest

from askwise.study import load

PAGE = (Path(__file__).parents[2] / "docs" / "web.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
STUDY = '[study]\nname = "hall"\n'
NAMES = ["gain", "mode", "cutoff", "price", "minutes", "radius", "age", "smile"]
SPACE = "".join(f'[space.{name}]\ntype = "real"\nlow = 0\nhigh = 1\n' for name in NAMES)


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_each_example_is_a_study_file(snippet, tmp_path):
    (tmp_path / "my_pictures.py").write_text("def draw(setting): return '<svg/>'")
    file = tmp_path / "study.toml"
    file.write_text(STUDY + snippet + SPACE)
    config = load(file)
    assert config.page.words
    assert (config.stimulus is not None) == ("[stimulus]" in snippet)


def test_pictures_exist_and_code_is_where_it_says():
    for place in re.findall(r'(?:\]\(|src=")((?:web/|\.\./src)[^)"]+)', PAGE):
        assert (Path(__file__).parents[2] / "docs" / place).exists(), place
