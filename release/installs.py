"""Installs the wheel in dist/ with each extra by itself, and tries it; prints a table.

``python release/installs.py [--python 3.12] [--lowest] [EXTRA ...]``; with ``--lowest`` everything that
askwise names has its oldest version, except torch.  Each is a new environment in a temporary folder.
``--python`` takes a path, too; ``UV_FIND_LINKS=FOLDER`` takes torch from a folder, where a build without
support for GPUs may be.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = [sys.executable, "-m", "uv"]
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
SERVE = """
import re, subprocess, sys
from http.cookiejar import CookieJar
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener
with open("hall.toml", "w") as file:
    file.write("[study]\\nname = 'hall'\\n[space.gain]\\ntype = 'real'\\nlow = 0\\nhigh = 40\\n")
command = [sys.executable, "-m", "askwise", "serve", "hall.toml"]
server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
try:
    link = server.stdout.readline().strip()
    address = link.partition("/?")[0]
    client = aw.Client(link, "hall")
    client.tell(client.ask(), 1)
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    def page(path, **form):
        sent = urlencode(form).encode() if form else None
        return browser.open(address + path, sent).read().decode()
    browser.open(link)
    secret = re.search('name="csrf" value="(.+?)"', page("/studies/hall/links"))[1]
    links = page("/studies/hall/links", participant="P1", csrf=secret)
    assert "<svg" in page(re.search('"(/[^"]+/qr.svg)"', links)[1])
finally:
    server.terminate()
    server.wait()
"""
PROGRAMS = {
    "": "",
    "pandas": "assert len(study.to_dataframe()) == 10",
    "plots": "from askwise import plots\nplots.study_slices(study).savefig('slices.png')",
    "storage": "kept = aw.Study(space, storage='study.db')\nkept.tell(kept.ask(), 0)\nkept.close()\n"
    "assert aw.Study.open('study.db').count() == 1",
    "cli": f"{RUN}run('init')\nrun('check')\nrun('ask')\nrun('tell', '0', 'A')\nrun('status')",
    "web": SERVE,
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
        begun, inside = time.monotonic(), str(Path(folder) / "venv" / "bin" / "python")
        subprocess.run([*UV, "venv", "--quiet", "--python", python, f"{folder}/venv"], check=True)
        install(inside, wheel, extra, lowest)
        program = CORE + PROGRAMS[extra]
        done = subprocess.run(
            [inside, "-W", "ignore", "-c", program], cwd=folder, capture_output=True, text=True
        )
        listed = output(*UV, "pip", "list", "--quiet", "--format", "freeze", "--python", inside)
        size = output("du", "-sm", f"{folder}/venv").split()[0]
        works = "yes" if done.returncode == 0 else f"no: {done.stderr.strip().splitlines()[-1]}"
        count, version = len(listed.splitlines()), output(inside, "--version").split()[1]
        print(f"| {extra or 'none'} | {version} | {count} | {size} MB | {works} |", flush=True)
        sys.stderr.write(f"{extra or 'core'}: {time.monotonic() - begun:.0f} s\n")
        return done.returncode == 0


def install(inside: str, wheel: Path, extra: str, lowest: bool) -> None:
    """Install the tested torch first; the build that is found stays, whatever the rest asks for."""
    command = [*UV, "pip", "install", "--quiet", "--python", inside]
    subprocess.run([*command, TORCH], check=True)
    torch = output(inside, "-c", "from importlib.metadata import version; print(version('torch'))").strip()
    if lowest:  # of what the wheel needs by way of its metadata, uv takes the newest
        named = ["-r", str(ROOT / "pyproject.toml"), *(["--extra", extra] if extra else [])]
        subprocess.run([*command, "--resolution", "lowest-direct", *named, f"torch=={torch}"], check=True)
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    subprocess.run([*command, what, f"torch=={torch}"], check=True)  # keeps what is there and suits


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
