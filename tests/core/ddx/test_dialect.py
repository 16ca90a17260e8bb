"""What a ddx does: tried on the embedded tracker of either family, kept by content, said where it differs."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict, replace

from helix_tui.core.beads.readiness import classify
from helix_tui.core.ddx.client import Ddx, DdxError, last_error
from helix_tui.core.ddx.dialect import APRIL, AUGUST, RowGate, rule_for
from helix_tui.core.ddx.help_text import read_verbs
from helix_tui.core.ddx.probe import at_hand, dialect_of
from helix_tui.core.ddx.remarks import difference, remarks, shut
from helix_tui.core.ddx.trial import SLOW, try_out
from helix_tui.core.editing.execute.step_run import hook_warnings
from helix_tui.core.ground.process import Finished, run
from helix_tui.core.ground.time import parse_now
from tests.programs import parse_rows, write_program

pytestmark = pytest.mark.long

NOW = parse_now("2026-08-01T12:00:00Z")
LATER = "2099-01-01T00:00:00Z"


@pytest.fixture
def program(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Write an executable that plays the embedded tracker of a family and notes each call."""

    def write(before: str = "") -> Path:
        return write_program(
            tmp_path / "ddx",
            "import os, sys\n"
            f"open({str(tmp_path / 'calls')!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n')\n{before}\n"
            "from helix_ddx.__main__ import main\nsys.exit(main())",
        )

    return write


def test_a_trial_finds_what_a_release_does(program: Any) -> None:
    found = try_out(program(), {"PATH": "/usr/bin:/bin"}, APRIL)
    assert found.proven
    by_help = {"verbs", "gates", "proven"}
    for name, value in asdict(AUGUST).items():
        if name not in by_help:
            assert getattr(found, name) == value, name


def test_a_release_with_another_name_for_a_verb_is_tried_by_that_name(program: Any) -> None:
    renamed = (
        "if sys.argv[1:3] == ['bead', 'update']: sys.exit('unknown command')\n"
        "if sys.argv[1:3] == ['bead', 'edit']: sys.argv[2] = 'update'"
    )
    verbs = {**AUGUST.verbs, "update": replace(AUGUST.verbs["update"], words=("bead", "edit"))}
    found = try_out(program(renamed), {"PATH": "/usr/bin:/bin"}, replace(APRIL, verbs=verbs))
    assert (found.lifecycle, found.leases, found.rank_is_number) == (True, True, True)
    assert found.verbs["update"].words == ("bead", "edit")


def test_a_release_that_wants_a_configuration_is_tried_with_one(program: Any) -> None:
    elsewhere = "if sys.argv[1] == 'bead' and not os.path.exists('.ddx/config.yaml'): sys.exit(print('[]'))"
    found = try_out(program(elsewhere), {"PATH": "/usr/bin:/bin"}, APRIL)
    assert (found.proven, found.rule, found.needs_settings) == (True, AUGUST.rule, AUGUST.needs_settings)


def test_what_is_known_of_the_embedded_tracker_is_what_its_help_says(program: Any, tmp_path: Path) -> None:
    known, found = AUGUST, dialect_of(program(), tmp_path).verbs
    assert {action: verb.words for action, verb in found.items()} == {
        action: verb.words for action, verb in known.verbs.items()
    }
    for action, verb in known.verbs.items():
        assert verb.flags <= found[action].flags, action
    asked = {"--local", "--json", "--once", "--watch", "--depends-on", "--external-blocker-reason"}
    for action in ("drain", "one_bead", "create", "update"):
        assert found[action].flags & asked == known.verbs[action].flags & asked, action


