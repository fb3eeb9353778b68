"""Find the best setting of something nobody can measure, only answer questions about.

>>> import askwise as aw
>>> data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]]], [0, 1])
>>> belief = aw.infer(data, aw.kernel("se", lengthscale=[0.3]))
>>> f"{belief.success_probability(data.points[1:2], data.points[:1]).item():.2f}"
'0.69'
"""

from askwise import features as features
from askwise import numerics as numerics
from askwise import paths as paths
from askwise import rules as rules
from askwise import seeds as seeds
from askwise import uncertainty as uncertainty
from askwise.belief import Belief as Belief
from askwise.data import Data as Data
from askwise.fit import fit as fit
from askwise.inference import infer as infer
from askwise.kernels import kernel as kernel
from askwise.loop import next_query as next_query
from askwise.space import Real as Real
from askwise.space import Space as Space
from askwise.study import Best as Best
from askwise.study import Question as Question
from askwise.study import Study as Study
