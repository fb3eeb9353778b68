"""Noise, answers and fantasies of a belief as a BoTorch model: each against its definition."""

import pytest
import torch
from botorch.acquisition.knowledge_gradient import qKnowledgeGradient
from botorch.acquisition.thompson_sampling import PathwiseThompsonSampling
from botorch.sampling import IIDNormalSampler, SobolQMCNormalSampler
from botorch.sampling.pathwise import draw_matheron_paths
from botorch.utils.sampling import manual_seed

import askwise as aw
from askwise.interop.botorch import BeliefModel
from askwise.numerics import success_probability
from tensors import uniform

KERNEL = aw.kernel("matern52", [0.3, 0.4], 2.0)
Z = uniform(6, 2, seed=9)  # where posteriors are compared
YES_NO = torch.tensor([[1.0], [0.0], [1.0]])
PAIRS = torch.tensor([[0, 1], [2, 1]])
LANES = ((), (3,))


def yes_no(lanes: tuple[int, ...] = (), n: int = 10) -> aw.Data:
    return aw.Data.binary(uniform(*lanes, n, 2, seed=1), (uniform(*lanes, n, seed=2) < 0.6).long())


def duels(lanes: tuple[int, ...] = (), n: int = 10) -> aw.Data:
    return aw.Data.duels(uniform(*lanes, n, 2, 2, seed=3), (uniform(*lanes, n, seed=4) < 0.5).long())


KINDS = {"binary": yes_no, "duel": duels}
each_kind = pytest.mark.parametrize("kind", KINDS)


def model_of(data: aw.Data, **options) -> BeliefModel:
    return BeliefModel(aw.infer(data, KERNEL), **options)


def qmc(count: int, seed: int = 0) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([count]), seed=seed)


def assert_same(model: BeliefModel, data: aw.Data) -> None:
    """The model equals inference from scratch."""
    scratch, posterior = aw.infer(data, KERNEL), model.posterior(Z)
    torch.testing.assert_close(posterior.mean[..., 0], scratch.mean(Z), rtol=0, atol=1e-6)
    torch.testing.assert_close(posterior.covariance_matrix, scratch.cov(Z), rtol=0, atol=1e-6)


# noise


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize(("kind", "each"), [("binary", 1.0), ("duel", 0.5)])
def test_observations_are_the_responses_that_answers_are_made_from(kind, each, lanes):
    model = model_of(KINDS[kind](lanes))
    x = uniform(*lanes, 2, 2, seed=5)
    noisy, clean = model.posterior(x, observation_noise=True), model.posterior(x)
    assert torch.equal(noisy.mean, clean.mean)
    added = noisy.covariance_matrix - clean.covariance_matrix
    torch.testing.assert_close(added, each * torch.eye(2, dtype=torch.float64).expand_as(added))
    mean, cov = noisy.mean[..., 0], noisy.covariance_matrix
    if kind == "binary":  # yes if the response is positive
        chance = torch.special.ndtr(mean / noisy.variance[..., 0].sqrt())
        torch.testing.assert_close(chance, model.belief.success_probability(x))
    else:  # the higher response wins
        spread = (cov[..., 0, 0] + cov[..., 1, 1] - 2 * cov[..., 0, 1]).sqrt()
        chance = torch.special.ndtr((mean[..., 0] - mean[..., 1]) / spread)
        won = model.belief.success_probability(x[..., :1, :], x[..., 1:, :])
        torch.testing.assert_close(chance, won[..., 0])


def test_noise_that_is_given_or_depends_on_the_setting_is_that_of_each_point():
    belief, x = aw.infer(yes_no(), KERNEL), uniform(4, 3, 2, seed=5)
    given = uniform(3, 1, seed=6)
    posterior = BeliefModel(belief).posterior(x, observation_noise=given)
    torch.testing.assert_close(posterior.variance - belief.variance(x)[..., None], given.expand(4, 3, 1))
    uneven = belief.with_noise_slopes(torch.tensor([0.7, -1.0], dtype=torch.float64))
    posterior = BeliefModel(uneven).posterior(x, observation_noise=True)
    chance = torch.special.ndtr(posterior.mean / posterior.variance.sqrt())[..., 0]
    torch.testing.assert_close(chance, uneven.success_probability(x))


def test_the_kind_of_question_may_be_chosen_where_answers_are_of_both():
    both = yes_no() + duels()
    assert model_of(both).feedback == "duel"
    assert model_of(both, feedback="binary").feedback == "binary"
    after = model_of(both, feedback="binary").fantasize(Z[:1], qmc(4))
    assert after.feedback == "binary"


