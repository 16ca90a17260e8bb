"""Run ddx commands, one at a time, with errors that say what to do.

Rules: docs/formats/ddx.md §0 (CLI conventions), §2 (commands), §9 (quiet environment).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from helix_tui.core.ddx.attempts.report import LoopReport, MalformedReport, parse_report
from helix_tui.core.ddx.dialect import FileGate, Refused
from helix_tui.core.ddx.names import VERBS
from helix_tui.core.ground.errors import UNROUTED, WHO, HelixError
from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.records import decode_json
from helix_tui.core.ground.text import clean_line

# otherwise a ddx may announce a newer release, or colour its output
QUIET = {"DDX_DISABLE_UPDATE_CHECK": "1", "NO_COLOR": "1"}
"""Environment that keeps ddx's output parseable."""

ALONE = {"DDX_SERVER_URL": "http://127.0.0.1:9"}
"""Environment in which ddx announces no project to a server: at port 9 (discard) nothing answers."""

FAILED, MALFORMED, TOO_OLD, MISSING = 1, 65, 69, 127
"""Exit codes of the console (docs/cli.md)."""

INSTALL_DDX = "install ddx, or name it with --ddx or DDX_BIN"
"""What to do where there is no ddx."""

_LIST_START = re.compile(r"^\[", re.MULTILINE)
_MISCONFIGURED, _OUTDATED = r"configuration validation failed", r"project requires DDx \S+ or newer"

_NO_START = re.compile(f"{_MISCONFIGURED}|{_OUTDATED}")
"""How every release says that it starts no work on the files of this project's ``.ddx`` folder."""

_MALFORMED_ADVICE = "run the command by hand; a newer ddx may have changed its output"

# the first match counts, so specific patterns come before general ones
_ADVICE = (
    (r"was ended by SIG", "`helix-tui status` says what it left; the next run books what it did"),
    (r"printed more output than is kept", "look at the end of its output under .helix-logs"),
    (r"lock timeout", "another ddx holds the tracker; wait for it, or end the process it names, and try again"),
    (r"line \d+.* is not a record", "correct or remove that line of the tracker, then try again"),
    (r"hook validate-bead", "the project's own hook refuses it; provide what it asks for"),
    (r"unclosed blocking dependencies", "close or remove what it waits for first"),
    (r"dependencies are open|open dependencies", "close or remove what it waits for first"),
    (r"circular dependency", "one of the two must not wait for the other"),
    (r"cannot depend on self", "name two different beads"),
    (r"dependency not found|bead not found|not found", "check that the id is spelled as in the queue"),
    (r"lifecycle transition", "this status cannot follow that one; see `ddx bead --help` for the allowed steps"),
    (r"dirty_project_root|uncommitted", "commit or stash the changes in the work tree first"),
    (r"unknown (command|flag|shorthand)", "this ddx does not have it; another release may"),
    (r"lifecycle_migration", "run `ddx bead migrate --lifecycle --apply`, then try again"),
    (_MISCONFIGURED, "correct .ddx/config.yaml; `ddx config --validate` names what is wrong there"),
    (_OUTDATED, "run `ddx upgrade`, or name the later ddx with --ddx"),
    (r"migrat", "run the migration that ddx names, then try again"),
    (UNROUTED, WHO),
    (r"no server|connection refused", "start `ddx server`, or run the loop here with --local"),
)


class DdxError(HelixError):
    """A failed ddx command.

    Attributes:
        argv: the command.
        message: ddx's own last error line, cleaned.
        advice: what to do next.
        exit_code: exit code for the command line.
        output: what ddx printed.
    """

    def __init__(
        self, argv: Sequence[str], message: str, advice: str, exit_code: int = FAILED, output: bytes = b""
    ) -> None:
        super().__init__(f"{message} ({advice})")
        self.argv = tuple(argv)
        self.message = message
        self.advice = advice
        self.exit_code = exit_code
        self.output = output


def ddx_missing(argv: Sequence[str], wanted: str) -> DdxError:
    """There is no ddx to run; ``wanted`` is empty if none was named."""
    named = clean_line(wanted, 200)
    message = f"ddx binary not found at {named}" if named else "ddx binary not found on PATH"
    if wanted and os.path.exists(wanted):
        message = f"{named} is not an executable"
    return DdxError(argv, message, INSTALL_DDX, MISSING)


