"""Bounds of numbers that people type, disks keep and packets carry: one place each, for whoever checks them."""

from __future__ import annotations

from typing import Final

BOOT_MAX: Final = (1 << 48) - 1
"""The last session number that a node can have: 48 bits in a card."""

SLOTS_MAX: Final = 65_535
"""Tasks that one node runs at once: 16 bits in a card."""

AMOUNT_MAX: Final = (1 << 48) - 1
"""An amount that a node offers, or that a task needs of one: 48 bits."""

EXPECT_MAX: Final = 256
"""Nodes that a mesh waits for before it is founded: as many as a seeking node keeps and tells of."""

SEED_ADDRESSES_MAX: Final = 4
"""How many addresses of one seed are asked in a round; further ones of its name are left alone."""

REMEMBERED_MAX: Final = 1_000
"""Members that a node remembers for its next session: the latest."""

RECALLED_MAX: Final = 16
"""How many remembered members a returning node asks in a round, beside its seeds."""

HEALTH_EVERY_S: Final = (1.0, 3_600.0)
"""Between two runs of a health check."""

SHORT_AFTER_S: Final = (1.0, 3_600.0)
"""How long the load is high before the hook of a shortage is run."""

COOL_DOWN_S: Final = (10.0, 7 * 86_400.0)
"""Between two runs of that hook."""
