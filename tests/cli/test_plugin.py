"""The plugin of Claude Code: its skills, its doors, how it is installed and taken out."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.helix.help import skill_texts
from helix_tui.core.memory import ranking
from helix_tui.core.memory.write import alike
from helix_tui.core.supervision.agents.hooks import PLUGIN_FOLDER
from helix_tui.core.supervision.stages.commands import ROWS
from tests.cli.conftest import Cli

pytestmark = pytest.mark.long


def test_the_plugin_has_the_skill_of_each_command_as_its_record_says() -> None:
    texts = skill_texts()
    assert set(texts) == {f"helix-{name}" for name in ROWS}
    for name, text in texts.items():
        path = PLUGIN_FOLDER / "skills" / name / "SKILL.md"
        assert path.read_text("utf-8") == text, "helix-tui help --skills helix_tui/plugin/skills"
    assert "--rounds N" in texts["helix-design"]
    assert "prefer ddx's own loop" in texts["helix-run"]
    assert "**BACKFILL_REPORT**" in texts["helix-backfill"]
    assert "disable-model-invocation: true" in texts["helix-commit"]
    assert "`--answer ID TEXT`" in texts["helix-input"]


@pytest.fixture
def shell(tmp_path: Path) -> Any:
    """A shell in a project, with helix-tui on PATH and the variables of a session."""
    project = tmp_path / "project"
    (project / ".helix").mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    own = tmp_path / "bin" / "helix-tui"
    own.parent.mkdir()
    own.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -P -m helix_tui "$@"\n')
    own.chmod(0o755)
    env = {**os.environ, "PATH": f"{own.parent}:/usr/bin:/bin", "HELIX_EMBEDDER": "off", "HOME": str(tmp_path)}
    env["HELIX_PLUGIN_ROOT"] = str(PLUGIN_FOLDER)

    def call(line: str) -> Any:
        done = subprocess.run(["sh", "-c", line], cwd=project, env=env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return call


def test_commands_of_three_generations_of_the_plugin_reach_the_one_store(shell: Any) -> None:
    core = f'{shlex.quote(sys.executable)} "$HELIX_PLUGIN_ROOT/lib/memory/core.py"'
    first = shell(f'{core} store --type failure --trigger "Import cycle in src/auth.py" --resolution "Move the types"')
    tags = """'["user-provided"]'"""
    second = shell(f'{core} store --content "When tests of src/auth.py fail, seed the database first" --tags {tags}')
    a, b = first["name"], second["name"]
    assert (first["status"], second["type"]) == ("added", "pattern")
    found = shell(f"{core} recall auth --limit 5 --expand")
    assert {each["name"] for each in found} == {a, b}
    assert [each["name"] for each in shell(f"""{core} recall auth --graph-hops 0 --suppress-names '["{a}"]'""")] == [b]
    assert shell(f"{core} get {b}")["trigger"] == "When tests of src/auth.py fail"
    assert shell(f"{core} get nothing-like-it") == {"error": "not found"}
    shell(f'{core} relate --from {b} --to {a} --type "solves"')
    shell(f"{core} edge --from {a} --to {b} --rel similar --weight 0.5")
    assert {each["rel_type"] for each in shell(f"{core} edges --name {a}")} == {"solves", "similar"}
    assert len(shell(f"{core} edges --rel solves")) == 1
    assert [each["name"] for each in shell(f"{core} neighbors {a} --limit 1")] == [b]
    both = f"""'["{a}", "{b}"]'"""
    report = shell(f"""{core} feedback --utilized '["{a}"]' --injected {both}""")
    assert (report["helped"], report["unhelpful"], report["missing"]) == (1, 1, [])
    shell(f"{core} feedback --names {both} --delta -0.5")
    shell(f"{core} feedback --names {both} --outcome delivered --causal-names '[\"{b}\"]'")
    shell(f"{core} feedback-verify --task-id T-1 --verify-passed true --injected '[\"{a}\"]'")
    counts = {each["name"]: each for each in shell(f"{core} recall auth")}
    assert (counts[a]["verified"]["helped"], counts[b]["verified"]["helped"]) == (1, 1)
    for verb in ("health", "--verbose health", "stats", "decay --days 30 --min-uses 2", "prune", "consolidate"):
        assert isinstance(shell(f"{core} {verb}"), dict), verb
    rejected = shell(f"{core} relate --from nobody --to {a} --type solves")
    assert rejected["status"] == "rejected"
    assert (
        shell('helix memory health --json 2>/dev/null || "$HELIX_PLUGIN_ROOT/bin/helix" memory health --json')["total"]
        == 2
    )


SEED = """
import json, os, sys
sys.path.insert(0, os.path.join(os.environ["HELIX_PLUGIN_ROOT"], "lib"))
from memory.core import store, recall, feedback, chunk, relate, connected, get, edges
from memory.meta import assess_approach
import memory

