"""fizeau, a real project with more archived than at work, held against what four releases answer there.

The data is beside the checkout (``../shared``); where it is not, these tests are left out.
"""

from __future__ import annotations

import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from helix_tui.core.beads.counts import count_queue
from helix_tui.core.beads.query import matching, parse_query
from helix_tui.core.beads.readiness import APRIL, HEAD, Queue, Rule, classify
from helix_tui.core.beads.tracker import find_archived, only_archived, read_archive, read_tracker
from helix_tui.core.ground.time import parse_now

NOW = parse_now("2026-08-21T22:00:00Z")
RULES = {"april": APRIL, "may": replace(HEAD, reviews=False), "july": HEAD, "head": HEAD}


@pytest.fixture(scope="module")
def fizeau(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its ``.ddx``."""
    source = shared / "data" / "ddx" / "projects" / "fizeau.tar.xz"
    if not source.exists():
        pytest.skip("fizeau is not on this machine")
    folder = tmp_path_factory.mktemp("fizeau")
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    return folder / ".ddx"


@pytest.fixture(scope="module")
def answers(shared: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """What each release answered, by release and command."""
    path = shared / "data" / "ddx" / "projects" / "fizeau.jsonl.xz"
    if not path.exists():
        pytest.skip("fizeau is not on this machine")
    with lzma.open(path, "rt") as file:
        rows = [json.loads(line) for line in file]
    return {(release, " ".join(row["argv"][1:])): row for row in rows for release in row["releases"]}


def judged(folder: Path, rule: Rule) -> Queue:
    return classify(read_tracker(folder / "beads.jsonl").beads, now=NOW, era=rule)


def ids(answer: dict[str, Any]) -> list[str]:
    found = json.loads(answer["stdout"]) or []
    return [row if isinstance(row, str) else row["id"] for row in found]


@pytest.mark.parametrize("release", RULES)
def test_what_is_ready_and_how_much_of_what_there_is_are_ddx_s_numbers(
    fizeau: Path, answers: dict[tuple[str, str], dict[str, Any]], release: str
) -> None:
    queue = judged(fizeau, RULES[release])
    assert list(queue.picked_by_ddx) == ids(answers[release, "bead ready --execution --json"])
    away = only_archived(read_archive(fizeau / "beads-archive.jsonl"), queue.beads)
    counts = count_queue(queue, archive=away)
    theirs = json.loads(answers[release, "bead status --json"]["stdout"])
    whole = {} if release == "april" else away  # April looks at the tracker alone
    closed = counts.closed if release == "april" else counts.closed + counts.archived_closed
    assert (counts.total + len(whole), closed) == (theirs["total"], theirs["closed"])
    assert (counts.open, counts.listed, counts.blocked) == (
        theirs["open"],
        theirs["ready"],
        theirs["blocked"],
    )
    assert counts.put_away == "825 more archived (1,031 closed in all)"
    listed = ids(answers[release, "bead list --json"])
    assert sorted({*queue.beads, *whole}) == sorted(listed)


@pytest.mark.parametrize("release", ["may", "july", "head"])
def test_what_waits_for_a_person_is_what_ddx_lists(
    fizeau: Path, answers: dict[tuple[str, str], dict[str, Any]], release: str
) -> None:
    queue = judged(fizeau, RULES[release])
    ours = sorted(bead_id for bead_id in queue.beads if queue.state(bead_id) == "proposed")
    assert ours == sorted(ids(answers[release, "bead needs-human --json"]))


def test_every_archived_bead_is_found_by_a_filter_and_explained(fizeau: Path) -> None:
    archive = read_archive(fizeau / "beads-archive.jsonl")
    tracker = read_tracker(fizeau / "beads.jsonl")
    away = only_archived(archive, tracker.beads)
    assert (archive.dropped, tracker.dropped) == ((), ())
    queue = classify(away, now=NOW)
    assert len(matching(parse_query("status:closed"), queue)) == 825
    found = matching(parse_query("periodic healthch"), queue)
    assert found
    assert all(find_archived(archive.path, found)[bead_id].words.startswith("closed on 2026-") for bead_id in found)
    assert not matching(parse_query("status:open"), queue)
