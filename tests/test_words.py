"""What users read is written in the words of docs/glossary.md: no turn of phrase that was banned comes back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.sources import nodes_of, syntax_of

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
    inside: set[int] = set()
    for node in nodes_of(path):
        for statement in getattr(node, "body", ()) if isinstance(getattr(node, "body", ()), list) else ():
            if isinstance(statement, ast.Expr):
                inside.add(id(statement.value))
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values),
            )
    for node in nodes_of(path):
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


_MANY = re.compile(
    r" (?:[a-z]+ ){0,2}(?:beads|attempts|documents|files|spans|memories|lessons|questions|commands|lines|times|rows"
    r"|skills|differences|operations|characters|messages|nodes|symbols|sources|children|failures|proposals"
    r"|changes|claims|issues|patterns|answers|settings|tasks|epics|reviews|checks|events|bundles|conflicts|passages)\b"
)


def _bare_counts(path: Path) -> Iterator[int]:
    """Lines with an f-string where a number that may be 1 stands before a noun in the plural."""

    def look(node: ast.AST, guarded: bool) -> Iterator[int]:
        if isinstance(node, ast.JoinedStr) and not guarded:
            for before, value, after in zip([None, *node.values], node.values, node.values[1:], strict=False):
                # "1 of 1 children" may stay
                part = isinstance(before, ast.Constant) and str(before.value).endswith(" of ")
                number = isinstance(value, ast.FormattedValue) and (
                    (isinstance(value.value, ast.Call) and ast.unparse(value.value.func) == "len")
                    or isinstance(value.value, ast.BinOp)
                    or (value.format_spec is not None and ast.unparse(value.format_spec) == "f','")
                )
                constant = (
                    isinstance(value, ast.FormattedValue) and ast.unparse(value.value).rpartition(".")[2].isupper()
                )
                if (
                    number
                    and not constant
                    and not part
                    and isinstance(after, ast.Constant)
                    and _MANY.match(str(after.value))
                ):
                    yield node.lineno
        for child in ast.iter_child_nodes(node):
            yield from look(child, guarded or (isinstance(node, ast.If | ast.IfExp) and _asks_for_one(node.test)))

    yield from look(syntax_of(path), False)


def _asks_for_one(test: ast.expr) -> bool:
    """Whether a condition compares something with a small number, as ``len(beads) > 1`` does."""
    compared = [part for part in ast.walk(test) if isinstance(part, ast.Compare)]
    return any(
        isinstance(side, ast.Constant) and side.value in (1, 2, 3) for part in compared for side in part.comparators
    )


def test_one_of_a_thing_is_not_named_in_the_plural(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text(
        'a = f"{len(b)} beads wait"\nc = f"{len(b)} beads" if len(b) > 1 else "one"\nd = f"{n:,} more lines"\n'
    )
    assert list(_bare_counts(planted)) == [1, 3]
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(ROOT.glob("helix_tui/**/*.py"))
        for line in _bare_counts(path)
    ]
    assert found == [], "core.ground.text.counted says `1 bead`, `2 beads`"
