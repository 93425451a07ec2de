"""The web page: its files, and the addresses under which it shows documents, pages and communities.

What stays out: what the page shows, which it asks the API for.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles

WEB_FOLDER = Path(__file__).parents[1] / "web"
_VIEWS = (
    *("/", "/compare", "/documents", "/documents/{rest:path}", "/communities", "/communities/{rest:path}"),
    "/pages/{rest:path}",
)
# after an update no part of the old page may meet a part of the new one
_ASK_AGAIN: Mapping[str, str] = MappingProxyType({"Cache-Control": "no-cache"})


class _Files(StaticFiles):
    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        response = super().file_response(*args, **kwargs)
        response.headers.update(_ASK_AGAIN)
        return response


def add_web_page(app: FastAPI) -> None:
    """Serve the page; everything else must have its route already.

    Args:
        app: The application.
    """

    async def view() -> Response:
        return FileResponse(WEB_FOLDER / "index.html", headers=_ASK_AGAIN)

    for path in _VIEWS:
        app.add_api_route(path, view, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/", _Files(directory=WEB_FOLDER), name="web")
