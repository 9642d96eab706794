"""Customers' journeys: event logs in, what comes next and why out.

From a log (`regard.journeys.reading`) to arrays (`log`, `cases`), a model of both jobs (`network`, `training`,
`model`), its measures (`evaluation`, `baselines`) and its explanation (`removal`, `explanation`, `report`).
"""
