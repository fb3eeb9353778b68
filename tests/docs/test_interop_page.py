"""The page on BoTorch and Optuna runs as it stands."""

import re
from pathlib import Path

import pytest
import torch

PAGE = Path(__file__).parents[2] / "docs" / "interop.md"


# of BoTorch's sampler, where the search happens to put both points in one place
@pytest.mark.filterwarnings("ignore:A not p.d.:linear_operator.utils.warnings.NumericalWarning")
def test_every_block_of_the_page_runs():
    torch.manual_seed(0)  # BoTorch's optimizer starts anywhere
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert len(blocks) == 4
    loud = [setting["gain"] for setting in names["options"]]
    assert max(loud) > 30
    assert 5 < names["best"].params["x"] < 9
    assert names["preferences"].best_trials[0].params["x"] > 8
