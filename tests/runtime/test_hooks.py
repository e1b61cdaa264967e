"""What a node tells of its health check, and does when the mesh is short: with real commands."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
import trio

from mesh.core.events import Event, EventKind
from mesh.errors import CommandRefused, ConfigError
from mesh.hooks.commands import TakeTurn
from mesh.hooks.health import NOT_YET, Verdict
from mesh.node.commands import SetFitness
from mesh.placement.demand import Demand
from mesh.runtime import shortage as module
from mesh.runtime.health import HealthCheck
from mesh.runtime.hook_parts import hook_parts
from mesh.runtime.hook_settings import HookSettings
from mesh.runtime.shell import Shell
from mesh.runtime.shortage import ShortageHook, Ways

Until: TypeAlias = Callable[[Callable[[], bool]], Awaitable[None]]

EVERY_S = 0.05


async def test_a_node_is_told_when_its_host_becomes_fit_unfit_and_fit_again(
    tmp_path: Path, until: Until
) -> None:
    told: list[Verdict] = []
    state, runs = tmp_path / "state", tmp_path / "runs"
    shell = Shell(f"echo run >>{runs}; cat {state}; [ -e {tmp_path}/fit ]")
    check = HealthCheck(shell, every_s=EVERY_S, timeout_s=5.0, tell=told.append)
    state.write_text("no GPU\n")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(check.run)
        await until(lambda: len(told) == 2)
        assert told[0] == Verdict(is_fit=False, why=NOT_YET)
        failing = Verdict(is_fit=False, why="its health check fails: exit code 1: no GPU")
        assert told[1] == failing
        (tmp_path / "fit").touch()
        await until(lambda: len(told) == 3)
        assert told[2].is_fit
        (tmp_path / "fit").unlink()
        await until(lambda: len(told) == 4)
        assert told[3] == failing
        (tmp_path / "fit").touch()
        await until(lambda: len(told) == 5)
        count = runs.read_text().count("run")
        await until(lambda: runs.read_text().count("run") > count + 2)
        nursery.cancel_scope.cancel()
    assert len(told) == 5, "while nothing changes nothing is told"


class Tells:
    """A driver that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, command: object) -> None:
        self.told.append(command)


def test_each_change_of_the_health_is_told_to_the_node_and_the_log() -> None:
    driver, events, lines = Tells(), list[Event](), list[str]()
    unused: Any = None
    (check,) = hook_parts(
        HookSettings(health_check="true"),
        node=unused,
        driver=cast("Any", driver),
        clock=unused,
        guard=unused,
        emit=events.append,
        say=lines.append,
    )
    assert isinstance(check, HealthCheck)
    for is_fit, why in ((False, NOT_YET), (False, "A"), (True, "B"), (False, "C"), (False, "D")):
        check._tell(Verdict(is_fit, why))
    assert driver.told == [
        SetFitness(is_fit=False, why=NOT_YET),
        SetFitness(is_fit=False, why="A"),
        SetFitness(is_fit=True, why="B"),
        SetFitness(is_fit=False, why="C"),
        SetFitness(is_fit=False, why="D"),
    ]
    assert not events, "each changes the card, which is an event already"
    assert lines == [
        f"this host takes no work: {NOT_YET}",
        "warning: this host takes no work: A",
        "this host is fit for work: B",
        "warning: this host takes no work: C",
        "warning: this host takes no work: D",
    ]


