from __future__ import annotations

import json

import pytest

from regard.config import PRESETS, Config, load_config, make_config, merge
from regard.errors import ConfigError, RegardError, did_you_mean
from regard.registry import SCORES, Registry

IMPOSSIBLE = [
    ({"hidden_size": 7}, "hidden_size 7 is odd"),
    ({"context": "last", "input_feeding": True}, "input_feeding needs context: attention"),
    ({"context": "pooled", "attend_before_cell": True}, "attend_before_cell needs context: attention"),
    ({"context": "last", "attention": {"score": "dot"}}, "attention settings have no effect"),
    ({"context_every_step": True}, "context_every_step is for a fixed context"),
    ({"pool": "max"}, "pool: max needs context: pooled"),
    ({"input_feeding": True, "attend_before_cell": True}, "two ways to do one thing"),
    ({"bridge": "copy", "context": "pooled"}, "context: pooled replaces it"),
    ({"bridge": "copy", "encoder_layers": 2}, "as many encoder layers"),
    ({"attention": {"heads": 3}}, "cannot be shared among 3 heads"),
    ({"attention": {"score": "location", "window": "local_m"}}, "nothing to narrow"),
    ({"tie_embeddings": True}, "tie_embeddings needs embedding_size"),
]


@pytest.mark.parametrize(("model", "reason"), IMPOSSIBLE)
def test_impossible_combination_is_refused_with_its_reason(model, reason):
    with pytest.raises(ConfigError, match=reason):
        make_config({"model": model})


def test_all_mistakes_are_reported_at_once_in_one_line():
    with pytest.raises(ConfigError) as caught:
        make_config(
            {
                "model": {"cel": "gru", "hidden_size": -1, "attention": {"score": "addtive"}},
                "training": {"pacience": 3},
                "no": 1,
            }
        )
    message = str(caught.value)
    assert "model.cel: no such setting; did you mean 'cell'?" in message
    assert "model.hidden_size: Input should be greater than or equal to 1 (got -1)" in message
    assert "did you mean 'additive'?" in message
    assert "training.pacience: no such setting; did you mean 'patience'?" in message
    assert "no: no such setting" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"model": {"cell": "ltsm"}}, "did you mean 'lstm'"),
        ({"model": {"attention": {"normaliser": "softmx"}}}, "did you mean 'softmax'"),
        ({"training": {"metric": "blue"}}, "did you mean 'bleu'"),
        ({"training": {"schedule": "plateau", "validate_every": 1}}, "reacts to noise"),
        (
            {"model": {"context": "last"}, "decoding": {"coverage_penalty": 0.1}},
            "coverage_penalty needs attention",
        ),
        ({"version": 99}, "format is version 99"),
        ({"model": {"cell": 3}}, "model.cell"),
    ],
)
def test_other_mistakes_say_what_is_allowed(settings, reason):
    with pytest.raises(ConfigError, match=reason):
        make_config(settings)


def test_unknown_preset_names_those_there_are():
    with pytest.raises(ConfigError, match="none of the presets: default, .*did you mean 'luong2015'"):
        make_config(preset="luong2016")


@pytest.mark.parametrize("preset", list(PRESETS))
def test_presets_are_valid_and_survive_json(preset, tmp_path):
    config = make_config(preset=preset)
    path = tmp_path / "config.json"
    path.write_text(config.to_json(), encoding="utf-8")
    assert load_config(path) == config
    assert json.loads(config.to_json())["preset"] == preset


def test_settings_override_the_preset():
    config = make_config({"preset": "cho2014", "model": {"cell": "lstm"}})
    assert config.model.cell == "lstm"
    assert config.model.context == "projected"


def test_yaml_is_read_and_empty_yaml_is_the_default(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("model:\n  hidden_size: 12\n", encoding="utf-8")
    assert load_config(path).model.hidden_size == 12
    path.write_text("", encoding="utf-8")
    assert load_config(path) == Config()


@pytest.mark.parametrize("text", ["- 1\n", "a: [\n"])
def test_file_of_no_settings_is_one_line_that_names_it(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"a\.yaml") as caught:
        load_config(path)
    assert "\n" not in str(caught.value)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read as settings"):
        load_config(tmp_path / "none.json")


def test_settings_do_not_change_once_read():
    with pytest.raises(ValueError, match="frozen"):
        make_config().model.cell = "gru"


def test_merge_leaves_its_arguments_alone():
    base = {"a": {"b": 1}}
    assert merge(base, {"a": {"c": 2}}) == {"a": {"b": 1, "c": 2}}
    assert base == {"a": {"b": 1}}


def test_registry_takes_one_name_once():
    registry = Registry("things", {"one": "math:pi"})
    assert registry.get("one") == pytest.approx(3.14159, abs=1e-5)
    registry.register("two")(2)
    assert registry.get("two") == 2
    assert registry.names() == ["one", "two"]
    for name in ("one", "two"):
        with pytest.raises(ConfigError, match="is already one of the things"):
            registry.register(name)(3)
    with pytest.raises(ConfigError, match="none of the things: one, two; did you mean 'two'"):
        registry.get("tow")


def test_entry_points_of_other_packages_are_found(monkeypatch):
    from importlib.metadata import EntryPoint

    def points(group):
        assert group == "regard.scores"
        return [EntryPoint("theirs", "math:tau", group)]

    monkeypatch.setattr("regard.registry.entry_points", points)
    registry = Registry("scores", {"dot": "regard.nn.scores:DotScore"})
    assert registry.get("theirs") == pytest.approx(6.28318, abs=1e-5)
    assert "theirs" in registry.names()
    assert "dot" in SCORES.names()


def test_nearest_name_is_offered_only_when_near():
    assert did_you_mean("lstn", ["lstm", "gru"]) == "; did you mean 'lstm'?"
    assert did_you_mean("xyz", ["lstm", "gru"]) == ""
    assert issubclass(ConfigError, RegardError)
