"""Nothing that a repository brings is started: no module, no program beside it, nothing that git's settings name."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helix_tui.core.ask.corpus.git import Git
from helix_tui.core.ddx.attempts.evidence import git_diff
from helix_tui.core.ground.git import GitFailed, read_git
from helix_tui.core.ground.process import run
from helix_tui.core.ground.processes.programs import NEUTRAL, program, python_argv
from helix_tui.core.ground.processes.start import start
from tests.hostile.kinds.git_folders import PROGRAMS
from tests.hostile.test_kinds import Stranger, stranger
from tests.programs import write_program
from tests.sources import dotted, nodes_of

__all__ = ["stranger"]  # a fixture

ROOT = Path(__file__).parents[2]
DOOR = "helix_tui/core/ground/processes/start.py"
FINDER = "helix_tui/core/ground/processes/programs.py"
# a program of its own, in a Python that need not have helix-tui; it starts one program, by its absolute path
APART = "helix_tui/plugin/lib/memory/core.py"
STARTERS = ("os.system", "os.popen", "os.posix_spawn", "os.exec", "os.spawn", "asyncio.create_sub", "shutil.which")


def sources() -> Iterator[tuple[str, tuple[ast.AST, ...]]]:
    for package in ("helix_tui", "helix_ddx"):
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), nodes_of(path)


def test_every_program_is_started_by_the_door() -> None:
    """No other module imports subprocess or starts a program by another way; nobody uses a shell."""
    wrong = []
    for name, nodes in sources():
        for node in nodes:
            if isinstance(node, ast.keyword) and node.arg == "shell":
                wrong.append(f"{name}:{node.value.lineno} shell")
            if name in (DOOR, APART):
                continue
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if {"subprocess", "multiprocessing", "pty"} & set(modules):
                wrong.append(f"{name}: {modules}")
            if isinstance(node, ast.Attribute) and dotted(node).startswith(STARTERS):
                wrong.append(f"{name}:{node.lineno} {dotted(node)}")
    assert not wrong


def test_every_python_of_ours_is_named_in_one_place() -> None:
    """`sys.executable` begins no command outside `python_argv`, which keeps the current folder off the path."""
    wrong = []
    for name, nodes in sources():
        for node in nodes:
            words = node.elts if isinstance(node, ast.List | ast.Tuple) else []
            if name != FINDER and words and dotted(words[0]) == "sys.executable":
                wrong.append(f"{name}: {ast.unparse(node)}")
    assert not wrong
    assert python_argv("helix_ddx")[1:3] == ("-P", "-E")
    assert os.path.isabs(python_argv("helix_ddx")[0])


def test_every_git_goes_through_its_door() -> None:
    """Only `ground.git` starts one by name."""
    wrong = []
    for name, nodes in sources():
        for call in (node for node in nodes if isinstance(node, ast.Call) and node.args):
            words = call.args[0].elts if isinstance(call.args[0], ast.Tuple | ast.List) else []
            if words and dotted(call.func).endswith(("run", "start")) and ast.unparse(words[0]) == "'git'":
                wrong.append(f"{name}:{call.lineno}")
    assert wrong == []


@pytest.mark.long
def test_every_git_of_what_is_looked_at_is_held(
    stranger: Stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On every surface, as a git in front of the real one sees it."""
    real, calls = shutil.which("git"), tmp_path / "calls"
    calls.mkdir()
    program = (
        "import json, os, sys, tempfile\n"
        f"file = tempfile.NamedTemporaryFile('w', dir={str(calls)!r}, delete=False)\n"
        "json.dump([sys.argv[1:], os.environ.get('GIT_ALLOW_PROTOCOL')], file)\n"
        f"file.close()\nos.execv({real!r}, ['git', *sys.argv[1:]])\n"
    )
    write_program(tmp_path / "front" / "git", program)
    monkeypatch.setenv("PATH", f"{tmp_path / 'front'}{os.pathsep}{os.environ['PATH']}")
    stranger.use(changing=False)
    seen = [json.loads(path.read_text()) for path in calls.iterdir()]
    asked = [(words, protocols) for words, protocols in seen if words != ["--version"]]
    assert len(asked) > 20
    for words, protocols in asked:
        assert {"core.fsmonitor=false", f"core.hooksPath={os.devnull}", "protocol.allow=never"} <= set(words), words
        assert protocols == "none"


