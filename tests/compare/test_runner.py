from __future__ import annotations

import json
import os
import signal

import pytest

from compare.tiny import SETTINGS, tiny_data, tiny_plan
from regard.compare.events import RunBegan, RunEnded, RunFailed, RunTold
from regard.compare.perform import RESULT, RunResult, find_result
from regard.compare.report import (
    budget_text,
    conclusion,
    range_label,
    terminal_table,
    to_markdown,
    write_report,
)
from regard.compare.runner import run_plan
from regard.compare.summary import summarise
from regard.config import merge
from regard.folder import load_model
from regard.training.events import Finished, Progress, Validated
from regard.training.signals import StopSignal


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A comparison of two variants with two seeds, its events and its results."""
    plan = tiny_plan(tmp_path_factory.mktemp("compare"), seeds=(1, 2), metrics=("token", "exact", "chrf"))
    events: list = []
    return plan, events, run_plan(plan, listeners=[events.append], command="regard compare")


def kinds(events):
    return [
        (type(event).__name__, event.run.variant, event.run.seed)
        for event in events
        if not isinstance(event, RunTold)
    ]


def test_each_run_is_a_model_folder_with_its_result(done):
    plan, events, results = done
    assert list(results) == [run.name for run in plan.runs]
    assert [kind for kind, *_ in kinds(events)] == ["RunBegan", "RunEnded"] * 4
    for run in plan.runs:
        folder = plan.run_folder(run)
        model = load_model(folder, device="cpu")
        result = RunResult.model_validate_json((folder / RESULT).read_bytes())
        assert result == results[run.name]
        assert result.n_parameters == model.model.n_parameters
        assert result.training["steps"] == 6
        assert [point["step"] for point in result.curve] == [3, 6]
        assert result.losses
        assert all(point["values"]["loss"] > 0 for point in result.losses)
        assert result.tokens_per_second > 0
        assert result.decoded_per_second > 0


def test_values_are_of_what_the_model_says_when_it_hears_itself(done):
    plan, _, results = done
    run = plan.runs[1]
    model = load_model(plan.run_folder(run), device="cpu")
    said = [p.text.split() for p in model.predict([source for source, _ in plan.data.test], beam=1)]
    wanted = [target.split() for _, target in plan.data.test]
    hits = sum(
        a == b for one, other in zip(said, wanted, strict=True) for a, b in zip(one, other, strict=False)
    )
    places = sum(max(len(one), len(other)) for one, other in zip(said, wanted, strict=True))
    report = results[run.name].report
    assert report["overall"]["token"]["value"] == pytest.approx(100 * hits / places, abs=1e-3)
    assert [(b["first"], b["last"]) for b in report["by_source_length"]] == plan.data.ranges()


def test_finished_runs_are_found_and_not_repeated(done):
    plan, _, results = done
    before = {path: path.stat().st_mtime_ns for path in plan.folder.rglob("*") if path.is_file()}
    events: list = []
    assert run_plan(plan, listeners=[events.append]) == results
    assert all(isinstance(event, RunEnded) and event.found for event in events)
    assert {path: path.stat().st_mtime_ns for path in plan.folder.rglob("*") if path.is_file()} == before


def test_another_way_to_judge_does_not_train_again(done):
    plan, _, _ = done
    other = tiny_plan(plan.folder, seeds=(1,), metrics=("exact",), edges=[4])
    events: list = []
    results = run_plan(other, listeners=[events.append])
    assert not [event for event in events if isinstance(event, RunTold)]
    assert [list(result.report["overall"]) for result in results.values()] == [["exact"]] * 2
    run_plan(plan)  # as it was


def test_other_settings_or_a_broken_result_are_trained_anew(done, tmp_path):
    plan = tiny_plan(tmp_path, variants=["last"])
    run_plan(plan)
    folder = plan.run_folder(plan.runs[0])
    (folder / RESULT).write_text("{", encoding="utf-8")
    (folder / "facts.json").unlink()
    events: list = []
    run_plan(plan, listeners=[events.append])
    assert any(isinstance(event, RunTold) and isinstance(event.event, Finished) for event in events)
    other = tiny_plan(tmp_path, variants=["last"], settings=merge(SETTINGS, {"model": {"cell": "gru"}}))
    assert find_result(other.run_folder(other.runs[0]), key=other.runs[0].key, evaluation_key="x") is None


def test_runs_at_once_give_what_runs_in_turn_give(done, tmp_path):
    _, _, in_turn = done
    other = tiny_plan(tmp_path, seeds=(1, 2), metrics=("token", "exact", "chrf"))
    events: list = []
    at_once = run_plan(other, parallel=2, listeners=[events.append])
    assert {name: result.report for name, result in at_once.items()} == {
        name: result.report for name, result in in_turn.items()
    }
    told = [event.event for event in events if isinstance(event, RunTold)]
    assert {type(event) for event in told} >= {Progress, Validated, Finished}
    assert sum(isinstance(event, RunBegan) for event in events) == 4
    assert sum(isinstance(event, RunEnded) for event in events) == 4


class StopAt:
    """A listener that sends this process a signal when a run has reached an update."""

    def __init__(self, number: int, *, run: int, step: int) -> None:
        self.number, self.run, self.step, self.began, self.sent = number, run, step, 0, False

    def __call__(self, event) -> None:
        self.began += isinstance(event, RunBegan)
        told = isinstance(event, RunTold) and isinstance(event.event, Progress | Validated)
        if told and self.began == self.run and event.event.step >= self.step and not self.sent:
            self.sent = True
            os.kill(os.getpid(), self.number)


def test_a_stop_leaves_finished_runs_and_the_next_goes_on_where_it_was(done, tmp_path):
    _, _, results = done
    plan = tiny_plan(tmp_path, seeds=(1, 2), metrics=("token", "exact", "chrf"))
    with pytest.raises(StopSignal) as stopped:
        run_plan(plan, listeners=[StopAt(signal.SIGINT, run=2, step=3)])
    assert stopped.value.exit_code == 130
    assert [(plan.run_folder(run) / RESULT).exists() for run in plan.runs] == [True, False, False, False]
    events: list = []
    again = run_plan(plan, listeners=[events.append])
    assert [event.found for event in events if isinstance(event, RunEnded)] == [True, False, False, False]
    steps = [
        event.event.step
        for event in events
        if isinstance(event, RunTold) and isinstance(event.event, Validated) and event.run == plan.runs[1]
    ]
    assert steps == [6]
    assert {name: result.report for name, result in again.items()} == {
        name: result.report for name, result in results.items()
    }


def test_a_stop_is_passed_on_to_all_that_run_at_once(tmp_path):
    slow = merge(SETTINGS, {"training": {"max_steps": 100_000, "validate_every": 20}})
    plan = tiny_plan(tmp_path, settings=slow)
    with pytest.raises(StopSignal):
        run_plan(plan, parallel=2, listeners=[StopAt(signal.SIGTERM, run=2, step=1)])
    assert not [run for run in plan.runs if (plan.run_folder(run) / RESULT).exists()]


@pytest.mark.parametrize("parallel", [1, 2])
def test_a_run_that_fails_is_told_and_the_others_go_on(tmp_path, parallel):
    wild = tmp_path / "wild.yaml"
    wild.write_text("training: {learning_rate: 1.0e+30, clip_norm: 0, warmup_steps: 0}\n", encoding="utf-8")
    plan = tiny_plan(tmp_path / "out", variants=[str(wild), "last"])
    events: list = []
    results = run_plan(plan, parallel=parallel, listeners=[events.append])
    assert [name.split("-")[0] for name in results] == ["last"]
    (failed,) = [event for event in events if isinstance(event, RunFailed)]
    assert failed.run.variant == "wild"
    assert "the loss is not finite" in failed.reason
    comparison = summarise(plan, results)
    assert comparison.missing == [plan.runs[0].name]
    assert plan.runs[0].name in to_markdown(comparison, [])


def test_summary_is_the_mean_over_seeds_and_how_far_they_lie_apart(done):
    plan, _, results = done
    comparison = summarise(plan, results)
    assert [variant.name for variant in comparison.variants] == ["last", "attention-dot"]
    for variant in comparison.variants:
        values = [
            r.report["overall"]["token"]["value"] for r in results.values() if r.variant == variant.name
        ]
        assert variant.seeds == [1, 2]
        found = variant.overall["token"]
        assert (found.mean, found.low, found.high) == pytest.approx(
            (sum(values) / 2, min(values), max(values))
        )
        assert variant.steps.mean == 6
        for curve, name in ((variant.curve, "loss"), (variant.curve, "token"), (variant.losses, "loss")):
            assert len(curve["seconds"]) == len(curve[name]["mean"]) > 1
        assert all(
            low <= mean + 1e-3 and mean <= high + 1e-3
            for low, mean, high in zip(
                *(variant.curve["token"][k] for k in ("low", "mean", "high")), strict=True
            )
        )


def test_one_seed_has_the_interval_over_the_examples(done):
    plan, _, results = done
    runs = [run for run in plan.runs if run.seed == 1]
    comparison = summarise(plan, {run.name: results[run.name] for run in runs})
    found = results[runs[0].name].report["overall"]["token"]
    value = comparison.variants[0].overall["token"]
    assert (value.mean, value.low, value.high) == (found["value"], found["low"], found["high"])
    assert "one seed" in to_markdown(comparison, [])


def test_report_is_versioned_json_a_table_and_plots(done):
    plan, _, results = done
    comparison = summarise(plan, results)
    written = write_report(comparison, plan.folder)
    record = json.loads((plan.folder / "compare.json").read_text(encoding="utf-8"))
    assert (record["format"], record["version"]) == ("regard-comparison", 1)
    assert record["data"]["name"] == plan.data.name
    assert len(record["runs"]) == 4
    assert all((plan.folder / run["folder"] / RESULT).is_file() for run in record["runs"])
    text = (plan.folder / "compare.md").read_text(encoding="utf-8")
    for variant in comparison.variants:
        assert f"| {variant.label} | {variant.hidden_size} | {variant.n_parameters:,} (" in text
    pictures = [path for path in written if path.suffix == ".png"]
    names = ["length-token", "length-exact", "length-chrf", "curves", "costs"]
    assert [path.stem for path in pictures] == names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    assert all(f"]({path.name})" in text for path in pictures)


def test_parameters_that_lie_apart_are_pointed_out(done):
    plan, _, results = done
    comparison = summarise(plan, results)
    apart = [v.label for v in comparison.variants if abs(v.difference) > 0.03]
    assert apart  # so small a hidden size goes in large steps
    (line,) = [line for line in to_markdown(comparison, []).splitlines() if "differ by more than 3 %" in line]
    assert all(label in line for label in apart)


def test_budget_is_said_in_words():
    def said(minutes, **other):
        return budget_text(
            {"minutes": minutes, "max_steps": None, "match": "hidden", "hidden_sizes": [64], **other}
        )

    assert said(10.0) == "10 minutes of training, hidden size 64 each"
    assert said(0.5) == "30 seconds of training, hidden size 64 each"
    assert said(0, max_steps=2000, match="parameters", parameters=[5000]) == (
        "at most 2,000 updates, 5,000 parameters each"
    )


def test_terminal_table_and_conclusion_show_the_main_metric_by_length(done):
    import io

    from rich.console import Console

    plan, _, results = done
    comparison = summarise(plan, results)
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(terminal_table(comparison, width=160))
    shown = console.export_text()
    for variant in comparison.variants:
        assert variant.label in shown
        assert f"{variant.by_length['token'][-1].mean:.1f}" in shown
    best = comparison.variants[1].by_length["token"]
    said = f"the best attention (attention, dot) goes from {best[0].mean:.1f} to {best[-1].mean:.1f}"
    assert said in conclusion(comparison)


def test_a_narrow_terminal_is_shown_fewer_lengths_and_the_ends(done):
    plan, _, results = done
    comparison = summarise(plan, results)
    heads = [column.header for column in terminal_table(comparison, width=50).columns]
    ends = [range_label(r["first"], r["last"]) for r in (comparison.ranges[0], comparison.ranges[-1])]
    assert heads[0] == "variant"
    assert heads[1:3] == ends
    assert len(heads) == 1 + 2 + len(comparison.metrics)


def test_lengths_never_trained_are_a_range_of_their_own(tmp_path):
    plan = tiny_plan(tmp_path, variants=["last"], data=tiny_data(train_max_len=4))
    comparison = summarise(plan, run_plan(plan))
    assert any(ends["last"] == 4 for ends in comparison.ranges)
    write_report(comparison, tmp_path)
    assert "at most 4 tokens in training, 6 in the test" in (tmp_path / "compare.md").read_text(
        encoding="utf-8"
    )
