"""What stands in words: docstrings, sources, and the reasons for what a tool was told to overlook."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tests.tidy.source import ROOT, Source

_CITATION = re.compile(r"\[([A-Za-z][A-Za-z0-9-]*)(?:[ ,]*§[^\]]*)?\]")
_SECTION = re.compile(r"§((?:\d+|[IVX]+)(?:\.(?:\d+|[A-Z]\b))*)")
_KEY = re.compile(r"^\*\*\[([A-Za-z][A-Za-z0-9-]*)\]\*\*", re.MULTILINE)
_NOQA = re.compile(r"#\s*noqa\b(?P<rules>:\s*[A-Z]+[0-9]+(?:, ?[A-Z]+[0-9]+)*)?(?P<reason>.*)")
_IGNORE = re.compile(r"#\s*type:\s*ignore(?P<rules>\[[a-z, -]+\])?(?P<reason>.*)")
_FORMS = "# noqa: CODE - why; # type: ignore[code]  # why"
# Spelled with classes of one letter, so that this file passes its own rules.
_MACHINE = re.compile(r"(?<![\w.~}])/(?:[w]ork|[r]oot|[h]ome|[U]sers|[m]nt)/\w")
_UNFINISHED = re.compile(r"\b(?:[T]ODO|[F]IXME|[X]XX|[H]ACK)\b")


def module_docstring(source: Source) -> Iterator[str]:
    """A module begins with what it is for, in a first line that ends where its sentence ends."""
    docstring = ast.get_docstring(source.tree)
    if not docstring:
        yield "1: a module docstring is expected"
        return
    first = docstring.splitlines()[0]
    if len(first.split()) < 3 or not first.endswith((".", "?", "!")):
        yield f"1: the first line is a sentence, found {first!r}"


def keys_of(text: str) -> set[str]:
    """Return the keys that a text of references defines."""
    return set(_KEY.findall(text))


def sections_of(text: str) -> dict[str, set[str]]:
    """Return, for each key, the sections that its entry mentions."""
    entries = _KEY.split(text)[1:]
    return {
        key: set(_SECTION.findall(body))
        for key, body in zip(entries[::2], entries[1::2], strict=True)
    }


def citations(source: Source) -> Iterator[str]:
    """Every source that a docstring cites stands in docs/references.md, section by section."""
    known = sections_of((ROOT / "docs" / "references.md").read_text(encoding="utf-8"))
    for node in ast.walk(source.tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for cited in _CITATION.finditer(_sources_part(ast.get_docstring(node) or "")):
            line = getattr(node, "lineno", 1)
            if cited[1] not in known:
                yield f"{line}: [{cited[1]}] is not in docs/references.md"
            else:
                for section in set(_SECTION.findall(cited[0])) - known[cited[1]]:
                    yield f"{line}: [{cited[1]} §{section}] is not in docs/references.md"


def _sources_part(docstring: str) -> str:
    """Return the paragraphs that name sources: brackets elsewhere may mean anything."""
    paragraphs = docstring.split("\n\n")
    return "\n\n".join(text for text in paragraphs if "Source:" in text or "§" in text)


def suppressions(source: Source) -> Iterator[str]:
    """Whoever tells a tool to look away says which rule, and why: behind it, or in a comment just above.

    A table's rows may share the reason of the row above.
    """
    explained: dict[int, str] = {}  # the line -> the rules looked away from; "" for a plain comment
    for line, comment in _comments(source.text):
        found = _NOQA.search(comment) or _IGNORE.search(comment)
        if found is None:
            explained[line] = ""
            continue
        rules = (found["rules"] or "").strip(": []")
        has_reason = len(found["reason"].strip(" -#")) > 5 or explained.get(line - 1) in {"", rules}
        if rules and has_reason:
            explained[line] = rules
        else:
            yield f"{line}: expected a rule and a reason ({_FORMS}), found {comment!r}"


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def machine_paths(source: Source) -> Iterator[str]:
    """Nothing depends on where somebody's checkout or home is."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if found := _MACHINE.search(line):
            yield f"{number}: a path of one machine: {found[0]}…"


def unfinished(source: Source) -> Iterator[str]:
    """What is left to do is not left in the code."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if found := _UNFINISHED.search(line):
            yield f"{number}: {found[0]}"
