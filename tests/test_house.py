"""What a process really loads, and rules of the house that no import contract can say (docs/house.md).

Who may know whom is stated in `.importlinter`, which `make lint` checks.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
import textual

from helix_tui.textual_inside import NAMES, missing
from tests.conftest import ProjectFactory
from tests.sources import dotted, nodes_of, syntax_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "helix_tui"

PURE = {"subprocess", "socket", "time", "threading", "watchfiles", "shutil", "sqlite3"}
"""What a widget has no business with: it does no I/O and has no clock."""

LOGS = {"_logged", "logs.program", "logs.logger"}
"""What logs that a program was run."""

MOST_LOOSE = 15
"""Modules that one folder may hold beside its subfolders."""

MOST_LINES = 620
LONGEST_FUNCTION = 80
"""Lines of a module; most have a quarter of that."""

HEAVY = ("textual", "rich", "asyncio", "watchfiles", "sqlite3", "subprocess", "unittest", "ctypes")
"""What a process that prints a queue must not load."""


_PRIVATE = re.compile(r"\bdef (_[a-z]\w*)|\.(_[a-z]\w*)(?:: [^=\n]+)? = |\.(_[a-z]\w*), |, \w+\.(_[a-z]\w*)\b")
"""How a private name is defined or set, alone or beside another one."""


def _sources(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import in a file; ``from x import y`` counts as ``x.y`` too."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: relative import"
            for name in node.names:
                yield node.lineno, f"{node.module}.{name.name}"


def test_widgets_do_no_io_and_have_no_clock() -> None:
    broken = [
        f"{path.relative_to(ROOT)}:{line} imports {imported}"
        for path in _sources("helix_tui/widgets")
        for line, imported in _imports(path)
        if imported.split(".")[0] in PURE or imported.endswith(".now_ns")
    ]
    broken += [
        f"{path.relative_to(ROOT)}:{node.lineno} asks for the time"
        for path in _sources("helix_tui/widgets")
        for node in nodes_of(path)
        if isinstance(node, ast.Attribute)
        and node.attr in {"now", "today", "utcnow"}
        and isinstance(node.value, ast.Name)
        and node.value.id in {"datetime", "date"}
    ]
    assert not broken


def test_no_screen_is_pushed_with_a_callback_for_its_result() -> None:
    """Textual calls it on the screen that pushed; a sheet that opens another one has left by then, and nobody calls."""
    calls = [
        (path, node)
        for path in _sources("helix_tui")
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "push_screen"
    ]
    assert len(calls) > 10
    assert [
        f"{path.relative_to(ROOT)}:{node.lineno}" for path, node in calls if len(node.args) + len(node.keywords) > 1
    ] == []


def test_nobody_imports_by_the_links_at_the_root() -> None:
    broken = [
        f"{path.relative_to(ROOT)}:{line} imports {imported}"
        for path in _sources("helix_tui", "tests", "bench")
        for line, imported in _imports(path)
        if imported.split(".")[0] in {"core", "screens", "widgets", "themes"}
    ]
    assert not broken


@pytest.mark.parametrize("name", ["core", "screens", "widgets", "themes"])
def test_prescribed_names_are_links_into_the_package(name: str) -> None:
    link = ROOT / name
    assert link.is_symlink()
    assert os.readlink(link) == f"helix_tui/{name}"
    if (ROOT / ".git").exists():
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-s", name],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
        assert listed.stdout.startswith("120000 ")


def _loaded(*words: str) -> set[str]:
    """The modules that a process loads, by its own account."""
    done = subprocess.run([sys.executable, "-X", "importtime", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


def _heavy(modules: set[str], names: tuple[str, ...]) -> set[str]:
    return {module for module in modules if module.split(".")[0] in names}


def test_no_package_imports_its_own_modules() -> None:
    """One thread loads the package and waits for a module, another loads that module and waits for its package.

    Python ends such a wait by handing out a module that is half loaded, and one of the imports fails.
    """
    broken = [
        f"{path.relative_to(ROOT)}:{line} imports {imported}"
        for path in _sources(
            "helix_tui/core", "helix_tui/cli", "helix_tui/screens", "helix_tui/widgets", "helix_tui/themes"
        )
        if path.name == "__init__.py"
        for line, imported in _imports(path)
        if imported.startswith(f"{_module(path)}.")
    ]
    assert not broken


def test_core_loads_no_screen_library() -> None:
    modules = [_module(path) for path in _sources("helix_tui/core") if path.name != "__main__.py"]
    loaded = _loaded("-c", "import " + ", ".join(modules))
    assert "helix_tui.core.beads.readiness" in loaded
    assert not _heavy(loaded, ("textual", "rich"))


def test_queue_as_json_loads_only_what_it_needs(project: ProjectFactory) -> None:
    root = project(['{"id": "demo-1", "title": "t"}'])
    loaded = _loaded("-m", "helix_tui", "queue", "--json", "-C", str(root))
    assert "helix_tui.core.beads.tracker" in loaded
    assert not _heavy(loaded, HEAVY)


def test_what_the_console_opens_on_and_imports_ahead_does_not_load_the_memory() -> None:
    loaded = _loaded("-c", "from helix_tui import app, screens; [app.import_module(name) for name in screens.AHEAD]")
    assert "helix_tui.widgets.text.bead" in loaded
    assert not _heavy(loaded, ("numpy", "sqlite_utils", "snowballstemmer", "tokenizers"))


def test_the_first_frame_waits_for_nothing_that_it_does_not_show() -> None:
    """What changes a bead, tells what waits for a person or asks for a text is imported once the queue is shown."""
    loaded = _loaded("-c", "import helix_tui.app, helix_tui.cli.app_factory, helix_tui.screens.queue.queue_screen")
    later = {"watch", "editing.requests", "editing.links", "editing.preview", "needs.screen"}
    decides = {f"helix_tui.core.supervision.decide.{name}" for name in ("monitor", "check", "need_view")}
    assert "helix_tui.screens.editing.keys" in loaded
    assert not loaded & (decides | {f"helix_tui.screens.{name}" for name in later})
    assert not loaded & {"helix_tui.widgets.form", "textual.widgets._text_area"}


def test_every_program_that_is_run_is_logged() -> None:
    """`core.ground.process` logs what it runs; whoever runs a program another way logs it the same way.

    What the plugin brings runs in a Python that need not have helix-tui, and cannot; whether the log may be in the
    project is what git is asked of its index.
    """
    silent = []
    for path in (path for path in _sources("helix_tui") if PACKAGE / "plugin" not in path.parents):
        for function in nodes_of(path):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                called = {dotted(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
                starts = called & {"subprocess.run", "start"} and function.name not in ("start", "_is_in_index")
                if starts and not called & LOGS:
                    silent.append(f"{path.relative_to(PACKAGE)}: {function.name}")
    assert not silent


def test_a_package_can_be_overlooked_and_a_module_read() -> None:
    packages = {path.parent for path in _sources("helix_tui", "helix_ddx")}
    loose = {folder: len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) for folder in packages}
    assert {str(folder.relative_to(ROOT)): count for folder, count in loose.items() if count > MOST_LOOSE} == {}
    longest = {path: path.read_bytes().count(b"\n") for path in _sources("helix_tui", "helix_ddx")}
    assert {str(path.relative_to(ROOT)): lines for path, lines in longest.items() if lines > MOST_LINES} == {}
    functions = {
        f"{path.relative_to(ROOT)}: {node.name}": (node.end_lineno or 0) - node.lineno + 1
        for path in longest
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: lines for name, lines in functions.items() if lines > LONGEST_FUNCTION} == {}


def test_the_name_of_a_class_stands_for_one_thing() -> None:
    """Whoever looks a name up finds one class; messages that belong to a widget stand inside it, and may agree."""
    found: dict[str, list[str]] = {}
    for path in _sources("helix_tui", "helix_ddx"):
        for node in syntax_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


def test_what_make_installs_is_pinned_by_hash_and_names_no_host() -> None:
    pins = (ROOT / ".ci" / "constraints.txt").read_text()
    assert "://" not in pins
    names = {re.sub(r"[-_.]+", "-", name).lower() for name in re.findall(r"(?m)^([\w.-]+)==", pins)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *project["project"]["optional-dependencies"]["dev"]]
    wanted += project["build-system"]["requires"]
    assert {re.match(r"[\w.-]+", each)[0].lower() for each in wanted} <= names  # type: ignore[index]
    assert len(re.findall(r"(?m)^[\w.-]+==[^\n]*\\\n    --hash=sha256:", pins)) == len(names)


def test_private_names_of_textual_stand_in_one_module() -> None:
    """An import, an access and an override of one are each a debt: it is paid in `textual_inside` or not at all."""
    theirs = _private_names(*Path(textual.__file__).parent.rglob("*.py"))
    theirs -= _private_names(*_sources("helix_tui"))
    drawing = [path for path in _sources("helix_tui") if not path.is_relative_to(PACKAGE / "core")]
    used = [
        f"{path.name}:{node.lineno}: {ast.unparse(node)}"
        for path in drawing
        for node in nodes_of(path)
        if (isinstance(node, ast.Attribute) and node.attr in theirs)
        or (isinstance(node, ast.ImportFrom) and re.match(r"(textual|rich)\b.*\._", node.module or ""))
    ]
    assert [use for use in used if not use.startswith(("textual_inside.py:", "program.py:"))] == [], "program.py: of os"
    overridden = {
        f"{kind.__qualname__}.{name}"
        for path in drawing
        if not path.is_relative_to(PACKAGE / "cli")
        for kind in vars(import_module(_module(path))).values()
        if isinstance(kind, type) and kind.__module__ == _module(path)
        for name, value in vars(kind).items()
        if re.match(r"_[a-z]", name) and (callable(value) or isinstance(value, property))
        for base in kind.__mro__[1:]
        if base.__module__.startswith("textual.") and name in vars(base)
    }
    assert {name for name in overridden if not name.startswith("OpenedApp.")} == set()


def _private_names(*paths: Path) -> set[str]:
    """The names with one underscore before them that files define as functions or set on objects."""
    texts = (path.read_text("utf-8") for path in paths)
    return {name for text in texts for found in _PRIVATE.findall(text) for name in found if name}


def test_each_private_name_is_there_and_says_when_it_goes() -> None:
    assert len(NAMES) <= 6
    assert missing() == []
    assert all(name.without and name.goes for name in NAMES)
