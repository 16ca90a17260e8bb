"""What the demo is made of: its queue (``queue.toml``) and the past of its repository (``code.toml``)."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
from msgspec import Struct

MEDIUM = "simulation-medium"
"""The model of an attempt that names none."""


class PastAttempt(Struct, frozen=True):
    """An attempt of the past: how it ended, how many hours ago, how long, with what, for how much."""

    status: str
    hours_ago: float
    minutes: float
    model: str = MEDIUM
    tokens: int = 38_000
    cost: float | None = None
    """Dollars; None where nobody knows."""


class DemoBead(Struct, frozen=True):
    """One bead of the demo, by a key from which its id is made."""

    key: str
    title: str
    priority: int
    area: str
    description: str = ""
    acceptance: tuple[str, ...] = ()
    waits_on: tuple[str, ...] = ()
    status: str = "open"
    issue_type: str = "task"
    parent: str = ""
    labels: tuple[str, ...] = ()
    days_ago: float = 6.0
    fields: dict[str, Any] = {}
    act: dict[str, Any] | str | None = None
    """What the simulated agent does with it (`simulator.script`)."""
    past: tuple[PastAttempt, ...] = ()


class DemoQueue(Struct, frozen=True):
    """All beads, the one in the archive, and a line that a crash cut off."""

    malformed: str
    archived: DemoBead
    queue: tuple[DemoBead, ...]


class DemoCommit(Struct, frozen=True):
    """One commit: what it says, who made it how many days ago, and the files it writes."""

    message: str
    days_ago: float
    files: dict[str, str] = {}
    author: str = "maren"


class DemoCode(Struct, frozen=True):
    """The commits of people, oldest first, and questions that the code answers."""

    questions: tuple[str, ...]
    commits: tuple[DemoCommit, ...]


@cache
def demo_queue() -> DemoQueue:
    """The queue of the demo."""
    document = _read("queue.toml")
    for bead in document["queue"]:
        act = bead.get("act")
        if isinstance(act, dict) and act.get("cost_usd") == "none":
            act["cost_usd"] = None  # TOML has no null
    return msgspec.convert(document, DemoQueue)


@cache
def demo_code() -> DemoCode:
    """The code base of the demo."""
    return msgspec.convert(_read("code.toml"), DemoCode)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("helix_ddx.demo").joinpath(name).read_text(encoding="utf-8"))
