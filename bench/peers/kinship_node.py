"""One kinship member as a process: `kinship_node.py PROFILE NAME HOST:PORT [SEED]`.

It speaks the lines that mesh/bench/peers/harness.py describes.
"""

from __future__ import annotations

import asyncio
import sys
import time

import kinship

# All but `local` on loopback insist on a key; all members of a benchmark share this one.
KEY = "bWVzaC1iZW5jaG1hcmstbm90LWEtc2VjcmV0LWtleS4="
SIGHTS = {
    kinship.MemberJoined: "alive",
    kinship.MemberRecovered: "alive",
    kinship.MemberSuspect: "suspect",
    kinship.MemberDead: "dead",
    kinship.MemberLeft: "left",
}


def see(sight: str, name: str) -> None:
    """Print one line about one member."""
    print(f"see {time.time_ns()} {sight} {name}", flush=True)


async def tell(cluster: kinship.Cluster) -> None:
    """Print what is seen, first whoever is there already."""
    events = cluster.events()
    for member in cluster.members():
        see("alive", member.name)
    async for event in events:
        sight = SIGHTS.get(type(event))
        if sight is not None:
            see(sight, event.member.name)


async def main(profile: str, name: str, bind: str, seeds: list[str]) -> None:
    """Be a member until told to leave, or until nobody is left to tell."""
    preset = getattr(kinship.Config, profile)
    is_plain = profile == "local" and bind.startswith("127.")
    keys = {} if is_plain else {"keys": [KEY]}
    cluster = kinship.Cluster(preset(name=name, bind=bind, seeds=seeds, **keys))
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    await cluster.start()
    telling = asyncio.create_task(tell(cluster))
    while word := (await lines.readline()).decode().strip():
        if word == "traffic":
            print(f"traffic {cluster.stats().packets_received} - - -", flush=True)
        elif word == "leave":
            await cluster.leave()
            break
    telling.cancel()
    await cluster.close()


asyncio.run(main(*sys.argv[1:4], sys.argv[4:]))
