"""A made-up bank's loan journeys with known causes, to see whether an explanation finds them.

Three rules are planted; everything else, decoys among it, is drawn alike whatever the outcome:

1. *channel = broker* on the application makes *application rejected* likely;
2. an early *documents missing* makes *application cancelled* likely;
3. an early *advice call* makes *insurance added* likely.

Without rules, the same outcomes come at fixed rates that nothing foretells.
"""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from io import StringIO

import numpy as np

from regard.journeys.log import MISSING, Attribute, EventLog

__all__ = ["PLANTED", "loan_log", "log_to_csv"]

PLANTED = {
    "application rejected": "application submitted: channel = broker",
    "application cancelled": "documents missing",
    "insurance added": "advice call",
}
"""The cause of each outcome, in the words of the explanation."""
_ACTIVITIES = (
    "application submitted", "identity checked", "documents missing", "advice call", "credit report read",
    "statement sent", "offer written", "offer sent", "insurance added", "application cancelled",
    "application rejected", "application accepted",
)  # fmt: skip
_CHANNELS = ("branch", "web", "broker")
_PURPOSES = ("car", "home", "other")
_START = datetime(2024, 1, 1)


def loan_log(n_cases: int = 3000, *, rules: bool = True, seed: int = 1) -> EventLog:
    """Make a log.

    Args:
        n_cases: Number of cases.
        rules: Whether the three rules hold; without them the outcomes come at the same rates by chance.
        seed: Of everything random.
    """
    rng = np.random.default_rng([seed, int(rules)])
    rows: list[tuple[str, int, int, int, float]] = []
    offsets = [0]
    begins = 0.0
    for _ in range(n_cases):
        begins += float(rng.exponential(2.0))
        journey = _journey(rng, rules)
        channel, purpose = journey.pop("channel"), journey.pop("purpose")
        amount = round(float(rng.lognormal(9.5, 0.6)), -2)
        hours = begins
        for place, name in enumerate(journey["path"]):
            hours += float(rng.exponential(20.0)) if place else 0.0
            first = place == 0
            rows.append(
                (
                    name,
                    int(hours * 3_600_000),
                    _CHANNELS.index(channel) + 1 if first else MISSING,
                    _PURPOSES.index(purpose) + 1 if first else MISSING,
                    amount if first else float("nan"),
                )
            )
        offsets.append(len(rows))
    names, times, channels, purposes, amounts = zip(*rows, strict=True)
    start = int((_START - datetime(1970, 1, 1)) / timedelta(milliseconds=1))
    return EventLog(
        case_ids=tuple(f"loan-{number:05}" for number in range(1, n_cases + 1)),
        offsets=np.array(offsets, np.int64),
        activity=np.array([_ACTIVITIES.index(name) for name in names], np.int32),
        activities=_ACTIVITIES,
        time=np.array(times, np.int64) + start,
        zone=np.zeros(len(rows), np.int16),
        attributes=(
            Attribute("channel", np.array(channels, np.int32), _CHANNELS),
            Attribute("purpose", np.array(purposes, np.int32), _PURPOSES),
            Attribute("amount", np.array(amounts, np.float32), is_number=True),
        ),
    )


def _journey(rng: np.random.Generator, rules: bool) -> dict:
    """Draw one case: its path, channel and purpose."""
    channel = str(rng.choice(_CHANNELS, p=(0.4, 0.3, 0.3)))
    purpose = str(rng.choice(_PURPOSES))
    missing, advised = rng.random() < 0.35, rng.random() < 0.4
    early = ["identity checked"] * (rng.random() < 0.7) + ["credit report read"] * (rng.random() < 0.5)
    early += ["documents missing"] * missing + ["advice call"] * advised
    early += ["statement sent"] * int(rng.integers(0, 3))
    path = ["application submitted", *rng.permutation(early).tolist(), "offer written", "offer sent"]
    chances = (
        (0.85 if advised else 0.15, 0.75 if missing else 0.08, 0.85 if channel == "broker" else 0.12)
        if rules
        else (0.43, 0.31, 0.34)
    )
    insured, cancelled, rejected = (rng.random() < chance for chance in chances)
    path += ["insurance added"] * insured
    path.append(
        "application cancelled"
        if cancelled
        else "application rejected"
        if rejected
        else "application accepted"
    )
    return {"path": path, "channel": channel, "purpose": purpose}


def log_to_csv(log: EventLog) -> str:
    """A log as CSV text, cases mixed in the order of time as an export has them."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["case_id", "activity", "timestamp", *(a.name for a in log.attributes)])
    case = np.repeat(np.arange(log.n_cases), log.lengths)
    for place in np.argsort(log.time, kind="stable"):
        moment = datetime(1970, 1, 1) + timedelta(milliseconds=int(log.time[place]))
        shown = [attribute.shown(int(place)) for attribute in log.attributes]
        name = log.activities[log.activity[place]]
        writer.writerow([log.case_ids[case[place]], name, moment.isoformat(timespec="milliseconds"), *shown])
    return out.getvalue()