async def test_a_check_that_hangs_is_a_failure_and_the_next_one_is_run(until: Until) -> None:
    told: list[Verdict] = []
    check = HealthCheck(
        Shell("echo asking the disk; sleep 300"), every_s=EVERY_S, timeout_s=0.1, tell=told.append
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(check.run)
        await until(lambda: len(told) == 2)
        nursery.cancel_scope.cancel()
    assert told[1].why == "its health check fails: took longer than 0.1 s: asking the disk"


class Mesh:
    """What a hook has of its node, whose clock a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, line: str, answers: list[Any]) -> None:
        monkeypatch.setattr(module, "LOOK_S", 0.001)
        self.now = 0.0
        self.use = Demand(15, 16)
        self.asked: list[TakeTurn] = []
        self.events: list[Event] = []
        self.answers = answers
        ways = Ways(
            clock=self._clock,
            measure=lambda: self.use,
            ask=self._ask,
            emit=self.events.append,
            pool="gpu",
            describe=lambda: {"MESH_NODE": "0" * 16, "MESH_NAME": "n1"},
        )
        self.hook = ShortageHook(
            Shell(line), ways, random.Random(1), short_after_s=30.0, cool_down_s=600.0
        )

    def _clock(self) -> float:
        self.now += 0.5
        return self.now

    async def _ask(self, build: Callable[[int], TakeTurn]) -> Any:  # noqa: ANN401 - JSON comes back
        self.asked.append(build(len(self.asked)))
        answer = self.answers.pop(0) if self.answers else {"outcome": "waits", "wait_s": 1e6}
        if isinstance(answer, str):
            raise CommandRefused(answer)
        return answer

    async def run(self, until: Until, condition: Callable[[], bool]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.hook.run)
            await until(condition)
            nursery.cancel_scope.cancel()


async def test_a_node_whose_turn_it_is_runs_the_hook_with_the_load_in_its_environment(
    monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    line = 'echo "$MESH_LOAD $MESH_USED $MESH_SLOTS $MESH_NODE $MESH_NAME $MESH_POOL"'
    mesh = Mesh(monkeypatch, line, [{"outcome": "granted"}])
    await mesh.run(until, lambda: len(mesh.events) == 2)
    begun, ended = mesh.events
    assert (begun.kind, ended.kind) == (EventKind.HOOK, EventKind.HOOK)
    assert begun.detail == (
        "pool gpu is short of slots (15 of 16 in use, load 0.94): runs its --on-shortage"
    )
    assert ended.detail.endswith(f" s: exit code 0: 0.94 15 16 {'0' * 16} n1 gpu")
    assert [(one.hook, one.cool_down_s) for one in mesh.asked] == [("shortage/gpu", 600.0)]


async def test_a_hook_that_fails_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    mesh = Mesh(monkeypatch, "echo no quota >&2; exit 7", [{"outcome": "granted"}])
    await mesh.run(until, lambda: len(mesh.events) == 2)
    assert mesh.events[1].kind is EventKind.WARN
    assert "its --on-shortage has failed after" in mesh.events[1].detail
    assert mesh.events[1].detail.endswith("exit code 7: no quota")


async def test_a_hook_that_takes_too_long_is_killed_and_warned_of(
    monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    monkeypatch.setattr(module, "TIMEOUT_S", 0.1)
    mesh = Mesh(monkeypatch, "sleep 300", [{"outcome": "granted"}])
    await mesh.run(until, lambda: len(mesh.events) == 2)
    assert mesh.events[1].kind is EventKind.WARN
    assert "took longer than 0.1 s" in mesh.events[1].detail


async def test_where_no_majority_answers_it_is_said_once_and_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, until: Until
) -> None:
    answers = ["no majority", "no majority", {"outcome": "waits", "wait_s": 20.0}, "none again"]
    mesh = Mesh(monkeypatch, f"touch {tmp_path}/run", [*answers, {"outcome": "granted"}])
    await mesh.run(until, lambda: len(mesh.events) == 4)
    warned, again, begun, _ = mesh.events
    assert [warned.kind, again.kind, begun.kind] == [EventKind.WARN] * 2 + [EventKind.HOOK]
    assert warned.detail.endswith(
        "and its --on-shortage is not run: no majority; asks again 10 s after each answer"
    )
    assert "none again" in again.detail
    assert len({one.mark for one in mesh.asked[:5]}) == 1, "no turn of these was used"


async def test_a_turn_that_is_heard_of_too_late_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, until: Until
) -> None:
    mesh = Mesh(monkeypatch, f"touch {tmp_path}/run", [])

    async def late(build: Callable[[int], TakeTurn]) -> Any:  # noqa: ANN401 - JSON comes back
        mesh.asked.append(build(0))
        mesh.now += 5.1
        return {"outcome": "granted"}

    mesh.hook._ways = mesh.hook._ways._replace(ask=late)
    await mesh.run(until, lambda: len(mesh.asked) >= 3)
    assert mesh.events == []
    assert not (tmp_path / "run").exists()
    assert len({one.mark for one in mesh.asked}) == 1


async def test_while_there_are_slots_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    mesh = Mesh(monkeypatch, "true", [])
    mesh.use = Demand(12, 16)
    await mesh.run(until, lambda: mesh.now > 100)
    assert mesh.asked == []


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"health_check": " "}, "--health-check expects a command for the shell, found nothing"),
        ({"on_shortage": ""}, "--on-shortage expects a command for the shell, found nothing"),
        ({"on_shortage": "a\0b"}, "without the character NUL"),
        ({"on_shortage": "x" * 140_000}, "at most 131071 bytes, found 140000"),
        ({"health_every_s": 5.0}, "--health-check CMD is expected with it, found none"),
        ({"short_after_s": 5.0}, "--on-shortage CMD is expected with it, found none"),
        ({"shortage_cool_down_s": 60.0}, "--on-shortage CMD is expected with it, found none"),
        ({"health_check": "true", "health_every_s": 0.5}, "--health-every lies between 1 and 3600 s"),
        ({"on_shortage": "true", "short_after_s": 0.5}, "--short-after lies between 1 and 3600 s"),
        ({"on_shortage": "true", "shortage_cool_down_s": 9.0}, "lies between 10 and 604800 s, found 9"),
    ],
)  # fmt: skip
def test_wrong_hooks_are_refused(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        HookSettings(**wrong).check()


def test_a_check_may_take_as_long_as_its_interval_but_no_longer_than_half_a_minute() -> None:
    assert HookSettings(health_check="true").check_timeout_s == 10.0
    assert HookSettings(health_check="true", health_every_s=3_600.0).check_timeout_s == 30.0
    HookSettings().check()
