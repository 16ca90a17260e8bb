"""``helix-tui ask QUESTION``: the retrieval loop and one answer, cited, with every step."""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path
from typing import Any

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.paint import columns, counted
from helix_tui.cli.report.loading import locate
from helix_tui.core.ask.answer.model import ask_model
from helix_tui.core.ask.corpus.git import GitFailed
from helix_tui.core.ask.corpus.listing import NothingToAsk
from helix_tui.core.ask.index.index import RepositoryIndex, open_index
from helix_tui.core.ask.records import Progress
from helix_tui.core.ask.retrieval.trees import DEPTHS, BudgetError, Policy, with_budgets
from helix_tui.core.ask.sessions.document import document_of, write_trace
from helix_tui.core.ask.sessions.history import AskHistory, IndexLibrary
from helix_tui.core.ask.sessions.session import AskModel, AskRun, ask
from helix_tui.core.ddx.client import DdxError
from helix_tui.core.evidence.session import MODEL_SECONDS, MODEL_VARIABLE, AskSession, ModelSettings, find_model
from helix_tui.core.evidence.sources import ProjectRecords, read_work
from helix_tui.core.ground.project import Project
from helix_tui.core.ground.text import clean_block, clean_line, fit
from helix_tui.settings import load_settings

NOTE_EVERY = 2.0
"""Seconds between two words about an index that is being made."""

MOST_CHARS = 20_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("question", metavar="QUESTION", nargs="*", help="what to ask; - reads it from stdin")
    parser.add_argument("--no-model", action="store_true", help="the evidence's own answer, no model call")
    parser.add_argument(
        "--model-command",
        metavar="CMD",
        help=f"ask the model with this command instead of ddx (default: ${MODEL_VARIABLE})",
    )
    parser.add_argument("--agent", default="", metavar="NAME", help="the harness that asks (HELIX_AGENT)")
    parser.add_argument("--model", default="", metavar="NAME", help="the model behind it (HELIX_MODEL)")
    parser.add_argument("--model-timeout", type=float, metavar="S", default=float(MODEL_SECONDS), help="seconds (120)")
    parser.add_argument("--depth", choices=DEPTHS, default="root_to_anchor", help="how much of a tree the walk shows")
    parser.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="K=V",
        help="set a threshold or budget, again for more",
    )
    parser.add_argument("--sense", metavar="LABEL", default="", help="which sense of an ambiguous word is meant")
    parser.add_argument("--revision", metavar="REV", help="ask about a commit instead of the work tree")
    parser.add_argument("--serve", action="store_true", help="answer agents: an MCP server on stdin and stdout")
    parser.add_argument("--trace-out", metavar="FILE", type=Path, help="write the run as JSON lines")


def run(call: Call) -> int:
    """Ask, and print the answer."""
    options = call.options
    if options.serve:
        return _serve(call)
    text = _question(call)
    try:
        policy = with_budgets(Policy(), options.budget)
    except BudgetError as error:
        raise CliError(str(error), "Write it as --budget name=value.", 2) from None
    project = locate(call)
    model = None if options.no_model else _model(call, project)
    index, made_ms = _index(call, project)
    records = ProjectRecords(project, lambda: read_work(project), in_memory=call.read_only)
    library = IndexLibrary(index, None if options.revision else records)
    try:
        found = ask(library, text, policy=policy, depth=options.depth, sense=options.sense, model=model)
    finally:
        index.close()
        records.close()
    document = document_of(found, {"index": made_ms})
    if not call.read_only:
        try:
            AskHistory(project.helix_dir).save(document, call.now)
        except OSError as error:
            call.note(f"helix-tui ask: the run is not kept: {error.strerror}")
    if options.trace_out is not None:
        certificate = write_trace(options.trace_out, document)
        call.note(f"trace in {options.trace_out}, certificate {certificate[:16]}")
    if call.json:
        call.emit(document)
    else:
        for line in listing(call, found, document):
            call.print(line)
    return 0


def _serve(call: Call) -> int:
    """Serve agents until they have had enough."""
    if call.options.question:
        raise CliError("--serve takes no question", "Leave the question to the agents.", 2)
    from helix_tui.cli.show.ask_server import serve

    gc.enable()  # turned off for commands that end at once
    return serve(AskSession(locate(call), ddx=call.ddx, keep=not call.read_only))