def test_what_was_found_is_kept_and_not_tried_again(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HELIX_DDX_TRIAL")
    path = program()
    found = at_hand(str(path), tmp_path)
    assert found is not None
    assert found.rule == AUGUST.rule
    calls = tmp_path / "calls"

    def asked() -> str:
        """What another process asks it."""
        calls.write_text("")
        monkeypatch.setattr("helix_tui.core.ddx.probe._seen", {})
        assert at_hand(str(path), tmp_path) == found
        return calls.read_text()

    assert asked() == "version\n", "a script is asked what it starts, and nothing else"
    path.write_text(f"{path.read_text()}\n# changed\n")
    assert "--help" in asked(), "a changed file is another ddx"
    assert asked() == "version\n"


def test_a_script_that_starts_another_release_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HELIX_DDX_TRIAL")
    path, release = tmp_path / "ddx", tmp_path / "release"
    lists = 'case "$1" in version) cat "$(dirname "$0")/release";; *) echo "unknown command" >&2; exit 1;; esac'
    path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n{lists}\n')
    path.chmod(0o755)
    for text, tried in (("v1", True), ("v1", False), ("v2", True)):
        release.write_text(text)
        (tmp_path / "calls").write_text("")
        monkeypatch.setattr("helix_tui.core.ddx.probe._seen", {})
        at_hand(str(path), tmp_path)
        assert ("--help" in (tmp_path / "calls").read_text()) == tried, text


@pytest.mark.parametrize("slow", [("close", "t-waits-too"), ("update", "t-cancel")])
def test_a_slow_answer_is_no_refusal(program: Any, slow: tuple[str, ...]) -> None:
    late = partial(run_late, slow)
    found = try_out(program(), {"PATH": "/usr/bin:/bin"}, replace(AUGUST, proven=False), ask=late)
    assert (found.proven, found.doubt) == (False, SLOW), "nothing of it is stored"
    assert found.closes_waiting
    assert found.lifecycle


def test_a_ddx_that_is_slow_once_is_tried_again(program: Any) -> None:
    asked: list[tuple[str, ...]] = []

    def late_once(argv: tuple[str, ...], **how: Any) -> Finished:
        asked.append(tuple(argv[2:4]))
        slow = ("close", "t-waits-too") if asked.count(("close", "t-waits-too")) == 1 else ()
        return run_late(slow, argv, **how)

    found = try_out(program(), {"PATH": "/usr/bin:/bin"}, replace(AUGUST, proven=False), ask=late_once)
    assert (found.proven, found.doubt) == (True, "")
    assert asked.count(("close", "t-waits-too")) == 2


def run_late(slow: tuple[str, ...], argv: tuple[str, ...], **how: Any) -> Finished:
    """One answer comes too late."""
    finished = run(argv, **how)
    return replace(finished, rc=-9, timed_out=True) if tuple(argv[2:4]) == slow else finished


def test_what_does_not_answer_as_a_ddx_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HELIX_DDX_TRIAL")
    path = tmp_path / "ddx"
    path.write_text("#!/bin/sh\necho '[]'\n")
    path.chmod(0o755)
    found = at_hand(str(path), tmp_path)
    assert found is not None
    assert not found.proven
    assert rule_for(found) == "auto"
    assert not dialect_of(path, tmp_path).proven
    path.write_text("no program")
    assert at_hand(str(path), tmp_path) is None
    with pytest.raises(DdxError):
        dialect_of(path, tmp_path)


def beads(*rows: dict[str, Any]):  # type: ignore[no-untyped-def]
    usual = {"title": "t", "status": "open", "priority": 2, "issue_type": "task"}
    usual["created_at"] = "2026-01-01T00:00:00Z"
    return parse_rows("\n".join(json.dumps(usual | row) for row in rows).encode()).beads


def test_the_ddx_at_hand_decides_what_is_ready_whoever_wrote_the_rows() -> None:
    found = beads({"id": "a", "execute-loop-retry-after": LATER}, {"id": "b", "issue_type": "epic"})
    assert classify(found, now=NOW).ready == ()
    assert classify(found, now=NOW, era=APRIL.rule).ready == ()
    assert classify(found, now=NOW, era=AUGUST.rule).ready == ("a", "b")
    assert "does not read the execute-loop-… keys of 1 bead:" in str(difference(found, AUGUST))
    assert difference(found, APRIL) is None
    later = beads({"id": "a", "schema_version": 1, "work-retry-after": LATER})
    assert classify(later, now=NOW, era=APRIL.rule).ready == ("a",)
    assert "ddx upgrade" in str(difference(later, APRIL))


def test_a_release_between_is_judged_by_what_it_does() -> None:
    may = replace(AUGUST.rule, reviews=False)
    found = beads({"id": "a", "preserved-review-blocked-at": "2026-01-01T00:00:00Z"})
    assert classify(found, now=NOW, era=may).ready == ("a",)
    assert classify(found, now=NOW, era=AUGUST.rule).ready == ()


def test_a_tracker_that_ddx_refuses_is_said_with_code_beads_and_command() -> None:
    gate = RowGate("label", "needs_human", "lifecycle_migration_required", "ddx bead migrate --lifecycle --apply")
    dialect = replace(AUGUST, gates=(gate,))
    found = beads(*({"id": f"d-{n}", "labels": ["needs_human"], "schema_version": 1} for n in range(7)))
    said = remarks(found, dialect)
    assert len(said) == 1
    for part in (gate.code, "d-0", "and 2 more", gate.command):
        assert part in said[0].text
    assert shut(found, AUGUST) is None
    assert shut(beads({"id": "x"}), dialect) is None


CHECKS = """
words, config = sys.argv[1:], '.ddx/config.yaml'
broken = os.path.exists(config) and '[' in open(config).read()
if words[:1] == ['config']:
    sys.exit('Error: configuration validation failed: line 1' if broken else 0)
if broken and words[:2] == ['bead', 'update'] and '--help' not in words:
    sys.exit('Error: load config for bead auto-commit: configuration validation failed: line 1')
marker = '.ddx/lifecycle-schema.json'
if os.path.exists(marker) and words[:2] == ['bead', 'ready']:
    version = json.load(open(marker))['version']
    if version < 2:
        sys.exit(f'Error: lifecycle_migration_required: marker version {version} is older than 2')
"""


def test_what_a_projects_files_make_it_refuse_is_found_once_per_state_of_them(
    program: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HELIX_DDX_TRIAL")
    path = program(f"import json\n{CHECKS}")
    calls, settings = tmp_path / "calls", tmp_path / "project" / ".ddx" / "config.yaml"
    settings.parent.mkdir(parents=True)
    root = settings.parent.parent

    def here() -> tuple[str, str, bool] | None:
        calls.write_text("")
        found = at_hand(str(path), root)
        assert found is not None
        refused = shut({}, found)
        assert (refused is None) == (remarks({}, found) == ())
        return None if refused is None else (refused.gate.code, refused.refuses, refused.lists)

    assert here() is None
    settings.write_text("version: [")
    assert here() == ("configuration_not_valid", "every change and all work", True)
    assert calls.read_text() == "config --validate --offline\n"
    assert here() is not None
    assert calls.read_text() == "", "neither the files nor ddx changed"
    settings.write_text("version: [ # slow")
    with monkeypatch.context() as slow:
        slow.setattr(
            "helix_tui.core.ddx.client.run", lambda argv, **how: Finished(argv, -9, b"", b"", 20.0, timed_out=True)
        )
        assert here() is None, "nobody knows"
    assert here() == ("configuration_not_valid", "every change and all work", True), "what is not known is not kept"
    settings.write_text('version: "1.0"')
    assert here() is None
    marker = settings.with_name("lifecycle-schema.json")
    for text, code in (
        ('{"version": 1}', "lifecycle_migration_required"),
        ("{}", "lifecycle_migration_required"),
        ("{oops", "lifecycle_gate_marker"),
    ):
        marker.write_text(text)
        assert here() == (code, "every command", False), text
    marker.write_text('{"version": 2}')
    assert here() is None
    monkeypatch.setenv("HELIX_DDX_TRIAL", "off")
    settings.write_text("version: [[")
    assert here() is None, "nothing is tried, so nothing is known"


def test_the_reason_of_a_refusal_is_read_from_its_status_object(tmp_path: Path) -> None:
    path = tmp_path / "ddx"
    status = {
        "code": "lifecycle_migration_required",
        "legacy_needs_human_labels": 2,
        "sample_bead_ids": ["d-1"],
    }
    path.write_text(f"#!/bin/sh\ncat <<'E'\n{json.dumps(status, indent=2)}\nE\nexit 1\n")
    path.chmod(0o755)
    with pytest.raises(DdxError) as caught:
        Ddx(path, tmp_path).ready_execution()
    assert caught.value.message == "lifecycle_migration_required: 2 needs human labels, on d-1"
    assert "ddx bead migrate --lifecycle" in caught.value.advice


def test_a_hooks_whole_refusal_and_its_warnings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "ddx"
    refusal = "Error: bead: hook validate-bead-create: [triage] error: no spec-id\n[triage] error: no label"
    path.write_text(f"#!/bin/sh\ncat >&2 <<'E'\n{refusal}\nUsage:\n  ddx\n{refusal}\nE\nexit $1\n")
    path.chmod(0o755)
    with pytest.raises(DdxError) as caught:
        Ddx(path, tmp_path).run("1")
    assert caught.value.message.endswith("error: no spec-id; [triage] error: no label")
    warning = "bead: hook validate-bead-create warning: vague acceptance\nno kind label\nbead: p-1 stays"
    path.write_text(f"#!/bin/sh\ncat >&2 <<'E'\n{warning}\nE\n")
    warned = hook_warnings(Ddx(path, tmp_path).run("0"))
    assert warned == ("hook validate-bead-create warning: vague acceptance; no kind label",)


def test_what_a_help_says_of_exit_codes_is_known() -> None:
    help_text = (
        "try executes one bead\n\nExit codes:\n  0  all good\n  1  kept or nothing to do\n\n"
        "Usage:\n  ddx try <bead-id> [flags]\n\nFlags:\n  --model string\n"
    )
    verb = read_verbs(lambda words: help_text if words == ("try",) else None)["one_bead"]
    assert verb.codes == ((0, "all good"), (1, "kept or nothing to do"))
    assert (verb.meaning(1), verb.meaning(7)) == ("kept or nothing to do", "")
    silent = Finished(("ddx", "try"), 1, b"", b"", 0.0)
    assert last_error(silent, verb.meaning(1)) == "ddx ended with 1 and no message (kept or nothing to do)"
