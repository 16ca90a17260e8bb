"""What users read is written in the words of docs/glossary.md: no turn of phrase that was banned comes back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

BANNED = re.compile(
    r"(?<!there )\bis no\b(?! longer)|\bstands?\b(?! for\b)|\blies\b|\bgoes on\b|\btakes? (?:it )?back\b|\btaken back\b"
    r"|\bis good for\b|\bmend(?:s|ed)?\b|\bparted by\b"
    r"|\bby your word\b|\bgone by\b|\bgiven? back\b|\brehears|\bposture\b"
    r"|\bplacard\b|\bneed me\b",
    re.IGNORECASE,
)
"""Turns that are no plain English, and words for which the field has its own (docs/glossary.md)."""

NOT_FOR_PEOPLE = {
    "helix_tui/core/memory/guard",  # patterns of what others write
    "helix_tui/core/ask/retrieval/question.py",  # words of questions
    "helix_tui/core/ask/retrieval/senses.py",
    "helix_tui/core/ask/retrieval/subject.py",
    "helix_tui/core/ask/answer/compaction.py",  # what a model is told
    "helix_tui/core/memory/recall.py",
    "helix_ddx/__main__.py",
    "helix_ddx/program.py",  # "stand-in"
}
_SQL = re.compile(r"\b(?:SELECT|INSERT|CREATE|UPDATE|DELETE)\b")


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of every string of a file that is no docstring; a gap in an f-string is ``{}``."""
    tree = ast.parse(path.read_bytes())
    inside: set[int] = set()
    for node in ast.walk(tree):
        for statement in getattr(node, "body", ()) if isinstance(getattr(node, "body", ()), list) else ():
            if isinstance(statement, ast.Expr):
                inside.add(id(statement.value))
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def for_people() -> Iterator[tuple[str, str]]:
    """(place, text) of everything with at least two words, but patterns, statements for SQLite and rules."""
    for path in sorted((*ROOT.glob("helix_tui/**/*.py"), *ROOT.glob("helix_ddx/**/*.py"))):
        name = path.relative_to(ROOT).as_posix()
        if any(name.startswith(each) for each in NOT_FOR_PEOPLE):
            continue
        for line, text in texts(path):
            if " " in text.strip() and not _SQL.search(text) and "\\b" not in text:
                yield f"{name}:{line}", text


def test_no_banned_turn_is_shown() -> None:
    found = [f"{place}: {text[:120]!r}" for place, text in for_people() if BANNED.search(text)]
    assert found == []


def test_the_search_sees_what_is_shown() -> None:
    shown = list(for_people())
    assert len(shown) > 3_000
    assert any("could not" in text for _, text in shown)


def test_documents_use_the_same_words() -> None:
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    found = [
        f"{path.name}: {match[0]!r} in {line.strip()[:100]!r}"
        for path in documents
        for line in path.read_text("utf-8").splitlines()
        for match in BANNED.finditer(line)
    ]
    assert found == []
