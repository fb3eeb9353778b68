"""Benchmark functions in the units of an experiment, and the tables of kernels and scales."""

import math
import re
from dataclasses import replace

import pytest
import torch
from scipy.stats import norm

from askwise.bench import problems
from askwise.bench.functions import FUNCTIONS, register_function
from askwise.bench.problems import Hyperparameters, Problem, Rescaling, likelihood, moments, recovered
from askwise.bench.published import PAPER
from askwise.model.kernels import covariance
from tensors import f64, uniform

HOUSE = re.compile(r"^[^;\n]+ must [^;\n]+; got [^\n]+\. [^\n]+$")
each_name = pytest.mark.parametrize("name", FUNCTIONS)
each_of_the_paper = pytest.mark.parametrize("name", PAPER)


def six_hump_camel(x: float, y: float) -> float:
    """To be maximised, on [-3, 3] x [-2, 2]."""
    return -((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2)


def sum_squares(x: float, y: float) -> float:
    """To be maximised, on [-10, 10] squared."""
    return -(x**2 + 2 * y**2)


UNIT = [(0.25, 0.75), (0.9, 0.1), (0.0, 1.0)]


def test_raw_values_are_those_of_the_function_on_its_box():
    found = Problem.of("six_hump_camel", "raw").value(f64(UNIT))
    want = [six_hump_camel(6 * u - 3, 4 * v - 2) for u, v in UNIT]
    torch.testing.assert_close(found, f64(want))


def test_rescaled_values_follow_the_published_constants():
    found = Problem.of("six_hump_camel", "rescaled").value(f64(UNIT))
    raw = f64([six_hump_camel(6 * u - 3, 4 * v - 2) for u, v in UNIT])
    torch.testing.assert_close(found, (raw + 20.30997977) / math.sqrt(699.191725))


def test_rescaled_values_of_some_functions_are_logarithms():
    found = Problem.of("sum_squares", "rescaled").value(f64(UNIT))
    want = [
        -(math.log(-sum_squares(20 * u - 10, 20 * v - 10)) - 4.25653788) / math.sqrt(1.096098071)
        for u, v in UNIT
    ]
    torch.testing.assert_close(found, f64(want))


def test_standardised_values_have_mean_0_and_variance_1_and_no_logarithm():
    # of f = x^2 + 2 y^2 on [-10, 10]^2 the mean is 100 and the variance 5 (100^2 / 5 - 100^2 / 9)
    found = Problem.of("sum_squares", "standardised").value(f64(UNIT))
    raw = f64([sum_squares(20 * u - 10, 20 * v - 10) for u, v in UNIT])
    exact = (raw + 100) / math.sqrt(5 * (1e4 / 5 - 1e4 / 9))
    torch.testing.assert_close(found, exact, rtol=0, atol=0.05)  # the table has them from a sample
    slope = (found[0] - found[1]) / (raw[0] - raw[1])
    torch.testing.assert_close(found, found[0] + slope * (raw - raw[0]))


@pytest.mark.parametrize("scale", ["raw", "rescaled", "standardised"])
@pytest.mark.parametrize("name", PAPER)
def test_nothing_is_better_than_the_best(name, scale):
    problem = Problem.of(name, scale)
    at = problem.function.normalised(f64(problem.function.argmax))
    near = (at + 10.0 ** -uniform(200, 1, seed=1).mul(20) * (uniform(200, len(at)) - 0.5)).clamp(0, 1)
    found = problem.value(torch.cat([at[None], near, uniform(300, len(at), seed=2)]))
    assert not found.isnan().any()
    if math.isinf(problem.best):
        assert problem.best > 0
        assert found[0] > found[-300:].max()
        return
    size = 1 + abs(problem.best)
    assert found.max() <= problem.best + 1e-9 * size
    assert found[0] >= problem.best - 1e-6 * size


def test_the_best_is_infinite_where_the_logarithm_of_zero_is_taken():
    infinite = {name for name in PAPER if math.isinf(Problem.of(name, "rescaled").best)}
    assert {"beale", "levy", "sphere", "griewank"} <= infinite
    assert not infinite & {"six_hump_camel", "hartmann6", "schwefel", "goldstein_price"}
    for scale in ("raw", "standardised"):
        assert all(math.isfinite(Problem.of(name, scale).best) for name in FUNCTIONS)


def test_the_best_of_goldstein_price_is_the_logarithm_of_three():
    want = (8.709023035 - math.log(3)) / math.sqrt(5.916930194)
    assert Problem.of("goldstein_price", "rescaled").best == pytest.approx(want, rel=1e-12)


def test_scores_are_values_or_the_probability_of_a_yes():
    problem, x = Problem.of("trid", "rescaled"), uniform(4, 3, 2)
    value = problem.value(x)
    assert torch.equal(problem.score(x, "value"), value)
    torch.testing.assert_close(problem.score(x, "probability"), f64(norm.cdf(value)))
    middle = f64([[0.5, 0.5]])  # where the sphere has its maximum, whose logarithm is infinite
    assert Problem.of("sphere", "rescaled").score(middle, "probability").item() == 1.0


def test_priors_are_those_of_the_tables_in_the_units_of_the_problem():
    raw, rescaled, standardised = (Problem.of("levy", scale) for scale in ("raw", "rescaled", "standardised"))
    assert raw.hyperparameters("recovered") == recovered("levy", "raw")
    assert rescaled.hyperparameters("recovered") == recovered("levy", "rescaled")
    assert standardised.hyperparameters("likelihood") == likelihood("levy")
    assert raw.hyperparameters("recovered") != rescaled.hyperparameters("recovered")
    assert {each.hyperparameters("learned") for each in (raw, rescaled, standardised)} == {None}


def test_priors_for_other_units_are_refused():
    for scale, prior in (("standardised", "recovered"), ("raw", "likelihood"), ("rescaled", "likelihood")):
        with pytest.raises(ValueError, match=f"^scale must be one of .*; got {scale!r}") as caught:
            Problem.of("levy", scale).hyperparameters(prior)
        assert HOUSE.match(str(caught.value))


def test_unknown_functions_are_refused():
    with pytest.raises(ValueError, match=r"^function must be one of ackley, .*; got 'parabola'\. ") as caught:
        Problem.of("parabola", "raw")
    assert HOUSE.match(str(caught.value))


def test_equal_problems_are_one_and_others_are_not():
    one = Problem.of("trid", "raw")
    assert (
        len({one, Problem.of("trid", "raw"), replace(one, units="rescaled"), Problem.of("levy", "raw")}) == 3
    )


# tables


def test_recovered_values_are_the_published_ones():
    assert problems.recovered("ackley", "raw") == Hyperparameters("matern32", (4.85263, 4.85263), 22026.5)
    assert problems.recovered("ackley", "rescaled") == Hyperparameters(
        "matern32", (5.421614332, 5.421614332), 4941.243715
    )
    assert problems.recovered("hartmann3", "raw") == Hyperparameters(
        "se", (0.558643, 0.271406, 0.154784), 0.0574259
    )
    assert problems.recovered("ursem_waves", "rescaled") == Hyperparameters(
        "se", (0.09596625335, 0.1190092775), 0.3326965091
    )


@each_of_the_paper
def test_recovered_kernels_are_the_functions_own(name):
    for scale in ("raw", "rescaled"):
        recovered = problems.recovered(name, scale)
        assert recovered.kernel == FUNCTIONS[name].kernel
        assert len(recovered.lengthscale) == FUNCTIONS[name].dim
        built = covariance(recovered.gpytorch())
        assert built.name == recovered.kernel
        torch.testing.assert_close(built.lengthscale, f64(recovered.lengthscale))
        assert built.outputscale.item() == pytest.approx(recovered.outputscale)


def test_the_published_scale_takes_logarithms_of_17_functions():
    logged = [name for name in PAPER if problems.rescaling(name, "rescaled").log]
    assert logged == [
        *("beale", "bohachevsky", "three_hump_camel", "colville", "dixon_price", "goldstein_price"),
        *("griewank", "levy", "levy13", "perm0", "perm", "powell", "rosenbrock"),
        *("rotated_hyper_ellipsoid", "schwefel", "sphere", "sum_squares"),
    ]


def test_rescaled_values_follow_the_published_formula():
    beale, trid = (problems.rescaling(name, "rescaled") for name in ("beale", "trid"))
    wanted = -(math.log(170.0) - 6.035114717) / math.sqrt(9.49607998)
    assert beale(f64(-170.0)).item() == pytest.approx(wanted, rel=1e-12)
    assert trid(f64(1.5)).item() == pytest.approx(-(-1.5 - 12.72624612) / math.sqrt(117.2082049), rel=1e-12)
    assert beale(FUNCTIONS["beale"](f64([3.0, 0.5]))).item() == math.inf
    assert beale == Rescaling(6.035114717, 9.49607998, log=True)
    assert trid == Rescaling(-12.72624612, 117.2082049)
    assert problems.rescaling("trid", "raw")(f64(1.5)).item() == 1.5


@each_of_the_paper
def test_published_constants_give_mean_0_and_variance_1(name):
    """They come from 50 000 draws of the authors; ours are others."""
    function = FUNCTIONS[name]
    values = problems.rescaling(name, "rescaled")(function.unit(uniform(2**15, function.dim)))
    assert_standardised(values, draws=2**15 + 50_000)


@each_name
def test_standardised_functions_have_mean_0_and_variance_1(name):
    function = FUNCTIONS[name]
    rescaling = problems.rescaling(name, "standardised")
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


def test_unknown_functions_and_scales_are_refused():
    for refusing in (problems.recovered, problems.rescaling, problems.likelihood):
        with pytest.raises(ValueError, match=r"function must be one of ackley.*got 'nothing'\. Choose one"):
            refusing("nothing", "standardised" if refusing is problems.likelihood else "raw")
        with pytest.raises(ValueError, match=r"scale must be one of .*; got 'big'\. Choose one of them"):
            refusing("ackley", "big")


# functions without a row


@pytest.fixture
def booth():
    """A function that no table knows, as a plug-in registers it."""

    @register_function("Booth", box=((-10.0, 10.0), (-10.0, 10.0)), kernel="se", argmax=(1.0, 3.0), max=0.0)
    def booth(x: torch.Tensor) -> torch.Tensor:
        a, b = x.unbind(-1)
        return (a + 2 * b - 7) ** 2 + (2 * a + b - 5) ** 2

    yield booth
    del FUNCTIONS["booth"]


def test_a_function_without_a_row_is_standardised_by_its_own_moments(booth):
    values = Problem.of("booth", "standardised").value(uniform(2**16, 2))
    assert_standardised(values, draws=2**16)
    mean, variance = moments(booth)
    # exactly: x^2 has mean 100/3 and variance 20000/45 on [-10, 10]
    assert mean == pytest.approx(-(10 * 100 / 3 + 49 + 25), rel=1e-6)
    assert problems.rescaling("booth", "standardised") == Rescaling(mean, variance)
    assert Problem.of("booth", "standardised").best == pytest.approx(-mean / math.sqrt(variance))
    assert Problem.of("booth", "raw").value(f64([0.55, 0.65])).item() == 0
    assert Problem.of("booth", "standardised").hyperparameters("learned") is None


def test_moments_do_not_depend_on_the_number_of_threads():
    torch.set_num_threads(2)
    several = moments.__wrapped__(FUNCTIONS["eggholder"], 2**18)
    torch.set_num_threads(1)
    assert moments.__wrapped__(FUNCTIONS["eggholder"], 2**18) == several


@pytest.mark.usefixtures("booth")
@pytest.mark.parametrize(
    ("prior", "scale", "known"),
    [
        ("recovered", "raw", "the authors' constants"),
        ("recovered", "rescaled", "the authors' constants"),
        ("likelihood", "standardised", "maximum-likelihood kernels"),
    ],
)
def test_a_prior_without_a_row_for_the_function_is_refused_in_words(prior, scale, known):
    with pytest.raises(ValueError, match=f"function must be one of ackley, .*, for which {known}") as caught:
        Problem.of("booth", scale).hyperparameters(prior)
    assert HOUSE.match(str(caught.value))
    assert "got 'booth'. " in str(caught.value)


def test_units_that_need_a_row_are_refused_at_once(booth):
    with pytest.raises(ValueError, match="the authors' constants are known; got 'booth'"):
        Problem.of("booth", "rescaled")


@pytest.mark.parametrize("value", [math.inf, math.nan, 3.0])
def test_a_function_that_cannot_be_standardised_is_refused(booth, value):
    broken = replace(booth, formula=lambda x: torch.full_like(x[..., 0], value))
    with pytest.raises(ValueError, match="values of booth must have a finite mean") as caught:
        moments(broken)
    assert HOUSE.match(str(caught.value))


@pytest.fixture
def empty_cache():
    problems._table.cache_clear()
    yield
    problems._table.cache_clear()


@pytest.mark.usefixtures("empty_cache")
def test_a_table_with_an_unknown_kernel_is_refused(tmp_path, monkeypatch):
    (tmp_path / "likelihood.csv").write_text(
        "function,kernel,lengthscale_cubic,outputscale_cubic\ntrid,cubic,1,1\n"
    )
    monkeypatch.setattr(problems, "TABLES", tmp_path)
    with pytest.raises(
        ValueError, match=r"kernel of trid must be one of .*; got 'cubic'\. Correct the table"
    ):
        problems.likelihood("trid")
