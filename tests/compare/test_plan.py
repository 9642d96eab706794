from __future__ import annotations

import pytest

from compare.tiny import CORPUS, SETTINGS, tiny_data, tiny_plan
from regard.compare.data import read_comparison_data
from regard.compare.plan import choose_metrics
from regard.compare.sizes import count_parameters, fit_hidden_size, with_hidden_size
from regard.compare.variants import choose_variants
from regard.config import make_config, merge
from regard.data.corpora import load_corpus
from regard.errors import ConfigError, DataError
from regard.folder import new_network

SIZES = {"source_size": 23, "target_size": 29}


def sources(pairs):
    return {source for source, _ in pairs}


@pytest.mark.parametrize(
    "name", ["last", "pooled-query", "attention-additive", "attention-location", "luong2015"]
)
def test_parameters_are_counted_as_a_made_network_has_them(name):
    (variant,) = choose_variants([name])
    config = variant.config({"model": {"hidden_size": 14, "embedding_size": 10}})
    expected = new_network(config, **SIZES).n_parameters
    assert count_parameters(config, **SIZES) == expected


@pytest.mark.parametrize("variant", choose_variants(["fixed", "attention", "windows"]), ids=lambda v: v.name)
def test_each_default_variant_comes_within_three_per_cent_of_the_parameters(variant):
    target = count_parameters(make_config({"model": {"hidden_size": 256}}), **SIZES)
    fitted = fit_hidden_size(variant.config({}), target, **SIZES)
    assert abs(count_parameters(fitted, **SIZES) / target - 1) < 0.03


def test_no_other_hidden_size_comes_nearer():
    (variant,) = choose_variants(["projected"])
    fitted = fit_hidden_size(variant.config({}), 50_000, **SIZES)
    chosen = fitted.model.hidden_size

    def miss(size):
        return abs(count_parameters(with_hidden_size(fitted, size), **SIZES) - 50_000)

    assert miss(chosen) <= min(miss(chosen - 2), miss(chosen + 2))


def test_hidden_size_can_be_shared_among_the_heads():
    config = make_config({"model": {"attention": {"heads": 6}, "hidden_size": 12}})
    assert fit_hidden_size(config, 300_000, **SIZES).model.hidden_size % 6 == 0


def test_tied_embeddings_are_compared_at_equal_hidden_sizes():
    config = make_config({"model": {"tie_embeddings": True, "hidden_size": 32, "embedding_size": 32}})
    with pytest.raises(ConfigError, match="--match hidden"):
        fit_hidden_size(config, 10_000, **SIZES)


def test_a_corpus_brings_its_own_three_parts():
    data, corpus = tiny_data(), load_corpus(CORPUS)
    assert (data.train, data.dev, data.test) == (corpus.train, corpus.dev, corpus.test)
    assert data.test_lens == [len(source.split()) for source, _ in corpus.test]
    assert data.longest_trained == max(len(source.split()) for source, _ in corpus.train)


