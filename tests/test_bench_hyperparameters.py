"""Tables of kernels and scales: as recovered, and as maximum likelihood makes them."""

import csv
import itertools
import math

import numpy as np
import pytest
import scipy.stats
import torch

import askwise as aw
from askwise.bench import hyperparameters, likelihood
from askwise.bench.functions import FUNCTIONS
from askwise.bench.hyperparameters import Hyperparameters, Rescaling
from askwise.bench.likelihood import Evidence, Fit, Sample, chosen, fitted, sample
from askwise.kernels import covariance
from tensors import f64, seeded, uniform

FAMILIES = ("se", "matern32", "matern52")
each_family = pytest.mark.parametrize("family", FAMILIES)
each_name = pytest.mark.parametrize("name", FUNCTIONS)


def test_recovered_values_are_the_published_ones():
    assert hyperparameters.recovered("ackley", "raw") == Hyperparameters(
        "matern32", (4.85263, 4.85263), 22026.5
    )
    assert hyperparameters.recovered("ackley", "rescaled") == Hyperparameters(
        "matern32", (5.421614332, 5.421614332), 4941.243715
    )
    assert hyperparameters.recovered("hartmann3", "raw") == Hyperparameters(
        "se", (0.558643, 0.271406, 0.154784), 0.0574259
    )
    assert hyperparameters.recovered("ursem_waves", "rescaled") == Hyperparameters(
        "se", (0.09596625335, 0.1190092775), 0.3326965091
    )


@each_name
def test_recovered_kernels_are_the_functions_own(name):
    for scale in ("raw", "rescaled"):
        recovered = hyperparameters.recovered(name, scale)
        assert recovered.kernel == FUNCTIONS[name].kernel
        assert len(recovered.lengthscale) == FUNCTIONS[name].dim
        built = covariance(recovered.gpytorch())
        assert built.name == recovered.kernel
        torch.testing.assert_close(built.lengthscale, f64(recovered.lengthscale))
        assert built.outputscale.item() == pytest.approx(recovered.outputscale)


def test_the_published_scale_takes_logarithms_of_17_functions():
    logged = [name for name in FUNCTIONS if hyperparameters.rescaling(name, "rescaled").log]
    assert logged == [
        *("beale", "bohachevsky", "three_hump_camel", "colville", "dixon_price", "goldstein_price"),
        *("griewank", "levy", "levy13", "perm0", "perm", "powell", "rosenbrock"),
        *("rotated_hyper_ellipsoid", "schwefel", "sphere", "sum_squares"),
    ]


def test_rescaled_values_follow_the_published_formula():
    beale, trid = (hyperparameters.rescaling(name, "rescaled") for name in ("beale", "trid"))
    wanted = -(math.log(170.0) - 6.035114717) / math.sqrt(9.49607998)
    assert beale(f64(-170.0)).item() == pytest.approx(wanted, rel=1e-12)
    assert trid(f64(1.5)).item() == pytest.approx(-(-1.5 - 12.72624612) / math.sqrt(117.2082049), rel=1e-12)
    assert beale(FUNCTIONS["beale"](f64([3.0, 0.5]))).item() == math.inf
    assert beale == Rescaling(6.035114717, 9.49607998, log=True)
    assert trid == Rescaling(-12.72624612, 117.2082049)
    assert hyperparameters.rescaling("trid", "raw")(f64(1.5)).item() == 1.5


@each_name
def test_published_constants_give_mean_0_and_variance_1(name):
    """They come from 50 000 draws of the authors; ours are others."""
    function = FUNCTIONS[name]
    values = hyperparameters.rescaling(name, "rescaled")(function.unit(uniform(2**15, function.dim)))
    assert_standardised(values, draws=2**15 + 50_000)


@each_name
def test_standardised_functions_have_mean_0_and_variance_1(name):
    function = FUNCTIONS[name]
    rescaling = hyperparameters.rescaling(name, "standardised")
    assert not rescaling.log
    assert_standardised(rescaling(function.unit(uniform(2**16, function.dim))), draws=2**16)


def assert_standardised(values: torch.Tensor, draws: int) -> None:
    """Mean 0 and variance 1 within 4.5 standard errors; ``draws`` may count those behind the constants."""
    n = len(values)
    inflation = n / (draws - n) + 1 if draws > n else 1
    mean, variance = values.mean().item(), values.var().item()
    fourth = (values - mean).pow(4).mean().item()
    assert abs(mean) < 4.5 * math.sqrt(inflation * variance / n)
    assert abs(variance - 1) < 4.5 * math.sqrt(inflation * (fourth - variance**2) / n)


def test_the_table_of_likelihood_has_every_function_and_the_kernel_of_least_error():
    table, (shortest, longest) = hyperparameters._table("likelihood"), likelihood.LENGTHSCALES
    assert list(table) == list(FUNCTIONS)
    for name, row in table.items():
        errors = {family: float(row[f"rmse_{family}"]) for family in FAMILIES}
        found = hyperparameters.likelihood(name)
        assert errors[found.kernel] == min(errors.values())
        assert len(found.lengthscale) == FUNCTIONS[name].dim
        assert all(shortest <= length <= longest for length in found.lengthscale)
        assert 0 < found.outputscale <= 1.001 * likelihood.OUTPUTSCALES[1]
        assert found.mean == 0


