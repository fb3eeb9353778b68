"""Commands that study files and options name: their words, and how they are run, without a shell."""

from askwise.commands.machine import LEFT_OPEN as LEFT_OPEN
from askwise.commands.machine import TIMED_OUT as TIMED_OUT
from askwise.commands.machine import Ended as Ended
from askwise.commands.machine import Machine as Machine
from askwise.commands.template import filled as filled
from askwise.commands.template import template_words as template_words
from askwise.commands.template import variable as variable
from askwise.commands.template import variables as variables
