from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from decode.engines import TARGET_SIZE, random_engine, random_sources
from regard.config import DecodingSettings, make_config
from regard.decode.forced import force
from regard.decode.hypothesis import Hypothesis
from regard.decode.penalties import Penalties
from regard.decode.sampling import Temperature, TopK, TopP, make_transforms
from regard.decode.search import search
from regard.errors import ConfigError
from regard.nn.types import EOS, PAD, UNK

quick = settings(deadline=None, max_examples=25)
few = settings(deadline=None, max_examples=12)


def decoding(**changes: object) -> DecodingSettings:
    return make_config({"decoding": changes}).decoding


def run(engine, source, lens, max_lens=None, keys=None, **changes):
    with torch.inference_mode():
        return search(
            engine,
            source,
            lens,
            settings=decoding(**changes),
            max_lens=max_lens or [9] * len(lens),
            keys=keys,
        )


def same(one: Hypothesis, other: Hypothesis) -> bool:
    return (
        one.tokens == other.tokens
        and one.finished == other.finished
        and math.isclose(one.score, other.score, abs_tol=1e-5)
        and np.allclose(one.weights, other.weights, atol=1e-5)
    )


MODELS = st.sampled_from(
    [
        {},
        {"cell": "gru", "attention": {"score": "additive"}},
        {"cell": "rnn", "attention": {"score": "dot", "heads": 2}},
        {"input_feeding": True, "decoder_layers": 2},
        {"attend_before_cell": True, "attention": {"window": "local_p", "window_size": 2}},
        {"attention": {"normaliser": "sparsemax", "window": "local_m"}},
    ]
)


@quick
@given(
    seed=st.integers(0, 999),
    model=MODELS,
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=5),
    beam=st.sampled_from([1, 2, 5]),
    padding=st.integers(0, 4),
    coverage=st.sampled_from([0.0, 0.3]),
)
def test_what_is_found_does_not_depend_on_the_batch(seed, model, lengths, beam, padding, coverage):
    engine = random_engine(seed, **model)
    source, lens = random_sources(seed, lengths, padding=padding)
    limits = [2 + length for length in lengths]
    options = {"beam": beam, "nbest": beam, "coverage_penalty": coverage}
    together = run(engine, source, lens, limits, **options)
    for row, length in enumerate(lengths):
        alone = run(
            engine, source[row : row + 1, :length], lens[row : row + 1], limits[row : row + 1], **options
        )[0]
        assert len(alone) == len(together[row])
        assert all(itertools.starmap(same, zip(alone, together[row], strict=True)))


@quick
@given(seed=st.integers(0, 999), model=MODELS, alpha=st.sampled_from([0.0, 0.6, 1.0]))
def test_beam_of_one_equals_greedy(seed, model, alpha):
    from regard.decode.beam import beam_search

    engine = random_engine(seed, **model)
    source, lens = random_sources(seed, [5, 2, 7])
    greedy = run(engine, source, lens, beam=1, length_penalty=alpha)
    with torch.inference_mode():
        beams = beam_search(
            engine, source, lens, settings=decoding(beam=1, length_penalty=alpha), max_lens=[9, 9, 9]
        )
    for one, other in zip(greedy, beams, strict=True):
        assert same(one[0], other[0])
        assert math.isclose(one[0].normalised, other[0].normalised, abs_tol=1e-5)


@quick
@given(seed=st.integers(0, 999), model=MODELS, beam=st.sampled_from([1, 4]), sample=st.booleans())
def test_forced_score_of_an_output_is_the_score_it_was_found_with(seed, model, beam, sample):
    engine = random_engine(seed, **model)
    source, lens = random_sources(seed, [5, 3, 1])
    found = run(engine, source, lens, beam=beam, nbest=beam, sample=sample)
    for row, hypotheses in enumerate(found):
        for hypothesis in hypotheses:
            if not hypothesis.finished:
                continue
            n_tokens = len(hypothesis.tokens)
            target = torch.tensor([[*hypothesis.tokens, PAD, PAD]])
            with torch.inference_mode():
                scored = force(
                    engine, source[row : row + 1], lens[row : row + 1], target, torch.tensor([n_tokens])
                )
            assert same(scored[0], hypothesis)
            assert math.isclose(sum(hypothesis.token_log_probs), hypothesis.score, abs_tol=1e-4)