def test_another_kind_of_question_is_refused(unchecked):
    with pytest.raises(aw.Refused, match=r"^feedback must be 'binary' or 'duel'; got 'batch'\. "):
        model_of(duels(), feedback="batch")


# answers


@each_kind
def test_more_answers_count_as_if_they_had_been_there_from_the_start(kind):
    data, x = KINDS[kind](), uniform(3, 2, seed=5)
    assert_same(
        model_of(data).condition_on_observations(x, YES_NO), data + aw.Data.binary(x, YES_NO[:, 0].long())
    )
    won = aw.Data.duels(x[PAIRS], [1, 1])
    after = model_of(data).condition_on_observations(x, PAIRS)
    assert_same(after, data + won)
    again = after.condition_on_observations(x.flip(0), YES_NO.bool())
    assert_same(again, data + won + aw.Data.binary(x.flip(0), YES_NO[:, 0].long()))


@each_kind
def test_each_batch_of_answers_has_its_own_posterior(kind):
    """Of points [4, 1, ..], of answers [5, 1, 1, ..] and of lanes [3], which broadcast to [5, 4, 3]."""
    data, x = KINDS[kind]((3,)), uniform(4, 1, 3, 2, seed=5)
    Y = (uniform(5, 1, 1, 3, 1, seed=6) < 0.5).double()
    after = model_of(data).condition_on_observations(x, Y)
    assert after.batch_shape == (5, 4, 3)
    assert after.posterior(Z).mean.shape == (5, 4, 3, 6, 1)
    alone = model_of(data.select(2)).condition_on_observations(x[3, 0], Y[1, 0, 0])
    whole = after.posterior(Z)
    torch.testing.assert_close(whole.mean[1, 3, 2], alone.posterior(Z).mean, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        whole.covariance_matrix[1, 3, 2], alone.posterior(Z).covariance_matrix, rtol=0, atol=1e-6
    )
    kernels = aw.kernel("se", 0.3 + uniform(3, 2), 1 + uniform(3))  # one for each lane
    apart = BeliefModel(aw.infer(data, kernels)).condition_on_observations(x, Y)
    one = BeliefModel(aw.infer(data, kernels).select(1)).condition_on_observations(x[2, 0], Y[4, 0, 0])
    torch.testing.assert_close(apart.posterior(Z).mean[4, 2, 1], one.posterior(Z).mean, rtol=0, atol=1e-6)


