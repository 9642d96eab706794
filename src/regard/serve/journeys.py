"""Models of journeys on a server: what requests send, checked against what a model knows.

Nothing of `regard.journeys` is imported before a server has such a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.errors import did_you_mean
from regard.serve.problems import Problem
from regard.serve.schemas import JourneyCase, JourneyEvent

if TYPE_CHECKING:
    from regard.journeys.foretelling import Foretold, GivenEvent
    from regard.journeys.model import JourneyModel

__all__ = ["ServedJourneys", "open_journeys", "read_time"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_LAST = 253_402_300_799_999
"""The end of the year 9999 in milliseconds since 1970."""


def read_time(value: str | int, field: str) -> tuple[int, int]:
    """Read the time of an event.

    Args:
        value: ISO 8601, with or without a zone (then UTC), or whole milliseconds since 1970 UTC.
        field: What errors call it.

    Returns:
        Milliseconds since 1970 UTC, and minutes east of UTC.

    Raises:
        Problem: It is no time.
    """
    wrong = Problem(
        422,
        "no_time",
        f"{field} is no time; send ISO 8601, such as 2026-12-01T09:30:00+01:00, or milliseconds since 1970",
        field=field,
    )
    if isinstance(value, int):
        if not 0 <= value <= _LAST:
            raise wrong
        return value, 0
    text = value.strip()
    try:
        # Python 3.10 knows neither Z nor a date alone with a zone.
        found = datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text)
        zone = found.utcoffset() or timedelta()
        aware = found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)
        milliseconds = (aware - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        raise wrong from None
    return milliseconds, round(zone.total_seconds() / 60)


@dataclass(frozen=True)
class ServedJourneys:
    """A model of journeys under a name.

    Attributes:
        name: What requests call it.
        model: The model.
    """

    name: str
    model: JourneyModel

    def describe(self) -> dict[str, Any]:
        """What clients need to know."""
        vocabulary = self.model.vocabulary
        return {
            "name": self.name,
            "activities": list(vocabulary.activities),
            "categories": [known.name for known in vocabulary.categories],
            "numbers": [known.name for known in vocabulary.numbers],
            "outcomes": [outcome.label for outcome in self.model.outcomes],
            "max_events_read": self.model.config.model.max_events,
            "parameters": self.model.network.n_parameters,
            "version": self.model.facts.regard_version,
        }

    def check_cases(self, cases: Sequence[JourneyCase]) -> list[list[GivenEvent]]:
        """Bring cases to the form that the model reads.

        Raises:
            Problem: An activity or attribute that the model does not know, a value of the wrong kind, no time, or
                events that are not in the order of time.
        """
        return [self._check_case(case, f"cases.{place}") for place, case in enumerate(cases)]

    def _check_case(self, case: JourneyCase, item: str) -> list[GivenEvent]:
        made: list[GivenEvent] = []
        for place, event in enumerate(case.events):
            field = f"{item}.events.{place}"
            given = self._check_event(event, field)
            if made and given.time < made[-1].time:
                raise Problem(
                    422,
                    "unordered",
                    f"{field}.time is before that of the event before it; send the events in the order of time",
                    field=f"{field}.time",
                )
            made.append(given)
        return made

    def _check_event(self, event: JourneyEvent, field: str) -> GivenEvent:
        from regard.journeys.foretelling import GivenEvent

        known = self.model.vocabulary.activities
        if event.activity not in known:
            some = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
            raise Problem(
                422,
                "unknown_activity",
                f"{field}.activity is none that the model {self.name} knows, which are {some}"
                f"{did_you_mean(event.activity[:80], known)}",
                field=f"{field}.activity",
            )
        time, zone = read_time(event.time, f"{field}.time")
        categories, numbers = self._check_attributes(event.attributes, f"{field}.attributes")
        return GivenEvent(event.activity, time, zone, categories, numbers)

    def _check_attributes(
        self, attributes: Mapping[str, str | int | float | None], field: str
    ) -> tuple[dict[str, str], dict[str, float]]:
        kinds = self.model.kinds
        categories: dict[str, str] = {}
        numbers: dict[str, float] = {}
        for name, value in attributes.items():
            if name not in kinds:
                shown = ", ".join(kinds) or "none"
                raise Problem(
                    422,
                    "unknown_attribute",
                    f"{field} has a name that the model {self.name} does not know; it knows {shown}"
                    f"{did_you_mean(name[:80], list(kinds))}",
                    field=field,
                )
            place = f"{field}.{name}"
            if value is None:
                continue
            if kinds[name] != (not isinstance(value, str)):
                wanted = "a number" if kinds[name] else "a text"
                raise Problem(422, "wrong_kind", f"{place} must be {wanted} or null", field=place)
            if isinstance(value, str):
                categories[name] = value
            else:
                numbers[name] = float(value)
        return categories, numbers

    def answer(
        self, cases: Sequence[Sequence[GivenEvent]], *, draws: int, explain: bool
    ) -> list[dict[str, Any]]:
        """Foretell each case, as JSON values."""
        from regard.journeys.foretelling import foretell, log_of_events

        log = log_of_events(self.model.vocabulary, cases)
        found = foretell(self.model, log, n_draws=draws, weights=explain)
        return [_to_object(one, explain=explain) for one in found]


def _to_object(found: Foretold, *, explain: bool) -> dict[str, Any]:
    outcomes: list[dict[str, Any]] = [
        {"outcome": label, "probability": round(probability, 6)} for label, probability in found.outcomes
    ]
    made: dict[str, Any] = {
        "n_events": found.n_events,
        "next": [{"activity": name, "probability": round(p, 6)} for name, p in found.next],
        "rest": list(found.rest),
        "expected_similarity": None if found.expected is None else round(found.expected, 6),
        "outcomes": outcomes,
    }
    if explain:
        assert found.next_weights is not None
        assert found.outcome_weights is not None
        made["next_weights"] = found.next_weights.astype(float).round(6).tolist()
        for outcome, weights in zip(outcomes, found.outcome_weights, strict=True):
            outcome["weights"] = weights.astype(float).round(6).tolist()
    return made


def open_journeys(name: str, folder: Path, *, device: str) -> ServedJourneys:
    """Load a model of journeys and let it answer once, so that the first request does not wait for it.

    Raises:
        ModelFolderError: What is wrong with the folder.
    """
    from regard.journeys.foretelling import GivenEvent
    from regard.journeys.model import load_journey_model

    served = ServedJourneys(name, load_journey_model(folder, device=device))
    first = GivenEvent(served.model.vocabulary.activities[0], 0)
    served.answer([[first]], draws=2, explain=True)
    return served
