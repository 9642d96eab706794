"""Metrics, each also by source length and with an interval; reports as table, JSON and plot."""
