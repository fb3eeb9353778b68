"""What the model of a run learns of how the simulated user answers, as a study does."""

from dataclasses import dataclass, replace

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.bench.user import UNDECIDED, User
from askwise.model import Data, Fitted, Learnable, Observer, fit, with_fitted_margin, with_rater_column


@dataclass(frozen=True, eq=False)
class Habits:
    """What is known of the user at the last refit; nothing but the kernel is learned of a plain one."""

    user: User
    margin: Float[Tensor, " lane"] | None = None
    observer: Observer | None = None

    def data(self, asked: Float[Tensor, "lane t m d"], said: Tensor) -> Data:
        """The answers [lane, t, k] as rows, with who gave them."""
        if self.user.people > 1:
            turn = torch.arange(asked.shape[1], device=asked.device) % self.user.people
            asked = with_rater_column(asked, turn)
        if asked.shape[-2] == 1:
            data = Data.binary(asked[:, :, 0], said[..., 0])
        elif self.user.margin:
            data = Data.duels(asked, torch.where(said == UNDECIDED, 0.5, said.to(asked))[..., 0])
        else:
            data = Data.batches(asked, said)
        return data.with_raters() if self.user.people > 1 else data

    def fitted(self, data: Data, kernel: Kernel, *, roughly: bool = False) -> tuple["Habits", Fitted]:
        """What these answers say of the user, and the kernel of highest posterior."""
        learn: list[Learnable] = ["lapse"] if self.user.lapses else []
        learn += ["noise", "share"] if self.user.people > 1 else []
        observer = Observer.start(data, self.user.people, learn) if learn else None
        if self.user.margin:
            seen = data if observer is None else observer.applied(data)
            data = data.with_margin(with_fitted_margin(seen, kernel).margin)
        found = fit(data, kernel, observer=observer, learn=learn, roughly=roughly)
        return replace(self, margin=data.margin, observer=found.observer), found

    def applied(self, data: Data) -> Data:
        """The rows as such a user answers them."""
        if self.user.margin and self.margin is not None:
            known = data.has_ties & (self.margin > 0)
            data = data.with_margin(torch.where(known, self.margin, data.margin))
        return data if self.observer is None else self.observer.applied(data)
