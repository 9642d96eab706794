from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.errors import ConfigError, DataError, ModelFolderError
from regard.journeys.api import split_cases, train_journeys
from regard.journeys.baselines import all_baselines
from regard.journeys.cases import EncodedLog, JourneyVocabulary, collate, cut_batches
from regard.journeys.encoder import batch_tensors
from regard.journeys.evaluation import area_under_curve, calibration, evaluate_journeys
from regard.journeys.log import take_cases
from regard.journeys.model import Journeys, load_journey_model
from regard.journeys.network import JourneyNetwork
from regard.journeys.outcomes import UNASKED, Outcome, choose_outcomes, prefix_labels
from regard.journeys.settings import JourneyModelSettings, make_journey_config
from regard.journeys.statistics import difference_interval, wilson
from regard.journeys.suffixes import most_expected, similarity
from regard.journeys.synthetic import loan_log
from regard.nn.types import EOS


@pytest.fixture(params=["lstm", "attention"])
def network(request):
    log = loan_log(40)
    vocabulary = JourneyVocabulary.from_log(log)
    torch.manual_seed(2)
    settings = JourneyModelSettings(
        encoder=request.param, hidden_size=12, embedding_size=6, heads=3, layers=2
    )
    return JourneyNetwork(vocabulary, settings, n_outcomes=2).eval(), EncodedLog.from_log(log, vocabulary)


def answers_of(network, log, cases, case, size):
    device = torch.device("cpu")
    rows = [np.arange(log.offsets[c], log.offsets[c + 1]) for c in cases]
    read = network.read(batch_tensors(collate(log, rows), device))
    encoded, events = read.prefixes(torch.tensor([cases.index(case)]), torch.tensor([size]))
    log_probs, weights = network.next_log_probs(encoded)
    logits, pooled = network.outcomes(encoded, events)
    return torch.cat([log_probs[0, 1:], logits[0]]), weights, pooled


@torch.no_grad()
def test_answers_of_a_prefix_depend_neither_on_the_batch_nor_on_what_follows(network):
    net, log = network
    alone, _, _ = answers_of(net, log, [3], 3, 2)
    longest = int(log.lengths.argmax())
    together, weights, pooled = answers_of(net, log, [longest, 3, 5], 3, 2)
    assert torch.allclose(alone, together, atol=1e-5)
    assert torch.allclose(weights.sum(-1), torch.ones(1))
    assert torch.allclose(pooled.sum(-1), torch.ones(1, 2))
    assert weights.shape == (1, 2)


def test_the_gradient_reaches_each_parameter(network):
    net, log = network
    from regard.journeys.training import prefix_losses

    labels = np.random.default_rng(0).integers(0, 2, (len(log.activity), 2)).astype(np.int8)
    log = EncodedLog(**{**vars(log), "labels": labels})
    losses = prefix_losses(net, log, np.arange(40), prefixes=3, rng=np.random.default_rng(1))
    losses.total.backward()
    missing = [name for name, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum()]
    assert [name for name in missing if "distance" not in name] == []


def test_batches_hold_every_case_once_and_keep_their_size():
    lengths = np.array([3, 9, 1, 4, 30, 2, 2])
    batches = list(cut_batches(lengths, batch_events=12, rng=np.random.default_rng(1)))
    assert sorted(np.concatenate(batches).tolist()) == list(range(7))
    assert all(len(b) * lengths[b].max() <= 12 or len(b) == 1 for b in batches)


def test_model_learns_more_than_the_baselines_know(planted):
    model, test = planted
    made = evaluate_journeys(
        model, model.encode(test), all_baselines(_paths(model)), max_rests=300, n_draws=12
    )
    best = max(m.next_honest for name, m in made.measures.items() if name != "model")
    assert made.measures["model"].next_honest > best
    assert made.measures["model"].rest_honest > made.measures["most frequent next"].rest_honest
    assert made.n_next_honest == int((test.lengths - 1).sum())
    assert made.n_next_published == made.n_next_honest - test.n_cases
    assert all(o.auc > 0.7 and o.calibration_error < 0.15 for o in made.outcomes)
    assert sum(row[2] for row in made.by_length) == made.n_next_honest


def _paths(model):
    log = loan_log(1500, rules=True, seed=3)
    train, _ = split_cases(log, "file")
    encoded = model.encode(take_cases(log, train))
    return [tuple(encoded.path(case).tolist()) for case in range(len(train))]


def test_saved_model_gives_the_same_answers_and_draws_depend_on_the_case_alone(planted, tmp_path):
    model, test = planted
    model.save(tmp_path / "m")
    loaded = load_journey_model(tmp_path / "m")
    few = model.encode(take_cases(test, range(6)))
    journeys = Journeys.of_cases(few, np.arange(6))
    assert np.array_equal(model.answer(few, journeys).next_probs, loaded.answer(few, journeys).next_probs)
    rests, expected = model.rests(few, journeys, n_draws=5)
    some = Journeys(journeys.rows, journeys.which[3:7], journeys.sizes[3:7])
    assert model.rests(few, some, n_draws=5)[0] == rests[3:7]
    assert ((expected > 0) & (expected <= 1)).all()


