"""The server as a process: it starts, ends, refuses and comes back."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from typer.testing import CliRunner

import askwise as aw
from askwise.cli import main
from postgres import fresh_schema
from served import DUEL, serving


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hall.toml").write_text(DUEL)
    return tmp_path


def refused(folder, *words):
    with contextlib.chdir(folder):
        done = CliRunner().invoke(main, ["serve", *words])
    assert (done.exit_code, done.stdout) == (1, "")
    return done.stderr


def get(address, token=None):
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.read().decode()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_it_ends_cleanly_even_while_pages_wait_for_news(folder, number):
    with serving(folder, "hall.toml") as server:
        address, token = server.link.split("/?token=")
        request = urllib.request.Request(
            f"{address}/api/v1/studies/hall/events", headers={"Authorization": f"Bearer {token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as stream:
            assert json.loads(stream.readline().removeprefix(b"data: "))["answers"] == 0
            began = time.monotonic()
            code, _, err = server.end(number)
            assert time.monotonic() - began < 20
    assert (code, err) == (0 if number == signal.SIGINT else -number, "")


def test_a_port_that_is_taken_is_refused(folder):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        said = refused(folder, "hall.toml", "--port", str(port))
    assert said == (
        f"askwise: port must be free; got {port}, which another program uses. "
        "Choose another by --port, or leave it out for any that is free.\n"
    )


def test_a_study_file_with_a_mistake_is_refused_by_its_line(folder):
    (folder / "bad.toml").write_text(DUEL.replace("high = 40", "high = -1"))
    said = refused(folder, "hall.toml", "bad.toml")
    assert said.startswith("askwise: bad.toml: line ")
    assert "high" in said
    assert refused(folder, "none.toml").startswith("askwise: study file must exist")
    (folder / "same.toml").write_text(DUEL)
    assert "names of studies must differ" in refused(folder, "hall.toml", "same.toml")


@pytest.mark.slow
def test_a_study_is_served_again_by_its_name_with_the_same_links(folder):
    with serving(folder, "hall.toml") as server:
        client = aw.Client(server.link, "hall")
        question = client.ask("Ann")
        link = client._post("links", {"participant": "Ann"})
        first = server.link
    with serving(folder) as server:  # without the file
        assert server.link.partition("token=")[2] == first.partition("token=")[2]
        person = aw.Client(server.link.partition("/?")[0] + link["path"])
        assert person.ask().options == question.options
    with serving(folder, "--new-token") as server:
        assert server.link.partition("token=")[2] != first.partition("token=")[2]


@pytest.mark.slow
def test_logs_and_metrics_have_no_answers_tokens_or_addresses(folder):
    with serving(folder, "hall.toml", "--log") as server:
        client = aw.Client(server.link, "hall")
        link = client._post("links", {})
        address, token = server.link.split("/?token=")
        get(address + link["path"])
        client.tell(client.ask("Ann Onymous"), 1)
        with pytest.raises(urllib.error.HTTPError):
            get(f"{address}/?token=wrong-token")
        metrics = get(f"{address}/metrics", token)
        _, out, err = server.end()
    lines = [json.loads(line) for line in err.splitlines()]
    assert {"method": "GET", "route": "/p/{link}", "status": 200}.items() <= lines[1].items()
    for secret in (token, link["token"], "Ann", "wrong-token", "127.0.0.1"):
        assert secret not in out + err + metrics
    name = 'askwise_requests_total{method="POST",route="/api/v1/studies/{study}/tell",status="200"}'
    assert f"{name} 1\n" in metrics


@pytest.mark.slow
def test_it_works_below_a_path_behind_a_proxy(folder):
    words = ("--public-url", "https://lab.example.org/askwise", "--proxy-headers", "--port", "0", "--json")
    with serving(folder, "hall.toml", *words) as server:
        link = json.loads(server.link + server.process.stdout.readline() + server.process.stdout.readline())
    assert link["link"].startswith("https://lab.example.org/askwise/?token=")


@pytest.mark.slow
def test_two_workers_share_a_study_on_postgresql(folder):
    with (
        fresh_schema() as place,
        serving(
            folder, "hall.toml", "--workers", "2", "--storage", place, "--server-file", "keys.json"
        ) as server,
    ):
        client = aw.Client(server.link, "hall", patience=30)
        for number in range(20):
            question = client.ask(f"person {number % 4}")
            client.tell(question, number % 2)
        link = client._post("links", {"participant": "Ann"})
        address, token = server.link.split("/?token=")
        for _ in range(8):  # whichever worker answers
            assert aw.Client(address + link["path"]).ask().participant == "Ann"
        time.sleep(1.1)
        client.history()
        total = sum(
            int(line.rpartition(" ")[2])
            for line in get(f"{address}/metrics", token).splitlines()
            if line.startswith("askwise_requests_total")
        )
        assert [one.status for one in client.history()].count("answered") == 20
        assert total >= 20
        with aw.Study.open(place, "hall") as study:
            assert all(one.equal for one in study.replay())
        code, _, _ = server.end()
        assert code == 0


def test_threads_share_their_memory_from_before_torch_is_there(folder):
    code = """
import os, sys
from typer.testing import CliRunner
from askwise.cli import main
from askwise.web import memory
real = memory.use_less
def watched():
    assert "torch" not in sys.modules
    real()
    print("MKL", os.environ["MKL_DISABLE_FAST_MM"])
memory.use_less = watched
print(CliRunner().invoke(main, ["serve", "nowhere.toml"]).output)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert "MKL 1" in found.stdout
    assert "nowhere.toml" in found.stdout
