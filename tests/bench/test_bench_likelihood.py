"""The script that fits kernels by maximum likelihood, and the table it made."""

import csv
import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch

import askwise as aw
from askwise.bench import problems
from askwise.bench.functions import FUNCTIONS
from askwise.bench.problems import Rescaling, moments
from askwise.model.kernels import covariance
from campaigns import script
from tensors import seeded, uniform

FAMILIES = ("se", "matern32", "matern52")
each_family = pytest.mark.parametrize("family", FAMILIES)


@pytest.fixture(scope="module")
def likelihood():
    with script("likelihood") as module:
        yield module


def test_the_table_of_likelihood_has_every_function_and_the_kernel_of_least_error(likelihood):
    table, (shortest, longest) = problems._table("likelihood"), likelihood.LENGTHSCALES
    assert list(table) == list(FUNCTIONS)
    for name, row in table.items():
        errors = {family: float(row[f"rmse_{family}"]) for family in FAMILIES}
        found = problems.likelihood(name)
        assert errors[found.kernel] == min(errors.values())
        assert len(found.lengthscale) == FUNCTIONS[name].dim
        assert all(shortest <= length <= longest for length in found.lengthscale)
        assert 0 < found.outputscale <= 1.001 * likelihood.OUTPUTSCALES[1]


@pytest.mark.parametrize("name", ["forrester", "branin", pytest.param("hartmann4", marks=pytest.mark.slow)])
def test_the_table_of_likelihood_is_reproduced(likelihood, name):
    """The tabled evidence and error are reproduced, and the gradient is zero except at a bound."""
    row, points = problems._table("likelihood")[name], likelihood.sample(FUNCTIONS[name])
    for family in FAMILIES:
        lengths = [float(length) for length in row[f"lengthscale_{family}"].split()]
        parameters = np.log([*lengths, float(row[f"outputscale_{family}"])])
        evidence = likelihood.Evidence(family, points)
        loss, slope = evidence.descent(parameters)
        assert -loss * 1000 == pytest.approx(float(row[f"evidence_{family}"]), abs=0.1)
        assert evidence.error(parameters) == pytest.approx(float(row[f"rmse_{family}"]), rel=0.02)
        if not row[f"at_bound_{family}"]:
            assert np.abs(slope).max() < 1e-3


@pytest.mark.slow
def test_the_command_makes_the_table_again(likelihood, capsys):
    likelihood.main(["--functions", "forrester"])
    made = next(csv.DictReader(capsys.readouterr().out.splitlines()))
    tabled = problems._table("likelihood")["forrester"]
    assert made["kernel"] == tabled["kernel"]
    for family in FAMILIES:
        for what, rel in (("evidence", 1e-4), ("rmse", 0.02), ("lengthscale", 0.02)):
            column = f"{what}_{family}"
            assert float(made[column]) == pytest.approx(float(tabled[column]), rel=rel)


def gaussian_sample(family: str, lengthscale, outputscale: float, n: int, tests: int) -> tuple:
    """A draw of a Gaussian process at points of the unit square: to fit to, and to test on."""
    x = uniform(n + tests, 2, seed=3)
    matrix = covariance(aw.kernel(family, lengthscale, outputscale)).cross(x, x)
    factor = torch.linalg.cholesky(matrix + 1e-10 * torch.eye(n + tests, dtype=torch.float64))
    y = factor @ torch.randn(n + tests, generator=seeded(4), dtype=torch.float64)
    return x[:n], y[:n], x[n:], y[n:]


@each_family
def test_evidence_is_the_density_of_the_values(likelihood, family):
    points = likelihood.Sample(*gaussian_sample("matern32", 0.3, 1.5, 30, 5))
    lengths = [0.2, 0.4] if family == "se" else [0.3]
    matrix = covariance(aw.kernel(family, lengths, 2.0)).cross(points.x, points.x).numpy()
    density = scipy.stats.multivariate_normal(cov=matrix + likelihood.NUGGET * np.eye(30))
    loss, _ = likelihood.Evidence(family, points).descent(np.log([*lengths, 2.0]))
    assert -30 * loss == pytest.approx(density.logpdf(points.y.numpy()), rel=1e-8)


@each_family
def test_the_gradient_is_that_of_the_evidence(likelihood, family):
    evidence = likelihood.Evidence(family, likelihood.Sample(*gaussian_sample("matern32", 0.3, 1.5, 30, 5)))
    parameters = np.log([0.05, 0.1, 2.0] if family == "se" else [0.1, 2.0])
    step = 1e-5
    for i, slope in enumerate(evidence.descent(parameters)[1]):
        along = step * np.eye(len(parameters))[i]
        rise = evidence.descent(parameters + along)[0] - evidence.descent(parameters - along)[0]
        assert slope == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-8)


@each_family
def test_errors_are_those_of_the_predictive_mean(likelihood, family):
    points = likelihood.Sample(*gaussian_sample("matern52", 0.3, 1.5, 40, 25))
    lengths = [0.2, 0.4] if family == "se" else [0.3]
    prior = covariance(aw.kernel(family, lengths, 2.0))
    matrix = prior.cross(points.x, points.x).numpy() + likelihood.NUGGET * np.eye(40)
    predicted = prior.cross(points.test_x, points.x).numpy() @ np.linalg.solve(matrix, points.y.numpy())
    wanted = np.sqrt(np.mean((predicted - points.test_y.numpy()) ** 2))
    assert likelihood.Evidence(family, points).error(np.log([*lengths, 2.0])) == pytest.approx(
        wanted, rel=1e-6
    )


