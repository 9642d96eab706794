"""``regard journeys``: event logs in, what comes next and why out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.common import Device, Model, Threads

if TYPE_CHECKING:
    from regard.journeys.log import EventLog
    from regard.journeys.model import JourneyModel
    from regard.journeys.settings import JourneyConfig

__all__ = ["app"]

app = typer.Typer(
    help="Customers' journeys: train on an event log, foretell the rest and the outcome, and say why.",
    no_args_is_help=True,
)

_Columns = "The log"
Log = Annotated[
    str, typer.Argument(metavar="LOG", help="An event log: .csv (also .gz), .parquet, .xes or .xes.gz.")
]
Case = Annotated[str | None, typer.Option("--case", help="Column of the case.", rich_help_panel=_Columns)]
Activity = Annotated[
    str | None, typer.Option("--activity", help="Column of the activity.", rich_help_panel=_Columns)
]
Time = Annotated[str | None, typer.Option("--time", help="Column of the time.", rich_help_panel=_Columns)]
TimeFormat = Annotated[
    str | None,
    typer.Option("--time-format", help="Of the times, such as '%d.%m.%Y %H:%M'.", rich_help_panel=_Columns),
]
Separator = Annotated[
    str | None, typer.Option("--separator", help="Of the CSV file.", rich_help_panel=_Columns)
]
Encoding = Annotated[str, typer.Option("--encoding", help="Of the CSV file.", rich_help_panel=_Columns)]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", help="A column to leave out; repeat it.", rich_help_panel=_Columns),
]
Number = Annotated[
    list[str] | None, typer.Option("--number", help="A further column of numbers.", rich_help_panel=_Columns)
]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", help="A further column of categories.", rich_help_panel=_Columns),
]
KeepDuplicates = Annotated[
    bool,
    typer.Option("--keep-duplicates", help="Keep events equal in every column.", rich_help_panel=_Columns),
]
Outcomes = Annotated[
    list[str] | None,
    typer.Option(
        "--outcome",
        help="What is asked: an activity that may happen later, a column of labels, or COLUMN=VALUE; repeat it.",
    ),
]
Minutes = Annotated[float | None, typer.Option(help="Most minutes of training; 0 for no limit (default 5).")]
Seed = Annotated[int | None, typer.Option(help="Of everything random.")]
Encoder = Annotated[str | None, typer.Option(help="lstm or attention.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting, such as model.hidden_size=64."),
]
Split = Annotated[
    str,
    typer.Option(
        help="time: test on cases that began after all cases of training had ended; file: on the last third of the file."
    ),
]
Draws = Annotated[
    int, typer.Option(min=0, help="Rests drawn to name the one most like all; 0 for the likeliest.")
]
MaxRests = Annotated[int, typer.Option(min=0, help="Most prefixes whose rest is measured; 0 for all.")]


@contextmanager
def _reading() -> Iterator[Any]:
    """Show how many events have been read, where there is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    with Progress(
        SpinnerColumn(),
        TextColumn("reading  {task.completed:,.0f} events"),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("reading", total=None)
        yield lambda n: bar.update(task, completed=n)


def _read(path: str, context: typer.Context) -> EventLog:
    """Read the log as the options of the command say, and say what was put right."""
    from regard.journeys.reading import ReadingOptions, read_log

    given = context.params
    options = ReadingOptions(
        case=given.get("case_column"),
        activity=given.get("activity_column"),
        time=given.get("time_column"),
        time_format=given.get("time_format"),
        separator=given.get("separator"),
        encoding=given.get("encoding") or "utf-8",
        ignore=tuple(given.get("ignore") or ()),
        numbers=tuple(given.get("number") or ()),
        categories=tuple(given.get("category") or ()),
        keep_duplicates=bool(given.get("keep_duplicates")),
    )
    with _reading() as progress:
        log = read_log(path, options, progress=progress)
    for note in log.notes:
        _say(f"note: {note}")
    _say(
        f"{log.n_cases:,} cases, {log.n_events:,} events, {len(log.activities):,} activities, "
        f"{len(log.attributes)} further columns; {log.n_bytes / 2**20:.1f} MiB"
    )
    return log


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _config(context: typer.Context) -> JourneyConfig:
    from regard.cli.common import nested
    from regard.config import merge
    from regard.journeys.settings import make_journey_config

    given = context.params
    training = {name: given.get(name) for name in ("minutes", "seed", "threads", "device")}
    model = {"encoder": given.get("encoder")}
    chosen = {
        "training": {name: value for name, value in training.items() if value is not None},
        "model": {name: value for name, value in model.items() if value is not None},
    }
    return make_journey_config(merge(chosen, nested(given.get("set_") or ())))


def _train(log: EventLog, context: typer.Context, name: str) -> JourneyModel:
    from regard.cli.common import command_line
    from regard.cli.progress import TrainingDisplay
    from regard.journeys.api import train_journeys

    with TrainingDisplay() as display:
        return train_journeys(
            log,
            config=_config(context),
            outcomes=context.params.get("outcome") or (),
            listeners=[display],
            command=command_line(),
            data={"name": name},
        )


def _check_free(folder: Path, force: bool, what: str) -> None:
    from regard.errors import ConfigError

    if folder.is_file():
        raise ConfigError(f"{folder}: this is a file; pass a folder to -o")
    if (folder / what).exists() and not force:
        raise ConfigError(f"{folder}: there is one already; pass --force to replace it, or another -o")


def _check_split(split: str) -> str:
    from regard.errors import ConfigError

    if split not in ("time", "file"):
        raise ConfigError(f"--split {split!r}: expected time or file")
    return split


@app.command("train")
def train(
    context: typer.Context,
    log: Log,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model folder to make.")],
    outcome: Outcomes = None,
    encoder: Encoder = None,
    minutes: Minutes = None,
    seed: Seed = None,
    set_: Set = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the model that is in the folder.")] = False,
    case_column: Case = None,
    activity_column: Activity = None,
    time_column: Time = None,
    time_format: TimeFormat = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    ignore: Ignore = None,
    number: Number = None,
    category: Category = None,
    keep_duplicates: KeepDuplicates = False,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Train a model on all cases of a log: what comes next, the rest of the journey, and outcomes."""
    _check_free(output, force, "config.json")
    _config(context)
    model = _train(_read(log, context), context, log)
    model.save(output)
    _say(f"the model is in {output}")


@app.command("evaluate")
def evaluate(
    context: typer.Context,
    log: Log,
    model: Annotated[
        Path | None,
        typer.Option(
            help="A model folder, measured on all of LOG; without it one is trained on a part of LOG."
        ),
    ] = None,
    split: Split = "time",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all measures as JSON.")] = None,
    draws: Draws = 24,
    max_rests: MaxRests = 0,
    outcome: Outcomes = None,
    encoder: Encoder = None,
    minutes: Minutes = None,
    seed: Seed = None,
    set_: Set = None,
    case_column: Case = None,
    activity_column: Activity = None,
    time_column: Time = None,
    time_format: TimeFormat = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    ignore: Ignore = None,
    number: Number = None,
    category: Category = None,
    keep_duplicates: KeepDuplicates = False,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Measure how well journeys are foretold, beside simple baselines.

    Counted as published (Tax et al. 2017) and honestly, where the end of a journey is an answer too.
    """
    import json

    from regard.atomic import write_text
    from regard.journeys.api import split_cases
    from regard.journeys.baselines import baselines_of
    from regard.journeys.evaluation import evaluate_journeys
    from regard.journeys.log import take_cases
    from regard.journeys.model import load_journey_model

    _check_split(split)
    read = _read(log, context)
    baselines = []
    if model is None:
        learnt, tested = (take_cases(read, cases) for cases in split_cases(read, split))
        made = _train(learnt, context, log)
        baselines = baselines_of(made.encode(learnt))
    else:
        made, tested = load_journey_model(model, device=device), read
    found = evaluate_journeys(
        made, made.encode(tested), baselines, max_rests=max_rests, n_draws=draws, progress=_say
    )
    _print_measures(found)
    if json_file is not None:
        write_text(json_file, json.dumps(found.to_record(), indent=1) + "\n")


def _print_measures(found: Any) -> None:
    from rich.table import Table

    from regard.cli.common import console
    from regard.journeys.evaluation import EXPLAINED

    out = console()
    table = Table(
        "",
        "next, honestly",
        "next, as published",
        "rest, honestly",
        "rest, as published",
        "rest, known to go on",
    )
    for name, m in found.measures.items():
        values = (m.next_honest, m.next_published, m.rest_honest, m.rest_published, m.rest_goes_on)
        table.add_row(name, *(f"{value:.4f}" for value in values))
    out.print(table, markup=False)
    print(EXPLAINED)
    for measured in found.outcomes:
        print(
            f"{measured.label}: {measured.n:,} prefixes, {100 * measured.share:.1f} % have it, AUC {measured.auc:.3f}, "
            f"Brier {measured.brier:.3f}, calibration error {measured.calibration_error:.3f}"
        )
    lengths = Table("events known", "prefixes", "next, honestly", "rest, honestly")
    for first, last, n, right, alike in found.by_length:
        lengths.add_row(
            f"{first}-{last}" if last > first else str(first), f"{n:,}", f"{right:.3f}", f"{alike:.3f}"
        )
    out.print(lengths, markup=False)


@app.command("predict")
def predict(
    context: typer.Context,
    model: Model,
    log: Log,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A CSV file to write; standard output if not given.")
    ] = None,
    draws: Draws = 24,
    case_column: Case = None,
    activity_column: Activity = None,
    time_column: Time = None,
    time_format: TimeFormat = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    keep_duplicates: KeepDuplicates = False,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Foretell each case of a log of journeys that go on: a CSV row with the next activity, the rest, the outcomes."""
    from regard.atomic import write_text
    from regard.device import set_threads
    from regard.journeys.model import load_journey_model
    from regard.journeys.tables import predictions_csv

    set_threads(threads)
    loaded = load_journey_model(model, device=device)
    text = predictions_csv(loaded, _read(log, context), n_draws=draws)
    if output is None:
        sys.stdout.write(text)
    else:
        write_text(output, text)


@app.command("explain")
def explain(
    context: typer.Context,
    model: Model,
    log: Log,
    which: Annotated[
        str | None, typer.Option("--id", help="Explain this case; without it the whole log is explained.")
    ] = None,
    events: Annotated[
        int | None, typer.Option(min=1, help="With --id: only so many first events are known.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A folder for a page; CSV files too for a log.")
    ] = None,
    case_column: Case = None,
    activity_column: Activity = None,
    time_column: Time = None,
    time_format: TimeFormat = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    keep_duplicates: KeepDuplicates = False,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Say why: the events that mattered for one case, or what leads to the outcomes over a whole log."""
    from regard.device import set_threads
    from regard.journeys.model import load_journey_model

    set_threads(threads)
    loaded = load_journey_model(model, device=device)
    read = _read(log, context)
    if which is not None:
        _explain_one(loaded, read, which, events, output)
    else:
        _explain_all(loaded, read, output, log)


def _explain_one(
    model: JourneyModel, log: EventLog, which: str, size: int | None, output: Path | None
) -> None:
    from regard.atomic import write_text
    from regard.errors import DataError, did_you_mean
    from regard.journeys.explanation import explain_case
    from regard.journeys.report import case_page
    from regard.journeys.tables import case_text

    if which not in log.case_ids:
        raise DataError(f"--id {which!r}: there is no such case{did_you_mean(which, log.case_ids[:2000])}")
    story = explain_case(model, log, log.case_ids.index(which), size=size)
    print(case_text(story))
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        write_text(output / "case.html", case_page(story))
        _say(f"the page is {output / 'case.html'}")


def _explain_all(model: JourneyModel, log: EventLog, output: Path | None, name: str) -> None:
    from regard.journeys.evaluation import evaluate_journeys
    from regard.journeys.explanation import explain_log
    from regard.journeys.report import ReportFacts, write_report
    from regard.journeys.tables import causes_text

    story = explain_log(model, log)
    print(causes_text(story))
    if output is not None:
        measured = evaluate_journeys(model, model.encode(log), max_rests=2000)
        n_train = int(model.facts.data.get("n_cases", 0))
        facts = ReportFacts(
            f"Journeys: {Path(name).name}", log, n_train, "all cases of this log, which should not be those of the training",
            measured, story,
        )  # fmt: skip
        _say(f"the report is {write_report(facts, output)}")


@app.command("report")
def report(
    context: typer.Context,
    log: Log,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to make: report, CSV files, model.")
    ],
    outcome: Outcomes = None,
    split: Split = "time",
    encoder: Encoder = None,
    minutes: Minutes = None,
    seed: Seed = None,
    set_: Set = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the report that is in the folder.")] = False,
    max_rests: MaxRests = 2000,
    case_column: Case = None,
    activity_column: Activity = None,
    time_column: Time = None,
    time_format: TimeFormat = None,
    separator: Separator = None,
    encoding: Encoding = "utf-8",
    ignore: Ignore = None,
    number: Number = None,
    category: Category = None,
    keep_duplicates: KeepDuplicates = False,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """From a log to a report in one command: train on the older cases, measure and explain on the newer ones."""
    _check_split(split)
    _check_free(output, force, "report.html")
    _config(context)
    _report(_read(log, context), context, output, name=Path(log).name)


def _report(log: EventLog, context: typer.Context, output: Path, *, name: str) -> JourneyModel:
    from regard.journeys.api import split_cases
    from regard.journeys.baselines import baselines_of
    from regard.journeys.evaluation import evaluate_journeys
    from regard.journeys.explanation import explain_case, explain_log
    from regard.journeys.log import take_cases
    from regard.journeys.outcomes import suggest_outcomes
    from regard.journeys.report import ReportFacts, write_report

    split = context.params.get("split") or "time"
    learnt, tested = (take_cases(log, cases) for cases in split_cases(log, split))
    if not context.params.get("outcome"):
        context.params["outcome"] = suggest_outcomes(learnt)
        _say(f"outcomes: {', '.join(context.params['outcome']) or 'none'} (choose them with --outcome)")
    model = _train(learnt, context, name)
    model.save(output / "model")
    baselines = baselines_of(model.encode(learnt))
    most = context.params.get("max_rests", 2000)
    measured = evaluate_journeys(model, model.encode(tested), baselines, max_rests=most, progress=_say)
    story = explain_log(model, tested)
    cases = [
        explain_case(model, tested, tested.case_ids.index(unsure.case), size=unsure.n_events)
        for unsure in story.unsure[:2]
    ]
    words = "those that began after all others had ended" if split == "time" else "the last third of the file"
    facts = ReportFacts(f"Journeys: {name}", log, learnt.n_cases, words, measured, story, cases)
    path = write_report(facts, output)
    _print_measures(measured)
    _say(f"the report is {path}")
    return model


@app.command("demo")
def demo(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to make.")] = Path(
        "demo-journeys"
    ),
    cases: Annotated[int, typer.Option(min=300, help="Cases of the made-up log.")] = 3000,
    minutes: Minutes = 1.0,
    seed: Seed = 1,
    set_: Set = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is in the folder.")] = False,
    threads: Threads = 0,
) -> None:
    """Make a bank's loan log with three planted causes, learn it, and see whether the report finds them."""
    from regard.atomic import write_text
    from regard.journeys.explanation import explain_log
    from regard.journeys.log import take_cases
    from regard.journeys.synthetic import PLANTED, loan_log, log_to_csv

    _check_free(output, force, "report.html")
    log = loan_log(cases, seed=seed or 1)
    output.mkdir(parents=True, exist_ok=True)
    write_text(output / "loans.csv", log_to_csv(log))
    context.params["outcome"] = list(PLANTED)
    context.params["split"] = "file"
    model = _report(log, context, output, name="a made-up bank's loans")
    story = explain_log(model, take_cases(log, range(round(cases * 2 / 3), cases)))
    for outcome, planted in PLANTED.items():
        found = story.causes[outcome][0]
        mark = "found" if found.name == planted and found.confident else f"NOT found, first is {found.name}"
        print(f"{outcome}: planted cause {planted!r}: {mark}")
    print(f"\nthe same with your own log:  regard journeys report {output / 'loans.csv'} -o report/")
