"""What is wrong with a value that people or programs send, in the words of JSON."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_NO_FORMS: Mapping[str, str] = MappingProxyType({})


def problem_text(error: Mapping[str, Any], forms: Mapping[str, str] = _NO_FORMS) -> str:
    """What is wrong with a value, and what was expected.

    Args:
        error: As pydantic tells it.
        forms: By name of a list, how one is written, as in `["format=xlsx"]`.
    """
    match error["type"]:
        case "list_type" | "tuple_type":
            names = [place for place in error["loc"] if place in forms]
            return f"expected a list, as in {forms[names[-1]]}" if names else "expected a list"
        case "bool_type":
            return f"expected true or false, found {json.dumps(error['input'], ensure_ascii=False, default=str)}"
    return str(error["msg"])
