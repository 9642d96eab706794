"""A file too large to keep as texts trains the same way, encoded once into the model folder."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import regard
from regard.config import make_config
from regard.data import store
from regard.errors import DataError
from regard.training import sources
from regard.training.events import Message
from regard.training.run import read_training_data
from regard.training.sources import FilePairs

SETTINGS = {
    "model": {"hidden_size": 16, "embedding_size": 8},
    "training": {"batch_size": 16, "epochs": 1, "minutes": 0, "metric": "loss"},
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(sources, "LARGE_FILE", 1000)
    monkeypatch.setattr(sources, "_SAMPLE", 100)
    monkeypatch.setattr(store, "SHARD", 128)


@pytest.fixture
def pairs():
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abcdef"), rng.integers(1, 7))) for _ in range(700)]
    return [(word, word.upper()) for word in words]


@pytest.fixture
def file(tmp_path, pairs):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return path


def test_held_out_pairs_are_apart_and_none_is_lost(file, pairs):
    data = read_training_data(file, config=make_config({"data": {"dev_fraction": 0.1}}))
    assert isinstance(data.train, FilePairs)
    train = list(data.train)
    assert sorted(train + data.dev) == sorted(pairs)
    assert list(data.train) == train  # again
    assert not {source for source, _ in train} & {source for source, _ in data.dev}
    assert 20 <= len(data.dev) <= 200
    other = read_training_data(file, config=make_config({"training": {"seed": 2}}))
    assert other.dev != data.dev


def test_the_sample_is_even(file, pairs):
    data = FilePairs(file, target_path=None, settings=make_config({}).data, format=None)
    assert data.n_all == len(pairs)
    assert data.sample == pairs[::8]


def test_it_trains_and_finds_its_store_again(file, tmp_path):
    messages = []

    def listen(event):
        if isinstance(event, Message):
            messages.append(event.text)

    first = regard.train(file, output=tmp_path / "m", settings=SETTINGS, listeners=[listen])
    assert any(text.startswith("encoding 700 pairs") for text in messages)
    messages.clear()
    again = regard.train(file, output=tmp_path / "m", settings=SETTINGS, listeners=[listen], force=True)
    assert any("found encoded" in text for text in messages)
    assert first.predict(["abc"])[0].score == again.predict(["abc"])[0].score
    made = list((tmp_path / "m" / "data").iterdir())
    assert len(made) == 1
    file.write_text(file.read_text().replace("a\t", "b\t"))
    regard.train(file, output=tmp_path / "m", settings=SETTINGS, force=True)
    now = list((tmp_path / "m" / "data").iterdir())
    assert len(now) == 1
    assert now != made
    regard.train([("a", "b"), ("b", "a"), ("c", "c")], output=tmp_path / "m", settings=SETTINGS, force=True)
    assert not (tmp_path / "m" / "data").exists()


def test_a_resumed_training_equals_one_that_was_not_stopped(file, tmp_path):
    def run(folder, steps, **more):
        settings = {**SETTINGS, "training": {**SETTINGS["training"], "epochs": 3, "schedule": "constant"}}
        settings["training"]["max_steps"] = steps
        return regard.train(file, output=tmp_path / folder, settings=settings, **more)

    whole = run("whole", 60)
    run("parts", 25)
    parts = run("parts", 60, resume=True)
    assert whole.predict(["abcd"])[0].score == parts.predict(["abcd"])[0].score


def test_a_bad_line_is_refused_before_anything_is_written(file, tmp_path):
    with file.open("a", encoding="utf-8") as out:
        out.write("no tab\n")
    with pytest.raises(DataError, match="found 1 column"):
        regard.train(file, output=tmp_path / "m", settings=SETTINGS)
    assert not (tmp_path / "m").exists()


def test_packed_files_count_as_unpacked(file, monkeypatch):
    packed = file.with_suffix(".tsv.gz")
    packed.write_bytes(gzip.compress(file.read_bytes()))
    monkeypatch.setattr(sources, "LARGE_FILE", packed.stat().st_size * 2)
    data = read_training_data(packed, config=make_config({}))
    assert isinstance(data.train, FilePairs)
    monkeypatch.setattr(sources, "LARGE_FILE", packed.stat().st_size * 5)
    assert isinstance(read_training_data(packed, config=make_config({})).train, list)
