"""Evidence in words, and of what kind it is: on events, for people and for programs."""

from __future__ import annotations

import pytest

from mesh.core.events import Event, EventKind, EvidenceKind
from mesh.membership.clues import SEEN, WORDS, accused_by, as_seen_by, kinds_of, seen_clues
from mesh.wire.swim_messages import Seen, Suspect
from tests.unit.membership.pump import Host, Pump


def test_every_kind_of_evidence_has_its_sentence() -> None:
    assert set(WORDS) == set(EvidenceKind)


@pytest.mark.parametrize("what", list(Seen))
def test_all_that_is_seen_of_a_host_has_its_kind(what: Seen) -> None:
    assert SEEN[what] in WORDS
    assert kinds_of(seen_clues(what)) == (SEEN[what],)


def test_what_one_observer_saw_is_one_sentence_of_several_kinds() -> None:
    clue = as_seen_by("n2", Seen.CLOSED | Seen.REFUSED)
    assert clue.text == "its lifeline ended, its host refuses connections, as n2 saw"
    assert clue.kinds == ("lifeline_closed", "connection_refused")


def test_one_accuser_confirms_nobody() -> None:
    assert accused_by([]).kinds == ()
    assert (accused_by(["n1"]).text, accused_by(["n1"]).kinds) == ("accused by n1", ())
    assert accused_by(["n1", "n2"]).kinds == (EvidenceKind.CONFIRMED,)


def last(host: Host, kind: EventKind) -> Event:
    return [event for event in host.events if event.kind is kind][-1]


def suspicion(pump: Pump, accuser: Host, suspect: Host, seen: int = 0) -> None:
    """Let the first host hear that another suspects a third."""
    known = pump.hosts[0].knows(suspect)
    message = Suspect(known.node_id, known.boot, known.incarnation, accuser.node_id, seen)
    pump.at_host(pump.hosts[0], accuser, message)


def test_a_death_says_who_accused_first_who_confirmed_and_every_kind_of_evidence() -> None:
    pump = Pump()
    hosts = pump.mesh(4)
    dead = hosts.pop()
    pump.pause(dead)
    assert pump.run_until(lambda: all(EventKind.DEAD in h.kinds(dead) for h in hosts), 20.0)
    verdicts = [last(host, EventKind.DEAD) for host in hosts]  # who waited for it, and who was told
    event = next(found for found in verdicts if "no_refutation" in found.evidence_kinds)
    assert set(event.evidence_kinds) >= {"no_refutation", "confirmed", "no_ack"}
    accusers = (event.accuser, *event.confirmed_by)
    assert len(accusers) == len(set(accusers)) == 3
    assert set(accusers) == {"host-1", "host-2", "host-3"}
    assert f"accused by {', '.join(accusers)}" in event.evidence


def test_a_suspicion_heard_from_another_says_what_that_one_saw() -> None:
    pump = Pump()
    first, second, third, *_ = pump.mesh(4)
    suspicion(pump, second, third, int(Seen.CLOSED))
    event = last(first, EventKind.SUSPECT)
    assert event.evidence == ("suspected by host-2", "its lifeline ended, as host-2 saw")
    assert event.evidence_kinds == ("suspected", "lifeline_closed")
    assert (event.accuser, event.confirmed_by) == ("host-2", ())


def test_a_refutation_names_those_who_accused() -> None:
    pump = Pump()
    first, second, third, fourth = pump.mesh(4)
    suspicion(pump, second, third)
    suspicion(pump, fourth, third)
    assert pump.run_until(lambda: EventKind.REFUTE in first.kinds(third), 5.0)
    event = last(first, EventKind.REFUTE)
    assert (event.accuser, event.confirmed_by) == ("host-2", ("host-4",))
    own = last(third, EventKind.REFUTE)
    assert own.accuser in {"host-2", "host-4"}


def test_confirmations_are_remembered_in_order_and_nobody_is_told() -> None:
    pump = Pump()
    first, second, third, fourth = pump.mesh(4)
    suspicion(pump, second, third)
    suspicion(pump, fourth, third, int(Seen.REFUSED))
    past = first.swim.rumours.history.of(third.node_id)
    assert [(entry.event.accuser, entry.is_confirmation) for entry in past] == [
        ("host-2", False),
        ("host-4", True),
    ]
    assert "connection_refused" in past[1].event.evidence_kinds
    assert first.kinds(third).count(EventKind.SUSPECT) == 1


def test_of_a_member_it_is_known_when_it_was_last_heard() -> None:
    pump = Pump()
    first, second, *_ = pump.mesh(3)
    pump.pause(second)
    before = pump.now
    pump.run(0.6)
    heard_at = first.knows(second).heard_at
    assert heard_at is not None
    assert before - 5.0 < heard_at <= before + 0.01
