"""The model of a study: the posterior given answers, and what was learned from them."""

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import torch
from gpytorch.kernels import Kernel
from jaxtyping import Float
from torch import Tensor

from askwise.errors import Refused
from askwise.loop import EP_TOLERANCE
from askwise.model import (
    EXPECTED_SHARE,
    Belief,
    Data,
    Kernels,
    Learnable,
    Observer,
    Stationary,
    averaged,
    covariance,
    fit,
    infer,
    margin_interval,
    refit_count,
    with_fitted_margin,
    with_parameters,
    with_rater_column,
)
from askwise.numerics import generator, one_thread
from askwise.search import Search
from askwise.space import Setting
from askwise.study.answers import Answer
from askwise.study.people import People
from askwise.study.plan import Plan, no_answers
from askwise.study.raters import Estimate, Raters, raters
from askwise.study.recent import Recent
from askwise.study.searching import search_about
from askwise.study.shelf import Kept, Shelf
from askwise.study.state import Answered, as_text


class Model:
    """The posterior given answers: a pure function of these and of the plan, with a cache.

    The kernel is learned from the first answers only, as many as the refit schedule says: so most queries
    do not wait for a refit, and no query depends on what this process computed before.
    """

    def __init__(self, plan: Plan, shelf: Shelf | None = None) -> None:
        """A model of the answers to a study with this plan; kernels on the shelf are not learned again."""
        self.plan, self._shelf = plan, shelf if isinstance(plan.kernel, str) else None
        self.data = functools.lru_cache(maxsize=8)(self._data)
        self.learned = functools.lru_cache(maxsize=256)(self._learn)  # of hundreds of people, 50 KB each
        self._inferred = functools.lru_cache(maxsize=4)(self._infer)
        self.recent = Recent()
        """What was told of the belief."""
        self._searches = Recent(4)  # each may keep some MB
        self._shown = functools.lru_cache(maxsize=4096)(lambda answered: self.points(answered.options))

    def prepared(self, answers: tuple[Answered, ...]) -> tuple[Data, Kernel | Kernels]:
        """The answers as rows, and the prior for them; several, in a study that averages."""
        learned = self.learned(answers[: refit_count(len(answers))])
        data, margin = self.data(answers), learned.margin
        data = data.with_margin(margin) if data.has_ties and margin > 0 else data
        return applied(learned.observer, data), learned.prior

    def belief(self, answers: tuple[Answered, ...], participant: str | None = None) -> Belief:
        """The posterior, of a population study about one of the people; None for what all have in common."""
        belief = self._inferred(answers)
        if self.plan.people.participants != "population" or participant is None:
            return belief
        observer, rater = self.observer(answers), self.rater(answers, participant)
        assert observer is not None
        return belief.of_rater(rater, observer.noise[min(rater, len(observer.noise) - 1)])

    def searched(
        self, answers: tuple[Answered, ...], participant: str | None, context: Setting | None
    ) -> tuple[Belief, Search]:
        """The posterior, and the search by which a setting is recommended and the next question is chosen."""

        def begun() -> tuple[Belief, Search]:
            belief = self.belief(answers, participant)
            return belief, search_about(belief, self.plan, self.plan.space.domain(context))

        return self._searches.get((answers, participant, as_text(context)), begun)

    def observer(self, answers: tuple[Answered, ...]) -> Observer | None:
        """What is known of how people answer, if anything is assumed."""
        return self.learned(answers[: refit_count(len(answers))]).observer

    def rater(self, answers: tuple[Answered, ...], participant: str | None) -> int:
        """The number of a participant, in the order of their first answers; the next one for a newcomer."""
        raters = list(dict.fromkeys(one.participant for one in answers))
        return raters.index(participant) if participant in raters else len(raters)

    def answered(
        self, answers: tuple[Answered, ...], points: Float[Tensor, "m d"], answer: Answer, who: str | None
    ) -> Data:
        """The rows of one more answer, by this participant."""
        if self.plan.people.participants == "population":
            points = with_rater_column(points, self.rater(answers, who))
        rows = answer.rows(points[None], [answer], self.plan.people.threshold)
        if self.plan.people.participants == "population":
            rows = rows.with_raters()
        observer = self.observer(answers)
        return rows if observer is None else observer.applied(rows)

    def is_ready(self, answers: tuple[Answered, ...]) -> bool:
        """Whether the answers suffice for a model: yes/no answers must have both outcomes."""
        return bool(answers) and self.plan.kind.has_both_outcomes(self.data(answers))

    def points(self, settings: Sequence[Setting]) -> Float[Tensor, "m d"]:
        """Settings as points of the unit cube; outside it if they are out of a range that was narrowed."""
        return torch.stack([self.plan.space.extended_unit(setting) for setting in settings])

    def _data(self, answers: tuple[Answered, ...]) -> Data:
        """The answers as rows; consecutive ones of the same kind together, since adding data is slow."""
        together = self.plan.people.participants == "population"
        data, threshold = no_answers(self.plan.space.d + together), self.plan.people.threshold
        raters = {who: number for number, who in enumerate(dict.fromkeys(one.participant for one in answers))}
        for _, run in groupby(
            answers, key=lambda one: (type(one.answer), len(one.options), one.answer.shape)
        ):
            alike = list(run)
            given = [one.answer for one in alike]
            points = [self._shown(one) for one in alike]
            if together:
                each = zip(points, alike, strict=True)
                points = [with_rater_column(point, raters[one.participant]) for point, one in each]
            data = data + given[0].rows(torch.stack(points), given, threshold)
        return data.with_raters() if together else data

    @one_thread()
    def _learn(self, answers: tuple[Answered, ...]) -> "Learned":
        given = self.plan.kernel
        prior = given if isinstance(given, Kernel) else self.plan.expected_kernel()
        if self._shelf is not None and (kept := self._shelf.get(answers)) is not None:
            return Learned.kept(kept, prior)
        data = self.data(answers)
        observer, learn = expected_people(self.plan.people, data)
        data = data.with_margin(with_fitted_margin(applied(observer, data), prior).margin)
        margin, fixed = data.margin.item(), isinstance(given, Kernel)
        if fixed and not learn:
            return Learned(prior, margin, observer)
        rough = self.plan.averages
        fitted = fit(data, prior, observer=observer, learn=learn, fixed=fixed, roughly=rough)
        found, kernels = fitted.observer, None
        if self.plan.averages:
            source = generator("askwise study", self.plan.seed, "kernels", len(answers))
            kernels = averaged(applied(found, data), fitted.kernel, source)
        people = None if found is None else found.with_newcomer()
        learned = Learned(fitted.kernel, margin, people, kernels)
        if self._shelf is not None:
            self._shelf.put(answers, learned.to_keep())
        return learned

    @one_thread()
    def by_rater(self, answers: tuple[Answered, ...]) -> Belief:
        """The belief of a study with one taste, with points of different people kept apart."""
        apart = Model(replace(self.plan, people=replace(self.plan.people, participants="population")))
        learned = self.learned(answers[: refit_count(len(answers))])
        data = apart.data(answers)
        data = data.with_margin(learned.margin) if data.has_ties and learned.margin > 0 else data
        return infer(applied(learned.observer, data), learned.kernel)

    @one_thread()
    def raters(self, answers: tuple[Answered, ...]) -> Raters:
        """What is learned of the people, from the answers of the last refit."""
        known = answers[: refit_count(len(answers))]
        if not known:
            raise Refused("study", "have answers to learn from", "none", "Answer some questions first.")
        data = self.data(known).with_margin(self.learned(known).margin)
        observer, learn = expected_people(self.plan.people, data)
        if observer is None:
            advice = "Give the study lapses='learned', or participants='population'."
            raise Refused("study", "learn something of the people", "one that does not", advice)
        fixed = isinstance(self.plan.kernel, Kernel)
        fitted = fit(
            data,
            self.learned(known).kernel if fixed else self.plan.expected_kernel(),
            observer=observer,
            learn=learn,
            fixed=fixed,
            deviations=bool(learn),
        )
        apart = self.plan.people.participants == "population"
        counts = Counter(one.participant if apart else None for one in answers)
        people = list(dict.fromkeys(one.participant if apart else None for one in known))
        margin = None
        if data.has_ties:
            prior = self.plan.kernel if isinstance(self.plan.kernel, Kernel) else self.plan.expected_kernel()
            interval = margin_interval(applied(observer, data), prior)
            margin = Estimate(self.learned(known).margin, interval)
        return raters(people, [counts[who] for who in people], fitted, learn, margin)

    @one_thread()
    def _infer(self, answers: tuple[Answered, ...]) -> Belief:
        observer, belief = self.observer(answers), infer(*self.prepared(answers), tolerance=EP_TOLERANCE)
        slopes = self.plan.people.noise == "setting" and observer is not None
        return belief.with_noise_slopes(observer.slopes) if slopes and observer is not None else belief


