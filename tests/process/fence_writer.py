"""Writes through one of the guards in examples/fencing, as a task would: by steps, or in a race.

    fence_writer.py GUARD.py PLACE KEY step TOKEN      one write for each line that comes in
    fence_writer.py GUARD.py PLACE KEY race PARITY     takes over and writes, again and again, until it is killed

What is kept is the story of itself: each write adds the mark TOKEN.NUMBER to what its owner began with.
So a write that was acknowledged and then overwritten by one who did not know it is missing at the end.
Said on stdout: `began`, `kept MARK`, `refused`.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import time
from collections.abc import Iterable, Iterator
from types import ModuleType

BASE = 1 << 191
"""Tokens start here: 64 bits, or floating point, would not tell them apart."""

WRITES_MAX = 5
WORK_S_MAX = 0.002
"""Between two writes something is done, so that the other gets its turn."""


def load(program: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("guard", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def mark(token: int, number: int) -> str:
    return f"{token - BASE}.{number}"


def write_all(guard: ModuleType, place: str, key: str, token: int, steps: Iterable[object]) -> None:
    """Begin, then write once a step; raises the guard's Fenced."""
    value = guard.begin(place, key, token)
    print("began", flush=True)
    for number, _ in enumerate(steps):
        value = f"{value} {mark(token, number)}".lstrip()
        guard.write(place, key, token, value)
        print("kept", mark(token, number), flush=True)


def tokens_above(guard: ModuleType, place: str, key: str, parity: int) -> Iterator[int]:
    """Yield tokens that nobody else has, each above what was installed a moment ago."""
    while True:
        yield max(BASE, guard.show(place, key)[0] + 1) // 2 * 2 + 2 + parity


def works() -> Iterator[None]:
    for _ in range(WRITES_MAX):
        time.sleep(random.uniform(0.0, WORK_S_MAX))
        yield


def main() -> int:
    program, place, key, mode, number = sys.argv[1:]
    guard = load(program)
    if mode == "step":
        try:
            write_all(guard, place, key, int(number), sys.stdin)
        except guard.Fenced as refusal:
            print("refused", flush=True)
            print(refusal, file=sys.stderr)
            return int(guard.FENCED)
        return 0
    for token in tokens_above(guard, place, key, int(number)):
        try:
            write_all(guard, place, key, token, works())
        except guard.Fenced:
            print("refused", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
