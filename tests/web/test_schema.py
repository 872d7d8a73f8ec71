"""Requests that schemathesis makes up from the OpenAPI document: no crash, and every answer as documented."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
PATHS = ("/v1/plan", "/v1/plan/stream", "/v1/models", "/v1/scene", "/v1/drive", "/healthz", "/metrics")
SOUND = {"model": "tiny", "candidates": 4}
quickly = settings(
    max_examples=30, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


@pytest.fixture(scope="module")
def operations(address):
    document = schemathesis.openapi.from_url(f"{address}/openapi.json")
    return {operation.ok().path: operation.ok() for operation in document.get_all_operations()}


def test_every_route_is_documented(operations):
    assert set(operations) == set(PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_whatever_is_sent_the_answer_is_a_documented_one(operations, path):
    @quickly
    @given(case=operations[path].as_strategy())
    def answered(case):
        case.call_and_validate(checks=CHECKS)

    answered()


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/v1/plan", "/v1/plan/stream"])
def test_sound_problems_with_any_options_are_planned_or_refused(operations, path):
    statuses = set()

    @quickly
    @given(case=operations[path].as_strategy())
    def answered(case):
        if path == "/v1/plan":
            case.body = {**case.body, **SOUND, "start": [0, 0], "goal": [8, 8]}
        else:
            case.query = {**case.query, **SOUND, "start": "0,0", "goal": "8,8"}
        statuses.add(case.call_and_validate(checks=CHECKS).status_code)

    answered()
    assert statuses == {200, 422}