@dataclass(frozen=True)
class Learned:
    """What was learned from answers: the kernel, the margin of ties, and how people answer."""

    kernel: Kernel
    """The one of highest posterior."""
    margin: float
    observer: Observer | None = None
    kernels: Kernels | None = None
    """Those to average over, in a study that does."""

    @property
    def prior(self) -> Kernel | Kernels:
        """What the belief is inferred with."""
        return self.kernel if self.kernels is None else self.kernels

    @classmethod
    def kept(cls, found: Kept, prior: Kernel) -> "Learned":
        """What another program has learned, to the last bit."""
        observer = None if found.observer is None else Observer(**_tensors(found.observer))
        kernels = None
        if found.kernels is not None:
            parts, family = _tensors(found.kernels), covariance(prior)
            assert isinstance(family, Stationary)
            each = Stationary(family.name, parts.pop("lengthscale"), parts.pop("outputscale"))
            kernels = Kernels(each, **parts)
        return cls(with_parameters(prior, found.parameters), found.margin, observer, kernels)

    def to_keep(self) -> Kept:
        """As plain numbers."""
        raw = {name: part.tolist() for name, part in self.kernel.named_parameters()}
        people = None if self.observer is None else _numbers(**vars(self.observer))
        if (several := self.kernels) is None:
            return Kept(self.margin, raw, people)
        shape = {"lengthscale": several.prior.lengthscale, "outputscale": several.prior.outputscale}
        found = _numbers(**shape, log_evidence=several.log_evidence, tau=several.tau, nu=several.nu)
        return Kept(self.margin, raw, people, found)


