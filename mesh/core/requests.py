"""What a machine asks of other nodes, before it is bytes.

Machines below the node return `Ask`, `Tell` and `Dial` beside effects; the node turns them into
`StartExchange`, `SendDatagram` and `OpenLifeline`, and hands the answer back under the asker's own tag.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeAlias

from mesh.core.address import Address
from mesh.core.effects import Effect


@dataclass(frozen=True, slots=True)
class Ask:
    """One request on a stream. The machine gets the reply, or why there is none, under `tag`, exactly once.

    A reply counts only if it comes from this mesh, unless `may_be_foreign`: then the machine judges that itself.
    """

    to: Address
    message: object
    tag: Hashable
    timeout_s: float
    may_be_foreign: bool = False


@dataclass(frozen=True, slots=True)
class Tell:
    """One message in a datagram, perhaps beside others to the same peer; it may be lost, also by too many at once."""

    to: Address
    message: object


@dataclass(frozen=True, slots=True)
class Dial:
    """One request on a stream of its own, which is kept open: a lifeline."""

    to: Address
    message: object
    lifeline_id: int


Outgoing: TypeAlias = Effect | Ask | Tell | Dial
