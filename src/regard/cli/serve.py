"""``regard serve``: models as a service, with a page to look at them."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from regard.cli.common import Device, Model, Threads

__all__ = ["serve"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")

_More = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME=PATH", help="A further model and its name; may be repeated."),
]
_Languages = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SOURCE:TARGET",
        help="Languages of a model, for clients of LibreTranslate; SOURCE:TARGET alone is the first model's.",
    ),
]
_Host = Annotated[str, typer.Option(help="Where to listen; other than loopback is open to others.")]
_Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")]
_InputLength = Annotated[int, typer.Option(min=1, help="Longest input of a request in characters.")]
_Inputs = Annotated[int, typer.Option(min=1, help="Most inputs in one request.")]
_Body = Annotated[int, typer.Option(min=100, help="Largest body of a request in bytes.")]
_Beam = Annotated[int, typer.Option(min=1, help="Widest beam that a request may ask for.")]
_OutputLength = Annotated[
    int, typer.Option(min=1, help="Largest max_len that a request may ask for, in tokens.")
]
_Events = Annotated[int, typer.Option(min=1, help="Most events of a journey in a request.")]
_Draws = Annotated[
    int, typer.Option(min=0, help="Most rests that a request may have drawn for each journey.")
]
_Queue = Annotated[int, typer.Option(min=1, help="Most inputs that wait at a time; above, requests get 503.")]
_Timeout = Annotated[float, typer.Option(help="Seconds after which a request gets 504.")]
_BatchSize = Annotated[int, typer.Option(min=1, help="Most inputs decoded together.")]
_BatchWait = Annotated[
    float, typer.Option(min=0, help="Most milliseconds that an input waits for others to be decoded with.")
]
_LogLevel = Annotated[str, typer.Option(help="debug, info, warning or error.")]


def serve(
    model: Model,
    more: _More = None,
    languages: _Languages = None,
    host: _Host = "127.0.0.1",
    port: _Port = 8000,
    max_input_length: _InputLength = 2_000,
    max_inputs: _Inputs = 256,
    max_body: _Body = 1_000_000,
    max_beam: _Beam = 20,
    max_output_length: _OutputLength = 1_000,
    max_events: _Events = 1_000,
    max_draws: _Draws = 200,
    queue: _Queue = 2_048,
    timeout: _Timeout = 30.0,
    batch_size: _BatchSize = 64,
    batch_wait: _BatchWait = 5.0,
    log_level: _LogLevel = "info",
    threads: Threads = 0,
    device: Device = "auto",
) -> None:
    """Serve models of texts and of journeys: predict, score and explain over HTTP, and a page at /.

    Requests that arrive together are decoded together. Set REGARD_API_KEY to ask for a key. The description
    of the interface is at /docs, counters for Prometheus at /metrics. Ctrl-C finishes what was taken, then stops.
    """
    from regard.errors import ConfigError

    _check_installed()
    from regard.serve.settings import KEY_VARIABLE, make_settings

    if log_level not in ("debug", "info", "warning", "error"):
        raise ConfigError(f"--log-level {log_level!r} is none of debug, info, warning, error")
    settings = make_settings(
        max_input_length=max_input_length,
        max_inputs=max_inputs,
        max_body=max_body,
        max_beam=max_beam,
        max_output_length=max_output_length,
        max_events=max_events,
        max_draws=max_draws,
        queue=queue,
        timeout=timeout,
        batch_size=batch_size,
        batch_wait=batch_wait,
        api_key=os.environ.get(KEY_VARIABLE) or None,
    )
    from regard.device import set_threads
    from regard.serve.catalogue import parse_languages, parse_names
    from regard.serve.server import open_catalogue
    from regard.serve.server import serve as run

    folders = parse_names(model, more or [])
    pairs = parse_languages(languages or [], list(folders))
    set_threads(threads)
    catalogue = open_catalogue(folders, languages=pairs, device=device)
    if host not in _LOOPBACK and settings.api_key is None:
        sys.stderr.write(
            f"warning: anyone who reaches {host} can use this server; set {KEY_VARIABLE} to ask for a key\n"
        )
    run(catalogue, settings, host=host, port=port, log_level=log_level)


def _check_installed() -> None:
    """Say what to install if the extra is missing."""
    from importlib.util import find_spec

    from regard.errors import ConfigError

    needed = {"fastapi": "fastapi", "uvicorn": "uvicorn", "prometheus_client": "prometheus-client"}
    missing = [name for module, name in needed.items() if find_spec(module) is None]
    if missing:
        raise ConfigError(f"serve needs {', '.join(missing)}; pip install 'regard[serve]'")
