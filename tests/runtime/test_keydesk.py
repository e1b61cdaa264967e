"""`mesh key` at one node: who holds what, what is refused, and what a member that cannot keep it says."""

from __future__ import annotations

from typing import Any

import pytest

from mesh.errors import CommandRefused, ConfigError
from mesh.runtime.keydesk import KeyDesk
from mesh.runtime.keystore import KeyStore
from mesh.runtime.sealed_door import SealedDoor
from mesh.seal.key import Key
from tests.runtime.keyed_peers import Keyed, keyed, passing, store
from tests.runtime.peers import listening

OLD, NEW = Key(b"k" * 32), Key(b"o" * 32)


class Client:
    """Takes the one answer of a request."""

    def __init__(self) -> None:
        self.report: dict[str, Any] = {}

    async def ok(self, report: dict[str, Any]) -> None:
        self.report = report


async def ask(
    keys: KeyStore, peers: list[tuple[str, str]], what: str, key: str = "", *, force: bool = False
) -> dict[str, Any]:
    """Ask the desk of a node that knows these members, as (address, state)."""
    members = [
        {"name": f"m{number}", "address": address, "self": False, "state": state}
        for number, (address, state) in enumerate(peers, 1)
    ]
    members.append({"name": "me", "address": "127.0.0.1:1", "self": True, "state": "alive"})
    client = Client()
    desk = KeyDesk(keys, SealedDoor(keys), passing(keys), lambda: members)
    await desk.serve({"what": what, "key": key, "force": force}, client)  # type: ignore[arg-type]  # a fake
    return client.report


def at(peer: Keyed) -> tuple[str, str]:
    return str(peer.address), "alive"


async def test_rotation_step_by_step_reaches_every_living_member() -> None:
    mine, theirs = store(OLD), store(OLD)
    async with keyed(theirs) as peer:
        report = await ask(mine, [at(peer)], "add", NEW.to_text())
        assert report["lagging"] == []
        assert report["members"][0]["keys"] == sorted((OLD.name, NEW.name))
        assert report["members"][0]["seals"] == OLD.name
        await ask(mine, [at(peer)], "use", NEW.name)
        assert theirs.ring.primary == NEW
        await ask(mine, [at(peer)], "remove", OLD.name[:4])
    assert list(theirs.ring) == list(mine.ring) == [NEW]


async def test_new_key_is_drawn_where_none_is_given() -> None:
    mine = store(OLD)
    report = await ask(mine, [], "add")
    assert len(report["keys"]) == 2
    assert [key["id"] for key in report["keys"] if key["seals"]] == [OLD.name]
    assert OLD.to_text() not in str(report)


async def test_member_that_is_dead_or_cannot_be_reached_is_named_and_one_that_left_is_not() -> None:
    sock = listening()
    nobody = f"127.0.0.1:{sock.getsockname()[1]}"
    sock.close()
    mine = store(OLD)
    report = await ask(mine, [(nobody, "dead"), (nobody, "left"), (nobody, "suspect")], "list")
    dead, suspect = report["members"]
    assert report["lagging"] == [dead["name"], suspect["name"]] == ["m1", "m3"]
    assert "held dead and was not asked; `mesh forget`" in dead["problem"]
    assert suspect["problem"] == "cannot be reached (Connection refused)"


@pytest.mark.parametrize(
    ("what", "words"), [("use", "is not sealed with yet"), ("remove", "is not removed")]
)
async def test_change_that_a_living_member_cannot_follow_is_refused_unless_forced(
    what: str, words: str
) -> None:
    sock = listening()
    nobody = f"127.0.0.1:{sock.getsockname()[1]}", "alive"
    sock.close()
    mine = store(OLD, NEW)
    before = mine.ring.digest
    with pytest.raises(CommandRefused, match=f"{words}.*m1 .cannot be reached"):
        await ask(mine, [nobody], what, NEW.name)
    assert mine.ring.digest == before
    await ask(mine, [nobody], what, NEW.name, force=True)
    assert mine.ring.digest != before


@pytest.mark.parametrize("what", ["use", "remove"])
async def test_member_that_may_only_be_cut_off_is_not_locked_out(what: str) -> None:
    mine = store(OLD, NEW)
    with pytest.raises(CommandRefused, match=r"m1 \(is held dead and was not asked"):
        await ask(mine, [("127.0.0.1:1", "dead")], what, NEW.name)
    assert set(mine.ring) == {OLD, NEW}
    assert mine.ring.primary == OLD


async def test_member_with_another_key_alone_is_named_with_the_reason() -> None:
    async with keyed(store(NEW)) as peer:
        report = await ask(store(OLD), [at(peer)], "list")
    assert "holds another key" in report["members"][0]["problem"]


async def test_sealing_key_is_not_removed_and_wrong_requests_are_told() -> None:
    mine = store(OLD, NEW)
    with pytest.raises(CommandRefused, match="the one that seals"):
        await ask(mine, [], "remove", OLD.name, force=True)
    with pytest.raises(ConfigError, match="the id of one key"):
        await ask(mine, [], "use", "zz")
    with pytest.raises(ConfigError, match="'what' is one of list, add, use, remove"):
        await ask(mine, [], "forge")
    with pytest.raises(ConfigError, match=r"'what' is one of .*, found a list of 0"):
        await ask(mine, [], [])  # type: ignore[arg-type]  # a client may send anything
    with pytest.raises(ConfigError, match="44 characters of base64"):
        await ask(mine, [], "add", "no key")


async def test_ring_that_cannot_be_kept_is_told_by_whose_disk_it_is() -> None:
    mine, theirs = store(OLD), store(OLD)
    async with keyed(theirs) as peer:
        report = await ask(mine, [at(peer)], "add", NEW.to_text())
    for problem in (report["problem"], report["members"][0]["problem"]):
        assert "a restart forgets the change" in problem


async def test_what_a_member_holds_is_taken_over_though_its_own_disk_is_full() -> None:
    mine, theirs = store(OLD), store(OLD)
    mine.ring.add(NEW)
    theirs.ring.add(Key(b"t" * 32))
    async with keyed(theirs) as peer:
        report = await ask(mine, [at(peer)], "list")
    assert "a restart forgets the change" in report["members"][0]["problem"]
    assert report["lagging"] == []
    assert len(mine.ring) == 3


async def test_ring_that_could_not_be_kept_is_tried_again_whenever_keys_are_listed() -> None:
    mine, theirs = store(OLD), store(OLD)
    async with keyed(theirs) as peer:
        assert (await ask(mine, [at(peer)], "list"))["problem"] == ""
        await ask(mine, [at(peer)], "add", NEW.to_text())
        report = await ask(mine, [at(peer)], "list")
    for problem in (report["problem"], report["members"][0]["problem"]):
        assert "once it can, `mesh key list` at any member writes it" in problem
