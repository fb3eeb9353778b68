"""Refusals are data: their parts, their places, and what callers tell apart."""

import pickle
import subprocess
import sys

import pytest
from tblib.pickling_support import pickle_exception

import askwise as aw
from askwise import errors
from askwise.errors import Refused, extra

PARTS = ("size", "be 2 or more", "1", "Leave it out.")
TYPES = [
    (errors.Refused, (ValueError,)),
    (errors.WrongType, (ValueError, TypeError)),
    (errors.NotFound, (ValueError,)),
    (errors.Conflict, (ValueError,)),
    (errors.Unavailable, (ValueError, ImportError)),
    (errors.Failed, (ValueError, OSError)),
    (errors.Busy, (ValueError, OSError, TimeoutError)),
    (errors.Unreachable, (ValueError, OSError, ConnectionError)),
]


@pytest.mark.parametrize(("kind", "bases"), TYPES, ids=lambda part: getattr(part, "__name__", ""))
def test_a_refusal_has_its_parts_wherever_it_travels(kind, bases):
    error = kind(*PARTS)
    rebuild, parts, *_ = pickle_exception(error)  # as Dask sends it
    for one in (error, pickle.loads(pickle.dumps(error)), rebuild(*parts)):
        assert (one.what, one.expected, one.got, one.advice, one.place) == (*PARTS, "")
        assert str(one) == "size must be 2 or more; got 1. Leave it out."
        assert isinstance(one, (Refused, *bases))
    placed = pickle.loads(pickle.dumps(error.at("line 3").at("study.toml").about("size of a batch")))
    assert type(placed) is kind
    assert str(placed) == "study.toml: line 3: size of a batch must be 2 or more; got 1. Leave it out."
    assert (placed.what, placed.place) == ("size of a batch", "study.toml: line 3")


def test_a_package_that_is_not_installed_is_named_with_the_command_to_install_it():
    message = r"^plot must have the packages of askwise\[plots\]; got No module"
    with pytest.raises(aw.Unavailable, match=message), extra("plots", "plot"):
        import no_such_package  # noqa: F401


def test_a_refusal_inside_an_extra_stays_what_it_is():
    with pytest.raises(aw.Unavailable, match=r"^a must"), extra("plots", "plot"):
        raise aw.Unavailable("a", "b", "c", "D.")


@pytest.mark.parametrize(
    ("missing", "words", "advice"),
    [
        ("typer", ["--help"], "askwise[cli]"),
        ("matplotlib", ["plot"], "askwise[plots]"),
        pytest.param("sqlalchemy", ["ask"], "askwise[storage]", marks=pytest.mark.slow),
        pytest.param("matplotlib", ["bench", "report", "nowhere"], "askwise[plots]", marks=pytest.mark.slow),
        pytest.param(
            "distributed",
            ["bench", "run", "pbo", "--dask", "local", "--out", "x"],
            "askwise[bench]",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_command_line_reports_a_missing_extra_in_one_line(tmp_path, missing, words, advice):
    (tmp_path / "askwise.toml").write_text(
        '[study]\nname = "a"\nstorage = "study.db"\n[space.u]\ntype = "real"\nlow = 0\nhigh = 1\n'
    )
    program = (
        f"import sys\nsys.modules[{missing!r}] = None\nsys.argv = ['askwise', *{words!r}]\n"
        "from askwise.__main__ import run\nrun()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    *progress, line = done.stderr.splitlines()
    assert all(" runs, " in other for other in progress)
    assert line.startswith("askwise: ")
    assert line.endswith(f"Run `pip install {advice}`.")
    assert not list(tmp_path.glob("*.db*"))


def test_a_long_value_is_not_echoed():
    error = aw.Refused("answer", "be short", "x" * 10_000_000, "Shorten it.")
    assert len(str(error)) < 300
    assert "... (10,000,000 characters). Shorten it." in str(error)
    assert str(error.at("line 1")) == f"line 1: {error}"  # shortened once
