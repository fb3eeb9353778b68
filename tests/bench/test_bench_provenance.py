"""How results were computed: experiments in JSON, and the command that runs them."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from askwise.bench import provenance
from askwise.bench.experiments import EXPERIMENTS

WHOLE = EXPERIMENTS["batch-as-run"]


def test_the_command_names_only_options_that_differ_from_the_defaults():
    assert provenance.command(WHOLE, Path("x")) == "askwise bench run batch-as-run --out x"
    beta = EXPERIMENTS["beta"].reduced(rules=("ucb_phi(beta=5.0)",), iterations=3)
    assert provenance.command(beta, Path("x")) == (
        "askwise bench run beta --rules 'ucb_phi(beta=5.0)' --iterations 3 --out x"
    )


def test_the_command_names_modules_before_the_directory():
    assert provenance.command(WHOLE, Path("x"), ["mine", "other"]) == (
        "askwise bench run batch-as-run --import mine --import other --out x"
    )
    assert provenance.command(WHOLE) == "askwise bench run batch-as-run"


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_every_experiment_is_read_back_from_json(name):
    document = json.loads(json.dumps(asdict(EXPERIMENTS[name])))
    assert provenance.experiment_of(document) == EXPERIMENTS[name]