first = store("- circular import in src/auth.py", "Move the types", type="failure", source="")
second = chunk("Add a login to src/auth.py", outcome="success", approach="Use Depends()")
a, b = first["name"], second["name"]
said = feedback(utilized=[a], injected=[a, b, "gone"])
relate(b, a, "solves", weight=1.0)
try:
    recall("auth", limit="few")
except RuntimeError as error:
    refused = str(error)
print(json.dumps({
    "stored": [first["status"], second["status"]],
    "found": {each["name"] for each in recall("auth", type=None, limit=5, min_effectiveness=0.0)} == {a, b},
    "scored": all("_score" in each for each in recall("auth", type="failure")),
    "fed": [said["helped"], said["unhelpful"], said["missing"]],
    "near": [each["name"] == b for each in connected(a, max_hops=2)],
    "edges": [each["rel_type"] for each in edges(a)],
    "got": [get("gone"), get(a)["resolution"]],
    "by number": [
        get(second["id"])["name"] == b,
        [each["name"] for each in connected(first["id"])] == [b],
        len(edges(second["id"])),
    ],
    "advice": assess_approach("Add a login", "write it", [])["recommendation"],
    "health": memory.health()["total"],
    "refused": refused,
}))
"""


def test_the_constants_of_the_plugin_are_those_that_count() -> None:
    core = runpy.run_path(str(PLUGIN_FOLDER / "lib/memory/core.py"))
    assert core["DUPLICATE_THRESHOLD"] == alike.DUPLICATE
    assert core["DECAY_HALF_LIFE_DAYS"] == ranking.HALF_LIFE_DAYS
    weights = core["SCORE_WEIGHTS"]
    shown = (weights["relevance"], weights["effectiveness"], weights["recency"])
    assert shown == (ranking.RELEVANCE, ranking.EFFECTIVENESS, ranking.RECENCY)


def test_functions_of_the_plugin_reach_the_one_store(shell: Any, tmp_path: Path) -> None:
    script = tmp_path / "seed.py"
    script.write_text(SEED)
    told = shell(f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} 2>/dev/null")
    assert told == {
        "stored": ["added", "added"],
        "found": True,
        "scored": True,
        "fed": [1, 1, ["gone"]],
        "near": [True],
        "edges": ["solves"],
        "got": [None, "Move the types"],
        "by number": [True, True, 1],
        "advice": "continue",
        "health": 2,
        "refused": "helix-tui memory recall ended with 2",
    }


TASKS = """
import json, os, sys
sys.path.insert(0, os.path.join(os.environ["HELIX_PLUGIN_ROOT"], "lib"))
import exploration, plan, workspace
from memory import embeddings_available

def refusal(call, *words):
    try:
        call(*words)
    except RuntimeError as error:
        return str(error)

