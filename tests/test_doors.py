"""Nobody goes round the one door to files: `core` reads and writes through `ground.files` and `ground.writes`."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.sources import nodes_of

CORE = Path(__file__).resolve().parents[1] / "helix_tui" / "core"

DOOR = {CORE / "ground" / "files.py", CORE / "ground" / "writes.py"}

OF_OS = {
    *(
        "open",
        "stat",
        "lstat",
        "listdir",
        "scandir",
        "walk",
        "fwalk",
        "mkdir",
        "makedirs",
        "unlink",
        "remove",
        "rename",
    ),
    *("replace", "rmdir", "link", "symlink", "readlink", "truncate", "chmod", "mkfifo"),
}
OF_OS_PATH = {"exists", "lexists", "isfile", "isdir", "islink", "getsize", "getmtime"}
OF_PATHS = {
    *("read_text", "read_bytes", "write_text", "write_bytes", "iterdir", "glob", "rglob", "mkdir", "unlink", "rmdir"),
    *("stat", "lstat", "exists", "is_file", "is_dir", "is_symlink", "touch", "hardlink_to", "symlink_to", "readlink"),
}
OF_OTHERS = {"tempfile", "shutil", "glob", "zipfile", "tarfile"}

ALLOWED = {
    ("ask/answer/model.py", "tempfile.TemporaryDirectory"): "a folder of our own, for the prompt",
    ("ask/answer/model.py", "file.write_text"): "in that folder",
    ("ask/answer/model.py", "file.read_bytes"): "in that folder",
    ("ask/index/database.py", "*"): "what SQLite opens by name, proved before (docs/security.md)",
    ("beads/record.py", "tempfile.TemporaryFile"): "memory on disk, without a name",
    ("ddx/client.py", "os.path.exists"): "the ddx that the person chose",
    ("ddx/trial.py", "*"): "a throw-away project in a folder of our own",
    ("editing/execute/trust.py", "path.is_file"): "a hook, which git and ddx run through a link too",
    ("editing/execute/trust.py", "path.stat"): "that hook's number, where its content is not read",
    ("ground/log.py", "os.path.isdir"): "a folder that `own_folders` judged",
    ("ground/merge_trial.py", "*"): "a repository of our own in a folder of our own",
    ("ground/trust/own_folders.py", "*"): "looks whether a folder of ours is a link, before anything in it is opened",
    ("ground/trust/person.py", "*"): "the person's own state folder",
    ("ground/process.py", "*"): "sizes of output files of our own, and what a program reads",
    ("ground/processes/programs.py", "os.path.isfile"): "the program to start",
    ("ground/project.py", "*"): "finds the folders that become roots",
    ("ground/sqlite.py", "*"): "what SQLite opens by name, proved before (docs/security.md)",
    ("ground/processes/threads.py", "open"): "the kernel's records of processes",
    ("ground/trust/work_tree.py", "*"): "proves git's folders before they become roots",
    ("memory/store/database.py", "*"): "what SQLite opens by name, proved before (docs/security.md)",
    ("supervision/stages/landing.py", "shutil.rmtree"): "the copies in that folder",
    ("supervision/stages/landing.py", "tempfile.mkdtemp"): "a folder of our own, in which conflicts are resolved",
    ("supervision/stages/table.py", "*"): "prompts of the package",
}
"""Calls that open files otherwise, by module and call: why they may."""


def _name(call: ast.Call) -> str:
    """The call as written, if it is one of those that reach files; else ""."""
    function = call.func
    if isinstance(function, ast.Name):
        # a descriptor that the door gave may be wrapped
        given = (
            isinstance(call.args[0], ast.Call) and ast.unparse(call.args[0].func) == "open_own" if call.args else False
        )
        return function.id if function.id == "open" and not given else ""
    if not isinstance(function, ast.Attribute):
        return ""
    written, receiver = ast.unparse(function), ast.unparse(function.value)
    reached = (
        (receiver == "os" and function.attr in OF_OS)
        or (receiver == "os.path" and function.attr in OF_OS_PATH)
        or receiver in OF_OTHERS
        or (receiver not in ("os", "os.path") and function.attr in OF_PATHS)
        # `gate.open()` takes nothing
        or (function.attr == "open" and bool(call.args))
    )
    return written if reached else ""


def _calls(path: Path) -> set[str]:
    calls = (node for node in nodes_of(path) if isinstance(node, ast.Call))
    return {name for call in calls if (name := _name(call))}


def test_core_reaches_files_through_the_door_only() -> None:
    reached = {
        (path.relative_to(CORE).as_posix(), name)
        for path in CORE.rglob("*.py")
        if path not in DOOR
        for name in _calls(path)
    }
    assert {(module, name) for module, name in reached if not {(module, name), (module, "*")} & ALLOWED.keys()} == set()
    used = reached | {(module, "*") for module, _ in reached}
    assert {entry for entry in ALLOWED if entry not in used} == set(), "allowed, and no longer there"


def test_each_way_round_the_door_is_seen(tmp_path: Path) -> None:
    ways = [
        *(
            "open(path)",
            "path.open('rb')",
            "path.read_text()",
            "os.open(path, 0)",
            "os.path.exists(path)",
            "os.stat(path)",
        ),
        *("path.stat()", "folder.iterdir()", "folder.glob('*')", "os.scandir(folder)", "shutil.copy(path, path)"),
        *("path.mkdir()", "os.replace(path, path)", "(root / name).unlink()", "tempfile.mkdtemp()", "path.is_dir()"),
    ]
    for number, way in enumerate(ways):
        path = tmp_path / f"{number}.py"
        path.write_text(f"{way}\n")
        assert _calls(path), way
    through = tmp_path / "through.py"
    through.write_text(
        "read_bytes(path)\nopen(open_own(path, 0), 'wb')\ngate.open()\nis_folder(path)\nopen_file(path)\n"
    )
    assert _calls(through) == set()