@each_kind
@pytest.mark.parametrize("Y", [YES_NO, PAIRS])
def test_slopes_in_the_points_of_new_answers_match_finite_differences(kind, Y):
    model = model_of(KINDS[kind]())

    def moments(x: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        posterior = model.condition_on_observations(x, Y).posterior(z)
        return posterior.mean, posterior.covariance_matrix

    x, z = uniform(2, 3, 2, seed=5).requires_grad_(), uniform(2, 2, seed=7).requires_grad_()
    assert torch.autograd.gradcheck(moments, (x, z), eps=1e-5, atol=1e-4, rtol=1e-4)


def test_slopes_are_right_with_lapses_and_ties_too():
    data = duels() + aw.Data.ties(uniform(3, 2, 2, seed=8), 0.4)
    for one in (data, duels().with_lapses(0.05), yes_no().with_lapses(0.03, 0.5)):
        model = model_of(one)

        def mean(x: torch.Tensor, model: BeliefModel = model) -> torch.Tensor:
            return model.condition_on_observations(x, YES_NO).posterior(Z).mean

        assert torch.autograd.gradcheck(mean, uniform(3, 2, seed=5).requires_grad_(), eps=1e-5, atol=1e-4)


def test_people_who_lapse_go_on_lapsing():
    data, x = yes_no(), uniform(3, 2, seed=5)
    more = data + aw.Data.binary(x, YES_NO[:, 0].long())
    after = model_of(data.with_lapses(0.1, 0.25)).condition_on_observations(x, YES_NO)
    assert_same(after, more.with_lapses(0.1, 0.25))


@pytest.mark.slow
def test_on_two_threads_slopes_are_those_of_one():
    """Batched LU would be wrong at this size."""
    model, x, slopes = model_of(yes_no(n=170)), uniform(2, 1, 2, seed=5).requires_grad_(), []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        after = model.condition_on_observations(x, YES_NO[:1])
        slopes.append(torch.autograd.grad(after.posterior(Z).mean.square().sum(), x)[0])
    torch.testing.assert_close(*slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("Y", "got"),
    [
        (torch.tensor([[0.5], [1.0], [0.0]]), r"shape \(3, 1\) of torch.float32"),
        (torch.ones(2, 1), r"shape \(2, 1\)"),
        (torch.ones(2, 2), r"shape \(2, 2\) of torch.float32"),
    ],
)
def test_what_is_no_answer_is_refused(Y, got):
    with pytest.raises(aw.Refused, match=rf"^Y must be answers: [^;]+; got {got}"):
        model_of(yes_no()).condition_on_observations(uniform(3, 2), Y)


def test_conditioning_that_cannot_be_right_is_refused():
    model, x = model_of(duels()), uniform(3, 2)
    with pytest.raises(aw.Refused, match=r"^Y must hold places in X, 0 to 2; got 3\. "):
        model.condition_on_observations(x, torch.tensor([[0, 3]]))
    with pytest.raises(aw.Refused, match=r"^condition_on_observations must have X and Y alone; got noise\. "):
        model.condition_on_observations(x, YES_NO, noise=torch.ones(3, 1))
    with pytest.raises(aw.Refused, match=r"^observation_noise must be None; got a tensor\. "):
        model.fantasize(x, qmc(4), observation_noise=torch.ones(3, 1))
    undecided = model_of(duels() + aw.Data.ties(uniform(3, 2, 2, seed=8), 0.4))
    with pytest.raises(aw.Refused, match=r"^X must hold two points where people may be undecided; got 3\. "):
        undecided.fantasize(x, qmc(4))
    uneven = aw.infer(yes_no(), KERNEL).with_noise_slopes(torch.ones(2, dtype=torch.float64))
    with pytest.raises(aw.Refused, match=r"^belief to condition must be about one taste"):
        BeliefModel(uneven).condition_on_observations(x, YES_NO)
    lapsing = model_of(duels().with_lapses(0.1))
    with pytest.raises(aw.Refused, match=r"^points must be without gradients, with lapses"):
        lapsing.fantasize(x.requires_grad_(), qmc(4))


# fantasies


@each_kind
@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_fantasies_come_first_then_the_batches_of_points(kind, q, batch):
    model, x = model_of(KINDS[kind]()), uniform(*batch, q, 2, seed=5)
    after = model.fantasize(x, qmc(7))
    assert (after.batch_shape, after.num_outputs) == ((7, *batch), 1)
    assert after.posterior(Z).mean.shape == (7, *batch, 6, 1)
    assert after.posterior(uniform(7, *batch, 2, 2)).covariance_matrix.shape == (7, *batch, 2, 2)
    twice = after.fantasize(uniform(7, *batch, q, 2, seed=6), qmc(2))
    assert twice.batch_shape == (2, 7, *batch)


@each_kind
@pytest.mark.parametrize("q", [1, 2, 3])
def test_on_average_fantasies_change_nothing(kind, q):
    """The mean of the posterior means is the posterior mean, up to what EP itself is off by."""
    model, x = model_of(KINDS[kind]()), uniform(3, q, 2, seed=5)
    after = model.fantasize(x, qmc(2048)).posterior(Z)
    before = model.posterior(Z)
    torch.testing.assert_close(after.mean.mean(0), before.mean.expand(3, 6, 1), rtol=0, atol=6e-3)
    spread = after.variance.mean(0) + after.mean.var(0)
    torch.testing.assert_close(spread, before.variance.expand(3, 6, 1), rtol=0.02, atol=0)
    if kind == "binary" or q > 1:  # and each of them says something
        assert (after.variance.mean(0) < before.variance - 1e-4).any()


def test_each_fantasy_is_a_yes_or_a_no_as_often_as_expected():
    data, x = yes_no(), uniform(1, 2, seed=5)
    model = model_of(data)
    after = model.fantasize(x, qmc(1024)).posterior(Z).mean[..., 0]
    no, yes = (aw.infer(data + aw.Data.binary(x, [c]), KERNEL).mean(Z) for c in (0, 1))
    is_yes, is_no = ((after - one).abs().amax(-1) < 1e-6 for one in (yes, no))
    assert (is_yes ^ is_no).all()
    assert abs(is_yes.double().mean() - model.belief.success_probability(x)[0]) < 0.01


def test_of_three_points_one_wins_as_often_as_its_response_is_highest():
    data, x = duels(), uniform(3, 2, seed=5)
    model = model_of(data)
    after = model.fantasize(x, qmc(1024)).posterior(Z)
    shares = []
    for winner in range(3):
        scratch = aw.infer(data + aw.Data.rankings(x[None], [[winner]]), KERNEL)
        same = (after.mean[..., 0] - scratch.mean(Z)).abs().amax(-1) < 1e-6
        shares.append(same.double().mean())
        torch.testing.assert_close(after.covariance_matrix[same][0], scratch.cov(Z), rtol=0, atol=1e-6)
    responses = IIDNormalSampler(torch.Size([200_000]), seed=0)(model.posterior(x, observation_noise=True))
    expected = responses[..., 0].argmax(-1).bincount(minlength=3) / 200_000
    torch.testing.assert_close(torch.stack(shares), expected.double(), rtol=0, atol=0.01)


def test_fantasies_lapse_guess_and_are_undecided_as_people_are():
    x = uniform(1, 2, seed=5)
    for lapse, guess in ((0.3, 0.0), (0.1, 0.4)):
        model = model_of(yes_no().with_lapses(lapse, guess))
        after = model.fantasize(x, qmc(4096)).posterior(x).mean.flatten()
        seen = success_probability(*model.belief.moments(x))[0]
        chance = lapse / 2 + (1 - lapse) * seen if guess == 0 else guess + (1 - lapse - guess) * seen
        assert after.unique().shape == (2,)
        assert abs((after == after.max()).double().mean() - chance) < 0.02
    tied = model_of(duels() + aw.Data.ties(uniform(3, 2, 2, seed=8), 0.4))
    after = tied.fantasize(uniform(2, 2, seed=5), qmc(4096)).posterior(x).mean.flatten()
    means, counts = after.round(decimals=9).unique(return_counts=True)
    assert means.shape == (3,)
    mean, var = tied.belief.difference(*uniform(2, 2, seed=5)[:, None])
    undecided = torch.special.ndtr((torch.tensor([-0.4, 0.4]) - mean) / (1 + var).sqrt()).diff()
    assert abs(counts[1] / 4096 - undecided) < 0.01


def test_the_knowledge_gradient_is_that_of_its_definition():
    """Sum over both answers of their probability times the highest mean afterwards."""
    data, x, count = yes_no(), uniform(1, 2, seed=5), 512
    model = model_of(data)
    chance = model.belief.success_probability(x)[0]
    means = [aw.infer(data + aw.Data.binary(x, [c]), KERNEL).mean(Z) for c in (0, 1)]
    expected = (1 - chance) * means[0].max() + chance * means[1].max() - model.posterior(Z).mean.max()
    current = model.posterior(Z).mean.max()
    gradient = qKnowledgeGradient(model, num_fantasies=None, sampler=qmc(count), current_value=current)
    after = model.fantasize(x, gradient.sampler).posterior(Z).mean[..., 0]
    found = gradient(torch.cat([x, Z[after.argmax(-1)]])[None])
    torch.testing.assert_close(found[0], expected, rtol=0, atol=2e-3)


# what else acquisition functions read


@pytest.mark.parametrize("lanes", LANES)
def test_the_point_that_was_queried_last_is_the_last_training_input(lanes):
    x = uniform(*lanes, 5, 2, seed=1).sort(-2, descending=True).values
    (inputs,) = model_of(aw.Data.binary(x, torch.ones(*lanes, 5).long())).train_inputs
    assert torch.equal(inputs, x)
    pairs = x[..., [3, 1, 0, 3], :].unflatten(-2, (2, 2))
    (inputs,) = model_of(aw.Data.duels(pairs, torch.ones(*lanes, 2))).train_inputs
    assert torch.equal(inputs, x[..., [1, 0, 3], :])


def test_draws_of_thompson_sampling_have_the_moments_of_the_posterior():
    model = model_of(duels())
    with manual_seed(0):
        draws = draw_matheron_paths(model, torch.Size([20_000]))
    values, posterior = draws(Z), model.posterior(Z)
    assert values.shape == (20_000, 6)
    torch.testing.assert_close(values.mean(0), posterior.mean[:, 0], rtol=0, atol=0.04)
    torch.testing.assert_close(values.T.cov(), posterior.covariance_matrix, rtol=0, atol=0.05)


def test_each_point_of_a_batch_has_a_draw_of_its_own():
    model, x = model_of(duels()), uniform(5, 3, 2, seed=5)
    thompson = PathwiseThompsonSampling(model)
    together = thompson(x)
    alone = torch.stack([thompson.samples(x[:, k, None, None])[:, k, 0, 0] for k in range(3)]).sum(0)
    torch.testing.assert_close(together, alone)
    with manual_seed(1):
        first = draw_matheron_paths(model, torch.Size([2, 3]))
    assert first(Z).shape == (2, 3, 6)
    assert first(uniform(4, 2, 3, 6, 2)).shape == (4, 2, 3, 6)
    with manual_seed(1):
        assert torch.equal(draw_matheron_paths(model, torch.Size([2, 3]))(Z), first(Z))
    with pytest.raises(aw.Refused, match=r"^belief to draw from must have no lanes; got \(3,\)\. "):
        draw_matheron_paths(model_of(duels((3,))), torch.Size([2]))