nothing = [exploration.load(), plan.load(), workspace.load(), plan.ready_tasks()]
task = dict(seq="001", slug="impl-auth", objective="Add a login", delta=["a.py"], verify="git --version", budget=7)
after = {**task, "seq": "002", "depends": "001"}
seen = exploration.save({"objective": "Log people in", "targets": {"files": ["a.py"]}})
kept = plan.save({"objective": "Log people in", "framework": "fastapi", "tasks": [task, after]})
first = workspace.create(kept["id"], task)
early = refusal(workspace.create, kept["id"], after)
open("other.py", "w").close()
ended = workspace.complete(first["_id"], "people log in", [])
os.remove("other.py")
again = workspace.complete(workspace.create(kept["id"], task)["_id"], "people log in", [])
second = workspace.create(kept["id"], after)
active = workspace.load()["_id"] == second["_id"]
print(json.dumps({
    "nothing": nothing,
    "meaning": embeddings_available(),
    "seen": exploration.load(seen["id"])["targets"],
    "kept": [kept["task_count"], plan.load(kept["id"])["framework"]],
    "circle": refusal(plan.save, {"objective": "x", "tasks": [{**task, "depends": "001"}]}),
    "early": early,
    "ended": [ended["status"], ended["reason"]],
    "again": again["status"],
    "lineage": second["lineage"]["parents"],
    "ready": [each["seq"] for each in plan.ready_tasks()],
    "active": active,
    "blocked": workspace.block(second["_id"], "Need main.py")["reason"],
    "all": [each["status"] for each in workspace.list_workspaces(plan_id=kept["id"])],
    "delivered": workspace.load(task_seq="001")["_delivered"],
}))
"""


def test_plans_and_workspaces_of_the_plugin_are_those_of_the_store(shell: Any, tmp_path: Path) -> None:
    git = "git -c user.name=T -c user.email=t@example.com"
    shell(f"echo x > a.py && git add a.py && {git} commit -qm first && echo 1")
    script = tmp_path / "tasks.py"
    script.write_text(TASKS)
    assert shell(f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} 2>/dev/null") == {
        "nothing": [None, None, None, []],
        "meaning": False,
        "seen": {"files": ["a.py"]},
        "kept": [2, "fastapi"],
        "circle": "the plan cannot be used: the tasks form a dependency cycle: 001 -> 001",
        "early": "task 002 cannot start: it waits on 001 (active)",
        "ended": ["blocked", "other.py is outside DELTA"],
        "again": "complete",
        "lineage": [{"seq": "001", "slug": "impl-auth", "delivered": "people log in"}],
        "ready": [],
        "active": True,
        "blocked": "Need main.py",
        "all": ["blocked", "delivered", "blocked"],
        "delivered": "people log in",
    }


CONNECTED = """
import json, os, sys
sys.path.insert(0, os.path.join(os.environ["HELIX_PLUGIN_ROOT"], "lib"))
from db.connection import get_db, init_db, reset_db, write_lock
from memory import recall, store

init_db()
with write_lock():
    get_db().execute(
        "INSERT INTO memory (name, type, trigger, resolution, created_at) VALUES (?, ?, ?, ?, ?)",
        ("by-hand", "pattern", "A timetable that is slow to draw", "Draw what is seen", "2026-06-01T12:00:00Z"),
    )
    get_db().commit()
reset_db()
store("Import cycle in src/auth.py", "Move the types")
rows = get_db().execute("SELECT name, trigger FROM memory ORDER BY id").fetchall()
print(json.dumps({
    "rows": [row["name"] for row in rows],
    "found": recall("timetable", limit=1)[0]["name"],
    "journal": get_db().execute("PRAGMA journal_mode").fetchone()[0],
}))
"""


def test_a_connection_of_the_plugin_is_to_the_one_store(shell: Any, tmp_path: Path) -> None:
    python = shlex.quote(sys.executable)
    made = f'{python} "$HELIX_PLUGIN_ROOT/lib/db/connection.py" && test -s .helix/helix.db && echo 1'
    assert shell(made) == 1
    shell("rm .helix/helix.db* && echo 1")
    script = tmp_path / "rows.py"
    script.write_text(CONNECTED)
    assert shell(f"{python} {shlex.quote(str(script))}") == {
        "rows": ["by-hand", "import-cycle-in-src-auth-py"],
        "found": "by-hand",
        "journal": "wal",
    }
    elsewhere = f"HELIX_DB_PATH={shlex.quote(str(tmp_path / 'other' / 'o.db'))}"
    shell(f'{elsewhere} {python} "$HELIX_PLUGIN_ROOT/lib/db/connection.py" && echo 1')
    assert (tmp_path / "other" / "o.db").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["recall", "auth", "--suppress-names", "[a"], "--suppress-names is not JSON"),
        (["store", "--content", "a, b", "--tags", "3"], "--tags is not a list"),
        (["feedback", "--names", "[]", "--delta", "much"], "--delta is not a number: much"),
        (["neighbors", "a", "--limit", "few"], "--limit is not a number: few"),
        (["health"], "no answer within 120 s"),
    ],
)
def test_the_old_door_answers_what_it_cannot_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    def late(call: list[str], **_: object) -> None:
        raise subprocess.TimeoutExpired(call, 120)

    monkeypatch.setattr(subprocess, "run", late)
    door = runpy.run_path(str(PLUGIN_FOLDER / "lib/memory/core.py"))
    assert door["main"](words) == (1 if words == ["health"] else 2)
    assert json.loads(capsys.readouterr().out)["error"]["message"].startswith(said)


CLAUDE = """#!/usr/bin/env python3
import json, os, pathlib, shutil, sys
home = pathlib.Path(os.environ["HOME"]); words = sys.argv[1:]
with (home / "calls").open("a") as file: file.write(json.dumps(words) + "\\n")
cache = home / ".claude/plugins/cache/helix-tui/helix-tui/0.1.0"
if words[1] == "install": shutil.copytree(os.environ["PLUGIN"], cache)
if words[1] == "uninstall": sys.exit("not installed") if not cache.exists() else (cache / ".orphaned_at").touch()
"""


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Somebody's home, with a stand-in for Claude Code that keeps a copy of the plugin as it does."""
    home = tmp_path / "home"
    home.mkdir()
    claude = tmp_path / "bin" / "claude"
    claude.parent.mkdir()
    claude.write_text(CLAUDE)
    claude.chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PLUGIN", str(PLUGIN_FOLDER))
    monkeypatch.setenv("PATH", f"{claude.parent}:/usr/bin:/bin")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    return home


