"""Each promise of docs/security.md."""

import json
import os
import re
import stat

import pytest
from fastapi.testclient import TestClient

from askwise.web import logs
from askwise.web.app import create
from askwise.web.guards import HEADERS, Rate
from askwise.web.serverfile import ServerFile
from askwise.web.settings import Settings
from served import DUEL

HALL = "/api/v1/studies/hall"
PAGE = {"Accept": "text/html"}


def link_of(owner, **sent):
    return owner.post(f"{HALL}/links", json=sent).json()


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_without_a_token_nothing_but_health_is_answered(anybody):
    assert [anybody.get(path).status_code for path in ("/health", "/ready")] == [200, 200]
    described = anybody.app.openapi()["paths"]
    for path, methods in described.items():
        address = re.sub(r"{question}", "0", re.sub(r"{\w+}", "hall", path))
        for method in methods:
            for headers in ({}, bearer("wrong"), {"Cookie": "askwise-owner=x"}):
                response = anybody.request(method, address, headers=headers, json={})
                assert response.status_code == 401, (method, path)
                assert response.headers["www-authenticate"] == "Bearer"
    for path in ("/", "/studies/hall", "/metrics"):
        assert anybody.get(path, headers=PAGE).status_code == 401


def test_the_printed_link_becomes_a_cookie_and_the_token_disappears(anybody):
    token = anybody.app.state.gate.file.kept.token
    response = anybody.get(f"/?token={token}", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, "/")
    cookie = response.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=lax", "Path=/"))
    assert token not in cookie
    shown = anybody.get("/", headers=PAGE)
    assert shown.status_code == 200
    assert token not in shown.text
    assert anybody.get("/api/v1/studies").status_code == 200
    assert anybody.get("/?token=wrong").status_code == 401
    anybody.app.state.gate.file.new_token()
    assert anybody.get("/", headers=PAGE).status_code == 401


def test_cookies_are_secure_behind_https(settings):
    from dataclasses import replace

    public = replace(settings, public_url="https://lab.example.org", hosts=("lab.example.org",))
    with TestClient(create(public), base_url="https://lab.example.org") as client:
        token = client.app.state.gate.file.kept.token
        assert "Secure" in client.get(f"/?token={token}", follow_redirects=False).headers["set-cookie"]


def test_changes_by_cookie_need_the_token_of_a_form(anybody):
    gate = anybody.app.state.gate
    anybody.get(f"/?token={gate.file.kept.token}")
    assert anybody.post(f"{HALL}/ask", json={}).status_code == 403
    assert anybody.post(f"{HALL}/ask", json={}, headers={"X-CSRF-Token": "wrong"}).status_code == 403
    assert anybody.post(f"{HALL}/ask", json={}, headers={"X-CSRF-Token": gate.csrf}).status_code == 200
    assert anybody.post("/studies/hall/links", data={"participant": "Ann"}).status_code == 403
    assert not gate.file.kept.links
    form = {"participant": "Ann", "csrf": gate.csrf}
    assert anybody.post("/studies/hall/links", data=form).status_code == 200
    assert [link.participant for link in gate.file.kept.links.values()] == ["Ann"]


def test_a_link_is_good_for_its_study_and_person_and_for_asking_only(owner):
    owner.post("/api/v1/studies", json={"toml": DUEL.replace("hall", "other")})
    other = owner.post(f"{HALL}/ask", json={"participant": "Ben"}).json()
    ann = bearer(link_of(owner, participant="Ann")["token"])
    question = owner.post(f"{HALL}/ask", json={}, headers=ann).json()
    assert (question["participant"], question["order"]) == ("Ann", None)
    assert owner.post(f"{HALL}/ask", json={"participant": "Ben"}, headers=ann).status_code == 403
    assert (
        owner.post(f"{HALL}/tell", json={"question": other["id"], "answer": 1}, headers=ann).status_code
        == 404
    )
    assert owner.post(f"{HALL}/skip", json={"question": other["id"]}, headers=ann).status_code == 404
    assert owner.post("/api/v1/studies/other/ask", json={}, headers=ann).status_code == 403
    done = owner.post(
        f"{HALL}/tell", json={"question": question["id"], "answer": 1, "next": True}, headers=ann
    )
    assert (done.json()["answers"], done.json()["next"]["order"]) == (1, None)
    for method, paths in anybody_else(owner).items():
        for path in paths:
            response = owner.request(method, path, headers=ann, json={})
            assert response.status_code == 401, path


def anybody_else(client):
    """Routes that participants have no business with, by method."""
    theirs = ("ask", "tell", "skip", "join", "whoami", "undo")
    found: dict[str, list[str]] = {}
    for path, methods in client.app.openapi()["paths"].items():
        if path.rpartition("/")[2] not in theirs and "/sitting/" not in path:
            address = path.replace("{study}", "hall").replace("{question}", "0").replace("{link}", "x")
            for method in methods:
                found.setdefault(method, []).append(address)
    return found


