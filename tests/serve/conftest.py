"""A server for all tests of a file that need no limits of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regard.serve.catalogue import Catalogue
from serve.servers import Server, catalogue_of


@pytest.fixture(scope="session")
def catalogue(upper_model: Path) -> Catalogue:
    return catalogue_of(upper_model, upper=("en", "x-upper"))


@pytest.fixture(scope="module")
def server(catalogue: Catalogue) -> Iterator[Server]:
    with Server(catalogue) as running:
        yield running
