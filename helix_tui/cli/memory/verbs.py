"""``helix-tui memory VERB``: the operations of docs/formats/memory.md §3.

If stdout is not a terminal the answer is JSON, as in helix.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import get_args

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.cli.call import Call
from helix_tui.cli.loading import add_since
from helix_tui.cli.program import add_shared
from helix_tui.core.memory.provenance import AcceptRule
from helix_tui.core.memory.task_check import VERIFY_TIMEOUT_S


class MemoryVerb(Struct, frozen=True):
    """What one verb takes and needs."""

    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    writes: bool = False
    """Whatever its options; such a verb is refused with ``--read-only``."""
    may_write: Callable[[argparse.Namespace], bool] = lambda options: False
    """Whether it writes with these options."""
    encodes: bool = True
    """It compares texts, so the encoder is loaded."""
    compares: bool = False
    """It needs the vectors of memories: those that lack one get it first."""
    looks: bool = False
    """It answers without a database, and does not create one."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one parser for each verb; the global options may follow the verb too."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, verb in VERBS.items():
        own = verbs.add_parser(name, description=verb.summary, help=verb.summary, allow_abbrev=False)
        verb.arguments(own)
        if "--dry-run" not in own._option_string_actions:
            said = "work on a copy of the memory, and show the result"
            own.add_argument("--dry-run", dest="on_copy", action="store_true", help=said)
        add_shared(own, below=True)


def adjust(call: Call) -> Call:
    """JSON is the default if stdout is not a terminal, for errors too."""
    return replace(call, json=call.json or not sys.stdout.isatty())


def run(call: Call) -> int:
    """Open the memory, run the verb, print the result."""
    from helix_tui.cli.memory.operations import answer

    return answer(call, VERBS[call.options.verb])