def test_a_link_can_be_revoked_and_cannot_be_forged(owner):
    link = link_of(owner, participant="Ann")
    token = link["token"]
    payload, _, signature = token.partition(".")
    changed = ("A" if signature[0] != "A" else "B") + signature[1:]
    forged = [f"{payload}.{changed}", f"{token}x", f"x{token}", payload]
    for text in forged:
        assert owner.post(f"{HALL}/ask", json={}, headers=bearer(text)).status_code == 401
        assert owner.get(f"/p/{text}").status_code == 401
    assert owner.get(link["path"]).status_code == 200
    assert owner.delete(f"{HALL}/links/{link['id']}").json()["revoked"]
    assert owner.get(link["path"]).status_code == 401
    assert owner.post(f"{HALL}/ask", json={}, headers=bearer(token)).status_code == 401
    assert owner.delete(f"{HALL}/links/none").status_code == 404


def test_a_link_for_anybody_gives_everybody_a_name_of_their_own(owner, settings):
    link = link_of(owner)
    owner.headers.pop("Authorization")
    names = set()
    for _ in range(2):
        owner.cookies.clear()
        first, again = owner.get(link["path"]), owner.get(link["path"])
        passes = {re.search(r'data-pass="([^"]+)"', shown.text)[1] for shown in (first, again)}
        assert len(passes) == 1  # the same browser is the same person
        assert all(part in first.headers["set-cookie"] for part in ("HttpOnly", "SameSite=lax"))
        asked = owner.post(f"{HALL}/ask", json={}, headers=bearer(passes.pop()))
        names.add(asked.json()["participant"])
    assert len(names) == 2
    assert owner.post(f"{HALL}/ask", json={}, headers=bearer(link["token"])).status_code == 403
    joined = owner.post(f"{HALL}/join", json={"participant": "P7"}, headers=bearer(link["token"])).json()
    assert owner.post(f"{HALL}/ask", json={}, headers=bearer(joined["token"])).json()["participant"] == "P7"


def test_nobody_joins_by_the_name_of_somebody_with_a_link(owner):
    link_of(owner, participant="Ann")
    anybody = bearer(link_of(owner)["token"])
    assert owner.post(f"{HALL}/join", json={"participant": "Ann"}, headers=anybody).status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "10.1.2.3", "", "localhost@evil.example"]
)
def test_a_foreign_host_is_refused(asked, host):
    assert asked.get("/api/v1/studies", headers={"Host": host}).status_code == 400


def test_on_the_whole_network_addresses_of_numbers_are_known(settings):
    from dataclasses import replace

    with TestClient(create(replace(settings, host="0.0.0.0")), base_url="http://10.1.2.3:8000") as client:
        assert client.get("/health").status_code == 200
        assert client.get("/health", headers={"Host": "evil.example"}).status_code == 400


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:81", "http://localhost.evil.example"]
)
def test_a_foreign_origin_is_refused(asked, origin):
    headers = {"Origin": origin}
    assert asked.post(f"{HALL}/ask", json={}, headers=headers).status_code == 403
    assert asked.get("/api/v1/studies", headers=headers).status_code == 403
    assert asked.post(f"{HALL}/ask", json={}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert asked.post(f"{HALL}/ask", json={}, headers={"Origin": "http://localhost"}).status_code == 200


def test_a_page_elsewhere_may_be_allowed_to_use_a_participants_token(settings):
    from dataclasses import replace

    site = {"Origin": "https://experiment.example"}
    app = create(replace(settings, origins=("https://experiment.example",)))
    with TestClient(app, base_url="http://localhost") as client:
        gate = app.state.gate
        token = gate.pass_of(gate.file.add_link("hall", "Ann"))
        answer = client.post(f"{HALL}/ask", json={}, headers=site | bearer(token))
        assert answer.headers["access-control-allow-origin"] == "https://experiment.example"
        assert "access-control-allow-credentials" not in answer.headers
        wanted = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        assert client.options(f"{HALL}/ask", headers=site | wanted).status_code == 200


def test_every_response_has_the_headers_and_pages_have_nothing_inline(owner):
    link = link_of(owner)
    paths = (
        "/",
        "/studies/hall",
        link["path"],
        "/api/v1/docs",
        "/api/v1/studies",
        "/nothing",
        "/static/style.css",
    )
    for path in paths:
        response = owner.get(path, headers=PAGE)
        with_forms = {"Referrer-Policy": "same-origin"} if path in ("/", "/studies/hall") else {}
        for name, value in (HEADERS | with_forms).items():
            if name != "Cache-Control":
                assert response.headers[name] == value, path
        assert "unsafe" not in response.headers["content-security-policy"]
        if response.headers["content-type"].startswith("text/html"):
            assert not re.search(r"<style|style=|<script(?![^>]* src=)| on\w+=|javascript:", response.text), (
                path
            )
            assert not re.search(r"(src|href)=\"(https?:)?//", response.text), path


def test_what_people_write_is_escaped(owner, settings):
    text = DUEL.replace("hall", "x").replace("Which sounds better?", "<script>alert(1)</script>{{ 7*7 }}")
    owner.post("/api/v1/studies", json={"toml": text})
    for path in ("/studies/x", owner.post("/api/v1/studies/x/links", json={}).json()["path"]):
        shown = owner.get(path, headers=PAGE).text
        assert "<script>alert" not in shown
        assert "{{ 7*7 }}" in shown


def test_large_bodies_are_refused_with_and_without_a_length(asked):
    large = b'{"participant": "' + b"x" * 2**20 + b'"}'
    assert asked.post(f"{HALL}/ask", content=large).status_code == 413
    pieces = (large[start : start + 2**16] for start in range(0, len(large), 2**16))
    assert asked.post(f"{HALL}/ask", content=pieces).status_code == 413


def test_too_many_requests_are_refused(settings):
    from dataclasses import replace

    with TestClient(create(replace(settings, rate=2)), base_url="http://localhost") as client:
        statuses = [client.get("/health").status_code for _ in range(12)]
    assert statuses[:8] == [200] * 8
    assert statuses[-1] == 429
    rate = Rate(1000, burst=1)
    assert rate.admits("a")
    assert rate.admits("b")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("seed = 3", 'seed = 3\nstorage = "/etc/passwd"'), "storage must be left out"),
        (("seed = 3", 'seed = 3\nimport = ["os"]'), "import must be left out"),
        (
            ("[space.gain]", '[space.item]\ntype = "items"\ntable = "/etc/passwd"\n[space.gain]'),
            "table of item must",
        ),
    ],
)
def test_a_study_from_a_request_reaches_no_files_and_modules(asked, change, message):
    text = DUEL.replace("hall", "new").replace(*change)
    response = asked.post("/api/v1/studies", json={"toml": text})
    assert response.status_code == 422
    assert response.json()["error"]["message"].startswith(message)


