"""Check a task of a plan: run its VERIFY, and compare the changed files with the plan's rules.

VERIFY comes from a plan, which a model wrote: it is run as a program with its arguments, never by a shell. A violation
of the plan (a file outside DELTA, a forbidden idiom) blocks a task even if its VERIFY passes
(docs/formats/memory.md §3).

Idioms are checked as far as a program can: the code that a change must contain, and the code that it must not add. Code
is text in backticks, else text unlike prose: a call, a decorator, an option, a dotted or joined name, a quotation. A
rule with a condition (unless, outside tests) is checked only for code in backticks; everything else is left to the
reviewer.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, to_builtins

from helix_tui.core.ground.files import below, is_folder, read_bytes
from helix_tui.core.ground.git import ask_git
from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.text import clean_block, clean_line, counted

_TICKED = re.compile(r"`([^`\n]{2,200})`")
_BARE = re.compile(
    r"(?P<quoted>\"[^\"\n]{2,80}\"|“[^”\n]{2,80}”|(?<!\w)'[^'\n]{2,80}'(?!\w))"
    r"|(?P<code>@[A-Za-z_][\w.]*(?:\(\))?"  # a decorator
    r"|(?<![\w-])--[a-z][\w-]+"  # an option
    r"|(?<![\w.])[A-Za-z_][\w.]*(?:::\w+)*[!]?\((?:\))?"  # a call
    r"|(?<![\w./])[A-Za-z_]\w+(?:(?:\.|::)[A-Za-z_]\w+)+(?![\w/])"  # a dotted name
    r"|(?<![\w./])\w+_\w+(?![\w./])|(?<![\w./])[a-z]{2,}[A-Z][a-z]\w*(?![\w./]))"  # a joined name
)
_PROSE = re.compile(r"(?i)\.(?:js|ts|py|rs|go|md|net|io|com|org|json|toml|ya?ml|css|html|txt|cfg|ini|sql|sh|db)$")
"""Endings of products and files, which are not dotted names."""

_CUE = re.compile(
    r"(?i)\b(?P<instead>instead of|rather than|in place of)\b"
    r"|\b(?P<no>(?:do not|don['’]t|never|not|no|avoid|forbid|ban)"
    r"(?:\s+(?:ever|use|using|call|calling|add|import|write))*)\b"
    r"|\b(?P<yes>use|using|prefer|call|import)\b"
)
_CONDITION = re.compile(r"(?i)\b(?:unless|except|only|outside|without|where|when|if|inside|in tests?|in \w+ code)\b")
_PURPOSE = re.compile(r"(?i)\b(?:for|in|on|to)\s+(?P<words>[^.;:,]+)")
_COMMON = frozenset(
    ("this", "that", "the", "all", "any", "each", "every", "code", "file", "files", "module", "function")
)

VERIFY_TIMEOUT_S = 600.0

OUTPUT_LINES = 20
"""Number of last output lines of VERIFY that are kept."""

_CAP = 4 << 20

MAX_CHANGED = 2_000
"""Maximum changed files checked; a task changes a few."""

_SHELL = frozenset("|;<>`$&*?(){}~")

_OURS = (":(exclude).ddx", ":(exclude).helix", ":(exclude).helix-logs", ":(exclude,glob)**/__pycache__/**")
"""Files not written by hand: DDx's, HELIX's, and Python bytecode."""


class Idiom(Struct, frozen=True):
    """One rule."""

    text: str
    wanted: tuple[str, ...] = ()
    """Code snippets, one of which must be in a changed file."""
    banned: tuple[str, ...] = ()
    """Code that no added line may contain."""
    purpose: tuple[str, ...] = ()
    """Prefixes of words for its scope; empty: everything."""

    def concerns(self, task: str) -> bool:
        """Whether a task's words match the rule's scope; true if either is empty."""
        said = task.lower()
        return not self.purpose or not said.strip() or any(word in said for word in self.purpose)


def parse_idiom(text: str, *, forbidden: bool) -> Idiom:
    """Parse the code that a rule names, and whether it is required or forbidden, by its list and words."""
    ticked = [(found.start(), found[1]) for found in _TICKED.finditer(text)]
    named = ticked or ([] if _CONDITION.search(text) else list(_bare(text)))
    cues = list(_CUE.finditer(_TICKED.sub(lambda each: " " * len(each[0]), text)))
    wanted: list[str] = []
    banned: list[str] = []
    for place, code in named:
        before = [cue for cue in cues if cue.end() <= place]
        cue = before[-1].lastgroup if before else ""
        if forbidden:
            other = bool(banned) and cue in ("instead", "yes")  # what to do instead
            banned += [] if other else [code]
        else:
            (banned if cue in ("instead", "no") else wanted).append(code)
    purpose = () if forbidden or not wanted else _purpose(text, named[0][0])
    return Idiom(text, tuple(wanted), tuple(banned), purpose)


def shows(text: str, code: str) -> bool:
    """Whether a text contains some code, as a whole name; ``name()`` is any call of it."""
    sought = code[:-1] if code.endswith("()") else code
    begin = r"(?<!\w)" if sought[:1].isalnum() or sought[:1] == "_" else ""
    end = r"(?!\w)" if sought[-1:].isalnum() or sought[-1:] == "_" else ""
    return re.search(begin + re.escape(sought) + end, text) is not None


def _bare(text: str) -> Iterator[tuple[int, str]]:
    for found in _BARE.finditer(text):
        code = found["code"] or found["quoted"][1:-1]
        if code.strip() and not (found["code"] and _PROSE.search(code)):
            yield found.start(), code


def _purpose(text: str, place: int) -> tuple[str, ...]:
    match = _PURPOSE.search(text, place)
    words = re.findall(r"[a-z]{3,}", match["words"].lower()) if match else ()
    return tuple(dict.fromkeys(word[:5] for word in words if word not in _COMMON))


Found = Literal["passed", "failed", "not run"]


class TaskCheck(Struct, frozen=True):
    """The result of a task's VERIFY, and the rules of its plan that its change breaks."""

    result: Found
    why: str
    output: str = ""
    """The last lines of its output."""
    seconds: float = 0.0
    violations: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the task may be marked delivered."""
        return self.result == "passed" and not self.violations

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {**to_builtins(self), "seconds": round(self.seconds, 3)}


def words_of(command: str) -> list[list[str]]:
    """The programs of a VERIFY with their arguments: one, or several joined by ``&&``.

    Raises:
        ValueError: it needs a shell; the message says why.
    """
    if not command.strip():
        raise ValueError("there is no command")
    found = []
    for part in re.split(r"\s&&\s", command):
        # quoted, these characters are plain; but in double quotes a shell still interprets $ and `
        bare = re.sub(r"'[^']*'|\"[^\"$`]*\"", "", part)
        needs = sorted(_SHELL & set(bare))
        if needs or "\n" in part:
            what = f"“{needs[0]}”" if needs else "a new line"
            raise ValueError(f"{what} needs a shell; put the command into a script and run that")
        try:
            words = shlex.split(part)
        except ValueError as error:
            raise ValueError(f"its quotes do not match ({error})") from None
        if not words or "=" in words[0]:
            raise ValueError("it does not begin with a program")
        found.append(words)
    return found


def run_verify(command: str, root: Path, timeout: float = VERIFY_TIMEOUT_S) -> TaskCheck:
    """Run a task's VERIFY in the project, with limits and without a shell; keep its last lines."""
    shown = clean_line(command, 200)
    try:
        parts = words_of(command)
    except ValueError as error:
        return TaskCheck("not run", f"`{shown}` is not run: {error}")
    spent, done, folder = 0.0, None, root
    for words in parts:
        if words[0] == "cd" and len(words) == 2:  # `cd`, which a shell does itself
            folder = (folder / words[1]).resolve()
            if not is_folder(folder) or not folder.is_relative_to(root.resolve()):
                return TaskCheck("not run", f"`{shown}` is not run: no folder {clean_line(words[1], 60)} in it")
            continue
        try:
            done = run(words, cwd=folder, timeout=max(0.1, timeout - spent), cap=_CAP)
        except OSError as error:
            return TaskCheck("not run", f"`{clean_line(words[0], 80)}` does not start: {error.strerror}", "", spent)
        spent += done.seconds
        if done.timed_out:
            return TaskCheck("failed", f"`{shown}` took longer than {timeout:g} s", _last(done), spent)
        if done.rc:
            return TaskCheck("failed", f"`{shown}` ended with {done.rc}", _last(done), spent)
    if done is None:
        return TaskCheck("not run", f"`{shown}` runs nothing")
    return TaskCheck("passed", f"`{shown}` passed", _last(done), spent)


