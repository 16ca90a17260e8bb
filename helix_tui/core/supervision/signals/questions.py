"""HELIX's questions to a person as data: raised by a run or a stage, shown in *Needs me*, answered anywhere.

`OpenQuestions` keeps them in ``.helix/questions.json``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.record import (
    TERMINAL,
    Bead,
)
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import below, read_bytes
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant, now_ns, parse_instant
from helix_tui.core.ground.writes import replace_file

if TYPE_CHECKING:
    from helix_tui.core.editing.execute.curator import Curator, Result
    from helix_tui.core.editing.execute.gate import WriteGate
    from helix_tui.core.supervision.signals.document_conflicts import DocumentFinding
from helix_tui.core.supervision.signals.escalation import DECISION

WAITS = "waits for "
"""How a reason in that field begins that is a sentence of its own."""

REVIEW_FIRST = f"{WAITS}the review of the work before it"
"""Field with the reason why a run continues without a bead: a person must judge its outcome, or it was tried and stays
open.
"""

MAX_FILE = 8 << 20
MAX_DOCUMENT = 1 << 20

MAX_QUESTION = 8_000
"""Characters of a question that are kept, and shown where it is answered."""

KEPT = 500
"""Maximum questions in the file; the oldest answered ones are dropped first."""

KINDS = ("physics-level", "guidance", "conflict", "ambiguous", "approval", "gap", "clarification")
"""The kinds of questions, the most urgent first."""

_STOPS = frozenset({"physics-level"})
"""Kinds that stop the loop at every level of autonomy while they are open."""

YES = frozenset({"yes", "y", "ok", "approve", "approved", "true", "go"})

_ANSWERS = re.compile(r"(?:answer|record the answer to) (q-\d+)\b")
"""The journal's kind for a change with an answer."""


