"""The ddx of the tests: the embedded tracker, a hook before it, and a loop and agents that do as a script says.

The script is a folder: ``turns.json`` (what each call of the loop does; ``play`` is a recorded run to repeat),
``answers.json`` (what each agent says), ``calls.log`` (every command line, help left out). The loop picks by
readiness alone, whatever it is told. Without a script everything is the embedded tracker's.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.programs import write_program

HELPS: dict[str, dict[tuple[str, ...], str]] = {
    "april": {
        ("agent", "execute-loop"): "--once --json --local --harness --model --effort",
        ("agent", "execute-bead"): "--from --no-merge --json --harness --model --effort",
        ("agent", "run"): "--prompt --json --harness --model --effort --permissions --timeout",
    },
    "head": {
        ("work",): "--once --watch --json --harness --model --effort",
        ("try",): "--harness --model --effort",
        ("run",): "--prompt --json --harness --model --effort --permissions --timeout",
    },
}


REPOSITORY = Path(__file__).resolve().parents[1]


def write_ddx(path: Path, hook: str = "", *, script: Path | None = None, era: str = "head") -> Path:
    """Write a ddx.

    Args:
        hook: code that runs before it answers, except for help and version. It has ``args``, ``passed()``, which
            answers and gives the exit code, and ``number()``, how often ddx was called so far.
        script: the folder of the script.
        era: the vocabulary of the loop, ``april`` or ``head``.
    """
    count, folder = str(path.parent / "count"), script and str(script)
    return write_program(
        path,
        f"""import os, sys, time
sys.path.insert(0, {str(REPOSITORY)!r})
from tests.double import main
args = sys.argv[1:]
def passed():
    return main(args, {folder!r}, {era!r})
def number():
    n = int(open({count!r}).read()) + 1 if os.path.exists({count!r}) else 1
    open({count!r}, "w").write(str(n))
    return n
