"""No two surfaces contradict each other: on recordings, real trackers, generated ones, and in every state."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helix_tui.core.editing.execute.gate import WriteGate
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.signals.questions import OpenQuestions
from tests.consistency.conftest import EVERYTHING, write_scene
from tests.consistency.scene import Scene
from tests.consistency.surfaces import FAST, contradictions
from tests.core.supervision.test_whatif import trackers

pytestmark = pytest.mark.long

COMMITTED = Path(__file__).resolve().parents[1] / "data"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "ddx" / "loops"
LOOPS = sorted((COMMITTED / "ddx").glob("*.jsonl")) + sorted((COMMITTED / "loops").glob("*.jsonl"))
PLAYED = [(path, 1.0) for path in (*LOOPS, *sorted(SHARED.glob("*.jsonl")))]
PLAYED += [(path, part) for path in LOOPS[:4] for part in (0.3, 0.6, 0.9)]

TRACKERS = [
    ("beads-head.jsonl", "2026-08-21T22:00:28Z"),
    ("beads-2026-04.jsonl", "2026-04-24T13:41:04Z"),
    ("beads-max.jsonl.xz", "2026-04-29T12:00:00Z"),
    ("beads-union.jsonl.xz", "2026-08-21T22:00:28Z"),
    ("projects/fizeau.tar.xz", "2026-08-21T22:00:28Z"),
]


def test_every_surface_agrees_where_everything_happens_at_once(everything: Scene) -> None:
    assert contradictions(everything) == []
    outcomes = everything.ask("attempts")["outcomes"]
    assert outcomes.keys() >= {"landed", "refused", "kept_aside", "satisfied", "failed", "interrupted"}
    assert everything.ask("queue")["left_out"] == "q-1 waits for you"


def test_documents_that_contradict_each_other_are_told_alike(tmp_path: Path) -> None:
    scene = write_scene(
        tmp_path / "demo", [{"id": "g-1", "title": "Do it", "status": "open", "acceptance": "`make check` passes"}]
    )
    shutil.copytree(EVERYTHING / "docs", scene.root / "docs")
    for name, other in (("SD-001", "SD-002"), ("SD-002", "SD-001")):
        document = f"---\nddx:\n  id: {name}\n  supersedes: {other}\n---\n# Design\n"
        (scene.root / "docs" / f"{name}.md").write_text(document)
    assert contradictions(scene, (*FAST, "screen needs", "screen next")) == []
    assert scene.ask("check", "--no-model")["next_action"] == "GUIDANCE"
    assert scene.ask("needs")["groups"] == {"questions": 1}
    questions = OpenQuestions(find_project(scene.root), WriteGate(find_project(scene.root)))
    (conflict,) = scene.ask("check", "--no-model")["conflicts"]
    key = f"physics-level:{conflict['text']}"
    for answer in ("", "SD-002"):
        asked = questions.ask("physics-level", conflict["text"], key=key)
        if answer:
            questions.answer(asked.id, answer)
        later = Scene(scene.root, scene.now)
        assert contradictions(later, (*FAST, "screen needs", "screen next")) == []
        assert later.ask("check", "--no-model")["next_action"] == ("BUILD" if answer else "GUIDANCE")


def test_attempts_are_judged_by_the_instant_that_is_asked_of(everything: Scene) -> None:
    bundle = everything.root / ".ddx" / "executions" / "20260821T215900-0000000a"
    given = {"attempt_id": bundle.name, "bead_id": "d-7"}
    bundle.mkdir()
    (bundle / "manifest.json").write_text(json.dumps(given))
    (bundle / "result.json").write_text(json.dumps({**given, "status": "success"}))
    landed = []
    for now in (everything.now, "2026-08-25T00:00:00Z"):
        later = Scene(everything.root, now)
        assert contradictions(later, ("attempts", "queue")) == []
        landed.append(later.ask("attempts")["counts"]["landed"])
    assert landed[0] < landed[1], "while its worker lives, its own word is not the last"


@pytest.mark.parametrize(("timeline", "part"), PLAYED, ids=lambda given: getattr(given, "stem", given))
def test_recordings_are_told_alike(timeline: Path, part: float, recorded: Callable[[Path, float], Scene]) -> None:
    to_its_end = part == 1.0 and timeline in LOOPS
    assert contradictions(recorded(timeline, part), (*FAST, "screen loop") if to_its_end else FAST) == []


@pytest.mark.parametrize(
    ("name", "now"),
    [
        pytest.param(*given, id=given[0], marks=[pytest.mark.nightly] if given[0].endswith("xz") else [])
        for given in TRACKERS
    ],
)
def test_real_trackers_are_told_alike(name: str, now: str, tracker: Callable[[str, str], Scene]) -> None:
    assert contradictions(tracker(name, now)) == []


def test_a_simulation_is_told_alike(simulated: Callable[[], Scene]) -> None:
    overlay = simulated()
    assert contradictions(overlay) == []
    assert overlay.ask("attempts")["outcomes"]["landed"] > 1


STATUSES = ["success", "already_satisfied", "no_changes", "execution_failed", "review_block", "land_conflict",
            "review_malfunction", "repair-cycle-exhausted", "push_failed", "a_word_of_next_year"]  # fmt: skip
DETAILS = ["", "pre-land review: BLOCK", "post-merge review: BLOCK", "merged onto current tip",
           "signal: terminated"]  # fmt: skip


@st.composite
def attempted(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A tracker of either era, with attempts told by events."""
    made = draw(st.sampled_from(["april", "head"]).flatmap(trackers))
    for place, row in enumerate(made):
        row["events"] = []
        for number in range(draw(st.integers(0, 2))):
            attempt = f"20260810T1{number}000{place}-0000000{place}"
            kept = f"preserve_ref=refs/ddx/iterations/{row['id']}/{attempt}-abc"
            lines = (draw(st.sampled_from(DETAILS)), f"attempt_id={attempt}", draw(st.sampled_from(["", kept])))
            status = draw(st.sampled_from(STATUSES))
            told = {"kind": "execute-bead", "summary": status, "body": "\n".join(lines)}
            row["events"].append(told | {"created_at": f"2026-08-10T1{number}:30:00Z"})
    return made


@given(attempted())
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_generated_trackers_are_told_alike(made: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert contradictions(write_scene(Path(folder) / "demo", made), FAST) == []