def executable(path: Path, mark: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho ran >> '{mark}'\nexit 0\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin"])
def test_a_program_is_never_found_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    for folder in (tmp_path, tmp_path / "bin"):
        executable(folder / "lefthook-x", tmp_path / "ran")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{entry}{os.pathsep}/usr/bin")
    assert program("lefthook-x") is None
    for words in (["lefthook-x"], ["./lefthook-x"], ["bin/lefthook-x"]):
        with pytest.raises(FileNotFoundError):
            start(words)
    assert program(str(tmp_path / "lefthook-x")) == str(tmp_path / "lefthook-x")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("module", ["helix_ddx", "helix_tui.core.ask.index.reading"])
def test_a_module_of_the_clone_is_not_ours(tmp_path: Path, module: str) -> None:
    """A clone brings packages of our name and of names that ours import; PYTHONPATH leads there too."""
    for name in ("helix_tui", "helix_ddx", "msgspec", "numpy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    (tmp_path / "re.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    env = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}", "PYTHONHOME": str(tmp_path)}
    for folder in (tmp_path, NEUTRAL):
        done = run((*python_argv(module), "--help"), cwd=folder, env=env, timeout=60)
        assert (done.rc, done.timed_out) == (0, False), done.err
    assert not (tmp_path / "ran").exists()
    # the clone is what would have run
    assert run((sys.executable, "-m", module, "--help"), cwd=tmp_path).rc is not None
    assert (tmp_path / "ran").exists()


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=T", "-c", "user.email=t@localhost", "-C", str(folder), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()


# with a process of its own, git would not start the filter's clean and smudge
NAMED = {name: value for name, value in PROGRAMS.items() if name != "filter.evil.process"} | {
    "pager.diff": "{program}",
    "filter.evil.smudge": "{program}",
    "filter.evil.required": "true",
    "filter.a=b.clean": "{program}",
    "filter.long.process": "{program}",
    "log.showSignature": "true",
    "sequence.editor": "{program}",
    "status.submoduleSummary": "true",
    "diff.submodule": "diff",
    "include.path": "included",
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
}
"""What a `.git/config` that an archive brings may name."""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A repository whose configuration names a program at every place; files that every read would pass through it."""
    root = tmp_path / "archive"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    names = ("a.txt", "b.evil", "c.long", "d.inc", "e.eq")
    for name in names:
        (root / name).write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    git(root, "checkout", "-qb", "side")
    (root / "b.evil").write_text("side\n")
    git(root, "commit", "-qam", "side")
    git(root, "checkout", "-q", "main")
    for name in names:
        (root / name).write_text("two\n")
    git(root, "commit", "-qam", "second")
    mark = tmp_path / "ran"
    evil = executable(tmp_path / "outside" / "evil", mark)
    for hook in ("post-index-change", "pre-commit", "reference-transaction", "post-checkout"):
        executable(tmp_path / "hooks" / hook, mark)
        executable(root / ".git" / "hooks" / hook, mark)
    (root / ".git" / "included").write_text(f'[filter "inc"]\n\tclean = {evil}\n[core]\n\tfsmonitor = {evil}\n')
    attributes = "* diff=evil merge=evil\n*.evil filter=evil\n*.long filter=long\n*.inc filter=inc\n*.eq filter=a=b\n"
    (root / ".git" / "info" / "attributes").write_text(attributes)
    for name, value in NAMED.items():
        git(root, "config", name, value.format(program=evil, folder=tmp_path / "hooks"))
    for name in names:  # of the same size: git must read them through the filters
        (root / name).write_text("six\n")
    mark.unlink(missing_ok=True)
    return root


READS = (
    ("status", "--porcelain"), ("diff",), ("diff", "HEAD~1", "HEAD"), ("log", "-p", "-2"), ("show", "HEAD"),
    ("ls-files", "-z", "--modified"), ("blame", "a.txt"), ("blame", "b.evil"), ("grep", "-n", "six"),
    ("diff", "--cached", "--stat"), ("cat-file", "-p", "HEAD:b.evil"), ("rev-list", "--all"), ("diff-files", "-p"),
    ("diff-index", "-p", "HEAD"), ("merge-tree", "--write-tree", "main", "side"), ("check-ignore", "a.txt"),
    ("log", "--format=%G? %h"), ("stash", "list"),
)  # fmt: skip


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_reading_starts_nothing_that_the_configuration_names(hostile: Path, words: tuple[str, ...]) -> None:
    read_git(hostile, *words, check=False)
    assert not (hostile.parent / "ran").exists()


def test_reading_is_right_beside_such_a_configuration(hostile: Path) -> None:
    assert len(read_git(hostile, "diff", "--name-only").out.split()) == 5
    assert not [file for file in Git(hostile).tracked() if file.oid]
    assert "+two" in git_diff(hostile, git(hostile, "rev-parse", "HEAD~1"), git(hostile, "rev-parse", "HEAD")).text
    # the built-in merge takes the place of the driver: both sides changed b.evil
    merged = read_git(hostile, "merge-tree", "--write-tree", "main", "side", check=False)
    assert (merged.rc, "CONFLICT" in merged.out) == (1, True)
    assert not (hostile.parent / "ran").exists()


def test_the_configuration_would_run_it(hostile: Path) -> None:
    """That the repository above is one that does harm."""
    subprocess.run(["git", "-C", str(hostile), "status"], capture_output=True, timeout=30)
    assert (hostile.parent / "ran").exists()


def test_a_missing_object_is_fetched_from_nowhere(tmp_path: Path) -> None:
    """A partial clone asks its promisor remote, whose upload-pack the configuration names; git 2.39 does so too."""
    root, mark = tmp_path / "archive", tmp_path / "ran"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "a.txt").write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    blob = git(root, "rev-parse", "HEAD:a.txt")
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    evil = executable(tmp_path / "evil", mark)
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": str(root),
        "remote.origin.promisor": "true",
        "remote.origin.uploadpack": str(evil),
        "protocol.file.allow": "always",
    }.items():
        git(root, "config", name, value)
    for words in (("cat-file", "-p", blob), ("log", "-p"), ("show", "HEAD")):
        with pytest.raises(GitFailed):
            read_git(root, *words)
    assert not mark.exists()
    subprocess.run(["git", "-C", str(root), "cat-file", "-p", blob], capture_output=True, timeout=30)
    assert mark.exists(), "by hand git asks the remote"


def test_a_submodule_is_not_asked_by_its_own_configuration(tmp_path: Path) -> None:
    root, mark = tmp_path / "archive", tmp_path / "ran"
    for folder in (root, root / "sub"):
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        (folder / "a.txt").write_text("one\n")
        git(folder, "add", "a.txt")
        git(folder, "commit", "-qm", "first")
    git(root, "add", "sub")
    git(root, "commit", "-qm", "with a repository inside")
    evil = executable(tmp_path / "evil", mark)
    git(root / "sub", "config", "filter.other.clean", str(evil))
    (root / "sub" / ".git" / "info" / "attributes").write_text("* filter=other\n")
    (root / "sub" / "a.txt").write_text("two\n")
    for words in (("status",), ("diff",), ("diff", "HEAD"), ("diff-files", "-p")):
        read_git(root, *words, check=False)
    assert not mark.exists()
    subprocess.run(["git", "-C", str(root), "status"], capture_output=True, timeout=30)
    assert mark.exists(), "by hand git asks the submodule"
