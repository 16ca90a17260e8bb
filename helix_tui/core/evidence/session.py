"""A project's session of questions: for the console, the command line and agents over MCP.

Which model answers is found here too: a command of the user's, else ddx's own with the prompt in a file
(docs/formats/ddx.md §6).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from helix_tui.core.ask.answer.compaction import ItemChange, compare
from helix_tui.core.ask.answer.model import PROMPT_FILE, ModelCommand, ModelReply, ask_model
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.index.keeper import IndexKeeper, State
from helix_tui.core.ask.question import read_question
from helix_tui.core.ask.records import Span, item_id, read_item_id, record_place, text_hash
from helix_tui.core.ask.retrieval.tree_walk import Depth, Policy, with_budgets
from helix_tui.core.ask.sessions.document import document_of, write_trace
from helix_tui.core.ask.sessions.history import AskHistory
from helix_tui.core.ask.sessions.session import AskModel, News, ask, put_to_model
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ddx.probe import dialect_of
from helix_tui.core.evidence.sources import RecordRows, WorkReader, WorkRecords
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import path_part, text_of
from helix_tui.core.ground.project import Project, find_ddx
from helix_tui.core.ground.recent import Recent
from helix_tui.core.ground.text import clean_block
from helix_tui.core.ground.time import now_ns
from helix_tui.core.supervision.stages.delegate import chosen

MODEL_VARIABLE = "HELIX_ASK_MODEL"
"""A command that asks a model instead of ddx; the prompt comes on its input, or in ``{prompt_file}``."""

PROMPT_VARIABLE = "HELIX_ASK_PROMPT_BYTES"
"""Bytes of evidence that the model's context has room for: 3 or 4 of them are a token."""

MODEL_SECONDS = 120

READY_FILE = "questions.txt"
"""Questions that a project has ready, one a line, in ``.helix/ask``."""

MOST_READY = 20

MAX_ITEM = 40_000
"""Characters of one item that is opened."""

MAX_EXCERPT = 2_000
"""Characters of one passage of a search."""

MAX_FILES = 20
MAX_UNKEPT = 16


def model_command(
    ddx: Path, root: Path, *, prompt: str, seconds: int, who: Mapping[str, str] | None = None
) -> tuple[str, ...] | None:
    """The command that asks a model once; None if this ddx cannot.

    Args:
        ddx: the executable.
        root: the project that it is run in.
        prompt: the placeholder for the prompt's path.
        seconds: how long ddx may wait for its harness.
        who: who is to answer, by flag: ``--harness``, ``--model``, ``--effort``.

    Raises:
        DdxError: it cannot be started, or does not answer.
    """
    verb = dialect_of(ddx, root).verbs.get("ask_model")
    if verb is None:
        return None
    wanted: dict[str, tuple[str, ...]] = {"--json": (), "--permissions": ("safe",), "--timeout": (f"{seconds}s",)}
    wanted |= {flag: (value,) for flag, value in (who or {}).items() if value}
    # releases differ in their flags, and one that is not known ends the command with an error
    flags = [word for flag, value in wanted.items() if verb.knows(flag) for word in (flag, *value)]
    return (os.fspath(ddx), *verb.words, *flags, "--prompt", prompt)


Document = Mapping[str, Any]


class NotAskable(HelixError):
    """There is nothing to ask; the message says why."""


class AskRequest(Struct, frozen=True):
    """A question from the screen."""

    text: str
    sense: str = ""
    depth: Depth = "root_to_anchor"
    with_model: bool = False
    follows: str = ""
    """Id of the run whose evidence is kept; empty for an independent question."""


class ModelSettings(Struct, frozen=True):
    """Who is to answer: from the command line, else from the user's settings."""

    agent: str = ""
    model: str = ""
    set_agent: str = ""
    set_model: str = ""


class FoundFile(Struct, frozen=True):
    """A file relevant to the text being typed, with its best line."""

    file: str
    line: int
    header: str
    text: str