@pytest.mark.parametrize("name", ["forrester", "langermann", "hartmann4"])
def test_the_table_of_likelihood_is_about_the_samples_it_says(name):
    """Evidence and error of the tabled parameters, made again, and no slope where no bound stopped them."""
    row, points = hyperparameters._table("likelihood")[name], sample(FUNCTIONS[name])
    for family in FAMILIES:
        lengths = [float(length) for length in row[f"lengthscale_{family}"].split()]
        parameters = np.log([*lengths, float(row[f"outputscale_{family}"])])
        evidence = Evidence(family, points)
        loss, slope = evidence.descent(parameters)
        assert -loss * 1000 == pytest.approx(float(row[f"evidence_{family}"]), abs=0.1)
        assert evidence.error(parameters) == pytest.approx(float(row[f"rmse_{family}"]), rel=0.02)
        if not row[f"at_bound_{family}"]:
            assert np.abs(slope).max() < 1e-3


@pytest.mark.slow
def test_the_command_makes_the_table_again(capsys):
    likelihood.main(["--functions", "forrester"])
    made = next(csv.DictReader(capsys.readouterr().out.splitlines()))
    tabled = hyperparameters._table("likelihood")["forrester"]
    assert made["kernel"] == tabled["kernel"]
    for family in FAMILIES:
        for what, rel in (("evidence", 1e-4), ("rmse", 0.02), ("lengthscale", 0.02)):
            column = f"{what}_{family}"
            assert float(made[column]) == pytest.approx(float(tabled[column]), rel=rel)


def gaussian_sample(family: str, lengthscale, outputscale: float, n: int, tests: int) -> Sample:
    """A draw of a Gaussian process at points of the unit square."""
    x = uniform(n + tests, 2, seed=3)
    matrix = covariance(aw.kernel(family, lengthscale, outputscale)).cross(x, x)
    factor = torch.linalg.cholesky(matrix + 1e-10 * torch.eye(n + tests, dtype=torch.float64))
    y = factor @ torch.randn(n + tests, generator=seeded(4), dtype=torch.float64)
    return Sample(x[:n], y[:n], x[n:], y[n:])


@each_family
def test_evidence_is_the_density_of_the_values(family):
    points = gaussian_sample("matern32", 0.3, 1.5, 30, 5)
    lengths = [0.2, 0.4] if family == "se" else [0.3]
    matrix = covariance(aw.kernel(family, lengths, 2.0)).cross(points.x, points.x).numpy()
    density = scipy.stats.multivariate_normal(cov=matrix + likelihood.NUGGET * np.eye(30))
    loss, _ = Evidence(family, points).descent(np.log([*lengths, 2.0]))
    assert -30 * loss == pytest.approx(density.logpdf(points.y.numpy()), rel=1e-8)


@each_family
def test_the_slope_is_that_of_the_evidence(family):
    evidence = Evidence(family, gaussian_sample("matern32", 0.3, 1.5, 30, 5))
    parameters = np.log([0.05, 0.1, 2.0] if family == "se" else [0.1, 2.0])
    step = 1e-5
    for i, slope in enumerate(evidence.descent(parameters)[1]):
        along = step * np.eye(len(parameters))[i]
        rise = evidence.descent(parameters + along)[0] - evidence.descent(parameters - along)[0]
        assert slope == pytest.approx(rise / (2 * step), rel=1e-6, abs=1e-8)


@each_family
def test_errors_are_those_of_the_predictive_mean(family):
    points = gaussian_sample("matern52", 0.3, 1.5, 40, 25)
    lengths = [0.2, 0.4] if family == "se" else [0.3]
    prior = covariance(aw.kernel(family, lengths, 2.0))
    matrix = prior.cross(points.x, points.x).numpy() + likelihood.NUGGET * np.eye(40)
    predicted = prior.cross(points.test_x, points.x).numpy() @ np.linalg.solve(matrix, points.y.numpy())
    wanted = np.sqrt(np.mean((predicted - points.test_y.numpy()) ** 2))
    assert Evidence(family, points).error(np.log([*lengths, 2.0])) == pytest.approx(wanted, rel=1e-6)


def test_parameters_of_a_draw_are_found_again():
    points = gaussian_sample("se", [0.1, 0.3], 2.0, 300, 200)
    fit = fitted("se", points)
    assert fit.lengthscale == pytest.approx((0.1, 0.3), rel=0.15)
    assert fit.outputscale == pytest.approx(2.0, rel=0.8)
    assert fit.at_bound == ""
    truth, _ = Evidence("se", points).descent(np.log([0.1, 0.3, 2.0]))
    assert fit.evidence >= -300 * truth


def test_the_kernel_of_a_draw_is_chosen():
    """A rough draw is predicted worst by the squared exponential, best by its own kernel."""
    points = gaussian_sample("matern32", 0.2, 1.0, 150, 600)
    fits = [fitted(family, points) for family in FAMILIES]
    assert [fit.kernel for fit in fits] == list(FAMILIES)
    assert chosen(fits).kernel == "matern32"
    assert len(fits[1].lengthscale) == 1


