"""``regard compare``: several configurations on the same data under the same budget."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from regard.compare.perform import RunResult
    from regard.compare.plan import Plan

__all__ = ["compare", "parse_minutes"]

_Plan = "What is compared"
_Budget = "Budget"
_Judging = "Evaluation"
_CAPACITY_SIZES = "16,32,64,128,256"


def compare(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="Pairs as in training, or a built-in corpus such as copy:5-30 or 'cldr:zh-en?items=1-12'.",
        ),
    ],
    targets: Annotated[
        str | None, typer.Argument(metavar="TARGETS", help="The parallel file of targets.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for runs, tables and plots.")] = Path(
        "comparison"
    ),
    variants: Annotated[
        str | None,
        typer.Option(
            help="Names with commas: fixed, attention (groups, the default), windows (group), last, projected, "
            "pooled-mean, pooled-max, pooled-query, last-reversed, last-every-step, attention-SCORE, "
            "attention-local-m, attention-local-p, attention-sparsemax, attention-entmax15, a preset, or a file "
            "of settings (.yaml, .json).",
            rich_help_panel=_Plan,
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Runs of each variant, each with another seed.", rich_help_panel=_Plan)
    ] = 3,
    first_seed: Annotated[
        int, typer.Option(min=0, help="The first of the seeds.", rich_help_panel=_Plan)
    ] = 1,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting that all variants share, such as model.dropout=0 (see `regard settings`).",
            rich_help_panel=_Plan,
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Shared settings as YAML or JSON.", rich_help_panel=_Plan)
    ] = None,
    capacity: Annotated[
        bool,
        typer.Option(
            "--capacity",
            help="Measure instead how long a source fixed contexts of several hidden sizes can hold.",
            rich_help_panel=_Plan,
        ),
    ] = False,
    budget: Annotated[
        str,
        typer.Option(
            help="Time of each training: 10m, 90s, 1h; 0 with --max-steps.", rich_help_panel=_Budget
        ),
    ] = "10m",
    max_steps: Annotated[
        int | None,
        typer.Option(min=1, help="Most updates of each training.", rich_help_panel=_Budget),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            help="parameters: each variant gets the hidden size at which it has as many parameters as general "
            "attention with --hidden (the default); hidden: all have the same (the default with --capacity).",
            rich_help_panel=_Budget,
        ),
    ] = None,
    hidden: Annotated[
        str | None,
        typer.Option(
            help="Units of a layer (default 256); with --capacity several, with commas (default "
            f"{_CAPACITY_SIZES}).",
            rich_help_panel=_Budget,
        ),
    ] = None,
    parallel: Annotated[
        int,
        typer.Option(min=1, help="Trainings at once; they share the threads.", rich_help_panel=_Budget),
    ] = 1,
    threads: Annotated[
        int,
        typer.Option(
            min=0, help="Threads of each training, 0 for an equal share of all.", rich_help_panel=_Budget
        ),
    ] = 0,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.", rich_help_panel=_Budget)
    ] = "auto",
    dev: Annotated[
        str | None,
        typer.Option(help="Pairs to choose weights by; held out if not given.", rich_help_panel=_Judging),
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(help="Pairs to report on; held out if not given.", rich_help_panel=_Judging),
    ] = None,
    dev_targets: Annotated[
        str | None,
        typer.Option(help="The parallel file of dev targets.", rich_help_panel=_Judging),
    ] = None,
    test_targets: Annotated[
        str | None,
        typer.Option(help="The parallel file of test targets.", rich_help_panel=_Judging),
    ] = None,
    train_max_len: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Longest source, in tokens, of training and dev; the test keeps longer ones.",
            rich_help_panel=_Judging,
        ),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="Names with commas, the main one first: token, exact, bleu, chrf, ter, wer, cer, per.",
            rich_help_panel=_Judging,
        ),
    ] = None,
    buckets: Annotated[
        str | None,
        typer.Option(
            help="Last source length of each bucket, with commas: 10,20,40.", rich_help_panel=_Judging
        ),
    ] = None,
    beam: Annotated[
        int, typer.Option(min=1, help="Hypotheses kept; 1 is greedy.", rich_help_panel=_Judging)
    ] = 1,
) -> int:
    """Train several configurations on the same data under the same budget, and compare them.

    Writes compare.json, compare.md and plots: each metric against source length, training curves, tokens a
    second, parameters. Runs that are finished are not repeated: after Ctrl-C, or to add variants or seeds, give
    the command again. With --capacity it writes capacity.json, capacity.md and capacity.png.
    """
    given = dict(locals())
    from regard.cli.common import command_line, console
    from regard.cli.compare_display import CompareDisplay
    from regard.compare.runner import run_plan
    from regard.training.signals import StopSignal

    plan = _plan(given)
    minutes = plan.budget["minutes"]
    for note in [*plan.data.notes, _announced(plan, parallel)]:
        typer.echo(note, err=True)
    try:
        with CompareDisplay(len(plan.runs), parallel=parallel, minutes=minutes) as display:
            results = run_plan(plan, parallel=parallel, listeners=[display], command=command_line())
    except (StopSignal, KeyboardInterrupt) as error:
        typer.echo(f"stopped; what is done is in {out}, go on with the same command", err=True)
        return error.exit_code if isinstance(error, StopSignal) else 130
    _report(plan, results, console(), capacity=capacity)
    return 1 if len(results) < len(plan.runs) else 0


def parse_minutes(text: str) -> float:
    """Minutes of a time such as ``10m``, ``90s``, ``1.5h``; a bare number is minutes.

    Raises:
        ConfigError: It is no time.
    """
    from regard.errors import ConfigError

    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([smh]?)\s*", text)
    if found is None:
        raise ConfigError(f"--budget {text!r}: expected a time such as 10m, 90s or 1h")
    return float(found[1]) * {"s": 1 / 60, "m": 1.0, "": 1.0, "h": 60.0}[found[2]]


def _numbers(text: str, option: str, example: str) -> list[int]:
    from regard.errors import ConfigError

    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ConfigError(f"{option} {text!r}: expected whole numbers with commas, such as {example}")
    return sorted({int(part) for part in parts})


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def _check(given: dict[str, Any]) -> str:
    """Refuse what cannot work before anything is read; returns how variants are made equal."""
    from regard.errors import ConfigError

    match = given["match"] or ("hidden" if given["capacity"] else "parameters")
    if match not in ("parameters", "hidden"):
        raise ConfigError(f"--match {match!r}: expected parameters or hidden")
    if not parse_minutes(given["budget"]) and given["max_steps"] is None:
        raise ConfigError("--budget 0 has no end: give --max-steps, or a time such as 10m")
    for part in ("dev", "test"):
        if given[f"{part}_targets"] is not None and given[part] is None:
            raise ConfigError(f"--{part}-targets needs the file of sources: --{part} FILE")
    if given["capacity"] and (given["buckets"] or given["metrics"]):
        raise ConfigError(
            "--capacity looks at the token accuracy of each length: leave out --buckets and --metrics"
        )
    out: Path = given["out"]
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out}: is a file, expected a folder for the comparison")
    if out.is_dir() and any(out.iterdir()) and not (out / "runs").is_dir():
        raise ConfigError(f"{out}: is not empty and holds no comparison; choose another folder with --out")
    return match


def _settings(given: dict[str, Any]) -> dict[str, Any]:
    """Settings that all variants share, weakest first: the file, the options, --set."""
    import os

    from regard.cli.common import nested
    from regard.config import load_settings_file, merge

    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    training: dict[str, Any] = {
        "minutes": parse_minutes(given["budget"]),
        "threads": given["threads"] or max(1, n_cores // given["parallel"]),
        "device": given["device"],
    }
    if given["max_steps"] is not None:
        training["max_steps"] = given["max_steps"]
    settings = load_settings_file(given["config"]) if given["config"] is not None else {}
    return merge(merge(settings, {"training": training}), nested(given["set_"] or []))


def _plan(given: dict[str, Any]) -> Plan:
    from regard.compare.data import read_comparison_data
    from regard.compare.plan import Evaluation, choose_metrics, make_plan
    from regard.compare.variants import choose_variants
    from regard.config import make_config
    from regard.errors import ConfigError

    match, capacity = _check(given), given["capacity"]
    names = _names(given["variants"]) or (["fixed"] if capacity else [])
    chosen = choose_variants(names)
    settings = _settings(given)
    hidden = _numbers(given["hidden"] or (_CAPACITY_SIZES if capacity else "256"), "--hidden", "64,128")
    if len(hidden) > 1 and not capacity:
        raise ConfigError("--hidden takes one number, unless --capacity asks what size does")
    read = read_comparison_data(
        given["data"],
        config=make_config(settings, origin=str(given["config"] or "settings")),
        target_path=given["targets"],
        dev=given["dev"],
        dev_target_path=given["dev_targets"],
        test=given["test"],
        test_target_path=given["test_targets"],
        train_max_len=given["train_max_len"],
    )
    edges: list[int]
    metrics: tuple[str, ...]
    if capacity:
        edges, metrics = sorted(set(read.test_lens)), ("token",)
    else:
        buckets = given["buckets"]
        wanted = _numbers(buckets, "--buckets", "10,20,40") if buckets else None
        edges = [last for _, last in read.ranges(wanted)]
        metrics = choose_metrics(_names(given["metrics"]), read.target_kind)
    return make_plan(
        read,
        chosen,
        folder=given["out"],
        evaluation=Evaluation(metrics, tuple(edges), given["beam"]),
        settings=settings,
        seeds=range(given["first_seed"], given["first_seed"] + given["seeds"]),
        match="hidden" if match == "hidden" else "parameters",
        hidden_sizes=hidden,
    )


def _announced(plan: Plan, parallel: int) -> str:
    """What is going to be done, and how long that may take."""
    from regard.cli.progress import shown_time
    from regard.compare.report import budget_text

    data, n_runs, minutes = plan.data, len(plan.runs), plan.budget["minutes"]
    together = f", {parallel} at once" if parallel > 1 else ""
    longest = f": {shown_time(60 * minutes * -(-n_runs // parallel))} of training at most" if minutes else ""
    return (
        f"{data.name}: {len(data.train):,} training, {len(data.dev):,} dev, {len(data.test):,} test pairs; "
        f"{n_runs} runs{together}, {budget_text(plan.budget)}{longest}"
    )


def _report(plan: Plan, results: dict[str, RunResult], out: Any, *, capacity: bool) -> None:
    """Write tables and plots of what has a result, and show the main one."""
    from regard.errors import TrainingError

    if not results:
        raise TrainingError("no run has a result: see the warnings above")
    if capacity:
        from regard.compare.capacity import measure_capacity, to_markdown, write_capacity

        measured = measure_capacity(plan, results)
        written = write_capacity(measured, plan.folder)
        out.print(to_markdown(measured, "capacity.png"), markup=False)
    else:
        from regard.compare.report import conclusion, terminal_table, write_report
        from regard.compare.summary import summarise

        comparison = summarise(plan, results)
        written = write_report(comparison, plan.folder)
        out.print(terminal_table(comparison, width=out.width))
        out.print(conclusion(comparison), markup=False)
    typer.echo(f"written: {', '.join(map(str, written))}", err=True)
