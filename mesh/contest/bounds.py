"""Numbers that a contest reckons with: one that is none, or out of bounds, is a bug of ours and is found at once.

What comes from other members was checked when it was decoded. A NaN that got past here would make an order
that is none: every comparison with it is false, at each node another way round.

Source: our own.
"""

from __future__ import annotations

from math import inf, isfinite

from mesh.errors import LocalProtocolError


def within(name: str, value: float, least: float, most: float = inf) -> float:
    """Return `value`, which is finite and from `least` to `most`, both inclusive.

    Raises:
        LocalProtocolError: it is not; the text names it.
    """
    if isfinite(value) and least <= value <= most:
        return value
    bounds = f" from {least:g} to {most:g}" if isfinite(most) else f" of {least:g} or more"
    found = f"a finite number{bounds if isfinite(least) else ''} is expected, found {value}"
    raise LocalProtocolError(f"contest {name}: {found}")
