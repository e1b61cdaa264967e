"""The documents tell the truth: what they name exists."""

from __future__ import annotations

import os
import re
import stat

import pytest

from mesh.cli.main import build_parser
from tests.tidy.source import ROOT, Source, text_sources

DOCUMENTS = [file for file in text_sources("README.md", "docs") if file.place.endswith(".md")]
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
_FILE = re.compile(r"`((?:[a-z_]+/)+[a-z_]+\.(?:py|sh))`")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_COMMAND = re.compile(r"(?:^ {4}|`|/bin/|&& )(?:python -m )?mesh ([a-z]+)\b", re.MULTILINE)
_SCRIPT = re.compile(r"(?:^ {4}|`)(?:\./)?((?:\.ci|examples|bench)/[\w./-]+)", re.MULTILINE)

by_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.place))


def links_to_nowhere(document: Source) -> list[str]:
    folder = (ROOT / document.place).parent
    return [link for link in _LINK.findall(document.text) if not (folder / link).exists()]


def files_that_are_not(document: Source) -> list[str]:
    """Files are named from the root, or from mesh/."""
    named = _FILE.findall(document.text)
    return [
        name for name in named if not ((ROOT / name).exists() or (ROOT / "mesh" / name).exists())
    ]


def named_tests_that_are_not(document: Source) -> list[str]:
    found = []
    for name, test in _TEST.findall(document.text):
        path = ROOT / name
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if f"def {test}(" not in text:
            found.append(f"{name}::{test}")
    return found


def commands_that_are_not(document: Source) -> list[str]:
    known = build_parser()[1]
    return [name for name in _COMMAND.findall(document.text) if name not in known]


def scripts_that_cannot_run(document: Source) -> list[str]:
    found = []
    for name in _SCRIPT.findall(document.text):
        path = ROOT / name
        is_program = path.is_file() and (os.access(path, os.X_OK) or path.suffix == ".py")
        if not is_program and not path.is_dir():
            found.append(name)
    return found


@by_document
def test_every_link_leads_somewhere(document: Source) -> None:
    assert not links_to_nowhere(document)


@by_document
def test_every_file_that_is_named_exists(document: Source) -> None:
    assert not files_that_are_not(document)


@by_document
def test_every_test_that_is_named_exists(document: Source) -> None:
    assert not named_tests_that_are_not(document)


def test_every_claim_of_security_names_a_test() -> None:
    (security,) = (file for file in DOCUMENTS if file.place == "docs/security.md")
    assert len(_TEST.findall(security.text)) >= 40


@by_document
def test_every_script_that_is_named_can_be_run(document: Source) -> None:
    assert not scripts_that_cannot_run(document)


def test_every_command_of_the_readme_exists() -> None:
    (readme,) = (file for file in DOCUMENTS if file.place == "README.md")
    assert len(_COMMAND.findall(readme.text)) >= 5
    assert not commands_that_are_not(readme)


def test_a_document_that_names_what_is_not_there_is_found_out() -> None:
    wrong = Source(
        "docs/wrong.md",
        "[x](nowhere.md)\n`membership/nothing.py` `tests/conftest.py::test_nothing`\n\n    mesh fly --away\n\n    .ci/nothing\n",
    )
    assert links_to_nowhere(wrong) == ["nowhere.md"]
    assert files_that_are_not(wrong) == ["membership/nothing.py"]
    assert named_tests_that_are_not(wrong) == ["tests/conftest.py::test_nothing"]
    assert commands_that_are_not(wrong) == ["fly"]
    assert scripts_that_cannot_run(wrong) == [".ci/nothing"]


@pytest.mark.parametrize("name", ["check", "run", "nightly"])
def test_the_scripts_of_the_house_are_executable(name: str) -> None:
    assert (ROOT / ".ci" / name).stat().st_mode & stat.S_IXUSR


def test_every_dependency_has_its_reason() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    reasons = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    named = re.findall(r'^ {4}"([a-z-]+)>=', project, re.MULTILINE)
    assert len(named) >= 5
    assert [name for name in named if f"| {name} |" not in reasons] == []
