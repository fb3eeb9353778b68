"""Types and shapes of tensors are as annotated: `make test-slow` checks them in every test, this one in a few
uses of each part (the checks double the time that the tests take)."""

import subprocess
import sys

CHECKED = """
from jaxtyping import install_import_hook
with install_import_hook("askwise", "beartype.beartype"):
    import askwise as aw
    from askwise.bench.experiments import Arm, Experiment
    from askwise.bench.lanes import RunId, run
    from askwise.rules import RULES
"""
USES = """
import torch

data = aw.Data.duels([[[0.2], [0.6]], [[0.6], [0.9]], [[0.1], [0.7]]], [0, 1, 0])
yes_no = aw.Data.binary([[0.2], [0.6], [0.9]], [0, 1, 1])
for rule in (kind() for kind in RULES.values()):
    told, size = (yes_no, 1) if "binary" in rule.asks else (data, 2)
    source = torch.Generator().manual_seed(0)
    assert aw.next_query(told, rule, aw.kernel("se"), size, source).points.shape == (size, 1)

space = aw.Space(gain=aw.Real(0, 1), steps=aw.Integer(1, 5), mode=aw.Choice(["a", "b"]))
for feedback, answers in (("binary", (True, False)), ("duel", (0, 1)), ("batch", (0, 2))):
    study = aw.Study(space.where("gain + steps <= 5"), feedback, initial=2)
    for answer in (*answers, None):
        study.tell(study.ask(), answer)
    study.status(), study.best()

small = Experiment("small", "Small", "For tests.", (Arm("muc", 2),), functions=("forrester",), replicates=2,
                   iterations=3, initial=2, scale="standardised", prior="likelihood")
run(small, [RunId("small", "forrester", small.arms[0].label, replicate) for replicate in range(2)])

try:
    aw.infer(yes_no, aw.kernel("se")).mean(torch.zeros(2))
except Exception as error:
    print(type(error).__name__)
"""


def test_every_part_takes_and_returns_what_it_says_and_a_wrong_shape_is_found():
    program = [sys.executable, "-c", CHECKED + USES]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "TypeCheckError\n"), done.stderr
