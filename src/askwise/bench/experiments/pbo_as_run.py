"""Duels as the published table was made."""

from askwise.bench.experiments.base import Experiment
from askwise.bench.experiments.pbo import ARMS

EXPERIMENT = Experiment(
    name="pbo-as-run",
    title="Duels, as the published table was made",
    about="Functions in their raw units, in which many duels are certain and others all noise; the authors' "
    "kernels.",
    arms=ARMS,
    replicates=20,
    iterations=50,
    initial=6,
    scale="raw",
    prior="recovered",
).registered()
