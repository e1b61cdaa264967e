"""What the node and its guardian tell each other, as bytes.

One message is one packet of a SOCK_SEQPACKET pair: the kernel keeps the boundaries, so that a bad
message costs itself and not those behind it, and an end that is gone reads as the end of file. All
numbers are big-endian. A packet is a kind (1 byte) and:

    orders, node to guardian
    RUN       run id u64, leader's pid u32, its start time u64, flags u8, freeze_at f64, kill_at f64
    DEADLINE  run id u64, freeze_at f64, kill_at f64
    DONE      run id u64
    OBITUARY  count u8, then each letter: length u8 (4 or 16), that address, port u16, size u16, what is sent there
    CLEAR     nothing

    answers, guardian to node
    FROZEN, THAWED, KILLED, REFUSED   run id u64
    FORWARDED                         number of a signal u64, just before that is sent
    CLEARED                           killed u32, left u32

Deadlines are seconds of CLOCK_BOOTTIME; infinity is never, 0 is at once. A start time is the 22nd
field of /proc/PID/stat. The flag KEEPS_ORPHANS says that the leader is the subreaper of its own work.
"""

from __future__ import annotations

import struct

TYPE_CHECKING = False  # importing typing would cost more memory than the whole package
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final, Protocol, TypeAlias

    Letter: TypeAlias = tuple[bytes, int, bytes]
    """An address, its port, and what is sent there: sealed for whoever is there, where there is a key."""

    class Orders(Protocol):
        """Who follows the node's orders."""

        def watch(self, run_id: int, leader: Leader, freeze_at: float, kill_at: float) -> None:
            """A run has started."""

        def move(self, run_id: int, freeze_at: float, kill_at: float) -> None:
            """A run's deadlines have moved."""

        def done(self, run_id: int) -> None:
            """A run has ended."""

        def take_obituary(self, letters: list[Letter]) -> None:
            """These are to be sent when the node has ended."""

        def clear(self) -> None:
            """Clear away what the last boot left behind."""


RUN: Final = 1
DEADLINE: Final = 2
DONE: Final = 3
OBITUARY: Final = 4
CLEAR: Final = 5
FROZEN: Final = 16
THAWED: Final = 17
KILLED: Final = 18
REFUSED: Final = 19
CLEARED: Final = 20
FORWARDED: Final = 21

LETTERS_MAX: Final = 64
LETTER_BYTES_MAX: Final = 1472
PACKET_BYTES_MAX: Final = 2 + LETTERS_MAX * (21 + LETTER_BYTES_MAX)
KEEPS_ORPHANS: Final = 1
LEFT_UNKNOWN: Final = 0xFFFFFFFF
"""In CLEARED: nobody could find out whether anything is left."""

FD_VARIABLE: Final = "MESH_GUARDIAN_FD"
ALONE_VARIABLE: Final = "MESH_GUARDIAN_MISSING"
"""In the environment of a node that has to do without a guardian: why."""

MARK_VARIABLE: Final = "MESH_GUARDIAN"
"""In the environment of the node and of all its work: whose work it is, as `pid.start` of the guardian."""

_RUN: Final = struct.Struct("!BQIQBdd")
_DEADLINE: Final = struct.Struct("!BQdd")
_RUN_ID: Final = struct.Struct("!BQ")
_PORT_SIZE: Final = struct.Struct("!HH")
_CLEARED: Final = struct.Struct("!BII")


class Leader:
    """The process that leads a run's process group: its pid, and the start time that proves it is the one."""

    __slots__ = ("keeps_orphans", "pid", "start")

    def __init__(self, pid: int, start: int, *, keeps_orphans: bool = False) -> None:
        self.pid = pid
        self.start = start
        self.keeps_orphans = keeps_orphans


def encode_run(run_id: int, leader: Leader, freeze_at: float, kill_at: float) -> bytes:
    """Return a RUN order."""
    flags = KEEPS_ORPHANS if leader.keeps_orphans else 0
    return _RUN.pack(RUN, run_id, leader.pid, leader.start, flags, freeze_at, kill_at)


def encode_deadline(run_id: int, freeze_at: float, kill_at: float) -> bytes:
    """Return a DEADLINE order."""
    return _DEADLINE.pack(DEADLINE, run_id, freeze_at, kill_at)


