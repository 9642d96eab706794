"""Doing the runs of a plan, one after the other or several at once; finished ones are not repeated."""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.compare.events import CompareListener, RunBegan, RunEnded, RunFailed, RunTold
from regard.compare.perform import RunResult, find_result, perform
from regard.compare.plan import Plan, Run
from regard.compare.worker import describe, event_of
from regard.errors import TrainingError
from regard.training.events import Event
from regard.training.signals import StopSignal

__all__ = ["run_plan"]

_WAIT_SECONDS = 0.2


def run_plan(
    plan: Plan, *, parallel: int = 1, listeners: Sequence[CompareListener] = (), command: str = ""
) -> dict[str, RunResult]:
    """Do all runs of a plan that have no result yet.

    Args:
        plan: The runs.
        parallel: How many are done at once, each in a process of its own if more than one.
        listeners: Told of each event.
        command: For the model cards.

    Returns:
        Results by the runs' names; a run whose training failed has none.

    Raises:
        StopSignal: SIGINT or SIGTERM came; trainings have saved their state, finished runs their results.
    """

    def tell(event: Any) -> None:
        for listener in listeners:
            listener(event)

    results: dict[str, RunResult] = {}
    waiting: list[Run] = []
    evaluation_key = plan.evaluation.key(plan.data)
    for run in plan.runs:
        found = find_result(plan.run_folder(run), key=run.key, evaluation_key=evaluation_key)
        if found is None:
            waiting.append(run)
        else:
            results[run.name] = found
            tell(RunEnded(run, found, found=True))
    (plan.folder / "runs").mkdir(parents=True, exist_ok=True)
    if parallel == 1:
        _in_turn(plan, waiting, results, tell, command)
    else:
        _Crew(plan, waiting, results, tell, command).work(parallel)
    return results


def _in_turn(plan: Plan, runs: Sequence[Run], results: dict[str, RunResult], tell: Any, command: str) -> None:
    """Do runs one after the other in this process."""
    for run in runs:
        tell(RunBegan(run))

        def pass_on(event: Event, run: Run = run) -> None:
            tell(RunTold(run, event))

        try:
            result = perform(
                run,
                plan.data,
                plan.evaluation,
                folder=plan.run_folder(run),
                listeners=[pass_on],
                command=command,
            )
        except TrainingError as error:
            tell(RunFailed(run, str(error)))
            continue
        results[run.name] = result
        tell(RunEnded(run, result))


@dataclass(frozen=True)
class _Said:
    """What a worker said: a record, or its exit code at the end."""

    run: Run
    record: dict[str, Any] | None = None
    code: int | None = None
    errors: str = ""


class _Crew:
    """Workers, each with a thread that reads what it says; the main thread tells it on."""

    def __init__(
        self, plan: Plan, waiting: Sequence[Run], results: dict[str, RunResult], tell: Any, command: str
    ) -> None:
        self.plan, self.waiting, self.results = plan, list(waiting), results
        self.tell, self.command = tell, command
        self.workers: dict[str, subprocess.Popen[str]] = {}
        self.failures: dict[str, str] = {}
        self.said: queue.Queue[_Said] = queue.Queue()

    def work(self, parallel: int) -> None:
        """Keep so many workers busy until all runs are done."""
        try:
            with StopSignal.watch() as stop:
                while self.waiting or self.workers:
                    while self.waiting and len(self.workers) < parallel and not stop.received:
                        self._start(self.waiting.pop(0))
                    self._listen()
                    if stop.received:
                        self._stop()
                        raise StopSignal(stop.received, 0)
        finally:
            for worker in self.workers.values():
                worker.kill()

    def _start(self, run: Run) -> None:
        # In a session of its own a worker gets no Ctrl-C from the terminal, only what is passed on to it.
        worker = subprocess.Popen(
            [sys.executable, "-m", "regard.compare.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        self.workers[run.name] = worker
        self.tell(RunBegan(run))
        threading.Thread(target=self._follow, args=(run, worker), daemon=True).start()

    def _follow(self, run: Run, worker: subprocess.Popen[str]) -> None:
        """Describe the run to its worker, then pass on each line until it ends (in a thread)."""
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stderr is not None
        plan, errors = self.plan, [""]
        reader = threading.Thread(target=lambda: errors.append(worker.stderr.read()), daemon=True)  # type: ignore[union-attr]
        reader.start()
        folder = plan.run_folder(run)
        # Should it have ended already, its exit code says so.
        with contextlib.suppress(BrokenPipeError), worker.stdin:
            worker.stdin.write(describe(run, plan.data, plan.evaluation, folder=folder, command=self.command))
        with worker.stdout:
            for line in worker.stdout:
                with contextlib.suppress(ValueError):  # a library has printed something
                    self.said.put(_Said(run, record=json.loads(line)))
        code = worker.wait()
        reader.join()
        worker.stderr.close()
        self.said.put(_Said(run, code=code, errors=errors[-1]))

    def _listen(self) -> None:
        """Take in one thing that was said, if anything is within a moment."""
        try:
            said = self.said.get(timeout=_WAIT_SECONDS)
        except queue.Empty:
            return
        run = said.run
        if said.record is not None:
            if said.record["event"] == "failed":
                self.failures[run.name] = str(said.record["reason"])
            else:
                self.tell(RunTold(run, event_of(said.record)))
            return
        del self.workers[run.name]
        plan = self.plan
        result = find_result(plan.run_folder(run), key=run.key, evaluation_key=plan.evaluation.key(plan.data))
        if said.code == 0 and result is not None:
            self.results[run.name] = result
            self.tell(RunEnded(run, result))
            return
        last_line = (said.errors.strip().splitlines() or [f"exit code {said.code}"])[-1]
        self.tell(RunFailed(run, self.failures.get(run.name, last_line)))

    def _stop(self) -> None:
        """Have all workers save their state, and wait for them."""
        for worker in self.workers.values():
            worker.send_signal(signal.SIGINT)
        for worker in list(self.workers.values()):
            worker.wait()
        self.workers.clear()
