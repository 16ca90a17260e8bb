#!/usr/bin/env python3
"""Stands behind a real ddx as `claude` or `codex`: does what a word says, and speaks as ddx's harness expects.

`$HOME/mode` is the word (a bead whose title has `[word]` gets that one), `$HOME/verdict` what a review says
(of a bead with `[block]`: BLOCK; with `[mute]`: BLOCK without a word on why), `$HOME/pace` how many seconds
the work takes at least. Each call becomes one line of `$HOME/calls.jsonl`: kind, title, bead, whether HELIX's
context was in its prompt, tokens, cost, pid, who was called; what never tells its cost has none. It reaches no
network.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

HOME = Path(os.environ["HOME"])
COST_USD, IN, OUT, CACHED = 0.0421, 2850, 150, 300
UNTOLD = ("ratelimit", "hang")
"""Words with which the work never tells what it used."""
SESSION = "5e551011-0000-4000-8000-000000000001"
AGENT = Path(sys.argv[0]).name
CODEX = AGENT == "codex"


def word(name: str, otherwise: str) -> str:
    path = HOME / name
    return path.read_text().strip() if path.exists() else otherwise


def line(**fields: Any) -> None:
    """A line of the stream; of Claude Code's, each names its session."""
    sys.stdout.write(json.dumps(fields if CODEX else {"session_id": SESSION, **fields}) + "\n")
    sys.stdout.flush()


def say(*content: dict[str, Any]) -> None:
    if CODEX:
        return
    usage = {"input_tokens": IN, "output_tokens": OUT, "cache_read_input_tokens": CACHED}
    message = {"id": "m", "role": "assistant", "model": MODEL, "content": list(content), "usage": usage}
    line(type="assistant", message=message)


def note(kind: str, prompt: str, *, paid: bool = True) -> None:
    title = re.search(r"<title>([^<]*)", prompt)
    bead = re.search(r'<bead[^>]*\bid="([^"]+)"', prompt)
    row = {"kind": kind, "title": title[1].strip() if title else "", "pid": os.getpid(), "at": time.time()}
    row |= {"bead": bead[1] if bead else "", "context": "helix-context" in prompt, "agent": AGENT}
    row |= {"tokens": IN + OUT, "cost_usd": COST_USD} if paid else {"tokens": 0, "cost_usd": 0.0}
    with open(HOME / "calls.jsonl", "a") as file:
        file.write(json.dumps(row) + "\n")


def end(text: str, *, code: int = 0) -> NoReturn:
    if CODEX:
        line(type="item.completed", item={"id": "item_0", "type": "agent_message", "text": text})
        usage = {"input_tokens": IN, "cached_input_tokens": CACHED, "output_tokens": OUT}
        line(type="turn.completed", usage=usage)
        sys.exit(code)
    line(
        type="result",
        subtype="error" if code else "success",
        is_error=bool(code),
        result=text,
        duration_ms=400,
        num_turns=2,
        total_cost_usd=COST_USD,
        usage={"input_tokens": IN, "output_tokens": OUT, "cache_read_input_tokens": CACHED},
    )
    sys.exit(code)


def git(*words: str) -> None:
    subprocess.run(["git", *words], check=False, capture_output=True, timeout=60)


def intake() -> NoReturn:
    ready = {"classification": "ready", "tractability": "tractable", "score": 0.9, "rationale": "one file"}
    ready |= {"difficulty": {"estimated_difficulty": "easy", "reason": "one file"}}
    lists = ("readiness_checks", "suggested_fixes", "suggested_child_beads", "waivers_applied")
    end(json.dumps(ready | {name: [] for name in lists}))


def triage() -> NoReturn:
    answer = {"classification": "transport", "recommended_action": "release_claim_retry", "rationale": "x"}
    end(json.dumps(answer | {"suggested_amendments": [], "suggested_followup_beads": []}))


