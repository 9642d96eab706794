"""Customers' journeys: event logs in, what comes next and why out.

From a log (`regard.journeys.reading`) to arrays (`log`, `cases`), a model of both jobs (`network`, `training`,
`model`), its measures (`evaluation`, `baselines`) and its explanation (`removal`, `explanation`, `report`).
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["FACTS", "is_journey_folder"]

FACTS = "journeys.json"
"""The file that only the folder of a model of journeys has."""


def is_journey_folder(folder: Path) -> bool:
    """Whether a folder holds a model of journeys, and not one of texts."""
    return (folder / FACTS).is_file()
