"""Several configurations trained on the same data under the same budget, and what came of it."""
