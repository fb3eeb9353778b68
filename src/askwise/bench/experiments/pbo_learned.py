"""Duels of somebody who does not know the kernel."""

from dataclasses import replace

from askwise.bench.experiments.pbo import EXPERIMENT as PBO
from askwise.bench.functions import FUNCTIONS

EXPERIMENT = replace(
    PBO,
    name="pbo-learned",
    title="Duels, with kernels learned on the way",
    about="The same as pbo, but the kernel is learned from the answers, as a study does it: no user knows it. "
    "Ten runs, and not the functions of four dimensions: draws of f take long there if each run has its own "
    "kernel.",
    replicates=10,
    prior="learned",
    functions=tuple(name for name, function in FUNCTIONS.items() if function.dim != 4),
).registered()