@pytest.mark.parametrize("errors", list(itertools.permutations((0.1, 0.2, 0.3))))
def test_the_kernel_of_least_error_is_chosen_whatever_its_evidence(errors):
    fits = [Fit(f, (0.3,), 1.0, 10 * e, e, "") for f, e in zip(FAMILIES, errors, strict=True)]
    assert chosen(fits).kernel == FAMILIES[errors.index(0.1)]


def test_bounds_that_stop_a_parameter_are_told():
    x, y = uniform(40, 2), uniform(40).sub(0.5).sign()
    torn = torch.cat([x, x + 0.0005]), torch.cat([y, -y])  # opposite values at neighbours
    assert fitted("matern32", Sample(*torn, *torn)).at_bound == "lengthscale1=low"
    line = x, x.sum(-1)
    assert "lengthscale1=high" in fitted("se", Sample(*line, *line)).at_bound


def test_a_matrix_that_has_no_factor_is_the_worst(monkeypatch):
    monkeypatch.setattr(likelihood, "NUGGET", -1e-3)
    evidence = Evidence("se", gaussian_sample("matern32", 0.3, 1.5, 30, 5))
    loss, slope = evidence.descent(np.log([20.0, 20.0, 1.0]))
    assert loss == 1e10
    assert (slope == 0).all()
    assert evidence.error(np.log([20.0, 20.0, 1.0])) == math.inf


def test_the_sample_is_standardised_and_always_the_same():
    function = FUNCTIONS["trid"]
    first, again = sample(function, 20, 30), sample(function, 20, 30)
    assert torch.equal(first.x, again.x)
    assert (first.x.shape, first.test_x.shape) == ((20, 2), (30, 2))
    mean, variance = likelihood.moments(function)
    # exactly: E f = 2 (16/3 + 1); E f^2 by the moments 0, 16/3, 0, 256/5 of a coordinate
    assert mean == pytest.approx(-2 * (16 / 3 + 1), rel=1e-6)
    assert variance == pytest.approx(2 * (256 / 5 - (16 / 3) ** 2 + 4 * 16 / 3) + (16 / 3) ** 2, rel=1e-5)
    torch.testing.assert_close(first.test_y, (function.unit(first.test_x) - mean) / math.sqrt(variance))


SMALL = ["--functions", "trid,forrester", "--samples", "30", "--tests", "40"]


@pytest.fixture
def empty_cache():
    hyperparameters._table.cache_clear()
    yield
    hyperparameters._table.cache_clear()


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.slow
def test_what_the_command_writes_is_what_is_read(tmp_path, monkeypatch):
    likelihood.main([*SMALL, "--out", str(tmp_path / "likelihood.csv")])
    monkeypatch.setattr(hyperparameters, "TABLES", tmp_path)
    for name in ("trid", "forrester"):
        points = sample(FUNCTIONS[name], 30, 40)
        best = chosen([fitted(family, points) for family in FAMILIES])
        read = hyperparameters.likelihood(name)
        lengths = best.lengthscale * (2 if name == "trid" and best.kernel != "se" else 1)
        assert read.kernel == best.kernel
        assert read.lengthscale == pytest.approx(lengths, rel=1e-4)
        assert read.outputscale == pytest.approx(best.outputscale, rel=1e-4)
        wanted = Rescaling(*likelihood.moments(FUNCTIONS[name]))
        assert hyperparameters.rescaling(name, "standardised") == wanted


@pytest.mark.slow
def test_processes_make_the_same_table(capsys):
    likelihood.main(SMALL)
    alone = capsys.readouterr().out
    likelihood.main([*SMALL, "--workers", "2"])
    assert capsys.readouterr().out == alone


def test_unknown_functions_and_scales_are_refused(tmp_path):
    out = tmp_path / "table.csv"
    with pytest.raises(
        ValueError, match=r"functions must be some of ackley.*got nothing\. Choose among them"
    ):
        likelihood.main(["--functions", "trid,nothing", "--out", str(out)])
    assert not out.exists()
    for refusing in (hyperparameters.recovered, hyperparameters.rescaling, hyperparameters.likelihood):
        with pytest.raises(ValueError, match=r"function must be one of ackley.*got 'nothing'\. Choose one"):
            refusing("nothing", "standardised" if refusing is hyperparameters.likelihood else "raw")
        with pytest.raises(ValueError, match=r"scale must be one of .*; got 'big'\. Choose one of them"):
            refusing("ackley", "big")


@pytest.mark.usefixtures("empty_cache")
def test_a_table_with_an_unknown_kernel_is_refused(tmp_path, monkeypatch):
    (tmp_path / "likelihood.csv").write_text(
        "function,kernel,lengthscale_cubic,outputscale_cubic\ntrid,cubic,1,1\n"
    )
    monkeypatch.setattr(hyperparameters, "TABLES", tmp_path)
    with pytest.raises(ValueError, match=r"kernel of trid must be one of .*; got 'cubic'\. Mend the table"):
        hyperparameters.likelihood("trid")
