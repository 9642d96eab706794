"""The report: one HTML file that explains itself, and the numbers as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape
from io import StringIO
from pathlib import Path

from regard.atomic import write_text
from regard.journeys.drawing import interval_bars, lines_plot, scatter_plot
from regard.journeys.evaluation import EXPLAINED, Evaluation, OutcomeMeasures
from regard.journeys.explanation import CaseStory, Cause, LogStory
from regard.journeys.log import EventLog
from regard.journeys.page import page, section, table

__all__ = ["ReportFacts", "case_html", "case_page", "write_report"]

_SHOWN = 8
_INTERVALS = "Bars show the mean, the thin lines their intervals."


@dataclass(frozen=True)
class ReportFacts:
    """What a report is about.

    Attributes:
        title: Its heading.
        log: The whole log.
        n_train: Cases that were learnt from.
        split: How training and test were parted, in words.
        evaluation: Measures on the test.
        story: What holds for the cases of the test.
        cases: Single cases that are told.
    """

    title: str
    log: EventLog
    n_train: int
    split: str
    evaluation: Evaluation
    story: LogStory
    cases: Sequence[CaseStory] = ()


def _per_cent(value: float) -> str:
    return "–" if value != value else f"{100 * value:.1f} %"


def _points(values: tuple[float, float, float]) -> str:
    value, low, high = (100 * x for x in values)
    return f"{value:+.0f} ({low:+.0f} to {high:+.0f})"


def _shares(values: tuple[float, float, float]) -> str:
    return f"{100 * values[0]:.0f} % ({100 * values[1]:.0f}–{100 * values[2]:.0f})"


def write_report(facts: ReportFacts, folder: Path) -> Path:
    """Write ``report.html`` and the CSV files into a folder; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [_head(facts), _quality(facts.evaluation)]
    parts += [_outcome(measures, facts.story) for measures in facts.evaluation.outcomes]
    parts += [_paths(facts.story), _unsure(facts.story)]
    if facts.cases:
        told = "".join(f"<h3>{escape(case.case)}</h3>{case_html(case)}" for case in facts.cases)
        parts.append(section("Single cases", told, note=_CASE_NOTE))
    for name, text in _csv_files(facts).items():
        write_text(folder / name, text)
    path = folder / "report.html"
    write_text(path, page(facts.title, parts))
    return path


_CASE_NOTE = (
    "The bar under an event is the attention it draws when the next activity is named. An effect says how much its "
    "presence changes a probability, in points: the model was asked again without the event."
)


def _head(facts: ReportFacts) -> str:
    log, evaluation = facts.log, facts.evaluation
    first, last = (
        (datetime(1970, 1, 1) + timedelta(milliseconds=int(t))).date()
        for t in (log.time.min(), log.time.max())
    )
    tiles = [
        (f"{log.n_cases:,}", "cases"),
        (f"{log.n_events:,}", "events"),
        (f"{len(log.activities):,}", "activities"),
        (_per_cent(evaluation.measures["model"].next_honest), "next activity foretold rightly"),
        (_per_cent(evaluation.measures["model"].rest_honest), "similarity of the foretold rest"),
    ]
    shown = "".join(f'<div class="tile"><b>{escape(a)}</b>{escape(b)}</div>' for a, b in tiles)
    notes = "".join(f"<li>{escape(note)}</li>" for note in log.notes)
    about = f"{first} to {last}. Learnt from {facts.n_train:,} cases, measured on {evaluation.n_cases:,}: {facts.split}."
    noted = f"<ul>{notes}</ul>" if notes else ""
    return f'<h1>{escape(facts.title)}</h1><p class="soft">{escape(about)}</p><div class="tiles">{shown}</div>{noted}'


