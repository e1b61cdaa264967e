"""A member's story in sentences: who accused it, on what evidence, and what would have changed it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from mesh.cli.why import near
from mesh.cli.why_text import as_text, otherwise, story

AT = 1_800_000_000.0  # 08:00:00 UTC

PROBES = ["no answer to a ping within 0.5 s", "no answer through n4, n5", "no answer over TCP"]
PROBE_KINDS = ["no_ack", "no_indirect_ack", "no_tcp"]
CRASH = ["its lifeline ended, its host refuses connections, as n2 saw"]
CRASH_KINDS = ["lifeline_closed", "connection_refused"]


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def entry(kind: str, age_s: float, accuser: str = "", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON comes back
    states = {"confirm": "suspect", "refute": "alive", "return": "alive", "leave": "left"}
    return {
        "at": AT - age_s, "kind": kind, "state": states.get(kind, kind), "cause": "", "accuser": accuser,
        "confirmed_by": [], "evidence": [], "evidence_kinds": [], "detail": "", "rtt_ms": 0.4, **more,
    }  # fmt: skip


def told(*history: dict[str, Any], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON comes back
    state = history[-1]["state"] if history else "alive"
    return {
        "observer": "n1", "observer_id": "1" * 16, "at": AT, "self": False, "name": "n3",
        "node_id": "3" * 16, "address": "127.0.0.1:7948", "state": state, "cause": "", "is_proof": False,
        "since": history[-1]["at"] if history else AT - 7_500, "boot": 1, "incarnation": 0, "rtt_ms": 0.4,
        "heard": AT - 20, "suspicion": None, "history": list(history), **more,
    }  # fmt: skip


def silent() -> dict[str, Any]:
    return told(
        entry("suspect", 15.1, "n1", evidence=PROBES, evidence_kinds=PROBE_KINDS),
        entry("confirm", 13.0, "n2", evidence=["suspected by n2"], evidence_kinds=["suspected"]),
        entry(
            "dead", 12.0, "n1", cause="silent", confirmed_by=["n2"],
            evidence=["no refutation within 3.1 s", "accused by n1, n2", *PROBES],
            evidence_kinds=["no_refutation", "confirmed", *PROBE_KINDS],
        ),
        cause="silent",
    )  # fmt: skip


def crashed() -> dict[str, Any]:
    seen = {"evidence": ["suspected by n2", *CRASH], "evidence_kinds": ["suspected", *CRASH_KINDS]}
    own = "its host refuses connections"
    return told(
        entry("suspect", 12.0, "n2", **seen),
        entry("confirm", 12.0, "n1", evidence=[own], evidence_kinds=["connection_refused"]),
        entry("dead", 12.0, "n2", cause="crashed", evidence=CRASH, evidence_kinds=CRASH_KINDS),
        cause="crashed",
    )


def test_a_silent_death_is_told_from_the_first_suspicion_to_the_verdict() -> None:
    assert story(silent()) == [
        "07:59:44.900     15s ago  n1 suspected it (its answers took 0.4 ms): " + "; ".join(PROBES),
        "07:59:47.000     13s ago  n2 suspected it too",
        "07:59:48.000     12s ago  n1 declared it dead (silent): no refutation within 3.1 s",
    ]


def test_any_answer_in_time_would_have_changed_a_silent_death() -> None:
    probes, refutation, hint, back = otherwise(silent())
    assert probes.startswith("An answer to any of the 3 probes (a ping, pings through others, ")
    assert probes.endswith("by 07:59:44.900 would have kept n1 from suspecting it.")
    assert refutation == "A word of its own by 07:59:48.000 would have refuted it."
    assert "is a hint, and no proof" in hint
    assert back.startswith("If n3 lives after all")


def test_crashed_is_a_hint_and_a_host_that_answers_would_only_be_suspected() -> None:
    hint, _ = otherwise(crashed())
    assert hint.startswith(
        "Crashed is a hint, and no proof: had its host answered a connection of n2 or n1, it would only "
        "have been suspected."
    )


def test_evidence_is_told_once() -> None:
    text = as_text(crashed())
    assert text.count(CRASH[0].removesuffix(", as n2 saw")) == 1
    assert "n3 (3333333333333333) is dead (crashed), as n1 sees it" in text
    assert "n2 suspected it" in text
    assert "n1 suspected it too" in text


def test_a_death_that_was_only_told_says_so() -> None:
    dead = entry(
        "dead", 5, "n2", cause="silent",
        evidence=["declared dead by n2"], evidence_kinds=["declared"],
    )  # fmt: skip
    (line,) = story(told(dead, cause="silent"))
    assert line.endswith("n1 heard that it is dead (silent): declared dead by n2")


@pytest.mark.parametrize(
    ("state", "cause", "words"),
    [
        ("left", "", "Nothing: n3 said goodbye itself. That is proof"),
        ("dead", "ended", "Nothing: that its session has ended is proven"),
        ("forgotten", "", "Nothing: somebody asked for it"),
    ],
)
def test_nothing_would_have_changed_what_is_proven_or_asked_for(
    state: str, cause: str, words: str
) -> None:
    (line,) = otherwise(told(state=state, cause=cause))
    assert line.startswith(words)


def test_a_suspect_is_told_until_when_it_may_refute() -> None:
    suspicion = {
        "accuser": "n1", "confirmed_by": [], "opened": AT - 1, "due": AT + 2, "soonest": AT + 1,
        "is_doubted": True,
    }  # fmt: skip
    suspect = told(entry("suspect", 1.0, "n1"), suspicion=suspicion)
    until, sooner, doubt = otherwise(suspect)
    assert until.startswith("A word of its own by 08:00:02.000 (in 2.0s) refutes it")
    assert "08:00:01.000" in sooner
    assert doubt.startswith("n1 hears too little itself")
    assert "is suspected, as n1 sees it" in as_text(suspect)
    assert "what would change it" in as_text(suspect)


def test_a_member_that_is_well_says_since_when_and_when_it_was_heard() -> None:
    text = as_text(told(heard=AT - 0.3))
    assert "for 2h05m, since 05:55:00.000" in text
    assert "last heard 300ms ago, at 07:59:59.700" in text
    assert "its answers take 0.4 ms" in text
    assert "nothing against it" in text
    assert otherwise(told()) == story(told()) == []


def test_past_suspicions_are_told_with_how_they_were_refuted() -> None:
    past = told(
        entry("suspect", 60.0, "n2"),
        entry("refute", 59.4, "n2", confirmed_by=["n4"]),
        entry("dead", 30.0, "n1", cause="silent"),
        entry("return", 25.0, evidence=["the same process: it was not dead"]),
    )
    assert [line.partition(" ago  ")[2] for line in story(past)] == [
        "n2 suspected it (its answers took 0.4 ms)",
        "it refuted what n2 and n4 said itself, 600ms later",
        "n1 declared it dead (silent)",
        "it came back: the same process: it was not dead",
    ]


def test_own_story_tells_what_it_refuted() -> None:
    said = "refuted 'suspect', said of this node by n2"
    own = told(entry("refute", 2.0, "n2", detail=said), self=True, heard=None, rtt_ms=None)
    assert story(own)[0].endswith(said)
    assert "it is this node itself" in as_text(own)


def test_only_the_last_accusation_counts_for_what_would_have_changed() -> None:
    later = silent()["history"]
    twice = told(entry("suspect", 90.0, "n9"), entry("refute", 89.0), *later, cause="silent")
    assert otherwise(twice) == otherwise(silent())


def test_a_time_more_than_a_day_away_bears_its_date() -> None:
    (line,) = story(told(entry("leave", 3 * 86_400.0)))
    assert line.startswith("2027-01-12 08:00:00.000   3d00h ago  it left")


def test_words_of_other_hosts_do_not_move_the_cursor() -> None:
    bad = told(entry("suspect", 1.0, "n\x1b[2J"), name="x\x1b]0;y\x07")
    assert "\x1b" not in as_text(bad)


def test_names_that_are_near_are_found() -> None:
    names = ["n1", "n2", "backup-east", "backup-west"]
    assert near("backup-eas", names) == ["backup-east", "backup-west"]
    assert near("WEST", names) == ["backup-west"]
    assert near("m2", names) == ["n2"]
    assert near("zzzzzz", names) == []


def test_what_the_verdict_repeats_of_a_witness_is_told_once() -> None:
    own = ["its lifeline ended", "its host refuses connections"]
    as_seen = f"{', '.join(own)}, as n1 saw"
    repeated = told(
        entry("suspect", 2.0, "n1", evidence=own, evidence_kinds=CRASH_KINDS),
        entry("dead", 2.0, "n1", cause="crashed", evidence=[as_seen], evidence_kinds=CRASH_KINDS),
        cause="crashed",
    )
    assert story(repeated)[1].endswith("n1 declared it dead (crashed)")


def test_the_text_fits_a_terminal_of_80_columns() -> None:
    for one in (silent(), crashed()):
        assert max(map(len, as_text(one).splitlines())) <= 80


@pytest.mark.parametrize(
    ("availability", "words"),
    [
        (
            "standby",
            "it stands by, and takes no tasks until the load of its pool is high: that is so",
        ),
        ("unfit", "it takes no tasks: that is so"),
        ("draining", "it takes no more tasks: that is so"),
    ],
)
def test_a_member_that_takes_nothing_says_so_as_long_as_it_lives(
    availability: str, words: str
) -> None:
    why = "that is so"
    assert words in as_text(told(availability=availability, availability_why=why))
    assert why not in as_text(told(availability=availability, availability_why=why, state="left"))
    assert "it takes no tasks\n" in as_text(told(availability="unfit")), "an earlier version's"
    assert "it takes" not in as_text(told(availability="open"))