def review(mode: str, prompt: str) -> NoReturn:
    verdict = "BLOCK" if mode in ("block", "mute") else word("verdict", "APPROVE")
    if "schema_version" not in prompt:
        why = "" if verdict == "APPROVE" or mode == "mute" else "\n### Findings\n- one word too many\n"
        grades = f"| AC | Grade | Evidence |\n|---|---|---|\n| 1 | {verdict} | out:1 |\n"
        end(f"### Verdict: {verdict}\n\n{grades}{why}")
    grade = "pass" if verdict == "APPROVE" else "fail"
    severity = "block" if verdict == "BLOCK" else "warn"
    findings = [] if grade == "pass" else [{"severity": severity, "summary": "one word too many", "location": "out:1"}]
    item = {"number": 1, "item": "the file is there", "grade": grade, "evidence": "out:1"}
    document = {"schema_version": 1, "verdict": verdict, "summary": "scripted", "per_ac": [item]}
    end(f"```json\n{json.dumps(document | {'findings': findings})}\n```")


def work(mode: str, prompt: str) -> NoReturn:
    found = re.search(r'<bead[^>]*\bid="([^"]+)"', prompt) or re.search(r"\b(p-[0-9a-f]{8})\b", prompt)
    name = f"out-{found[1]}.txt" if found else "out.txt"
    if mode not in UNTOLD:
        say({"type": "text", "text": f"working: {mode}"})
    time.sleep(float(word("pace", "0")))
    if mode == "fail":
        end("could not build", code=1)
    if mode == "nochange":
        end("Nothing had to change.")
    if mode == "ratelimit":
        sys.stderr.write("Error: 429 rate limit exceeded, retry after 60s\n")
        sys.exit(1)
    if mode == "hang":
        while True:
            time.sleep(60)
    if mode == "slow":
        for number in range(40):
            say(
                {
                    "type": "tool_use",
                    "id": f"t{number}",
                    "name": "Bash",
                    "input": {"command": f"step {number}"},
                }
            )
            time.sleep(0.25)
    if mode == "conflict":
        project = Path(word("project", ""))
        Path("README.md").write_text("changed by the agent\n")
        git("commit", "-qam", "docs: the agent's README")
        (project / "README.md").write_text(f"changed by a person {time.time_ns()}\n")
        subprocess.run(["git", "-C", str(project), "commit", "-qam", "docs: mine"], check=False, timeout=60)
        end("Done.")
    if mode == "lefthook":
        with open("lefthook.yml", "a") as file:
            file.write(f"# {name}\n")
        git("add", "lefthook.yml")
    with open(name, "a") as file:
        file.write("hello\n")
    git("add", name)
    git("commit", "-qm", f"feat: write {name}")
    end(f"Done: {name} is written.")


def main() -> NoReturn:
    if "--version" in sys.argv:
        sys.stdout.write("codex-cli 0.50.0\n" if CODEX else "2.0.0 (Claude Code)\n")
        sys.exit(0)
    if len(sys.argv) == 1 or (CODEX and "exec" not in sys.argv):
        sys.exit(0)
    prompt = sys.argv[-1] if len(sys.argv[-1]) > 40 else sys.stdin.read()
    if CODEX:
        line(type="thread.started", thread_id=SESSION)
    else:
        line(type="system", subtype="init", model=MODEL, tools=["Bash", "Edit"], cwd=os.getcwd())
    start = prompt.lstrip()
    kinds = {"MODE: intake": "intake", "MODE: triage": "triage", "MODE:": "mode", "<bead-review>": "review"}
    kinds |= {"Repair bead ": "repair"}
    kind = next((kind for begin, kind in kinds.items() if start.startswith(begin)), "work")
    if kind == "work" and "<execute-bead" not in prompt:
        kind = "ask"
    titled = re.search(r"<title>[^<]*\[(\w+)\]", prompt)
    mode = titled[1] if titled else word("mode", "ok")
    if mode == "hang" and (HOME / "awake").exists():
        mode = "ok"
    note(kind, prompt, paid=kind not in ("work", "repair") or mode not in UNTOLD)
    if kind == "intake":
        intake()
    if kind == "triage":
        triage()
    if kind == "review":
        review(mode, prompt)
    if kind not in ("work", "repair"):
        if mode == "hang":
            time.sleep(3600)
        end(word("answer", "NEXT_ACTION: STOP\nEverything is done."))
    work(mode, prompt)


MODEL = "claude-sonnet-4-6"

if __name__ == "__main__":
    main()
