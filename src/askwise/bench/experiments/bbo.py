"""Yes/no answers as the paper's text describes them."""

from askwise.bench.experiments.base import Arm, Experiment

EXPERIMENT = Experiment(
    name="bbo",
    title="Yes/no, as the paper says",
    about="Functions standardised to mean 0 and variance 1, without a logarithm; kernels of maximum "
    "likelihood.",
    arms=tuple(Arm(rule, 1) for rule in ("ucb_phi", "ucb_f", "thompson", "binary_ei", "random")),
    replicates=60,
    iterations=100,
    initial=2,
    scale="standardised",
    prior="likelihood",
).registered()
