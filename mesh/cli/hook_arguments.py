"""The arguments of `join` that name shell lines, which the node runs for its user."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mesh.cli.arguments import Parser
from mesh.cli.times import duration
from mesh.core.limits import COOL_DOWN_S, HEALTH_EVERY_S, SHORT_AFTER_S

if TYPE_CHECKING:
    from mesh.runtime.hook_settings import HookSettings


def add_hooks(join: Parser) -> None:
    """Add them."""
    hooks = join.add_argument_group(
        "hooks", "commands that this node runs by /bin/sh -c, where mesh join was started"
    )
    hooks.add_argument(
        "--health-check",
        metavar="CMD",
        default=None,
        help=(
            "takes tasks only while CMD exits with 0: from its first pass on, not after it has failed twice in a row, again "
            "after one pass; what runs goes on"
        ),
    )
    hooks.add_argument(
        "--health-every",
        metavar="DURATION",
        type=duration("--health-every", *HEALTH_EVERY_S),
        default=None,
        help="how often, and how long CMD may take, though 30s at most (default: 10s)",
    )
    hooks.add_argument(
        "--on-shortage",
        metavar="CMD",
        default=None,
        help=(
            "run CMD, for 5m at most, when more than 0.8 of the pool's slots are in use for a while: to start a host, say. "
            "Of all nodes that have this one runs it, once in a cool-down. Finds MESH_LOAD, MESH_USED, MESH_SLOTS, "
            "MESH_POOL, MESH_NODE and MESH_NAME in its environment"
        ),
    )
    hooks.add_argument(
        "--short-after",
        metavar="DURATION",
        type=duration("--short-after", *SHORT_AFTER_S),
        default=None,
        help="for how long the load has to be as high without a break (default: 30s)",
    )
    hooks.add_argument(
        "--shortage-cool-down",
        metavar="DURATION",
        type=duration("--shortage-cool-down", *COOL_DOWN_S),
        default=None,
        help="how long nobody runs it again, while the pool stays short (default: 10m)",
    )


def hook_settings(options: argparse.Namespace) -> HookSettings:
    """Return what was asked for; it is checked with the other settings."""
    from mesh.runtime.hook_settings import HookSettings

    return HookSettings(
        health_check=options.health_check,
        health_every_s=options.health_every,
        on_shortage=options.on_shortage,
        short_after_s=options.short_after,
        shortage_cool_down_s=options.shortage_cool_down,
    )
