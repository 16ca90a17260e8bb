"""Evidence folders, each read as an attempt's pieces or as a review. Format: reference/ddx.md §5."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helix_tui.core.ddx.attempts.attempt import Piece, Review
from helix_tui.core.ddx.attempts.bundles import began_at
from helix_tui.core.ddx.fields import instant, money, text, whole
from helix_tui.core.ddx.files import Folder, decode_object, read_bytes, stamp_of
from helix_tui.core.text import clean_block, clean_line

_PROMPT_BEAD = re.compile(rb'<(execute-bead|bead-review)>.{0,4000}?<bead id="([^"\n]{1,200})"', re.DOTALL)
_SMALL = 8 << 20
_YOUNG = 24
"""Newest folders that are looked at without a hint: nobody watches a folder before it is there."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a bundle folder turned out to hold: an attempt's pieces, or a review of some attempt."""

    bead_id: str
    pieces: tuple[Piece, ...] = ()
    review: Review | None = None
    reviewed_rev: str = ""
    reviewed_base: str = ""


class Archive:
    """Evidence that DDx has put away as old: ``executions-archive/<year>/<month>/<attempt>``."""

    def __init__(self, path: Path) -> None:
        self._years = Folder(path)
        self._months: dict[Path, Folder] = {}
        self._held: dict[Path, tuple[str, ...]] = {}
        self.folders: dict[str, Path] = {}

    def refresh(self) -> None:
        """See what is there now."""
        held: dict[Path, tuple[str, ...]] = {}
        for year in self._years.names():
            months = self._folder(self._years.path / year)
            held |= {
                months.path / month: self._folder(months.path / month).names() for month in months.names()
            }
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
        self.found: dict[str, Found] = {}
        self.problems: dict[Path, str] = {}
        self._stamps: dict[str, tuple[object, ...]] = {}

    def refresh(self, changed: Iterable[Path] | None = None) -> set[str]:
        """Read what changed; the ids of beads whose attempts may differ now."""
        self.archive.refresh()
        present = set(self.folder.names())
        archived = self.archive.folders.keys() - present
        dirty: set[str] = set()
        for gone in self._stamps.keys() - present - archived:
            dirty |= self._drop(gone)
        for name in self._changed_names(changed, archived):
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

    def _changed_names(self, changed: Iterable[Path] | None, archived: Set[str]) -> Iterable[str]:
        names = self.folder.names()
        if changed is None:
            return [*names, *archived]
        base = self.folder.path
        hinted = {path.relative_to(base).parts[0] for path in changed if _is_under(path, base)}
        hinted.update(names[-_YOUNG:])
        return [name for name in (*names, *archived) if name in hinted or name not in self._stamps]

    def _drop(self, name: str) -> set[str]:
        self._stamps.pop(name, None)
        found = self.found.pop(name, None)
        return {found.bead_id} if found is not None else set()

    def _read(self, folder: Path) -> Found | None:
        name = folder.name
        result = self._load(folder / "result.json")
        manifest = self._load(folder / "manifest.json")
        if _is_review(result, manifest):
            return _review_found(folder, result or {}, manifest or {})
        bead_id = text(result, "bead_id") or text(manifest, "bead_id")
        pieces: list[Piece] = []
        if result is not None:
            pieces.append(_result_piece(name, folder, result, self._load(folder / "usage.json")))
        if manifest is not None:
            pieces.append(_manifest_piece(name, folder, manifest))
        if not bead_id:
            kind, bead_id = _of_prompt(folder)
            if kind == "bead-review":
                return Found(bead_id, review=Review("", at=began_at(name), folder=folder))
        if not bead_id:
            return None
        pieces.append(Piece("name", name, bead_id, started_at=began_at(name), folder=folder))
        for piece in pieces:
            piece.bead_id = bead_id
        return Found(bead_id, tuple(pieces))

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


def _review_found(folder: Path, result: Mapping[str, Any], manifest: Mapping[str, Any]) -> Found:
    bead_id = text(manifest, "bead_id") or _of_prompt(folder)[1]
    rationale = text(result, "rationale") or text(result, "summary") or text(manifest, "rationale")
    verdict = text(result, "verdict") or text(manifest, "verdict")
    return Found(
        bead_id,
        review=Review(clean_line(verdict, 80), clean_block(rationale, 20_000), began_at(folder.name), folder),
        reviewed_rev=text(manifest, "result_rev"),
        reviewed_base=text(manifest, "base_rev"),
    )


def _of_prompt(folder: Path) -> tuple[str, str]:
    """What a bundle's prompt is for, and of which bead."""
    match = _PROMPT_BEAD.search(read_bytes(folder / "prompt.md", 16_384) or b"")
    return (match[1].decode(), match[2].decode("utf-8", "replace")) if match is not None else ("", "")


def _result_piece(
    name: str, folder: Path, result: Mapping[str, Any], usage: Mapping[str, Any] | None
) -> Piece:
    trace = result.get("cycle_trace")
    cycles = [cycle for cycle in trace if isinstance(cycle, dict)] if isinstance(trace, list) else []
    usage = usage or {}
    rationale = text(result, "no_changes_rationale")
    if not rationale:
        rationale = (read_bytes(folder / "no_changes_rationale.txt", 64 << 10) or b"").decode(
            "utf-8", "replace"
        )
    return Piece(
        "result",
        name,
        status=text(result, "status"),
        outcome=text(result, "outcome"),
        detail=clean_line(text(result, "detail") or text(result, "reason"), 2000),
        worker_id=text(result, "worker_id"),
        session_id=text(result, "session_id"),
        harness=text(result, "harness") or text(usage, "harness"),
        model=text(result, "model") or text(usage, "model"),
        provider=text(result, "provider") or text(usage, "provider"),
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
        failure_mode=text(result, "failure_mode"),
        error=clean_line(text(result, "error"), 2000),
        exit_code=whole(result.get("exit_code"), low=-(1 << 31)),
        review_verdict=text(result, "review_verdict"),
        review_rationale=clean_block(text(result, "review_rationale"), 20_000),
        candidate_ref=text(result, "candidate_ref") or _candidate(name, cycles),
        folder=folder,
    )


def _candidate(attempt_id: str, cycles: list[dict[str, Any]]) -> str:
    """Where head keeps the last candidate of an attempt, where its result has cycles and no ref."""
    return f"refs/ddx/iterations/{attempt_id}/{len(cycles) - 1}" if cycles else ""


def _manifest_piece(name: str, folder: Path, manifest: Mapping[str, Any]) -> Piece:
    asked = manifest.get("requested")
    asked = asked if isinstance(asked, dict) else {}
    return Piece(
        "manifest",
        name,
        worker_id=text(manifest, "worker_id"),
        harness=text(asked, "harness"),
        model=text(asked, "model"),
        provider=text(asked, "provider"),
        started_at=instant(manifest.get("created_at")),
        base_rev=text(manifest, "base_rev"),
        folder=folder,
    )


def _folder_stamp(folder: Path) -> tuple[object, ...]:
    files = ("result.json", "manifest.json", "usage.json")
    return (folder, *(stamp_of(folder / name) for name in files))


def _is_under(path: Path, folder: Path) -> bool:
    return path != folder and path.is_relative_to(folder)
