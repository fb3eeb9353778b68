"""Answers of real people: our estimates against R's, which benchmarks/raters.R wrote to tests/data."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from gpytorch.kernels import PolynomialKernel, ScaleKernel

import askwise as aw

DATA = Path(__file__).parent.parent / "data"
FOUR_ALTERNATIVES = 0.25


def rows(name):
    with (DATA / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


THRESHOLDS = rows("ecc2-r")


def straight_line():
    """A line in log contrast with hardly any prior, as in a generalised linear model."""
    kernel = ScaleKernel(PolynomialKernel(power=1)).double()
    kernel.outputscale, kernel.base_kernel.offset = 1000.0, 1.0
    return kernel.requires_grad_(False)


@pytest.mark.parametrize("wanted", THRESHOLDS, ids=lambda one: f"{one['task']} {one['size']}")
def test_thresholds_of_four_alternatives_are_those_of_a_linear_model_in_r(wanted):
    part = [one for one in rows("ecc2") if (one["task"], one["Size"]) == (wanted["task"], _short(wanted))]
    contrasts = [float(one["Contr"]) for one in part]
    space = aw.Space(contrast=aw.Real(min(contrasts), max(contrasts), log=True))
    study = aw.Study(space, "binary", guess=FOUR_ALTERNATIVES, lapses=0, kernel=straight_line())
    answers = [
        {"options": [{"contrast": contrast}], "answer": answer}
        for contrast, one in zip(contrasts, part, strict=True)
        for answer, count in ((True, one["Correct"]), (False, one["Incorrect"]))
        for _ in range(int(count))
    ]
    study.record_many(answers)
    x = torch.linspace(0, 1, 10_001, dtype=torch.float64)[:, None]
    half_way = x[int((study.belief().mean(x) < 0).nonzero().max())]
    assert space.natural(half_way)["contrast"] == pytest.approx(float(wanted["threshold"]), rel=0.01)


def _short(wanted):
    return f"{float(wanted['size']):g}"


@pytest.mark.slow
def test_worths_of_a_population_of_listeners_are_those_of_bradley_and_terry_in_r():
    answers, estimates = rows("sound-quality"), rows("sound-quality-r")
    items = [one["item"] for one in estimates]
    study = aw.Study(aw.Space(mode=aw.Choice(items)), "duel", participants="population")
    study.record_many(
        [
            {
                "options": [{"mode": one["first"]}, {"mode": one["second"]}],
                "answer": 1 - int(one["won"]),
                "participant": one["listener"],
            }
            for one in answers
        ]
    )
    worths = study.belief().mean(study.model.points([{"mode": item} for item in items]))
    for model in ("bradley_terry", "thurstone"):
        assert np.corrcoef(worths, [float(one[model]) for one in estimates])[0, 1] > 0.995
    share = study.raters().share
    assert 0.02 < share.value < 0.3  # listeners differ a little
    assert share.interval[0] < share.value < share.interval[1]
