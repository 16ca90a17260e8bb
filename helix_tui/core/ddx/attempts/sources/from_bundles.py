"""Read each evidence folder as an attempt's pieces or as a review. Format: docs/formats/ddx.md §5."""

from __future__ import annotations

import heapq
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from msgspec import Struct

from helix_tui.core.ddx.attempts.attempt import Review, memory_class
from helix_tui.core.ddx.attempts.pieces import Piece
from helix_tui.core.ddx.files import decode_object, instant, money, text, whole, word
from helix_tui.core.ddx.measures import ratchet_reason, read_ratchets, rows_in
from helix_tui.core.ddx.names import began_at
from helix_tui.core.ground.files import Folder, read_bytes, stamp_of
from helix_tui.core.ground.text import CONTEXT_BEGIN, clean_block, clean_line, split_block

_PROMPT_BEAD = re.compile(rb'<(execute-bead|bead-review)>.{0,4000}?<bead id="([^"\n]{1,200})"', re.DOTALL)
_SMALL = 8 << 20
_CLEANUP = "process-cleanup.json"
"""Why ddx ended the processes of an attempt (since July); no reason if they had ended by themselves."""
_YOUNG = 24
"""Newest folders that are checked without a hint: a folder cannot be watched before it exists."""

_CHECKS = "checks.json"
"""ddx's measurements before landing; the result of an attempt that passed lacks them."""

_READ = ("result.json", "manifest.json", "usage.json", "prompt.md", _CHECKS, _CLEANUP)

MAX_BUNDLES = 40_000
"""Maximum number of evidence folders read, newest first by name: 3.4 KB each, 140 MB in all. Real projects have
hundreds, and DDx archives old ones.
"""

_SIZES = (4, 8, 16, 32, 64)
"""Limits of the prompt size classes, in KB."""