@quick
@given(seed=st.integers(0, 999), model=MODELS, beam=st.integers(2, 6), alpha=st.sampled_from([0.0, 1.0]))
def test_nbest_are_different_sorted_and_do_not_change_the_first(seed, model, beam, alpha):
    engine = random_engine(seed, **model)
    source, lens = random_sources(seed, [1, 4, 6])
    many = run(engine, source, lens, beam=beam, nbest=beam, length_penalty=alpha)
    one = run(engine, source, lens, beam=beam, nbest=1, length_penalty=alpha)
    for hypotheses, first in zip(many, one, strict=True):
        assert len(hypotheses) == beam
        kinds = [(h.tokens, h.finished) for h in hypotheses]
        assert len(set(kinds)) == beam
        ranks = [(not h.finished, -h.normalised) for h in hypotheses]
        assert ranks == sorted(ranks)
        assert all(EOS not in h.tokens and PAD not in h.tokens for h in hypotheses)
        assert same(first[0], hypotheses[0])


def enumerate_all(engine, source, lens, max_len: int, penalties: Penalties) -> list[Hypothesis]:
    """Every output that ends within the limit, best first, each scored by itself."""
    symbols = [token for token in range(TARGET_SIZE - 2) if token not in (PAD, EOS)]
    made = []
    for n in range(max_len):
        for tokens in itertools.product(symbols, repeat=n):
            target = torch.tensor([[*tokens, PAD]], dtype=torch.long)
            with torch.inference_mode():
                made += force(engine, source, lens, target, torch.tensor([n]), penalties=penalties)
    return sorted(made, key=lambda hypothesis: -hypothesis.normalised)


@few
@given(
    seed=st.integers(0, 999),
    model=MODELS,
    alpha=st.sampled_from([0.0, 1.0, 2.0]),
    beta=st.sampled_from([0.0, 0.4]),
)
def test_beam_as_wide_as_all_continuations_equals_exhaustive_search(seed, model, alpha, beta):
    max_len = 4
    engine = random_engine(seed, target_size=TARGET_SIZE - 2, **model)
    source, lens = random_sources(seed, [4])
    expected = enumerate_all(engine, source, lens, max_len, Penalties(alpha, beta))
    found = run(
        engine, source, lens, [max_len], beam=108, nbest=10, length_penalty=alpha, coverage_penalty=beta
    )[0]
    for one, other in zip(found, expected, strict=False):
        assert math.isclose(one.normalised, other.normalised, abs_tol=1e-6)
        assert one.tokens == other.tokens


def test_weights_have_a_row_for_each_token_and_the_end_and_a_column_for_each_source_token():
    engine = random_engine(3, attention={"score": "dot", "heads": 2})
    source, lens = random_sources(3, [3, 9])
    for row, hypotheses in enumerate(run(engine, source, lens, beam=5, nbest=5)):
        for h in hypotheses:
            assert h.weights.shape == (2, len(h.tokens) + h.finished, int(lens[row]))
            assert np.allclose(h.weights.sum(-1), 1, atol=1e-6)
            assert (h.weights >= 0).all()


def test_fixed_context_gives_no_weights():
    engine = random_engine(3, context="last")
    source, lens = random_sources(3, [3, 9])
    assert all(h.weights is None for row in run(engine, source, lens, beam=3, nbest=3) for h in row)


def test_output_at_the_limit_is_cut_and_not_finished():
    engine = random_engine(1)
    with torch.no_grad():
        engine.decoder.output.bias[EOS] = -1e9
    source, lens = random_sources(1, [4, 2])
    for beam in (1, 3):
        for row in run(engine, source, lens, [3, 6], beam=beam, nbest=beam):
            assert all(not h.finished for h in row)
        lengths = [len(row[0].tokens) for row in run(engine, source, lens, [3, 6], beam=beam)]
        assert lengths == [3, 6]


def test_finished_hypotheses_come_before_cut_ones_of_higher_rank():
    engine = random_engine(4)
    source, lens = random_sources(4, [4])
    row = run(engine, source, lens, [2], beam=5, nbest=5)[0]
    flags = [h.finished for h in row]
    assert flags == sorted(flags, reverse=True)


def test_length_penalty_by_hand():
    assert Penalties(0.0).length(7) == 1.0
    assert Penalties(1.0).length(7) == pytest.approx(2.0)
    assert Penalties(0.5).length(19) == pytest.approx(2.0)


def test_coverage_penalty_by_hand():
    covered = torch.tensor([[0.5, 2.0, 0.0, 7.0]])
    allowed = torch.tensor([[True, True, True, False]])
    expected = 0.2 * (math.log(0.5) + 0.0 + math.log(1e-8))
    assert Penalties(0.0, 0.2).coverage(covered, allowed).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("sample", [False, True])
