"""Any valid message: a strategy for every type of both tables, within the limits of the wire."""

from __future__ import annotations

import dataclasses
from typing import Any

from hypothesis import strategies as st

from mesh.core.address import Address, unpack_host
from mesh.core.ids import NodeId
from mesh.wire import contest_messages as contest
from mesh.wire import records as r
from mesh.wire import swim_messages as swim
from mesh.wire import work_messages as work


def uints(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, 2**bits - 1)


def texts(chars_max: int, chars_min: int = 0) -> st.SearchStrategy[str]:
    letters = st.characters(exclude_categories=["Cs"])
    return st.text(letters, min_size=chars_min, max_size=min(chars_max, 12))


def words(chars_max: int = 64, chars_min: int = 1) -> st.SearchStrategy[str]:
    letters = st.characters(exclude_categories=["C", "Z"])
    return st.text(letters, min_size=chars_min, max_size=min(chars_max, 12))


def tuples(items: st.SearchStrategy[Any], count_max: int = 4) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=count_max).map(tuple)


def pairs(
    keys: st.SearchStrategy[str], values: st.SearchStrategy[Any]
) -> st.SearchStrategy[tuple[tuple[str, Any], ...]]:
    return st.dictionaries(keys, values, max_size=4).map(lambda found: tuple(sorted(found.items())))


ids = st.integers(1, 2**64 - 1).map(NodeId)
addresses = st.builds(
    Address, st.binary(min_size=4, max_size=4).map(unpack_host), st.integers(1, 65535)
) | st.builds(Address, st.binary(min_size=16, max_size=16).map(unpack_host), st.integers(1, 65535))
metadata = st.builds(
    r.Metadata,
    pool=words(),
    node_class=words(),
    labels=pairs(words(), words(chars_min=0)),
    slots=uints(16),
    offers=pairs(words(), uints(48)),
    version=words(32, 0),
    queues=st.lists(words(), max_size=3).map(tuple),
    availability=st.sampled_from(r.Availability),
    why=words(r.WHY_CHARS_MAX, 0),
)
cards = st.builds(
    r.Card,
    node_id=ids,
    boot=uints(48),
    incarnation=uints(32),
    name=words(),
    address=addresses,
    meta=metadata,
)
card_bytes = cards.map(r.encode_card)
vitals = st.builds(r.Vitals, uints(16), uints(8), uints(8))


def _standing(
    card: r.Card, incarnation: int, verdict: tuple[r.State, r.Cause], age_s: int, by: NodeId
) -> r.Standing:
    return r.Standing(card.boot, incarnation, *verdict, age_s, r.encode_card(card), by)


standings = st.builds(
    _standing,
    cards,
    uints(32),
    st.tuples(st.sampled_from(r.State), st.sampled_from(r.Cause)),
    uints(32),
    uints(64).map(NodeId),
)
specs = st.builds(
    work.Spec,
    task_id=texts(128, 1),
    argv=tuples(texts(100)),
    env=pairs(texts(100, 1), texts(100)),
    cwd=texts(100),
    key=texts(128),
    queue=texts(128),
    pool=texts(128),
    node_class=texts(128),
    labels=pairs(words(), texts(128)),
    needs=pairs(words(), uints(48)),
)

# What the parts of messages are called, and what may stand in them.
_PARTS: dict[str, st.SearchStrategy[Any]] = {
    "seq": uints(32),
    "target": ids,
    "view": uints(16),
    "address": addresses,
    "subject": uints(64),
    "boot": uints(48),
    "incarnation": uints(32),
    "vitals": vitals,
    "card": card_bytes,
    "node_id": ids,
    "accuser": ids,
    "seen": st.integers(0, 3),
    "by": uints(64),
    "age_s": uints(32),
    "cause": st.sampled_from(r.Cause),
    "expect": uints(16),
    "replaces": uints(48),
    "about": st.none() | card_bytes,
    "met": tuples(card_bytes),
    "known_boot": uints(48),
    "members": tuples(standings),
    "code": texts(32),
    "text": texts(500),
    "root": uints(64),
    "hashes": st.binary(max_size=8 * swim.SYNC_BUCKETS),
    "buckets": tuples(uints(8)),
    "free_slots": uints(16),
    "udp": texts(200),
    "tcp": texts(200),
}
# Parts that are shorter in one message than elsewhere.
_SHORT = {(swim.Ping, "target"): uints(32), (swim.Ack, "boot"): uints(32)}
CODES = {kind: code for table in (swim.SCHEMAS, work.SCHEMAS) for code, (kind, _) in table.items()}


def messages_of(kind: type) -> st.SearchStrategy[Any]:
    """Any valid message of one type. KeyError: a new part has no strategy yet, add it above."""
    parts = [part.name for part in dataclasses.fields(kind)]
    return st.builds(kind, **{name: _SHORT.get((kind, name), _PARTS[name]) for name in parts})


messages = st.sampled_from(list(CODES)).flatmap(messages_of)
weighings = st.dictionaries(
    st.sampled_from(contest.WEIGHED), st.floats(0, contest.WEIGHT_MAX, exclude_min=True), max_size=6
).map(lambda found: tuple(sorted(found.items())))
