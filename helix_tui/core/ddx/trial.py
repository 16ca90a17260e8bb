"""Try out what a ddx does, on a test queue in a throw-away folder.

A help text names verbs; it does not say which keys of a row hold a bead back, whether a waiting bead can be closed, or
how a number is stored. So each is tried once: rows that differ in one respect, then commands. The ddx gets a separate
project, home and temporary folder, and no server.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from helix_tui.core.beads.readiness import Rule
from helix_tui.core.ddx.client import ALONE, MISSING, QUIET, Ddx, DdxError
from helix_tui.core.ddx.dialect import FAMILIES, NO_TRIAL, Dialect, RowGate
from helix_tui.core.ddx.help_text import Words, read_verbs
from helix_tui.core.ddx.names import VERBS, DdxAction, Era
from helix_tui.core.ground.process import Finished, Leaving, run
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.time import format_instant, now_ns

TIMEOUT_S = 10.0
"""Time limit of one command; ddx answers within 50 ms."""

HELP_TIMEOUT_S = 20.0
"""Time limit of a help text; a ddx that exceeds it is not asked to write."""

TRIALS = 2
"""Trials of a ddx that lists beads in time and is too slow for something else."""

_LATER = "2099-01-01T00:00:00Z"
_GATED = (("label", "needs_human"), ("label", "triage:needs-investigation"), ("status", "needs_investigation"))
"""Values for which some releases refuse every command."""

_CONFIGURATION = 'version: "1.0"\n'
"""A configuration: without one ddx of June keeps the beads of a folder outside it."""

_FALLING = ("t-replaced", "t-parent", "t-middle", "t-upper", "t-halved")
"""Beads that closing another bead may close."""

_OWN = ("HOME", "TMPDIR", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")

SLOW = "a command of the trial took too long"


def examine(path: Path, root: Path, env: Mapping[str, str]) -> Dialect:
    """The dialect of a ddx: verbs and flags from its help, the rest from a trial.

    Raises:
        DdxError: it cannot be started, or does not print its help in time.
    """
    ddx = Ddx(path, root, env).alone

    def ask(words: Words) -> str | None:
        finished = ddx.attempt(*words, "--help", timeout=HELP_TIMEOUT_S, cap=1 << 20, reads=True)
        if finished.timed_out:
            advice = "it timed out; check whether another ddx holds the tracker, then try again"
            raise DdxError(finished.argv, f"no answer after {HELP_TIMEOUT_S:g} s", advice, MISSING)
        return (finished.out or finished.err) if finished.rc == 0 else None

    # this one first: a ddx that hangs is not asked two dozen times
    helps: dict[Words, str | None] = {VERBS["update"][0]: ask(VERBS["update"][0])}
    wanted = sorted({words for forms in VERBS.values() for words in forms} - helps.keys())
    with ThreadPoolExecutor(4) as pool:
        helps |= zip(wanted, pool.map(ask, wanted), strict=True)
    verbs = read_verbs(helps.__getitem__)
    older = verbs["update"].flags if "update" in verbs else ()
    told = helps[verbs["update"].words] if "update" in verbs else None
    newer = "lifecycle status" in (told or "") or "operator_attention" in verbs
    family: Era = "april" if older and not newer else "head"
    guess = replace(FAMILIES[family], proven=False, verbs=verbs)
    return guess if env.get(NO_TRIAL) == "off" else try_out(path, env, guess)


def try_out(ddx: Path, env: Mapping[str, str], guess: Dialect, *, ask: Callable[..., Finished] = run) -> Dialect:
    """Run the trial of a ddx.

    Args:
        ddx: the executable.
        env: the environment for ``PATH`` and the like.
        guess: the dialect assumed for what cannot be tried; it refuses nothing (`_open`).
        ask: what runs a program.
    """
    try:
        for _ in range(TRIALS):
            with tempfile.TemporaryDirectory(prefix="helix-trial-", ignore_cleanup_errors=True) as folder:
                trial = _Trial(Path(folder), ddx, env, guess, ask)
                found = trial.findings(guess)
            if not trial.timed_out:
                return found
            if not found.proven:
                break  # it does not even list beads in time: trying again would take as long
        # unproven, so that nothing of it is stored: the next start tries again
        return _open(guess, found.doubt or SLOW)
    except Leaving as error:
        raise DdxError((os.fspath(ddx),), str(error), "start the console again", MISSING) from None
    except OSError as error:
        return _open(guess, f"no throw-away folder: {error.strerror or error}")


def _open(guess: Dialect, doubt: str) -> Dialect:
    """A guess that refuses nothing beforehand: ddx itself reports what it does not support."""
    return replace(guess, gives_out_waiting=True, closes_waiting=True, waits_on_parents=True, doubt=doubt)


class _Trial:
    """One ddx in one throw-away folder."""

    def __init__(
        self,
        folder: Path,
        ddx: Path,
        env: Mapping[str, str],
        guess: Dialect,
        ask: Callable[..., Finished],
    ) -> None:
        self.folder, self._ddx, self._guess, self._ask = folder, ddx, guess, ask
        self.timed_out = False
        """Whether any answer came too late: a slow answer is no refusal."""
        own = {name: str(folder / "own") for name in _OWN}
        # these variables would lead to the user's projects, servers or repositories
        kept = {name: text for name, text in env.items() if not name.startswith(("DDX_", "GIT_"))}
        self._env = kept | own | QUIET | ALONE

    def findings(self, guess: Dialect) -> Dialect:
        """The findings; the readiness rule is the guess if it does not list ready beads."""
        ready, doubt = self._ready()
        proven = "t-plain" in ready
        # it does not even list the test rows, so nothing it does with them proves anything
        if not proven and '"t-plain"' not in self._bead("list", "--json").out:
            return _open(guess, doubt)
        rule = _rule(ready) if proven else guess.rule
        counts = self._counts()
        self._run("update", "t-idle", "--set", "queue-rank=3")
        # the order matters: each command changes the queue that the next one finds
        rank = self._row("t-idle").get("queue-rank")
        parents = self._run("dep", "add", "t-child", "t-parent")
        # removed again, or the child would wait and could not be closed below
        if parents:
            self._run("dep", "remove", "t-child", "t-parent")
        gives_out = self._run("update", "t-waits", "--claim", "--assignee", "helix")
        self._run("update", "t-plain", "--claim", "--assignee", "helix")
        claimed = self._row("t-plain")
        leases = bool(list((self.folder / "own").rglob("t-plain.json")))
        closes = self._run("close", "t-waits-too")
        # the rows show afterwards what each of these closes besides itself
        for bead_id in ("t-child", "t-leaf", "t-half"):
            self._run("close", bead_id)
        closed = {bead_id for bead_id in _FALLING if self._row(bead_id).get("status") == "closed"}
        return Dialect(
            verbs=guess.verbs,
            rule=replace(
                rule,
                leases=leases,
                plain_ready=counts.get("ready", len(ready)) > len(ready) if proven else rule.plain_ready,
                waiting_is_blocked=counts.get("blocked", 0) > 0,
            ),
            rank_is_number=rank == 3,
            lifecycle=self._run("update", "t-cancel", "--status", "cancelled"),
            leases=leases,
            claim_in_row="claimed-at" in claimed or "execute-loop-heartbeat-at" in claimed,
            gives_out_waiting=gives_out,
            closes_waiting=closes,
            waits_on_parents=parents,
            closes_superseded="t-replaced" in closed,
            closes_ineligible="t-middle" in closed,
            closes_epics="t-parent" in closed,
            climbs="t-upper" in closed,
            cancelled_counts="t-halved" in closed,
            gates=self._gates(),
            schema=self._schema(),
            needs_settings=self._needs_settings(),
            fills=self._fills(),
            proven=proven,
            doubt="" if proven else doubt,
        )

    def _ready(self) -> tuple[list[str], str]:
        """The beads it hands to a worker, in order, and its message if it lists none."""
        self._write(_rows())
        finished = self._do("ready", "--execution", "--json")
        said = next((line for line in finished.err.splitlines() if line.strip()), "") or "it lists no ready bead"
        listed = decode_json(finished.stdout)
        rows = listed if isinstance(listed, list) else []
        doubt = "no answer in time" if finished.timed_out else clean_line(said.removeprefix("Error: "), 80)
        return [str(row.get("id")) for row in rows if isinstance(row, dict)], doubt

    def _counts(self) -> dict[str, int]:
        """Its counts; no row has the status blocked."""
        found = decode_json(self._bead("status", "--json").stdout)
        counted = found.items() if isinstance(found, dict) else ()
        return {name: number for name, number in counted if isinstance(number, int)}

    def _gates(self) -> tuple[RowGate, ...]:
        found = []
        for kind, word in _GATED:
            row = _row("t-gate", labels=[word]) if kind == "label" else _row("t-gate", status=word)
            self._write([row])
            finished = self._do("ready")
            code = re.search(r"\b([a-z]+(?:_[a-z]+)+)\b: ", finished.err)
            if finished.rc and code is not None:
                commands = re.findall(r"`(ddx [^`]+)`", finished.err)
                command = next((each for each in commands if "--apply" in each), "") or "ddx bead --help"
                found.append(RowGate(kind, word, code[1], clean_line(command, 120)))
        return tuple(found)

    def _schema(self) -> int:
        """The lowest version of a migrated tracker that it takes, as it says of an older one; 0 if it takes any."""
        self._write([_row("t-plain")])
        marker = self.folder / ".ddx" / "lifecycle-schema.json"
        marker.write_text('{"version": 0}')
        finished = self._do("ready")
        marker.unlink()
        needed = re.search(r"version 0 is older than (\d+)", finished.err)
        return int(needed[1]) if finished.rc and needed is not None else 0

    def _needs_settings(self) -> bool:
        """Whether it fails a change in a project whose configuration is not valid."""
        self._write([_row("t-plain")])
        settings = self.folder / ".ddx" / "config.yaml"
        settings.write_text("version: [")
        failed = not self._run("update", "t-plain", "--set", "colour=red")
        settings.write_text(_CONFIGURATION)
        return failed

    def _fills(self) -> dict[str, Any] | None:
        """What a change of one row adds to another that has little but its id; None if that row stays as it was."""
        bare = {"id": "t-bare", "priority": "1"}
        self._write([bare, _row("t-plain")])
        self._run("update", "t-plain", "--set", "colour=red")
        row = self._row("t-bare")
        return None if row in (bare, {}) else {name: value for name, value in row.items() if name != "id"}

    def _run(self, action: DdxAction, *words: str) -> bool:
        return self._do(action, *words).rc == 0

    def _do(self, action: DdxAction, *words: str) -> Finished:
        """What it answers to an action, by the name that it has for it."""
        return self._answer(*self._guess.words(action), *words)

    def _bead(self, *words: str) -> Finished:
        return self._answer("bead", *words)

    def _answer(self, *words: str) -> Finished:
        argv = (os.fspath(self._ddx), *words)
        answer = self._ask(argv, cwd=self.folder, env=self._env, timeout=TIMEOUT_S, cap=1 << 20, stop_at_cap=True)
        self.timed_out = self.timed_out or answer.timed_out
        return answer

    def _write(self, rows: list[dict[str, Any]]) -> None:
        (self.folder / ".ddx").mkdir(exist_ok=True)
        (self.folder / "own").mkdir(exist_ok=True)
        (self.folder / ".ddx" / "config.yaml").write_text(_CONFIGURATION)
        lines = (msgspec.json.encode(row, order="sorted") for row in sorted(rows, key=lambda row: row["id"]))
        (self.folder / ".ddx" / "beads.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))

    def _row(self, bead_id: str) -> dict[str, Any]:
        for line in (self.folder / ".ddx" / "beads.jsonl").read_bytes().split(b"\n"):
            if f'"id":"{bead_id}"'.encode() in line:
                row = msgspec.json.decode(line)
                return row if isinstance(row, dict) else {}
        return {}


def _row(bead_id: str, **more: Any) -> dict[str, Any]:
    then = "2020-01-01T00:00:00Z"
    usual = {"title": bead_id, "status": "open", "priority": 2, "issue_type": "task", "schema_version": 1}
    return {**usual, "created_at": then, "updated_at": then, "id": bead_id, **more}


def _rows() -> list[dict[str, Any]]:
    """One row per question, and the rows for the commands."""
    now = format_instant(now_ns())
    waits = [{"issue_id": "t-waits", "depends_on_id": "t-plain", "type": "blocks"}]
    waits_too = [{"issue_id": "t-waits-too", "depends_on_id": "t-plain", "type": "blocks"}]
    kept_back = {"execution-eligible": False}
    return [
        _row("t-replaced", **{"superseded-by": "t-child"}),
        _row("t-upper", **kept_back),
        _row("t-middle", parent="t-upper", **kept_back),
        _row("t-leaf", parent="t-middle"),
        _row("t-halved", **kept_back),
        _row("t-half", parent="t-halved"),
        _row("t-given-up", parent="t-halved", status="cancelled"),
        _row("t-plain"),
        _row("t-idle", status="in_progress"),
        _row("t-cancel"),
        _row("t-old-pause", **{"execute-loop-retry-after": _LATER}),
        _row("t-new-pause", **{"work-retry-after": _LATER}),
        _row("t-old-beat", status="in_progress", **{"execute-loop-heartbeat-at": now}),
        _row("t-new-beat", status="in_progress", **{"work-heartbeat-at": now}),
        _row("t-open-beat", **{"work-heartbeat-at": now}),
        _row("t-epic", issue_type="epic"),
        _row("t-titled", title="Epic: all of it"),
        _row("t-part", parent="t-titled"),
        _row("t-parent", issue_type="epic"),
        _row("t-child", parent="t-parent"),
        _row(
            "t-review",
            **{
                "preserved-review-blocked-at": "2020-01-01T00:00:00Z",
                "preserved-review-attempt": "20200101T000000-00000000",
            },
        ),
        _row("t-ranked", created_at="2021-01-01T00:00:00Z", **{"queue-rank": 1}),
        _row("t-waits", dependencies=waits),
        _row("t-waits-too", dependencies=waits_too),
    ]


def _rule(ready: list[str]) -> Rule:
    """The rule that makes these beads ready and the others not."""
    new_keys = "t-new-pause" not in ready
    return Rule(
        "head" if new_keys or "t-epic" in ready else "april",
        old_keys="t-old-pause" not in ready,
        new_keys=new_keys,
        open_claims="t-open-beat" not in ready,
        leases=False,
        childless_epics="t-epic" in ready,
        titled_epics="t-titled" not in ready,
        reviews="t-review" not in ready,
        ranks=ready.index("t-ranked") < ready.index("t-plain") if "t-ranked" in ready else False,
        plain_ready=False,
        waiting_is_blocked=False,
    )
