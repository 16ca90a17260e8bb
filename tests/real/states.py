"""A project with one bead of each state, that can be put back to where it was."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.stranger import Stranger

Rows = dict[str, dict[str, Any]]

STATES = ("plain", "labelled", "waiting", "awaited", "epic", "child", "closed", "claimed", "off", "custom")
"""The beads of the project, by what each of them is before anything is done."""


@dataclass(frozen=True)
class Queue:
    """The project before each trial: always at one place, because ddx keeps its claims by that."""

    place: Stranger
    ids: dict[str, str]
    kept: dict[str, Path]
    old: bool = False
    """Whether its rows are as releases before the end of May wrote them."""

    def fresh(self) -> tuple[Rows, list[str]]:
        """Put it back, with a fresh claim on the bead that is claimed: its rows and what ddx calls ready."""
        for name, folder in self.kept.items():
            shutil.rmtree(self.place.base / name)
            shutil.copytree(folder, self.place.base / name, symlinks=True)
        self.place.ddx("bead", "update", self.ids["claimed"], "--claim", check=True)
        if self.old:
            rows = [{**row} for row in self.place.rows().values()]
            for row in rows:
                row.pop("schema_version", None)
            lines = [json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n" for row in rows]
            (self.place.project / ".ddx" / "beads.jsonl").write_text("".join(lines))
        return masked(self.place), self.place.ready()


def made_queue(place: Stranger) -> Queue:
    """One bead of each state, made by this release."""
    ids = {name: place.bead(name) for name in STATES if name not in ("waiting", "child", "epic")}
    ids["waiting"] = place.bead("waiting", after=(ids["awaited"],))
    made = place.ddx("bead", "create", "epic", "--type", "epic", "--priority", "2", check=True)
    ids["epic"] = made.stdout.split()[-1]
    ids["child"] = place.bead("child", parent=ids["epic"])
    for name, words in {
        "labelled": ("--labels", "one,two"),
        "off": ("--set", "execution-eligible=false"),
        "custom": ("--set", "colour=red"),
    }.items():
        place.ddx("bead", "update", ids[name], *words, check=True)
    place.ddx("bead", "close", ids["closed"], check=True)
    place.commit("beads")
    kept = {name: place.base / f"{name}.kept" for name in ("project", "tmp")}
    for name, folder in kept.items():
        shutil.copytree(place.base / name, folder, symlinks=True)
    return Queue(place, ids, kept)


def masked(place: Stranger) -> Rows:
    """The rows without what no two runs have alike: instants, processes, sessions, commits."""
    text = json.dumps(place.rows(), sort_keys=True)
    text = re.sub(r'"\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)"', '"AN INSTANT"', text)
    text = re.sub(r'"([\w-]*(?:pid|session))": ("[^"]*"|\d+)', r'"\1": "ONE"', text)
    rows: Rows = json.loads(text)
    return rows
