"""Makes what runs each of a node's hooks, as its user wants them. Loaded only where there are any."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable

from mesh.core.events import Event
from mesh.core.ids import format_id
from mesh.hooks.health import NOT_YET, Verdict
from mesh.node.commands import Look, SetFitness
from mesh.node.node import Node
from mesh.placement.demand import Demand
from mesh.runtime.clock import Clock
from mesh.runtime.driver import Driver
from mesh.runtime.guard import Guard
from mesh.runtime.health import HealthCheck
from mesh.runtime.hook_settings import HookSettings
from mesh.runtime.shell import Shell
from mesh.runtime.shortage import ShortageHook, Ways


def hook_parts(
    settings: HookSettings,
    *,
    node: Node,
    driver: Driver,
    clock: Clock,
    guard: Guard,
    emit: Callable[[Event], None],
    say: Callable[[str], None],
) -> list[HealthCheck | ShortageHook]:
    """Return those that are asked for; `emit` publishes an event of this node, `say` writes a line of its log."""
    parts: list[HealthCheck | ShortageHook] = []

    def tell(verdict: Verdict) -> None:
        driver.tell(SetFitness(verdict.is_fit, verdict.why))
        how = "is fit for work" if verdict.is_fit else "takes no work"
        text = f"this host {how}: {verdict.why}"
        if verdict.is_fit:
            say(text)  # events have it as a change of the card, which says why
        else:
            say(text if verdict.why == NOT_YET else f"warning: {text}")  # the same

    def measure() -> Demand | None:
        driver.tell(Look())
        return node.demand(clock())

    def describe() -> dict[str, str]:
        card = node.identity.card
        return {"MESH_NODE": format_id(card.node_id), "MESH_NAME": card.name}

    if settings.health_check is not None:
        shell = Shell(settings.health_check, guard)
        every_s, timeout_s = settings.check_every_s, settings.check_timeout_s
        parts.append(HealthCheck(shell, every_s=every_s, timeout_s=timeout_s, tell=tell))
    if settings.on_shortage is not None:
        parts.append(
            ShortageHook(
                Shell(settings.on_shortage, guard),
                Ways(
                    clock,
                    measure,
                    driver.ask,
                    emit,
                    node.config.meta.pool,
                    describe,
                ),
                random.Random(secrets.randbits(64)),
                short_after_s=settings.load_lasts_s,
                cool_down_s=settings.cool_down_s,
            )
        )
    return parts