def test_parameters_of_a_draw_are_recovered(likelihood):
    points = likelihood.Sample(*gaussian_sample("se", [0.1, 0.3], 2.0, 200, 100))
    fit = likelihood.fitted("se", points)
    assert fit.lengthscale == pytest.approx((0.1, 0.3), rel=0.15)
    assert fit.outputscale == pytest.approx(2.0, rel=0.8)
    assert fit.at_bound == ""
    truth, _ = likelihood.Evidence("se", points).descent(np.log([0.1, 0.3, 2.0]))
    assert fit.evidence >= -200 * truth


def test_the_kernel_of_a_draw_is_chosen(likelihood):
    """A rough draw is predicted worst by the squared exponential, best by its own kernel."""
    points = likelihood.Sample(*gaussian_sample("matern32", 0.2, 1.0, 100, 400))
    fits = [likelihood.fitted(family, points) for family in FAMILIES]
    assert [fit.kernel for fit in fits] == list(FAMILIES)
    assert likelihood.chosen(fits).kernel == "matern32"
    assert len(fits[1].lengthscale) == 1


@pytest.mark.parametrize("errors", list(itertools.permutations((0.1, 0.2, 0.3))))
def test_the_kernel_of_least_error_is_chosen_whatever_its_evidence(likelihood, errors):
    fits = [likelihood.Fit(f, (0.3,), 1.0, 10 * e, e, "") for f, e in zip(FAMILIES, errors, strict=True)]
    assert likelihood.chosen(fits).kernel == FAMILIES[errors.index(0.1)]


def test_parameters_at_a_bound_are_named(likelihood):
    x, y = uniform(40, 2), uniform(40).sub(0.5).sign()
    torn = torch.cat([x, x + 0.0005]), torch.cat([y, -y])  # opposite values at neighbours
    assert likelihood.fitted("matern32", likelihood.Sample(*torn, *torn)).at_bound == "lengthscale1=low"
    line = x, x.sum(-1)
    assert "lengthscale1=high" in likelihood.fitted("se", likelihood.Sample(*line, *line)).at_bound


def test_a_matrix_without_a_cholesky_factor_has_the_worst_evidence(likelihood, monkeypatch):
    monkeypatch.setattr(likelihood, "NUGGET", -1e-3)
    evidence = likelihood.Evidence("se", likelihood.Sample(*gaussian_sample("matern32", 0.3, 1.5, 30, 5)))
    loss, slope = evidence.descent(np.log([20.0, 20.0, 1.0]))
    assert loss == 1e10
    assert (slope == 0).all()
    assert evidence.error(np.log([20.0, 20.0, 1.0])) == math.inf


def test_the_sample_is_standardised_and_always_the_same(likelihood):
    function = FUNCTIONS["trid"]
    first, again = likelihood.sample(function, 20, 30), likelihood.sample(function, 20, 30)
    assert torch.equal(first.x, again.x)
    assert (first.x.shape, first.test_x.shape) == ((20, 2), (30, 2))
    mean, variance = moments(function)
    # exactly: E f = 2 (16/3 + 1); E f^2 by the moments 0, 16/3, 0, 256/5 of a coordinate
    assert mean == pytest.approx(-2 * (16 / 3 + 1), rel=1e-6)
    assert variance == pytest.approx(2 * (256 / 5 - (16 / 3) ** 2 + 4 * 16 / 3) + (16 / 3) ** 2, rel=1e-5)
    torch.testing.assert_close(first.test_y, (function.unit(first.test_x) - mean) / math.sqrt(variance))


SMALL = ["--functions", "trid,forrester", "--samples", "30", "--tests", "40"]


@pytest.fixture
def empty_cache():
    problems._table.cache_clear()
    yield
    problems._table.cache_clear()


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.slow
def test_what_the_command_writes_is_what_is_read(likelihood, tmp_path, monkeypatch):
    likelihood.main([*SMALL, "--out", str(tmp_path / "likelihood.csv")])
    monkeypatch.setattr(problems, "TABLES", tmp_path)
    for name in ("trid", "forrester"):
        points = likelihood.sample(FUNCTIONS[name], 30, 40)
        best = likelihood.chosen([likelihood.fitted(family, points) for family in FAMILIES])
        read = problems.likelihood(name)
        lengths = best.lengthscale * (2 if name == "trid" and best.kernel != "se" else 1)
        assert read.kernel == best.kernel
        assert read.lengthscale == pytest.approx(lengths, rel=1e-4)
        assert read.outputscale == pytest.approx(best.outputscale, rel=1e-4)
        wanted = Rescaling(*moments(FUNCTIONS[name]))
        assert problems.rescaling(name, "standardised") == wanted


@pytest.mark.slow
def test_processes_make_the_same_table(likelihood, capsys):
    likelihood.main(SMALL)
    alone = capsys.readouterr().out
    likelihood.main([*SMALL, "--workers", "2"])
    assert capsys.readouterr().out == alone


def test_an_unknown_function_is_refused_before_anything_is_written(likelihood, tmp_path):
    out = tmp_path / "table.csv"
    with pytest.raises(
        ValueError, match=r"function must be one of ackley.*got 'nothing'\. Choose one of them"
    ):
        likelihood.main(["--functions", "trid,nothing", "--out", str(out)])
    assert not out.exists()
