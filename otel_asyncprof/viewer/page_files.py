"""The files of the page. Every path that is no file is the page itself, which reads from its address what to show."""

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response

FOLDER = Path(__file__).with_name("static")
_KEPT = "public, max-age=31536000, immutable"  # the build puts a hash into the names in assets/


async def page_file(request: Request) -> Response:
    """One file."""
    asked = request.path_params["path"]
    index = FOLDER / "index.html"
    try:
        path = (FOLDER / asked).resolve()
        found = path.is_relative_to(FOLDER.resolve()) and path.is_file()
    except (OSError, ValueError):
        found = False
    if not found and asked.startswith(("assets/", "speedscope/")):
        return Response(status_code=404)
    headers = {"Cache-Control": _KEPT if found and asked.startswith("assets/") else "no-cache"}
    return FileResponse(path if found else index, headers=headers)
