"""A search that is watched finds the same, and is seen as it was."""

from __future__ import annotations

import numpy as np
import pytest

import regard


@pytest.fixture(scope="module")
def model(upper_model):
    return regard.load(upper_model, device="cpu")


SOURCES = ["abc", "", "hgfedcb", "a", "?b"]


@pytest.mark.parametrize(
    "settings", [{"beam": 1}, {"beam": 5, "nbest": 3}, {"beam": 3, "coverage_penalty": 0.2}]
)
def test_watching_changes_nothing(model, settings):
    plain = model.predict(SOURCES, **settings)
    watched = model.predict(SOURCES, watch=lambda place, step: None, **settings)
    for one, other in zip(plain, watched, strict=True):
        assert (one.text, len(one.alternatives)) == (other.text, len(other.alternatives))
        assert one.score == pytest.approx(other.score, abs=1e-5)  # another engine, if there is a compiled one


def seen_of(model, sources, **settings):
    seen = {}
    found = model.predict(
        sources, watch=lambda place, step: seen.setdefault(place, []).append(step), **settings
    )
    return found, seen


def test_greedy_steps_are_the_tokens_of_the_output(model):
    found, seen = seen_of(model, SOURCES, beam=1)
    assert sorted(seen) == [0, 2, 3, 4], "a blank source is not searched for"
    for place, steps in seen.items():
        one = found[place]
        assert tuple(step.token for step in steps) == one.target_tokens[: len(steps)]
        assert len(steps) == len(one.target_tokens) - one.finished
        assert [step.position for step in steps] == list(range(len(steps)))
        assert [step.log_prob for step in steps] == pytest.approx(one.token_log_probs[: len(steps)], abs=1e-5)
        for step, weights in zip(steps, one.attention, strict=False):
            np.testing.assert_allclose(step.weights, weights, atol=1e-6)
        assert steps[-1].text == one.text


@pytest.mark.parametrize("size", [1, 2, 64])
def test_steps_of_a_source_do_not_depend_on_its_batch(model, size):
    _, alone = seen_of(model, ["hgfedcb"], beam=4)
    found, seen = seen_of(model, SOURCES, beam=4, batch_size=size)
    assert [step.text for step in seen[2]] == [step.text for step in alone[0]]
    assert found[2].text in [step.text for step in seen[2]]


def test_model_without_attention_has_steps_without_weights(tmp_path, upper_pairs):
    fixed = regard.train(
        upper_pairs[:60],
        settings={
            "model": {"context": "last", "hidden_size": 16, "embedding_size": 8},
            "training": {"epochs": 1, "minutes": 0, "threads": 1},
        },
    )
    _, seen = seen_of(fixed, ["abc"], beam=2, max_len=4)
    assert seen[0]
    assert all(step.weights is None for step in seen[0])
