"""What an experiment is, and those that exist; ``Experiment(...).registered()`` adds another."""

from dataclasses import dataclass, field, replace
from typing import Any

from askwise.bench.functions import named
from askwise.bench.problems import Metric, Prior, Units
from askwise.bench.published import PAPER
from askwise.bench.user import User
from askwise.errors import Refused
from askwise.rules import parse

EXPERIMENTS: "dict[str, Experiment]" = {}
"""Every experiment by name."""


@dataclass(frozen=True)
class Arm:
    """A rule, and the number of points in each of its queries."""

    rule: str
    m: int
    label: str = ""  # its name in results: the rule, unless several arms share it

    def __post_init__(self) -> None:
        """Normalise the spelling of the rule."""
        object.__setattr__(self, "rule", str(parse(self.rule)))
        object.__setattr__(self, "label", self.label or self.rule)

    @property
    def pairs(self) -> int:
        """Answers to a query: one for each pair of its points, or yes/no to a single point."""
        return max(1, self.m * (self.m - 1) // 2)


@dataclass(frozen=True)
class Experiment:
    """A grid of runs: each arm on each function, ``replicates`` times, for ``iterations`` queries."""

    name: str
    title: str
    about: str  # its purpose, in a sentence or two
    arms: tuple[Arm, ...]
    replicates: int
    iterations: int
    initial: int  # random queries before the rule takes over, the same for all rules
    scale: Units  # of the function as the user perceives it
    prior: Prior  # the source of the kernel and its parameters
    score: Metric = "value"
    functions: tuple[str, ...] = PAPER
    user: User = field(default_factory=User)
    family: str = "matern52"  # of kernels that are learned or averaged

    def __post_init__(self) -> None:
        """Refuse an experiment without queries, or with duplicate functions or rules."""
        for what in ("replicates", "iterations", "initial"):
            if getattr(self, what) < 1:
                raise Refused(what, "be 1 or more", getattr(self, what), "Ask for at least one.")
        for what, names in (("functions", self.functions), ("rules", [arm.label for arm in self.arms])):
            if not names or len(set(names)) < len(names):
                given = ", ".join(names) or "none"
                raise Refused(what, "be one or more, each once", given, "Name each once.")
        if self.user.margin and any(arm.m != 2 for arm in self.arms):
            sizes = ", ".join(sorted({str(arm.m) for arm in self.arms}))
            raise Refused("queries", "be duels if a user can't decide", sizes, "Set the margin to 0.")
        if (self.user.margin or self.user.people > 1) and self.prior not in ("learned", "averaged"):
            advice = "Choose learned or averaged kernels."
            raise Refused("prior", "be learned along with what people are like", repr(self.prior), advice)

    @property
    def lane_iterations(self) -> int:
        """Number of queries in the whole experiment."""
        return len(self.arms) * len(self.functions) * self.replicates * self.iterations

    def arm(self, label: str) -> Arm:
        """The arm of this label."""
        known = {arm.label: arm for arm in self.arms}
        if label not in known:
            raise Refused("rule", f"be one of {', '.join(known)}", repr(label), "Choose some of these.")
        return known[label]

    def reduced(
        self,
        functions: tuple[str, ...] | None = None,
        rules: tuple[str, ...] | None = None,
        replicates: int | None = None,
        iterations: int | None = None,
    ) -> "Experiment":
        """The same experiment on other functions, with some of the rules, or with fewer and shorter runs.

        A run that belongs to both is the same in both, up to the length of the shorter one.
        """
        for name in functions or ():
            named(name)
        arms = None if rules is None else tuple(self.arm(rule) for rule in rules)
        changed: dict[str, Any] = {"functions": functions, "arms": arms}
        changed |= {"replicates": replicates, "iterations": iterations}
        return replace(self, **{name: new for name, new in changed.items() if new is not None})

    def registered(self) -> "Experiment":
        """This experiment, now in :data:`EXPERIMENTS`."""
        if self.name in EXPERIMENTS:
            raise Refused("experiment", "have a name of its own", f"{self.name!r} twice", "Rename one.")
        EXPERIMENTS[self.name] = self
        return self


def _arms(m: int, *rules: str) -> tuple[Arm, ...]:
    return tuple(Arm(rule, m) for rule in rules)


# UCB_f also with the weight of UCB_Phi, so that the two are compared at the same one
_BINARY = _arms(1, "ucb_phi", "ucb_f", "ucb_f(beta=2.33)", "thompson", "binary_ei", "random")
_PUBLISHED_DUELS = _arms(
    2,
    *("muc", "dueling_ucb", "bivariate_ei", "duel_thompson", "dueling_thompson", "kss"),
    *("eiig(k=0.5)", "eiig(k=0.1)", "ei", "random"),
)
_DUELS = (
    *_PUBLISHED_DUELS[:-1],
    *_arms(2, "eubo", "dueling_ucb_phi", "max_entropy_challenge", "hallucination_believer", "random"),
)
_BATCHES = _arms(3, "muc", "kss", "random")
_JOINT_BATCHES = _arms(3, "muc", "muc_joint", "kss", "random")
_SIZES = tuple(Arm(rule, m, f"{rule} m={m}") for m in (3, 5, 7, 9) for rule in ("muc", "muc_joint", "random"))
# a rule without a value has the beta of the paper, 2.33 for UCB_Phi and 1 for UCB_f
_BETAS = _arms(
    1,
    *("ucb_phi(beta=0.5)", "ucb_phi(beta=1.0)", "ucb_phi", "ucb_phi(beta=5.0)"),
    *("ucb_f(beta=0.5)", "ucb_f", "ucb_f(beta=2.33)", "ucb_f(beta=5.0)"),
)

_Design = tuple[Units, Prior, Metric]
_STANDARDISED: _Design = ("standardised", "likelihood", "value")
_RAW: _Design = ("raw", "recovered", "value")
_RESCALED: _Design = ("rescaled", "recovered", "probability")
_LEARNED: _Design = ("standardised", "learned", "value")
_AVERAGED: _Design = ("standardised", "averaged", "value")

# name, title, arms, (replicates, iterations, initial), (units, prior, metric)
_TABLE: tuple[tuple[str, str, tuple[Arm, ...], tuple[int, int, int], _Design], ...] = (
    ("batch", "Batches of three, standardised", _BATCHES, (30, 30, 5), _STANDARDISED),
    ("batch-averaged", "Batches, with kernels averaged on the way", _JOINT_BATCHES, (10, 30, 5), _AVERAGED),
    ("batch-as-run", "Batches of three, as the published table was made", _BATCHES, (30, 30, 6), _RAW),
    ("batch-learned", "Batches, with kernels learned on the way", _JOINT_BATCHES, (30, 30, 5), _LEARNED),
    ("batch-sizes", "Batches of three to nine", _SIZES, (20, 30, 2), _STANDARDISED),
    ("bbo", "Yes/no, standardised", _BINARY, (60, 100, 2), _STANDARDISED),
    ("bbo-averaged", "Yes/no, with kernels averaged on the way", _BINARY, (20, 100, 2), _AVERAGED),
    ("bbo-as-run", "Yes/no, as the published table was made", _BINARY, (60, 100, 3), _RESCALED),
    ("bbo-learned", "Yes/no, with kernels learned on the way", _BINARY, (60, 100, 2), _LEARNED),
    ("beta", "Sensitivity to beta", _BETAS, (30, 100, 2), _STANDARDISED),
    ("pbo", "Duels, standardised", _DUELS, (40, 80, 5), _STANDARDISED),
    ("pbo-as-run", "Duels, as the published table was made", _PUBLISHED_DUELS, (20, 50, 6), _RAW),
    ("pbo-averaged", "Duels, with kernels averaged on the way", _DUELS, (20, 80, 5), _AVERAGED),
    ("pbo-learned", "Duels, with kernels learned on the way", _DUELS, (40, 80, 5), _LEARNED),
)
_ABOUT = {
    "batch": "Functions standardised to mean 0 and variance 1, which is our reading: the paper's text does "
    "so for yes/no only; kernels of maximum likelihood; all three comparisons of a batch are answered.",
    "batch-as-run": "Functions in their raw units; the authors' kernels; all three comparisons of a batch "
    "are answered.",
    "batch-averaged": "The same as batch-learned, but rules see the average over eight kernels drawn from "
    "their posterior.",
    "batch-learned": "The same as batch, but the kernel is learned from the answers, as in a study.",
    "batch-sizes": "What larger batches bring, and whether it pays to choose their members jointly, so that "
    "they tell different things (muc_joint). All comparisons of a batch are answered.",
    "bbo": "Functions standardised to mean 0 and variance 1, without a logarithm, and kernels of maximum "
    "likelihood, as in the paper's text.",
    "bbo-as-run": "Functions rescaled by the authors' constants, 17 of them through a logarithm; the "
    "authors' kernels; a run is scored by the probability of a yes.",
    "bbo-averaged": "The same as bbo-learned, but rules see the average over eight kernels drawn from their "
    "posterior.",
    "bbo-learned": "The same as bbo, but the kernel is learned from the answers, as in a study, since no "
    "user knows it.",
    "beta": "The two upper credible bounds with other weights of uncertainty, with the kernels of bbo.",
    "pbo": "Functions standardised to mean 0 and variance 1, which is our reading: the paper's text does so "
    "for yes/no only; kernels of maximum likelihood.",
    "pbo-as-run": "Functions in their raw units, in which many duels are certain and others all noise; the "
    "authors' kernels.",
    "pbo-averaged": "The same as pbo-learned, but rules see the average over eight kernels drawn from their "
    "posterior, so that the kernel is uncertain, too.",
    "pbo-learned": "The same as pbo, but the kernel is learned from the answers, as in a study, since no "
    "user knows it.",
}
for _name, _title, _compared, _runs, _design in _TABLE:
    Experiment(_name, _title, _ABOUT[_name], _compared, *_runs, *_design).registered()
for _times, _word in ((3, "three"), (10, "ten")):
    for _kernels, _design in (("averaged", _AVERAGED), ("learned", _LEARNED)):
        Experiment(
            f"pbo-{_kernels}-{_times}",
            f"Duels about {_word} times clearer differences, with kernels {_kernels} on the way",
            f"The same as pbo-{_kernels}, but the functions have a standard deviation of {_times} noises.",
            _DUELS,
            *(20, 80, 5),
            *_design,
            user=User(noise=1 / _times),
        ).registered()
    replace(
        EXPERIMENTS[f"pbo-averaged-{_times}"],
        name=f"pbo-rough-{_times}",
        title=f"Duels about {_word} times clearer differences, with rougher kernels averaged on the way",
        about=f"The same as pbo-averaged-{_times}, but the kernels are Matern 3/2, not 5/2.",
        family="matern32",
    ).registered()
_LIKE_PEOPLE = (
    (
        *("lapses", "Duels with lapses", User(1 / 3, lapses=0.05)),
        "5% of the answers are given without looking; the lapse rate is learned, too.",
    ),
    (
        *("ties", "Duels with ties", User(1 / 3, margin=0.5)),
        "who feels a difference of less than half a noise can't decide; the margin is learned, too.",
    ),
    (
        *("raters", "Duels with several people", User(1 / 3, people=5, own=0.3)),
        "five people answer in turn; 30% of the variance of a taste is one's own. What all like is sought.",
    ),
)
for _name, _title, _user, _about in _LIKE_PEOPLE:
    _same = "The same as pbo-learned-3, functions with a standard deviation of three noises, but "
    Experiment(
        f"pbo-{_name}", _title, _same + _about, _DUELS, *(20, 80, 5), *_LEARNED, user=_user
    ).registered()
