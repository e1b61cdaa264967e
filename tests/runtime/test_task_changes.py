"""Whoever waits for a task is woken by its change, and what nobody waits for is forgotten."""

from __future__ import annotations

from mesh.core import effects as fx
from mesh.core.address import Address
from tests.runtime.scripted_driver import ScriptedNode, driven

PEER = Address("127.0.0.1", 9)


async def test_whoever_waits_for_a_task_is_woken_by_its_change() -> None:
    async with driven(ScriptedNode(datagram=lambda _: [fx.TaskChanged("t")])) as (driver, _, _):
        mine, other = driver.changes.next_of("t"), driver.changes.next_of("u")
        driver.handle_datagram(PEER, b"")
        assert mine.is_set()
        assert not other.is_set()
        assert driver.changes.next_of("t") is not mine


async def test_what_nobody_waits_for_any_more_is_forgotten() -> None:
    async with driven(ScriptedNode()) as (driver, _, _):
        mine, twin = driver.changes.next_of("t"), driver.changes.next_of("t")
        assert mine is twin
        assert len(driver.changes._waiting) == 1
        del mine, twin
        assert len(driver.changes._waiting) == 0
