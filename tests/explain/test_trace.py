from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

from explain.models import SOURCES, random_model
from regard.errors import ConfigError, DataError
from regard.explain.serial import SCHEMA, from_json, to_arrays, to_json, to_object, write_npz
from regard.explain.trace import trace

MODELS = {
    "default": {},
    "heads": {"attention": {"heads": 4}},
    "before the cell": {"attend_before_cell": True, "cell": "gru", "attention": {"score": "additive"}},
    "input feeding": {"input_feeding": True, "attention": {"score": "additive", "heads": 2}},
    "local": {"attention": {"score": "dot", "window": "local_m", "window_size": 1}},
    "predicted": {"attention": {"window": "local_p", "window_size": 2}},
    "sparse": {"attention": {"score": "location", "normaliser": "sparsemax"}, "decoder_layers": 2},
    "last": {"context": "last"},
    "each step": {"context": "last", "context_every_step": True},
    "pooled": {"context": "pooled", "pool": "max", "cell": "rnn"},
}


@pytest.fixture(params=MODELS, ids=str)
def model(request):
    return random_model(**MODELS[request.param])


def test_record_has_the_weights_and_probabilities_of_every_hypothesis_of_the_beam(model):
    found = model.predict([SOURCES[0]], beam=3, nbest=3, max_len=7)[0].alternatives
    record = trace(model, SOURCES[0], beam=3, max_len=7)
    assert len(record.hypotheses) == len(found) == 3
    for rank, (hypothesis, prediction) in enumerate(zip(record.hypotheses, found, strict=True), 1):
        assert (hypothesis.origin, hypothesis.rank) == ("output", rank)
        assert hypothesis.text == prediction.text
        assert hypothesis.tokens == prediction.target_tokens
        log_probs = [step.log_prob for step in hypothesis.steps]
        assert log_probs == pytest.approx(prediction.token_log_probs, abs=1e-4)
        assert sum(log_probs) == pytest.approx(hypothesis.score, abs=1e-3)
        if prediction.attention_heads is None:
            assert hypothesis.weights is hypothesis.scores is None
        else:
            np.testing.assert_allclose(hypothesis.weights, prediction.attention_heads, atol=1e-4)


def test_given_target_has_the_probabilities_that_score_gives_it_and_is_called_a_target(model):
    text = "one 2"
    scored = model.score([(SOURCES[0], text)])[0]
    record = trace(model, SOURCES[0], target=text)
    (hypothesis,) = record.hypotheses
    assert hypothesis.origin == "target"
    assert hypothesis.text == text
    assert [step.log_prob for step in hypothesis.steps] == pytest.approx(scored.token_log_probs, abs=1e-4)
    assert hypothesis.score == scored.score
    if scored.attention_heads is not None:
        np.testing.assert_allclose(hypothesis.weights, scored.attention_heads, atol=1e-4)


def test_record_survives_json(model):
    record = trace(model, SOURCES[0], beam=2, max_len=5, contexts=True)
    text = to_json(record)
    assert json.loads(text)["schema"] == SCHEMA == "regard-decoding/1"
    assert "Infinity" not in text
    assert "NaN" not in text
    again = from_json(text)
    assert to_json(again) == text
    assert again.source_tokens == record.source_tokens
    assert [h.ids for h in again.hypotheses] == [h.ids for h in record.hypotheses]


