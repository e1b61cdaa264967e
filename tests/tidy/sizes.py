"""How long a file, a function, a class and a list of parameters may be, and what a file is not called."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePath

from tests.tidy.source import Source

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
PUBLIC_METHODS_MAX = 12
POSITIONAL_PARAMETERS_MAX = 5
# Names that say nothing: what is in such a file belongs to a noun that has one.
_FORBIDDEN = {"util", "common", "helper", "type", "model", "base", "manager", "misc"}


def file_length(source: Source) -> Iterator[str]:
    """A file fits a few screens."""
    lines = source.text.count("\n")
    if lines > FILE_LINES_MAX:
        yield f"{lines} lines, at most {FILE_LINES_MAX}"


def function_length(source: Source) -> Iterator[str]:
    """A function fits one screen."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{node.lineno}: {node.name} has {lines} lines, at most {FUNCTION_LINES_MAX}"


def public_methods(source: Source) -> Iterator[str]:
    """A class does one thing."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef):
            names = [
                item.name
                for item in node.body
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)
                and not item.name.startswith("_")
            ]
            if len(names) > PUBLIC_METHODS_MAX:
                yield (
                    f"{node.lineno}: {node.name} has {len(names)} public methods, "
                    f"at most {PUBLIC_METHODS_MAX}"
                )


def positional_parameters(source: Source) -> Iterator[str]:
    """A call can be read without looking up the order of its arguments."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [item.arg for item in (*node.args.posonlyargs, *node.args.args)]
            count = len(names) - (names[:1] in (["self"], ["cls"]))
            if count > POSITIONAL_PARAMETERS_MAX:
                yield (
                    f"{node.lineno}: {node.name} takes {count} positional parameters, "
                    f"at most {POSITIONAL_PARAMETERS_MAX}"
                )


def file_name(source: Source) -> Iterator[str]:
    """A file is called after the noun that it holds."""
    for part in PurePath(source.place).with_suffix("").parts:
        if part.removesuffix("s") in _FORBIDDEN:
            yield f"a file or folder called {part!r} names no noun"
