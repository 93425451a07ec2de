"""Parameters in addresses: one that a route does not know is refused, as it may be a filter that is spelt wrong."""

from fastapi import Request
from fastapi.dependencies.utils import get_flat_params
from fastapi.params import Query
from fastapi.routing import APIRoute

from rag_assets.serve.api.problems import FieldProblem, Problem


def check_parameters(request: Request) -> None:
    """Find out whether the route knows all parameters of an address.

    Raises:
        Problem: It does not.
    """
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = [field.alias for field in get_flat_params(route.dependant) if isinstance(field.field_info, Query)]
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        message = f"unknown parameter, expected one of {', '.join(known)}" if known else "expected no parameters"
        errors = tuple(FieldProblem(field=f"query.{name}"[:200], message=message) for name in unknown[:100])
        raise Problem(422, f"{errors[0].field}: {message}", errors=errors)