def test_coverage_enters_the_rank(sample):
    engine = random_engine(5)
    source, lens = random_sources(5, [5])
    changes = {"beam": 2, "nbest": 2, "sample": sample, "length_penalty": 0.0}
    for h in run(engine, source, lens, coverage_penalty=0.7, **changes)[0]:
        covered = torch.from_numpy(h.weights.mean(0).sum(0))
        expected = h.score + float(
            Penalties(0.0, 0.7).coverage(covered, torch.ones_like(covered, dtype=torch.bool))
        )
        assert h.normalised == pytest.approx(expected, abs=1e-4)


def test_more_hypotheses_than_beams_are_refused_before_anything_is_decoded():
    with pytest.raises(ConfigError, match="nbest 10 is more than beam 5"):
        decoding(beam=5, nbest=10)


def test_sampling_options_without_sampling_are_refused():
    with pytest.raises(ConfigError, match="need sample: true"):
        decoding(top_k=3)


@quick
@given(seed=st.integers(0, 999), lengths=st.lists(st.integers(1, 6), min_size=2, max_size=4))
def test_draws_depend_on_seed_and_key_alone(seed, lengths):
    engine = random_engine(seed)
    source, lens = random_sources(seed, lengths)
    keys = [10 + row for row in range(len(lengths))]
    options = {"sample": True, "nbest": 3, "seed": 7}
    together = run(engine, source, lens, keys=keys, **options)
    for row in range(len(lengths)):
        one = slice(row, row + 1)
        alone = run(engine, source[one], lens[one], keys=keys[one], **options)[0]
        assert all(itertools.starmap(same, zip(alone, together[row], strict=True)))


def test_other_seeds_draw_otherwise():
    engine = random_engine(2, sharpness=1.0)
    source, lens = random_sources(2, [5])
    drawn = {run(engine, source, lens, keys=[0], sample=True, seed=seed)[0][0].tokens for seed in range(12)}
    assert len(drawn) > 6


def test_top_k_of_one_is_greedy():
    engine = random_engine(8)
    source, lens = random_sources(8, [5, 3])
    greedy = run(engine, source, lens, beam=1)
    drawn = run(engine, source, lens, sample=True, top_k=1)
    assert [row[0].tokens for row in drawn] == [row[0].tokens for row in greedy]


def test_draws_follow_the_probabilities():
    engine = random_engine(9, sharpness=1.0)
    source, lens = random_sources(9, [4])
    n = 2000
    drawn = run(engine, source, lens, [1], keys=[3], sample=True, nbest=n)[0]
    with torch.inference_mode():
        memory, state = engine.start(source, lens)
        probs = engine.step(torch.full((1, 1), EOS), memory, state).log_probs[0, 0].exp()
    probs = probs.clone()
    probs[PAD] = 0
    probs /= probs.sum()
    firsts = [h.tokens[0] if h.tokens else EOS for h in drawn]
    for token in range(TARGET_SIZE):
        share = firsts.count(token) / n
        assert abs(share - float(probs[token])) < 4 * math.sqrt(0.25 / n)


def test_transforms_by_hand():
    logits = torch.tensor([[[0.5, 0.25, 0.15, 0.1]]]).log()
    infinite = -math.inf
    assert TopK(2)(logits)[0, 0].exp().tolist() == pytest.approx([0.5, 0.25, 0, 0])
    assert TopP(0.7)(logits)[0, 0].exp().tolist() == pytest.approx([0.5, 0.25, 0, 0])
    assert TopP(0.76)(logits)[0, 0].exp().tolist() == pytest.approx([0.5, 0.25, 0.15, 0])
    assert TopP(0.01)(logits)[0, 0].tolist() == pytest.approx([math.log(0.5), infinite, infinite, infinite])
    assert Temperature(2.0)(logits)[0, 0, 0].item() == pytest.approx(math.log(0.5) / 2)
    kinds = [type(t) for t in make_transforms(decoding(sample=True, temperature=0.5, top_k=2, top_p=0.5))]
    assert kinds == [Temperature, TopK, TopP]


def test_unknown_output_token_copies_the_source_it_attends_to_most_but_never_the_end():
    from regard.decode.align import best_sources, copy_unknown

    weights = np.array([[[0.1, 0.2, 0.7], [0.6, 0.3, 0.1], [0.0, 0.0, 1.0]]], dtype=np.float32)
    hypothesis = Hypothesis((UNK, 4), 0.0, 0.0, (0.0, 0.0, 0.0), weights)
    assert copy_unknown(hypothesis, ["\u2603", "b"]) == {0: "b"}
    assert copy_unknown(hypothesis, []) == {}
    assert copy_unknown(Hypothesis((4,), 0.0, 0.0, (0.0,), None), ["a"]) == {}
    assert best_sources(weights[:, :, 2:]).tolist() == [-1, -1, -1]
