"""Experiments, one a file; dropping in a file is all it takes to add one."""

import importlib
import pkgutil

from askwise.bench.experiments.base import EXPERIMENTS as EXPERIMENTS
from askwise.bench.experiments.base import Arm as Arm
from askwise.bench.experiments.base import Experiment as Experiment

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
