"""Hand-written gradients of the evidence against autograd and finite differences."""

import pytest
import torch
from tests.tensors import uniform

import askwise as aw
from askwise.model import Observer, expected_kernel, fit
from askwise.model import log_posterior as module
from askwise.model.copies import one_per_lane
from askwise.model.ep import ep
from askwise.model.kernel_gradient import Pairs
from askwise.model.kernels import Stationary
from askwise.model.log_posterior import NegativeLogPosterior
from askwise.model.sites import InferenceProblem, has_few_points

LANES, TOLERANCE = 3, 1e-9
FAMILIES = ["se", "matern32", "matern52"]


def outcomes(*shape, seed=1):
    return (uniform(*shape, seed=seed) > 0.5).double()


def yes_no(d):
    return aw.Data.binary(uniform(LANES, 9, d), outcomes(LANES, 9))


def duels(d):
    return aw.Data.duels(uniform(LANES, 9, 2, d, seed=2), outcomes(LANES, 9, seed=3))


def rankings(d):
    """Members of several rows share their noise."""
    return aw.Data.rankings(uniform(LANES, 3, 4, d, seed=4), torch.tensor([[[0], [3], [1]]] * LANES))


def repeated(d):
    """More rows than points."""
    few = uniform(LANES, 1, 3, d, seed=5).expand(-1, 8, -1, -1)
    return aw.Data.batches(few, outcomes(LANES, 8, 3, seed=6))


def people(d):
    asked = uniform(LANES, 9, 2, d, seed=7)
    who = torch.tensor([0, 1, 2] * 3)
    data = aw.Data.duels(aw.model.with_rater_column(asked, who), outcomes(LANES, 9, seed=8))
    return data.with_raters().with_share(0.4)


