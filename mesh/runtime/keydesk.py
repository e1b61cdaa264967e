"""`mesh key`: changes the key ring, passes it to every member, and says who has taken it.

    add K     this node holds K, and every member that it reaches
    use K     only when every member holds K: else those who lack it would understand nobody
    remove K  only when no member seals with K any more

A member that is held dead may only be cut off, and would be locked out for good: it counts as one that
was not heard from, until it is forgotten. One that cannot be reached now takes the ring over from the first member it exchanges anything
with, as long as the two still share a key. Which keys there are is said by their ids alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import trio

from mesh.core.address import Address, split_host_port
from mesh.errors import CommandRefused, ConfigError, DecodeError, SealError
from mesh.runtime.control import ControlClient, Request
from mesh.runtime.keystore import KeyStore
from mesh.runtime.ringpass import RingPass, Told
from mesh.runtime.sealed_door import SealedDoor
from mesh.runtime.streams import connect
from mesh.seal.key import KEY_BYTES, Key, read_key
from mesh.seal.ring import RING_BYTES_MAX, KeyRing
from mesh.wire.frames import FrameKind, FrameReader, frame, split_exchange
from mesh.wire.schema import describe

ASK_S: Final = 5.0
"""How long a member may take to answer."""

ASKED_AT_ONCE_MAX: Final = 32
_READ_BYTES: Final = 65_536
_DEAD: Final = "is held dead and was not asked; `mesh forget` lets it go if it is gone for good"


@dataclass(slots=True)
class _Holder:
    """What one member holds, as far as it said."""

    name: str
    address: str
    ring: KeyRing | None = None
    digest: bytes = b""
    problem: str = ""

    def holds(self, key: Key) -> bool:
        return self.ring is not None and self.ring.find(key.key_id) is not None

    def seals_with(self, key: Key) -> bool:
        return self.ring is None or self.ring.primary.key_id == key.key_id

    def to_json(self) -> dict[str, Any]:
        keys = [] if self.ring is None else [key.name for key in self.ring]
        seals = "" if self.ring is None else self.ring.primary.name
        return {
            "name": self.name,
            "address": self.address,
            "keys": sorted(keys),
            "seals": seals,
            "problem": self.problem,
        }


class KeyDesk:
    """Serves `key` requests. `members` gives the members as `mesh members --json` shows them."""

    def __init__(
        self,
        keys: KeyStore,
        door: SealedDoor,
        rings: RingPass,
        members: Callable[[], list[dict[str, Any]]],
    ) -> None:
        self._keys = keys
        self._rings = rings
        self._door = door
        self._members = members
        self._turn = trio.Lock()

    async def serve(self, request: Request, client: ControlClient) -> None:
        """Answer one request: {"what": list|add|use|remove, "key": …, "force": …}."""
        what, text = request.get("what"), request.get("key", "")
        if type(what) is not str or what not in _CHANGES or type(text) is not str:
            raise ConfigError(f"'what' is one of {', '.join(_CHANGES)}, found {describe(what)}")
        is_forced = request.get("force", False) is True
        async with self._turn:
            if not await self._settle():
                raise CommandRefused(
                    "the keys of this node are not known to be the mesh's yet: a living member that has them is "
                    "expected to answer; try again in a moment, or start all members with one key file"
                )
            before = {key.name for key in self._keys.ring}
            problem = await _CHANGES[what](self, self._keys, text, is_forced)
            holders = await self._pass_on()
        report = self._report(self._keys, holders, problem)
        known = {key["id"] for key in report["keys"]}
        await client.ok({**report, "added": sorted(known - before)})

    async def settle(self) -> bool:
        """Try to let this node's ring count in its mesh (see `ringpass`); say whether it does."""
        async with self._turn:
            return await self._settle()

    async def _settle(self) -> bool:
        """Take over the ring of a member where it counts; with none that differs, this one may count."""
        if self._rings.counts:
            return True
        holders = await self._pass_on()
        if not self._rings.counts:
            digests = {holder.digest for holder in holders}
            if digests <= {self._keys.ring.digest}:
                self._rings.count()
        return self._rings.counts

    # The changes.

    async def _list(self, keys: KeyStore, _text: str, _is_forced: bool) -> str:
        return keys.save_again()

    async def _add(self, keys: KeyStore, text: str, _is_forced: bool) -> str:
        keys.ring.add(read_key(text) if text else Key(os.urandom(KEY_BYTES)))
        return keys.save()

    async def _use(self, keys: KeyStore, text: str, is_forced: bool) -> str:
        key = keys.ring.named(text)
        lacking = [h for h in await self._pass_on() if not h.holds(key)]
        if lacking and not is_forced:
            raise CommandRefused(
                f"key {key.name} is not sealed with yet: every member is expected to hold it, found or not heard "
                f"from: {_who(lacking)}; try again when they do, or --force"
            )
        keys.ring.use(key.key_id)
        return keys.save()

    async def _remove(self, keys: KeyStore, text: str, is_forced: bool) -> str:
        key = keys.ring.named(text)
        if keys.ring.primary.key_id == key.key_id:
            raise CommandRefused(
                f"key {key.name} is the one that seals: `mesh key use` another, then remove it"
            )
        sealing = [h for h in await self._pass_on() if h.seals_with(key)]
        if sealing and not is_forced:
            raise CommandRefused(
                f"key {key.name} is not removed: no member is expected to seal with it, found or not heard "
                f"from: {_who(sealing)}; try again later, or --force"
            )
        keys.ring.remove(key.key_id)
        return keys.save()

    # Asking the members.

    async def _pass_on(self) -> list[_Holder]:
        """Offer the ring to every other living member; return what each holds then, by name, the dead among them."""
        others = [member for member in self._members() if not member["self"]]
        dead = [
            _Holder(member["name"], member["address"], problem=_DEAD)
            for member in others
            if member["state"] == "dead"
        ]
        holders = [
            _Holder(member["name"], member["address"])
            for member in others
            if member["state"] in {"alive", "suspect"}
        ]
        limiter = trio.CapacityLimiter(ASKED_AT_ONCE_MAX)
        async with trio.open_nursery() as nursery:
            for holder in holders:
                nursery.start_soon(self._offer, holder, limiter)
        return sorted([*holders, *dead], key=lambda holder: holder.name)

    async def _offer(self, holder: _Holder, limiter: trio.CapacityLimiter) -> None:
        holder.problem = f"did not answer within {ASK_S:g} s"
        async with limiter:
            with trio.move_on_after(ASK_S):
                try:
                    told = await self._exchange(holder.address)
                except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
                    cause = error if isinstance(error, OSError) else error.__cause__
                    reason = os.strerror(getattr(cause, "errno", None) or 0) if cause else "hung up"
                    holder.problem = f"cannot be reached ({reason})"
                except (SealError, DecodeError) as error:
                    holder.problem = str(error)
                else:
                    holder.ring, holder.digest = told.ring, told.digest
                    missing = "" if told.ring else "does not know its keys to be the mesh's yet"
                    holder.problem = told.problem or missing

    async def _exchange(self, address: str) -> Told:
        stream = await connect(Address(*split_host_port(address)))
        try:
            passage = await self._door.enter(stream)
            await stream.send_all(frame(passage.seal(self._rings.offer())))
            reader = FrameReader(2 * RING_BYTES_MAX)
            bodies: list[bytes] = []
            while not bodies:
                data = await stream.receive_some(_READ_BYTES)
                if not data:
                    raise SealError("hung up before it said which keys it holds")
                bodies = reader.feed(data)
            _, kind, answer = split_exchange(passage.open(bodies[0]))
            if kind is not FrameKind.RING:
                raise DecodeError(f"a ring is expected in answer to one, found kind {kind}")
            return self._rings.take(answer)
        finally:
            stream.socket.close()

    def _report(self, keys: KeyStore, holders: list[_Holder], problem: str) -> dict[str, Any]:
        ring = keys.ring
        lagging = [h.name for h in holders if h.ring is None or h.ring.digest != ring.digest]
        return {
            "keys": [
                {"id": key.name, "seals": key.key_id == ring.primary.key_id}
                for key in sorted(ring, key=lambda key: key.name)
            ],
            "members": [holder.to_json() for holder in holders],
            "lagging": lagging,
            "problem": problem,
        }


_CHANGES: Final = {
    "list": KeyDesk._list,  # noqa: SLF001 - the class's own table
    "add": KeyDesk._add,  # noqa: SLF001
    "use": KeyDesk._use,  # noqa: SLF001
    "remove": KeyDesk._remove,  # noqa: SLF001
}


def _who(holders: list[_Holder]) -> str:
    return ", ".join(f"{h.name} ({h.problem})" if h.problem else h.name for h in holders)
