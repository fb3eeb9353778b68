"""Single precision stays what it is beside models that make it coarser."""

import pytest
import torch

import askwise as aw
from askwise.numerics import plain_precision


@pytest.fixture(params=["autocast", "medium"])
def coarser(request):
    """What other models in the same program may have switched on."""
    if request.param == "autocast":
        with torch.autocast("cpu", dtype=torch.bfloat16):
            yield
        return
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_float32_matmul_precision("highest")


def test_products_are_those_of_single_precision_and_the_choice_of_others_is_kept(coarser):
    x = torch.linspace(0, 1, 60 * 70).reshape(60, 70)
    before = torch.get_float32_matmul_precision(), torch.is_autocast_enabled("cpu")
    with plain_precision():
        found = x @ x.mT
    assert (torch.get_float32_matmul_precision(), torch.is_autocast_enabled("cpu")) == before
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), x.double() @ x.double().mT, rtol=1e-6, atol=0)


def asked(kernel, rule="muc"):
    study = aw.Study(aw.Space(a=aw.Real(0, 1), b=aw.Real(0, 1)), kernel=kernel, rule=rule)
    for _ in range(10):
        question = study.ask()
        left, right = (option["a"] + option["b"] for option in question.options)
        study.tell(question, int(right > left))
    return study.ask().options, study.best().params


@pytest.mark.parametrize(("kernel", "rule"), [("averaged", "muc"), ("matern52", "muc"), ("matern52", "kss")])
def test_a_study_asks_the_same_beside_them(coarser, kernel, rule):
    with plain_precision():
        alone = asked(kernel, rule)
    assert asked(kernel, rule) == alone