KINDS = {
    "yes/no": yes_no,
    "duels": duels,
    "mix": lambda d: yes_no(d) + duels(d),
    "batches": lambda d: aw.Data.batches(uniform(LANES, 3, 4, d), outcomes(LANES, 3, 6)),
    "rankings": rankings,
    "ties": lambda d: duels(d) + aw.Data.ties(uniform(LANES, 3, 2, d, seed=9)),
    "lapses": lambda d: (duels(d) + yes_no(d)).with_lapses(0.05),
    "people": people,
    "repeated": repeated,
    "repeated yes/no": lambda d: repeated(d) + yes_no(d),
    "nothing": lambda d: aw.Data.duels(uniform(LANES, 0, 2, d), outcomes(LANES, 0)),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def logarithms(d):
    """Of lengthscales and variance, others in each lane."""
    return uniform(LANES, d + 1, seed=10) - 1


def prior(name, logs):
    return Stationary(name, logs[:, :-1].exp(), 3 * logs[:, -1].exp())


@each_kind
@pytest.mark.parametrize("d", [1, 2, 6])
@pytest.mark.parametrize("name", FAMILIES)
def test_it_is_the_gradient_by_autograd_through_the_covariance_of_all_points(name, d, kind):
    data, logs = KINDS[kind](d), logarithms(d).requires_grad_()
    belief = ep(InferenceProblem.of(data, prior(name, logs)), None, TOLERANCE)
    (expected,) = torch.autograd.grad(belief.log_evidence.sum(), logs)
    found, gradient = Pairs.of(data).evidence(prior(name, logs.detach()), None, TOLERANCE)
    torch.testing.assert_close(found.log_evidence, belief.log_evidence.detach(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(gradient, expected, rtol=1e-6, atol=1e-7)


@each_kind
@pytest.mark.parametrize("name", FAMILIES)
def test_it_is_the_slope_of_the_evidence(name, kind):
    data, logs, step = KINDS[kind](2), logarithms(2), 1e-4
    pairs = Pairs.of(data)
    _, gradient = pairs.evidence(prior(name, logs), None, TOLERANCE)
    for k in range(3):
        shift = step * torch.eye(3, dtype=torch.float64)[k]
        above, below = (
            pairs.evidence(prior(name, logs + sign * shift), None, TOLERANCE, gradient=False)[0].log_evidence
            for sign in (1, -1)
        )
        torch.testing.assert_close(gradient[:, k], (above - below) / (2 * step), rtol=1e-5, atol=1e-6)


def test_the_kinds_take_all_forms():
    few = {kind: has_few_points(make(2)) for kind, make in KINDS.items()}
    assert few["repeated"]
    assert few["repeated yes/no"]
    assert not any(few[kind] for kind in ("yes/no", "duels", "mix", "rankings", "people"))
    blocks = [Pairs.of(KINDS[kind](2)).x.shape[1] for kind in ("yes/no", "duels", "mix", "repeated")]
    assert blocks == [1, 3, 3, 1]


def test_chunks_of_lanes_give_what_all_give_together(monkeypatch):
    data, where = KINDS["mix"](2), prior("matern52", logarithms(2))
    whole = Pairs.of(data).evidence(where, None, TOLERANCE)
    monkeypatch.setattr("askwise.model.kernel_gradient._CHUNK_ENTRIES", {"cpu": 1})
    assert len(Pairs.of(data)._chunks) == LANES
    parts = Pairs.of(data).evidence(where, None, TOLERANCE)
    torch.testing.assert_close(parts[0].log_evidence, whole[0].log_evidence)
    torch.testing.assert_close(parts[1], whole[1])


def test_lanes_are_selected_as_often_as_they_are_named():
    pairs, logs = Pairs.of(people(2)), logarithms(2)
    found, gradient = pairs.evidence(prior("se", logs), None, TOLERANCE)
    again = torch.tensor([2, 0, 2])
    other, same = pairs.select(again).evidence(prior("se", logs[again]), None, TOLERANCE)
    torch.testing.assert_close(other.log_evidence, found.log_evidence[again])
    torch.testing.assert_close(same, gradient[again])


def test_covariances_that_are_not_finite_are_refused():
    with pytest.raises(aw.Refused, match=r"kernel must give finite covariances; got NaN or infinity"):
        Pairs.of(duels(1)).evidence(prior("se", logarithms(1) * torch.nan), None, TOLERANCE)


# --- in fits


def objectives(data, kernel, observer=None, learn=()):
    """With the gradient by hand, and by autograd."""
    both = [NegativeLogPosterior(data, one_per_lane(kernel, data), "ep", observer, learn) for _ in range(2)]
    assert both[0].by_hand is not None
    both[0].tolerance, both[1].by_hand = TOLERANCE, None
    return both


KERNELS = {
    "expected": expected_kernel("matern52", [0.3, 0.5]),
    "averaged": expected_kernel("se", [0.3, 0.5], averaged=True),
    "named": aw.kernel("matern32", [0.3, 0.5], 2.0),
    "one lengthscale": aw.kernel("matern52", 0.4, 2.0),
}
LEARNED = {
    "nothing": (),
    "lapses": ("lapse",),
    "lapses and noise": ("lapse", "noise"),
    "lapses and slopes": ("lapse", "slopes"),
}


@pytest.mark.parametrize("learn", LEARNED.values(), ids=LEARNED)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("kind", ["duels", "mix", "ties", "repeated"])
def test_the_objective_of_a_fit_is_the_same_as_by_autograd(kind, kernel, learn):
    data = KINDS[kind](2)
    observer = Observer.start(data, 1, learn) if learn else None
    by_hand, by_autograd = objectives(data, kernel, observer, learn)
    at = by_hand.vector + 0.3 * (uniform(*by_hand.vector.shape) - 0.5)
    for found, expected in zip(by_hand(at), by_autograd(at), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("learn", [(), ("lapse",)], ids=["alone", "with lapses"])
def test_fits_are_as_good_as_by_autograd(learn, monkeypatch):
    data = duels(2)
    options = {"observer": Observer.start(data, 1, learn), "learn": learn} if learn else {}
    found = fit(data, KERNELS["expected"], **options)
    monkeypatch.setattr(module._ByHand, "of", lambda *_: None)
    expected = fit(data, KERNELS["expected"], **options)
    torch.testing.assert_close(found.log_posterior, expected.log_posterior, rtol=0, atol=1e-5)
    torch.testing.assert_close(
        found.kernel.base_kernel.lengthscale, expected.kernel.base_kernel.lengthscale, rtol=2e-3, atol=0
    )


def test_what_changes_covariances_is_left_to_autograd():
    def by_hand(data, learn=(), kernel=KERNELS["expected"], method="ep"):
        observer = Observer.start(data, 3, learn)
        return NegativeLogPosterior(data, one_per_lane(kernel, data), method, observer, learn).by_hand

    assert by_hand(duels(2), ("lapse", "noise", "slopes")) is not None
    assert by_hand(rankings(2), ("lapse",)) is not None
    assert by_hand(duels(2), method="laplace") is None
    assert by_hand(people(2), ("share",)) is None
    assert by_hand(rankings(2), ("noise",)) is None
    assert by_hand(duels(2), kernel=KERNELS["expected"].base_kernel) is None


def test_the_start_is_evaluated_once(monkeypatch):
    seen, evidence = [], Pairs.evidence
    monkeypatch.setattr(
        Pairs, "evidence", lambda *given, **options: seen.append(given) or evidence(*given, **options)
    )
    fit(duels(2), KERNELS["expected"], max_steps=0)
    assert len(seen) == 1
