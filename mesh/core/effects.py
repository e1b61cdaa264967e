"""All that a core can ask of the world: a small closed set of values.

A core never calls out. It returns these, in order, and a driver carries them out in that order;
a `Persist` is complete, on disk, before anything after it leaves the process. Match on them with
`typing.assert_never`, so that a new effect cannot be forgotten by a driver.

Bytes only: the driver neither knows nor needs the messages inside.

Source: ordered outputs with 'persist, then send' follow etcd's raft `Ready`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mesh.core.address import Address
from mesh.core.events import Event
from mesh.core.ids import MeshId
from mesh.core.known import KnownMember
from mesh.core.letter import Letter
from mesh.core.stored import StoredRecord


@dataclass(frozen=True, slots=True)
class SendDatagram:
    """Send `data` to `to` by UDP; it may be lost. At most 1,400 bytes."""

    to: Address
    data: bytes


@dataclass(frozen=True, slots=True)
class StartExchange:
    """Send one request on a stream and bring back one reply.

    The driver answers with `handle_exchange(now, exchange_id, reply)`, exactly once: the reply's
    bytes, or after `timeout_s` or any failure a `TransportError`.
    """

    exchange_id: int
    to: Address
    data: bytes
    timeout_s: float


@dataclass(frozen=True, slots=True)
class OpenLifeline:
    """Open a stream of its own, send one request on it, and keep it: nothing more is ever sent from here.

    The driver answers with `handle_line`: `LineKept` when the request was answered, and once `LineLost`
    when the stream could not be opened, was not answered in time, or ended.
    """

    lifeline_id: int
    to: Address
    data: bytes


@dataclass(frozen=True, slots=True)
class CloseLifeline:
    """Close a lifeline that this node opened; nothing more is reported of it."""

    lifeline_id: int


@dataclass(frozen=True, slots=True)
class KeepOpen:
    """Keep the stream that the request just answered came on, for `source`; its end is reported by `HungUp`."""

    source: Address


@dataclass(frozen=True, slots=True)
class TryLine:
    """Send an empty frame on a stream that was kept: where its other end is gone, that ends it, and `HungUp` says so."""

    source: Address


@dataclass(frozen=True, slots=True)
class HangUp:
    """Close a stream that was kept; nothing more is reported of it."""

    source: Address


LineEffect: TypeAlias = OpenLifeline | CloseLifeline | KeepOpen | TryLine | HangUp
"""What a node wants of streams that are kept; `mesh.core.lines` has what it hears of them."""


@dataclass(frozen=True, slots=True)
class Resolve:
    """Find the numeric addresses of a seed as the user wrote it (``host:port``).

    The driver answers with `handle_resolved(now, seed, addresses)`; no addresses: not found.
    """

    seed: str


@dataclass(frozen=True, slots=True)
class Persist:
    """Store these numbers durably before any later effect of this list, or of a later one, is carried out."""

    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Commit:
    """Store all of this in one commit, durably, while the node goes on.

    The driver answers with `handle_committed(now, number)` when it is done; commits end in the order in which they
    came, and only the last of several may be reported. What depends on it the node holds back itself. A driver
    that cannot store it ends the node. `numbers` are apart from those of `Persist`, and never go down.
    """

    number: int
    records: tuple[StoredRecord, ...] = ()
    numbers: Mapping[str, int] = field(default_factory=dict)
    forget: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep these members of a mesh for the node's next session, in place of those kept before.

    Not awaited, and nothing depends on it: a snapshot that is lost costs a restarted node addresses to ask.
    """

    mesh_id: MeshId
    members: tuple[KnownMember, ...]


@dataclass(frozen=True, slots=True)
class Emit:
    """Publish an event. The driver stamps it with the time."""

    event: Event


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of a command: JSON-ready data, or an error's text (then `result` is None)."""

    command_id: int
    result: Any
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StartProcess:
    """Start a command in its own process group. `run_id` names it until its exit is reported.

    The driver answers with any number of `handle_output` and then exactly one `handle_exit`. After
    each `handle_output` it reads no more from that stream of that run until `ReadOutput`.
    """

    run_id: int
    argv: tuple[str, ...]
    env: Mapping[str, str]  # added to the node's own environment
    cwd: str


@dataclass(frozen=True, slots=True)
class ReadOutput:
    """Go on reading stream 1 (stdout) or 2 (stderr) of a run."""

    run_id: int
    stream: int


@dataclass(frozen=True, slots=True)
class StopProcess:
    """End a run's whole process group: SIGTERM, then SIGKILL after `grace_s` (0: SIGKILL at once)."""

    run_id: int
    grace_s: float


@dataclass(frozen=True, slots=True)
class GuardProcess:
    """Freeze a run at `freeze_at` and kill it at `kill_at`, unless these are moved before; a run that was frozen goes on when they are.

    Comes before `StartProcess` of its run, and again whenever its lease was renewed; it holds from the start on,
    and though the node be stopped, where somebody else stands guard. The node freezes and thaws as well: on a
    host without a guardian that is all there is. Seconds of this node's own clock.
    """

    run_id: int
    freeze_at: float
    kill_at: float


@dataclass(frozen=True, slots=True)
class FreezeProcess:
    """Stop a run's every process where it stands, at once; it may be thawed."""

    run_id: int


@dataclass(frozen=True, slots=True)
class ThawProcess:
    """Let a frozen run go on."""

    run_id: int


@dataclass(frozen=True, slots=True)
class WriteObituary:
    """Have these sent once this node has ended and nothing that it started runs any more; none: nothing is sent.

    In place of those written before. They are proof: so a host without a guardian, which could not tell that
    nothing runs any more, sends none.
    """

    letters: tuple[Letter, ...]


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A task that this node keeps changed its state or has new output: wake who watches it."""

    task_id: str


@dataclass(frozen=True, slots=True)
class Stop:
    """The node is done: carry out nothing after this, stop with `exit_code` and say `reason`."""

    exit_code: int
    reason: str


ProcessEffect: TypeAlias = (
    StartProcess | ReadOutput | StopProcess | GuardProcess | FreezeProcess | ThawProcess
)
"""What is asked of whoever runs processes."""

Effect: TypeAlias = (
    SendDatagram
    | StartExchange
    | LineEffect
    | Resolve
    | Persist
    | Commit
    | Remember
    | Emit
    | Answer
    | ProcessEffect
    | WriteObituary
    | TaskChanged
    | Stop
)
