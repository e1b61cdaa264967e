"""Every schedule of a small world, one after the other, nearest first: what is found is the shortest way to it.

A world is a start, what may happen next in each state, and what must never be. States are numbers: the world
gives equal ones to what it cannot tell apart.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol


class World(Protocol):
    """What is explored."""

    def start(self) -> int: ...
    def after(self, state: int) -> Iterable[int]: ...
    def fault(self, state: int) -> str: ...
    def tell(self, path: list[int]) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Explored:
    """What the search has found."""

    states: int
    transitions: int
    depth: int
    seconds: float
    is_complete: bool
    fault: str
    story: tuple[str, ...]

    def __str__(self) -> str:
        held = "holds" if self.is_complete else "holds so far"
        how = "VIOLATED" if self.fault else held
        counted = f"{self.states} states, {self.transitions} steps, depth {self.depth}"
        lines = [f"{how}: {counted}, {self.seconds:.1f} s"]
        lines += [f"  {number:2}. {step}" for number, step in enumerate(self.story, 1)]
        return "\n".join([*lines, f"   => {self.fault}"] if self.fault else lines)


def explore(world: World, states_max: int = 1 << 24) -> Explored:
    """Visit every state once, nearest first, until one is at fault, none is left or the bound is met."""
    begun = time.process_time()
    first = world.start()
    seen = {first: 0}
    states = [first]
    parents = array("L", [0])
    depth_ends, depth, transitions = 1, 0, 0
    at = 0
    faulty = 0 if world.fault(first) else None
    while faulty is None and at < len(states) and len(states) < states_max:
        if at == depth_ends:
            depth, depth_ends = depth + 1, len(states)
        for state in world.after(states[at]):
            transitions += 1
            if state in seen:
                continue
            seen[state] = len(states)
            states.append(state)
            parents.append(at)
            if world.fault(state):
                faulty = len(states) - 1
                break
        at += 1
    path: list[int] = []
    if faulty is not None:
        place = faulty
        while place:
            path.append(states[place])
            place = parents[place]
        path = [first, *reversed(path)]
    return Explored(
        states=len(states),
        transitions=transitions,
        depth=len(path) - 1 if path else depth,
        seconds=time.process_time() - begun,
        is_complete=at == len(states),
        fault=world.fault(path[-1]) if path else "",
        story=tuple(world.tell(path)) if path else (),
    )
