"""People who differ: the population model against a kernel over settings and people, draws and simulation."""

import itertools
import math
from dataclasses import fields, replace

import gpytorch
import pytest
import torch

import askwise as aw
from askwise.model import Observer, fitting, infer_shares, inference, paths
from askwise.model.copies import one_per_lane
from askwise.model.data import with_rater_column
from askwise.model.gibbs import gibbs, hallucinated
from askwise.model.log_posterior import NegativeLogPosterior
from askwise.model.pending import given_pending
from askwise.model.predictive import noise_variance
from askwise.numerics import normal
from askwise.numerics.seeds import generator as stream
from askwise.rules import parse
from askwise.search import Search
from tensors import f64, seeded, uniform

KERNEL = aw.kernel("matern52", 0.4, 4.0)
SHARE = 0.35
AT = f64([[0.05], [0.3], [0.62], [0.9]])


def normals(*shape, seed=0):
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def by_people(points, who):
    """Points [n, m, d] with the number of the person who was asked each question."""
    return torch.cat([with_rater_column(one[None], rater) for one, rater in zip(points, who, strict=True)])


def answers(seed=0, raters=3, d=1, n=9):
    """Duels, yes/no answers and a ranking of three people who look at some of the same points."""
    x = uniform(n, 2, d, seed=seed)
    x[1], x[2, 0] = x[0], x[0, 1]
    who = [k % raters for k in range(n)]
    data = aw.Data.duels(by_people(x, who), (uniform(n, seed=seed + 1) < 0.5).double())
    yes = by_people(x[:4], who[:4])[:, 0]
    data = data + aw.Data.binary(yes, [1, 0, 1, 1])
    return data + aw.Data.rankings(by_people(uniform(1, 3, d, seed=seed + 2), [1]), [[2, 0]])


def population(seed=0, share=SHARE, **options):
    return answers(seed, **options).with_raters().with_share(share)


class OverPeople(gpytorch.kernels.Kernel):
    """(1 - share + share [p = q]) k(x, x'), where the last coordinate says whose utility it is.

    One below zero stands for what all have in common: its variance is 1 - share.
    """

    def __init__(self, share, kernel=KERNEL):
        super().__init__()
        self.share, self.kernel = share, kernel

    def forward(self, one, other, diag=False, **options):
        p, q = one[..., :, None, -1], other[..., None, :, -1]
        own = ((p == q) & (p >= 0)).to(one)
        k = self.kernel(one[..., :-1], other[..., :-1]).to_dense()
        found = (1 - self.share + self.share * own) * k
        return found.diagonal(dim1=-2, dim2=-1) if diag else found


def dense_belief(seed=0, share=SHARE):
    """The same answers with people as a coordinate of the kernel."""
    return aw.infer(answers(seed), OverPeople(share))


def seen_by(x, rater):
    """The points of a person as coordinates of that kernel; -1 for what all have in common."""
    return with_rater_column(x, -1 if rater is None else rater)


# --- the population model is a Gaussian process over settings and people


