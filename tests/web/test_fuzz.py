"""Requests made up from the description of the API: whatever is sent, the server answers as described."""

from collections import Counter

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from askwise.web.app import create
from askwise.web.settings import Settings
from served import DUEL

CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]


@pytest.fixture
def app(tmp_path):
    (tmp_path / "hall.toml").write_text(DUEL)
    settings = Settings(str(tmp_path / "askwise.db"), (str(tmp_path / "hall.toml"),), rate=1e9)
    app = create(settings)
    yield app
    app.state.studies.close()


def statuses(app, each: int, only: tuple[str, ...] = ()) -> Counter[int]:
    """How often each status came, of so many valid and as many invalid requests to each route."""
    schema = schemathesis.openapi.from_dict(app.openapi())
    schema.app = app
    token, found = app.state.gate.file.kept.token, Counter[int]()
    operations = [one.ok() for one in schema.get_all_operations()]
    for operation in operations:
        end = operation.path.rpartition("/")[2]
        if end == "events" or (only and end not in only):  # news never end
            continue
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @hypothesis.settings(
                max_examples=each, deadline=None, database=None, suppress_health_check=list(HealthCheck)
            )
            @hypothesis.given(operation.as_strategy(generation_mode=mode))
            def sends(case):
                if "study" in case.path_parameters:
                    case.path_parameters["study"] = "hall"
                headers = {"Authorization": f"Bearer {token}", "Host": "localhost"}
                response = case.call(headers=headers)
                found[response.status_code] += 1
                case.validate_response(response, checks=CHECKS)

            try:
                sends()
            except hypothesis.errors.Unsatisfiable:  # nothing invalid can be sent there
                continue
    return found


def test_a_few_made_up_requests_are_answered_as_described(app):
    found = statuses(app, 15, ("tell", "record", "links"))
    assert sum(found.values()) > 60
    assert not [status for status in found if status >= 500]


@pytest.mark.slow
def test_ten_thousand_made_up_requests_are_answered_as_described(app):
    found = statuses(app, 220)
    assert sum(found.values()) > 10_000
    assert not [status for status in found if status >= 500]
    assert found[200]
    assert found[422]
