"""Cut the recorded ``ddx`` commands down to what the conformance suite compares.

Usage: ``python tests/data/transcripts/trim.py FOLDER`` with the folder of the full recordings; writes
``april.jsonl`` and ``head.jsonl`` beside this file. One command a line: what was given, what it answered, the
files as they were before, and what it changed in them. Of a complaint only its last ``Error:`` line is kept;
texts of files stand as the lines that differ from the command before.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TRACKER = ".ddx/beads.jsonl"
NOISE = "Cancel received, shutting down gracefully\n"
"""What head prints now and then at its end, whatever the command was."""

KEPT = (".ddx/beads.jsonl", ".ddx/lifecycle-schema.json", ".ddx/config.yaml", ".ddx/attachments/")
"""Files whose texts are compared; locks and what an agent's own tools unpack are not."""


def main(folder: Path) -> None:
    """Trim both recordings."""
    for era in ("april", "head"):
        rows = [json.loads(line) for line in (folder / f"{era}.jsonl").read_text().splitlines()]
        cases = trimmed(rows)
        text = "".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) + "\n" for case in cases)
        (HERE / f"{era}.jsonl").write_text(text, encoding="utf-8")


def trimmed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The cases of one recording."""
    files: dict[str, str] = {}
    told: dict[str, str] = {}
    cases = []
    claim: int | None = None
    for number, row in enumerate(rows):
        files = before(rows, number, files)
        case: dict[str, Any] = {"argv": row["argv"][1:], "rc": row["rc"], **answer(row)}
        case |= {name: row[name] for name in ("note", "stdin") if row[name]}
        case |= {"before": delta(told, files)} if files != told else {}
        case |= {"error": error} if (error := last_error(row["stderr"])) else {}
        said = row["stderr"].replace(NOISE, "")
        case |= {"stderr": said} if said and not error and row["argv"][1] == "bead" else {}
        told = dict(files)
        for path in row["changed"] or ():
            if path.startswith(KEPT):
                text = row["files"].get(path)
                files = {**files, path: text} if text is not None else drop(files, path)
        case |= {"after": delta(told, files)} if row["changed"] else {}
        told = dict(files)
        if claim is not None:
            case["claim"] = claim
        if row["rc"] == 0 and "--claim" in row["argv"]:
            claim = number
        elif "--unclaim" in row["argv"]:
            claim = None
        cases.append(case)
    return cases


def answer(row: dict[str, Any]) -> dict[str, Any]:
    """What was printed; of a help text only the facts, of other programs' reports only JSON."""
    if "Usage:" in row["stdout"]:
        return {"help": help_facts(row["stdout"])}
    said = row["stdout"]
    if row["argv"][1] != "bead" and not said.startswith(("[", "{")):
        return {}
    return {"stdout": said}


def help_facts(text: str) -> dict[str, Any]:
    """The usage lines, the commands and the flags with their kinds, without a word of prose."""
    block = text[text.index("Usage:") :]
    facts: dict[str, Any] = {"usage": [], "commands": [], "flags": [], "global": []}
    heads = {
        "Usage:": "usage",
        "Available Commands:": "commands",
        "Flags:": "flags",
        "Global Flags:": "global",
    }
    part = ""
    for line in block.split("\n"):
        if line and not line.startswith(" "):
            part = heads.get(line, "")
        elif line and part == "usage":
            facts["usage"].append(line.strip())
        elif line and part == "commands":
            facts["commands"].append(line.split()[0])
        elif line and part:
            facts[part].append(re.split(r"\s{2,}", line.strip())[0])
    return facts


def drop(files: dict[str, str], path: str) -> dict[str, str]:
    """The files without one."""
    return {name: text for name, text in files.items() if name != path}


def before(rows: list[dict[str, Any]], number: int, files: dict[str, str]) -> dict[str, str]:
    """The files as they stood when a command began, where whoever recorded had put others in place."""
    row = rows[number]
    copy = row["files"].get(f"{TRACKER}.bak")
    if copy is not None:
        return {**files, TRACKER: copy}
    if row["note"] == "lock held by a live pid":
        row = rows[number + 1]
    if "lock" in row["note"]:  # the recorder had taken the whole file back to an earlier state
        born = row["stdout"].strip()
        lines = [line for line in row["files"][TRACKER].split("\n") if f'"id":"{born}"' not in line]
        return {**files, TRACKER: "\n".join(lines)}
    return files


def delta(old: dict[str, str], new: dict[str, str]) -> dict[str, Any]:
    """Per file that differs: null where it is gone, else lines that went and lines that came."""
    changes: dict[str, Any] = {path: None for path in old if path not in new}
    for path, text in new.items():
        if old.get(path) == text:
            continue
        was, now = old.get(path, "").split("\n"), text.split("\n")
        changes[path] = {
            "went": [place for place, line in enumerate(was) if line not in now],
            "came": {str(place): line for place, line in enumerate(now) if line not in was},
        }
        assert applied(old.get(path, ""), changes[path]) == text, path
    return changes


def applied(text: str, change: dict[str, Any]) -> str:
    """A file after a change."""
    lines = [line for place, line in enumerate(text.split("\n")) if place not in change["went"]]
    for place, line in change["came"].items():
        lines.insert(int(place), line)
    return "\n".join(lines)


def last_error(stderr: str) -> str:
    """The line that a caller would show."""
    return next((line for line in reversed(stderr.split("\n")) if line.startswith("Error: ")), "")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
