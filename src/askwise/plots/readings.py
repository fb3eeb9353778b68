"""What figures show of a study over a plane: chances, heights and uncertainties, as numbers."""

from jaxtyping import Float
from torch import Tensor

from askwise.model import Decomposition, decompose
from askwise.numerics import deviation, ndtr
from askwise.plots.planes import Plane
from askwise.plots.scene import Scene
from askwise.plots.style import BAND
from askwise.rules import latent_level


def chances(plane: Plane) -> tuple[Float[Tensor, "*grid"], Float[Tensor, "*grid"], Float[Tensor, "*grid"]]:
    """The expected chance of a yes, or of being preferred to the recommended setting, and 95% of it."""
    scene = plane.scene
    mean = plane.values(lambda x: _moments(scene, x)[0])
    var = plane.values(lambda x: _moments(scene, x)[1])
    reach = BAND * deviation(var)
    chance = plane.values(lambda x: scene.belief.success_probability(x, _rival(scene, x)))
    return chance, ndtr(mean - reach), ndtr(mean + reach)


def chance_of_best(scene: Scene) -> float:
    """The same of the recommended setting itself."""
    there = scene.best[None]
    return float(scene.belief.success_probability(there, _rival(scene, there)))


def probabilities(plane: Plane, level: float) -> Float[Tensor, "*grid"]:
    """Probability that settings work at least as often as the level."""
    border = latent_level(level)
    return plane.values(lambda x: plane.scene.belief.probability_above(x, border))


def heights(plane: Plane) -> tuple[Float[Tensor, "*grid"], Float[Tensor, "*grid"]]:
    """Mean and standard deviation of f."""
    belief = plane.scene.belief
    return plane.values(belief.mean), deviation(plane.values(belief.variance))


def uncertainties(plane: Plane) -> tuple[Float[Tensor, "*grid"], Float[Tensor, "*grid"]]:
    """Variance of the next answer, epistemic and aleatoric; where settings are compared, of a duel with the
    recommended one."""
    scene = plane.scene
    return (
        plane.values(lambda x: uncertainty(scene, x).epistemic),
        plane.values(lambda x: uncertainty(scene, x).aleatoric),
    )


def uncertainty(scene: Scene, x: Float[Tensor, "q d"]) -> Decomposition:
    """Both parts at points."""
    return decompose(scene.belief, x, _rival(scene, x))


def _moments(scene: Scene, x: Float[Tensor, "q d"]) -> tuple[Float[Tensor, " q"], Float[Tensor, " q"]]:
    """Mean and variance of f, or of its lead over the recommended setting, in units of the noise."""
    return scene.belief.in_noise(x, _rival(scene, x))


def _rival(scene: Scene, x: Float[Tensor, "q d"]) -> Float[Tensor, "q d"] | None:
    """The recommended setting, where settings are compared."""
    return scene.best.expand_as(x) if scene.compares else None