def encode_run_id(kind: int, run_id: int) -> bytes:
    """Return a message that names a run and nothing more."""
    return _RUN_ID.pack(kind, run_id)


def encode_obituary(letters: Sequence[Letter]) -> bytes:
    """Return an OBITUARY order. Raises ValueError if it is too large for a guardian to take."""
    longest = max((len(data) for _, _, data in letters), default=0)
    if len(letters) > LETTERS_MAX or longest > LETTER_BYTES_MAX:
        raise ValueError(
            f"an obituary of at most {LETTERS_MAX} letters of {LETTER_BYTES_MAX} bytes is expected, "
            f"found {len(letters)} of up to {longest}"
        )
    parts = [bytes((OBITUARY, len(letters)))]
    for host, port, data in letters:
        parts += (bytes((len(host),)), host, _PORT_SIZE.pack(port, len(data)), data)
    return b"".join(parts)


def encode_cleared(killed: int, left: int) -> bytes:
    """Return a CLEARED answer."""
    return _CLEARED.pack(CLEARED, killed, left)


def deliver(packet: bytes, orders: Orders) -> None:
    """Call what an order asks for. Raises ValueError, with nothing called, if it is none."""
    kind = packet[0] if packet else 0
    try:
        fields = _decode_order(kind, packet)
    except (struct.error, IndexError) as error:
        raise ValueError(f"an order of kind {kind} has another length: {error}") from error
    if kind == RUN:
        orders.watch(*fields)
    elif kind == DEADLINE:
        orders.move(*fields)
    elif kind == DONE:
        orders.done(*fields)
    elif kind == OBITUARY:
        orders.take_obituary(*fields)
    else:
        orders.clear()


def decode_answer(packet: bytes) -> tuple[int, int, int]:
    """Return the kind, the run id (of CLEARED: how many were killed; of FORWARDED: which signal), and how many are left.

    Raises:
        ValueError: the packet is no answer.
    """
    if len(packet) == _CLEARED.size and packet[0] == CLEARED:
        kind, killed, left = _CLEARED.unpack(packet)
        return kind, killed, left
    if len(packet) == _RUN_ID.size and packet[0] in {FROZEN, THAWED, KILLED, REFUSED, FORWARDED}:
        return (*_RUN_ID.unpack(packet), 0)
    raise ValueError(f"an answer of kind 16 to 21 is expected, found {packet[:8]!r}")


def _decode_order(kind: int, packet: bytes) -> tuple[Any, ...]:
    if kind == RUN:
        _, run_id, pid, start, flags, freeze_at, kill_at = _RUN.unpack(packet)
        _check_times(freeze_at, kill_at)
        leader = Leader(pid, start, keeps_orphans=bool(flags & KEEPS_ORPHANS))
        return run_id, leader, freeze_at, kill_at
    if kind == DEADLINE:
        _, run_id, freeze_at, kill_at = _DEADLINE.unpack(packet)
        _check_times(freeze_at, kill_at)
        return run_id, freeze_at, kill_at
    if kind == DONE:
        return (_RUN_ID.unpack(packet)[1],)
    if kind == OBITUARY:
        return (_decode_obituary(packet),)
    if packet == bytes((CLEAR,)):
        return ()
    raise ValueError(f"an order of kind 1 to 5 is expected, found {packet[:8]!r}")


def _check_times(*times: float) -> None:
    if any(time != time for time in times):  # noqa: PLR0124 - only what is no number differs from itself
        raise ValueError("a deadline is expected, found what is no number")


def _decode_obituary(packet: bytes) -> list[Letter]:
    count, at = packet[1], 2
    if count > LETTERS_MAX:
        raise ValueError(f"at most {LETTERS_MAX} letters are expected, found {count}")
    letters = []
    for _ in range(count):
        length = packet[at]
        if length not in {4, 16}:
            raise ValueError(f"an address of 4 or 16 bytes is expected, found {length}")
        host, at = packet[at + 1 : at + 1 + length], at + 1 + length
        port, size = _PORT_SIZE.unpack_from(packet, at)
        at += _PORT_SIZE.size + size
        if size > LETTER_BYTES_MAX or at > len(packet):
            raise ValueError(f"a letter of the {size} bytes that it announces is expected")
        letters.append((host, port, packet[at - size : at]))
    if at != len(packet):
        raise ValueError(f"{count} letters are expected and nothing more")
    return letters
