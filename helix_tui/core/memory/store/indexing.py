"""Index memories: their words, the vectors of their texts, and the files that they mention.

Files are compared with mentions as paths, part by part, never as substrings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import numpy as np
from msgspec import Struct
from sqlite_utils import Database

from helix_tui.core.embedding.minilm import MODEL_ID
from helix_tui.core.ground.records import decode_json
from helix_tui.core.memory.guard import scan as marks
from helix_tui.core.memory.provenance import Teacher
from helix_tui.core.memory.records import USER_PROVIDED
from helix_tui.core.memory.store import rows
from helix_tui.core.memory.store.database import Base, Vector
from helix_tui.core.memory.store.index import TRIGGER, WHOLE
from helix_tui.core.memory.words import key, words

_MENTION = re.compile(
    r"(?<![\w@:/.-])(?:"
    r"(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,9}(?![\w/])"  # a file, with or without folders
    r"|(?:[\w.@+-]+/)+[\w.@+-]*)"  # a folder, or a file without an ending
)
_MODULE = re.compile(r"(?<![\w@:/.-])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?![\w/-])")
"""A dotted name: ``helix.memory.store``, the path of a module or something in one."""
_NAMED = re.compile(
    r"`([A-Za-z_]\w{2,})`|\b([a-z]\w{2,}) (?:module|package)\b|\b(?:module|package) ([a-z]\w{2,})\b"
    r"|(?<![\w.@/-])([a-z]+(?:_[a-z0-9]+)+)(?![\w./(-])"
)
"""A module by its bare name, marked as one: in backticks, beside the word, with an underscore."""
_EXTENSION = re.compile(r"\.[A-Za-z]\w{0,9}\Z")
_ENDINGS = """
bash c cc cfg cjs conf cpp cs css csv cxx dart env erb ex exs go gradle graphql h hpp hs html ini
ipynb java js json jsonl jsx kt less lock lua mako md mjs ml mod php pl proto ps1 py pyi pyx r rb rs
rst sass scala scss sh sql sum svelte svg swift tcss tex tf toml ts tsx txt vue xml yaml yml zig zsh
"""
_KNOWN = frozenset(_ENDINGS.split())
_COMMON = frozenset(
    ("the", "this", "that", "each", "one", "test", "main", "index", "init", "utils", "same", "new", "old", "our")
)
"""Words before "module" that are not module names."""
MODULE = ".*"
"""Ends a mention of a module: a file with any ending, but not everything in a folder of that name."""
_WHOLE = frozenset(("__init__", "mod", "index"))
"""Names of the file that is the module of its folder."""
_WILD = re.compile(r"[*?\[]")
_MOST = 64
_QUOTES = "`'\"\u2018\u2019\u201c\u201d"
_IN = rf"[{_QUOTES}]*(?: \w+)? (?:in|of|from|under|inside|within|at) (?:the )?(?:folder |package |module )?[{_QUOTES}]*"
_LISTED = rf"[{_QUOTES}]*(?: (?:folder|package|module))?(?: ?[:,(] ?|'s )(?:the )?(?:file |module )?[{_QUOTES}]*"
_FILE = r"(?<![\w./-])[A-Za-z_][\w-]*\.[A-Za-z]\w{0,9}(?![\w/])"
_NAME = r"`[A-Za-z_]\w{2,}(?=`)"
_PLACE = r"(?<![\w./-])(?:[\w.@+-]+/)*[\w@+-]+/?(?![\w/])"
_PLACED = (
    re.compile(rf"(?P<file>{_FILE}|{_NAME}){_IN}(?P<place>{_PLACE})"),
    re.compile(rf"(?P<place>{_PLACE}){_LISTED}(?P<file>{_FILE})"),
)
"""A file without folders beside the folder that it is in."""


def mentioned(text: str) -> list[str]:
    """Paths mentioned in a text, without trailing punctuation; folders end in ``/``, and modules that are not folders
    in ``.*``.
    """
    found = _paths(text) + _modules(text)
    places = {match["place"].rstrip("/") for pattern in _PLACED for match in pattern.finditer(text)}
    named = [f"{path.rstrip('/')}{MODULE}" if path.rstrip("/") in places else path for path in found]
    return list(dict.fromkeys(named))[:_MOST]


def _paths(text: str) -> list[str]:
    found = []
    for match in _MENTION.finditer(text):
        path = match[0].rstrip(".")
        steps = [step for step in path.split("/") if step not in ("", ".")]
        if not steps or ".." in steps:
            continue
        extension = steps[-1].rpartition(".")[2].lower() if _EXTENSION.search(steps[-1]) else ""
        # "e.g" and "self.name" are not files: without a folder the ending must be a known one
        if extension and (extension in _KNOWN or len(steps) > 1):
            found.append("/".join(steps))
        elif path.endswith("/"):
            found.append("/".join(steps) + "/")
        elif len(steps) > 1:
            found.append("/".join(steps))
    return found


def _modules(text: str) -> list[str]:
    """Modules that a text names, as paths without an ending: dotted, in backticks, or called a module."""
    found = []
    for match in _MODULE.finditer(text):
        steps = match[0].split(".")
        if steps[-1].lower() in _KNOWN and len(steps) == 2:
            continue  # a file
        found += ["/".join(steps), *(["/".join(steps[:-1]) + MODULE] if len(steps) > 2 else [])]
    for match in _NAMED.finditer(text):
        name = match[match.lastindex or 0]
        if name not in _COMMON:
            found.append(name)
    return found


def meets(mention: str, file: str) -> bool:
    """Whether a file is, or is inside, a path that a memory mentions."""
    said, asked = _steps(mention), _steps(file)
    if not said or not asked:
        return False
    if mention.endswith(MODULE):
        said, stem = _steps(mention.removesuffix(MODULE)), asked[-1].partition(".")[0]
        module = asked[:-1] if stem in _WHOLE else [*asked[:-1], stem]
        return module[-len(said) :] == said
    if _WILD.search(file):
        # a bare file name has no folders, so only the pattern's last part counts
        if len(said) == 1 and not mention.endswith("/"):
            return fnmatchcase(said[0], asked[-1])
        return _under(mention, asked[:-1], said) or fnmatchcase("/".join(said), _pattern(file))
    folder = mention.endswith("/") or "." not in said[-1]
    if folder and any(asked[start : start + len(said)] == said for start in range(len(asked) - len(said))):
        return True
    if mention.endswith("/"):
        return False
    if "." not in said[-1] and meets(mention + MODULE, file):
        return True
    # either may omit its first folders
    short, long = (said, asked) if len(said) <= len(asked) else (asked, said)
    return long[-len(short) :] == short


def matches(database: Database, files: Iterable[str]) -> dict[int, tuple[str, ...]]:
    """Memory id -> the files that it mentions."""
    found: dict[int, list[str]] = {}
    for file in dict.fromkeys(files):
        for memory_id, mention in _candidates(database, file):
            if meets(mention, file) and file not in (known := found.setdefault(memory_id, [])):
                known.append(file)
    return {memory_id: tuple(known) for memory_id, known in found.items() if known}


def remember(database: Database, memory_id: int, texts: Iterable[str], listed: Iterable[str] = ()) -> None:
    """Index the paths that a memory's texts mention, and those that the plugin has listed for it."""
    paths = dict.fromkeys([*(path for text in texts for path in mentioned(text)), *listed])
    database.conn.executemany(
        "INSERT OR IGNORE INTO memory_path (memory_id, last, path) VALUES (?, ?, ?)",
        [(memory_id, _steps(path)[-1].removesuffix(MODULE), path) for path in paths if _steps(path)],
    )


