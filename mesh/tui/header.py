"""The lines at the top: which mesh and node this is, how both are, and what was in the last minutes.

    mesh 3f9a2c1b  node n1  127.0.0.1:7946                up 2h14m  v0.1.0
    ● 5 alive  ◐ 0 suspect  ✗ 1 dead     ▲ busiest n4 3/4 slots load 84%  healthy
    ↑ 2.1 ▁▂▃▂  ↓ 2.8 packets/s ▂▂▃▂  ✓ 3.4 tasks/s ▁▅▇  load 20% ▁▁▂

On a high screen each sparkline becomes a graph of three lines under its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment

from mesh.core.load import format_load
from mesh.core.time import format_duration
from mesh.tui.board import Board
from mesh.tui.cells import Line, fit, fit_line, fit_middle, line_width, spread
from mesh.tui.graphs import GRAPH_LINES, graph_lines, spark_line
from mesh.tui.palette import (
    BANNER,
    BOLD,
    BUSIEST,
    DIM,
    HEALTH_MAX,
    HEALTH_OVERLOADED,
    MEMBER_MARKS,
    RED,
    TITLE,
    YELLOW,
    health_style,
)
from mesh.tui.rows import NodeRow

_SPARKS_HEIGHT: Final = 20
_GRAPHS_HEIGHT: Final = 40
_ROOMY: Final = 110


def header_height(height: int) -> int:
    """Return how many lines the header takes on a screen of this height."""
    if height >= _GRAPHS_HEIGHT:
        return 2 + GRAPH_LINES
    return 3 if height >= _SPARKS_HEIGHT else 2


@dataclass(frozen=True, slots=True)
class Header:
    """The head of the screen; `gone_s` is how long the node has not answered, `paused` is said when not ""."""

    board: Board
    gone_s: float = 0.0
    paused: str = ""

    def render(self, width: int, height: int) -> list[Line]:
        """Draw lines of `width` cells for a screen of `height` lines."""
        lines = [self._first(width), self._state(width)]
        if height >= _GRAPHS_HEIGHT:
            return [*lines, *graph_lines(self.board, width)]
        return [*lines, spark_line(self.board, width)] if height >= _SPARKS_HEIGHT else lines

    def _first(self, width: int) -> Line:
        if self.board.gone:
            name = f" {self.board.node.name}" if self.board.node else ""
            text = f" node{name} gone, trying again ({format_duration(self.gone_s)}): {self.board.gone}"
            return [Segment(fit(text, width), BANNER)]
        if self.paused:
            return [Segment(fit(f" {self.paused}", width), BANNER)]
        return self._identity(width)

    def _identity(self, width: int) -> Line:
        node = self.board.node
        if node is None:
            return fit_line(
                [Segment(" mesh", TITLE), Segment("  waiting for the first view", DIM)], width
            )
        left = [
            Segment(" mesh ", TITLE),
            Segment(node.mesh_id or "none yet", BOLD),
            Segment("  node ", DIM),
            Segment(node.name, BOLD),
            Segment(f"  {node.address}"),
        ]
        right = []
        if (said := self._voters(node, has_room=width > _ROOMY)) is not None:
            right.append(said)
        if node.phase != "member":
            right.append(Segment(f"{node.phase}  ", YELLOW))
        if node.since:
            right.append(Segment(f"up {format_duration(self.board.at - node.since)}  ", DIM))
        right.append(Segment(f"v{node.version} " if node.version else "", DIM))
        return spread(left, right, width)

    def _voters(self, node: NodeRow, *, has_room: bool) -> Segment | None:
        """Return what is to be known of the voters, if they are fewer than tasks should rest on."""
        alive, count = node.voters_alive, node.voters
        if alive is not None and count and 2 * alive <= count:
            stands = ": tasks stand still" if has_room else ""
            return Segment(f"{alive} of {count} voters{stands}  ", RED)
        if count == 2:
            return Segment(f"2 voters{': they need each other' * has_room}  ", YELLOW)
        if count == 1 and self.board.member_counts.get("alive", 0) > 1:
            return Segment(f"1 voter{': all tasks rest on it' * has_room}  ", YELLOW)
        return None

    def _state(self, width: int) -> Line:
        counts = self.board.member_counts
        left = [Segment(" ")]
        for state, mark in MEMBER_MARKS.items():
            count = counts.get(state, 0)
            if count or state != "left":
                style = mark.style if count else DIM
                left += [Segment(f"{mark.symbol} {count}", style), Segment(f" {state}  ", DIM)]
        room = width - line_width(left) - 1
        health = self._health()
        choices = [
            self._busiest() + health,
            self._busiest(is_brief=True) + health,
            health,
        ]
        return spread(left, next((line for line in choices if line_width(line) <= room), []), width)

    def _busiest(self, *, is_brief: bool = False) -> Line:
        board = self.board
        member = next(filter(board.is_busiest, board.members), None)
        if member is None:
            tied = board.busiest.tied
            text = f"{tied} equally busy" if tied else "nobody is busy"
            return [Segment(f"{text}  ", DIM)] if board.members else []
        slots = "" if member.used is None else f" {member.used}/{member.slots} slots"
        load = "" if member.load is None or is_brief else f" load {format_load(member.load)}"
        cells = min(cell_len(member.name), 12 if is_brief else 24)
        return [
            Segment(f"{BUSIEST.symbol} busiest ", BUSIEST.style),
            Segment(fit_middle(member.name, cells), BOLD),
            Segment(f"{slots}{load}  ", DIM),
        ]

    def _health(self) -> Line:
        """Say how well this node itself is; the number alone would not say which end is good."""
        health = self.board.node.health if self.board.node else None
        if health is None:
            return []
        style = health_style(health)
        if health <= 0:
            return [Segment("healthy ", style)]
        word = "strained" if health < HEALTH_OVERLOADED else "overloaded"
        return [Segment(f"{word} {min(health, HEALTH_MAX)}/{HEALTH_MAX} ", style)]
