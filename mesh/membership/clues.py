"""Evidence in words: a sentence for people, and what kind it is of for programs.

One table holds the sentences, one row for each kind; a new kind of evidence is a new row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from mesh.core.events import EvidenceKind as Kind
from mesh.wire.swim_messages import Seen

WORDS: Final[dict[Kind, str]] = {
    Kind.NO_ACK: "no answer to a ping within {0:g} s",
    Kind.NO_INDIRECT_ACK: "no answer through {0}",
    Kind.NO_TCP: "no answer over TCP",
    Kind.LIFELINE_CLOSED: "its lifeline ended",
    Kind.CONNECTION_REFUSED: "its host refuses connections",
    Kind.PORT_UNREACHABLE: "its port refuses datagrams",
    Kind.SUSPECTED: "suspected by {0}",
    Kind.CONFIRMED: "accused by {0}",
    Kind.DECLARED: "declared dead by {0}",
    Kind.LEARNED: "learned from {0}",
    Kind.NO_REFUTATION: "no refutation within {0:.1f} s",
    Kind.OBITUARY: "its guardian says so: nothing of it runs any more",
    Kind.FAREWELL: "said so itself",
    Kind.FORGET_ASKED: "asked for at {0}",
    Kind.NEW_SESSION: "a new process, session {0}",
    Kind.SAME_SESSION: "the same process: it was not dead, or could not be reached",
    Kind.MOVED: "it was at {0} before",
}

SEEN: Final[dict[Seen, Kind]] = {
    Seen.CLOSED: Kind.LIFELINE_CLOSED,
    Seen.REJECTED: Kind.PORT_UNREACHABLE,
    Seen.REFUSED: Kind.CONNECTION_REFUSED,
}
"""What an observer tells of a host beside its silence, and what that is called."""


@dataclass(frozen=True, slots=True)
class Clue:
    """One piece of evidence. A sentence may join several kinds."""

    text: str
    kinds: tuple[Kind, ...] = ()


def clue(kind: Kind, *values: object) -> Clue:
    """Return the evidence of one kind; `values` go into its sentence."""
    return Clue(WORDS[kind].format(*values), (kind,))


def accused_by(names: Sequence[str]) -> Clue:
    """Return who accuses a member; only more than one confirm each other."""
    if not names:
        return Clue("the accuser is not known")
    kinds = (Kind.CONFIRMED,) if len(names) > 1 else ()
    return Clue(WORDS[Kind.CONFIRMED].format(", ".join(names)), kinds)


def seen_clues(seen: Seen) -> tuple[Clue, ...]:
    """Return what an observer has seen, one clue for each kind."""
    return tuple(clue(kind) for what, kind in SEEN.items() if what in seen)


def as_seen_by(name: str, seen: Seen) -> Clue:
    """Return all that an observer has seen as one clue that names it."""
    clues = seen_clues(seen)
    text = f"{', '.join(texts_of(clues))}, as {name} saw"
    return Clue(text, kinds_of(clues))


def texts_of(clues: Iterable[Clue]) -> tuple[str, ...]:
    """Return the sentences, in order."""
    return tuple(found.text for found in clues)


def kinds_of(clues: Iterable[Clue]) -> tuple[Kind, ...]:
    """Return the kinds, each once, in order."""
    return tuple(dict.fromkeys(kind for found in clues for kind in found.kinds))