@pytest.mark.parametrize("rater", [0, 1, 2, 7, None], ids=["first", "second", "third", "newcomer", "all"])
def test_the_belief_about_anybody_is_that_of_a_kernel_over_people(rater):
    belief, dense = aw.infer(population(), KERNEL), dense_belief()
    at, about = seen_by(AT, rater), belief.of_rater(rater)
    torch.testing.assert_close(about.mean(AT), dense.mean(at), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(about.cov(AT), dense.cov(at), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(about.variance(AT), dense.variance(at), rtol=1e-9, atol=1e-9)
    for got, want in zip(about.difference(AT[:2], AT[2:]), dense.difference(at[:2], at[2:]), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(belief.log_evidence, dense.log_evidence, rtol=1e-9, atol=1e-9)
    back = about.of_rater(2).of_rater(rater)
    torch.testing.assert_close(back.cov(AT), about.cov(AT), rtol=1e-12, atol=1e-12)


def test_a_belief_is_about_all_people_unless_told_otherwise():
    belief = aw.infer(population(), KERNEL)
    assert torch.equal(belief.mean(AT), belief.of_rater(None).mean(AT))
    assert torch.equal(belief.cov(AT), belief.of_rater(None).cov(AT))


def test_a_newcomer_is_expected_to_be_like_all_and_to_differ():
    belief = aw.infer(population(), KERNEL)
    torch.testing.assert_close(belief.of_rater(9).mean(AT), belief.mean(AT), rtol=1e-10, atol=1e-10)
    own = SHARE * KERNEL(AT).to_dense().detach()
    torch.testing.assert_close(belief.of_rater(9).cov(AT), belief.cov(AT) + own, rtol=1e-10, atol=1e-10)


def test_without_a_share_people_are_one():
    together, one = population(share=0.0), answers().with_raters()
    merged = replace(one, rater=torch.zeros_like(one.rater))
    for rater in (None, 0, 2):
        belief = aw.infer(together, KERNEL).of_rater(rater)
        torch.testing.assert_close(belief.mean(AT), aw.infer(merged, KERNEL).mean(AT), rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(belief.cov(AT), aw.infer(merged, KERNEL).cov(AT), rtol=1e-7, atol=1e-7)


def test_with_hardly_anything_in_common_people_are_separate():
    """Of a person, the answers of others say nothing."""
    belief = aw.infer(population(share=1 - 1e-9), KERNEL)
    x = uniform(9, 2, 1)
    x[1], x[2, 0] = x[0], x[0, 1]
    won = (uniform(9, seed=1) < 0.5).double()
    mine = aw.Data.duels(x[[0, 3, 6]], won[[0, 3, 6]]) + aw.Data.binary(x[[0, 3], 0], [1, 1])
    alone = aw.infer(mine, KERNEL)
    torch.testing.assert_close(belief.of_rater(0).mean(AT), alone.mean(AT), rtol=0, atol=1e-5)
    torch.testing.assert_close(belief.of_rater(0).cov(AT), alone.cov(AT), rtol=0, atol=1e-5)


def test_points_of_different_people_are_different_points():
    x = f64([[[0.2], [0.7]]]).expand(2, 2, 1)
    data = aw.Data.duels(by_people(x, [0, 1]), [1, 0]).with_raters()
    assert (data.points.shape[-2], sorted(data.rater.tolist())) == (4, [0, 0, 1, 1])
    assert data.row_rater.tolist() == [0, 1]
    again = data + data
    assert (again.points.shape[-2], again.row_rater.tolist()) == (4, [0, 1, 0, 1])
    correlation = data.with_share(0.4).rater_correlation
    for i, j in itertools.product(range(4), repeat=2):
        assert correlation[i, j] == (1 if data.rater[i] == data.rater[j] else 0.6)


def test_a_share_of_everything_is_refused():
    for wrong in (1.0, -0.1, math.nan):
        with pytest.raises(aw.Refused, match=r"share must be from 0 to below 1; got .* are separate\."):
            answers().with_raters().with_share(wrong)


def stacked_population():
    parts = [population(seed) for seed in range(3)]
    most = max(part.points.shape[-2] for part in parts)
    assert all(part.points.shape[-2] == most for part in parts)
    data = aw.Data(*(torch.stack([getattr(part, one.name) for part in parts]) for one in fields(aw.Data)))
    return data.with_share(f64([0.1, 0.35, 0.8]))


@pytest.mark.parametrize("entries", [2**19, 1], ids=["together", "in chunks"])
@pytest.mark.parametrize("rater", [None, 1])
def test_lanes_of_people_run_together_as_alone(entries, rater, monkeypatch):
    monkeypatch.setattr(inference, "_CHUNK_ENTRIES", entries)
    data = stacked_population()
    belief = aw.infer(data, KERNEL).of_rater(rater)
    chosen = belief.select(torch.tensor([2, 0]))
    for lane in range(3):
        alone = aw.infer(data.select(lane), KERNEL).of_rater(rater)
        for got in (belief.cov(AT)[lane], belief.select(lane).cov(AT)):
            torch.testing.assert_close(got, alone.cov(AT), rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(belief.mean(AT)[lane], alone.mean(AT), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(chosen.cov(AT), belief.cov(AT)[[2, 0]])


def test_in_chunks_the_first_of_which_have_no_share_the_others_keep_theirs(monkeypatch):
    data = stacked_population().with_share(f64([0.0, 0.0, 0.5]))
    whole = aw.infer(data, KERNEL)
    monkeypatch.setattr(inference, "_CHUNK_ENTRIES", 1)
    torch.testing.assert_close(aw.infer(data, KERNEL).cov(AT), whole.cov(AT), rtol=1e-6, atol=1e-6)


# --- draws


def assert_drawn(path, belief, x, count):
    """Draws have the mean and covariance of the belief."""
    drawn = path(x)
    mean, cov = belief.mean(x), belief.cov(x)
    sd = cov.diagonal(dim1=-2, dim2=-1).sqrt()
    assert ((drawn.mean(0) - mean).abs() < 5 * sd / math.sqrt(count) + 0.01 * sd).all()
    off = drawn - drawn.mean(0)
    got = torch.einsum("c...i,c...j->...ij", off, off) / (count - 1)
    assert ((got - cov).abs() / (sd[..., :, None] * sd[..., None, :])).max() < 7 / math.sqrt(count) + 0.02


@pytest.mark.parametrize("rater", [0, 2, 5, None], ids=["first", "third", "newcomer", "all"])
@pytest.mark.parametrize("unit", [1.0, 2.5])
def test_draws_of_anybody_have_the_stated_mean_and_covariance(rater, unit):
    belief = aw.infer(population(), KERNEL).of_rater(rater, unit)
    path = paths.draw(belief, 4000, stream("test", str(rater), str(unit)))
    assert_drawn(path, belief, AT, 4000)


@pytest.mark.parametrize("rater", [1, None])
def test_draws_in_lanes_have_the_stated_mean_and_covariance(rater):
    belief = aw.infer(stacked_population(), KERNEL).of_rater(rater, f64([1.0, 2.0, 0.5]))
    assert_drawn(paths.draw(belief, 4000, stream("test", "lanes")), belief, AT, 4000)


def test_draws_of_a_belief_by_gibbs_have_the_stated_mean_and_covariance():
    belief = gibbs(population(), KERNEL, chains=32, max_sweeps=50).of_rater(1)
    assert_drawn(paths.draw(belief, 4000, stream("test", "gibbs")), belief, AT, 4000)


def test_draws_without_answers_are_those_of_the_prior():
    data = population()
    empty = replace(aw.Data.binary(torch.empty(0, 1), torch.empty(0)), share=data.share)
    belief = aw.infer(empty, KERNEL)
    for rater, scale in ((None, 1 - SHARE), (0, 1.0)):
        about = belief.of_rater(rater)
        torch.testing.assert_close(about.cov(AT), scale * KERNEL(AT).to_dense().detach())
        assert_drawn(paths.draw(about, 4000, stream("test", "prior")), about, AT, 4000)


def test_gradients_of_draws_are_those_of_their_values():
    belief = aw.infer(population(), KERNEL).of_rater(1, 2.0)
    path = paths.draw(belief, 3, stream("test", "gradient"))
    x = uniform(3, 4, 1, seed=8)
    value, slope = path.with_gradient(x)
    torch.testing.assert_close(value, path(x))
    step = (path(x + 1e-6) - path(x - 1e-6)) / 2e-6
    torch.testing.assert_close(slope[..., 0], step, rtol=1e-4, atol=1e-4)


# --- the exact posterior, pending questions, hallucinations


def test_gibbs_of_people_who_differ_agrees_with_ep():
    """The mean within 0.05 deviations, the deviation within 3 percent."""
    data = population()
    quick, slow = aw.infer(data, KERNEL), gibbs(data, KERNEL, chains=128, max_sweeps=200)
    for rater in (None, 0, 2, 8):
        one, other = quick.of_rater(rater), slow.of_rater(rater)
        sd = other.variance(AT).sqrt()
        assert ((one.mean(AT) - other.mean(AT)).abs() / sd).max() < 0.05
        assert (one.variance(AT).sqrt() / sd - 1).abs().max() < 0.03


@pytest.mark.parametrize("unit", [1.0, 2.0])
def test_pending_questions_of_people_shrink_the_variance_of_the_dense_model(unit):
    """Those of the person more than those of another."""
    belief, dense, x = aw.infer(population(), KERNEL), dense_belief(), uniform(1, 2, 1, seed=30)
    left = []
    for asked in (1, 2, 6):
        pending = aw.Data.duels(by_people(x, [asked]), [1])
        shrunk = given_pending(belief.of_rater(1, unit), pending.with_raters().with_share(SHARE))
        want = given_pending(dense, pending)
        at = seen_by(AT, 1)
        torch.testing.assert_close(shrunk.mean(AT), dense.mean(at) / unit, rtol=1e-7, atol=1e-7)
        torch.testing.assert_close(shrunk.cov(AT), want.cov(at) / unit**2, rtol=1e-7, atol=1e-7)
        left.append(shrunk.difference(x[0, :1], x[0, 1:])[1].item())
    assert left[0] < left[1] - 0.01


def test_a_belief_is_about_the_same_as_another():
    data = population()
    one, more = aw.infer(data, KERNEL), aw.infer(data + data.select(...), KERNEL)
    for rater, unit in ((None, 1.0), (1, 1.0), (1, 2.0), (8, 0.5)):
        about = one.of_rater(rater, unit)
        same = more.like(about)
        torch.testing.assert_close(same.cov(AT), more.of_rater(rater, unit).cov(AT))
        torch.testing.assert_close(same.mean(AT), more.of_rater(rater, unit).mean(AT))


def test_hallucinations_about_a_person_have_the_posterior_on_average():
    data, lanes = population(), 300
    exact = gibbs(data, KERNEL, chains=128, max_sweeps=200)
    copies = data.unsqueezed().select(torch.zeros(lanes, dtype=torch.long))
    for rater, unit in ((1, 2.0), (None, 1.0)):
        belief = aw.infer(copies, KERNEL).of_rater(rater, unit)
        imagined = hallucinated(belief, stream("test", "people"))
        mean, cov, want = imagined.mean(AT), imagined.cov(AT), exact.of_rater(rater, unit)
        noise = mean.std(0) / math.sqrt(lanes)
        assert ((mean.mean(0) - want.mean(AT)).abs() < 4.5 * noise + 0.02).all()
        torch.testing.assert_close(cov.mean(0) + mean.mT.cov(), want.cov(AT), rtol=0.2, atol=0.1)


# --- noise


def test_the_noise_of_a_person_is_the_unit_of_their_utility():
    """Somebody twice as noisy answers as one whose utility is half as large."""
    x, won = uniform(6, 2, 1), [1, 0, 1, 1, 0, 0]
    data = aw.Data.duels(x, won) + aw.Data.binary(x[:, 0], won) + aw.Data.rankings(uniform(1, 3, 1), [[1, 2]])
    noisy = replace(Observer.expected(data, 1), noise=f64([2.0])).applied(data)
    assert noisy.row_noise.tolist() == [4.0 * noise for noise in data.row_noise.tolist()]
    assert noisy.point_noise.tolist() == [4.0 * noise for noise in data.point_noise.tolist()]
    rescaled = aw.infer(data, aw.kernel("matern52", 0.4, 1.0))
    belief = aw.infer(noisy, KERNEL)
    torch.testing.assert_close(belief.log_evidence, rescaled.log_evidence)
    torch.testing.assert_close(belief.in_units(2.0).mean(AT), rescaled.mean(AT), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(belief.in_units(2.0).cov(AT), rescaled.cov(AT), rtol=1e-6, atol=1e-6)


def test_in_units_of_the_noise_probabilities_of_answers_are_those_of_the_model():
    """Against the latent difference with noise of that deviation."""
    data = population()
    belief = aw.infer(data, KERNEL)
    mean, var = belief.of_rater(1).difference(AT[:2], AT[2:])
    got = belief.of_rater(1, 3.0).success_probability(AT[:2], AT[2:])
    torch.testing.assert_close(got, torch.special.ndtr(mean / (9 + var).sqrt()), rtol=1e-9, atol=1e-9)


def test_each_answer_has_the_noise_and_lapses_of_its_rater():
    data = population()
    observer = Observer(f64([0.1, 0.2, 0.3]), f64([1.0, 2.0, 3.0]), f64(0.4), f64([0.0]), f64(0.0))
    given = observer.applied(data)
    assert given.share == 0.4
    torch.testing.assert_close(given.lapse, f64([0.1, 0.2, 0.3])[data.row_rater])
    torch.testing.assert_close(given.row_noise, data.row_noise * f64([1.0, 4.0, 9.0])[data.row_rater])
    torch.testing.assert_close(given.point_noise, data.point_noise * f64([1.0, 4.0, 9.0])[data.rater])
    newer = observer.with_newcomer().applied(replace(data, rater=data.rater + 2))
    torch.testing.assert_close(newer.lapse, f64([0.3, 0.2, 0.2])[data.row_rater])
    torch.testing.assert_close(newer.row_noise, data.row_noise * f64([9.0, 1.0, 1.0])[data.row_rater])


SLOPES = f64([1.5, -0.5])


def test_the_noise_of_a_comparison_is_the_mean_of_that_of_its_members():
    x = uniform(5, 2, 2)
    data = aw.Data.duels(x, [1] * 5) + aw.Data.binary(x[:, 0], [1] * 5) + aw.Data.ties(uniform(1, 3, 2))
    given = replace(Observer.expected(data, 1), slopes=SLOPES).applied(data)
    var = (2 * (x - 0.5) @ SLOPES).exp()
    torch.testing.assert_close(noise_variance(SLOPES, x), var)
    torch.testing.assert_close(given.row_noise[:5], var.mean(-1))
    torch.testing.assert_close(given.row_noise[5:10], var[:, 0])
    assert (given.row_noise[10:] == 0).all()
    group = data.point_noise > 0
    torch.testing.assert_close(given.point_noise[group], 0.5 * noise_variance(SLOPES, data.points)[group])


def test_success_is_less_certain_where_answers_are_noisier():
    data = aw.Data.binary(uniform(8, 2), [1, 1, 0, 1, 0, 1, 1, 0])
    belief = aw.infer(data, KERNEL).with_noise_slopes(SLOPES)
    x, other = uniform(4, 2, seed=5), uniform(4, 2, seed=6)
    mean, var = belief.moments(x)
    noise = noise_variance(SLOPES, x)
    want = torch.special.ndtr(mean / (noise + var).sqrt())
    torch.testing.assert_close(belief.success_probability(x), want)
    mean, var = belief.difference(x, other)
    noise = (noise + noise_variance(SLOPES, other)) / 2
    want = torch.special.ndtr(mean / (noise + var).sqrt())
    torch.testing.assert_close(belief.success_probability(x, other), want)
    score = belief.predictive.against(other[:1]).score(lambda mean, var: mean / (1 + var).sqrt())
    torch.testing.assert_close(
        torch.special.ndtr(score(x)), belief.success_probability(x, other[:1].expand_as(x))
    )
    value, slope = score.with_gradient(x)
    moved = [score(x + step) - score(x - step) for step in 1e-6 * torch.eye(2, dtype=torch.float64)]
    torch.testing.assert_close(value, score(x))
    torch.testing.assert_close(slope, torch.stack(moved, -1) / 2e-6, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("rule", "m"), [("ucb_f", 1), ("ei", 2), ("dueling_ucb(of='value')", 2)])
def test_scores_of_the_utility_itself_do_not_depend_on_the_noise_there(rule, m):
    """A bound or an improvement of f is the same however noisy answers are."""
    x = uniform(8, 2, 2)
    data = aw.Data.binary(x[:, 0], [1, 0] * 4) if m == 1 else aw.Data.duels(x, [1, 0] * 4)
    belief = aw.infer(data, KERNEL)
    asked = [
        parse(rule).ask(one, m, Search.around(one, stream("test", rule)))
        for one in (belief, belief.with_noise_slopes(SLOPES))
    ]
    torch.testing.assert_close(asked[1], asked[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("noise", [1.0, 2.0])
def test_the_believer_challenges_the_last_winner_however_noisy_it_was(noise):
    x = uniform(5, 2, 2)
    data = aw.Data.duels(x, [1, 0, 1, 1, 0])
    data = replace(Observer.expected(data, 1), noise=f64([noise])).applied(data)
    belief = aw.infer(data, KERNEL)
    query = parse("hallucination_believer").ask(belief, 2, Search.around(belief, stream("test", "last")))
    torch.testing.assert_close(query[0], x[4, 1])


def test_noise_and_margins_can_be_learned_together_after_inference():
    """Quadrature nodes that were made in inference mode must not keep gradients from being computed."""
    normal._gauss_legendre.cache_clear()
    data = aw.Data.duels(uniform(6, 2, 1), [1, 0, 1, 1, 0, 1]) + aw.Data.ties(uniform(2, 2, 1, seed=4))
    aw.infer(data, KERNEL)
    fitted = fitting.fit(data, "se", observer=Observer.start(data, 1, ("slopes",)), learn=("slopes",))
    assert fitted.log_posterior >= fitted.log_posterior_at_start


# --- learning


def utility(x):
    return 4 * torch.sin(5 * x[..., 0])


def simulated(tastes, each=40, noises=None, seed=0):
    """Duels of people with these tastes, in turn."""
    people = len(tastes)
    x = uniform(each * people, 2, 1, seed=seed)
    who = [k % people for k in range(each * people)]
    noises = [1.0] * people if noises is None else noises
    noise = normals(len(x), seed=seed + 1) * f64(noises)[who]
    lead = torch.stack(
        [tastes[rater](one[0]) - tastes[rater](one[1]) for rater, one in zip(who, x, strict=True)]
    )
    return aw.Data.duels(by_people(x, who), (lead + noise > 0).double()).with_raters()


def learned(data, raters, learn, **options):
    fixed = aw.kernel("se", 0.3, 8.0)
    observer = Observer.start(data, raters, learn)
    return fitting.fit(data, fixed, observer=observer, learn=learn, fixed=True, **options)


def test_the_gradient_in_share_and_noise_is_exact():
    data, learn = answers().with_raters(), ("noise", "share")
    objective = NegativeLogPosterior(
        data, one_per_lane(KERNEL, data), "ep", Observer.start(data, 3, learn), learn
    )
    at = objective.vector + 0.2 * normals(1, objective.vector.shape[-1])
    _, got = objective(at)
    for k, step in enumerate(1e-5 * torch.eye(at.shape[-1], dtype=torch.float64)):
        values = []
        for moved in (at + step, at - step):
            objective.warm = None
            values.append(objective(moved)[0].item())
        assert got[0, k].item() == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-4, abs=1e-5)


def test_lanes_learn_as_alone():
    data = stacked_population()
    learn = ("noise", "share")
    together = fitting.fit(data, KERNEL, observer=Observer.start(data, 3, learn), learn=learn, max_steps=30)
    for lane in (0, 2):
        one = data.select(lane)
        alone = fitting.fit(one, KERNEL, observer=Observer.start(one, 3, learn), learn=learn, max_steps=30)
        torch.testing.assert_close(together.observer.share[lane], alone.observer.share, rtol=0.02, atol=0.02)
        torch.testing.assert_close(together.log_posterior[lane], alone.log_posterior, rtol=0, atol=1e-3)


def test_opposite_tastes_have_little_in_common_and_equal_ones_much():
    opposite = learned(simulated([utility, lambda x: -utility(x)]), 2, ("noise", "share"))
    equal = learned(simulated([utility, utility]), 2, ("noise", "share"))
    assert opposite.observer.share > 0.7
    assert equal.observer.share < 0.3
    assert opposite.observer.share > equal.observer.share + 0.5
    x = f64([[0.3], [0.94]])  # the best and the worst
    for rater, sign in ((0, 1), (1, -1)):
        mean, _ = opposite.belief.of_rater(rater).difference(x[:1], x[1:])
        assert sign * mean.item() > 2


def test_the_evidence_of_shares_is_that_of_the_data_with_them():
    data = population()
    belief = aw.infer(data.with_share(0.0), KERNEL)
    shares = [0.0, 0.3, 0.9]
    want = [aw.infer(data.with_share(share), KERNEL).log_evidence for share in shares]
    torch.testing.assert_close(infer_shares(belief, shares), torch.stack(want), rtol=0, atol=1e-4)


def careless(seed=0):
    """Five people with similar tastes; the last of them answers at random."""
    tastes = [lambda x, k=k: utility(x) + 0.5 * torch.cos(9 * x[..., 0] + k) for k in range(4)]
    return simulated([*tastes, lambda x: 0 * x[..., 0]], each=24, seed=seed)


@pytest.mark.parametrize("learn", [("noise", "share"), ("lapse", "noise", "share")])
def test_who_answers_at_random_gets_more_noise(learn):
    noise = learned(careless(), 5, learn).observer.noise
    assert noise[4] > 1.4 * noise[:4].max()


def without(data, rater):
    """The answers of all others."""
    kept = data.row_rater != rater
    names = ("first", "second", "signs", "row_noise", "has_margin", "chance", "lapse")
    return replace(
        data, answer=torch.arange(int(kept.sum())), **{name: getattr(data, name)[kept] for name in names}
    )


def test_who_answers_at_random_gets_less_weight_on_what_all_have_in_common():
    """By how much their answers move it, compared with the weight of somebody as noisy as the others.

    In a single study of 24 answers each it may be a taste of their own instead that explains them.
    """
    x, kernel = torch.linspace(0, 1, 30, dtype=torch.float64)[:, None], aw.kernel("se", 0.3, 8.0)
    moved = []
    for seed in range(4):
        data = careless(seed)
        people = learned(data, 5, ("noise", "share")).observer
        like_others = torch.cat([people.noise[:4], people.noise[:4].mean()[None]])
        for observer in (people, replace(people, noise=like_others)):
            answered = observer.applied(data)
            with_them, others = (aw.infer(one, kernel).mean(x) for one in (answered, without(answered, 4)))
            moved.append((with_them - others).std().item())
    assert sum(moved[::2]) < 0.85 * sum(moved[1::2])


def test_noise_that_depends_on_the_setting_is_recovered():
    """Slopes within two deviations of the truth, and of the right sign."""
    n, slopes = 300, f64([2.0, 0.0])
    x = uniform(n, 2, 2, seed=3)
    lead = 2 * torch.sin(3 * x[:, 0].sum(-1)) - 2 * torch.sin(3 * x[:, 1].sum(-1))
    noise = noise_variance(slopes, x).mean(-1).sqrt() * normals(n, seed=4)
    data = aw.Data.duels(x, (lead + noise > 0).double())
    observer = Observer.start(data, 1, ("slopes",))
    fitted = fitting.fit(
        data,
        aw.kernel("se", 0.6, 4.0),
        observer=observer,
        learn=("slopes",),
        fixed=True,
        deviations=True,
        max_steps=30,
    )
    off = (fitted.observer.slopes - slopes).abs() / fitted.deviation
    assert off.max() < 2.5
    assert fitted.observer.slopes[0] > 1
    assert fitted.deviation.max() < 0.8


def test_what_is_learned_is_written_and_read_as_free_numbers():
    data = population()
    observer = Observer(f64([0.1, 0.2, 0.3]), f64([1.0, 2.0, 3.0]), f64(0.4), f64([0.7]), f64(0.0))
    for learn in (("lapse",), ("noise", "share"), ("slopes", "lapse", "share", "noise")):
        free = observer.free(learn)
        assert len(free) == sum(observer.sizes(learn))
        again = Observer.start(data, 3, learn).with_free(learn, free)
        for name in learn:
            torch.testing.assert_close(getattr(again, name), getattr(observer, name))
        low, high = observer.bounds(learn)
        assert all(one < value < other for one, value, other in zip(low, free.tolist(), high, strict=True))


@pytest.mark.parametrize(("name", "mode"), [("lapse", 0.02), ("noise", 1.0), ("share", 0.5), ("slopes", 0.0)])
def test_the_prior_of_what_is_learned_has_the_stated_mode_and_shape(name, mode):
    """As a density of logits and logarithms."""
    data, learn = aw.Data.binary([[0.5]], [1]), (name,)
    free = torch.linspace(-7, 7, 14001, dtype=torch.float64)
    one = Observer.start(data, 1, learn).with_free(learn, f64([0.0]))
    log_density = torch.stack([one.with_free(learn, value[None]).log_prior(learn) for value in free[::10]])
    best = one.with_free(learn, free[::10][log_density.argmax()][None])
    assert getattr(best, name).item() == pytest.approx(mode, abs=0.01)
    rates = torch.sigmoid(free[::10])
    want = {
        "lapse": torch.distributions.Beta(f64(1.0), f64(49.0)).log_prob(rates) + (rates * (1 - rates)).log(),
        "share": (rates * (1 - rates)).log(),
        "noise": -((free[::10] / 0.7) ** 2) / 2,
        "slopes": -(free[::10] ** 2) / 2,
    }[name]
    shift = log_density - want
    torch.testing.assert_close(shift, shift[:1].expand_as(shift), rtol=1e-9, atol=1e-9)
