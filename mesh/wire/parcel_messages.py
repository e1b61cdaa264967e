"""The answer to a parcel: messages that came together on a stream, and have no replies of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mesh.wire import schema as s


@dataclass(frozen=True, slots=True)
class Taken:
    """'They have arrived.' It says nothing of what comes of them."""


SCHEMAS: Final[dict[int, tuple[type, s.Field]]] = {97: (Taken, s.struct(Taken))}
