"""What a pure floor never does: read a clock, draw entropy, do I/O, depend on hashes or addresses.

import-linter forbids the modules; these rules see single names, which come with modules that are
fine otherwise (`random.Random` is handed in, `random.random` is not), and builtins.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.source import Source

_BUILTINS = {"hash", "id", "print", "open", "input", "breakpoint", "exec", "eval", "__import__"}
_MODULES = {
    "os", "time", "secrets", "uuid", "socket", "threading", "subprocess", "logging", "asyncio", "trio",
    "weakref", "tempfile", "pathlib", "io", "sys", "gc", "warnings", "locale", "platform",
}  # fmt: skip
_CLOCKS = {"now", "utcnow", "today"}
_WHOLE = {"sorted", "set", "frozenset", "any", "all", "len", "min", "max", "bool"}
_ORDERED = {
    "list",
    "tuple",
    "iter",
    "enumerate",
    "zip",
    "map",
    "filter",
    "reversed",
    "fromkeys",
    "join",
}
# Sets of these iterate in the same order in every process, given the same history.
_STABLE = {"int", "NodeId", "MeshId", "bool", "tuple", "set", "frozenset", "None"}


def banned_names(source: Source) -> Iterator[str]:
    """No clock, entropy, I/O, hash or object address, by whatever name it was imported."""
    imported: dict[str, str] = {}  # the name here -> the full name
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            names = {(item.asname or item.name).partition(".")[0]: item.name for item in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = {item.asname or item.name: f"{node.module}.{item.name}" for item in node.names}
        else:
            continue
        imported |= names
        for full in names.values():
            if full.partition(".")[0] in _MODULES or _is_entropy(full):
                yield f"{node.lineno}: imports {full}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.expr) and (what := _banned(node, imported)):
            yield f"{node.lineno}: {what}"


def _banned(node: ast.expr, imported: dict[str, str]) -> str:
    """Return what is wrong with one expression, "" when nothing is."""
    if isinstance(node, ast.Name) and node.id in _BUILTINS and isinstance(node.ctx, ast.Load):
        return f"uses {node.id}"
    if isinstance(node, ast.Attribute):
        full = _full_name(node, imported)
        if _is_entropy(full) or (full.startswith("datetime.") and node.attr in _CLOCKS):
            return f"uses {full}"
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        called = _full_name(node.func, imported)
        return "random.Random without a seed draws entropy" if called == "random.Random" else ""
    return ""


def _is_entropy(full: str) -> bool:
    return full.startswith("random.") and not full.startswith("random.Random")


def _full_name(node: ast.expr, imported: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return imported.get(node.id, "")
    if isinstance(node, ast.Attribute):
        left = _full_name(node.value, imported)
        return f"{left}.{node.attr}" if left else ""
    return ""


def set_iteration(source: Source) -> Iterator[str]:
    """No order is taken from a set, unless of numbers: strings hash differently in each process."""
    attributes = _set_names(source.tree, ast.Attribute)
    yield from _iterations(source.tree, attributes)


def _iterations(scope: ast.AST, names: set[str]) -> Iterator[str]:
    """Check one function (or the module) without the functions in it, then those."""
    inner = [
        node for node in _own(scope) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    names = names | _set_names(scope, ast.Name)
    harmless: set[ast.AST] = set()  # iterated, but their order is thrown away
    for node in _own(scope):
        if isinstance(node, ast.Call) and _called(node) in _WHOLE:
            harmless.update(node.args)
    for node in _own(scope):
        for taken in _taken_in_order(node, harmless):
            if _is_set(taken, names):
                yield f"{taken.lineno}: takes the order of a set: {ast.unparse(taken)}"
    for function in inner:
        yield from _iterations(function, names)


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield every node below `scope`, but only the heads of the functions in it."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _own(child)


def _taken_in_order(node: ast.AST, harmless: set[ast.AST]) -> Iterator[ast.expr]:
    """Yield the expressions whose order `node` depends on."""
    if isinstance(node, ast.For | ast.AsyncFor):
        yield node.iter
    elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
        if node not in harmless:
            yield from (part.iter for part in node.generators)
    elif isinstance(node, ast.Starred):
        yield node.value
    elif isinstance(node, ast.Call):
        if _called(node) in _ORDERED and node not in harmless:
            yield from node.args
        elif _called(node) == "pop" and not node.args and isinstance(node.func, ast.Attribute):
            yield node.func.value


def _called(node: ast.Call) -> str:
    func = node.func
    return func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")


def _set_names(scope: ast.AST, kind: type[ast.Name | ast.Attribute]) -> set[str]:
    """Return the names (or the attributes) that hold sets of unstable order."""
    unstable: set[str] = set()
    stable: set[str] = set()
    for node in _own(scope) if kind is ast.Name else ast.walk(scope):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, kind):
            _sort_name(_name(node.target), node.annotation, unstable, stable)
        elif isinstance(node, ast.AnnAssign) and kind is ast.Attribute:
            _sort_name(_name(node.target), node.annotation, unstable, stable)  # a dataclass's field
        elif isinstance(node, ast.arg) and node.annotation is not None and kind is ast.Name:
            _sort_name(node.arg, node.annotation, unstable, stable)
        elif isinstance(node, ast.Assign) and _is_set(node.value, set()):
            unstable.update(_name(target) for target in node.targets if isinstance(target, kind))
    return unstable - stable


def _sort_name(name: str, annotation: ast.expr, unstable: set[str], stable: set[str]) -> None:
    words = {part.id for part in ast.walk(annotation) if isinstance(part, ast.Name)}
    if words & {"set", "frozenset", "AbstractSet"} and isinstance(annotation, ast.Subscript):
        is_outermost = _name(annotation.value) in {"set", "frozenset", "AbstractSet"}
        if is_outermost:
            (stable if words <= _STABLE else unstable).add(name)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _is_set(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        return _called(node) in {"set", "frozenset"}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Sub):
        return _is_set(node.left, names) or _is_set(node.right, names)
    return isinstance(node, ast.Name | ast.Attribute) and _name(node) in names
