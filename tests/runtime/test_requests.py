"""What comes over the control socket is looked at whatever it is, and refused in words: no request is a bug of ours."""

from __future__ import annotations

from collections.abc import Callable

import msgpack
import pytest

from mesh.errors import ConfigError
from mesh.runtime.control import Request
from mesh.runtime.requests import flag, maps, number, read_new, text

DEEP = msgpack.unpackb(b"\x91" * 1_000 + b"\x90")
"""As deep as msgpack takes it, and deeper than Python prints."""


@pytest.mark.parametrize(
    "read",
    [
        lambda request: read_new({"argv": ["true"], "env": request["at"]}),
        lambda request: read_new({"argv": ["true"], "id": request["at"]}),
        lambda request: read_new({"argv": ["true"], "retries": request["at"]}),
        lambda request: number(request, "at", 0.0, (0.0, 1.0)),
        lambda request: text(request, "at"),
        lambda request: flag(request, "at"),
        lambda request: maps(request, "at", 10),
    ],
    ids=("env", "id", "retries", "number", "text", "flag", "maps"),
)
def test_list_too_deep_to_be_printed_is_refused_as_any_other_wrong_value(
    read: Callable[[Request], object],
) -> None:
    with pytest.raises(ConfigError, match="found a list of 1$"):
        read({"at": DEEP})