class Asked(Protocol):
    """A question to a person that a bead waits for."""

    @property
    def id(self) -> str: ...
    @property
    def bead_id(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def answered(self) -> bool: ...


class UnknownQuestion(HelixError, KeyError):
    """The question does not exist, or has been answered."""


class OpenQuestion(Struct, frozen=True):
    """One question."""

    id: str
    kind: str
    text: str
    key: str
    """Its subject; a second one with the same key is not raised while this one is open."""
    bead_id: str = ""
    options: tuple[str, ...] = ()
    raised_at: str = ""
    run_id: str = ""
    answer: str = ""
    answered_at: str = ""
    used: bool = False
    about: tuple[tuple[str, str], ...] = ()
    """The (document, statement) pairs that led to it; withdrawn once one is gone."""
    gone: str = ""
    """Why no answer is needed any more: its cause is gone."""
    bead_at: str = ""
    """When its bead had last changed as it was asked: an earlier close by ddx is not an answer."""

    @property
    def answered(self) -> bool:
        """Whether it is answered, or its cause is gone."""
        return bool(self.answered_at or self.gone)

    @property
    def stops(self) -> bool:
        """Whether nothing may be dispatched before it is answered."""
        return self.kind in _STOPS and not self.answered

    @property
    def approved(self) -> bool:
        """Whether the answer is a yes."""
        return self.answer.strip().lower() in YES


class OpenQuestions:
    """The questions of one project; every change reads them again under the write lock."""

    def __init__(self, project: Project, gate: WriteGate) -> None:
        self.path = project.helix_dir / "questions.json"
        self._gate = gate

    def all(self) -> tuple[OpenQuestion, ...]:
        """Every question, oldest first."""
        return read_questions(self.path)

    def open(self) -> tuple[OpenQuestion, ...]:
        """The unanswered ones, the most urgent first."""
        waiting = [question for question in self.all() if not question.answered]
        return tuple(sorted(waiting, key=lambda each: _urgency(each.kind)))

    def ask(
        self,
        kind: str,
        text: str,
        *,
        key: str,
        bead_id: str = "",
        options: Iterable[str] = (),
        run_id: str = "",
        about: Iterable[tuple[str, str]] = (),
        bead_at: str = "",
    ) -> OpenQuestion:
        """Raise a question, or find the open one with this key.

        Args:
            about: the document statements that led to it.
            bead_at: when the bead had last changed; RFC 3339, as in its record.

        Raises:
            WritesForbidden: --read-only.
            OSError: it cannot be saved.
        """
        with self._gate.open():
            have = list(self.all())
            known = next((each for each in have if each.key == key and not each.answered), None)
            if known is not None:
                return known
            number = 1 + max((_number(each.id) for each in have), default=0)
            question = OpenQuestion(
                f"q-{number}",
                kind,
                clean_line(text, MAX_QUESTION),
                key,
                bead_id,
                tuple(options),
                format_instant(now_ns()),
                run_id,
                about=tuple(about),
                bead_at=bead_at,
            )
            self._write([*have, question])
            return question

    def ask_about(self, finding: DocumentFinding, kind: str = "physics-level", *, run_id: str = "") -> OpenQuestion:
        """Ask which of two conflicting demands holds, or find the open question about it.

        Raises:
            WritesForbidden: --read-only.
            OSError: it cannot be saved.
        """
        return self.ask(kind, finding.text, key=finding.key, run_id=run_id, about=finding.statements)

    def withdraw(self, beads: Mapping[str, Bead]) -> tuple[OpenQuestion, ...]:
        """Withdraw the questions that need no answer any more; return them.

        Raises:
            WritesForbidden: --read-only.
            OSError: it cannot be saved.
        """
        have = self.all()
        why = {each.id: cause for each in have if not each.answered_at and (cause := each.gone or _over(each, beads))}
        # without reading documents: what the file already says is not written again
        stored = {question.id: question.gone for question in read_questions(self.path, look=False)}
        if all(stored.get(number) for number in why):
            return ()
        with self._gate.open():
            self._write([replace(each, gone=why.get(each.id, each.gone)) for each in self.all()])
        return tuple(replace(each, gone=why[each.id]) for each in have if each.id in why and not stored.get(each.id))

    def answer(self, question_id: str, text: str) -> OpenQuestion:
        """Answer a question.

        Raises:
            UnknownQuestion: it does not exist, or has been answered.
            WritesForbidden: --read-only.
        """

        def change(question: OpenQuestion) -> OpenQuestion:
            return replace(question, answer=clean_line(text, 4000), answered_at=format_instant(now_ns()))

        return self._change(lambda each: each.id == question_id and not each.answered, change, question_id)

    def reopen(self, question_id: str) -> OpenQuestion:
        """Reopen a question whose answer was undone.

        Raises:
            UnknownQuestion: it does not exist, or is open already.
            WritesForbidden: --read-only.
        """
        change = lambda question: replace(question, answer="", answered_at="")  # noqa: E731
        return self._change(lambda each: each.id == question_id and each.answered, change, question_id)

    def take_approval(self, key: str) -> bool | None:
        """Use up a given answer: whether it was a yes; None if there is none."""
        given = next((each for each in self.all() if each.key == key and each.answered and not each.used), None)
        if given is None:
            return None
        self._change(lambda each: each.id == given.id, lambda each: replace(each, used=True), given.id)
        return given.approved

    def approved_before(self, key: str) -> bool:
        """Whether the last answer to an approval was a yes, even if used up."""
        given = [each for each in self.all() if each.key == key and each.answered]
        return bool(given) and given[-1].approved

    def _change(
        self, which: Callable[[OpenQuestion], bool], change: Callable[[OpenQuestion], OpenQuestion], name: str
    ) -> OpenQuestion:
        with self._gate.open():
            have = list(self.all())
            place = next((n for n, each in enumerate(have) if which(each)), None)
            if place is None:
                raise UnknownQuestion(name)
            have[place] = change(have[place])
            self._write(have)
            return have[place]

    def _write(self, questions: list[OpenQuestion]) -> None:
        spare = len(questions) - KEPT
        kept = []
        for question in questions:
            # an open question is never dropped, however many there are
            if spare > 0 and question.answered:
                spare -= 1
                continue
            kept.append(question)
        document = {"schema": "questions/1", "questions": kept}
        replace_file(self.path, msgspec.json.encode(document) + b"\n")


def follow_undo(curator: Curator, done: Result | None) -> None:
    """Reopen a question whose answer was just undone, or answer it again on redo."""
    entry = done.entry if done is not None and done.error is None else None
    about = curator.history().get(entry.of) if entry is not None and entry.of else None
    named = _ANSWERS.match(about.title) if about is not None else None
    if entry is None or about is None or named is None:
        return
    questions = OpenQuestions(curator.project, curator.gate)
    with suppress(UnknownQuestion):
        if entry.kind == "undo":
            questions.reopen(named[1])
        else:
            said = next((str((fields or {}).get(DECISION) or "") for fields in about.after.values()), "")
            questions.answer(named[1], said or "yes")


def read_questions(path: Path, *, look: bool = True) -> tuple[OpenQuestion, ...]:
    """The questions of a file, oldest first; other entries are skipped.

    Args:
        look: check whether the statements of a question are still in their documents.
    """
    raw = read_bytes(path, MAX_FILE)
    document = decode_json(raw)
    rows = document.get("questions") if isinstance(document, dict) else None
    found = (each for row in (rows if isinstance(rows, list) else ()) if (each := _question(row)) is not None)
    return tuple(_looked_at(path.parent.parent, each) if look else each for each in found)


def _looked_at(root: Path, question: OpenQuestion) -> OpenQuestion:
    """The question, withdrawn if one of its statements is gone."""
    if question.answered:
        return question
    for name, statement in question.about:
        raw = read_bytes(below(root, name), MAX_DOCUMENT)
        if raw is None:
            return replace(question, gone=f"{name} no longer exists")
        if _plain(statement) not in _plain(raw.decode("utf-8", "replace")):
            return replace(question, gone=f"{name} no longer says “{clean_line(statement, 80)}”")
    return question


def _plain(text: str) -> str:
    """A text without emphasis marks and line breaks, as statements are taken from documents."""
    return " ".join(re.sub(r"[*`_]", "", text).split())


def still_asked(questions: Iterable[OpenQuestion], beads: Mapping[str, Bead]) -> tuple[OpenQuestion, ...]:
    """The open questions: unanswered, with their bead still open."""
    return tuple(question for question in questions if not question.answered and not _over(question, beads))


def _over(question: OpenQuestion, beads: Mapping[str, Bead]) -> str:
    """Why a question about a bead needs no answer any more, because it was closed since; else "".

    A question not about the bead's own outcome (such as a check that still fails) stays open.
    """
    # an approval names its bead only in the key
    dispatch = question.key.startswith("approval:dispatch:")
    bead_id = question.key.rpartition(":")[2] if dispatch else question.bead_id
    bead = beads.get(bead_id)
    if bead is None or bead.status not in TERMINAL or not (dispatch or question.key == f"{question.kind}:{bead_id}"):
        return ""
    changed, asked = parse_instant(bead.updated_at), parse_instant(question.bead_at or question.raised_at)
    return f"{bead_id} is {bead.status}" if dispatch or changed is None or changed > (asked or 0) else ""


def beads_in_question(questions: Iterable[OpenQuestion]) -> dict[str, str]:
    """Bead to the id of its first unanswered question, without approvals."""
    found: dict[str, str] = {}
    for question in questions:
        if question.bead_id and not question.answered and question.kind != "approval":
            found.setdefault(question.bead_id, question.id)
    return found


def _question(row: Any) -> OpenQuestion | None:
    try:
        return msgspec.convert(row, OpenQuestion)
    except msgspec.ValidationError:
        return None


def _urgency(kind: str) -> int:
    return KINDS.index(kind) if kind in KINDS else len(KINDS)


def _number(question_id: str) -> int:
    text = question_id.removeprefix("q-")
    return int(text) if text.isdecimal() else 0
