"""Batches as the published table was made."""

from askwise.bench.experiments.base import Experiment
from askwise.bench.experiments.batch import ARMS

EXPERIMENT = Experiment(
    name="batch-as-run",
    title="Batches of three, as the published table was made",
    about="Functions in their raw units; the authors' kernels; all three comparisons of a batch are "
    "answered.",
    arms=ARMS,
    replicates=30,
    iterations=30,
    initial=6,
    scale="raw",
    prior="recovered",
).registered()
