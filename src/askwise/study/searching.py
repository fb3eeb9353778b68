"""The search by which a study finds the setting to recommend; its next question comes from one beside it."""

from askwise.model import Belief
from askwise.numerics import generator, one_thread
from askwise.search import Search
from askwise.space import Domain
from askwise.study.plan import Plan


@one_thread()
def search_about(belief: Belief, plan: Plan, domain: Domain | None) -> Search:
    """The search of a study with this plan; a function of the belief, so that what it finds is one, too."""
    return Search.around(belief, generator("askwise study", plan.seed, "best"), domain)