if "--help" in args or args == ["version"]: sys.exit(passed())
{hook}
sys.exit(passed())""",
    )


def main(words: list[str], script: str | None, era: str) -> int:
    """Answer once."""
    if words[:1] == ["bead"] or script is None:
        from helix_ddx.__main__ import main as track

        return track(words)
    folder = Path(script)
    verb = next((verb for verb in HELPS[era] if tuple(words[: len(verb)]) == verb), None)
    if verb is None or (verb[-1] == "run" and (folder / "no-agent").exists()):
        sys.stderr.write(f'Error: unknown command "{words[0] if words else ""}" for "ddx"\n')
        return 1
    if "--help" in words:
        return _help(verb, folder, era)
    with open(folder / "calls.log", "a", encoding="utf-8") as log:
        log.write(" ".join(words) + "\n")
    if verb[-1] in ("execute-loop", "work"):
        return _loop(folder)
    if verb[-1] in ("execute-bead", "try"):
        return _one(folder, words[len(verb)])
    return _agent(folder, words)


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def _help(verb: tuple[str, ...], folder: Path, era: str) -> int:
    flags = HELPS[era][verb]
    if (folder / "no-json").exists():
        flags = flags.replace("--json", "")
    say(f"Does it.\n\nUsage:\n  ddx {' '.join(verb)} [flags]\n\nFlags:\n" + "\n".join(f"  {f}" for f in flags.split()))
    return 0


def _pop(path: Path, otherwise: Any) -> Any:
    try:
        waiting = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return otherwise
    first = waiting.pop(0) if waiting else otherwise
    path.write_text(json.dumps(waiting), "utf-8")
    return first


def _loop(folder: Path) -> int:
    turn = _pop(folder / "turns.json", {"results": [{}]})
    before_pid = folder / "pids.log"
    with open(before_pid, "a", encoding="utf-8") as log:
        log.write(f"{os.getpid()}\n")
    for _ in range(int(turn.get("sleep", 0) * 20)):
        time.sleep(0.05)
    if turn.get("kill_parent"):
        os.kill(os.getppid(), signal.SIGKILL)
    if turn.get("kill_self"):
        os.kill(os.getpid(), signal.SIGKILL)
    if turn.get("interrupted_with_parent"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        os.kill(os.getppid(), signal.SIGINT)
        signal.sigwait({signal.SIGINT})
    if turn.get("interrupt_parent"):
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(turn.get("then_sleep", 0))
    if turn.get("remove_self"):
        Path(sys.argv[0]).rename(Path(sys.argv[0]).with_suffix(".gone"))
    sys.stderr.write(turn.get("stderr", ""))
    if "play" in turn:
        return _play(Path(turn["play"]))
    if "raw" in turn:
        sys.stdout.write(turn["raw"])
        return int(turn.get("rc", 0))
    # what it has begun it ends, and says so, whoever interrupts it
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    before = Path(".ddx/beads.jsonl").read_bytes()
    results = [done for spec in turn.get("results", []) if (done := _execute(spec, folder)) is not None]
    good = sum(result["status"] == "success" for result in results)
    document = {
        "project_root": os.getcwd(),
        "attempts": turn.get("attempts", len(results)),
        "successes": good,
        "failures": len(results) - good,
        "results": results,
    }
    if not results:
        document["no_ready_work"] = True
    document |= turn.get("extra", {})
    say("progress: something")
    if "answer" in turn:
        _answered(turn["answer"])
    if "checkout" in turn:
        _checked_out(before)
    return _report(json.dumps(document, indent=2), turn)


def _play(timeline: Path) -> int:
    """Do what a real ddx was recorded doing: its files, its words, its exit code."""
    from tests.helix_ddx.player import Player

    player = Player(timeline, Path.cwd())
    player.shift_to_now(0)
    for step in player.steps():
        player.apply(step)
        stream = {"stdout": sys.stdout, "stderr": sys.stderr}.get(step.src)
        if stream is not None:
            stream.write(player.translate(step.text) + "\n")
    sys.stdout.flush()
    if (player.timeline.rc or 0) < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return player.timeline.rc or 0


def _report(report: str, turn: dict[str, Any]) -> int:
    """Print the report, or what a fault makes of it."""
    fault, half = turn.get("fault", ""), len(report) // 2
    if fault == "stderr":
        sys.stderr.write(report)
    elif fault == "split":
        say(report.replace("\n", "\n12:00:00 do thinking ...\n"))
    elif fault == "cut":
        sys.stdout.write(report[:half])
    elif fault == "hang":
        sys.stdout.write(report[:half])
        sys.stdout.flush()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})
        time.sleep(60)
    elif fault == "logs":
        say('{"level": "info", "msg": "begins"}\n' + report + '\n{"level": "info", "msg": "ends"}')
    elif fault == "flood":
        sys.stdout.write("09:00:00 do ok 1 Bash 250ms\n" * 100_000)
        say(report)
    else:
        say(report)
    if fault == "become":
        _become("april")
    return int(turn.get("rc", 0))


def _become(era: str) -> None:
    """Put another release in the place of this executable."""
    path = Path(sys.argv[0])
    other = path.with_suffix(".new")
    other.write_text(path.read_text().replace("'head'", repr(era)))
    other.chmod(0o755)
    other.replace(path)


def _answered(text: str) -> None:
    """A person answers the first question while the run is at work."""
    from helix_tui.core.editing.execute.gate import WriteGate
    from helix_tui.core.ground.project import find_project
    from helix_tui.core.supervision.signals.questions import OpenQuestions

    project = find_project(Path.cwd())
    questions = OpenQuestions(project, WriteGate(project, read_only=False))
    questions.answer(questions.open()[0].id, text)


def _checked_out(before: bytes) -> None:
    """Somebody checks out the tracker of before."""
    Path(".ddx/beads.jsonl").write_bytes(before)


def _one(folder: Path, bead_id: str) -> int:
    spec = _pop(folder / "turns.json", {})
    done = _execute({**spec, "bead_id": bead_id}, folder)
    say(json.dumps({**(done or {}), "outcome": "merged"}))
    return int(spec.get("rc", 0))


def _execute(spec: dict[str, Any], folder: Path) -> dict[str, Any] | None:
    bead_id = spec.get("bead_id") or _pick()
    if not bead_id:
        return None
    status = spec.get("status", "success")
    for words in spec.get("do", []):
        _bead([word.replace("{id}", bead_id) for word in words])
    for name, text in spec.get("files", {}).items():
        Path(name).write_text(text)
    if spec.get("close", status == "success"):
        _bead(["bead", "close", bead_id])
    result = {"bead_id": bead_id, "status": status, "attempt_id": "", "harness": "codex"}
    if "commit_lines" in spec:
        result |= _commit(bead_id, spec["commit_lines"])
    if spec.get("evidence"):
        result["attempt_id"] = _evidence(bead_id, status)
    result |= spec.get("fields", {})
    if result.get("retry_after"):
        _bead(["bead", "update", bead_id, "--set", f"work-retry-after={result['retry_after']}"])
    with open(folder / "executed.log", "a", encoding="utf-8") as log:
        log.write(f"{bead_id} {result['status']}\n")
    return {name: value for name, value in result.items() if value is not None}


def _evidence(bead_id: str, status: str) -> str:
    """What ddx leaves of an attempt, whatever becomes of its report."""
    now = time.time_ns()
    attempt_id = time.strftime("%Y%m%dT%H%M%S-", time.gmtime()) + f"{now // 1000 & 0xFFFFFFFF:08x}"
    folder = Path(".ddx/executions") / attempt_id
    folder.mkdir(parents=True)
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    outcome = "merged" if status == "success" else "preserved"
    known = {"bead_id": bead_id, "attempt_id": attempt_id, "status": status, "outcome": outcome}
    revs = {"base_rev": "a" * 40, "result_rev": "b" * 40}
    (folder / "result.json").write_text(json.dumps(known | revs | {"started_at": at, "finished_at": at}))
    return attempt_id


def _commit(bead_id: str, lines: int) -> dict[str, str]:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], check=True, capture_output=True, text=True, timeout=30).stdout.strip()

    base = git("rev-parse", "HEAD")
    Path(f"{bead_id}.txt").write_text("line\n" * lines)
    git("add", f"{bead_id}.txt")
    git("commit", "-q", "-m", f"work {bead_id}")
    return {"base_rev": base, "result_rev": git("rev-parse", "HEAD")}


def _pick() -> str:
    from helix_tui.core.beads.readiness import classify
    from helix_tui.core.beads.tracker import read_tracker
    from helix_tui.core.ground.time import now_ns

    ready = classify(read_tracker(Path(".ddx/beads.jsonl")).beads, now=now_ns()).ready
    return ready[0] if ready else ""


def _bead(words: list[str]) -> int:
    from helix_ddx.__main__ import main as track

    quiet = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(quiet):
        return track(words)


def _agent(folder: Path, words: list[str]) -> int:
    prompt = Path(words[words.index("--prompt") + 1])
    stage = prompt.name.removesuffix(".prompt.md").rsplit("-", 1)[-1]
    with open(folder / "asked.log", "a", encoding="utf-8") as log:
        log.write(f"{stage}\n")
    (folder / f"prompt-{stage}.md").write_text(prompt.read_text("utf-8"), "utf-8")
    spec = _pop(folder / "answers.json", "NEXT_ACTION: STOP")
    spec = {"output": spec} if isinstance(spec, str) else spec
    for command in spec.get("do", []):
        _bead(command)
    for name, text in spec.get("files", {}).items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text, "utf-8")
    time.sleep(spec.get("sleep", 0))
    sys.stderr.write(spec.get("stderr", ""))
    if spec.get("plain"):
        say(spec["output"])
        return int(spec.get("rc", 0))
    say(json.dumps({"harness": "codex", "exit_code": spec.get("rc", 0), **spec}))
    return int(spec.get("rc", 0))
