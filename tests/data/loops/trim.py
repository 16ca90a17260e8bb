"""Cut recorded timelines down to what the tests compare: steps, paths, keys and short values.

Usage: python tests/data/loops/trim.py RECORDED_FOLDER, writes its cut copies beside this file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SCENARIOS = ["april-killed", "april-success", "head-empty", "head-killed", "head-one-blocked", "head-success"]
LONGEST = 48
"""Characters that a text inside a record keeps."""


def cut(value: Any) -> Any:
    """A value with its long texts cut; JSON inside a text keeps its keys."""
    if isinstance(value, dict):
        return {key: cut(item) for key, item in value.items()}
    if isinstance(value, list):
        return [cut(item) for item in value]
    if not isinstance(value, str) or len(value) <= LONGEST or "/" in value[:3]:
        return value
    if value[0] in "{[":
        try:
            return dump(cut(json.loads(value)))
        except ValueError:
            pass
    return value[:LONGEST]


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def cut_text(text: str) -> str:
    """The text of a file: a JSON document, JSON lines, or prose."""
    try:
        return dump(cut(json.loads(text))) + "\n"
    except ValueError:
        pass
    lines = []
    for line in text.split("\n"):
        try:
            lines.append(dump(cut(json.loads(line))))
        except ValueError:
            lines.append(line[:LONGEST])
    if text[:1] != "{":
        lines = lines[:3]
    return "\n".join(lines)


def cut_file(source: Path, target: Path) -> None:
    """Write the cut copy of one timeline."""
    with open(source, encoding="utf-8") as rows, open(target, "w", encoding="utf-8") as out:
        for row in map(json.loads, rows):
            if row["src"] == "after" and row["argv"][1:] != ["bead", "list", "--json"]:
                continue
            if row["src"] == "file" and "text" in row:
                row["text"] = cut_text(row["text"])
                row["size"] = len(row["text"].encode())
            out.write(dump(row) + "\n")


if __name__ == "__main__":
    for name in SCENARIOS:
        cut_file(Path(sys.argv[1]) / f"{name}.jsonl", Path(__file__).parent / f"{name}.jsonl")
