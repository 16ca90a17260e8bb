"""One verb of ``helix-tui memory``: its record, and how it is answered (docs/formats/memory.md §3)."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from helix_tui.cli.call import Call, CliError, hint_once, locate
from helix_tui.core.embedding.minilm import load_encoder
from helix_tui.core.ground.sqlite import connect
from helix_tui.core.ground.text import clean_line
from helix_tui.core.memory.memory_store import MemoryStore, look_into, open_memory
from helix_tui.core.memory.provenance import teacher_here
from helix_tui.core.memory.records import DatabaseMissing, DatabaseReadOnly, MemoryFault
from helix_tui.core.memory.store.database import BUSY_SECONDS, database_path
from helix_tui.core.memory.store.schema import TRIGGERS

Document = dict[str, Any]
Argument = Callable[[argparse.ArgumentParser], object]
"""Adds itself to the parser of a verb."""
Act = Callable[[Call, MemoryStore], Document]
Lines = Callable[[Call, Document], Iterator[str]]

VERBS: dict[str, MemoryVerb] = {}
"""Name of a verb to its record; the modules of this folder enter theirs."""

_MAX_ENCODED = 256
"""How many texts without a vector, as the plugin stores them, one call encodes: a few seconds, once."""


def option(*names: str, **how: Any) -> Argument:
    """An argument, as `argparse` takes it."""
    return lambda parser: parser.add_argument(*names, **how)


def at_most(default: int) -> Argument:
    """How many are given at most."""
    return option("--limit", type=int, default=default, help=f"at most this many (default {default})")


NAME = option("name", metavar="NAME|ID")
FILES = option("--files", nargs="+", default=[], metavar="F", help="files that may be changed")
RANKER = option("--ranker", default="seed", help="seed (0.5/0.3/0.2, the default) or lift")
PREVIEW = option("--dry-run", action="store_true", help="show what would change; change nothing")


def plain(call: Call, document: Document) -> Iterator[str]:
    """Each key and its value."""
    for key, value in document.items():
        yield f"{key}: {clean_line(value, 300)}"


class MemoryVerb(Struct, frozen=True, kw_only=True):
    """What one verb takes, does and prints."""

    summary: str
    arguments: tuple[Argument, ...]
    act: Act
    """From the options to the document that ``--json`` prints."""
    lines: Lines
    """That document as text."""
    writes: bool
    """Whatever its options; such a verb is refused with ``--read-only``."""
    may_write: Callable[[argparse.Namespace], bool]
    """Whether it writes with these options."""
    encodes: bool
    """It compares texts, so the encoder is loaded."""
    compares: bool
    """It needs the vectors of memories: those that lack one get it first."""
    looks: bool
    """It answers without a database, and does not create one."""


def verb(
    names: str,
    summary: str,
    *arguments: Argument,
    lines: Lines = plain,
    writes: bool = False,
    may_write: Callable[[argparse.Namespace], bool] = lambda options: False,
    encodes: bool = True,
    compares: bool = False,
    looks: bool = False,
) -> Callable[[Act], Act]:
    """Enter a function as the verb of these names; `MemoryVerb` says what the rest means."""

    def enter(act: Act) -> Act:
        for name in names.split():
            VERBS[name] = MemoryVerb(
                summary=summary,
                arguments=arguments,
                act=act,
                lines=lines,
                writes=writes,
                may_write=may_write,
                encodes=encodes,
                compares=compares,
                looks=looks,
            )
        return act

    return enter


def unless_dry_run(options: argparse.Namespace) -> bool:
    """Whether it is no dry run."""
    return not options.dry_run


def adds(options: argparse.Namespace) -> bool:
    """Whether something is added."""
    return bool(options.action == "add")


def applies(options: argparse.Namespace) -> bool:
    """Whether it is applied, and not only shown."""
    return bool(options.apply)


def answer(call: Call) -> int:
    """Open the memory, run the verb, print the result.

    Raises:
        CliError: the verb cannot run; says why and what to do.
    """
    name = call.options.verb
    verb = VERBS[name]
    if verb.writes and call.read_only:
        raise CliError(f"memory {name} would change the memory, and --read-only is set", "Run it without --read-only.")
    try:
        with _database(call) as path, _open(call, verb, path) as memory:
            if verb.compares and not memory.read_only and memory.path.exists():
                with suppress(
                    DatabaseReadOnly
                ):  # if vectors cannot be stored, only memories that have one are compared
                    memory.embed(_MAX_ENCODED)
            document = verb.act(call, memory) | ({"dry_run": True} if _on_copy(call) else {})
    except MemoryFault as fault:
        raise CliError(clean_line(fault.message, 600), fault.advice) from None
    if call.json:
        call.emit({"verb": name, **document})
    else:
        for line in verb.lines(call, document):
            call.print(line)
        if _on_copy(call):
            call.print(call.paint("nothing was changed (--dry-run)", "muted"))
    # what was asked for was not done: nothing stored, or a task that is blocked and not delivered
    return 1 if document.get("status") == "rejected" or not document.get("as_reported", True) else 0


def _on_copy(call: Call) -> bool:
    """Whether this is a dry run on a copy that is then discarded."""
    return bool(getattr(call.options, "on_copy", False))


@contextmanager
def _database(call: Call) -> Iterator[Path]:
    """The project's memory, or with --dry-run a temporary copy."""
    path = database_path(locate(call))
    if not _on_copy(call):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="helix-memory-") as folder:
        copy = Path(folder, path.name)
        if path.exists():
            # If no process has it open, SQLite would leave two files beside it, even after reading only.
            how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
            ours = connect(path, timeout=BUSY_SECONDS, how=how, triggers=TRIGGERS)
            with closing(ours), closing(connect(copy, timeout=BUSY_SECONDS)) as made:
                ours.backup(made)
        yield copy


def _open(call: Call, verb: MemoryVerb, path: Path) -> MemoryStore:
    loaded = load_encoder() if verb.encodes else None
    if loaded is not None:
        hint_once(call, loaded)

    changes = verb.writes or verb.may_write(call.options)
    # reading must work even if the file or its folder cannot be written
    if path.exists() and not (changes or call.read_only):
        return look_into(path, loaded, clock=call.clock, teacher=teacher_here())
    # only a verb that writes creates a database
    if path.exists() or (changes and not call.read_only):
        return open_memory(path, loaded, read_only=call.read_only, clock=call.clock, teacher=teacher_here())
    if verb.looks or changes:
        return open_memory(path, loaded, empty=True, clock=call.clock)
    raise DatabaseMissing(f"no memory here: there is no {path}", "`helix-tui memory store` creates one.")


def names(option: str, text: str) -> Sequence[str]:
    """The names in a JSON list; a list of memories, as recall prints them, is accepted too."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise CliError(f"{option} is not JSON: {error}", f"For example: {option} '[\"name\"]'", 2) from None
    items = found if isinstance(found, list) else [found]
    found_names = [str(item.get("name", "")) if isinstance(item, dict) else item for item in items]
    if not all(isinstance(name, str | int) and not isinstance(name, bool) for name in found_names):
        raise CliError(f"{option} is not a list of names", f"For example: {option} '[\"name\"]'", 2)
    return [str(name) for name in found_names if name != ""]


def mode_line(call: Call, document: Document) -> str:
    """How texts were compared."""
    return call.paint(f"{document['mode']}: {clean_line(document['detail'], 300)}", "muted")
