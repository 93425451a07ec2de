"""The API keeps to its OpenAPI description, whatever is sent: no error of the server, no response of another form."""

from typing import Any, cast

import httpx
import pytest
import schemathesis
from api_server import RunningServer
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

EXAMPLES = 12
ADDRESS_CHARS = 5_000  # longer ones are refused before they reach the application
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
OPERATIONS = 20


def test_every_operation_keeps_to_its_description(server: RunningServer) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json")
    operations = [cast("Any", found).ok() for found in schema.get_all_operations()]
    assert len(operations) >= OPERATIONS
    for operation in operations:
        sent = 0
        modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
        strategies = [operation.as_strategy(generation_mode=mode) for mode in modes]

        @settings(max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
                  suppress_health_check=list(HealthCheck))  # fmt: skip
        @given(st.one_of(strategies))
        def holds(case: Any) -> None:
            nonlocal sent
            assume(len(case.as_transport_kwargs()["url"]) + len(str(case.query)) < ADDRESS_CHARS)
            sent += 1
            case.call_and_validate(checks=CHECKS)

        holds()
        assert sent


@pytest.mark.parametrize("path", ["/api/v1/search", "/api/v1/ask", "/api/v1/sql"])
def test_the_description_tells_of_problems(server: RunningServer, path: str) -> None:
    described = httpx.get(f"{server.url}/api/v1/openapi.json").json()
    responses = described["paths"][path]["post"]["responses"]
    assert set(responses) >= {"200", "400", "401", "413", "422", "429", "503"}
    assert list(responses["400"]["content"]) == ["application/problem+json"]
