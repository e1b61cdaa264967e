"""What a node's user, and its last session, say about the way in."""

from __future__ import annotations

from dataclasses import dataclass

from mesh.core.known import KnownMember


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """Whom to ask, and what to do while nobody answers."""

    seeds: tuple[str, ...] = ()
    expect: int = 0
    """With seeds: found a mesh once so many have met. 0: never."""

    is_name_given: bool = True
    """False: the name may be changed when it is taken."""

    remembered: tuple[KnownMember, ...] = ()
    """Members that an earlier session of this node knew, of the mesh that it belongs to."""
