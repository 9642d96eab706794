from __future__ import annotations

import json
import math
import os
import signal

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import regard
from regard.config import make_config
from regard.data.batches import Batches
from regard.data.pairs import EncodedPairs, EncodedSide
from regard.errors import ConfigError, DataError, ModelFolderError, TrainingError
from regard.facts import LengthLimit
from regard.nn.model import EncoderDecoder
from regard.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from regard.training.events import Finished, Message, Progress, Started, Validated
from regard.training.loop import Trainer, smoothed_loss
from regard.training.optimiser import WeightAverage, learning_rate, make_optimiser
from regard.training.run import read_training_data, run_training
from regard.training.signals import StopSignal
from regard.training.state import TrainingState

TINY = {
    "model": {"hidden_size": 12, "embedding_size": 7, "dropout": 0.2},
    "training": {
        "epochs": 4,
        "batch_size": 16,
        "minutes": 0,
        "threads": 1,
        "validate_every": 7,
        "metric": "exact",
    },
}


@pytest.fixture(scope="module")
def words():
    rng = np.random.default_rng(3)
    made = {"".join(rng.choice(list("abcd"), int(rng.integers(1, 6)))) for _ in range(260)}
    return [(word, " ".join(word.upper())) for word in sorted(made)]


def tiny(**training):
    return make_config({**TINY, "training": {**TINY["training"], **training}})


def weights_of(folder):
    return load_file(folder / "model.safetensors")


class StopAt:
    """A listener that sends the process a signal at an update."""

    def __init__(self, step: int, number: int = signal.SIGTERM) -> None:
        self.step, self.number, self.sent = step, number, False

    def __call__(self, event) -> None:
        if isinstance(event, Validated | Progress) and event.step >= self.step and not self.sent:
            self.sent = True
            os.kill(os.getpid(), self.number)