def listed_by_plugin(text: object) -> list[str]:
    """The paths in the plugin's ``file_patterns`` of one row; empty if that is not a JSON list."""
    found = decode_json(text) if isinstance(text, str) else []
    return [path for path in found if isinstance(path, str)] if isinstance(found, list) else []


def _candidates(database: Database, file: str) -> list[tuple[int, str]]:
    """Mentions whose last part is the file's name or one of its folders."""
    steps = _steps(file)
    if steps and not _WILD.search(file):
        # a module is mentioned without its ending
        steps.append(steps[-1].partition(".")[0])
    if _WILD.search(file):
        rows = database.execute("SELECT memory_id, path FROM memory_path").fetchall()
    else:
        marks = ", ".join("?" * len(steps))
        rows = database.execute(f"SELECT memory_id, path FROM memory_path WHERE last IN ({marks})", steps).fetchall()
    return rows


def _under(mention: str, folder: list[str], said: list[str]) -> bool:
    """Whether a mentioned folder is the one that a pattern begins with."""
    fixed = [step for step in folder if not _WILD.search(step)]
    return mention.endswith("/") and bool(fixed) and said == fixed[: len(said)]


def _pattern(file: str) -> str:
    return file.removeprefix("./").replace("**/", "*").replace("**", "*")


def _steps(path: str) -> list[str]:
    return [step for step in path.replace("\\", "/").split("/") if step not in ("", ".")]


class Draft(Struct, frozen=True):
    """A memory to be stored."""

    trigger: str
    resolution: str
    type: str = "failure"
    source: str = ""
    attempt: str = ""
    bead: str = ""
    """The attempt or bead in which it occurred, if known: one bead is one occurrence."""
    taught_by: Teacher = "agent"
    accepted: bool = False
    """Whether agents are shown it at once."""

    @property
    def protected(self) -> bool:
        """Whether a person entered it, so that it is never merged away or pruned."""
        return USER_PROVIDED in self.source

    @property
    def whole(self) -> str:
        """Trigger and resolution as one text, which recall compares with queries."""
        return f"{self.trigger} {self.resolution}"


def index_texts(base: Base, memory_id: int, draft: Draft, listed: Iterable[str] = ()) -> None:
    """Index a memory by its words, its whole trigger and the paths it mentions, and keep the guard's verdict on it."""
    connection = base.database.conn
    put_words(base, memory_id, draft.whole)
    texts = (draft.trigger, draft.resolution, draft.source)
    connection.execute(
        "INSERT OR REPLACE INTO memory_mark (memory_id, digest, rules) VALUES (?, ?, ?)",
        (memory_id, marks.digest(*texts), marks.verdict(*texts)),
    )
    connection.execute("DELETE FROM memory_path WHERE memory_id = ?", (memory_id,))
    connection.execute(
        "INSERT OR REPLACE INTO memory_key (memory_id, key) VALUES (?, ?)", (memory_id, key(draft.trigger))
    )
    remember(base.database, memory_id, (draft.trigger, draft.resolution), listed)


