"""Global maximisation of acquisition scores over the unit cube or a domain, for all lanes at once.

`Search` finds the points or groups of highest score; `best_challengers` builds batches around a champion.
A score is any function of points; one with `with_gradient` (`Differentiable`) is searched without autograd.
"""

from askwise.search.ascent import Differentiable as Differentiable
from askwise.search.ascent import with_gradient as with_gradient
from askwise.search.batches import Pairs as Pairs
from askwise.search.batches import best_challengers as best_challengers
from askwise.search.search import Search as Search
from askwise.search.search import coincide as coincide
