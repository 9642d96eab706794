"""One run: train, decode the test sources, compare, and write ``result.json`` beside the model."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from regard.atomic import write_text
from regard.compare.data import ComparisonData
from regard.compare.plan import Evaluation, Run
from regard.device import set_threads
from regard.errors import ModelFolderError
from regard.evaluate.metrics import Metric, TokenAccuracy, make_metrics
from regard.evaluate.report import evaluate_outputs
from regard.folder import load_facts, load_model, load_settings, load_tokenizers, read_history
from regard.seq2seq import Seq2Seq
from regard.training.checkpoint import load_checkpoint
from regard.training.events import Listener
from regard.training.run import TrainingData, run_training

__all__ = ["RESULT", "RunResult", "find_result", "perform"]

RESULT = "result.json"

_MOST_LOSSES = 100
"""Points of the training loss that are kept of a run."""


class RunResult(BaseModel):
    """What came of a run; kept as ``result.json`` in its folder."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["regard-run"] = "regard-run"
    version: Literal[1] = 1
    key: str
    """Digest of settings and training data."""
    evaluation_key: str
    """Digest of how it was judged, and on what."""
    variant: str
    seed: int
    hidden_size: int
    n_parameters: int
    training: dict[str, Any]
    """Updates, seconds, best values, device, precision."""
    tokens_per_second: float
    """Target tokens for each second of training, validations left out."""
    decoded_per_second: float
    """Target tokens for each second of decoding."""
    report: dict[str, Any]
    """Each metric over all test pairs and by source length, with 95 % bootstrap intervals."""
    curve: list[dict[str, Any]]
    """Values on the dev pairs during the training, with seconds and updates."""
    losses: list[dict[str, Any]]
    """The loss on training batches, likewise, as the mean of some reports each."""


def find_result(folder: Path, *, key: str, evaluation_key: str) -> RunResult | None:
    """Return the result in a run's folder, if it is of these settings, data and ways to judge."""
    try:
        result = RunResult.model_validate_json((folder / RESULT).read_bytes())
    except (OSError, ValidationError):
        return None
    return result if (result.key, result.evaluation_key) == (key, evaluation_key) else None


def perform(
    run: Run,
    data: ComparisonData,
    evaluation: Evaluation,
    *,
    folder: Path,
    listeners: Sequence[Listener] = (),
    command: str = "",
) -> RunResult:
    """Do a run, or what is left to do of it, and write its result.

    A training that was stopped goes on where it was; one that is done is only judged.

    Args:
        run: Settings and seed.
        data: What to train and to judge on.
        evaluation: How to judge.
        folder: The model folder.
        listeners: Told of the training's events.
        command: For the model card.

    Raises:
        TrainingError: The loss is not finite.
        StopSignal: The training was asked to stop, and has saved its state.
    """
    set_threads(run.config.training.threads)
    model = _trained(run, folder)
    if model is None:
        model = run_training(
            TrainingData(data.name, data.train, data.dev),
            config=run.config,
            folder=folder,
            resume=_can_go_on(folder),
            force=True,
            listeners=listeners,
            command=command,
        )
    result = _judge(model, run, data, evaluation, folder)
    write_text(folder / RESULT, result.model_dump_json(indent=1) + "\n")
    return result


def _trained(run: Run, folder: Path) -> Seq2Seq | None:
    """The model of a training that came to its end, if there is one."""
    try:
        if not load_facts(folder).training:
            return None
        return load_model(folder, device=run.config.training.device)
    except ModelFolderError:
        return None


def _can_go_on(folder: Path) -> bool:
    """Whether a training was stopped here and left all that it needs; if not, it begins anew."""
    try:
        load_settings(folder)
        load_facts(folder)
        load_tokenizers(folder)
        return load_checkpoint(folder / "checkpoint") is not None
    except ModelFolderError:
        return False


def _metrics(names: Sequence[str], model: Seq2Seq, references: Sequence[str]) -> list[Metric]:
    """The metrics by name; tokens are those of the model's target side."""
    tokenizer = model.target_tokenizer
    made = make_metrics(names, symbol_target=tokenizer.kind == "space", references=references)
    return [TokenAccuracy(tokenizer.tokens) if isinstance(m, TokenAccuracy) else m for m in made]


def _judge(model: Seq2Seq, run: Run, data: ComparisonData, evaluation: Evaluation, folder: Path) -> RunResult:
    references = [target for _, target in data.test]
    began = time.perf_counter()
    predictions = model.predict([source for source, _ in data.test], beam=evaluation.beam, nbest=1)
    seconds = time.perf_counter() - began
    report = evaluate_outputs(
        data.test_lens,
        [prediction.text for prediction in predictions],
        references,
        metrics=_metrics(evaluation.metrics, model, references),
        edges=evaluation.edges,
    )
    history = read_history(folder)
    speeds = [record["tokens_per_second"] for record in history if record["event"] == "progress"]
    return RunResult(
        key=run.key,
        evaluation_key=evaluation.key(data),
        variant=run.variant,
        seed=run.seed,
        hidden_size=run.hidden_size,
        n_parameters=model.model.n_parameters,
        training=model.facts.training,
        tokens_per_second=float(str(speeds[-1])) if speeds else 0.0,
        decoded_per_second=sum(len(prediction.target_tokens) for prediction in predictions) / seconds,
        report=json.loads(report.to_json()),
        curve=_curve(history),
        losses=_losses(history),
    )


def _curve(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Validations in the order of updates; where a resumed training repeats one, the later counts."""
    by_step = {record["step"]: record for record in history if record["event"] == "validated"}
    return [
        {"step": step, "seconds": round(record["elapsed"], 2), "values": record["values"]}
        for step, record in sorted(by_step.items())
    ]


def _losses(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The training loss at moments evenly apart, each the mean of the reports since the one before."""
    reports = [record for record in history if record["event"] == "progress" and record["loss"] is not None]
    reports.sort(key=lambda record: record["step"])
    n_bins = min(_MOST_LOSSES, len(reports))
    made = []
    for number in range(n_bins):
        some = reports[number * len(reports) // n_bins : (number + 1) * len(reports) // n_bins]
        mean = sum(record["loss"] for record in some) / len(some)
        point = {"step": some[-1]["step"], "seconds": round(some[-1]["elapsed"], 2)}
        made.append({**point, "values": {"loss": round(mean, 5)}})
    return made