def _quality(evaluation: Evaluation) -> str:
    rows = [
        (
            "this model" if name == "model" else name,
            *(
                _per_cent(x)
                for x in (m.next_honest, m.next_published, m.rest_honest, m.rest_published, m.rest_goes_on)
            ),
        )
        for name, m in evaluation.measures.items()
    ]
    titles = (
        "",
        "next, honestly",
        "next, as published",
        "rest, honestly",
        "rest, as published",
        "rest, known to go on",
    )
    parts = [table(titles, rows, numbers=(1, 2, 3, 4, 5)), f'<p class="soft">{escape(EXPLAINED)}</p>']
    ticks = [str(a) if a == b else f"{a}–{b}" for a, b, *_ in evaluation.by_length]
    series = [
        ("next activity right", [row[3] for row in evaluation.by_length]),
        ("similarity of the rest", [row[4] for row in evaluation.by_length]),
    ]
    if len(ticks) > 1:
        parts.append("<h3>By the number of events known</h3>")
        parts.append(
            lines_plot(
                ticks, series, label="Quality by the number of events known", y_label="per cent, honestly"
            )
        )
    return section(
        "How well does it foretell?",
        *parts,
        note="On the cases named above, beside simple ways to answer. The rest is scored by edit distance: 100 % is the "
        "very same rest.",
    )


def _outcome(measures: OutcomeMeasures, story: LogStory) -> str:
    causes = story.causes.get(measures.label, [])
    confident = [cause for cause in causes if cause.confident]
    if confident:
        best = confident[0]
        verdict = (
            f'<p>Strongest: <span class="yes">{escape(best.name)}</span>. {_share_sentence(best)} Taking it away '
            f"changes the foretold probability by {-100 * best.effect[0]:+.0f} points on average.</p>"
        )
    else:
        verdict = (
            "<p><b>No confident cause.</b> Nothing in the log changes the foretold probability and goes with a real "
            "difference that chance would not explain.</p>"
        )
    parts = [
        verdict,
        f'<p class="soft">{measures.n:,} prefixes asked, {_per_cent(measures.share)} have it; area under the curve '
        f"{measures.auc:.3f}, Brier score {measures.brier:.3f}, calibration error {measures.calibration_error:.3f}.</p>",
    ]
    if causes:
        shown = causes[:_SHOWN]
        parts.append("<h3>What its presence does to the foretold probability (points)</h3>")
        parts.append(
            interval_bars(
                [(c.name, c.effect, c.confident) for c in shown], label=f"Effects on {measures.label}"
            )
        )
        parts.append(_causes_table(shown))
    parts.append("<h3>Can the probabilities be trusted?</h3>")
    parts.append(
        scatter_plot(
            measures.bins,
            label=f"Calibration of {measures.label}",
            y_label="real share, per cent",
            x_label="foretold probability, per cent",
        )
    )
    return section(
        f"What leads to: {measures.label}",
        *parts,
        note=f"{_INTERVALS} Orange is confident: the model and the real shares agree, with intervals widened for the "
        "number of candidates. A cause found in a log is a lead, not a proof.",
    )


def _share_sentence(cause: Cause) -> str:
    return (
        f"Of {cause.n_with:,} cases with it {100 * cause.share_with[0]:.0f} % had the outcome, of {cause.n_without:,} "
        f"without it {100 * cause.share_without[0]:.0f} %."
    )


def _causes_table(causes: Sequence[Cause]) -> str:
    titles = ("event", "cases", "with it", "without it", "difference", "effect", "attention", "even")
    rows = [
        (
            c.name, f"{c.n_with:,}", _shares(c.share_with), _shares(c.share_without), _points(c.difference),
            _points(c.effect), _shares(c.attention), f"{100 * c.even:.0f} %",
        )
        for c in causes
    ]  # fmt: skip
    return table(titles, rows, numbers=range(1, 8))


def _paths(story: LogStory) -> str:
    rows = [
        (" → ".join(path.path) or "(end)", f"{path.n:,}", _shares(path.share), _per_cent(path.expected))
        for path in story.paths
    ]
    return section(
        "Rests most often foretold",
        table(("rest of the journey", "cases", "share", "expected similarity"), rows, numbers=(1, 2, 3)),
        note=f"Of {story.n_cases:,} cases, when the first half of each is known.",
    )


def _unsure(story: LogStory) -> str:
    rows = [
        (
            case.case, case.n_events, case.last, f"{case.entropy:.2f}",
            ", ".join(f"{name} {100 * p:.0f} %" for name, p in case.likeliest),
        )
        for case in story.unsure
    ]  # fmt: skip
    return section(
        "Where the model is unsure",
        table(("case", "events known", "last event", "bits", "likeliest next"), rows, numbers=(1, 3)),
        note="Cases whose next activity is most open, the first half of each being known; 0 bits is certain, 1 bit is "
        "the toss of a coin.",
    )


