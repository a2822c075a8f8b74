"""Runs a program and says what the whole process cost, from its start to its end."""

from __future__ import annotations

import os
import signal
import time
from typing import NamedTuple

from tools.benchmarks.tables import median, ratio


class Program(NamedTuple):
    """What is started: the command with a full path, its whole environment, and the file it reads."""

    command: list[str]
    environ: dict[str, str]
    standard_input: str = os.devnull


class Run(NamedTuple):
    """What a run cost, and what it wrote."""

    wall_ms: float
    cpu_ms: float
    output: bytes


class Started:
    """A process that runs. What it writes must fit into a pipe, since it is read at the end."""

    def __init__(self, program: Program) -> None:
        self._reader, writer = os.pipe()
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, program.standard_input, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, writer, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        try:
            self.began_at = time.perf_counter()
            self._pid = os.posix_spawn(program.command[0], program.command, program.environ, file_actions=actions)
        except BaseException:
            os.close(self._reader)
            raise
        finally:
            os.close(writer)

    def wait(self) -> Run:
        """Wait for the end."""
        _, _, used = os.wait4(self._pid, 0)
        return self._collect(time.perf_counter(), used.ru_utime + used.ru_stime)

    def poll(self) -> Run | None:
        """Return the run if it has ended."""
        pid, _, used = os.wait4(self._pid, os.WNOHANG)
        return self._collect(time.perf_counter(), used.ru_utime + used.ru_stime) if pid else None

    def end(self) -> None:
        """Kill it."""
        os.kill(self._pid, signal.SIGKILL)
        self.wait()

    def _collect(self, ended_at: float, cpu_seconds: float) -> Run:
        with open(self._reader, "rb") as pipe:
            output = pipe.read()
        return Run((ended_at - self.began_at) * 1000, cpu_seconds * 1000, output)


def run(program: Program) -> Run:
    """Run a program to its end."""
    return Started(program).wait()


def run_at_once(programs: list[Program]) -> list[Run]:
    """Start all programs and wait for all of them; each is timed from its own start to its own end."""
    waiting = [Started(program) for program in programs]
    runs = []
    while waiting:
        # Whichever ends next: asking one after the other would time those that end early too long.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
        for started in waiting[:]:
            ended = started.poll()
            if ended:
                runs.append(ended)
                waiting.remove(started)
    return runs


def compared(costs: list[list[Run]]) -> list[dict[str, float | None]]:
    """Return the medians of each list of runs, and their ratios to those of the first list."""
    rows: list[dict[str, float | None]] = []
    for runs in costs:
        row: dict[str, float | None] = {
            "wall_ms": median(run.wall_ms for run in runs),
            "cpu_ms": median(run.cpu_ms for run in runs),
        }
        first = rows[0] if rows else row
        row["wall_ratio"] = ratio(row["wall_ms"], first["wall_ms"])
        row["cpu_ratio"] = ratio(row["cpu_ms"], first["cpu_ms"])
        rows.append(row)
    return rows