VARIANTS = [
    {},
    {"schedule": "plateau", "plateau_patience": 0, "learning_rate": 0.02},
    {"schedule": "inverse_sqrt", "batch_unit": "tokens", "batch_size": 60},
    {"average_decay": 0.0, "patience": 2, "metric": "loss"},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("stop", [7, 10])
def test_stopped_and_resumed_equals_never_stopped(variant, stop, words, tmp_path, monkeypatch):
    monkeypatch.setattr("regard.training.loop._REPORT_SECONDS", 0.0)
    config = tiny(**variant)
    data = read_training_data(words, config=config)
    whole: list = []
    run_training(data, config=config, folder=tmp_path / "whole", listeners=[whole.append])
    with pytest.raises(StopSignal) as stopped:
        run_training(data, config=config, folder=tmp_path / "parts", listeners=[StopAt(stop)])
    assert stopped.value.exit_code == 128 + signal.SIGTERM
    parts: list = []
    run_training(data, config=config, folder=tmp_path / "parts", resume=True, listeners=[parts.append])
    one, other = weights_of(tmp_path / "whole"), weights_of(tmp_path / "parts")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    last_one, last_other = (load_checkpoint(tmp_path / name / "checkpoint") for name in ("whole", "parts"))
    for group in last_one.tensors:
        for name, tensor in last_one.tensors[group].items():
            assert torch.equal(tensor, last_other.tensors[group][name]), (group, name)
    for state in (last_one.state, last_other.state):
        state.pop("elapsed")
    assert last_one.state == last_other.state
    dev = [(event.step, event.values) for event in whole if isinstance(event, Validated)]
    dev_after = [(event.step, event.values) for event in parts if isinstance(event, Validated)]
    assert dev_after
    assert dev[-len(dev_after) :] == dev_after


def test_same_seed_gives_the_same_model_and_another_does_not(words, tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        config = tiny(seed=seed, epochs=1)
        run_training(read_training_data(words, config=tiny(epochs=1)), config=config, folder=tmp_path / name)
    a, b, c = (weights_of(tmp_path / name) for name in "abc")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not all(torch.equal(a[name], c[name]) for name in a)


def test_best_model_is_kept_and_not_the_last(words, tmp_path):
    events: list = []
    config = tiny(epochs=6, learning_rate=0.02)
    model = run_training(
        read_training_data(words, config=config),
        config=config,
        folder=tmp_path / "m",
        listeners=[events.append],
    )
    validations = [event for event in events if isinstance(event, Validated)]
    best = max(validations, key=lambda event: (event.values["exact"], -event.values["loss"]))
    finished = next(event for event in events if isinstance(event, Finished))
    assert finished.best_values["exact"] == best.values["exact"]
    assert model.facts.training["best_step"] == finished.best_step
    again = regard.load(tmp_path / "m")
    assert [p.text for p in again.predict(["ab", "dcba"])] == [p.text for p in model.predict(["ab", "dcba"])]


def test_patience_stops_early(words):
    events: list = []
    config = tiny(epochs=40, learning_rate=1e-7, patience=3, validate_every=2)
    run_training(read_training_data(words, config=config), config=config, listeners=[events.append])
    finished = next(event for event in events if isinstance(event, Finished))
    assert finished.reason == "no gain in 3 validations"
    assert finished.step < 40 * 9


def test_minutes_plan_the_updates_and_end_the_training(words):
    events: list = []
    config = tiny(epochs=10_000, minutes=0.04, patience=0)
    run_training(read_training_data(words, config=config), config=config, listeners=[events.append])
    finished = next(event for event in events if isinstance(event, Finished))
    assert finished.step < 10_000
    assert "minutes are over" in finished.reason or "updates done" in finished.reason
    assert finished.elapsed < 30


def test_started_tells_the_sizes_and_progress_the_speed(words, monkeypatch):
    monkeypatch.setattr("regard.training.loop._REPORT_SECONDS", 0.0)
    events: list = []
    config = tiny(epochs=1)
    run_training(read_training_data(words, config=config), config=config, listeners=[events.append])
    started = next(event for event in events if isinstance(event, Started))
    assert started.n_train + started.n_dev == len(words)
    progress = [event for event in events if isinstance(event, Progress)]
    assert all(event.pairs_per_second > 0 and event.tokens_per_second > 0 for event in progress)
    assert progress[-1].step == started.planned_steps
    assert all(math.isfinite(event.loss) for event in progress)


def test_events_are_lines_of_json(words, tmp_path):
    config = tiny(epochs=1)
    run_training(read_training_data(words, config=config), config=config, folder=tmp_path / "m")
    lines = (tmp_path / "m" / "training.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(line)["event"] for line in lines]
    assert kinds[-1] == "finished"
    assert {"started", "validated", "progress"} <= set(kinds)


def test_loss_that_is_not_finite_stops_with_the_update_and_what_to_lower(words, tmp_path):
    config = tiny(
        learning_rate=1e6, epochs=30, warmup_steps=0, patience=0, weight_decay=0.5, average_decay=0.0
    )
    with pytest.raises(
        TrainingError, match=r"not finite at update \d+ .*lower training.learning_rate"
    ) as caught:
        run_training(read_training_data(words, config=config), config=config, folder=tmp_path / "m")
    assert caught.value.exit_code == 1


def test_one_pair_trains_with_a_warning(tmp_path):
    config = tiny(metric="loss", epochs=2)
    data = read_training_data([("a", "x")], config=config)
    assert data.messages == [Message("only one source: there is nothing to validate on", warning=True)]
    model = run_training(data, config=config, folder=tmp_path / "m")
    assert len(model.predict(["a"])) == 1
    twice = read_training_data([("a", "x"), ("a", "x")], config=config)
    assert not twice.dev


def test_metric_without_dev_data_is_refused():
    config = tiny()
    with pytest.raises(ConfigError, match="needs dev data"):
        run_training(read_training_data([("a", "x")], config=config), config=config)


def test_hundred_pairs_with_few_to_validate_on_train(words):
    config = tiny(epochs=2, batch_size=64)
    data = read_training_data(words[:100], config=config, dev=words[100:110])
    model = run_training(data, config=config)
    assert model.facts.data["n_dev"] == 10


def test_taken_folder_is_refused_and_force_replaces_only_what_is_ours(words, tmp_path):
    config = tiny(epochs=1)
    data = read_training_data(words, config=config)
    folder = tmp_path / "m"
    folder.mkdir()
    (folder / "mine.txt").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match="is not empty and is no model folder"):
        run_training(data, config=config, folder=folder)
    run_training(data, config=config, folder=folder, force=True)
    with pytest.raises(ConfigError, match="go on with --resume, or replace it with --force"):
        run_training(data, config=config, folder=folder)
    run_training(data, config=config, folder=folder, force=True)
    assert (folder / "mine.txt").exists()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigError, match="is a file"):
        run_training(data, config=config, folder=tmp_path / "file")


def test_resume_refuses_other_settings_other_data_and_nothing(words, tmp_path):
    config = tiny(epochs=1)
    data = read_training_data(words, config=config)
    with pytest.raises(ConfigError, match="no checkpoint to go on from"):
        run_training(data, config=config, folder=tmp_path / "m", resume=True)
    run_training(data, config=config, folder=tmp_path / "m")
    with pytest.raises(ConfigError, match=r"cannot change training\.learning_rate"):
        run_training(data, config=tiny(epochs=1, learning_rate=0.5), folder=tmp_path / "m", resume=True)
    with pytest.raises(DataError, match="but these are others"):
        run_training(
            read_training_data(words[:50], config=config), config=config, folder=tmp_path / "m", resume=True
        )
    run_training(data, config=tiny(epochs=2), folder=tmp_path / "m", resume=True)
    assert load_checkpoint(tmp_path / "m" / "checkpoint").state["epoch"] == 2


def test_too_long_pairs_are_left_out_and_counted(words):
    config = make_config(
        {**TINY, "data": {"max_source_len": 3}, "training": {**TINY["training"], "epochs": 1}}
    )
    events: list = []
    run_training(read_training_data(words, config=config), config=config, listeners=[events.append])
    said = [event.text for event in events if isinstance(event, Message)]
    assert any("longer than 3 source or 500 target tokens and were left out" in text for text in said)
    short = make_config({**TINY, "data": {"max_source_len": 1}})
    with pytest.raises(DataError, match="no training pair is left"):
        run_training(read_training_data([("abc", "x"), ("abd", "y")], config=short), config=short)


def test_tensorboard_writes_events_when_asked(words, tmp_path):
    pytest.importorskip("tensorboard")
    config = tiny(epochs=1, tensorboard=True)
    run_training(read_training_data(words, config=config), config=config, folder=tmp_path / "m")
    assert list((tmp_path / "m" / "tensorboard").glob("events*"))


def test_bfloat16_trains_with_float32_weights_where_the_processor_can(words):
    config = tiny(epochs=1, precision="bfloat16")
    data = read_training_data(words, config=config)
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        with pytest.raises(ConfigError, match="this processor cannot do it"):
            run_training(data, config=config)
        return
    model = run_training(data, config=config)
    assert model.facts.training["precision"] == "bfloat16"
    assert all(p.dtype == torch.float32 for p in model.model.parameters())


def test_corpus_by_name_brings_its_own_dev_part():
    config = tiny()
    data = read_training_data("copy?lengths=2-4", config=config)
    assert len(data.dev) > 0
    assert data.source == "copy?lengths=2-4"


# Checkpoints


def test_checkpoint_comes_back_as_it_was(tmp_path):
    tensors = {"weights": {"a": torch.randn(2, 3)}, "random": {"cpu": torch.get_rng_state()}}
    save_checkpoint(tmp_path, Checkpoint(tensors, {"step": 3}), name="step-3")
    found = load_checkpoint(tmp_path)
    assert found.state == {"step": 3}
    assert torch.equal(found.tensors["weights"]["a"], tensors["weights"]["a"])
    assert load_checkpoint(tmp_path / "none") is None


def test_newest_checkpoint_replaces_the_one_before_only_when_complete(tmp_path, monkeypatch):
    def checkpoint(step):
        return Checkpoint({"weights": {"a": torch.full((5,), float(step))}}, {"step": step})

    save_checkpoint(tmp_path, checkpoint(1), name="step-1")

    def full_disk(*args):
        raise OSError(28, "No space left on device")

    for broken in ("save_file", "sync_folder", "write_text"):
        with monkeypatch.context() as patch:
            patch.setattr(f"regard.training.checkpoint.{broken}", full_disk)
            with pytest.raises(OSError, match="No space left"):
                save_checkpoint(tmp_path, checkpoint(2), name="step-2")
        assert load_checkpoint(tmp_path).state == {"step": 1}
    save_checkpoint(tmp_path, checkpoint(2), name="step-2")
    assert load_checkpoint(tmp_path).state == {"step": 2}
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == [
        json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))["newest"]
    ]


