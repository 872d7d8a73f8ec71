"""Requests that schemathesis makes up from the OpenAPI document: no crash, and every answer as documented."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

PATHS = ("/v1/plan", "/v1/plan/stream", "/v1/models", "/v1/scene", "/v1/drive", "/healthz", "/metrics")
SOUND = {"model": "tiny", "candidates": 4}
quickly = settings(
    max_examples=30, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(scope="module")
def checks() -> list:
    """Imported here: schemathesis takes seconds, in each process that collects the tests."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    return [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def operations(address):
    import schemathesis

    document = schemathesis.openapi.from_url(f"{address}/openapi.json")
    return {operation.ok().path: operation.ok() for operation in document.get_all_operations()}


def test_every_route_is_documented(operations):
    assert set(operations) == set(PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_whatever_is_sent_the_answer_is_a_documented_one(operations, checks, path):
    @quickly
    @given(case=operations[path].as_strategy())
    def answered(case):
        case.call_and_validate(checks=checks)

    answered()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/v1/plan", "/v1/plan/stream"])
def test_sound_problems_with_any_options_are_planned_or_refused(operations, checks, path):
    statuses = set()

    @quickly
    @given(case=operations[path].as_strategy())
    def answered(case):
        if path == "/v1/plan":
            case.body = {**case.body, **SOUND, "start": [0, 0], "goal": [8, 8]}
        else:
            case.query = {**case.query, **SOUND, "start": "0,0", "goal": "8,8"}
        statuses.add(case.call_and_validate(checks=checks).status_code)

    answered()
    assert statuses == {200, 422}