class FoundBundle(Struct, frozen=True):
    """The content of a bundle folder: an attempt's pieces, or a review of an attempt."""

    bead_id: str
    from_files: tuple[Piece, ...] = ()
    """The pieces from its files."""
    review: Review | None = None
    reviewed_rev: str = ""
    reviewed_base: str = ""
    named: tuple[str, Path] | None = None
    """An attempt's id and folder; the name includes its start."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """The pieces from its files and from its name."""
        if self.named is None:
            return self.from_files
        name, folder = self.named
        return (*self.from_files, Piece("name", name, self.bead_id, started_at=began_at(name), folder=folder))


class Archive:
    """Evidence archived by DDx: ``executions-archive/<year>/<month>/<attempt>``."""

    def __init__(self, path: Path) -> None:
        self._years = Folder(path)
        self._months: dict[Path, Folder] = {}
        self._held: dict[Path, tuple[str, ...]] = {}
        self.folders: dict[str, Path] = {}

    def refresh(self) -> None:
        """List the archive again."""
        held: dict[Path, tuple[str, ...]] = {}
        for year in self._years.names():
            months = self._folder(self._years.path / year)
            held |= {months.path / month: self._folder(months.path / month).names() for month in months.names()}
        if held != self._held:
            self._held = held
            self.folders = {name: month / name for month, names in held.items() for name in names}

    def _folder(self, path: Path) -> Folder:
        return self._months.setdefault(path, Folder(path))


class BundleFolders:
    """Evidence folders; a folder is read again only when it or its result changed."""

    def __init__(self, ddx_dir: Path) -> None:
        self.folder = Folder(ddx_dir / "executions")
        self.archive = Archive(ddx_dir / "executions-archive")
        self.found: dict[str, FoundBundle] = {}
        self.problems: dict[Path, str] = {}
        self.unread = 0
        """The number of folders too old to be read."""
        self._stamps: dict[str, int] = {}

    def refresh(self, changed: Iterable[Path] | None = None) -> set[str]:
        """Read what changed; return the ids of beads whose attempts may differ now."""
        self.archive.refresh()
        names, archived, self.unread = self._newest()
        dirty: set[str] = set()
        for gone in self._stamps.keys() - set(names) - archived:
            dirty |= self._drop(gone)
        for name in self._changed_names(changed, names, archived):
            folder = self.archive.folders[name] if name in archived else self.folder.path / name
            stamp = _folder_stamp(folder)
            if stamp != self._stamps.get(name):
                dirty |= self._drop(name)
                self._stamps[name] = stamp
                found = self._read(folder)
                if found is not None:
                    self.found[name] = found
                    dirty.add(found.bead_id)
        return dirty

    def _newest(self) -> tuple[Sequence[str], Set[str], int]:
        """The names of folders to read, present and archived, and how many are left out."""
        names = self.folder.names()
        archived = self.archive.folders.keys() - set(names)
        unread = max(0, len(names) + len(archived) - MAX_BUNDLES)
        if unread:
            # names start with a time: the largest are the newest
            ours = set(heapq.nlargest(MAX_BUNDLES, (*names, *archived)))
            names, archived = tuple(name for name in names if name in ours), archived & ours
        return names, archived, unread

    def _changed_names(self, changed: Iterable[Path] | None, names: Sequence[str], archived: Set[str]) -> Iterable[str]:
        if changed is None:
            return [*names, *archived]
        base = self.folder.path
        hinted = {path.relative_to(base).parts[0] for path in changed if _is_under(path, base)}
        hinted.update(names[-_YOUNG:])
        return [name for name in (*names, *archived) if name in hinted or name not in self._stamps]

    def _drop(self, name: str) -> set[str]:
        self._stamps.pop(name, None)
        self.problems = {path: why for path, why in self.problems.items() if path.parent.name != name}
        found = self.found.pop(name, None)
        return {found.bead_id} if found is not None else set()

    def _read(self, folder: Path) -> FoundBundle | None:
        name = folder.name
        result = self._load(folder / "result.json")
        manifest = self._load(folder / "manifest.json")
        # a review's folder is named alike: only its keys distinguish it from an attempt's
        if _is_review(result, manifest):
            return _review_found(folder, result or {}, manifest or {})
        bead_id = text(result, "bead_id") or text(manifest, "bead_id")
        pieces: list[Piece] = []
        if result is not None:
            checks = self._load(folder / _CHECKS) or {}
            pieces.append(_result_piece(name, folder, _checked(result, checks), self._load(folder / "usage.json")))
            pieces[0].ratchets = read_ratchets(result) or read_ratchets(checks)
            pieces[0].stopped = clean_line(text(self._load(folder / _CLEANUP), "trigger"), 200)
        if manifest is not None:
            pieces.append(_manifest_piece(name, folder, manifest))
        if not bead_id:
            kind, bead_id = _of_prompt(folder)
            # a running review has written only its prompt
            if kind == "bead-review":
                return FoundBundle(bead_id, review=Review("", at=began_at(name), folder=folder))
        if not bead_id:
            return None
        # one string object for all pieces of a bead, in up to 40,000 folders
        bead_id = sys.intern(bead_id)
        for piece in pieces:
            piece.bead_id = bead_id
        return FoundBundle(bead_id, tuple(pieces), named=(name, folder))

    def _load(self, path: Path) -> dict[str, Any] | None:
        raw = read_bytes(path, _SMALL)
        self.problems.pop(path, None)
        if raw is None:
            return None
        try:
            return decode_object(raw)
        except ValueError as error:
            self.problems[path] = clean_line(f"half-written or no JSON: {error}", 200)
            return None


def _is_review(result: Mapping[str, Any] | None, manifest: Mapping[str, Any] | None) -> bool:
    if manifest is not None and "verdict" in manifest:
        return True
    if result is None or "verdict" not in result:
        return False
    return not result.get("bead_id") and not result.get("status")


def _review_found(folder: Path, result: Mapping[str, Any], manifest: Mapping[str, Any]) -> FoundBundle:
    bead_id = text(manifest, "bead_id") or _of_prompt(folder)[1]
    rationale = text(result, "rationale") or text(result, "summary") or text(manifest, "rationale")
    verdict = text(result, "verdict") or text(manifest, "verdict")
    return FoundBundle(
        bead_id,
        review=Review(clean_line(verdict, 80), clean_block(rationale, 20_000), began_at(folder.name), folder),
        reviewed_rev=text(manifest, "result_rev"),
        reviewed_base=text(manifest, "base_rev"),
    )


def _of_prompt(folder: Path) -> tuple[str, str]:
    """The purpose of a bundle's prompt, and its bead."""
    match = _PROMPT_BEAD.search(read_bytes(folder / "prompt.md", 16_384) or b"")
    return (match[1].decode(), match[2].decode("utf-8", "replace")) if match is not None else ("", "")


def _checked(result: Mapping[str, Any], checks: Mapping[str, Any]) -> Mapping[str, Any]:
    """The result as its checks leave it: April writes it before them, and it says ``success`` where they failed."""
    gates = rows_in(checks.get("results"))
    failed = [gate for gate in gates if gate.get("required") and text(gate, "status") == "fail"]
    if not failed or word(result, "status") != "success":
        return result
    status = "ratchet_failed" if text(checks, "ratchet_summary") == "fail" else "post_run_check_failed"
    return {**result, "status": status, "detail": "; ".join(_why_failed(gate) for gate in failed)}


def _why_failed(gate: Mapping[str, Any]) -> str:
    why = ratchet_reason(gate)
    if why is None:
        why = f"exit code {gate.get('exit_code')}"
    return f"{text(gate, 'definition_id')}: {why}"


