"""What an experiment is: rules, functions and a user, and how often and how long."""

from dataclasses import dataclass, field, replace

from askwise.bench.functions import FUNCTIONS
from askwise.bench.problems import Prior, Scale, Score
from askwise.bench.user import User
from askwise.rules import parse

__all__ = ["EXPERIMENTS", "Arm", "Experiment"]

EXPERIMENTS: "dict[str, Experiment]" = {}


@dataclass(frozen=True)
class Arm:
    """A rule, and how many points each of its questions has."""

    rule: str
    m: int
    label: str = ""
    """What the arm is called in results: the rule as it is spelled, unless several arms share it."""

    def __post_init__(self) -> None:
        """Spell the rule in the one way."""
        object.__setattr__(self, "rule", str(parse(self.rule)))
        object.__setattr__(self, "label", self.label or self.rule)


@dataclass(frozen=True)
class Experiment:
    """A grid of runs: each arm on each function, ``replicates`` times, for ``iterations`` questions."""

    name: str
    title: str
    about: str
    """What it is for, in a sentence or two."""
    arms: tuple[Arm, ...]
    replicates: int
    iterations: int
    initial: int
    """Questions asked at random before the rule takes over, the same for all rules."""
    scale: Scale
    """Units in which the user feels the function."""
    prior: Prior
    """Where the kernel and its parameters come from."""
    score: Score = "value"
    functions: tuple[str, ...] = tuple(FUNCTIONS)
    user: User = field(default_factory=User)

    def __post_init__(self) -> None:
        """Refuse an experiment in which nothing is asked, or the same twice."""
        for what in ("replicates", "iterations", "initial"):
            if getattr(self, what) < 1:
                raise ValueError(
                    f"{what} must be 1 or more; got {getattr(self, what)}. Ask for at least one."
                )
        for what, names in (("functions", self.functions), ("rules", [arm.label for arm in self.arms])):
            if not names or len(set(names)) < len(names):
                given = ", ".join(names) or "none"
                raise ValueError(f"{what} must be one or more, each once; got {given}. Name each once.")

    @property
    def iterations_of_lanes(self) -> int:
        """Number of questions in the whole experiment."""
        return len(self.arms) * len(self.functions) * self.replicates * self.iterations

    def arm(self, label: str) -> Arm:
        """The arm of this label."""
        for arm in self.arms:
            if arm.label == label:
                return arm
        known = ", ".join(arm.label for arm in self.arms)
        raise ValueError(f"rule must be one of {known}; got {label!r}. Choose some of these.")

    def reduced(
        self,
        functions: tuple[str, ...] | None = None,
        rules: tuple[str, ...] | None = None,
        replicates: int | None = None,
        iterations: int | None = None,
    ) -> "Experiment":
        """The same with some of the functions and rules only, or fewer and shorter runs.

        A run that is part of both is the same in both, as far as it goes.
        """
        for name in functions or ():
            if name not in self.functions:
                raise ValueError(
                    f"function must be one of {', '.join(self.functions)}; got {name!r}. "
                    "Choose some of these."
                )
        return replace(
            self,
            functions=self.functions if functions is None else functions,
            arms=self.arms if rules is None else tuple(self.arm(rule) for rule in rules),
            replicates=self.replicates if replicates is None else replicates,
            iterations=self.iterations if iterations is None else iterations,
        )

    def registered(self) -> "Experiment":
        """Itself, now to be found under its name."""
        if self.name in EXPERIMENTS:
            raise ValueError(f"experiment must have a name of its own; got {self.name!r} twice. Rename one.")
        EXPERIMENTS[self.name] = self
        return self
