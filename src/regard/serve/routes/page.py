"""``/`` and ``/docs``: the pages, and the files they are made of."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

import regard.explain

__all__ = ["mount_files", "router"]

router = APIRouter(include_in_schema=False)

_STATIC = Path(__file__).parents[1] / "static"
_PLAYER = Path(regard.explain.__file__).parent / "player"


@router.get("/")
async def page() -> FileResponse:
    """The page."""
    return FileResponse(_STATIC / "index.html")


@router.get("/docs")
async def docs() -> FileResponse:
    """The description of the interface, to be read."""
    return FileResponse(_STATIC / "docs.html")


@router.get("/favicon.ico")
async def favicon() -> FileResponse:
    """The icon."""
    return FileResponse(_STATIC / "icon.svg", media_type="image/svg+xml")


def mount_files(app: FastAPI) -> None:
    """Serve the pages' scripts and styles, and those of the player."""
    app.mount("/static/player", StaticFiles(directory=_PLAYER))
    app.mount("/static", StaticFiles(directory=_STATIC))