@pytest.mark.parametrize("damage", ["remove", "truncate", "flip"])
def test_damaged_checkpoint_is_named(tmp_path, damage):
    save_checkpoint(tmp_path, Checkpoint({"weights": {"a": torch.ones(9)}}, {}), name="step-1")
    path = next(tmp_path.glob("step-1*/weights.safetensors"))
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(raw if damage == "flip" else raw[:-4])
    with pytest.raises(ModelFolderError, match="missing or changed since it was written"):
        load_checkpoint(tmp_path)


def test_manifest_that_is_none_is_named(tmp_path):
    (tmp_path / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelFolderError, match="not a manifest of regard"):
        load_checkpoint(tmp_path)


# Parts


def test_smoothed_loss_by_hand():
    logits = torch.tensor([[1.0, 0.0, -1.0]])
    log_probs = logits.log_softmax(-1)[0]
    expected = -(0.9 * log_probs[1] + 0.1 * log_probs.mean())
    assert smoothed_loss(logits, torch.tensor([1]), smoothing=0.1).item() == pytest.approx(expected.item())


def test_learning_rates_by_hand():
    def rate(step, schedule, **changes):
        settings = make_config(
            {"training": {"learning_rate": 1.0, "warmup_steps": 100, "schedule": schedule}}
        ).training
        return learning_rate(settings, step=step, total=1100, **changes)

    assert rate(50, "cosine") == rate(50, "constant") == 0.5
    assert rate(100, "cosine") == 1.0
    assert rate(600, "cosine") == pytest.approx(0.01 + 0.99 / 2)
    assert rate(1100, "cosine") == pytest.approx(0.01)
    assert rate(400, "inverse_sqrt") == pytest.approx(0.5)
    assert rate(400, "plateau", halvings=2) == 0.25
    assert rate(400, "constant") == 1.0


