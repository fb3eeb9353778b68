"""The page on the rules says what the rules are."""

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Literal

import pytest
import torch

from askwise.model import uncertainty
from askwise.numerics.seeds import generator
from askwise.rules import RULES, Asks, Rule
from askwise.rules.ucb_f import UpperCredibleBoundF
from askwise.rules.ucb_phi import UpperCredibleBoundPhi
from askwise.search.search import Search

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_build", DOCS / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def dropped_in():
    """A rule that somebody adds."""

    @dataclass(frozen=True)
    class Corner(Rule):
        r"""Ask about a corner.

        .. math::

            x_1 &= 0 \\
            x_2 &= \alpha

        For :math:`\alpha\,\beta > 1` see
        ``muc``.
        """

        alpha: float = 1 / 3
        side: Literal["left", "right"] = "left"

        key = "corner"
        title = "Corner, the rule"
        asks = frozenset({Asks.DUEL})
        source = "nobody"
        cost = "nothing"

        def ask(self, belief, m, search):
            return torch.zeros(2, 1, dtype=torch.float64)

    yield Corner
    del RULES["corner"]


def test_the_page_is_up_to_date(build):
    written = (DOCS / "rules.md").read_text(encoding="utf-8")
    assert written == build.rules_page(), "docs/rules.md is out of date; run `make docs`"


def test_every_rule_is_on_the_page_once(build):
    page = build.rules_page()
    for key, rule in RULES.items():
        assert page.count(f"- Name: `{key}`\n") == 1
        assert page.count(f"\n### {rule.title}\n") == 1
        assert rule.source in page
        assert rule.cost in page


def test_a_new_rule_appears_on_the_page(build, dropped_in):
    section = build.rules_page().partition("### Corner, the rule\n")[2].partition("\n### ")[0]
    assert "```math\n\\begin{aligned}\nx_1 &= 0 \\\\\nx_2 &= \\alpha\n\\end{aligned}\n```" in section
    assert "For $\\alpha\\thinspace \\beta > 1$ see\n`muc`." in section
    assert "- Settings: `alpha=0.3333`, `side='left'` (or `'right'`)" in section
    assert "(rules/corner.png)" in section
    assert "[`corner`](#corner-the-rule)" in build.rules_page()


def test_every_linked_picture_exists_and_is_small():
    for page in DOCS.glob("*.md"):
        for name in re.findall(r"!\[[^]]*\]\(([^)]*)\)", page.read_text(encoding="utf-8")):
            most = 160_000 if name.startswith("web/") else 80_000  # whole pages of a browser
            assert (DOCS / name).stat().st_size < most, f"{name} is large; run `make docs`"


def test_no_picture_of_a_rule_is_left_over(build):
    wanted = {name for rule in RULES.values() for name in build.pictures(rule).values()}
    assert {f"rules/{path.name}" for path in (DOCS / "rules").iterdir()} == wanted


def test_links_within_the_page_lead_somewhere(build):
    page = build.rules_page()
    headings = {build._anchor(title) for title in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
    links = set(re.findall(r"\]\(#([^)]*)\)", page))
    assert len(links) == len(RULES)
    assert links <= headings


def test_no_markup_of_the_docstrings_is_left(build):
    page = build.rules_page()
    text = re.sub(r"```math.*?```", "", page, flags=re.DOTALL)
    assert not re.search(r":\w+:`|\.\. math|``", text)
    assert text.count("$") % 2 == 0
    assert page.count("```math") == len(RULES)


def test_the_example_shows_that_the_bound_on_f_asks_for_a_certain_yes(build):
    belief = build.ucb_belief()
    latent, observed = (
        rule.ask(belief, 1, Search.around(belief, generator(0)))
        for rule in (UpperCredibleBoundF(), UpperCredibleBoundPhi())
    )
    assert latent.item() > 0.85
    assert belief.success_probability(latent).item() > 0.99
    assert 0.1 < observed.item() < 0.85
    doubt = [uncertainty.epistemic_variance(*belief.moments(x)).sqrt().item() for x in (latent, observed)]
    assert doubt[1] > 4 * doubt[0]