class AskSession:
    """One project's questions. Call its methods that read or ask from threads."""

    def __init__(
        self,
        project: Project,
        *,
        ddx: str | None,
        keep: bool,
        hear: Callable[[State], None] = lambda _: None,
        present: Callable[[], WorkRecords] | None = None,
        who: ModelSettings | None = None,
    ) -> None:
        """A session that has not started to read.

        Args:
            project: the repository.
            ddx: the ddx that the call names.
            keep: whether runs are written down.
            hear: called from a thread with every new state of the index.
            present: the records of the work; None reads the project's files.
            who: who is to answer, if a model is asked.
        """
        self.project = project
        self.history = AskHistory(project.helix_dir)
        self._ddx = ddx
        self._keep = keep
        self._who = who or ModelSettings()
        self._unkept: Recent[str, Document] = Recent(MAX_UNKEPT)
        """Runs that are not saved, kept so that a question can follow them."""
        self._asked = 0
        self._keeper = IndexKeeper(project, hear)
        self._records = RecordRows(present or WorkReader(project))

    def start(self) -> None:
        """Begin to read the repository."""
        self._keeper.start()

    def stop(self) -> None:
        """Stop following it."""
        self._keeper.stop()

    @property
    def state(self) -> State:
        """The state of the index."""
        return self._keeper.state

    def _library(self, *, with_records: bool = True) -> RepositoryIndex:
        index = self._keeper.index()
        if index is None:
            raise NotAskable(self._keeper.state.problem or "the repository cannot be read")
        if with_records:
            self._records.refresh(index)
        return index

    # --- asking -------------------------------------------------------------------------------------------

    def answer(
        self, request: AskRequest, now: int, tell: Callable[[News], None], drafted: Callable[[Document], None]
    ) -> tuple[str, Document]:
        """Answer a question; (id in the history, the run).

        Args:
            request: what is asked.
            now: the instant, for the history.
            tell: called with every step as it is done.
            drafted: called with the answer without a model, before the model is asked.

        Raises:
            NotAskable: there is no repository to ask, or no run to follow.
        """
        run = ask(
            self._library(),
            request.text,
            policy=policy_here(),
            depth=request.depth,
            sense=request.sense,
            tell=tell,
            earlier=self._earlier(request.follows),
        )
        if request.with_model:
            # the answer without the model is shown first: the model may take two minutes or fail
            drafted(document_of(run))
            put_to_model(run, self._model(), tell)
        document = document_of(run)
        return self.history.save(document, now) if self._keep else "", document

    def _earlier(self, ident: str) -> Document | None:
        """The run with an id; None without an id."""
        if not ident:
            return None
        # a read-only session writes no history: its runs are only in memory
        found = self._unkept.get(ident) or self.history.load(ident)
        if found is None:
            raise NotAskable(f"no answer has the id {ident[:80]}: `ask` gives it as follows_id")
        return {**found, "id": ident}

    def ask(self, question: str, *, follows: str = "") -> tuple[str, Document]:
        """Answer a question without a model; (id in the history, the run).

        Raises:
            NotAskable: there is no repository to ask.
        """
        ident, document = self.answer(AskRequest(question, follows=follows), now_ns(), lambda _: None, lambda _: None)
        if not ident:
            self._asked += 1
            ident = f"run-{self._asked}"
            self._unkept[ident] = document
        return ident, document

    def files(self, text: str, most: int = MAX_FILES) -> Sequence[FoundFile]:
        """The files relevant to a text, best first, each with its best line: fast enough for every key press.

        Raises:
            NotAskable: there is no repository to ask.
        """
        found = self._library(with_records=False).search(text, spans=most * 2)
        best: dict[str, Span] = {}
        for span in found.spans:
            best.setdefault(span.file, span)
        files = []
        for file in found.files[:most]:
            at = best.get(file.file)
            line, said = best_line(at, text) if at is not None else (1, "")
            files.append(FoundFile(file.file, line, at.header if at is not None else "", said))
        return files

    # --- for agents ---------------------------------------------------------------------------------------

    def search(self, query: str, most: int) -> dict[str, Any]:
        """Passages of files and of records for some words, best first, each with its id and hash.

        Raises:
            NotAskable: there is no repository to ask.
        """
        library = self._library()
        found = library.search(query, spans=most)
        work = library.search_records(read_question(query), max(1, most // 2))
        return {
            "items": [item_of(span) for span in found.spans[:most]],
            "records": [item_of(span) for span in work],
            "files": [file.file for file in found.files[:most]],
        }

    def open_item(self, ident: str, known: str = "") -> dict[str, Any]:
        """One item in full, and whether its text is still that of a hash.

        Args:
            ident: ``src/a.py:10-42``, ``src/a.py``, ``bead:ddx-1234``, ``bead:ddx-1234:5-20``.
            known: the hash that the caller has seen, or "".

        Raises:
            NotAskable: there is no such item.
        """
        file, start, end = read_item_id(ident)
        library = self._library()
        place = record_place(file)
        if place is not None and place.kind == "commit":
            whole = [line for span in library.commit_at(place.id) for line in span.text.split("\n")]
            lines = whole[start - 1 : end]
        else:
            lines = library.lines(library.record(place.id) or file if place is not None else file, start, end)
        if not lines:
            raise NotAskable(f"nothing here is called {ident[:200]}: ids come from search and ask, paths from git")
        text = "\n".join(lines)
        found = {"id": ident, "start": start, "end": start + len(lines) - 1, "hash": text_hash(text)}
        if known:
            found["unchanged"] = known == found["hash"]
        return {**found, "text": clean_block(text, MAX_ITEM), "cut": len(text) > MAX_ITEM}

    # --- the model ----------------------------------------------------------------------------------------

    def _model(self) -> AskModel:
        command = self.model_command()
        if command is None:
            # a missing model is an answer's error, not the question's: the answer without it stays
            return lambda _: ModelReply(error=f"no model: neither ddx nor {MODEL_VARIABLE} is there")
        return lambda prompt: ask_model(command, prompt, self.project.root)

    def model_command(self) -> ModelCommand | None:
        """How a model is asked here; None where nothing can."""
        try:
            return find_model(self.project, self._ddx, self._who)
        except (DdxError, ValueError):
            return None

    # --- what is kept -------------------------------------------------------------------------------------

    def trace(self, ident: str, document: Document) -> str:
        """Write a run as JSON lines beside the history; return its path relative to the project's root.

        Raises:
            OSError: it cannot be written.
        """
        path = self.project.helix_dir / "ask" / "traces" / path_part(f"{ident or 'run'}.jsonl")
        write_trace(path, document)
        return path.relative_to(self.project.root).as_posix()

    def ready(self) -> tuple[str, ...]:
        """The project's prepared questions."""
        lines = text_of(self.project.helix_dir / "ask" / READY_FILE, 1 << 16).splitlines()
        return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))[:MOST_READY]


