"""The contract of rules, as tests."""

import itertools
from collections.abc import Iterator
from contextlib import suppress

import pytest
import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.loop import next_query
from askwise.model import Data, Kernels, kernel
from askwise.numerics import generator
from askwise.rules import Asks, Rule, parse
from askwise.space import Choice, Integer, Real, Space
from askwise.study import Study, YesNo

_SIZES = {Asks.BINARY: 1, Asks.DUEL: 2, Asks.BATCH: 3}
_KERNEL = kernel("se", 0.4, 2.0)
_CLOSE = 1e-5  # tolerance between lanes computed together and alone


class RuleContract:
    """Tests of what a rule must do; override the fixture ``rule``."""

    @pytest.fixture
    def rule(self) -> Rule:
        """The rule, with its default settings."""
        raise NotImplementedError

    def sizes(self, rule: Rule) -> list[int]:
        """The numbers of points in its queries; override it to test fewer."""
        return [_SIZES[asks] for asks in sorted(rule.asks)]

    studied: Kernel | str = _KERNEL
    """The kernel of the studies in which it is tested."""

    def prior(self, data: Data) -> Kernel | Kernels:
        """The prior with which it is tested otherwise; override both to test others."""
        return _KERNEL

    def test_it_says_what_it_is(self, rule: Rule) -> None:
        """Its text is parsed back to it, and the docs have something to show."""
        assert parse(str(rule)) == rule
        assert rule.asks <= set(Asks)
        assert rule.asks
        for text in (rule.key, rule.title, rule.source, rule.cost, type(rule).__doc__):
            assert isinstance(text, str)
            assert text

    def test_its_queries_lie_in_the_unit_cube(self, rule: Rule) -> None:
        """Of any dimension, for every kind of question that it asks."""
        for m, d in itertools.product(self.sizes(rule), (1, 3)):
            _assert_query(self._asked(rule, m, _mixed((), d)), (), m, d)

    def test_degenerate_answers_are_enough(self, rule: Rule) -> None:
        """One answer, all answers equal, one duel again and again, a point against itself."""
        for m, data in itertools.product(self.sizes(rule), _degenerate()):
            _assert_query(self._asked(rule, m, data), tuple(data.lanes), m, 2)

    def test_without_answers_it_asks_or_refuses_with_a_message(self, rule: Rule) -> None:
        """A rule may need answers to start from."""
        for m, lanes in itertools.product(self.sizes(rule), ((), (2,))):
            nothing = Data.binary(torch.zeros(*lanes, 0, 2), torch.zeros(*lanes, 0))
            with suppress(Refused):
                _assert_query(self._asked(rule, m, nothing), lanes, m, 2)

    def test_equal_seeds_give_equal_queries(self, rule: Rule) -> None:
        """All randomness comes from the given generator."""
        for m in self.sizes(rule):
            assert torch.equal(self._asked(rule, m, _mixed(), 5), self._asked(rule, m, _mixed(), 5))

    def test_lanes_together_get_the_queries_they_get_alone(self, rule: Rule) -> None:
        """Up to rounding, and up to the order of members that the score does not tell apart."""
        data = _mixed((2,))
        prior, sources = self.prior(data), [("lane", k) for k in range(2)]
        for m in self.sizes(rule):
            together = next_query(data, rule, prior, m, [generator(*one) for one in sources]).points
            _assert_query(together, (2,), m, 2)
            for k in range(2):
                own = data.select(k)
                alone = next_query(own, rule, self.prior(own), m, generator("lane", k)).points
                orders = itertools.permutations(range(m))
                apart = [(together[k][list(order)] - alone).abs().max().item() for order in orders]
                assert min(apart) < _CLOSE

    def test_its_study_asks_about_different_settings_and_replays(self, rule: Rule) -> None:
        """In a space of reals, integers and categories with a constraint."""
        space = Space(a=Real(0, 1), b=Integer(1, 4), c=Choice(["x", "y"])).where("a + b <= 4")
        for asks in map(Asks.of_size, self.sizes(rule)):
            study = Study(space, asks, rule, initial=1, kernel=self.studied)
            for number in range(3):
                question = study.ask()
                settings = [study.space.unit(option).tolist() for option in question.options]
                assert len({tuple(setting) for setting in settings}) == len(settings)
                study.tell(question, YesNo(number % 2 == 0) if asks == Asks.BINARY else 0)
            assert all(replayed.equal for replayed in study.replay())

    def _asked(self, rule: Rule, m: int, data: Data, seed: int = 0) -> Float[Tensor, "*lane m d"]:
        return next_query(data, rule, self.prior(data), m, generator("contract", seed)).points


def _assert_query(points: Tensor, lanes: tuple[int, ...], m: int, d: int) -> None:
    assert points.shape == (*lanes, m, d)
    assert points.dtype == torch.float64
    assert not points.requires_grad
    assert bool(((points >= 0) & (points <= 1)).all())


def _uniform(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=generator("contract", "points", seed), dtype=torch.float64)


def _mixed(lanes: tuple[int, ...] = (), d: int = 2) -> Data:
    """Yes/no answers and duels about a hill."""

    def height(x: Tensor) -> Tensor:
        return 1 - 6 * (x - 0.6).square().sum(-1)

    x, pairs = _uniform(*lanes, 5, d, seed=1), _uniform(*lanes, 5, 2, d, seed=2)
    won = height(pairs[..., 0, :]) > height(pairs[..., 1, :])
    return Data.binary(x, (height(x) > 0).long()) + Data.duels(pairs, won.long())


def _degenerate() -> Iterator[Data]:
    pair, point = _uniform(1, 2, 2, seed=3).expand(6, 2, 2), _uniform(1, 1, 2, seed=4).expand(6, 2, 2)
    yield Data.binary([[0.3, 0.4]], [1])
    yield Data.duels([[[0.3, 0.4], [0.7, 0.1]]], [0])
    yield Data.binary(_uniform(2, 6, 2), torch.tensor([[0], [1]]).expand(2, 6))
    outcomes = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 0, 1, 1, 1, 0], [1, 0, 0, 1, 0, 1]])
    yield Data.duels(torch.stack([_uniform(6, 2, 2, seed=5), pair, point]), outcomes)
