"""``regard serve``: models as a service, with a page to look at them."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from regard.cli.common import Device, Model, Threads

__all__ = ["serve"]

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(
    model: Model,
    more: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="NAME=PATH", help="A further model and its name; may be repeated."),
    ] = None,
    languages: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SOURCE:TARGET",
            help="Languages of a model, for clients of LibreTranslate; SOURCE:TARGET alone is the first model's.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen; other than loopback is open to others.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any that is free.")] = 8000,
    max_input_length: Annotated[
        int, typer.Option(min=1, help="Longest input of a request in characters.")
    ] = 2_000,
    max_inputs: Annotated[int, typer.Option(min=1, help="Most inputs in one request.")] = 256,
    max_body: Annotated[int, typer.Option(min=100, help="Largest body of a request in bytes.")] = 1_000_000,
    max_beam: Annotated[int, typer.Option(min=1, help="Widest beam that a request may ask for.")] = 20,
    max_output_length: Annotated[
        int, typer.Option(min=1, help="Largest max_len that a request may ask for, in tokens.")
    ] = 1_000,
    queue: Annotated[
        int, typer.Option(min=1, help="Most inputs that wait at a time; above, requests get 503.")
    ] = 2_048,
    timeout: Annotated[float, typer.Option(help="Seconds after which a request gets 504.")] = 30.0,
    batch_size: Annotated[int, typer.Option(min=1, help="Most inputs decoded together.")] = 64,
    batch_wait: Annotated[
        float,
        typer.Option(min=0, help="Most milliseconds that an input waits for others to be decoded with."),
    ] = 5.0,
    log_level: Annotated[str, typer.Option(help="debug, info, warning or error.")] = "info",
    threads: Threads = 0,
    device: Device = "auto",
) -> None:
    """Serve models: predict, score and explain over HTTP, and a page at /.

    Requests that arrive together are decoded together. Set REGARD_API_KEY to ask for a key. The description
    of the interface is at /docs, counters for Prometheus at /metrics. Ctrl-C finishes what was taken, then stops.
    """
    from regard.errors import ConfigError

    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ConfigError(f"serve needs {error.name}; pip install 'regard[serve]'") from None
    from regard.device import set_threads
    from regard.serve.catalogue import parse_languages, parse_names
    from regard.serve.server import open_catalogue
    from regard.serve.server import serve as run
    from regard.serve.settings import KEY_VARIABLE, make_settings

    if log_level not in ("debug", "info", "warning", "error"):
        raise ConfigError(f"--log-level {log_level!r} is none of debug, info, warning, error")
    settings = make_settings(
        max_input_length=max_input_length,
        max_inputs=max_inputs,
        max_body=max_body,
        max_beam=max_beam,
        max_output_length=max_output_length,
        queue=queue,
        timeout=timeout,
        batch_size=batch_size,
        batch_wait=batch_wait,
        api_key=os.environ.get(KEY_VARIABLE) or None,
    )
    folders = parse_names(model, more or [])
    pairs = parse_languages(languages or [], list(folders))
    set_threads(threads)
    catalogue = open_catalogue(folders, languages=pairs, device=device)
    if host not in _LOOPBACK and settings.api_key is None:
        sys.stderr.write(
            f"warning: anyone who reaches {host} can use this server; set {KEY_VARIABLE} to ask for a key\n"
        )
    run(catalogue, settings, host=host, port=port, log_level=log_level)