def _question(call: Call) -> str:
    words: list[str] = call.options.question
    text = sys.stdin.read(MOST_CHARS) if words == ["-"] else " ".join(words)
    if not text.strip():
        raise CliError("there is no question", 'Write one: helix-tui ask "where is … handled?"', 2)
    return text.strip()


def _index(call: Call, project: Project) -> tuple[RepositoryIndex, float]:
    """The index, up to date, and the milliseconds that this took."""
    last = 0.0

    def report(progress: Progress) -> None:
        nonlocal last
        if progress.phase == "parse" and progress.seconds - last >= NOTE_EVERY:
            last = progress.seconds
            rate = f"{progress.files_per_second:,.0f} files/s"
            call.note(f"indexing {progress.done:,} of {progress.total:,} files, {rate}")

    try:
        index = open_index(project, call.options.revision, in_memory=call.read_only)
        return index, index.refresh(report).seconds * 1_000
    except NothingToAsk as error:
        raise CliError(
            clean_line(str(error), 400), "Name a repository with -C DIR, a commit with --revision."
        ) from None
    except GitFailed as error:
        raise CliError(clean_line(str(error), 400), "See that `git status` works there.") from None


def _model(call: Call, project: Project) -> AskModel | None:
    """How to ask a model: a configured command, else ddx; None where there is neither."""
    options, settings = call.options, load_settings()
    who = ModelSettings(options.agent, options.model, settings.agent, settings.model)
    try:
        command = find_model(project, call.ddx, who, command=options.model_command or "", seconds=options.model_timeout)
    except ValueError as error:
        raise CliError(f"the model command cannot be read: {error}", "See its quotes.", 2) from None
    except DdxError as error:
        call.note(f"helix-tui ask: no model: {error.message}")
        return None
    return None if command is None else lambda prompt: ask_model(command, prompt, project.root)


# --- for people -------------------------------------------------------------------------------------------


def listing(call: Call, found: AskRun, document: dict[str, Any]) -> list[str]:
    """The run in lines for people."""
    paint = call.paint
    role = {"Grounded": "success", "Bounded inference": "warning"}.get(found.tier, "attention")
    required = [slot for slot in found.slots if slot.required]
    covered = f"{len(required) - len(found.missing)} of {counted(len(required), 'slot')}"
    seconds = document["timings_ms"]["total"] / 1_000
    head = f"{paint(found.tier.lower(), role)} · {covered} · {found.retrieval.stop} · {seconds:.2f} s"
    lines = [head, "", *clean_block(found.answer).split("\n"), ""]
    if found.walk:
        lines.append(paint("tree walk", "bold"))
        for node in found.walk:
            said = f"  {'  ' * node.depth}{clean_line(node.title, 80)}"
            note = clean_line(node.span, 80) if node.bound else "hint"
            lines.append(fit(f"{said}  {paint(note, 'muted')}", paint.width + 12).rstrip())
        lines.append("")
    lines.append(paint("steps", "bold"))
    rows = [
        (
            f"  {step.step}",
            step.action.replace("_", " "),
            f"+{step.spans_added} spans",
            f"slots {step.slot_coverage:.0%}",
            f"docs {'yes' if step.doc_coverage_ok else 'no'}",
            f"{step.confidence:.2f}",
            clean_line(step.reason, 60),
        )
        for step in found.retrieval.steps
    ]
    lines += columns(rows)
    compaction = found.compaction
    lines.append(f"  kept {len(compaction.kept)} spans, dropped {len(compaction.dropped)}")
    lines += [f"  {clean_line(file, 80)}: {clean_line(line, 200)}" for file, line in compaction.rationale[:4]]
    if found.model is not None:
        lines.append(f"  model {_model_line(found)}")
    return lines


def _model_line(found: AskRun) -> str:
    reply = found.model
    assert reply is not None
    name = reply.model or reply.harness or reply.command
    tokens = [count for count in (reply.input_tokens, reply.output_tokens) if count is not None]
    spent = f", {sum(tokens):,} tokens" if tokens else ""
    cost = f", ${reply.cost_usd:.4f}" if reply.cost_usd is not None else ""
    taken = f", not taken: {clean_line(found.fallback, 160)}" if found.fallback else ""
    return f"{clean_line(name, 60)}, {reply.seconds:.1f} s{spent}{cost}{taken}"
