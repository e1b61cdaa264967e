"""Small composable field types: how one value becomes msgpack, and what is accepted back.

A field packs a value into something msgpack can carry and unpacks what came in, checking type,
range and length before anything is built. Unpacking raises only DecodeError.

Source: small composable validators follow attrs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from mesh.core.address import Address, pack_host, unpack_host
from mesh.errors import DecodeError


class Field(NamedTuple):
    """How one value is packed and unpacked."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


def describe(found: object) -> str:
    """Return a few words on a value that came in: short and quick, however large or deep it is.

    A container is never printed: a peer may send one so deep that printing it exhausts the stack.
    """
    if type(found) is str:
        return f"the text {found[:40]!r}" if len(found) <= 40 else f"a text of {len(found)}"
    if type(found) is bytes:
        return f"{len(found)} bytes"
    if type(found) is list:
        return f"a list of {len(found)}"
    if found is None or type(found) in {bool, int, float}:
        return repr(found)
    return f"a value of type {type(found).__name__}"


def refuse(expected: str, found: object) -> NoReturn:
    """Raise the DecodeError for one value."""
    raise DecodeError(f"expected {expected}, found {describe(found)}")


def _same(value: Any) -> Any:
    return value


def uint(bits: int) -> Field:
    """Return the field of an unsigned integer of at most `bits` bits."""
    limit = 1 << bits

    def unpack(raw: Any) -> int:
        if type(raw) is int and 0 <= raw < limit:
            return raw
        refuse(f"an unsigned integer of {bits} bits", raw)

    return Field(_same, unpack)


def nonzero(bits: int) -> Field:
    """Return the field of an unsigned integer of at most `bits` bits that is not 0: an id."""
    inner = uint(bits)

    def unpack(raw: Any) -> int:
        value: int = inner.unpack(raw)
        return value or refuse("an id other than 0", raw)

    return Field(_same, unpack)


def _unpack_flag(raw: Any) -> bool:
    if type(raw) is bool:
        return raw
    refuse("true or false", raw)


flag = Field(_same, _unpack_flag)


def text(chars_max: int, *, empty: bool = True) -> Field:
    """Return the field of a text of at most `chars_max` characters."""

    def unpack(raw: Any) -> str:
        if type(raw) is str and len(raw) <= chars_max and (raw or empty):
            return raw
        refuse(f"a text of {0 if empty else 1} to {chars_max} characters", raw)

    return Field(_same, unpack)


def printable(chars_max: int, *, empty: bool = True) -> Field:
    """Return the field of a text that people see: no line breaks, no control characters.

    So a member's name can neither forge a line of output nor steer a terminal.
    """
    inner = text(chars_max, empty=empty)

    def unpack(raw: Any) -> str:
        value: str = inner.unpack(raw)
        return value if value.isprintable() else refuse("a text of printable characters", raw)

    return Field(_same, unpack)


def blob(bytes_max: int) -> Field:
    """Return the field of at most `bytes_max` bytes."""

    def unpack(raw: Any) -> bytes:
        if type(raw) is bytes and len(raw) <= bytes_max:
            return raw
        refuse(f"at most {bytes_max} bytes", raw)

    return Field(_same, unpack)


def optional(inner: Field) -> Field:
    """Return the field of a value that may be None."""
    pack, unpack = inner

    def pack_some(value: Any) -> Any:
        return None if value is None else pack(value)

    def unpack_some(raw: Any) -> Any:
        return None if raw is None else unpack(raw)

    return Field(pack_some, unpack_some)


def many(inner: Field, count_max: int) -> Field:
    """Return the field of a tuple of at most `count_max` values."""
    pack, unpack = inner

    def pack_all(values: Any) -> Any:
        return [pack(value) for value in values]

    def unpack_all(raw: Any) -> Any:
        if type(raw) is not list or len(raw) > count_max:
            refuse(f"a list of at most {count_max} items", raw)
        return tuple(unpack(item) for item in raw)

    return Field(pack_all, unpack_all)


def struct(build: Callable[..., Any], *fields: tuple[str, Field]) -> Field:
    """Return the field of an object with named parts, packed as a positional list.

    A longer list than expected is refused: within one protocol version, messages have one shape.
    """
    names = tuple(name for name, _ in fields)
    packs = tuple(item.pack for _, item in fields)
    unpacks = tuple(item.unpack for _, item in fields)
    size = len(fields)

    def pack(value: Any) -> Any:
        return [packer(getattr(value, name)) for name, packer in zip(names, packs, strict=True)]

    def unpack(raw: Any) -> Any:
        if type(raw) is not list or len(raw) != size:
            refuse(f"a list of {size} fields ({', '.join(names)})", raw)
        return build(*[unpacker(item) for unpacker, item in zip(unpacks, raw, strict=True)])

    return Field(pack, unpack)


def keyword_struct(kind: Callable[..., Any], *fields: tuple[str, Field]) -> Field:
    """Return `struct` for a class whose parts are given by keyword."""
    names = tuple(name for name, _ in fields)
    return struct(lambda *parts: kind(**dict(zip(names, parts, strict=True))), *fields)


def either(one: Field, other: Field, size: int) -> Field:
    """Return the field of a list that is the first one's if it has `size` items, else the other's. It packs as the first."""

    def unpack(raw: Any) -> Any:
        is_first = type(raw) is list and len(raw) == size
        return (one if is_first else other).unpack(raw)

    return Field(one.pack, unpack)


def pairs(key: Field, value: Field, count_max: int) -> Field:
    """Return the field of a tuple of (key, value) tuples, sorted by key and without repeats."""

    def pack(items: Any) -> Any:
        return [[key.pack(k), value.pack(v)] for k, v in items]

    def unpack(raw: Any) -> Any:
        if type(raw) is not list or len(raw) > count_max:
            refuse(f"a list of at most {count_max} pairs", raw)
        found = []
        for item in raw:
            if type(item) is not list or len(item) != 2:
                refuse("a pair", item)
            found.append((key.unpack(item[0]), value.unpack(item[1])))
        if any(found[i][0] >= found[i + 1][0] for i in range(len(found) - 1)):
            refuse("pairs sorted by key, each key once", raw)
        return tuple(found)

    return Field(pack, unpack)


def _pack_address(value: Address) -> Any:
    return [pack_host(value.host), value.port]


def _unpack_address(raw: Any) -> Address:
    if type(raw) is not list or len(raw) != 2 or type(raw[0]) is not bytes:
        refuse("an address", raw)
    if type(raw[1]) is not int or not 0 < raw[1] < 65536:
        refuse("a port from 1 to 65535", raw[1])
    try:
        return Address(unpack_host(raw[0]), raw[1])
    except ValueError:
        refuse("4 or 16 bytes of address", raw[0])


address = Field(_pack_address, _unpack_address)
