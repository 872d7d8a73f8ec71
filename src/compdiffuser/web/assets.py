"""The page's own files, read once at the start and served from memory, so that no request reaches the file system."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from compdiffuser.web.joining import joined

ENTRY = "main.js"  # the page's script, which is served with all that it imports
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


def asset_routes() -> list[Route]:
    """One route for each file; the page itself is at `/`."""
    folder = files("compdiffuser.web").joinpath("static")
    routes = []
    for file in folder.iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in TYPES:
            path = "/" if file.name == "index.html" else f"/static/{file.name}"
            routes.append(_route(path, file.read_bytes(), TYPES[suffix]))
    script = joined(ENTRY, lambda name: folder.joinpath(name).read_text(encoding="utf-8"))
    return [_route(f"/static/{ENTRY}", script.encode(), TYPES[".js"]), *routes]  # the first route of a path answers


def _route(path: str, content: bytes, media_type: str) -> Route:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}

    async def answer(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return Route(path, answer, methods=["GET"])