def _numbers(**parts: Tensor) -> dict[str, Any]:
    return {name: part.tolist() for name, part in parts.items()}


def _tensors(parts: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: torch.tensor(part, dtype=torch.float64) for name, part in parts.items()}


def applied(observer: Observer | None, data: Data) -> Data:
    """The rows as these people answer them."""
    return data if observer is None else observer.applied(data)


def expected_people(people: People, data: Data) -> tuple[Observer | None, tuple[Learnable, ...]]:
    """The people as they are expected, and what is to be learned of them."""
    population = people.participants == "population"
    raters = int(data.rater.max()) + 1 if population and data.n else 1
    learn: list[Learnable] = []
    if people.lapses == "learned" and data.n:
        learn.append("lapse")
    if population and raters > 1:
        learn += ["noise", "share"]
    if people.noise == "setting" and data.n:
        learn.append("slopes")
    if not (learn or people.lapses or people.guess or population):
        return None, ()
    expected = Observer.start(data, raters, learn, people.guess)
    if isinstance(people.lapses, int | float):
        expected = replace(expected, lapse=torch.full_like(expected.lapse, people.lapses))
    if population and raters == 1:
        expected = replace(expected, share=torch.full_like(expected.share, EXPECTED_SHARE))
    return expected, tuple(learn)