def case_html(case: CaseStory) -> str:
    """A case as a timeline."""
    items = []
    for event in case.events:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=event.time)
        effects = [
            f"{label} {100 * effect:+.0f}"
            for (label, _), effect in zip(case.outcomes, event.effects, strict=True)
            if abs(effect) >= 0.01
        ]
        attended = [
            f"{label} {100 * weight:.0f} %"
            for (label, _), weight in zip(case.outcomes, event.attention, strict=True)
            if weight >= 0.2
        ]
        parts = [f"effects in points: {', '.join(effects)}"] if effects else []
        parts += [f"attention for {', '.join(attended)}"] if attended else []
        if event.rest_without is not None:
            parts.append(f"without it would follow: {' → '.join(event.rest_without) or 'the end'}")
        said = "; ".join(parts)
        details = f' <span class="soft">{escape(", ".join(event.details))}</span>' if event.details else ""
        items.append(
            f'<li><span class="soft">{moment:%Y-%m-%d %H:%M}</span> <b>{escape(event.activity)}</b>{details}'
            f'<div class="meter" title="attention {100 * event.next_attention:.0f} %">'
            f'<i style="width:{100 * event.next_attention:.0f}%"></i></div>'
            f'<span class="soft">{escape(said)}</span></li>'
        )
    following = ", ".join(f"{name} {100 * p:.0f} %" for name, p in case.next)
    outcomes = "".join(f"<li>{escape(label)}: {100 * p:.0f} %</li>" for label, p in case.outcomes)
    rest = " → ".join(case.rest) or "the end"
    return (
        f'<ol class="time">{"".join(items)}</ol><p>Next: {escape(following)}.<br>Rest: {escape(rest)} (expected '
        f"similarity {100 * case.expected:.0f} %).</p><ul>{outcomes}</ul>"
    )


def case_page(case: CaseStory) -> str:
    """A page about one case."""
    return page(
        f"Case {case.case}",
        [f"<h1>Case {escape(case.case)}</h1>", section("Timeline", case_html(case), note=_CASE_NOTE)],
    )


def _csv(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(titles)
    writer.writerows([f"{x:.6g}" if isinstance(x, float) else x for x in row] for row in rows)
    return out.getvalue()


def _csv_files(facts: ReportFacts) -> dict[str, str]:
    """The numbers of the report by the names of their files."""
    evaluation, story = facts.evaluation, facts.story
    causes = [cause for found in story.causes.values() for cause in found]
    intervals = ("share_with", "share_without", "difference", "effect", "attention")
    cause_titles = ["outcome", "event", "n_with", "n_without"]
    cause_titles += [f"{name}{end}" for name in intervals for end in ("", "_low", "_high")]
    return {
        "measures.csv": _csv(
            ("name", "next_honest", "next_published", "rest_honest", "rest_published", "rest_goes_on"),
            [(n, m.next_honest, m.next_published, m.rest_honest, m.rest_published, m.rest_goes_on) for n, m in evaluation.measures.items()],
        ),
        "by_length.csv": _csv(
            ("first", "last", "n", "next_honest", "rest_honest"), evaluation.by_length
        ),
        "outcomes.csv": _csv(
            ("outcome", "n", "share", "auc", "brier", "calibration_error"),
            [(o.label, o.n, o.share, o.auc, o.brier, o.calibration_error) for o in evaluation.outcomes],
        ),
        "causes.csv": _csv(
            (*cause_titles, "even_attention", "confident"),
            [
                (c.outcome, c.name, c.n_with, c.n_without, *(x for name in intervals for x in getattr(c, name)), c.even, c.confident)
                for c in causes
            ],
        ),
        "paths.csv": _csv(
            ("rest", "n", "share", "share_low", "share_high", "expected_similarity"),
            [(" > ".join(p.path), p.n, *p.share, p.expected) for p in story.paths],
        ),
        "unsure.csv": _csv(
            ("case", "events_known", "last_event", "entropy_bits", "likeliest", "probability"),
            [(u.case, u.n_events, u.last, u.entropy, u.likeliest[0][0], u.likeliest[0][1]) for u in story.unsure],
        ),
    }  # fmt: skip