def policy_here() -> Policy:
    """The thresholds, with the room that the environment gives a model's prompt.

    Raises:
        BudgetError: the variable is not a valid number of bytes.
    """
    said = os.environ.get(PROMPT_VARIABLE, "")
    return with_budgets(Policy(), [f"max_prompt_bytes={said}"] if said else [])


def find_model(
    project: Project, ddx: str | None, who: ModelSettings, *, command: str = "", seconds: float = MODEL_SECONDS
) -> ModelCommand | None:
    """How to ask a model: by a command given or set, else by ddx; None if there is neither.

    Raises:
        ValueError: the command cannot be read as words.
        DdxError: ddx cannot be started, or does not answer.
    """
    configured = command or os.environ.get(MODEL_VARIABLE, "")
    if configured:
        words = tuple(shlex.split(configured))
        return ModelCommand(words, timeout_s=seconds) if words else None
    found = find_ddx(ddx)
    if found is None:
        return None
    flags = chosen(os.environ, **asdict(who)).flags
    said = model_command(found, project.root, prompt=PROMPT_FILE, seconds=int(seconds), who=flags)
    # ddx ends its harness itself at `seconds`; the rest is for what it then says of it
    return None if said is None else ModelCommand(said, "ddx", seconds + 5)


def best_line(span: Span, text: str) -> tuple[int, str]:
    """The line of a passage with most words of a text, and its number."""
    words = {word for word in text.lower().split() if len(word) > 2}
    lines = span.text.split("\n")
    scored = [(-sum(word in line.lower() for word in words), at) for at, line in enumerate(lines) if line.strip()]
    at = min(scored, default=(0, 0))[1]
    return span.start + at, lines[at].strip()


def item_of(span: Span) -> dict[str, Any]:
    """A passage as an item of evidence."""
    place = record_place(span.file, span.header)
    return {
        "id": item_id(span),
        "kind": place.kind if place is not None else span.role,
        "header": span.header,
        "hash": span.hash,
        "text": clean_block(span.text, MAX_EXCERPT),
    }


def differences(before: Document, after: Document) -> tuple[ItemChange, ...]:
    """How the items of two runs differ."""
    return compare(list(before.get("items") or ()), list(after.get("items") or ()))
