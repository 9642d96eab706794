"""Settings with which a comparison takes a second."""

from __future__ import annotations

from regard.compare.data import read_comparison_data
from regard.compare.plan import Evaluation, make_plan
from regard.compare.variants import choose_variants
from regard.config import make_config

CORPUS = "copy:2-6?size=120&symbols=4"
SETTINGS = {
    "model": {"embedding_size": 6, "dropout": 0.0},
    "training": {"minutes": 0, "max_steps": 6, "threads": 1, "validate_every": 3, "precision": "float32"},
}


def tiny_data(source=CORPUS, **options):
    return read_comparison_data(source, config=make_config(SETTINGS), **options)


def tiny_plan(
    folder, *, variants=("last", "attention-dot"), data=None, metrics=("token", "exact"), **options
):
    data = data or tiny_data()
    edges = tuple(last for _, last in data.ranges(options.pop("edges", None)))
    chosen = {"seeds": (1,), "hidden_sizes": (12,), "settings": SETTINGS, **options}
    return make_plan(
        data, choose_variants(variants), folder=folder, evaluation=Evaluation(metrics, edges), **chosen
    )