def not_started(argv: Sequence[str], path: str | os.PathLike[str], error: OSError | ValueError) -> DdxError:
    """A ddx that does not start, or one that is not there."""
    # a script whose interpreter is missing raises the same error
    if isinstance(error, FileNotFoundError) and not os.path.exists(path):
        return ddx_missing(argv, os.fspath(path))
    why = error.strerror if isinstance(error, OSError) else error
    message = clean_line(f"{os.fspath(path)} does not start: {why}", 300)
    return DdxError(argv, message, "check that it is an executable for this machine", MISSING)


class NoAnswer(DdxError):
    """A ddx command that was ended because it took too long: what it would have said is not known."""


class Ddx(Struct, frozen=True):
    """One ddx executable, used on one project."""

    path: Path
    root: Path
    env: Mapping[str, str] | None = None

    @property
    def alone(self) -> Ddx:
        """The same ddx, for questions: it announces the project to no server."""
        return Ddx(self.path, self.root, {**(os.environ if self.env is None else self.env), **ALONE})

    def run(self, *args: str, timeout: float = 60.0, cap: int = 64 << 20) -> Finished:
        """Run a command that must succeed.

        Raises:
            DdxError: it cannot be started, takes too long, or fails.
        """
        finished = self.attempt(*args, timeout=timeout, cap=cap)
        if finished.timed_out:
            advice = "it timed out; check whether another ddx holds the tracker, then run it again"
            raise NoAnswer(finished.argv, f"no answer after {timeout:g} s", advice)
        if finished.rc != 0:
            message = last_error(finished)
            raise DdxError(finished.argv, message, advice_for(message, finished.argv), _code(message))
        return finished

    def attempt(self, *args: str, timeout: float = 60.0, cap: int = 64 << 20, reads: bool = False) -> Finished:
        """Run a command whose failure the caller handles; ``reads``: it may be ended at any time.

        Raises:
            DdxError: it cannot be started.
        """
        argv = (os.fspath(self.path), *args)
        try:
            return run(argv, cwd=self.root, env=self._environment(), timeout=timeout, cap=cap, stop_at_cap=reads)
        except OSError as error:
            raise not_started(argv, self.path, error) from None

    def json(self, *args: str, timeout: float = 60.0) -> Any:
        """Run a command and return the JSON it prints.

        Raises:
            DdxError: it fails, or prints something else (exit code 65).
        """
        finished = self.run(*args, timeout=timeout)
        try:
            return msgspec.json.decode(finished.stdout)
        except (msgspec.DecodeError, RecursionError):
            pass
        # a ddx that knows of a newer release says so on lines before its JSON
        listed = _list_in(finished.out)
        if listed is not None:
            return listed
        try:
            return parse_report(finished.out).document
        except MalformedReport as error:
            raise self._malformed(finished, str(error)) from None

    def report(self, finished: Finished) -> LoopReport:
        """Parse the report at the end of a finished loop's output; its exit code says nothing (docs/formats/ddx.md
        §4.6).

        Raises:
            DdxError: there is no report (exit code 65).
        """
        try:
            return parse_report(finished.out)
        except MalformedReport as error:
            raise self._malformed(finished, str(error)) from None

    def ready_execution(self, *, timeout: float = 60.0) -> tuple[str, ...]:
        """Ids of the beads that ddx would pick, in its order, to compare with `core.beads.readiness`."""
        rows = self.json(*VERBS["ready"][0], "--execution", "--json", timeout=timeout)
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            return tuple(str(row.get("id", "")) for row in rows)
        # Go writes an empty list as null
        if rows is None:
            return ()
        argv = (os.fspath(self.path), *VERBS["ready"][0], "--execution", "--json")
        raise DdxError(argv, "the answer is not a list of beads", _MALFORMED_ADVICE, MALFORMED)

    def refusal(self) -> DdxError | None:
        """Why it would start no work on this project, by its check of the configuration; None if it would.

        Raises:
            NoAnswer: it took too long.
        """
        try:
            self.run("config", "--validate", "--offline", timeout=20)
        except NoAnswer:
            raise
        except DdxError as error:
            # a ddx without this check refuses too, for another reason
            return error if starts_no_work(error.message) else None
        return None

    def settings_gate(self, beside: Sequence[str], *, changes: bool) -> FileGate | None:
        """What it would refuse on this project by its check of the configuration; None if nothing.

        Args:
            beside: a verb that only reads, which asks for a release where the verb that drains does.
            changes: whether it fails changes, too, where the configuration is not valid.

        Raises:
            NoAnswer: it took too long.
        """
        refused = self.refusal()
        if refused is None:
            return None
        if re.search(_OUTDATED, refused.message):
            try:
                if beside:
                    self.run(*beside, timeout=20)
                return None  # some verbs ask for none: `agent execute-loop` of April
            except NoAnswer:
                raise
            except DdxError as error:
                if not re.search(_OUTDATED, error.message):
                    return None
            return FileGate("ddx_too_old", "ddx upgrade", refused.message, refused.advice, "all work")
        refuses: Refused = "every change and all work" if changes else "all work"
        command = "ddx config --validate"
        return FileGate("configuration_not_valid", command, refused.message, refused.advice, refuses)

    def _malformed(self, finished: Finished, why: str) -> DdxError:
        message = f"ddx answered with something that is not JSON: {why}"
        return DdxError(finished.argv, message, _MALFORMED_ADVICE, MALFORMED, finished.stdout)

    def _environment(self) -> dict[str, str]:
        return {**(os.environ if self.env is None else self.env), **QUIET}


