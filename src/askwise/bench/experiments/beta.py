"""How much the weight of doubt matters."""

from askwise.bench.experiments.base import Arm, Experiment

WEIGHTS = {"ucb_phi": ("0.5", "1.0", None, "5.0"), "ucb_f": ("0.5", None, "2.33", "5.0")}
"""Values of beta; None is the paper's, 2.33 for UCB_Phi and 1 for UCB_f."""
ARMS = tuple(
    Arm(rule if beta is None else f"{rule}(beta={beta})", 1)
    for rule, betas in WEIGHTS.items()
    for beta in betas
)

EXPERIMENT = Experiment(
    name="beta",
    title="Sensitivity to beta",
    about="The two upper credible bounds with other weights of doubt, with the kernels of bbo.",
    arms=ARMS,
    replicates=30,
    iterations=100,
    initial=2,
    scale="standardised",
    prior="likelihood",
).registered()
