"""The documents hold together: links lead somewhere, and what docstrings cite of them is there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
SOURCES = sorted(
    path for folder in ("helix_tui", "helix_ddx", "bench", "tests") for path in (ROOT / folder).rglob("*.py")
)

_CODE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_PATH = re.compile(r"\bdocs/[\w./-]*\w")
_FORMAT = re.compile(r"docs/formats/(\w+\.md)((?:(?:,| and| or)?\s*§\d[\w.]*|[–-]\d[\w.]*)*)")
_SECTION = re.compile(r"\d[\w.]*")
_DECISION = re.compile(r"docs/decisions/(\d{4}(?:(?:,| and)\s+\d{4}\b)*)")
_MODULE = re.compile(r"`((?:helix_tui|helix_ddx|core|cli|screens|widgets|themes|tests|bench)/[\w/]+(?:\.py)?)`")
_HEADING = re.compile(r"^#{1,6} §(\d\w*(?:\.\w+)*)", re.MULTILINE)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_paths_of_a_document_lead_somewhere(document: Path) -> None:
    """A relative link, and each ``docs/…`` that its text names."""
    assert list(dead_links(document.parent, document.read_text("utf-8"))) == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_that_a_document_names_are_there(document: Path) -> None:
    """``core/ddx/dialect.py`` and ``helix_tui/core/ddx`` alike; a shorter name is looked for nowhere."""
    assert list(dead_modules(document.read_text("utf-8"))) == []


def test_what_docstrings_cite_of_the_documents_is_there() -> None:
    """Formats with their sections, decisions by number, other documents by name."""
    dead = [(str(path.relative_to(ROOT)), list(dead_citations(docstrings(path)))) for path in SOURCES]
    assert [each for each in dead if each[1]] == []


def test_sections_are_numbered_once() -> None:
    """A citation by number means one section."""
    for document in sorted((DOCS / "formats").glob("*.md")):
        numbers = _HEADING.findall(document.read_text("utf-8"))
        assert len(numbers) == len(set(numbers)), document


def test_every_decision_is_listed_and_numbered_once() -> None:
    """The table of decisions has each record, and no number stands for two."""
    records = [path.name for path in sorted((DOCS / "decisions").glob("[0-9]*.md"))]
    listed = (DOCS / "decisions" / "README.md").read_text("utf-8")
    assert [name for name in records if f"({name})" not in listed] == []
    assert len({name[:4] for name in records}) == len(records)


def test_the_old_rulings_all_went_somewhere() -> None:
    """Whoever meets "ruling 30" in a commit finds its record."""
    text = (DOCS / "decisions" / "README.md").read_text("utf-8")
    assert sorted(int(number) for number in re.findall(r"\| (\d+) \| \[\d{4}\]", text)) == list(range(1, 42))


def test_a_dead_link_and_a_dead_citation_are_found() -> None:
    """The tests above can fail."""
    text = "[a](gone.md) `docs/none.md` [b](formats/ddx.md) [c](https://example.com/x.md)"
    assert list(dead_links(DOCS, text)) == ["gone.md", "docs/none.md"]
    assert list(dead_modules("`core/gone/`, `core/ddx/`, `helix_ddx/none.py`")) == [
        "core/gone/",
        "helix_ddx/none.py",
    ]
    cited = "docs/formats/ddx.md §4.1 and §77; docs/decisions/0001, 9999; docs/formats/ddx.md §3,\n    §78."
    assert list(dead_citations(cited)) == ["ddx.md §77", "ddx.md §78", "decision 9999"]


def dead_links(folder: Path, text: str) -> Iterator[str]:
    """Relative links that lead nowhere from ``folder``, and ``docs/…`` paths that do not exist."""
    prose = _CODE.sub("", text)
    for target in _LINK.findall(prose):
        place = target.partition("#")[0]
        if place and "://" not in place and not (folder / place).exists():
            yield target
    for path in _PATH.findall(prose):
        if not (ROOT / path).exists() and not list(ROOT.glob(f"{path}-*.md")):  # a record may go by its number
            yield path


def dead_modules(text: str) -> Iterator[str]:
    """Folders and modules in backticks that are not there; a leading ``helix_tui/`` may be left out."""
    for path in _MODULE.findall(_CODE.sub("", text)):
        if not (ROOT / path).exists() and not (ROOT / "helix_tui" / path).exists():
            yield path


def dead_citations(source: str) -> Iterator[str]:
    """Sections, records and files under ``docs/`` that a source names and that are not there."""
    text = re.sub(r"\s+", " ", source)
    for name, sections in _FORMAT.findall(text):
        known = headings(name)
        if known is None:
            yield name
        else:
            yield from (f"{name} §{number}" for number in numbers(sections) if number not in known)
    known_records = {path.name[:4] for path in (DOCS / "decisions").glob("[0-9]*.md")}
    for found in _DECISION.findall(text):
        yield from (f"decision {each}" for each in re.findall(r"\d{4}", found) if each not in known_records)
    for path in re.findall(r"\bdocs/[\w/-]+\.md\b", text):
        if not (ROOT / path).exists() and "/formats/" not in path:
            yield path


def docstrings(path: Path) -> str:
    """Docstrings of a module, those below attributes too; nothing where it names no document."""
    source = path.read_text("utf-8")
    if "docs/" not in source:
        return ""
    found = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Expr))
    return "\n\n".join(each.value for each in found if isinstance(each, ast.Constant) and isinstance(each.value, str))


def numbers(sections: str) -> Iterable[str]:
    """``§3.2–3.3 and §4.`` as 3.2, 3.3, 4."""
    return [each.rstrip(".") for each in _SECTION.findall(sections)]


@cache
def headings(name: str) -> frozenset[str] | None:
    """Numbers of the sections of a format; None where there is no such document."""
    path = DOCS / "formats" / name
    return frozenset(_HEADING.findall(path.read_text("utf-8"))) if path.is_file() else None


_GONE = re.compile(
    r"(?<![\w/])(?:reference|design)/[a-z]+\.md|\brulings?(?:\.md)? \d|\bseeds? 00\d|engines\.md",
    re.IGNORECASE,
)


def test_no_docstring_cites_what_no_clone_has() -> None:
    """Sources that were outside the repository are in docs/formats and docs/decisions now."""
    cited = [
        f"{path.relative_to(ROOT)}: {found}"
        for path in SOURCES
        if path != Path(__file__).resolve()
        for found in _GONE.findall(re.sub(r"\s+", " ", path.read_text("utf-8")))
    ]
    assert cited == []


@pytest.mark.parametrize(("words", "page"), [((), "commands.md"), (("outcomes",), "outcomes.md")])
def test_a_reference_is_what_the_program_prints(words: tuple[str, ...], page: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "helix_tui", "help", *words, "--markdown"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    made = " ".join(("helix-tui help", *words, "--markdown"))
    assert (DOCS / page).read_text("utf-8") == done.stdout, f"{made} > docs/{page}"
