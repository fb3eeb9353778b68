"""Duels as the paper's text describes them."""

from askwise.bench.experiments.base import Arm, Experiment

RULES = (
    "muc",
    "dueling_ucb",
    "bivariate_ei",
    "duel_thompson",
    "dueling_thompson",
    "kss",
    "eiig",
    "ei",
    "random",
)
ARMS = tuple(Arm(rule, 2) for rule in RULES)

EXPERIMENT = Experiment(
    name="pbo",
    title="Duels, as the paper says",
    about="Functions standardised to mean 0 and variance 1; kernels of maximum likelihood.",
    arms=ARMS,
    replicates=40,
    iterations=80,
    initial=5,
    scale="standardised",
    prior="likelihood",
).registered()