def test_arrays_are_read_without_pickles(model, tmp_path):
    record = trace(model, SOURCES[0], beam=2, max_len=5, contexts=True)
    write_npz(record, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as read:
        assert set(read.files) == set(to_arrays(record))
        assert str(read["schema"]) == SCHEMA
        assert tuple(read["source_tokens"]) == record.source_tokens
        for number, hypothesis in enumerate(record.hypotheses, 1):
            assert str(read[f"h{number}_origin"]) == "output"
            assert tuple(read[f"h{number}_target_tokens"]) == hypothesis.tokens
            assert read[f"h{number}_candidate_probs"].shape == read[f"h{number}_candidate_tokens"].shape
            if record.has_attention:
                np.testing.assert_array_equal(read[f"h{number}_weights"], hypothesis.weights)
                assert read[f"h{number}_contexts"].shape == (len(hypothesis.steps), 20)
            else:
                assert read["vector"].shape == (20,)


def test_softmax_of_the_scores_is_the_weights_and_the_weighted_states_are_the_context():
    model = random_model(attention={"heads": 1, "score": "general"})
    record = trace(model, SOURCES[0], max_len=6, contexts=True)
    ids = torch.tensor([[*model.source_tokenizer.encode(SOURCES[0]), model.eos]])
    with torch.no_grad():
        states = model.model.encoder(ids, torch.tensor([ids.shape[1]])).states[0].numpy()
    np.testing.assert_allclose(record.encoder_norms, np.linalg.norm(states, axis=1), rtol=1e-5)
    for step in record.hypotheses[0].steps:
        exponents = np.exp(step.scores[0] - step.scores[0].max())
        np.testing.assert_allclose(step.weights[0], exponents / exponents.sum(), atol=1e-5)
        np.testing.assert_allclose(step.context, step.weights[0] @ states, atol=1e-5)
        assert step.context_norm == pytest.approx(np.linalg.norm(step.context), rel=1e-5)


def test_query_is_the_state_or_with_attention_before_the_cell_that_of_the_step_before():
    after = trace(random_model(), SOURCES[0], max_len=6).hypotheses[0].steps
    assert [step.query_norm for step in after] == [step.state_norm for step in after]
    before = trace(random_model(attend_before_cell=True), SOURCES[0], max_len=6).hypotheses[0].steps
    assert [step.query_norm for step in before[1:]] == [step.state_norm for step in before[:-1]]


def test_candidates_are_the_likeliest_words_and_the_rank_is_the_place_of_the_chosen_one(model):
    record = trace(model, SOURCES[0], target="one", top=5)
    for step in record.hypotheses[0].steps:
        probs = [candidate.prob for candidate in step.candidates]
        assert len(probs) == 5
        assert probs == sorted(probs, reverse=True)
        assert 0 < sum(probs) <= 1 + 1e-6
        if step.rank <= 5:
            chosen = step.candidates[step.rank - 1]
            assert chosen.token == step.token
            assert chosen.prob == pytest.approx(np.exp(step.log_prob), rel=1e-5)
        else:
            assert step.token not in [candidate.token for candidate in step.candidates]


def test_more_candidates_than_words_are_all_words_but_padding():
    record = trace(random_model(), SOURCES[0], top=1000, max_len=3)
    for step in record.hypotheses[0].steps:
        assert len(step.candidates) == len(random_model().target_tokenizer) - 1
        assert sum(candidate.prob for candidate in step.candidates) <= 1 + 1e-5
        assert sum(candidate.token == "<eos>" for candidate in step.candidates) == 1


def test_position_out_of_reach_is_null_in_json():
    model = random_model(attention={"score": "location"})
    attention = model.model.decoder.context.attention.score
    attention.max_positions = 4
    attention.weight.data = attention.weight.data[..., :4].contiguous()
    made = to_object(trace(model, SOURCES[0], max_len=3))
    scores = made["hypotheses"][0]["steps"][0]["scores"][0]
    assert [score is None for score in scores] == [False] * 4 + [True] * (len(scores) - 4)
    assert from_json(json.dumps(made)).hypotheses[0].scores[0, 0, -1] == -np.inf


def test_cut_output_has_no_end():
    hypothesis = trace(random_model(), SOURCES[0], max_len=2).hypotheses[0]
    assert not hypothesis.finished
    assert "<eos>" not in hypothesis.tokens
    assert len(hypothesis.steps) == len(hypothesis.ids) == 3


def test_what_cannot_be_traced_is_refused_in_one_line():
    model = random_model()
    with pytest.raises(DataError, match="the source is blank"):
        trace(model, "  ")
    with pytest.raises(ConfigError, match="0 candidates cannot be shown"):
        trace(model, "a", top=0)
    with pytest.raises(DataError, match="the limit is"):
        trace(model, "a" * 5000)
    with pytest.raises(DataError, match="the source has 5,000 source tokens"):
        trace(model, "a" * 5000, long_inputs="truncate")


def test_alignment_of_a_head_and_of_a_fixed_context():
    record = trace(random_model(attention={"heads": 4}), SOURCES[0], max_len=4)
    assert record.alignment(head=2).weights.shape[0] == 1
    np.testing.assert_array_equal(record.alignment(head=2).weights[0], record.hypotheses[0].weights[2])
    with pytest.raises(ConfigError, match="head 5 does not exist: this model has 4"):
        record.alignment(head=4)
    fixed = trace(random_model(context="last"), SOURCES[0], max_len=4)
    with pytest.raises(ConfigError, match="one fixed vector"):
        fixed.alignment()
    with pytest.raises(ConfigError, match="has no attention"):
        fixed.check_head(0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "schema 'none', expected 'regard-decoding/1'"),
        ('{"schema": "regard-decoding/9"}', "schema 'regard-decoding/9'"),
        ('{"schema": "regard-decoding/1"}', "no whole record"),
        ("{", "no whole record"),
    ],
)
def test_other_json_is_refused(text, message):
    with pytest.raises(DataError, match=message):
        from_json(text)


def test_every_field_of_the_record_is_documented():
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "explain.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([a-z_]+)`", text))
    made = to_object(trace(random_model(), SOURCES[0], max_len=2, contexts=True))
    hypothesis = made["hypotheses"][0]
    for fields in (made, hypothesis, hypothesis["steps"][0]):
        assert set(fields) <= documented