def put_words(base: Base, memory_id: int, whole: str) -> None:
    """Index a memory by its words and those of its variants, the triggers of memories merged into it."""
    connection = base.database.conn
    variants = connection.execute("SELECT trigger FROM memory_variant WHERE memory_id = ?", (memory_id,))
    found_by = [whole, *(str(row[0]) for row in variants)]
    connection.execute(
        "INSERT OR REPLACE INTO memory_words (rowid, words) VALUES (?, ?)",
        (memory_id, " ".join(word for text in found_by for word in words(text))),
    )


def embed_missing(base: Base, limit: int | None = None) -> int:
    """Index the words and paths, and encode the texts, of memories that lack them; return how many.

    These were stored by the plugin, or while there was no encoder or another one.
    """
    done = _index_words(base)
    if base.encoder is None or base.read_only or not _vectors_lacking(base):
        return done
    table = " LEFT JOIN ".join(
        [
            "memory m",
            f"{WHOLE} v ON v.memory_id = m.id AND v.model = :model",
            f"{TRIGGER} t ON t.memory_id = m.id AND t.model = :model",
        ]
    )
    lacking = base.database.execute(
        f"SELECT m.id, m.trigger, m.resolution, m.type FROM {table}"
        # the newest first: a call on the way does only a few (`CATCH_UP`)
        " WHERE v.memory_id IS NULL OR t.memory_id IS NULL ORDER BY m.id DESC LIMIT :limit",
        {"model": base.model, "limit": -1 if limit is None else limit},
    ).fetchall()
    for start in range(0, len(lacking), 64):
        some = lacking[start : start + 64]
        drafts = {row[0]: Draft(str(row[1]), str(row[2])) for row in some}
        # encoded before the transaction, which keeps other processes from writing
        vectors = encode(base, list(drafts.values()))
        with base.writing():
            for memory_id, draft in drafts.items():
                put_vectors(base, memory_id, *vectors[draft])
            rows.bump(base.database.conn, drafts)
    return max(done, len(lacking))


def encode(base: Base, drafts: Sequence[Draft]) -> dict[Draft, tuple[Vector | None, Vector | None]]:
    """(vector of the trigger, vector of trigger and resolution) of each draft; none without an encoder."""
    vectors = base.encode([text for draft in drafts for text in (draft.trigger, draft.whole)])
    if vectors is None:
        return {}
    return dict(zip(drafts, zip(vectors[::2], vectors[1::2], strict=True), strict=True))


def put_vectors(base: Base, memory_id: int, trigger: Vector | None, whole: Vector | None) -> None:
    # the plugin recalls only what has a vector of this model in its own column
    if whole is not None and base.model == MODEL_ID:
        blob = np.asarray(whole, np.float32).tobytes()
        base.database.conn.execute(
            "UPDATE memory SET embedding = ? WHERE id = ? AND embedding IS NULL", (blob, memory_id)
        )
    for table, vector in ((TRIGGER, trigger), (WHOLE, whole)):
        if vector is not None:
            base.database.conn.execute(
                f"INSERT OR REPLACE INTO {table} (memory_id, model, vector) VALUES (?, ?, ?)",
                (memory_id, base.model, np.asarray(vector, np.float32).tobytes()),
            )


def _index_words(base: Base) -> int:
    """Index the texts of memories that another program has stored."""
    if base.read_only:
        return 0
    # counting is quick; which ones lack a key is asked only where some do
    if _count(base, "SELECT count(*) FROM memory_key") >= _count(base, "SELECT count(*) FROM memory"):
        return 0
    has_patterns = "file_patterns" in {column.name for column in base.database["memory"].columns}
    lacking = base.database.execute(
        f"SELECT id, trigger, resolution, {'file_patterns' if has_patterns else 'NULL'}, source FROM memory"
        " WHERE id NOT IN (SELECT memory_id FROM memory_key)"
    ).fetchall()
    if not lacking:
        return 0
    with base.writing():
        for memory_id, trigger, resolution, listed, source in lacking:
            draft = Draft(str(trigger), str(resolution), source=str(source or ""))
            index_texts(base, memory_id, draft, listed_by_plugin(listed))
        rows.bump(base.database.conn, [row[0] for row in lacking])
    return len(lacking)


def _vectors_lacking(base: Base) -> bool:
    """Whether a memory lacks a vector of this model, by counting, without reading vectors."""
    every = _count(base, "SELECT count(*) FROM memory")
    return any(
        _count(base, f"SELECT count(*) FROM {table} WHERE model = ?", base.model) < every for table in (WHOLE, TRIGGER)
    )


def _count(base: Base, sql: str, *values: str) -> int:
    return int(base.database.execute(sql, list(values)).fetchone()[0])
