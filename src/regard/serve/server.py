"""Starting and stopping the server."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from regard.errors import ConfigError
from regard.folder import load_model
from regard.journeys import is_journey_folder
from regard.serve.catalogue import Catalogue, ServedModel, languages_of
from regard.serve.journeys import open_journeys
from regard.serve.settings import ServeSettings

__all__ = ["open_catalogue", "serve"]


def open_catalogue(
    folders: Mapping[str, Path], *, languages: Mapping[str, tuple[str, str]], device: str
) -> Catalogue:
    """Load models and make each answer once, so that the first request does not wait for it.

    Args:
        folders: By name, the first model first.
        languages: By name; a built-in corpus between two languages tells its own.
        device: Where they run.

    Raises:
        ModelFolderError: What is wrong with which folder.
    """
    models, journeys = [], []
    for name, folder in folders.items():
        if is_journey_folder(folder):
            journeys.append(open_journeys(name, folder, device=device))
            continue
        model = load_model(folder, device=device)
        model.predict(["1"])
        pair = languages.get(name) or languages_of(model.facts.data)
        models.append(ServedModel(name, model, pair))
    return Catalogue(models, journeys)


def _set_up_logging(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    for name in ("regard.serve", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())


def serve(
    catalogue: Catalogue, settings: ServeSettings, *, host: str, port: int, log_level: str = "info"
) -> None:
    """Serve until a signal to stop comes; what was taken by then is finished.

    Raises:
        ConfigError: The address is taken, or cannot be had.
    """
    import uvicorn

    from regard.serve.app import create_app

    config = uvicorn.Config(
        create_app(catalogue, settings),
        host=host,
        port=port,
        # uvicorn's own access log would have whole addresses, and they may hold inputs.
        access_log=False,
        log_config=None,
        server_header=False,
        ws="none",
        backlog=2048,
        timeout_keep_alive=30,
    )
    _set_up_logging(log_level)
    try:
        socket = config.bind_socket()
    except (OSError, SystemExit) as error:
        reason = getattr(error, "strerror", None) or "it is taken, or not one of this machine's"
        raise ConfigError(f"--host {host} --port {port}: cannot listen there ({reason})") from None
    socket.listen(config.backlog)  # from here on nobody is turned away
    shown = f"[{host}]" if ":" in host else host
    names = ", ".join(served.name for served in (*catalogue, *catalogue.all_journeys))
    sys.stderr.write(f"serving {names} at http://{shown}:{socket.getsockname()[1]}/ (Ctrl-C stops)\n")
    sys.stderr.flush()
    # uvicorn raises the signal once more after its shutdown; by then all is done, and the end is a good one.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    uvicorn.Server(config).run(sockets=[socket])
