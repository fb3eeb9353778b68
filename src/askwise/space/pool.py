"""Coordinates that are one of the rows of a table, not any point of a range."""

import functools
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Pool:
    """Neighbouring coordinates of the unit cube, and the rows of values that they may have."""

    first: int
    end: int
    """One past the last coordinate."""
    rows: Float[Tensor, "n w"]

    def nearest(self, x: Float[Tensor, "*b w"]) -> Float[Tensor, "*b w"]:
        """The row nearest to each point; a row stays as it is."""
        # a tree, not all distances: of 100,000 points that are rows already these would take minutes
        _, index = self._tree.query(x.detach().cpu().reshape(-1, x.shape[-1]).numpy())
        return self.rows[torch.as_tensor(index, device=x.device)].view(x.shape)

    def numbered(self, place: Float[Tensor, "*b"]) -> Float[Tensor, "*b w"]:
        """The row at a place between 0 and 1, all rows having equal shares of the interval."""
        return self.rows[(place * len(self.rows)).long().clamp(0, len(self.rows) - 1)]

    def on(self, device: torch.device) -> "Pool":
        """The pool with its rows on this device."""
        return replace(self, rows=self.rows.to(device))

    @functools.cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree  # only items need it

        return cKDTree(self.rows.cpu().numpy())
