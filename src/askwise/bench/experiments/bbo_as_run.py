"""Yes/no answers as the published table was made."""

from askwise.bench.experiments.base import Arm, Experiment

EXPERIMENT = Experiment(
    name="bbo-as-run",
    title="Yes/no, as the published table was made",
    about="Functions rescaled by the authors' constants, 17 of them through a logarithm; the authors' "
    "kernels; a run is judged by the probability of a yes.",
    arms=tuple(Arm(rule, 1) for rule in ("ucb_phi", "ucb_f", "thompson", "binary_ei", "random")),
    replicates=60,
    iterations=100,
    initial=3,
    scale="rescaled",
    prior="recovered",
    score="probability",
).registered()
