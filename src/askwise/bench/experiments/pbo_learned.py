"""Duels of somebody who does not know the kernel."""

from dataclasses import replace

from askwise.bench.experiments.pbo import EXPERIMENT as PBO

EXPERIMENT = replace(
    PBO,
    name="pbo-learned",
    title="Duels, with kernels learned on the way",
    about="The same as pbo, but the kernel is learned from the answers, as a study does it: no user knows "
    "it.",
    prior="learned",
).registered()
