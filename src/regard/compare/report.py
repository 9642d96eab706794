"""A comparison as tables: ``compare.md`` and the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.atomic import write_text
from regard.compare.summary import Comparison, Spread, VariantSummary

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["budget_text", "conclusion", "markdown_table", "terminal_table", "write_report"]

CLOSE = 0.03
"""Share of the parameters by which variants may differ before the report points it out."""


def shown(value: Spread) -> str:
    """A mean with its range, if it has one."""
    if f"{value.low:.1f}" == f"{value.high:.1f}":
        return f"{value.mean:.1f}"
    return f"{value.mean:.1f} ({value.low:.1f}–{value.high:.1f})"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns but the first are aligned to the right."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def sentence_case(text: str) -> str:
    """A text with a capital at its start; the rest stays, as in BLEU."""
    return text[:1].upper() + text[1:]


def range_label(first: int, last: int) -> str:
    """A range of lengths as text."""
    return str(first) if first == last else f"{first}–{last}"


def _parameters(variant: VariantSummary) -> str:
    text = f"{variant.n_parameters:,}"
    return text if variant.difference is None else f"{text} ({100 * variant.difference:+.1f} %)"


def _cells(variant: VariantSummary) -> list[str]:
    return [
        variant.label,
        f"{variant.hidden_size:,}",
        _parameters(variant),
        f"{variant.steps.mean:,.0f}",
        f"{variant.tokens_per_second.mean:,.0f}",
        f"{variant.decoded_per_second.mean:,.0f}",
        *(shown(value) for value in variant.overall.values()),
    ]


def _head(comparison: Comparison) -> list[str]:
    labels = [str(metric["label"]) for metric in comparison.metrics.values()]
    return ["variant", "hidden", "parameters", "updates", "trained/s", "decoded/s", *labels]


def budget_text(budget: Mapping[str, Any]) -> str:
    """The budget of a plan in words."""
    parts = []
    if budget["minutes"]:
        seconds = round(60 * budget["minutes"])
        time = f"{seconds} seconds" if seconds % 60 or seconds == 60 else f"{seconds // 60} minutes"
        parts.append(f"{time} of training")
    if budget["max_steps"]:
        parts.append(f"at most {budget['max_steps']:,} updates")
    if budget["match"] == "parameters":
        parts.append(f"{', '.join(f'{n:,}' for n in budget['parameters'])} parameters")
    else:
        parts.append(f"hidden size {', '.join(map(str, budget['hidden_sizes']))}")
    return ", ".join(parts) + " each"


def conclusion(comparison: Comparison) -> str:
    """How much the best of each family loses from the shortest to the longest sources, in one line."""
    name, metric = next(iter(comparison.metrics.items()))
    sign = 1 if metric["higher_is_better"] else -1
    said = []
    for family, words in (("attention", "the best attention"), ("fixed", "the best fixed context")):
        members = [variant for variant in comparison.variants if variant.family == family]
        if members:
            best = max(members, key=lambda variant: sign * variant.by_length[name][-1].mean)
            values = best.by_length[name]
            said.append(f"{words} ({best.label}) goes from {values[0].mean:.1f} to {values[-1].mean:.1f}")
    first, last = comparison.ranges[0], comparison.ranges[-1]
    return (
        f"From sources of {range_label(first['first'], first['last'])} tokens to those of "
        f"{range_label(last['first'], last['last'])}, {metric['label']} of {', of '.join(said)}."
    )


def _facts(comparison: Comparison) -> str:
    data, machine = comparison.data, comparison.machine
    spread = (
        f"the mean of up to {comparison.n_seeds} seeds (lowest–highest)"
        if comparison.n_seeds > 1
        else "one seed (95 % interval over the examples)"
    )
    lines = [
        f"- Data: {data['name']}; {data['n_train']:,} training, {data['n_dev']:,} dev and {data['n_test']:,} test "
        f"pairs; sources of at most {data['longest_trained']} tokens in training, {data['longest_tested']} in the test",
        f"- Budget: {budget_text(comparison.budget)}",
        f"- Values: {spread}, outputs decoded with beam {comparison.beam}",
        f"- Machine: {machine['platform']}, {machine['device']}, {machine['precision']}, {machine['threads']} threads a "
        f"run, torch {machine['torch']}",
    ]
    lines += [
        f"- {m['label']}: {m['signature']}" for m in comparison.metrics.values() if "|" in m["signature"]
    ]
    apart = [v for v in comparison.variants if v.difference is not None and abs(v.difference) > CLOSE]
    if apart:
        named = ", ".join(
            f"{v.label} ({100 * v.difference:+.1f} %)" for v in apart if v.difference is not None
        )
        lines.append(f"- Parameters differ by more than {100 * CLOSE:.0f} %: {named}")
    if comparison.missing:
        lines.append(f"- Without a result: {', '.join(comparison.missing)}")
    return "\n".join(lines) + "\n"


def to_markdown(comparison: Comparison, pictures: Sequence[str]) -> str:
    """The comparison as text with tables and pictures.

    Args:
        comparison: What to show.
        pictures: Paths of the plots, relative to where the text goes.
    """
    parts = [
        f"# Comparison on {comparison.data['name']}\n",
        _facts(comparison),
        conclusion(comparison) + "\n",
    ]
    parts.append(markdown_table(_head(comparison), [_cells(variant) for variant in comparison.variants]))
    ranges = [f"{range_label(r['first'], r['last'])} (n={r['n_examples']:,})" for r in comparison.ranges]
    for name, metric in comparison.metrics.items():
        rows = [[v.label, *(shown(value) for value in v.by_length[name])] for v in comparison.variants]
        parts.append(f"## {sentence_case(metric['label'])} by source length in tokens\n")
        parts.append(markdown_table(["variant", *ranges], rows))
    parts += [f"![{Path(picture).stem}]({picture})\n" for picture in pictures]
    return "\n".join(parts)


def _some(n: int, most: int) -> list[int]:
    """At most so many of n places, the first and the last among them, evenly apart."""
    return list(range(n)) if n <= most else [round(k * (n - 1) / (most - 1)) for k in range(most)]


def terminal_table(comparison: Comparison, *, width: int = 80) -> Table:
    """The comparison as a table for the terminal: the main metric at some lengths, and all over all.

    Args:
        comparison: What to show.
        width: Columns of the terminal; as many lengths are shown as have room.
    """
    from rich import box
    from rich.table import Table

    name, metric = next(iter(comparison.metrics.items()))
    longest = max(len(variant.label) for variant in comparison.variants)
    taken = longest + 1 + sum(max(len(other), 5) + 2 for other in comparison.metrics)
    room = max(
        2, (width - taken) // 8
    )  # a range such as 12–15 or a value such as 100.0, and blanks around it
    places = _some(len(comparison.ranges), room)
    table = Table(
        title=f"{metric['label']} by source length, then all lengths together; {budget_text(comparison.budget)}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("variant", no_wrap=True)
    for place in places:
        ends = comparison.ranges[place]
        table.add_column(range_label(ends["first"], ends["last"]), justify="right")
    for other in comparison.metrics:
        table.add_column(other, justify="right")
    for variant in comparison.variants:
        values = [variant.by_length[name][place] for place in places] + list(variant.overall.values())
        table.add_row(variant.label, *(f"{value.mean:.1f}" for value in values))
    return table


def write_report(comparison: Comparison, folder: Path) -> list[Path]:
    """Write ``compare.json``, ``compare.md`` and the plots; returns what was written."""
    from regard.compare.plots import draw_plots

    pictures = draw_plots(comparison, folder)
    write_text(folder / "compare.json", comparison.to_json())
    write_text(folder / "compare.md", to_markdown(comparison, [picture.name for picture in pictures]))
    return [folder / "compare.md", folder / "compare.json", *pictures]
