"""What the command line prints: predictions as CSV, causes and cases as text."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from io import StringIO

from regard.journeys.explanation import CaseStory, LogStory
from regard.journeys.foretelling import foretell
from regard.journeys.log import EventLog
from regard.journeys.model import JourneyModel

__all__ = ["case_text", "causes_text", "predictions_csv"]


def predictions_csv(model: JourneyModel, log: EventLog, *, n_draws: int = 24) -> str:
    """One row a case, in the log's order: what comes next after all its events, the rest, and the outcomes."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    outcomes = [f"probability of {outcome.label}" for outcome in model.outcomes]
    writer.writerow(["case", "events", "next", "probability", "rest", "expected_similarity", *outcomes])
    for name, found in zip(log.case_ids, foretell(model, log, n_draws=n_draws), strict=True):
        likeliest, probability = found.next[0]
        writer.writerow(
            [
                name,
                found.n_events,
                likeliest,
                f"{probability:.4f}",
                " > ".join(found.rest),
                "" if found.expected is None else f"{found.expected:.4f}",
                *(f"{p:.4f}" for _, p in found.outcomes),
            ]
        )
    return out.getvalue()


def causes_text(story: LogStory, *, n_shown: int = 5) -> str:
    """The strongest candidates of each outcome; without outcomes the paths most often foretold."""
    lines = []
    for outcome, causes in story.causes.items():
        if not any(cause.confident for cause in causes):
            lines.append(f"{outcome}: no confident cause")
        for cause in causes[:n_shown]:
            mark = "confident" if cause.confident else "not sure"
            lines.append(
                f"{outcome}: {cause.name}: effect {100 * cause.effect[0]:+.1f} points "
                f"({100 * cause.effect[1]:+.1f} to {100 * cause.effect[2]:+.1f}), {100 * cause.share_with[0]:.0f} % with "
                f"it ({cause.n_with:,} cases), {100 * cause.share_without[0]:.0f} % without; {mark}"
            )
    lines += [f"{path.n:,} x {' > '.join(path.path) or '(end)'}" for path in story.paths[:n_shown]]
    return "\n".join(lines)


def case_text(story: CaseStory) -> str:
    """A case as lines: its events with attention and effects, and what comes next."""
    lines = [f"case {story.case}"]
    for event in story.events:
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=event.time)
        effects = "".join(
            f"  {label} {100 * effect:+.1f}"
            for (label, _), effect in zip(story.outcomes, event.effects, strict=True)
        )
        lines.append(
            f"{moment:%Y-%m-%d %H:%M}  attention {100 * event.next_attention:3.0f} %  {event.activity}{effects}"
        )
        if event.rest_without is not None:
            lines.append(f"                  without it: {' > '.join(event.rest_without) or 'the end'}")
    lines.append("next: " + ", ".join(f"{name} {100 * p:.0f} %" for name, p in story.next))
    lines.append(
        f"rest: {' > '.join(story.rest) or 'the end'} (expected similarity {100 * story.expected:.0f} %)"
    )
    lines += [f"{label}: {100 * p:.0f} %" for label, p in story.outcomes]
    return "\n".join(lines)
