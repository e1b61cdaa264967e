"""What a driver reports of the processes that it started for `StartProcess`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class ProcessOutput:
    """A piece of a run's output: 1 to 65,536 bytes. The driver reads on after `ReadOutput`."""

    run_id: int
    stream: int  # 1 stdout, 2 stderr
    data: bytes


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """A run has ended and all its output was delivered. Comes exactly once for each `StartProcess`.

    `exit_code` is the shell's: 0 to 255, 128 + signal, 127 (no such command), 126 (cannot be run).
    `error` is a sentence when the command did not start, else "". `is_host_fault`: it did not start
    for want of something that this host has too little of just now (descriptors, processes, memory);
    that says nothing of the command, which another host may well start.
    """

    run_id: int
    exit_code: int
    error: str = ""
    is_host_fault: bool = False


ProcessEvent: TypeAlias = ProcessOutput | ProcessExit