def test_a_file_has_dev_and_test_held_out_with_no_source_in_two_parts(tmp_path):
    pairs = load_corpus("sort:2-8?size=300").train
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    data = tiny_data(str(path))
    parts = [sources(part) for part in (data.train, data.dev, data.test)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == len(sources(pairs))
    assert len(data.test) == len(data.dev) + 1 or len(data.test) == len(data.dev)
    assert [note.split(":")[0] for note in data.notes] == ["no test data given", "no dev data given"]


def test_sources_of_a_given_test_file_are_not_trained_on(tmp_path):
    pairs = load_corpus("sort:2-8?size=100").train
    for name, part in (("all", pairs), ("test", pairs[:7])):
        text = "".join(f"{source}\t{target}\n" for source, target in part)
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    data = tiny_data(str(tmp_path / "all.tsv"), test=str(tmp_path / "test.tsv"))
    assert data.test == pairs[:7]
    assert not sources(data.train) & sources(data.test)
    assert "7 training pairs have the source of a test pair and are left out" in data.notes


def test_parallel_files_can_be_given_for_each_part(tmp_path):
    corpus = load_corpus("reverse:2-8?size=60")
    paths = {}
    for part, pairs in corpus.splits.items():
        for side, lines in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            paths[part, side] = tmp_path / f"{part}.{side}"
            paths[part, side].write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    data = tiny_data(
        str(paths["train", "source"]),
        target_path=paths["train", "target"],
        dev=str(paths["dev", "source"]),
        dev_target_path=paths["dev", "target"],
        test=str(paths["test", "source"]),
        test_target_path=paths["test", "target"],
    )
    assert (data.train, data.dev, data.test) == (corpus.train, corpus.dev, corpus.test)
    assert data.name == "train.source (dev: dev.source, test: test.source)"


def test_training_lengths_can_be_capped_below_those_of_the_test():
    data, whole = tiny_data(train_max_len=4), tiny_data()
    assert max(len(source.split()) for source, _ in data.train + data.dev) == 4
    assert data.test == whole.test
    assert data.longest_trained == 4 < max(data.test_lens)
    assert 4 in [last for _, last in data.ranges()]
    with pytest.raises(
        DataError, match=r"no training pair has a source of at most 1 tokens \(--train-max-len\)"
    ):
        tiny_data(train_max_len=1)


def test_every_variant_runs_with_every_seed_on_the_same_budget(tmp_path):
    plan = tiny_plan(tmp_path, seeds=(4, 5))
    assert [(run.variant, run.seed) for run in plan.runs] == [
        ("last", 4),
        ("attention-dot", 4),
        ("last", 5),
        ("attention-dot", 5),
    ]
    assert len({run.name for run in plan.runs}) == 4
    for run in plan.runs:
        training = run.config.training
        assert (training.max_steps, training.patience, training.metric) == (6, 0, "token")
        assert training.seed == run.seed


def test_equal_hidden_sizes_can_be_asked_for(tmp_path):
    plan = tiny_plan(tmp_path, match="hidden")
    assert {run.hidden_size for run in plan.runs} == {12}
    assert plan.budget["parameters"] is None


def test_location_has_as_many_positions_as_the_data_and_no_more(tmp_path):
    plan = tiny_plan(tmp_path, variants=["attention-location"])
    assert plan.runs[0].config.data.max_source_len == plan.data.longest == 6


def test_subwords_that_are_trained_again_keep_the_limit_of_the_settings(tmp_path):
    pairs = [
        (f"the house number {n} is old and grey", f"das Haus Nummer {n} ist alt und grau") for n in range(60)
    ]
    settings = merge(SETTINGS, {"data": {"source": {"tokenizer": "bpe", "vocabulary_size": 60}}})
    data = read_comparison_data(pairs, config=make_config(settings))
    assert data.source_kind == "bpe"
    plan = tiny_plan(tmp_path, variants=["attention-location"], data=data, settings=settings)
    assert plan.runs[0].config.data.max_source_len == make_config({}).data.max_source_len


def test_key_changes_with_settings_and_training_data_and_with_nothing_else(tmp_path):
    def key(data=None, **options):
        return tiny_plan(tmp_path, variants=["last"], data=data, **options).runs[0].key

    first = key()
    assert key() == first
    assert key(metrics=("exact",), edges=[3]) == first
    others = {
        key(seeds=(2,)),
        key(hidden_sizes=(20,)),
        key(settings=merge(SETTINGS, {"training": {"max_steps": 7}})),
        key(data=tiny_data(train_max_len=5)),
    }
    assert len(others) == 4
    assert first not in others


def test_metrics_fit_the_targets():
    assert choose_metrics(None, "space")[0] == "token"
    assert choose_metrics(None, "char")[:2] == ("token", "exact")
    assert choose_metrics(None, "bpe")[0] == "bleu"
    assert choose_metrics(["exact", "exact", "chrf"], "bpe") == ("exact", "chrf")
    with pytest.raises(ConfigError, match="did you mean 'chrf'"):
        choose_metrics(["chfr"], "bpe")


def test_an_empty_plan_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="nothing to compare"):
        tiny_plan(tmp_path, seeds=())
