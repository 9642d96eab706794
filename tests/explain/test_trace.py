from __future__ import annotations

import json
import re
from dataclasses import replace

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

VECTORS = ("query", "state", "context", "output")


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
    record = trace(model, SOURCES[0], beam=2, max_len=5, vectors=True)
    text = to_json(record)
    assert json.loads(text)["schema"] == SCHEMA == "regard-decoding/1"
    assert "Infinity" not in text
    assert "NaN" not in text
    again = from_json(text)
    assert to_json(again) == text
    assert again.source_tokens == record.source_tokens
    assert [h.ids for h in again.hypotheses] == [h.ids for h in record.hypotheses]
    np.testing.assert_array_equal(again.encoder_states, record.encoder_states)
    for ours, theirs in zip(record.hypotheses, again.hypotheses, strict=True):
        for before, after in zip(ours.steps, theirs.steps, strict=True):
            for name in VECTORS:
                np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    if record.vector is not None:
        np.testing.assert_array_equal(again.vector, record.vector)


def test_vectors_of_any_size_are_read_back_exactly():
    bits = np.random.default_rng(3).integers(0, 2**32, 9973, dtype=np.uint32)
    values = bits.view(np.float32)
    values = np.concatenate([values[np.isfinite(values)], np.float32([0, -0.0, 1e-45, 3.4e38, 2**24 + 2])])
    record = replace(trace(random_model(), SOURCES[0], max_len=2), encoder_states=values[None])
    np.testing.assert_array_equal(from_json(to_json(record)).encoder_states[0], values)


def test_vectors_have_the_recorded_lengths_and_are_left_out_unless_asked_for(model):
    record = trace(model, SOURCES[0], max_len=5, vectors=True)
    np.testing.assert_allclose(np.linalg.norm(record.encoder_states, axis=1), record.encoder_norms, rtol=1e-5)
    for step in record.hypotheses[0].steps:
        for name in VECTORS:
            vector, norm = getattr(step, name), getattr(step, f"{name}_norm")
            assert (vector is None) == (norm is None) == (name == "context" and not record.has_attention)
            assert norm is None or np.linalg.norm(vector) == pytest.approx(norm, rel=1e-5)
    small = trace(model, SOURCES[0], max_len=5)
    assert small.encoder_states is None
    assert to_json(small) == json.dumps(to_object(record, vectors=False), ensure_ascii=False) + "\n"
    assert not set(VECTORS) & set(to_object(small)["hypotheses"][0]["steps"][0])
    assert "h1_queries" not in to_arrays(small)


def test_query_scores_the_encoder_states_as_the_record_says():
    model = random_model(attention={"score": "general"})
    record = trace(model, SOURCES[0], max_len=6, vectors=True)
    form = model.model.decoder.context.attention.score.weight[0].detach().numpy()  # (key_size, query_size)
    for step in record.hypotheses[0].steps:
        np.testing.assert_allclose(record.encoder_states @ form @ step.query, step.scores[0], atol=1e-4)


def test_arrays_are_read_without_pickles(model, tmp_path):
    record = trace(model, SOURCES[0], beam=2, max_len=5, vectors=True)
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
                assert f"h{number}_contexts" not in read
            for name, plural in (("query", "queries"), ("state", "states"), ("output", "outputs")):
                expected = np.stack([getattr(step, name) for step in hypothesis.steps])
                np.testing.assert_array_equal(read[f"h{number}_{plural}"], expected)
        np.testing.assert_array_equal(read["encoder_states"], record.encoder_states)


def test_softmax_of_the_scores_is_the_weights_and_the_weighted_states_are_the_context():
    model = random_model(attention={"heads": 1, "score": "general"})
    record = trace(model, SOURCES[0], max_len=6, vectors=True)
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
    made = to_object(trace(random_model(), SOURCES[0], max_len=2, vectors=True))
    hypothesis = made["hypotheses"][0]
    for fields in (made, hypothesis, hypothesis["steps"][0]):
        assert set(fields) <= documented