def calls(home: Path) -> list[list[str]]:
    path = home / "calls"
    return [json.loads(line)[:3] for line in path.read_text().splitlines()] if path.exists() else []


def test_the_plugin_is_installed_by_claude_code_and_taken_out_without_a_rest(cli: Cli, person: Path) -> None:
    dry = cli("install-plugin", "--dry-run")
    assert [line.split()[1:3] for line in dry.out.splitlines()] == [
        ["plugin", "validate"], ["plugin", "marketplace"], ["plugin", "install"]
    ]  # fmt: skip
    assert calls(person) == []
    assert cli("install-plugin", "--json").document["done"] is True
    assert [words[1] for words in calls(person)] == ["validate", "marketplace", "install"]
    copy = person / ".claude/plugins/cache/helix-tui/helix-tui/0.1.0"
    assert (copy / ".python").read_text() == f"{sys.executable}\n"
    done = subprocess.run(
        [copy / "bin" / "helix", "--version"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout.startswith("helix-tui"), "found by the Python that was written down, with nothing on PATH"
    assert cli("install-plugin", "--remove").code == 0
    assert not (person / ".claude/plugins/cache/helix-tui").exists()
    assert cli("install-plugin", "--remove").code == 0, "what is not there is no failure"


def test_the_end_of_a_session_is_answered_before_python_starts(tmp_path: Path) -> None:
    own = tmp_path / "own"
    os.mkfifo(tmp_path / "go")
    steps = ("#!/bin/sh", "read word < go", '{ echo "$*"; cat; } > made', "mv made said")
    own.write_text("\n".join(steps) + "\n")
    own.chmod(0o755)
    event = '{"session_id": "s 1"}'
    env = {"PATH": "/usr/bin:/bin", "HELIX_TUI": str(own)}
    argv = [str(PLUGIN_FOLDER / "bin" / "helix"), "hook", "session-end"]
    done = subprocess.run(argv, input=event, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "{}\n", "")
    (tmp_path / "go").write_text("now\n")
    until = time.monotonic() + 60
    while not (tmp_path / "said").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert (tmp_path / "said").read_text() == f"hook session-end --wait\n{event}"


def test_without_claude_code_the_commands_are_said(cli: Cli, person: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    ran = cli("install-plugin")
    assert ran.code == 127
    assert "claude plugin marketplace add" in ran.out
    assert "--links" in ran.err


def test_the_older_links_come_and_go_and_touch_nothing_of_others(cli: Cli, person: Path) -> None:
    theirs = person / ".claude" / "skills" / "helix-run"
    theirs.mkdir(parents=True)
    before = sorted(person.rglob("*"))
    ran = cli("install-plugin", "--links", "--json")
    assert [Path(path) for path in ran.document["foreign"]] == [theirs]
    link = person / ".agents" / "skills" / "helix-check"
    assert (link / "SKILL.md").is_file()
    assert (link / ".." / ".." / "agents" / "builder.md").is_file(), "a link keeps the way to the plugin's own files"
    assert (person / ".claude" / "skills" / "helix-check").is_symlink()
    launcher = person / ".local" / "bin" / "helix"
    done = subprocess.run([launcher, "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("helix-tui")
    assert "install-plugin" in ran.err
    assert len(cli("install-plugin", "--links", "--json").document["changed"]) == 1, "the launcher alone, again"
    cli("install-plugin", "--links", "--remove")
    assert sorted(person.rglob("*")) == before


def test_read_only_installs_nothing(cli: Cli, person: Path) -> None:
    assert cli("install-plugin", "--read-only").code == 1
    assert cli("install-plugin", "--links", "--read-only").code == 1
    assert list(person.iterdir()) == []
