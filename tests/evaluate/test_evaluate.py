from __future__ import annotations

import io
import json

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ConfigError
from regard.evaluate.metrics import (
    BLEU,
    CER,
    CHRF,
    PER,
    TER,
    WER,
    Exact,
    TokenAccuracy,
    WholeLineErrors,
    make_metrics,
)
from regard.evaluate.report import bootstrap, evaluate_outputs, length_buckets

HYPOTHESES = ["the cat sat on the mat", "a dog", "it is raining today , is it ?", "", "one two three four"]
REFERENCES = ["the cat sat on a mat", "a dog", "is it raining today ?", "nothing", "one two four three"]


@pytest.mark.parametrize(
    ("metric", "corpus"),
    [(BLEU(), sacrebleu.corpus_bleu), (CHRF(), sacrebleu.corpus_chrf), (TER(), sacrebleu.corpus_ter)],
)
def test_value_is_the_one_of_sacrebleu(metric, corpus):
    assert metric.score(HYPOTHESES, REFERENCES) == pytest.approx(
        corpus(HYPOTHESES, [REFERENCES]).score, abs=1e-9
    )
    part = metric.statistics(HYPOTHESES, REFERENCES)[1:3].sum(0)
    expected = corpus(HYPOTHESES[1:3], [REFERENCES[1:3]]).score
    assert metric.aggregate(part) == pytest.approx(expected, abs=1e-9)


def test_signature_names_version_and_tokenizer():
    assert BLEU(tokenize="zh").signature().startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:zh|")
    assert "version:" in CHRF().signature()
    assert Exact().signature() == "exact"


def test_error_rates_by_hand():
    assert WER().score(["a b c"], ["a x c d"]) == pytest.approx(50.0)
    assert CER().score(["abc"], ["abd"]) == pytest.approx(100 / 3)
    assert PER().score(["t\u0361\u0283 a"], ["t\u0361\u0283 a\u02d0 b"]) == pytest.approx(200 / 3)
    assert Exact().score(["a", "b"], ["a", "c"]) == 50.0
    assert WholeLineErrors().score(["a b", "b"], ["a b", "c"]) == 50.0


def test_token_accuracy_by_hand():
    metric = TokenAccuracy()
    assert metric.score(["a b c"], ["a x c"]) == pytest.approx(200 / 3)
    assert metric.score(["b c"], ["a b c"]) == 0.0  # all that follows what is left out is in a wrong place
    assert metric.score(["a b c d"], ["a b"]) == 50.0  # what is too much is wrong
    assert metric.score(["a", "b b b"], ["a", "b b x"]) == 75.0  # places, not lines, are counted
    assert metric.score([""], [""]) == 100.0
    assert TokenAccuracy(list).score(["abd"], ["abc"]) == pytest.approx(200 / 3)
    assert make_metrics(["token"], symbol_target=True)[0].higher_is_better


def test_normal_forms_are_no_error():
    assert Exact().score(["e\u0301"], ["\u00e9"]) == 100.0
    assert CER().score(["e\u0301"], ["\u00e9"]) == 0.0


def test_empty_references_are_defined():
    assert CER().score([""], [""]) == 0.0
    assert CER().score(["x"], [""]) == 100.0
    assert np.isnan(BLEU().score([], []))
    assert BLEU().statistics([], []).shape == (0, 0)
    with pytest.raises(ValueError, match="1 hypotheses for 2 references"):
        Exact().score(["a"], ["a", "b"])


def test_metrics_fit_the_kind_of_target():
    assert [metric.name for metric in make_metrics(None, symbol_target=True)] == ["exact", "wer", "per"]
    assert isinstance(make_metrics(["wer"], symbol_target=True)[0], WholeLineErrors)
    assert isinstance(make_metrics(["wer"], symbol_target=False)[0], WER)
    chinese = make_metrics(["bleu"], symbol_target=False, references=["\u673a\u5668\u5b66\u4e60"])[0]
    assert chinese.tokenize == "zh"
    assert make_metrics(["bleu"], symbol_target=False, references=["a b"])[0].tokenize == "13a"
    with pytest.raises(ConfigError, match="did you mean 'chrf'"):
        make_metrics(["chfr"], symbol_target=False)


def test_interval_holds_the_value_and_is_repeatable():
    statistics = Exact().statistics(["a"] * 30 + ["b"] * 10, ["a"] * 40)
    one, two = (bootstrap(Exact(), statistics, seed=3) for _ in range(2))
    assert one == two
    assert one.value == 75.0
    assert one.low < 75.0 < one.high
    # The standard error of 30 in 40 is 6.8 points.
    assert 2 * 1.6 * 6.8 < one.high - one.low < 2 * 2.4 * 6.8


@settings(deadline=None, max_examples=50)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=80),
    edges=st.none() | st.lists(st.integers(1, 50), min_size=1).map(sorted),
)
def test_each_length_is_in_one_bucket(lengths, edges):
    ranges = length_buckets(lengths, edges)
    for length in lengths:
        assert sum(first <= length <= last for first, last in ranges) == 1
    assert all(any(first <= length <= last for length in lengths) for first, last in ranges)
    if edges is None:
        assert len(ranges) <= 8


def make_report():
    return evaluate_outputs([6, 2, 8, 1, 4], HYPOTHESES, REFERENCES, metrics=[BLEU(), Exact()], edges=[2, 5])


def test_report_divides_by_length_and_is_whole():
    report = make_report()
    assert [(bucket.label, bucket.n_examples) for bucket in report.buckets] == [
        ("1\u20132", 2),
        ("3\u20135", 1),
        ("6\u20138", 2),
    ]
    assert report.overall["exact"].value == 20.0
    assert report.buckets[0].estimates["exact"].value == 50.0
    record = json.loads(report.to_json())
    assert record["format"] == "regard-report"
    assert record["by_source_length"][1]["n_examples"] == 1
    assert record["overall"]["bleu"]["value"] == pytest.approx(report.overall["bleu"].value, abs=1e-3)


def test_table_shows_each_bucket_and_the_whole():
    from rich.console import Console

    console = Console(width=100, record=True, file=io.StringIO())
    console.print(make_report().table())
    shown = console.export_text()
    for text in ("5 examples", "BLEU", "exact match", "1\u20132", "6\u20138", "all", "20.0"):
        assert text in shown


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plot_is_written_in_the_format_of_its_name(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    make_report().plot(path)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(start)
    with pytest.raises(ConfigError, match="a picture ends in \\.png, \\.svg, \\.pdf, not in '\\.gif'"):
        make_report().plot(tmp_path / "a.gif")


def test_unequal_numbers_are_refused():
    with pytest.raises(ConfigError, match="1 outputs for 2 references"):
        evaluate_outputs([1, 2], ["a"], ["a", "b"], metrics=[Exact()])