@pytest.mark.parametrize("path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd"])
def test_no_path_leads_out_of_the_static_files(asked, path):
    assert asked.get(path).status_code == 404


def test_keys_are_readable_by_their_owner_only_and_shared_by_all_workers(tmp_path):
    one, other = ServerFile(tmp_path / "keys.json"), ServerFile(tmp_path / "keys.json")
    assert stat.S_IMODE(os.stat(one.path).st_mode) == 0o600
    assert one.kept == other.kept
    link = one.add_link("hall", None)
    assert other.kept.links == {link.id: link}
    assert other.revoke(link.id).revoked
    assert one.kept.links[link.id].revoked
    assert stat.S_IMODE(os.stat(one.path).st_mode) == 0o600


def test_an_error_of_the_server_says_nothing_of_itself(owner, monkeypatch, capsys):
    def fails(*_):
        raise RuntimeError("a secret answer")

    monkeypatch.setattr(type(owner.app.state.studies), "names", fails)
    logs.configure(requests=False)
    response = owner.get("/ready")
    assert response.status_code == 500
    assert "secret" not in response.text
    assert "content-security-policy" in response.headers
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["error"]) == ("unexpected", "RuntimeError")
    assert line["where"][-1].startswith(__file__)
    assert "secret" not in json.dumps(line)


def test_nothing_is_unpickled():
    from pathlib import Path

    import askwise.web

    for file in Path(askwise.web.__file__).parent.rglob("*.py"):
        assert not re.search(r"pickle|\beval\(|\bexec\(|subprocess|os\.system", file.read_text()), file


def test_the_settings_of_workers_are_those_of_the_server():
    settings = Settings("a.db", ("b.toml",), hosts=("c",), rate=3.5, log=True)
    assert Settings.from_json(settings.to_json()) == settings


def test_strangers_open_no_study_and_learn_no_name(anybody, settings):
    for headers in ({}, bearer("wrong")):
        for name in ("hall", "none-of-this-name"):
            for path in (f"/api/v1/studies/{name}/best", f"/studies/{name}"):
                assert anybody.get(path, headers=headers).status_code == 401
    assert not os.path.exists(settings.storage)


@pytest.mark.parametrize("header", [{"Host": "[::1"}, {"Origin": "http://[x"}])
def test_a_header_that_is_no_address_is_refused_like_any_other(owner, header):
    answer = owner.get("/health", headers=header)
    assert answer.status_code in (400, 403)
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_whoever_has_a_revoked_link_is_told_whom_to_ask(owner):
    link = link_of(owner, participant="P1")
    owner.delete(f"{HALL}/links/{link['id']}")
    for path in ("sitting/next", "ask"):
        answer = owner.post(f"{HALL}/{path}", json={}, headers=bearer(link["token"]))
        assert answer.status_code == 401
        assert "Ask whoever sent it for a new one." in answer.text
