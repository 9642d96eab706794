from __future__ import annotations

import warnings

import numpy as np
import pytest
from PIL import Image, ImageSequence

from explain.models import SOURCES, random_model
from regard.errors import ConfigError
from regard.explain.film import _moments, _Scene, draw_film
from regard.explain.trace import trace


def scene(record):
    hypothesis = record.hypotheses[0]
    return _Scene(record, hypothesis, hypothesis.weights, hypothesis.scores, list(record.source_tokens), [])


@pytest.mark.parametrize(
    "model", [{}, {"attend_before_cell": True}, {"context": "pooled"}, {"attention": {"heads": 2}}]
)
def test_film_shows_the_encoder_then_every_step(tmp_path, model):
    record = trace(random_model(**model), "12月", max_len=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_film(record, tmp_path / "a.gif")
    with Image.open(tmp_path / "a.gif") as film:
        assert film.format == "GIF"
        assert film.info["loop"] == 0
        pictures = [np.asarray(frame.convert("L"), dtype=float) for frame in ImageSequence.Iterator(film)]
    # Equal pictures that follow each other are one in the file.
    assert len(record.source_tokens) < len(pictures) <= len(list(_moments(scene(record))))
    assert np.abs(pictures[0] - pictures[-1]).max() > 50


def test_moments_go_through_the_phases_of_each_step_in_order():
    record = trace(random_model(), SOURCES[0], max_len=2)
    moments = list(_moments(scene(record)))
    n = len(record.source_tokens)
    assert [moment.encoded for moment in moments[:n]] == list(range(1, n + 1))
    for step in range(3):
        first = [next(i for i, m in enumerate(moments) if m.step == step and getattr(m, phase))
                 for phase in ("state", "scores", "weights", "context", "combine", "word")]  # fmt: skip
        assert first == sorted(first)
        assert len(set(first)) == 6
    assert moments[-1].milliseconds > 1000


def test_film_has_another_ending_than_gif_or_nothing_to_show(tmp_path):
    record = trace(random_model(), "12", max_len=2)
    with pytest.raises(ConfigError, match=r"ends in \.gif, not in '\.png'"):
        draw_film(record, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
