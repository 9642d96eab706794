from __future__ import annotations

import pytest

from regard.compare.variants import choose_variants, family_of, variant_names
from regard.errors import ConfigError
from regard.registry import SCORES


def test_default_variants_are_the_fixed_contexts_and_each_score():
    chosen = {variant.name: variant.config({}).model for variant in choose_variants()}
    fixed = {name: model for name, model in chosen.items() if model.context != "attention"}
    assert {(m.context, m.pool, m.reverse_source, m.context_every_step) for m in fixed.values()} == {
        ("last", "mean", False, False),
        ("projected", "mean", False, False),
        ("pooled", "mean", False, False),
        ("pooled", "query", False, False),
        ("last", "mean", True, False),
        ("last", "mean", False, True),
    }
    attending = [model.attention for name, model in chosen.items() if name not in fixed]
    assert sorted(attention.score for attention in attending) == SCORES.names()
    assert {(attention.window, attention.normaliser) for attention in attending} == {("global", "softmax")}


@pytest.mark.parametrize("name", variant_names())
def test_every_name_makes_settings_that_work(name):
    for variant in choose_variants([name]):
        config = variant.config({"training": {"minutes": 3}})
        assert config.training.minutes == 3
        assert family_of(config) == ("attention" if config.model.context == "attention" else "fixed")


def test_windows_and_normalisers_can_be_asked_for():
    made = [variant.config({}).model.attention for variant in choose_variants(["windows"])]
    assert [(attention.window, attention.normaliser) for attention in made] == [
        ("local_m", "softmax"),
        ("local_p", "softmax"),
        ("global", "sparsemax"),
        ("global", "entmax15"),
    ]


def test_a_score_that_is_registered_is_a_variant(monkeypatch):
    monkeypatch.setitem(SCORES._loaded, "my_own", object())
    assert "attention-my-own" in {variant.name for variant in choose_variants(["attention"])}


def test_unknown_variant_names_the_nearest():
    with pytest.raises(
        ConfigError, match=r"'atention-dot' is none of the variants.*did you mean 'attention-dot'\?"
    ):
        choose_variants(["last", "atention-dot"])


def test_a_variant_named_twice_is_compared_once():
    assert [variant.name for variant in choose_variants(["last", "fixed"])].count("last") == 1


def test_a_file_of_settings_is_a_variant(tmp_path):
    path = tmp_path / "two-layers.yaml"
    path.write_text("model: {encoder_layers: 2, attention: {score: additive}}\n", encoding="utf-8")
    (variant,) = choose_variants([str(path)])
    assert variant.name == "two-layers"
    assert variant.config({}).model.encoder_layers == 2
    assert variant.config({}).model.attention.score == "additive"
    taken = tmp_path / "last.yaml"
    taken.write_text("model: {cell: gru}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="there is a variant last already; rename the file"):
        choose_variants([str(taken)])


def test_settings_that_cannot_work_name_the_variant():
    (variant,) = choose_variants(["last"])
    with pytest.raises(ConfigError, match="variant last: .*input_feeding needs context: attention"):
        variant.config({"model": {"input_feeding": True}})
