"""Random streams seeded by the identity of a run."""

import pytest
import torch

from askwise.numerics.seeds import generator, rand, randn

LIKE = torch.zeros((), dtype=torch.float64)


def test_the_same_identity_gives_the_same_stream():
    one, other = (torch.rand(5, generator=generator("duels", "ackley", 3)) for _ in range(2))
    assert torch.equal(one, other)


def test_identities_that_read_alike_differ():
    identities = [("a", 12), ("a1", 2), ("a", "12"), ("a12",), (12, "a"), ("a", 1, 2), ()]
    assert len({generator(*identity).initial_seed() for identity in identities}) == len(identities)


def test_a_separator_in_a_name_does_not_make_two_runs_one():
    assert generator("a\x1fstr:b").initial_seed() != generator("a", "b").initial_seed()


@pytest.mark.parametrize("draw", [rand, randn])
def test_a_lane_with_its_own_generator_draws_as_if_alone(draw):
    together = draw([generator(k) for k in range(3)], torch.Size([3]), 4, 2, like=LIKE)
    assert together.shape == (3, 4, 2)
    for lane in range(3):
        assert torch.equal(together[lane], draw(generator(lane), torch.Size(), 4, 2, like=LIKE))


def test_normals_and_uniforms_have_their_moments():
    normal = randn(generator("n"), torch.Size([2]), 50_000, like=LIKE)
    uniform = rand(generator("u"), torch.Size([2]), 50_000, like=LIKE)
    assert normal.mean().abs() < 0.02
    assert (normal.var() - 1).abs() < 0.02
    assert (uniform.mean() - 0.5).abs() < 0.01
    assert (uniform > 0).all()
    assert (uniform < 1).all()


def test_too_few_generators_are_refused():
    with pytest.raises(ValueError, match="generators must be one, or one for each of the 3 lanes; got 2"):
        randn([generator(0), generator(1)], torch.Size([3]), 4, like=LIKE)
