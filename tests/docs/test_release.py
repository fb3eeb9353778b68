"""What is released: the same bytes from the same files, and the program alone."""

import io
import re
import sys
import tarfile
import tomllib
import zipfile

import pytest

from pages import ROOT


@pytest.fixture
def dist(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "release"))
    for name in ("dist", "readme", "sbom"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    import dist

    monkeypatch.setattr(dist, "epoch", lambda: 1_700_000_000)
    return dist


def archive(path, names, when, owner):
    with tarfile.open(path, "w:gz") as packed:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname = 3, when, owner
            packed.addfile(member, io.BytesIO(b"abc"))


def test_archives_packed_at_other_times_by_other_people_are_the_same_bytes(dist, tmp_path):
    first, second = tmp_path / "first.tar.gz", tmp_path / "second.tar.gz"
    archive(first, ["a/x.py", "a/y.py"], 1, "ada")
    archive(second, ["a/y.py", "a/x.py"], 2, "ben")
    for path in (first, second):
        dist.normalise(path)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as packed:
        assert packed.getnames() == ["a/x.py", "a/y.py"]
        assert packed.extractfile("a/y.py").read() == b"abc"


@pytest.mark.parametrize("name", ["askwise-1/tests/test_x.py", "askwise-1/results/pbo.json"])
def test_a_package_with_tests_or_results_is_refused(name, dist, tmp_path):
    path = tmp_path / "askwise-1.tar.gz"
    archive(path, ["askwise-1/src/askwise/testing/rules.py"], 1, "ada")
    dist.check_content(path)
    archive(path, [name], 1, "ada")
    with pytest.raises(SystemExit, match="must have the program alone"):
        dist.check_content(path)
    wheel = tmp_path / "askwise-1.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("tests/test_x.py", "")
    with pytest.raises(SystemExit, match="must have the program alone"):
        dist.check_content(wheel)


def test_the_readme_of_the_package_needs_nothing_of_the_repository(dist):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = dist.for_index(text)
    assert "<img" in text
    assert not re.search(r"<img|!\[|<!--|\bmake (demo|serve)", shown)
    assert set(re.findall(r"\]\(([^)]*)\)", shown)) == {"https://arxiv.org/abs/2110.09361"}
    assert re.findall(r"```.*?```", shown, re.DOTALL) == re.findall(r"```.*?```", text, re.DOTALL)
    assert re.findall(r"^#.*$", shown, re.MULTILINE) == re.findall(r"^#.*$", text, re.MULTILINE)


def test_the_version_is_the_same_everywhere():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert newest.startswith((f"{version} - ", f"Unreleased\n\nTo be {version}."))


def test_the_list_of_components_follows_extras_and_leaves_out_what_developers_need(dist):
    from sbom import EXTRAS, charts, closure

    needed = closure("askwise", EXTRAS)
    assert {"torch", "gpytorch", "fastapi", "sqlalchemy", "optuna", "botorch", "pandas"} <= needed
    assert not {"ruff", "mypy", "hypothesis", "mkdocs"} & needed
    assert "fastapi" not in closure("askwise")
    assert charts()["purl"] == "pkg:npm/uplot@1.6.32"


def test_extras_of_the_installation_are_tried_or_for_developers():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "release/installs.py").read_text(encoding="utf-8")
    for extra in set(project["optional-dependencies"]) - {"dev", "docs", "release"}:
        assert f'    "{extra}": ' in text
    assert project["urls"]["Paper"].startswith("https://arxiv.org/")