def test_average_follows_the_weights_with_a_warmed_up_decay():
    model = torch.nn.Linear(1, 1, bias=False)
    average = WeightAverage(model, decay=0.5)
    start = average.model.weight.item()
    with torch.no_grad():
        model.weight.fill_(10.0)
    average.update(1)
    decay = 2 / 11
    assert average.model.weight.item() == pytest.approx(decay * start + (1 - decay) * 10)
    average.update(1000)
    assert WeightAverage(model, decay=0.0).model is model


def test_vectors_do_not_decay():
    settings = make_config({"training": {"weight_decay": 0.3}}).training
    groups = make_optimiser(torch.nn.Linear(3, 5), settings).param_groups
    assert [(group["weight_decay"], [p.dim() for p in group["params"]]) for group in groups] == [
        (0.3, [2]),
        (0.0, [1]),
    ]


def test_patience_and_halvings_are_counted():
    state = TrainingState()
    settings = make_config(
        {"training": {"schedule": "plateau", "plateau_patience": 0, "metric": "exact"}}
    ).training
    assert state.take_validation({"loss": 2.0, "exact": 50.0}, settings)
    assert not state.take_validation({"loss": 3.0, "exact": 50.0}, settings)
    assert (state.waited, state.halvings) == (1, 1)
    assert state.take_validation({"loss": 1.0, "exact": 50.0}, settings)
    assert (state.waited, state.best_values["loss"]) == (0, 1.0)


def test_length_limit_covers_each_training_pair_with_room():
    source, target = np.array([1, 2, 5, 9]), np.array([8, 3, 10, 12])
    limit = LengthLimit.from_lengths(source, target)
    assert all(limit(int(s)) >= t + 9 for s, t in zip(source, target, strict=True))
    assert limit(100) > limit(9)


def test_trainer_without_folder_or_dev_keeps_the_newest_average():
    torch.manual_seed(0)
    config = tiny(epochs=2, metric="loss")
    side = EncodedSide.join([[3, 4], [4], [5, 3, 4]])
    model = EncoderDecoder(config.model, source_size=7, target_size=7)
    kept: list[int] = []
    trainer = Trainer(
        model,
        Batches(EncodedPairs(side, side), batch_size=2),
        config.training,
        validate=None,
        keep_best=lambda network, state: kept.append(state.step),
        folder=None,
        listeners=[],
    )
    state = trainer.run()
    assert state.step == 4
    assert kept[-1] == 4