def test_journeys_over_the_limit_are_read_by_their_newest_events(planted):
    model, test = planted
    encoded = model.encode(test)
    many = np.concatenate([np.arange(encoded.offsets[c], encoded.offsets[c + 1]) for c in range(60)])
    most = model.config.model.max_events
    assert len(many) > most
    both = Journeys(rows=[many, many[-most:]], which=np.array([0, 1]), sizes=np.array([len(many), most]))
    found = model.answer(encoded, both, weights=True)
    assert np.allclose(found.next_probs[0], found.next_probs[1], atol=1e-6)
    assert len(found.next_weights[0]) == most


def test_damaged_folder_is_one_line(planted, tmp_path):
    model, _ = planted
    with pytest.raises(ModelFolderError, match="not a model of journeys"):
        load_journey_model(tmp_path)
    model.save(tmp_path / "m")
    (tmp_path / "m" / "config.json").write_text('{"modle": {}}', encoding="utf-8")
    with pytest.raises(ModelFolderError, match="damaged"):
        load_journey_model(tmp_path / "m")


def test_wrong_settings_are_named_together():
    with pytest.raises(ConfigError, match="hiden_size: no such setting; did you mean 'hidden_size'.*epochs"):
        make_journey_config({"model": {"hiden_size": 3}, "training": {"epochs": 0}})


def test_time_split_keeps_all_of_the_training_before_all_of_the_test():
    log = loan_log(300)
    train, test = split_cases(log, "time")
    assert log.time[log.offsets[1:] - 1][train].max() < log.time[log.offsets[:-1]][test].min()
    first, last = split_cases(log, "file")
    assert (len(first), len(last)) == (200, 100)
    assert first.max() < last.min()
    with pytest.raises(DataError, match="a larger log"):
        split_cases(take_cases(log, range(3)), "file")


def test_outcome_is_asked_only_as_long_as_it_has_not_happened():
    log = loan_log(200)
    labels = prefix_labels(log, Outcome(name="offer sent"))
    for case in range(20):
        path = log.path(case)
        at = path.index("offer sent")
        assert labels[log.events(case)].tolist() == [1] * at + [UNASKED] * (len(path) - at)


def test_outcomes_are_activities_or_columns_and_unknown_ones_get_a_suggestion():
    log = loan_log(200)
    assert [o.label for o in choose_outcomes(log, ["offer sent", "channel=web"])] == [
        "offer sent",
        "channel = web",
    ]
    assert len(choose_outcomes(log, ["channel"])) == 3
    with pytest.raises(DataError, match="did you mean 'offer sent'"):
        choose_outcomes(log, ["offer snt"])
    model = train_journeys(
        log,
        config=make_journey_config({"training": {"epochs": 1, "threads": 1}, "model": {"hidden_size": 8}}),
        outcomes=["channel=web"],
    )
    assert [c.name for c in model.vocabulary.categories] == ["purpose"]


def test_similarity_and_the_most_expected_of_drawn_rests():
    assert similarity((), ()) == 1
    assert similarity((3,), ()) == 0
    assert similarity((3, 4, 5), (4, 3, 5)) == pytest.approx(2 / 3)
    drawn = [(3, 3, 3)] * 2 + [(4,), (4, 5), (4, 5, 6)]
    rest, expected = most_expected(drawn)
    table = [[similarity(a, b) for b in drawn] for a in drawn]
    best = max(range(5), key=lambda i: sum(table[i]))
    assert rest == drawn[best]
    assert expected == pytest.approx(sum(table[best]) / 5)


def test_baselines_answer_what_was_counted():
    paths = [(3, 4, 5)] * 3 + [(3, 5)] * 2 + [(4, 4)]
    bigram, ngram, nearest = all_baselines(paths)
    assert bigram.next((3,)) == 4
    assert bigram.next((5,)) == EOS
    assert bigram.next((5,), goes_on=True) != EOS
    assert ngram.rest((3,)) == (4, 5)
    assert nearest.rest((3, 4)) == (5,)
    assert nearest.nearest((3, 3, 4)) == (3, 4)


def test_area_under_curve_counts_pairs_with_ties_half():
    rng = np.random.default_rng(1)
    probs, truth = rng.integers(0, 6, 40) / 6, rng.random(40) < 0.4
    pairs = [(p > q) + 0.5 * (p == q) for p in probs[truth] for q in probs[~truth]]
    assert area_under_curve(probs, truth) == pytest.approx(np.mean(pairs))
    assert np.isnan(area_under_curve(probs, np.ones(40, bool)))
    assert sum(n for _, _, n in calibration(probs, truth)) == 40


def test_intervals_are_those_of_the_papers():
    low, high = wilson(15, 148)  # Newcombe 1998, table I
    assert (round(low, 4), round(high, 4)) == (0.0624, 0.1605)
    low, high = difference_interval(56, 70, 48, 80)  # Newcombe 1998b, table II, method 10
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)
