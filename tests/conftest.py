"""What several test files share: random and trained small models, and where the real data are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real data, or a skip that says where they were looked for."""
    named = os.environ.get("REGARD_DATA")
    folder = Path(named) if named else Path(__file__).parents[1] / ".." / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real data; {folder} does not exist (set REGARD_DATA)")
    return folder


@pytest.fixture(scope="session")
def upper_pairs() -> list[tuple[str, str]]:
    """Lower-case words and their upper-case phones, which a small model learns in seconds."""
    import random

    rng = random.Random(5)
    words = {"".join(rng.choice("abcdefgh") for _ in range(rng.randint(1, 7))) for _ in range(900)}
    return [(word, " ".join(word.upper())) for word in sorted(words)]


@pytest.fixture(scope="session")
def upper_model(upper_pairs: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder trained on `upper_pairs` through the Python call."""
    import regard

    folder = tmp_path_factory.mktemp("upper") / "model"
    regard.train(
        upper_pairs,
        output=folder,
        settings={
            "model": {"hidden_size": 48, "embedding_size": 24, "dropout": 0.1},
            "training": {"epochs": 14, "batch_size": 32, "learning_rate": 0.01, "threads": 1, "minutes": 0},
        },
    )
    return folder
