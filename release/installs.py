"""Installs the wheel in dist/ with each extra by itself, and tries it; prints a table.

``python release/installs.py [--python 3.12] [--lowest] [EXTRA ...]``; with ``--lowest`` everything that
askwise names has its oldest version, except torch.  Each is a new environment in a temporary folder.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TORCH = next(
    line for line in (ROOT / "constraints.txt").read_text().splitlines() if line.startswith("torch==")
)
CORE = """
import askwise as aw
space = aw.Space(gain=aw.Real(0, 40), mode=aw.Choice(["soft", "hard"]))
study = aw.Study(space, feedback="duel", initial=4, seed=0)
for _ in range(10):
    question = study.ask()
    study.tell(question, int(question.options[1]["gain"] > question.options[0]["gain"]))
assert study.best().params["gain"] > 20
"""
RUN = """
import subprocess, sys
def run(*words):
    subprocess.run([sys.executable, "-m", "askwise", *words], check=True)
"""
PROGRAMS = {
    "": "",
    "pandas": "assert len(study.to_dataframe()) == 10",
    "plots": "from askwise import plots\nplots.study_slices(study).savefig('slices.png')",
    "storage": "kept = aw.Study(space, storage='study.db')\nkept.tell(kept.ask(), 0)\nkept.close()\n"
    "assert aw.Study.open('study.db').count() == 1",
    "cli": f"{RUN}run('init')\nrun('check')\nrun('ask')\nrun('tell', '0', 'A')\nrun('status')",
    "web": "from askwise.web.app import create\nfrom askwise.web.settings import Settings\n"
    "assert create(Settings()).openapi()['paths']",
    "botorch": "from askwise.interop.botorch import BeliefModel\n"
    "assert BeliefModel(study.belief()).posterior(study.belief().data.points[:2]).mean.shape == (2, 1)",
    "optuna": "import optuna\nfrom askwise.interop.optuna import BinarySampler\n"
    "trials = optuna.create_study(direction='maximize', sampler=BinarySampler(seed=0))\n"
    "trials.optimize(lambda trial: trial.suggest_float('x', 0, 1) > 0.5, n_trials=6)",
    "testing": "from askwise.testing import RuleContract, StorageContract",
    "bench": "import distributed\nfrom askwise.bench.functions import named\nassert named('branin').dim == 2",
}


def main() -> None:
    """Install and try what is asked for, by default everything."""
    options = argparse.ArgumentParser()
    options.add_argument("extras", nargs="*", default=list(PROGRAMS))
    options.add_argument("--python", default=f"{sys.version_info[0]}.{sys.version_info[1]}")
    options.add_argument("--lowest", action="store_true")
    given = options.parse_args()
    (wheel,) = (ROOT / "dist").glob("askwise-*.whl")
    print("| extra | Python | packages | size | works |\n|---|---|---|---|---|", flush=True)
    failed = [one for one in given.extras if not tried(wheel, one, given.python, given.lowest)]
    sys.exit(bool(failed))


def tried(wheel: Path, extra: str, python: str, lowest: bool) -> bool:
    """Install the wheel with an extra in an environment of its own, and run its program; prints a row."""
    with tempfile.TemporaryDirectory() as folder:
        venv, begun = Path(folder) / "venv", time.monotonic()
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "--quiet", "--python", python, str(venv)], check=True)
        inside = venv / "bin" / "python"
        how = ["--resolution", "lowest-direct"] if lowest else []
        what = f"{wheel}[{extra}]" if extra else str(wheel)
        install = [*uv, "pip", "install", "--quiet", "--python", str(inside), *how]
        for names in ([TORCH], [what, TORCH]):  # torch first: a build without support for GPUs may be found
            subprocess.run([*install, *names], check=True)
        done = subprocess.run(
            [inside, "-W", "ignore", "-c", CORE + PROGRAMS[extra]], cwd=folder, capture_output=True, text=True
        )
        listed = [*uv, "pip", "list", "--quiet", "--format", "freeze", "--python", str(inside)]
        count = len(subprocess.run(listed, check=True, capture_output=True, text=True).stdout.splitlines())
        size = subprocess.run(["du", "-sm", str(venv)], check=True, capture_output=True, text=True).stdout
        works = "yes" if done.returncode == 0 else f"no: {done.stderr.strip().splitlines()[-1]}"
        print(f"| {extra or 'none'} | {python} | {count} | {size.split()[0]} MB | {works} |", flush=True)
        sys.stderr.write(f"{extra or 'core'}: {time.monotonic() - begun:.0f} s\n")
        return done.returncode == 0


if __name__ == "__main__":
    main()
