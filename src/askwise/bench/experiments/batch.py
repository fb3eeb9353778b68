"""Batches as the paper's text describes them."""

from askwise.bench.experiments.base import Arm, Experiment

ARMS = tuple(Arm(rule, 3) for rule in ("muc", "kss", "random"))

EXPERIMENT = Experiment(
    name="batch",
    title="Batches of three, as the paper says",
    about="Functions standardised to mean 0 and variance 1; kernels of maximum likelihood; all three "
    "comparisons of a batch are answered.",
    arms=ARMS,
    replicates=30,
    iterations=30,
    initial=5,
    scale="standardised",
    prior="likelihood",
).registered()
