"""What comes over the control socket is looked at whatever it is, and refused in words: no request is a bug of ours."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import msgpack
import pytest

from mesh.errors import ConfigError
from mesh.runtime.control import Request
from mesh.runtime.requests import ARGUMENT_BYTES_MAX, flag, maps, number, read_new, text
from mesh.runtime.spawn import SpawnError, spawn

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
    with pytest.raises(ConfigError, match=r"found a list of 1$"):
        read({"at": DEEP})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"argv": ["echo", "a\0b"]}, "'argv' is text without the character NUL"),
        ({"argv": ["a\0b"]}, "'argv' is text without the character NUL"),
        ({"id": "a\0b"}, "'id' is text without the character NUL"),
        ({"cwd": "/a\0b"}, "'cwd' is text without the character NUL"),
        ({"env": {"A": "a\0b"}}, "'env' is text without the character NUL"),
        ({"env": {"A\0B": "a"}}, "'env' is text without the character NUL"),
        ({"env": {"A=B": "a"}}, "a name in 'env' is text without '=', found the text 'A=B'"),
        ({"env": {"": "a"}}, "expected a text of 1 to 1024 characters, found the text ''"),
        ({"argv": ["echo", "x" * 131_072]}, "at most 131071 bytes, found 131072"),
        ({"argv": ["echo", "é" * 65_536]}, "at most 131071 bytes, found 131072"),
        ({"env": {"A": "x" * 131_070}}, "at most 131071 bytes, found 131072"),
    ],
)
def test_what_no_host_could_start_is_refused_when_it_is_submitted(
    changes: Request, said: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        read_new({"argv": ["true"]} | changes)


def test_argument_and_variable_of_the_greatest_length_are_taken_and_can_be_started() -> None:
    argument, text = "x" * ARGUMENT_BYTES_MAX, "y" * (ARGUMENT_BYTES_MAX - 2)
    spec = read_new({"argv": ["true", argument], "env": {"A": text}}).spec
    process = spawn(spec.argv, dict(spec.env), spec.cwd)
    process.communicate(timeout=30.0)
    assert process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other limits")
@pytest.mark.parametrize(
    ("argv", "env"),
    [
        (("true", "x" * (ARGUMENT_BYTES_MAX + 1)), {}),
        (("true",), {"A": "y" * (ARGUMENT_BYTES_MAX - 1)}),
    ],
    ids=("argument", "variable"),
)
def test_limit_of_a_length_is_the_kernels(argv: tuple[str, ...], env: dict[str, str]) -> None:
    with pytest.raises(SpawnError, match="Argument list too long"):
        spawn(argv, env, "")