def _result_piece(name: str, folder: Path, result: Mapping[str, Any], usage: Mapping[str, Any] | None) -> Piece:
    trace = result.get("cycle_trace")
    cycles = [cycle for cycle in trace if isinstance(cycle, dict)] if isinstance(trace, list) else []
    usage = usage or {}
    rationale = text(result, "no_changes_rationale")
    if not rationale:
        rationale = (read_bytes(folder / "no_changes_rationale.txt", 64 << 10) or b"").decode("utf-8", "replace")
    return Piece(
        "result",
        name,
        status=word(result, "status"),
        outcome=word(result, "outcome"),
        detail=clean_line(text(result, "detail") or text(result, "reason"), 2000),
        worker_id=word(result, "worker_id"),
        session_id=text(result, "session_id"),
        harness=word(result, "harness") or word(usage, "harness"),
        model=word(result, "model") or word(usage, "model"),
        provider=word(result, "provider") or word(usage, "provider"),
        started_at=instant(result.get("started_at")),
        finished_at=instant(result.get("finished_at")),
        duration_ms=whole(result.get("duration_ms")),
        tokens_in=whole(usage.get("input_tokens")),
        tokens_cached=whole(usage.get("cached_tokens")),
        tokens_out=whole(usage.get("output_tokens")),
        tokens=whole(result.get("tokens")) or whole(usage.get("tokens")),
        cost_usd=money(result.get("cost_usd")) or money(usage.get("cost_usd")),
        base_rev=text(result, "base_rev"),
        result_rev=text(result, "result_rev"),
        landed_rev=text(result, "landed_rev"),
        land_status="landed" if any(c.get("land_status") == "landed" for c in cycles) else "",
        preserve_ref=text(result, "preserve_ref"),
        no_changes_rationale=clean_block(rationale, 20_000),
        failure_mode=word(result, "failure_mode"),
        error=clean_line(text(result, "error"), 2000),
        # Go reports -1 for a process ended by a signal
        exit_code=whole(result.get("exit_code"), low=-(1 << 31)),
        review_verdict=word(result, "review_verdict"),
        review_rationale=clean_block(text(result, "review_rationale"), 20_000),
        candidate_ref=text(result, "candidate_ref") or _candidate(name, cycles),
        folder=folder,
    )


def _candidate(attempt_id: str, cycles: list[dict[str, Any]]) -> str:
    """The ref at which head keeps an attempt's last candidate, if its result has cycles and no ref."""
    return f"refs/ddx/iterations/{attempt_id}/{len(cycles) - 1}" if cycles else ""


def _manifest_piece(name: str, folder: Path, manifest: Mapping[str, Any]) -> Piece:
    asked = manifest.get("requested")
    asked = asked if isinstance(asked, dict) else {}
    return Piece(
        "manifest",
        name,
        worker_id=word(manifest, "worker_id"),
        harness=word(asked, "harness"),
        model=word(asked, "model"),
        provider=word(asked, "provider"),
        started_at=instant(manifest.get("created_at")),
        base_rev=text(manifest, "base_rev"),
        effort=word(asked, "effort"),
        prompt=_prompt_class(folder, text(asked, "prompt")),
        context=_context_class(manifest),
        memories=_memory_class(manifest),
        folder=folder,
    )


def _prompt_class(folder: Path, source: str) -> str:
    """The size class of a prompt, with its file if it was not ddx's own."""
    stamp = stamp_of(folder / "prompt.md")
    if stamp is None:
        return ""
    low = max((size for size in _SIZES if stamp[1] >= size << 10), default=0)
    size = f"{low} KB and more" if low == _SIZES[-1] else f"{low} to {next(each for each in _SIZES if each > low)} KB"
    own = Path(source).name if source not in ("", "synthesized") else ""
    return sys.intern(f"{clean_line(own, 60)}, {size}" if own else size)


def _context_class(manifest: Mapping[str, Any]) -> str:
    governing = manifest.get("governing")
    count = len(governing) if isinstance(governing, list) else 0
    documents = "no document" if not count else "1 document" if count == 1 else "2 documents and more"
    return sys.intern(f"{documents}, HELIX's context" if CONTEXT_BEGIN in _described(manifest) else documents)


def _memory_class(manifest: Mapping[str, Any]) -> str:
    described = split_block(_described(manifest))[1]
    return memory_class(sum(line.startswith("- ") for line in described.split("\n")))


def _described(manifest: Mapping[str, Any]) -> str:
    bead = manifest.get("bead")
    return text(bead, "description") if isinstance(bead, dict) else ""


def _folder_stamp(folder: Path) -> int:
    """The state of a folder as a hash of all stamps, a twentieth of their size."""
    place = os.fspath(folder)
    return hash((place, *(stamp_of(f"{place}/{name}") for name in _READ)))


def _is_under(path: Path, folder: Path) -> bool:
    return path != folder and path.is_relative_to(folder)
