"""`mesh members`: who has long been dead is out of the way, and never out of reach."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mesh.cli import watch
from mesh.cli.main import build_parser


def member(name: str, state: str, age_s: float) -> dict[str, Any]:
    return {
        "name": name,
        "state": state,
        "cause": "silent" if state == "dead" else "",
        "since": time.time() - age_s,
        "address": "10.0.0.1:7946",
        "rtt_ms": None,
        "slots": 1,
        "used": None,
        "load": None,
        "pool": "default",
        "class": "general",
        "labels": {},
    }


DAY_S = watch.LONG_DEAD_S
MEMBERS = [
    member("ada", "alive", 3 * DAY_S),
    member("bob", "dead", 2 * DAY_S),
    member("cyd", "dead", 0.5 * DAY_S),
    member("dan", "left", 2 * DAY_S),
]


class Answers:
    """What a node would answer."""

    def call(self, name: str) -> Any:  # noqa: ANN401 - JSON comes back
        return {"status": {"phase": "member"}, "members": MEMBERS}[name]


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def local_node(_options: object) -> Iterator[Answers]:
        yield Answers()

    monkeypatch.setattr(watch, "local_node", local_node)


def test_what_no_member_declares_takes_no_column(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys).splitlines()[0].split() == [
        "NAME",
        "STATE",
        "FOR",
        "ADDRESS",
        "RTT",
        "SLOTS",
        "LOAD",
    ]
    changed = [MEMBERS[0] | {"labels": {"gpu": "yes"}}, MEMBERS[2] | {"pool": "fast"}]
    monkeypatch.setattr(
        Answers, "call", lambda _self, name: (changed, {"phase": "member"})[name == "status"]
    )
    lines = run(capsys).splitlines()
    assert lines[0].split()[-2:] == ["POOL", "LABELS"]
    assert lines[1].split()[-2:] == ["default", "gpu=yes"]
    assert lines[2].split()[-2:] == ["fast", "-"]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    options = build_parser()[0].parse_args(["members", *words])
    assert options.handler(options) == 0
    return capsys.readouterr().out


def test_the_long_dead_are_counted_and_not_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys)
    assert [name for name in ("ada", "bob", "cyd", "dan") if name in text] == ["ada", "cyd", "dan"]
    assert "not shown: 1 dead for more than a day; mesh members --all shows them" in text


def test_all_shows_them(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "--all")
    assert "bob" in text
    assert "not shown" not in text


def test_programs_get_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(json.loads(run(capsys, "--json"))) == len(MEMBERS)
