"""Every rule of the house holds for every file, and each is shown to fail on a planted violation."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.tidy import prose, purity, sizes
from tests.tidy.source import CODE, PROSE, Rule, Source, pure_sources, python_sources, text_sources


class House(NamedTuple):
    """One rule, the files that keep it, and texts that break it."""

    rule: Rule
    files: list[Source]
    broken: tuple[str, ...]


code = python_sources(*CODE)
ours = python_sources("mesh")
texts = text_sources(*PROSE)
deterministic = pure_sources() + python_sources("mesh/sim")

# Planted violations are put together from pieces where the whole would break a rule in this file.
_LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 60
_WIDE_CLASS = "class C:\n" + "".join(f"    def f{n}(self): ...\n" for n in range(13))
HOUSE = [
    House(sizes.file_length, code, ("x = 1\n" * 401,)),
    House(sizes.function_length, code, (_LONG_FUNCTION, f"async {_LONG_FUNCTION}")),
    House(sizes.public_methods, ours, (_WIDE_CLASS,)),
    House(
        sizes.positional_parameters,
        code,
        ("def f(a, b, c, d, e, g): ...", "class C:\n    def f(self, a, b, c, d, e, g): ..."),
    ),
    House(
        purity.banned_names,
        pure_sources(),
        (
            "import os",
            "import os.path as elsewhere",
            "from time import monotonic",
            "import random\nrandom.random()",
            "import random as dice\ndice.shuffle([])",
            "from random import choice",
            "import random\nrandom.Random()",
            "from random import Random\nRandom()",
            "import random\nrandom.SystemRandom()",
            "import datetime\ndatetime.datetime.now()",
            "from datetime import date\ndate.today()",
            "hash('a')",
            "sorted([], key=id)",
            "print()",
            "open('f')",
            "import uuid",
            "from secrets import token_hex",
            "import weakref",
        ),
    ),
    House(
        purity.set_iteration,
        deterministic,
        (
            "for x in {'a', 'b'}: ...",
            "for x in set(names): ...",
            "[x for x in frozenset(names)]",
            "list({x for x in names})",
            "next(iter(set(names)))",
            "','.join(set(names))",
            "print(*{'a'})",
            "for x in set(a) | b: ...",
            "{x: 1 for x in set(names)}",
            "def f(names: set[str]):\n    for x in names: ...",
            "def f(names: frozenset[tuple[str, int]]):\n    return list(names)",
            "class C:\n    names: set[str]\n    def g(self):\n        return self.names.pop()",
            "def f(self):\n    self.names = set()\n    return list(self.names)",
            "def f():\n    names = {'a'}\n    return [x for x in names]",
        ),
    ),
    House(
        prose.module_docstring, ours, ("x = 1", '"""Things."""', '"""Some words without an end"""')
    ),
    House(
        prose.citations,
        code,
        (
            '"""A module.\n\nSource: [Nowhere §1].\n"""',
            '"""A module.\n\nSource: [SWIM §9.9].\n"""',
            '"""A module.\n\nSource: [Lifeguard §IX.D].\n"""',
            '"""A module.\n\nSource: [h12].\n"""',
        ),
    ),
    House(
        prose.suppressions,
        code,
        (
            "x = 1  # no" + "qa",
            "x = 1  # no" + "qa: E501",
            "x = 1  # no" + "qa: E501 - a table\ny = 1  # no" + "qa: E741",
            "x = 1  # type: " + "ignore",
            "x = 1  # type: " + "ignore[misc]",
        ),
    ),
    House(prose.machine_paths, texts, ("see /" + "home/me/mesh", "cd /" + "root/x")),
    House(prose.unfinished, texts, ("# TO" + "DO: later",)),
]
by_rule = pytest.mark.parametrize("house", HOUSE, ids=lambda house: str(house.rule.__name__))

# What a rule must not take for a violation.
FINE = [
    (purity.set_iteration, "for x in sorted({'a', 'b'}): ..."),
    (purity.set_iteration, "any(x for x in set(names))"),
    (purity.set_iteration, "{x for x in set(names)}"),
    (purity.set_iteration, "sorted(x.name for x in set(names))"),
    (purity.set_iteration, "def f(ids: set[int]):\n    for x in ids: ..."),
    (purity.set_iteration, "'a' in {'a', 'b'}"),
    (purity.set_iteration, "def f():\n    n = {'a'}\ndef g(n: list[str]):\n    for x in n: ..."),
    (
        purity.banned_names,
        "import random\nrandom.Random(5)\ndef f(rng: random.Random): rng.random()",
    ),
    (purity.banned_names, "import datetime\ndatetime.datetime.fromtimestamp(0)"),
    (prose.citations, '"""A module.\n\nSource: [SWIM §4.2].\n"""'),
    (prose.suppressions, "x = 1  # no" + "qa: E501 - a table reads better"),
    (prose.suppressions, "x = 1  # type: " + "ignore[misc]  # the stub is wrong"),
    (prose.suppressions, "# A table reads better.\nx = 1  # no" + "qa: E501"),
    (prose.suppressions, "x = 1  # no" + "qa: E501 - a table\ny = 1  # no" + "qa: E501"),
    (prose.machine_paths, "echo > /dev/null; ls /proc/self/fd"),
]


@by_rule
def test_the_rule_holds_everywhere(house: House) -> None:
    found = [f"{file.place}:{text}" for file in house.files for text in house.rule(file)]
    assert not found, "\n".join(["", *found])


@by_rule
def test_the_rule_looks_at_files(house: House) -> None:
    assert len(house.files) >= 10


@by_rule
def test_the_rule_fails_on_each_planted_violation(house: House) -> None:
    for text in house.broken:
        assert list(house.rule(Source("planted.py", text))), text


@pytest.mark.parametrize(("rule", "text"), FINE)
def test_the_rule_lets_pass_what_is_fine(rule: Rule, text: str) -> None:
    assert not list(rule(Source("planted.py", text)))


@pytest.mark.parametrize("source", code, ids=lambda source: str(source.place))
def test_a_file_is_called_after_its_noun(source: Source) -> None:
    assert not list(sizes.file_name(source))


@pytest.mark.parametrize(
    "place", ["mesh/utils.py", "mesh/common/x.py", "tests/helpers.py", "mesh/node/manager.py"]
)
def test_a_name_that_says_nothing_is_refused(place: str) -> None:
    assert list(sizes.file_name(Source(place, "")))
