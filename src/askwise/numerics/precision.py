"""Single precision as it is, whatever the caller has made faster."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def plain_precision() -> Iterator[None]:
    """Products as exact as single precision, so that a study asks the same beside any other model.

    Coarser ones come from ``torch.autocast`` and from ``torch.set_float32_matmul_precision``.
    """
    precision = torch.get_float32_matmul_precision()
    casting = [device for device in ("cpu", "cuda") if torch.is_autocast_enabled(device)]
    with ExitStack() as restored:
        for device in casting:
            restored.enter_context(torch.autocast(device, enabled=False))
        if precision != "highest":
            torch.set_float32_matmul_precision("highest")
            restored.callback(torch.set_float32_matmul_precision, precision)
        yield
