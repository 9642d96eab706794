from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

from cli.commands import error_line, regard
from regard.journeys.explanation import explain_case, explain_log
from regard.journeys.model import Journeys
from regard.journeys.removal import Change, ask_changed
from regard.journeys.synthetic import PLANTED, loan_log, log_to_csv


def test_each_planted_cause_is_ranked_first_and_removing_it_agrees(planted):
    model, test = planted
    story = explain_log(model, test)
    for outcome, cause in PLANTED.items():
        first = story.causes[outcome][0]
        assert first.name == cause
        assert first.confident
        assert first.effect[1] > 0.1
        assert first.difference[1] > 0
        assert first.attention[1] > first.even
    assert sum(path.n for path in story.paths) <= story.n_cases
    assert story.unsure[0].entropy >= story.unsure[-1].entropy


def test_a_log_without_rules_has_no_confident_cause(ruleless):
    model, test = ruleless
    story = explain_log(model, test)
    assert [c.name for causes in story.causes.values() for c in causes if c.confident] == []
    assert all(len(causes) > 5 for causes in story.causes.values())


def test_removing_an_event_equals_a_journey_that_never_had_it(planted):
    model, test = planted
    encoded = model.encode(test)
    places = np.arange(encoded.offsets[0], encoded.offsets[1])
    probs, following, _, _ = ask_changed(model, encoded, [places], [Change(0, events=(1,))])
    direct = model.answer(encoded, Journeys.whole([np.delete(places, 1)]))
    assert np.allclose(probs, direct.outcome_probs)
    assert np.allclose(following, direct.next_probs)
    before = encoded.categories.copy()
    ask_changed(model, encoded, [places], [Change(0, categories=((0, 0),))])
    assert np.array_equal(before, encoded.categories)


def test_a_case_is_told_by_the_events_that_mattered(planted):
    model, test = planted
    case = next(
        c for c in range(test.n_cases) if "documents missing" in test.path(c)[:3] and len(test.path(c)) > 5
    )
    story = explain_case(model, test, case, size=3)
    cancelled = [label for label, _ in story.outcomes].index("application cancelled")
    strongest = max(story.events, key=lambda event: event.effects[cancelled])
    assert strongest.activity == "documents missing"
    assert sum(event.next_attention for event in story.events) == pytest.approx(1, abs=1e-4)
    assert len(story.events) == 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    (folder / "loans.csv").write_text(log_to_csv(loan_log(400)), encoding="utf-8")
    done = regard(
        "journeys", "report", folder / "loans.csv", "-o", folder / "out", "--set", "training.epochs=3", "--set",
        "model.hidden_size=16", "--threads", 1, "--max-rests", 100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    return folder


def test_one_command_makes_a_report_that_needs_nothing_from_elsewhere(made):
    html = (made / "out" / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=|url\(|@import|https?://", html)
    assert "prefers-color-scheme:dark" in html
    assert "As published means" in html
    assert html.count("<svg") >= 3
    assert html.count("<section") == html.count("</section>")
    measures = (made / "out" / "measures.csv").read_text(encoding="utf-8").splitlines()
    assert len(measures) == 5
    assert {"causes.csv", "paths.csv", "unsure.csv", "outcomes.csv", "by_length.csv"} <= {
        p.name for p in (made / "out").iterdir()
    }


def test_report_is_shown_by_a_browser_as_wide_as_a_telephone(made, tmp_path):
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("needs chromium")
    picture = tmp_path / "phone.png"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    page = (made / "out" / "report.html").as_uri()
    subprocess.run(
        [browser, *flags, "--window-size=500,1200", f"--screenshot={picture}", page],
        check=True,
        capture_output=True,
    )
    assert picture.stat().st_size > 20_000
    shown = subprocess.run(
        [browser, *flags, "--dump-dom", page], check=True, capture_output=True
    ).stdout.decode()
    assert "How well does it foretell?" in shown


def test_predict_gives_a_row_for_each_case_and_explain_tells_one(made):
    model = made / "out" / "model"
    done = regard("journeys", "predict", model, made / "loans.csv", "--draws", 3)
    assert done.returncode == 0, done.stderr.decode()
    assert len(done.stdout.decode().splitlines()) == 401
    done = regard("journeys", "explain", model, made / "loans.csv", "--id", "loan-00003", "--events", 3)
    assert done.returncode == 0, done.stderr.decode()
    assert "case loan-00003" in done.stdout.decode()
    done = regard("journeys", "explain", model, made / "loans.csv", "--id", "loan-0003")
    assert done.returncode == 2
    assert "did you mean" in error_line(done)


def test_wrong_input_is_one_line_and_nothing_is_made(made, tmp_path):
    done = regard("journeys", "report", made / "loans.csv", "-o", made / "out")
    assert done.returncode == 2
    assert "--force" in error_line(done)
    done = regard("journeys", "train", tmp_path / "no.csv", "-o", tmp_path / "m")
    assert done.returncode == 2
    assert "no such file" in error_line(done)
    done = regard("journeys", "train", made / "loans.csv", "-o", tmp_path / "m", "--encoder", "gru")
    assert done.returncode == 2
    assert "model.encoder" in error_line(done)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "explain", "report", "demo"])
def test_every_option_is_explained(command):
    from typer.main import get_command

    from regard.cli.journeys import app

    for parameter in get_command(app).commands[command].params:
        if parameter.param_type_name == "option" and parameter.name != "help":
            assert parameter.help, parameter.name
