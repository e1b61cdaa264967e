"""What members say of themselves and of each other: card, standing, vitals.

A **card** is what a member declares of itself; only the member writes it, under one (boot,
incarnation). It travels as one block of bytes, so that equal cards are decoded once and shared:
a simulated mesh of thousands keeps one copy of each.

A **standing** is what the mesh thinks of a member. **Vitals** are how busy it is just now.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgpack

from mesh.core.address import Address
from mesh.core.ids import NAME_CHARS_MAX, NO_NODE, NodeId
from mesh.errors import ConfigError, DecodeError
from mesh.wire import schema as s

CARD_BYTES_MAX: Final = 1024
LABELS_MAX: Final = 32


class State(IntEnum):
    """A member's state. The order is the precedence within one (boot, incarnation)."""

    ALIVE = 0
    SUSPECT = 1
    DEAD = 2
    LEFT = 3
    FORGOTTEN = 4  # gone, and somebody asked to remove it for good: a tombstone, seen by nobody

    @property
    def word(self) -> str:
        """The state as people and JSON see it."""
        return self.name.lower()


class Cause(IntEnum):
    """Why a member is dead; a greater value is a stronger reason."""

    NONE = 0
    SILENT = 1  # timeouts only: a hint
    CRASHED = 2  # lifeline closed and refusal: a hint (comes with the evidence)
    ENDED = 3  # proof: that boot runs nothing any more

    @property
    def word(self) -> str:
        """The cause as people and JSON see it; "" for none."""
        return "" if self is Cause.NONE else self.name.lower()


GENERAL: Final = "general"
DEDICATED: Final = "dedicated"
EMERGENCY: Final = "emergency"
"""Classes of members that mean something to Mesh itself; any other is a word that tasks may ask for."""

DEDICATED_QUEUES_MAX: Final = 16
QUEUE_CHARS_MAX: Final = 128
"""Of the queues that a dedicated member is for."""


WHY_CHARS_MAX: Final = 120
"""Of the reason why a member takes no work; the rest is cut off."""


class Availability(IntEnum):
    """Whether a member takes work, by its own word: it declares that as it declares its labels."""

    OPEN = 0
    STANDBY = 1
    """An emergency member that is not needed: only a task that asks for its class goes there."""

    UNFIT = 2
    """Its health check does not pass: nothing goes there."""

    DRAINING = 3
    """It leaves once what runs there has ended: nothing goes there."""

    @property
    def word(self) -> str:
        """As people and JSON see it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """What a member offers. Sorted tuples, so that equal metadata has equal bytes."""

    pool: str = "default"
    node_class: str = GENERAL
    labels: tuple[tuple[str, str], ...] = ()
    slots: int = 1  # how many tasks run at once; 0: none
    offers: tuple[tuple[str, int], ...] = ()  # declared amounts that tasks' needs count against
    version: str = ""  # the release of Mesh it runs
    queues: tuple[str, ...] = ()  # of a dedicated member: those whose tasks it takes, and no others
    availability: Availability = Availability.OPEN
    why: str = ""  # it is not open; for people


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a member declares of itself under one (boot, incarnation)."""

    node_id: NodeId
    boot: int
    incarnation: int
    name: str
    address: Address
    meta: Metadata


Rank: TypeAlias = tuple[int, int, State, Cause]
"""(boot, incarnation, state, cause): the order of all knowledge of one member; the greater outranks."""


def is_proof(state: State, cause: Cause) -> bool:
    """Say whether a state proves that the session runs nothing any more; all else is a hint.

    To be forgotten is no proof: whoever asked for it vouches for nothing.
    """
    return state is State.LEFT or (state is not State.FORGOTTEN and cause is Cause.ENDED)


@dataclass(frozen=True, slots=True)
class Vitals:
    """How busy a member is: what people are shown of it, and what members are compared by."""

    free_slots: int
    load_average_pct: int
    """Who wanted to run on its host in the last minute, in hundredths of all processors, 0 to 255. For people."""

    busy_pct: int
    """How much of the processors that it may use is in use now, in hundredths, 0 to 255. For contests."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What the sender thinks of a member, with the card it knows. `card` is encoded."""

    boot: int
    incarnation: int
    state: State
    cause: Cause
    age_s: int  # how long in this state: for people, and to drop the gone in time
    card: bytes  # of the same boot
    by: NodeId = NO_NODE  # who asked to forget it

    @property
    def subject(self) -> Card:
        """The card, decoded."""
        return decode_card(self.card)

    @property
    def rank(self) -> Rank:
        """Where this stands in the order of knowledge."""
        return (self.boot, self.incarnation, self.state, self.cause)


