"""One file as the tidy rules see it, and the files of this repository.

A rule is a function from a source to complaints: "line: what is wrong". No complaints: tidy.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

ROOT = Path(__file__).parents[2]
CODE = ("mesh", "tests", "bench", "examples")
PROSE = ("README.md", "pyproject.toml", "docs", ".ci", *CODE)
PURE = ("core", "wire", "membership", "placement", "registers", "work", "contest", "node")


class Source(NamedTuple):
    """A file's place below the repository's root, and its text."""

    place: str
    text: str

    @property
    def tree(self) -> ast.Module:
        return _parse(self.text)


Rule: TypeAlias = Callable[[Source], Iterator[str]]


@functools.cache
def _parse(text: str) -> ast.Module:
    return ast.parse(text)


@functools.cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def _files(*places: str) -> Iterator[Path]:
    for place in places:
        found = ROOT / place
        yield from sorted(found.rglob("*")) if found.is_dir() else [found]


def python_sources(*places: str) -> list[Source]:
    """Every Python file below these places."""
    return [
        Source(str(path.relative_to(ROOT)), _read(path))
        for path in _files(*places)
        if path.suffix == ".py"
    ]


def text_sources(*places: str) -> list[Source]:
    """Every text file below these places; binary ones and what a run leaves behind are left out."""
    found = []
    for path in _files(*places):
        if not path.is_file() or "results" in path.parts or "__pycache__" in path.parts:
            continue
        try:
            found.append(Source(str(path.relative_to(ROOT)), _read(path)))
        except UnicodeDecodeError:
            continue
    return found


def pure_sources() -> list[Source]:
    """Every file of the pure floors."""
    return python_sources("mesh/errors.py", *(f"mesh/{package}" for package in PURE))
