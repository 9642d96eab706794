"""The compiled library finds what the search with torch finds, whatever the model, the batch and the processor's kernels."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from regard.config import DecodingSettings, ModelSettings
from regard.decode.search import search
from regard.errors import ConfigError
from regard.native.engine import NativeEngine, uses_native, why_not
from regard.native.library import FILE, Library, load_library
from regard.native.weights import expected_shapes
from regard.nn.engine import make_engine
from regard.nn.ids import EOS
from regard.nn.model import EncoderDecoder

pytestmark = pytest.mark.skipif(
    isinstance(load_library(), str), reason="regard was installed without a C compiler"
)

KERNELS = ("portable", "AVX2", None)
SOURCES = 23


def library(kernels):
    return Library(FILE, limit=kernels)


def network(settings, *, target_size=30, seed=0):
    """A network whose outputs are neither all alike nor at the mercy of the last digit."""
    torch.manual_seed(seed)
    made = EncoderDecoder(settings, source_size=SOURCES, target_size=target_size, max_positions=60).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.ndim > 1:
                parameter.mul_(1.5)
            else:
                parameter.add_(0.2 * torch.randn_like(parameter))
    return made


def weights(made):
    return {name: value.detach().numpy() for name, value in made.named_parameters()}


def some_sources(n, *, seed=0):
    rng = random.Random(seed)
    return [
        [rng.randrange(2, SOURCES) for _ in range(rng.choice([0, 1, 3, 9, 21]))] + [EOS] for _ in range(n)
    ]


def expected(made, sources, settings, max_lens):
    longest = max(map(len, sources))
    tokens = torch.zeros(len(sources), longest, dtype=torch.long)
    for row, source in enumerate(sources):
        tokens[row, : len(source)] = torch.tensor(source)
    lens = torch.tensor([len(source) for source in sources])
    with torch.inference_mode():
        return search(
            make_engine(made, precision="float32"), tokens, lens, settings=settings, max_lens=max_lens
        )


def assert_same(found, wanted, *, atol=2e-4):
    assert len(found) == len(wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        assert [(h.tokens, h.finished) for h in mine] == [(h.tokens, h.finished) for h in theirs]
        for one, other in zip(mine, theirs, strict=True):
            assert one.score == pytest.approx(other.score, abs=atol)
            assert one.normalised == pytest.approx(other.normalised, abs=atol)
            assert np.allclose(one.token_log_probs, other.token_log_probs, atol=atol)
            assert (one.weights is None) == (other.weights is None)
            if one.weights is not None:
                assert one.weights.shape == other.weights.shape
                assert np.allclose(one.weights, other.weights, atol=atol)


CONTEXTS = [
    *(
        {"context": "attention", "attention": {"score": score}}
        for score in ("dot", "scaled_dot", "general", "additive")
    ),
    {"context": "attention", "input_feeding": True},
    {"context": "attention", "attend_before_cell": True},
    {"context": "last"},
    {"context": "last", "context_every_step": True},
    {"context": "projected"},
    *({"context": "pooled", "pool": pool} for pool in ("mean", "max", "query")),
]
SHAPES = [
    {"cell": "lstm", "hidden_size": 40, "embedding_size": 7},
    {"cell": "gru", "hidden_size": 66, "embedding_size": 16, "encoder_layers": 2, "decoder_layers": 2},
    {"cell": "rnn", "hidden_size": 16, "embedding_size": 8, "bidirectional": False, "reverse_source": True},
    {"cell": "lstm", "hidden_size": 32, "encoder_layers": 3, "decoder_layers": 3, "residual": True},
]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['cell']}-{shape['hidden_size']}")
@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: "-".join(map(str, context.values())))
def test_hypotheses_are_those_of_the_search_with_torch(kernels, shape, context):
    settings = ModelSettings(**shape, **context)
    made = network(settings, seed=len(str(shape)))
    sources = some_sources(7)
    for beam, nbest, penalty in ((1, 1, 1.0), (4, 3, 0.6)):
        how = DecodingSettings(beam=beam, nbest=nbest, length_penalty=penalty)
        max_lens = [3 + 2 * row for row in range(7)]
        engine = NativeEngine(library(kernels), settings, weights(made), threads=1)
        assert_same(
            engine.search(sources, settings=how, max_lens=max_lens), expected(made, sources, how, max_lens)
        )


def test_an_answer_depends_neither_on_the_batch_nor_on_the_threads():
    settings = ModelSettings(hidden_size=48)
    made = network(settings)
    sources = some_sources(150, seed=3)
    how = DecodingSettings(beam=5, nbest=5)
    engine = NativeEngine(library(None), settings, weights(made), threads=2)
    together = engine.search(sources, settings=how, max_lens=[20] * 150)
    alone = NativeEngine(library(None), settings, weights(made), threads=1)
    for row in (0, 1, 17, 149):
        [found] = alone.search([sources[row]], settings=how, max_lens=[20])
        for one, other in zip(found, together[row], strict=True):
            assert (one.tokens, one.score) == (other.tokens, other.score)
            assert (one.weights == other.weights).all()


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['cell']}-{shape['hidden_size']}")
@pytest.mark.parametrize("context", CONTEXTS, ids=lambda context: "-".join(map(str, context.values())))
def test_names_and_shapes_are_those_of_the_network(shape, context):
    settings = ModelSettings(**shape, **context)
    made = network(settings)
    shapes = {name: tuple(value.shape) for name, value in made.named_parameters()}
    assert expected_shapes(settings, source_size=SOURCES, target_size=30) == shapes


def test_weights_of_another_shape_are_refused():
    settings = ModelSettings(hidden_size=16)
    given = weights(network(settings))
    for wrong in (
        {**given, "decoder.readout.bias": given["decoder.readout.bias"][:-1]},
        {**given, "decoder.output.bias": given["decoder.output.bias"][:-1]},
        {name: value for name, value in given.items() if name != "decoder.bridge.bias"},
        {},
    ):
        with pytest.raises(ValueError, match="another model"):
            NativeEngine(library(None), settings, wrong, threads=1)


def test_copied_states_and_tied_embeddings_decode_as_with_torch():
    settings = ModelSettings(
        hidden_size=24,
        embedding_size=24,
        tie_embeddings=True,
        bridge="copy",
        encoder_layers=2,
        decoder_layers=2,
    )
    made = network(settings)
    sources, how = some_sources(9), DecodingSettings(beam=3)
    engine = NativeEngine(library(None), settings, weights(made), threads=1)
    found = engine.search(sources, settings=how, max_lens=[9] * 9)
    assert_same(found, expected(made, sources, how, [9] * 9))


@pytest.mark.parametrize("beam", [1, 4])
def test_of_tokens_that_are_alike_the_first_is_taken(beam):
    settings = ModelSettings(hidden_size=20)
    made = network(settings)
    with torch.no_grad():  # every token has a twin, which differs in nothing
        for parameter in (
            made.decoder.output.weight,
            made.decoder.output.bias,
            made.decoder.embedding.weight,
        ):
            parameter[16:] = parameter[2:16]
    sources, how = some_sources(6), DecodingSettings(beam=beam, nbest=beam)
    engine = NativeEngine(library(None), settings, weights(made), threads=1)
    found = engine.search(sources, settings=how, max_lens=[7] * 6)
    wanted = expected(made, sources, how, [7] * 6)
    for mine, theirs in zip(found, wanted, strict=True):
        assert max(mine[0].tokens, default=0) < 16
        assert mine[0].score == pytest.approx(theirs[0].score, abs=1e-4)


def test_no_sources_give_no_answers():
    settings = ModelSettings(hidden_size=16)
    engine = NativeEngine(library(None), settings, weights(network(settings)), threads=2)
    assert engine.search([], settings=DecodingSettings(), max_lens=[]) == []


def test_a_large_vocabulary_needs_no_table(monkeypatch):
    monkeypatch.setattr("regard.native.weights._TABLE_LIMIT", 0)
    settings = ModelSettings(hidden_size=24, cell="gru")
    made = network(settings, target_size=300)
    how = DecodingSettings(beam=3)
    sources = some_sources(5)
    engine = NativeEngine(library(None), settings, weights(made), threads=1)
    assert_same(engine.search(sources, settings=how, max_lens=[9] * 5), expected(made, sources, how, [9] * 5))


def test_bfloat16_is_near(tmp_path):
    fastest = library(None)
    if fastest.name != "AMX":
        pytest.skip("no AMX here")
    settings = ModelSettings(hidden_size=64)
    made = network(settings)
    how = DecodingSettings(beam=1)
    sources = some_sources(40)
    engine = NativeEngine(fastest, settings, weights(made), precision="bfloat16", threads=1)
    found = engine.search(sources, settings=how, max_lens=[1] * 40)
    wanted = expected(made, sources, how, [1] * 40)
    difference = [
        abs(a[0].score - b[0].score) for a, b in zip(found, wanted, strict=True) if a[0].tokens == b[0].tokens
    ]
    assert len(difference) > 30
    assert 0 < max(difference) < 0.1


@pytest.mark.parametrize(
    ("model", "decoding", "reason"),
    [
        ({}, {}, ""),
        ({"attention": {"heads": 2}}, {}, "heads"),
        ({"attention": {"score": "location"}}, {}, "location"),
        ({"attention": {"window": "local_m"}}, {}, "local_m"),
        ({"attention": {"normaliser": "sparsemax"}}, {}, "sparsemax"),
        ({}, {"sample": True, "beam": 1}, "sampling"),
        ({}, {"coverage_penalty": 0.2}, "coverage"),
        ({}, {"precision": "int8"}, "int8"),
    ],
)
def test_what_it_cannot_do_is_left_to_torch(model, decoding, reason, monkeypatch):
    monkeypatch.delenv("REGARD_ENGINE", raising=False)
    settings = ModelSettings(**model), DecodingSettings(**decoding)
    found = why_not(*settings)
    assert reason in found
    assert bool(found) == bool(reason)
    assert uses_native(*settings) != bool(reason)
    monkeypatch.setenv("REGARD_ENGINE", "native")
    if reason:
        with pytest.raises(ConfigError, match=f"engine native cannot decode so here .*{reason}"):
            uses_native(*settings)


def test_the_environment_chooses_the_engine(monkeypatch):
    monkeypatch.setenv("REGARD_ENGINE", "torch")
    assert not uses_native(ModelSettings(), DecodingSettings())
    monkeypatch.setenv("REGARD_ENGINE", "touch")
    with pytest.raises(ConfigError, match="'touch' is none of auto, native, torch"):
        uses_native(ModelSettings(), DecodingSettings())