def _list_in(output: str) -> list[Any] | None:
    """The first JSON list on separate lines of an output, after any messages of ddx."""
    for match in _LIST_START.finditer(output):
        try:
            found, end = json.JSONDecoder().raw_decode(output, match.start())
        except (ValueError, RecursionError):
            continue
        if not output[end:].partition("\n")[0].strip():
            return list(found)
    return None


def starts_no_work(message: str) -> bool:
    """Whether an error of ddx is about the project's settings or its release: it ends every worker at its start."""
    return _NO_START.search(message) is not None


def last_error(finished: Finished, meaning: str = "") -> str:
    """ddx's error message: its last ``Error:`` line, else its last line.

    Args:
        finished: the finished command.
        meaning: what its help says about the exit code, used if it printed nothing.
    """
    lines = [line.strip() for line in finished.err.split("\n") if line.strip()]
    errors = [line.removeprefix("Error:").strip() for line in lines if line.startswith("Error:")]
    refusal = _hook_words(lines)
    if refusal:
        return clean_line(refusal, 4_000)
    said = [line for line in lines if line != "Error:"]  # head's `try` explains itself before an empty one
    if any(errors):
        return clean_line([error for error in errors if error][-1] + _details(lines), 1000)
    if said:
        return clean_line(said[-1], 1000)
    # a --json command that refuses a tracker prints an object and no error line
    status = _refusal_in(finished)
    if status:
        return status
    said = [line.strip() for line in finished.out.split("\n") if line.strip()]
    if said:
        return clean_line(said[-1], 1000)
    return f"ddx ended with {finished.rc} and no message" + (f" ({meaning})" if meaning else "")


def _details(lines: Sequence[str]) -> str:
    """What follows an error that has details: what exactly is wrong, up to the usage that ddx adds."""
    start = next((place for place, line in enumerate(lines) if line.startswith("Details:")), len(lines))
    more = takewhile(lambda line: not line.startswith(("Error:", "Usage:", "Suggestion")), lines[start:])
    return "".join(f"; {line.removeprefix('Details:').strip()}" for line in more)


def _hook_words(lines: Sequence[str]) -> str:
    """The whole message of a project's hook that refused, which may have several lines."""
    starts = [place for place, line in enumerate(lines) if line.startswith("Error:") and ": hook " in line]
    if not starts or any(line.startswith("Error:") for line in lines[starts[-1] + 1 :]):
        return ""
    return "; ".join([lines[starts[-1]].removeprefix("Error:").strip(), *lines[starts[-1] + 1 :]])


def _refusal_in(finished: Finished) -> str:
    """The reason in the status object that a ``--json`` command prints when it refuses a tracker."""
    status = decode_json(finished.stdout)
    code = status.get("code") if isinstance(status, dict) else None
    if not isinstance(code, str):
        return ""
    counts = [
        f"{number} {name.removeprefix('legacy_').replace('_', ' ')}"
        for name, number in status.items()
        if name.startswith("legacy_") and isinstance(number, int) and number > 0
    ]
    samples = status.get("sample_bead_ids")
    if isinstance(samples, list) and samples:
        counts.append(f"on {', '.join(map(str, samples[:5]))}")
    return clean_line(f"{code}: {', '.join(counts)}" if counts else code, 1000)


def advice_for(message: str, argv: Sequence[str]) -> str:
    """Advice on one of ddx's own errors."""
    for pattern, advice in _ADVICE:
        if re.search(pattern, message):
            return advice
    return f"run it by hand to see its full output: ddx {' '.join(argv[1:])}"


def _code(message: str) -> int:
    return TOO_OLD if re.search(r"unknown (command|flag|shorthand)", message) else FAILED
