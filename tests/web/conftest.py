"""A server in this process, and what clients send to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from askwise.web.app import create
from askwise.web.settings import Settings
from served import DUEL


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hall.toml"
    path.write_text(DUEL)
    return path


@pytest.fixture
def settings(tmp_path: Path, file: Path) -> Settings:
    return Settings(str(tmp_path / "askwise.db"), (str(file),))


@pytest.fixture
def anybody(settings: Settings) -> Iterator[TestClient]:
    """Without a token."""
    app = create(settings)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The owner of a study with one open question, for tests that change nothing."""
    folder = tmp_path_factory.mktemp("asked")
    (folder / "hall.toml").write_text(DUEL)
    app = create(Settings(str(folder / "askwise.db"), (str(folder / "hall.toml"),)))
    headers = {"Authorization": f"Bearer {app.state.gate.file.kept.token}"}
    with TestClient(app, base_url="http://localhost", headers=headers) as client:
        client.post("/api/v1/studies/hall/ask", json={})
        yield client


@pytest.fixture
def owner(anybody: TestClient) -> TestClient:
    """With the owner's token."""
    token = anybody.app.state.gate.file.kept.token
    anybody.headers["Authorization"] = f"Bearer {token}"
    return anybody
