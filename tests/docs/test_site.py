"""The site builds without a warning, is complete in itself, and has a reference of everything."""

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from pages import DOCS, ROOT

TOOLS = DOCS / "tools"


def tool(name):
    spec = importlib.util.spec_from_file_location(f"docs_tools_{name}", TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("site") / "site"
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    assert list(tool("check").problems(site)) == []


@pytest.mark.slow
def test_formulas_are_drawn_by_the_browser_alone(site):
    rules = (site / "rules.html").read_text(encoding="utf-8")
    assert rules.count("<math") > 18
    assert "arithmatex" not in rules
    assert "<mi>\\" not in rules


@pytest.mark.slow
def test_classes_commands_and_routes_are_in_the_reference(site):
    shown = (site / "reference-study.html").read_text(encoding="utf-8")
    for name in ("Study", "Client", "Space", "Real", "Items", "Best", "Status", "Refused"):
        assert f"{name}</span>" in shown or f'id="askwise.{name}' in shown or f'.{name}"' in shown, name
    assert "POST /api/v1/studies/{study}/tell" in (site / "reference-http.html").read_text(encoding="utf-8")
    assert "askwise bench run" in (site / "reference-cli.html").read_text(encoding="utf-8")


def test_a_page_with_a_wrong_link_or_a_foreign_script_is_noticed(tmp_path):
    check = tool("check")
    (tmp_path / "a.html").write_text('<h1 id="top">A</h1><a href="b.html#end">b</a><a href="#top">top</a>')
    (tmp_path / "b.html").write_text('<a href="c.html">c</a><script src="https://cdn.example/x.js"></script>')
    found = list(check.problems(tmp_path))
    assert found == [
        "a.html links to b.html#end, which has no such place",
        "b.html loads https://cdn.example/x.js",
        "b.html links to c.html, which is not there",
    ]


def test_every_command_is_in_the_reference():
    pytest.importorskip("mkdocs")
    page = tool("references").cli_page()
    for command in ("init", "run", "tell", "serve", "bench run", "bench report"):
        assert f"\n## askwise {command}\n" in page
    assert "`--command" in page


def test_links_out_of_the_documentation_lead_to_pages_of_the_site():
    pytest.importorskip("mkdocs")
    pages = tool("pages")
    for link, there in (
        ("[a](../src/askwise/loop.py)", "[a](source/src/askwise/loop.py.md)"),
        ("[a](../CHANGELOG.md#here)", "[a](changelog.md#here)"),
        ("[a](rules.md#muc) [b](https://example.org)", "[a](rules.md#muc) [b](https://example.org)"),
        ("`[a](../src/askwise/loop.py)`", "`[a](../src/askwise/loop.py)`"),  # code is no link
    ):
        assert pages.rewritten(link, "model.md") == there
    assert pages.rewritten("![](docs/ucb.png) [x](docs/web.md)", "index.md") == "![](ucb.png) [x](web.md)"


def test_a_formula_becomes_mathml_and_an_unknown_command_stops_the_build():
    pytest.importorskip("latex2mathml")
    mathematics, page = tool("mathematics"), SimpleNamespace(file=SimpleNamespace(src_uri="model.md"))
    shown = mathematics.on_page_content(r'<div class="arithmatex">\[\mathbb V[f] &lt; 1\]</div>', page=page)
    assert shown.startswith("<math")
    assert 'display="block"' in shown
    assert "<mi>\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL V}</mi>" in shown
    with pytest.raises(ValueError, match=r"model.md has a command that is not known: .nonsense"):
        mathematics.on_page_content(r'<span class="arithmatex">\(\nonsense x\)</span>', page=page)


def test_docstrings_become_markdown():
    pytest.importorskip("griffe")
    text = tool("docstrings").as_markdown(
        """What it does.

        .. math:: \\mu + \\beta

        ``first``: one thing.  ``second``: another, see :meth:`ask` and
        :math:`\\Phi`.

        >>> 1 + 1
        2
        """
    )
    assert "```math\n\\mu + \\beta\n```" in text
    assert "- `first`: one thing.\n- `second`: another, see `ask` and $\\Phi$." in text
    assert "```pycon\n>>> 1 + 1\n2\n```" in text


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((DOCS / "notebooks").glob("*.py")), ids=lambda path: path.stem)
def test_every_notebook_runs_and_its_page_has_its_text(path, tmp_path):
    notebooks = tool("notebooks")
    page = notebooks.page(path, tmp_path)
    assert (tmp_path / f"{path.stem}-1.png").exists()
    written = path.with_suffix(".md").read_text(encoding="utf-8")
    for _, body in notebooks.cells(path.read_text(encoding="utf-8")):
        assert body.partition("\n")[2] in written, "run `make docs`"
    assert page.count("```python") == written.count("```python")
