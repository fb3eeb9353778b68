"""A benchmark function as an experiment takes it: in which units it is felt, and with which prior."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from askwise.bench import hyperparameters
from askwise.bench.functions import FUNCTIONS, Function
from askwise.bench.hyperparameters import Hyperparameters
from askwise.normal import ndtr

__all__ = ["Prior", "Problem", "Scale", "Score"]

Scale = Literal["raw", "rescaled", "standardised"]
"""As it is; as the authors rescaled it (some of them through a logarithm); to mean 0 and variance 1."""
Prior = Literal["recovered", "likelihood", "learned"]
"""The authors' kernels and parameters; ours of maximum likelihood; learned from the answers on the way."""
Score = Literal["value", "probability"]
"""What a run is judged by: the function at the point believed best, or the probability of a yes there."""


@dataclass(frozen=True)
class Problem:
    """A function in some units, over the unit cube."""

    function: Function
    scale: Scale

    @classmethod
    def of(cls, name: str, scale: Scale) -> "Problem":
        """The problem of this function."""
        if name not in FUNCTIONS:
            raise ValueError(
                f"function must be one of {', '.join(FUNCTIONS)}; got {name!r}. Choose one of them."
            )
        return cls(FUNCTIONS[name], scale)

    def value(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b"]:
        """Values at points of the unit cube, larger is better."""
        return self._scaled(self.function.unit(x))

    @property
    def best(self) -> float:
        """The highest value; infinite where the logarithm of a function that reaches zero is taken."""
        return float(self._scaled(torch.tensor(self.function.max, dtype=torch.float64)))

    def score(self, x: Float[Tensor, "*b d"], kind: Score) -> Float[Tensor, "*b"]:
        """What a run is given for believing x the best."""
        value = self.value(x)
        return ndtr(value) if kind == "probability" else value

    def hyperparameters(self, prior: Prior) -> Hyperparameters | None:
        """Kernel and parameters for this function in these units; none where they are to be learned."""
        if prior == "learned":
            return None
        if prior == "recovered":
            return hyperparameters.recovered(self.function.name, self.scale)
        return hyperparameters.likelihood(self.function.name, self.scale)

    def _scaled(self, raw: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
        return hyperparameters.rescaling(self.function.name, self.scale)(raw)