def _store(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trigger", required=True, help="the situation, 10 characters or more")
    parser.add_argument("--resolution", required=True, help="what to do in it")
    parser.add_argument("--type", default="failure", help="failure, pattern or systemic (default: failure)")
    parser.add_argument(
        "--source", default="", help="where it comes from; user-provided is never merged away or pruned"
    )
    parser.add_argument("--task", default="", metavar="ID", help="the bead or attempt that ran into it, counted once")


def _recall(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="QUERY", help="what you are about to do, or names of code")
    parser.add_argument("--type", help="only failure, pattern or systemic")
    _limit(parser, 5)
    parser.add_argument("--min-effectiveness", type=float, default=0.0, metavar="0-1")
    _files(parser)
    parser.add_argument("--expand", action="store_true", help="follow edges to neighbours")
    parser.add_argument("--gate", type=float, default=0.0, metavar="0-1", help="minimum relevance (default: none)")
    parser.add_argument("--all", action="store_true", help="for agents: what waits for acceptance, too")
    _ranker(parser)


def _get(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME|ID")


def _edit(parser: argparse.ArgumentParser) -> None:
    _get(parser)
    parser.add_argument("--trigger", help="the situation, in other words")
    parser.add_argument("--resolution", help="what to do in it instead")
    parser.add_argument("--type", help="failure, pattern or systemic")
    parser.add_argument("--source", help="where it comes from; user-provided protects it")
    parser.add_argument("--revision", type=int, metavar="N", help="restore this older revision")
    _preview(parser)


def _remove(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME|ID", nargs="+")
    _preview(parser)


def _supersede(parser: argparse.ArgumentParser) -> None:
    _get(parser)
    parser.add_argument("--by", required=True, metavar="NAME|ID", help="the memory that replaces it")
    _preview(parser)


def _preview(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what would change; change nothing")


def _feedback(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--injected", metavar="JSON", default="[]", help='names that were shown: \'["a", "b"]\'')
    parser.add_argument("--utilized", metavar="JSON", default="[]", help="names that the agent says it used")
    parser.add_argument(
        "--verified",
        choices=("passed", "failed", "partial"),
        help="what verification said; without it the counts are kept as unverified",
    )
    parser.add_argument("--task", default="", metavar="ID", help="the attempt or bead, counted once")
    parser.add_argument("--kind", default="", help="kind of task, for the base rate")
    parser.add_argument("--revise", action="store_true", help="replace an earlier verified outcome")


def _edge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="from_name", required=True, metavar="NAME|ID")
    parser.add_argument("--to", dest="to_name", required=True, metavar="NAME|ID")
    parser.add_argument(
        "--type",
        dest="rel_type",
        required=True,
        help="co_occurs, causes, solves or similar; led_to and supersedes are accepted too",
    )
    parser.add_argument("--weight", type=float, default=1.0)


def _edges(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME|ID", nargs="?", default="")
    parser.add_argument("--type", dest="rel_type", default="")


def _connected(parser: argparse.ArgumentParser) -> None:
    _get(parser)
    parser.add_argument("--max-hops", type=int, default=2)


def _decay(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", type=float, default=30, help="unused for this many days (default 30)")
    parser.add_argument("--min-uses", type=float, default=2, help="with fewer uses than that (default 2)")
    parser.add_argument("--apply", action="store_true", help="let the effect of past success fade halfway to neutral")


def _prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threshold", type=float, default=0.25, help="effectiveness below (default 0.25)")
    parser.add_argument("--min-uses", type=float, default=3, help="with at least this many uses (default 3)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be removed; remove nothing")


def _chunk(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", required=True, help="the objective")
    parser.add_argument("--outcome", required=True, help="only text that begins with “success” is remembered")
    parser.add_argument("--approach", required=True, help="what worked")
    parser.add_argument("--source", default="chunked")


def _consolidate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threshold", type=float, default=0.9, help="cosine similarity at which two memories are merged"
    )


def _similar(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trigger", metavar="TEXT", nargs="?", default="")
    parser.add_argument("--trigger", dest="named_trigger", default="", help="the same as TEXT")
    parser.add_argument("--threshold", type=float, default=None, help="minimum similarity (default 0.65)")
    parser.add_argument("--days", type=float, default=7)
    parser.add_argument("--type", default=None)


def _suggest(parser: argparse.ArgumentParser) -> None:
    _get(parser)
    _limit(parser, 5)


def _assess(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--task", required=True, help="the objective")
    parser.add_argument("--approach", required=True, help="what to try next")
    parser.add_argument("--history", metavar="JSON", help="what was tried; default: what was assessed before")


def _inject(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bead", default="", metavar="ID", help="write the block into this bead")
    parser.add_argument("--objective", default="", help="what to do (default: the bead's own text)")
    parser.add_argument("--task", default="", metavar="ID", help="the attempt that will see it")
    parser.add_argument("--agent", default="", help="who will see it")
    parser.add_argument("--kind", default="", help="kind of task (default: the bead's type)")
    _limit(parser, 8)
    _files(parser)
    _ranker(parser)
    parser.add_argument("--dry-run", action="store_true", help="show the block; change and record nothing")


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", default=None)
    parser.add_argument("--limit", type=int, default=0, help="only the newest N (default: all)")


def _embed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit", type=int, default=0, help="at most N (default: all)")


def _plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "show", "add", "apply", "tasks"), default="list")
    parser.add_argument("number", nargs="?", type=int, metavar="N", help="the plan")
    parser.add_argument(
        "--list",
        dest="task_list",
        nargs="?",
        const="",
        metavar="NAME",
        help="with tasks: write them as a task list of Claude Code (CLAUDE_CODE_TASK_LIST_ID=NAME shows it)",
    )
    parser.add_argument("--file", metavar="FILE", help="with add: the plan as JSON; - reads stdin")
    parser.add_argument("--parent", default="", metavar="ID", help="with apply: put the beads under this one")
    parser.add_argument("--no-epic", action="store_true", help="with apply: do not create an epic for the objective")
    parser.add_argument("--priority", type=int, default=2, metavar="0-4", help="with apply (default 2)")
    parser.add_argument("--spec-id", default="", metavar="ID", help="with apply: the document that governs them")
    parser.add_argument("--dry-run", action="store_true", help="with apply: show the commands, change nothing")


def _exploration(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "add"), default="list")
    parser.add_argument("--objective", default="", help="with add: what the exploration was for")
    parser.add_argument("--file", metavar="FILE", help="with add: what was found, as JSON; - reads stdin")


def _workspace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "show", "open", "close"), default="list")
    parser.add_argument("number", nargs="?", type=int, metavar="N", help="the workspace; with open the plan")
    parser.add_argument("--seq", default="", help="with open: the task of the plan")
    parser.add_argument("--status", choices=("delivered", "blocked"), default="delivered", help="with close")
    parser.add_argument("--delivered", default="", metavar="TEXT", help="with close: what is true now")
    parser.add_argument("--blocked-reason", default="", metavar="TEXT", help="with close: what is needed to continue")
    parser.add_argument("--tried", default="", metavar="TEXT", help="with close: what was tried")
    parser.add_argument("--error", default="", metavar="TEXT", help="with close: the error that occurred")
    parser.add_argument(
        "--violation",
        action="append",
        default=[],
        metavar="TEXT",
        help="with close: a rule of the plan that the change breaks, as a reviewer found; repeatable",
    )
    parser.add_argument(
        "--verified",
        choices=("passed", "failed"),
        help="with close: how VERIFY ended, if it cannot be run here",
    )
    parser.add_argument(
        "--timeout", type=float, default=VERIFY_TIMEOUT_S, metavar="S", help="with close: seconds that VERIFY may take"
    )
    parser.add_argument("--utilized", default="[]", metavar="JSON", help="with close: names that were used")


def _learn(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--apply", action="store_true", help="settle outcomes and keep lessons; without it, only show")
    parser.add_argument(
        "--accept",
        choices=get_args(AcceptRule),
        default=None,
        help="with --apply: lessons accepted at once (default: accept_lessons in the settings)",
    )
    parser.add_argument(
        "--limit", type=int, default=0, metavar="N", help="at most N lessons, of the newest attempts (default: all)"
    )
    add_since(parser)


def _proposals(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", nargs="?", choices=("list", "add", "accept", "decline"), default="list")
    parser.add_argument("numbers", nargs="*", metavar="N", help="lessons by number, or all")
    parser.add_argument("--type", choices=("failure", "pattern"), default="failure", help="with add")
    parser.add_argument("--trigger", default="", metavar="TEXT", help="with add: the situation")
    parser.add_argument("--resolution", default="", metavar="TEXT", help="with add: what to do in it")
    parser.add_argument("--attempt", default="", metavar="ID", help="with add: the attempt that it comes from")
    parser.add_argument("--bead", default="", metavar="ID", help="with add: the bead")


def _nothing(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the verb has no options of its own."""


def _limit(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument("--limit", type=int, default=default, help=f"at most this many (default {default})")


def _files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--files", nargs="+", default=[], metavar="F", help="files that may be changed")


def _ranker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--ranker", default="seed", help="seed (0.5/0.3/0.2, the default) or lift")


def _unless_dry_run(options: argparse.Namespace) -> bool:
    return not options.dry_run


def _always(options: argparse.Namespace) -> bool:
    return True


def _adds(options: argparse.Namespace) -> bool:
    return bool(options.action == "add")


def _applies(options: argparse.Namespace) -> bool:
    return bool(options.apply)


VERBS = {
    "store": MemoryVerb("remember a failure or a pattern", _store, writes=True, compares=True),
    "recall": MemoryVerb(
        "find memories by meaning, by names in code and by file names",
        _recall,
        compares=True,
        looks=True,
    ),
    "get": MemoryVerb("one memory with its history", _get, encodes=False),
    "edit": MemoryVerb("correct a memory; what it said before stays in its history", _edit, may_write=_unless_dry_run),
    "remove": MemoryVerb("remove memories", _remove, may_write=_unless_dry_run, encodes=False),
    "supersede": MemoryVerb("replace one memory by another", _supersede, may_write=_unless_dry_run, encodes=False),
    "list": MemoryVerb("all memories, newest first", _list, encodes=False, looks=True),
    "inject": MemoryVerb(
        "print what an agent should know, and record it in the ledger",
        _inject,
        may_write=_unless_dry_run,
        compares=True,
        looks=True,
    ),
    "feedback": MemoryVerb("record an outcome for the memories that were shown", _feedback, writes=True, encodes=False),
    "edge": MemoryVerb("relate two memories", _edge, writes=True, encodes=False),
    "relate": MemoryVerb("relate two memories", _edge, writes=True, encodes=False),
    "edges": MemoryVerb("relations of a memory, or all", _edges, encodes=False, looks=True),
    "connected": MemoryVerb("memories reached through relations", _connected, encodes=False),
    "suggest-edges": MemoryVerb("relations that may be worth adding", _suggest, compares=True),
    "similar-recent": MemoryVerb("memories of the last days that resemble a text", _similar, compares=True, looks=True),
    "chunk": MemoryVerb("remember how a task succeeded", _chunk, writes=True, compares=True),
    "assess": MemoryVerb(
        "advise whether to continue an approach, change it, or ask",
        _assess,
        may_write=_always,
        compares=True,
    ),
    "decay": MemoryVerb("list what is dormant", _decay, may_write=_applies, encodes=False, looks=True),
    "prune": MemoryVerb("remove memories that do not help", _prune, may_write=_unless_dry_run, encodes=False),
    "consolidate": MemoryVerb("merge memories that say nearly the same", _consolidate, writes=True),
    "learn": MemoryVerb(
        "lessons from attempts that ended; --apply records them",
        _learn,
        may_write=_applies,
        encodes=False,
        looks=True,
    ),
    "proposals": MemoryVerb(
        "lessons that wait: list, accept, decline",
        _proposals,
        may_write=lambda options: options.action != "list",
        looks=True,
    ),
    "undo": MemoryVerb("undo the last change: correction, removal, lesson, pruning, fading", _nothing, writes=True),
    "plan": MemoryVerb(
        "plans of tasks: list, show, add, apply (create beads)",
        _plan,
        may_write=_adds,
        encodes=False,
        looks=True,
    ),
    "exploration": MemoryVerb(
        "what explorers found: list, add",
        _exploration,
        may_write=_adds,
        encodes=False,
        looks=True,
    ),
    "workspace": MemoryVerb(
        "tasks of a plan as they are carried out: list, open, close",
        _workspace,
        may_write=lambda options: options.action in ("open", "close"),
        looks=True,
    ),
    "health": MemoryVerb("show the state of the memory store", _nothing, looks=True),
    "embed": MemoryVerb("give vectors to memories that lack them", _embed, writes=True),
}
"""Verb -> its record."""