def state_of_tree(root: Path) -> dict[str, Any]:
    """A reference for later comparison: the commit, and the uncommitted changes; empty outside git."""
    head = ask_git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    if head is None:
        return {}
    return {"rev": head.out.strip(), "files": _changed(root, "HEAD")}


def changed_since(root: Path, before: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The files that differ from `state_of_tree`; None if unknown."""
    rev, files = before.get("rev"), before.get("files")
    if not isinstance(rev, str) or not re.fullmatch(r"[0-9a-f]{7,64}", rev) or not isinstance(files, dict):
        return None
    try:
        now = _changed(root, rev)
    except LookupError:
        return None
    # changed before the task and now as in the commit: the task undid another change
    back = (name for name in files if name not in now and _digest(below(root, name)) != files[name])
    return tuple(sorted({name for name, digest in now.items() if files.get(name) != digest} | set(back)))


def violations_in(
    root: Path,
    rev: str,
    changed: Iterable[str],
    *,
    delta: Sequence[str],
    required: Sequence[str],
    forbidden: Sequence[str],
    others: Iterable[str] = (),
    task: str = "",
) -> tuple[str, ...]:
    """The rules of a plan that a change breaks.

    Args:
        rev: the commit to compare with.
        changed: the files that changed.
        delta: the files that may; empty: none.
        required, forbidden: idioms; the code that they name is searched for.
        others: files that other tasks may change at the same time.
        task: the task in its words: an idiom for something else does not apply.
    """
    names, allowed = tuple(changed), set(delta) | set(others)
    found: list[str] = []
    scope = "outside DELTA" if delta else "changed, and DELTA names no file"
    outside = [name for name in names if name not in allowed and not _below(name, allowed)]
    found += [f"{clean_line(name, 200)} is {scope}" for name in outside[:10]]
    if len(outside) > 10:
        found.append(f"{counted(len(outside) - 10, 'more file is', 'more files are')} {scope}")
    # idioms apply to the task's own files: other changes are another task's
    inside = [name for name in names if name in delta or _below(name, set(delta))]
    added = "\n".join(_added(root, rev, name) for name in inside)
    texts = [_text(below(root, name)) for name in inside]
    idioms = [("forbidden", parse_idiom(each, forbidden=True)) for each in forbidden]
    # if none of the task's own files changed, none could contain one
    idioms += [("required", parse_idiom(each, forbidden=False)) for each in required if inside]
    for kind, idiom in idioms:
        broken = next((code for code in idiom.banned if shows(added, code)), "")
        if broken:
            found.append(f"{kind}: {clean_line(idiom.text, 200)} (the change adds `{clean_line(broken, 80)}`)")
        kept = any(shows(text, code) for code in idiom.wanted for text in texts)
        if idiom.wanted and not kept and idiom.concerns(task):
            missing = clean_line(idiom.wanted[0], 80)
            found.append(f"{kind}: {clean_line(idiom.text, 200)} (no changed file has `{missing}`)")
    return tuple(found)


def _below(name: str, allowed: Iterable[str]) -> bool:
    """Whether a file is in a folder that is allowed as a whole: ``src/``."""
    return any(each.endswith("/") and name.startswith(each) for each in allowed)


def _changed(root: Path, rev: str) -> dict[str, str]:
    """File -> digest of its content, for every file that differs from a commit or is untracked.

    Raises:
        LookupError: git no longer has the commit.
    """
    diff = ask_git(
        root, "diff", "--name-only", "-z", "--no-renames", "--end-of-options", rev, "--", ".", *_OURS, cap=_CAP
    )
    new = ask_git(root, "ls-files", "-z", "--others", "--exclude-standard", "--", ".", *_OURS, cap=_CAP)
    if diff is None:
        raise LookupError(rev)
    names = [name for done in (diff, new) if done is not None for name in done.out.split("\0") if name]
    return {name: _digest(below(root, name)) for name in names[:MAX_CHANGED]}


def _added(root: Path, rev: str, name: str) -> str:
    """The lines that a change adds to a file; all lines of an untracked file."""
    known = ask_git(root, "ls-files", "--error-unmatch", "--", name)
    if known is None:
        return _text(below(root, name))
    # without running programs named in the repository's configuration
    words = ("diff", "-U0", "--no-color", "--no-ext-diff", "--no-textconv", "--end-of-options", rev, "--", name)
    done = ask_git(root, *words, cap=_CAP)
    if done is None:
        return ""
    lines = done.out.split("\n")
    return "\n".join(line[1:] for line in lines if line.startswith("+") and not line.startswith("+++"))


def _text(path: Path) -> str:
    return (_bytes(path) or b"").decode("utf-8", "replace")


def _digest(path: Path) -> str:
    """A digest of a file's content; empty if there is no file."""
    raw = _bytes(path)
    return "" if raw is None else hashlib.sha256(raw).hexdigest()[:16]


def _bytes(path: Path) -> bytes | None:
    return read_bytes(path, _CAP)


def _last(done: Finished | None) -> str:
    """The last lines of a program's output, both streams."""
    if done is None:
        return ""
    lines = clean_block(f"{done.out}\n{done.err}".strip()).split("\n")
    return "\n".join(lines[-OUTPUT_LINES:])
