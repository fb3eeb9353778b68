"""Kinds of answers, one a file: everything about a kind is in its class.

How it is given in Python and typed in a terminal, how the record keeps it, the rows it becomes, and how it is
shown.
"""

from askwise.study.answers.base import UNGIVEN as UNGIVEN
from askwise.study.answers.base import Answer as Answer
from askwise.study.answers.base import Verdict as Verdict
from askwise.study.answers.base import labels as labels
from askwise.study.answers.base import whole as whole
from askwise.study.answers.pairs import Pairs as Pairs
from askwise.study.answers.preference import Preference as Preference
from askwise.study.answers.ranking import Ranking as Ranking
from askwise.study.answers.tie import Tie as Tie
from askwise.study.answers.worst import Worst as Worst
from askwise.study.answers.yes_no import YesNo as YesNo