def enum_of(kind: type[IntEnum]) -> s.Field:
    """Return the field of a small closed set."""
    by_value = {int(member): member for member in kind}

    def unpack(raw: Any) -> IntEnum:
        if type(raw) is int and raw in by_value:
            return by_value[raw]
        return s.refuse(f"a {kind.__name__}", raw)

    return s.Field(int, unpack)


word = s.printable(NAME_CHARS_MAX, empty=False)
metadata = s.keyword_struct(
    Metadata,
    ("pool", word),
    ("node_class", word),
    ("labels", s.pairs(word, s.printable(NAME_CHARS_MAX), LABELS_MAX)),
    ("slots", s.uint(16)),
    ("offers", s.pairs(word, s.uint(48), LABELS_MAX)),
    ("version", s.printable(32)),
    ("queues", s.many(s.printable(QUEUE_CHARS_MAX, empty=False), DEDICATED_QUEUES_MAX)),
    ("availability", enum_of(Availability)),
    ("why", s.printable(WHY_CHARS_MAX)),
)
_card = s.keyword_struct(
    Card,
    ("node_id", s.nonzero(64)),
    ("boot", s.uint(48)),
    ("incarnation", s.uint(32)),
    ("name", word),
    ("address", s.address),
    ("meta", metadata),
)


def _unpack_card(raw: Any) -> bytes:
    data: bytes = _card_blob.unpack(raw)
    decode_card(data)
    return data


def _build_standing(*parts: Any) -> Standing:
    built = Standing(*parts)
    if built.subject.boot != built.boot:
        s.refuse(f"a card of boot {built.boot}", built.subject.boot)
    return built


_card_blob = s.blob(CARD_BYTES_MAX)
card = s.Field(_card_blob.pack, _unpack_card)
"""An encoded card, checked as it comes in: whoever holds one may decode it without fear."""

standing = s.struct(
    _build_standing,
    ("boot", s.uint(48)),
    ("incarnation", s.uint(32)),
    ("state", enum_of(State)),
    ("cause", enum_of(Cause)),
    ("age_s", s.uint(32)),
    ("card", card),
    ("by", s.uint(64)),
)


@lru_cache(maxsize=16384)
def encode_card(card: Card) -> bytes:
    """Return a card's bytes; equal cards have equal bytes. At most CARD_BYTES_MAX.

    Raises:
        ConfigError: no member would accept this card: it is too large for one datagram, or one of
            its parts is out of range.
    """
    raw = _card.pack(card)
    data = bytes(msgpack.packb(raw))
    if len(data) > CARD_BYTES_MAX:
        raise ConfigError(
            f"name, labels, offers and queues together may take {CARD_BYTES_MAX} bytes, found {len(data)}: "
            "use fewer or shorter ones"
        )
    try:
        _parse_card(data)
    except DecodeError as error:
        raise ConfigError(
            f"name, labels, offers, queues or address are not valid: {error}"
        ) from error
    return data


@lru_cache(maxsize=16384)
def decode_card(data: bytes) -> Card:
    """Return the card of its bytes; equal bytes give the same object.

    Raises:
        DecodeError: the bytes are no card, or a card spelled in another way than `encode_card` does:
            digests over bytes would differ for ever where the cards are equal.
    """
    if len(data) > CARD_BYTES_MAX:
        raise DecodeError(
            f"a card of at most {CARD_BYTES_MAX} bytes is expected, found {len(data)}"
        )
    card = _parse_card(data)
    if msgpack.packb(_card.pack(card)) != data:
        raise DecodeError("a card in its one spelling is expected, found another one")
    return card


def _parse_card(data: bytes) -> Card:
    try:
        raw = msgpack.unpackb(data, max_array_len=LABELS_MAX, max_map_len=0, max_ext_len=0)
    except Exception as error:
        raise DecodeError(
            f"a card is expected, found bytes that are no msgpack: {error}"
        ) from error
    card: Card = _card.unpack(raw)
    return card
