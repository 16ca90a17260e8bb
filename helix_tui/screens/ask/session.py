"""What stands behind the Ask screen: the index that is kept fresh, the asking, and the runs that are kept."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from helix_tui.core.ask.answer.items import ItemChange, compare
from helix_tui.core.ask.answer.model import PROMPT_FILE, ModelCommand, ModelReply, ask_model
from helix_tui.core.ask.retrieval.trees import Depth
from helix_tui.core.ask.sessions.document import document_of, write_trace
from helix_tui.core.ask.sessions.history import AskHistory, IndexLibrary
from helix_tui.core.ask.sessions.index_keeper import IndexKeeper, State
from helix_tui.core.ask.sessions.session import AskModel, News, ask, put_to_model
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ddx.model_call import model_command
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.git import open_nonblocking
from helix_tui.core.ground.project import Project, find_ddx
from helix_tui.core.supervision.agents.briefing import chosen
from helix_tui.settings import load_settings

MODEL_VARIABLE = "HELIX_ASK_MODEL"
MODEL_SECONDS = 120
READY_FILE = "questions.txt"
"""Questions that a project has ready, one a line, in ``.helix/ask``."""
MOST_READY = 20

Document = Mapping[str, Any]


class NotAskable(HelixError):
    """There is nothing to ask; the message says why."""


@dataclass(frozen=True, slots=True)
class AskRequest:
    """A question as the screen asks it."""

    text: str
    sense: str = ""
    depth: Depth = "root_to_anchor"
    with_model: bool = False


class AskSession:
    """One project's questions. Its methods that read or ask are for threads."""

    def __init__(
        self,
        project: Project,
        *,
        ddx: str | None,
        keep: bool,
        hear: Callable[[State], None],
        watch: bool = True,
    ) -> None:
        """``hear`` is called from a thread with every new state of the index."""
        self.project = project
        self.history = AskHistory(project.helix_dir)
        self._ddx = ddx
        self._keep = keep
        self._keeper = IndexKeeper(project, hear)

    def start(self) -> None:
        """Begin to read the repository."""
        self._keeper.start()

    def stop(self) -> None:
        """Stop following it."""
        self._keeper.stop()

    @property
    def state(self) -> State:
        """How the index stands."""
        return self._keeper.state

    def answer(
        self,
        request: AskRequest,
        now: int,
        tell: Callable[[News], None],
        drafted: Callable[[Document], None],
    ) -> tuple[str, Document]:
        """Answer a question; (id in the history, the run).

        Args:
            request: what is asked.
            now: the instant, for the history.
            tell: called with every step as it is done.
            drafted: called with the answer without a model, before the model is asked.

        Raises:
            NotAskable: there is no repository to ask.
        """
        index = self._keeper.index()
        if index is None:
            raise NotAskable(self._keeper.state.problem or "the repository cannot be read")
        run = ask(IndexLibrary(index), request.text, depth=request.depth, sense=request.sense, tell=tell)
        if request.with_model:
            drafted(document_of(run))
            put_to_model(run, self._model(), tell)
        document = document_of(run)
        ident = ""
        if self._keep:
            ident = self.history.save(document, now)
        return ident, document

    def _model(self) -> AskModel:
        command = self.model_command()
        if command is None:
            return lambda _: ModelReply(error=f"no model: neither ddx nor {MODEL_VARIABLE} is there")
        return lambda prompt: ask_model(command, prompt, self.project.root)

    def model_command(self) -> ModelCommand | None:
        """How a model is asked here; None where nothing can."""
        configured = os.environ.get(MODEL_VARIABLE, "")
        if configured:
            try:
                return ModelCommand(tuple(shlex.split(configured)), timeout_s=MODEL_SECONDS)
            except ValueError:
                return None
        ddx = find_ddx(self._ddx)
        if ddx is None:
            return None
        try:
            settings = load_settings()
            who = chosen(os.environ, set_agent=settings.agent, set_model=settings.model).flags
            words = model_command(ddx, self.project.root, prompt=PROMPT_FILE, seconds=MODEL_SECONDS, who=who)
        except DdxError:
            return None
        return None if words is None else ModelCommand(words, "ddx", MODEL_SECONDS + 5)

    def trace(self, ident: str, document: Document) -> str:
        """Write a run as JSON lines beside the history; where, from the project's root.

        Raises:
            OSError: it cannot be written.
        """
        path = self.project.helix_dir / "ask" / "traces" / f"{ident or 'run'}.jsonl"
        write_trace(path, document)
        return path.relative_to(self.project.root).as_posix()

    def ready(self) -> tuple[str, ...]:
        """Questions that the project has ready."""
        try:
            path = self.project.helix_dir / "ask" / READY_FILE
            with open(path, "rb", opener=open_nonblocking) as file:
                lines = (file.read(1 << 16) or b"").decode("utf-8", "replace").splitlines()
        except OSError:
            return ()
        return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))[:MOST_READY]


def differences(before: Document, after: Document) -> tuple[ItemChange, ...]:
    """How the items of two runs differ."""
    return compare(list(before.get("items") or ()), list(after.get("items") or ()))
