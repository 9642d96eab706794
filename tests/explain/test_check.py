from __future__ import annotations

import numpy as np
import pytest

from explain.models import SOURCES, random_model
from regard.errors import ConfigError, DataError
from regard.explain.check import check_faithfulness
from regard.explain.trace import check, trace


def needing(places: dict[int, float]):
    """An output that loses so much when these source places are gone."""

    def score(kept):
        return [-sum(loss for place, loss in places.items() if place not in set(one)) for one in kept]

    return score


def record(attended: int = 3):
    made = trace(random_model(), SOURCES[0], max_len=4)
    for step in made.hypotheses[0].steps:
        step.weights[:] = 0.0
        step.weights[:, attended] = 1.0
    return made


def test_attention_to_what_the_output_needs_is_called_faithful():
    found = check_faithfulness(record(attended=3), needing({3: 5.0}))
    assert found.erased[0] == 3
    assert found.tokens[0] == "6"
    assert found.attended.tolist() == [5.0] * len(found.erased)
    assert found.random.mean() < 3.5
    assert found.sentence().startswith("Faithful here")
    assert "5.00" in found.sentence()


def test_attention_to_what_the_output_does_not_need_is_called_unfaithful():
    found = check_faithfulness(record(attended=0), needing({9: 5.0}))
    assert found.attended.tolist() == [0.0] * len(found.erased)
    assert found.random[-1] > 1
    assert "Not faithful" in found.sentence()
    assert "Do not read the picture as the reason" in found.sentence()


def test_random_orders_are_drawn_from_the_seed_and_averaged():
    made, score = record(), needing({3: 5.0, 4: 1.0})
    one, same, other = (check_faithfulness(made, score, seed=seed, n_draws=7) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.draws, same.draws)
    assert not np.array_equal(one.draws, other.draws)
    assert one.draws.shape == (7, len(one.erased))
    np.testing.assert_allclose(one.random, one.draws.mean(0))


def test_falls_are_those_of_the_model_without_the_erased_tokens():
    model = random_model(sharpness=3.0)
    target = "one two"
    made = trace(model, "123a", target=target)
    found = check(model, made, n_draws=3)
    whole = model.score([("123a", target)])[0].score
    assert found.log_prob == pytest.approx(whole, abs=1e-4)
    kept = "".join(c for place, c in enumerate("123a") if place != found.erased[0])
    assert found.attended[0] == pytest.approx(whole - model.score([(kept, target)])[0].score, abs=1e-4)


def test_what_cannot_be_checked_is_refused():
    model = random_model()
    with pytest.raises(DataError, match="has one token"):
        check(model, trace(model, "1", target="one"))
    with pytest.raises(ConfigError, match="compare nothing"):
        check(model, trace(model, "12", target="one"), n_draws=0)
    with pytest.raises(DataError, match="cut at the length limit"):
        check(model, trace(model, "12", max_len=1))
    fixed = random_model(context="last")
    with pytest.raises(ConfigError, match="one fixed vector"):
        check(fixed, trace(fixed, "12", target="one"))
