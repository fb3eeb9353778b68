"""Batches of three to nine."""

from askwise.bench.experiments.base import Arm, Experiment

SIZES = (3, 5, 7, 9)
RULES = ("muc", "muc_joint", "random")

EXPERIMENT = Experiment(
    name="batch-sizes",
    title="Batches of three to nine",
    about="What larger batches bring, and whether it pays to choose their members so that they tell "
    "different things (muc_joint).  All comparisons of a batch are answered.",
    arms=tuple(Arm(rule, m, f"{rule} m={m}") for m in SIZES for rule in RULES),
    replicates=20,
    iterations=30,
    initial=2,
    scale="standardised",
    prior="likelihood",
).registered()
