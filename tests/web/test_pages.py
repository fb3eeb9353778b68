"""Pages and news: below the path of a proxy, and as things happen."""

import json
import re
import urllib.request
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

import askwise as aw
from askwise.web.app import create
from served import in_thread


@pytest.mark.parametrize("before", ["", "/askwise"], ids=["stripped", "kept"])
def test_below_the_path_of_a_proxy_every_address_has_it(settings, before):
    app = create(replace(settings, root_path="/askwise", hosts=("lab.example.org",)))
    with TestClient(app, base_url="http://lab.example.org") as client:
        token = app.state.gate.file.kept.token
        entered = client.get(f"{before}/?token={token}", follow_redirects=False)
        assert entered.headers["location"] == "/askwise/"
        assert "Path=/askwise" in entered.headers["set-cookie"]
        headers = {"Authorization": f"Bearer {token}", "Accept": "text/html"}
        path = client.post(f"{before}/api/v1/studies/hall/links", json={}, headers=headers).json()["path"]
        for page in ("/", "/studies/hall", path, "/api/v1/docs", "/nothing"):
            shown = client.get(f"{before}{page}", headers=headers).text
            found = re.findall(r'(?:href|src|action|data-api)="([^"]+)"', shown)
            assert found
            assert all(address.startswith("/askwise/") for address in found), page
        style = next(address for address in found if "style.css" in address)
        answer = client.get(style if before else style.removeprefix("/askwise"))
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]


def test_pages_hear_of_what_happens_here_and_in_other_processes(settings):
    with in_thread(settings) as link:
        client = aw.Client(link, "hall")
        headers = {"Authorization": f"Bearer {client._token}"}
        request = urllib.request.Request(f"{client.address}/api/v1/studies/hall/events", headers=headers)
        with urllib.request.urlopen(request, timeout=30) as stream:

            def news():
                while not (line := stream.readline()).startswith(b"data: "):
                    pass
                return json.loads(line.removeprefix(b"data: "))

            assert news() == {"last": 0, "answers": 0, "open": 0}
            question = client.ask()
            assert news() == {"last": 1, "answers": 0, "open": 1}
            with aw.Study.open(settings.storage, "hall") as elsewhere:
                elsewhere.tell(question.id, 1)
            assert news() == {"last": 2, "answers": 1, "open": 0}
