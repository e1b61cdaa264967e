"""Faults of the network: packets of one host, or of all, are dropped or refused aloud, by its own firewall."""

from __future__ import annotations

from typing import Final

from bench.faults.rounds import Act, each
from bench.faults.scene import Scene

CUT_S: Final = 8.0
REJECT_S: Final = 60.0
LOSS_S: Final = 20.0
_TCP_REFUSED: Final = "-p tcp -j REJECT --reject-with tcp-reset"
_UDP_REFUSED: Final = "-p udp -j REJECT --reject-with icmp-port-unreachable"


def _ruled(*rules: str, seconds: float) -> Act:
    def act(scene: Scene, victim: str) -> None:
        scene.stage.rule(victim, *rules)
        try:
            scene.hold(seconds)
        finally:
            scene.stage.unrule(victim)

    return act


def host_cut(scene: Scene) -> None:
    """Drop all packets of a busy host, both ways, for `CUT_S`."""
    act = _ruled("-A INPUT -i eth0 -j DROP", "-A OUTPUT -o eth0 -j DROP", seconds=CUT_S)
    each(scene, scene.voter_or_other, act)


def one_way_cut(scene: Scene) -> None:
    """Drop what a busy host sends; the next time what it would hear."""

    def act(scene: Scene, victim: str) -> None:
        mute, deaf = "-A OUTPUT -o eth0 -j DROP", "-A INPUT -i eth0 -j DROP"
        _ruled(mute if scene.applied % 2 else deaf, seconds=CUT_S)(scene, victim)

    each(scene, scene.voter_or_other, act)


def reject(scene: Scene) -> None:
    """Refuse all packets of a busy voter aloud for `REJECT_S`."""
    rules = [
        f"-A {chain} {way} eth0 {what}"
        for chain, way in (("INPUT", "-i"), ("OUTPUT", "-o"))
        for what in (_TCP_REFUSED, _UDP_REFUSED)
    ]
    victim = scene.victim(scene.stage.voters())
    if victim is not None:
        scene.applied += 1
        _ruled(*rules, seconds=REJECT_S)(scene, victim)
        scene.stage.wait_whole()


def loss(scene: Scene) -> None:
    """Drop every fifth packet that reaches any host, for `LOSS_S`."""
    if not scene.wait_busy():
        return
    scene.applied += 1
    names = scene.stage.running()
    for name in names:
        scene.stage.rule(
            name, "-A INPUT -i eth0 -m statistic --mode random --probability 0.2 -j DROP"
        )
    try:
        scene.hold(LOSS_S)
    finally:
        for name in names:
            scene.stage.unrule(name)
    scene.stage.wait_whole()
