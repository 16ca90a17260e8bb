"""The one door to files: what leads out of a repository is neither read nor written, whatever leads there."""

from __future__ import annotations

import inspect
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helix_tui.core.ground import files
from helix_tui.core.ground.files import (
    Folder,
    RefusedFileError,
    add_root,
    below,
    entries,
    files_below,
    is_folder,
    is_locked,
    leads_down,
    names_in,
    open_file,
    path_part,
    read_bytes,
    read_end,
    stamp_of,
    status_of,
    text_of,
    walk,
)

SECRET = "the person's own secret"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "clone"
    folder.mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret").write_text(SECRET)
    (folder / "AGENTS.md").write_text("how to work here")
    (folder / "docs" / "deep").mkdir(parents=True)
    (folder / "docs" / "deep" / "a.md").write_text("deep")
    add_root(folder)
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home" / "secret"
    assert (tmp_path / "home" / "secret").read_text() == SECRET


def test_a_file_is_read_and_known_by_its_stamp(root: Path) -> None:
    path = root / "docs" / "deep" / "a.md"
    assert read_bytes(path) == b"deep"
    assert read_bytes(path, 2) == b"de"
    assert text_of(path) == "deep"
    assert read_end(path, 2) == ""
    status = path.stat()
    assert stamp_of(path) == (status.st_mtime_ns, 4, status.st_ino)
    assert (read_bytes(root / "none"), stamp_of(root / "none"), text_of(root / "none")) == (None, None, "")
    assert read_bytes(f"{path}\0") is None


def test_a_link_to_a_file_of_the_work_tree_is_read_as_that_file(root: Path, tmp_path: Path) -> None:
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    (root / "docs" / "up.md").symlink_to("../CLAUDE.md")
    (root / "docs" / "absolute.md").symlink_to(root / "docs" / "up.md")
    (root / "folder").symlink_to("docs/deep")
    named = tmp_path / "by-a-link"
    named.symlink_to(root)
    add_root(named)
    for top in (root, named):
        for path in ("CLAUDE.md", "docs/up.md", "docs/absolute.md"):
            assert text_of(top / path) == "how to work here", path
        assert text_of(top / "folder" / "a.md") == "deep"
        assert names_in(top / "folder") == ["a.md"]
    # as an editor names it, by the link to the repository
    (root / "named.md").symlink_to(named / "AGENTS.md")
    assert text_of(root / "named.md") == "how to work here"


def _final_link(root: Path, secret: Path) -> Path:
    (root / "x").symlink_to(secret)
    return root / "x"


def _relative_link(root: Path, secret: Path) -> Path:
    (root / "docs" / "x").symlink_to("../../home/secret")
    return root / "docs" / "x"


def _folder_link(root: Path, secret: Path) -> Path:
    (root / "x").symlink_to(secret.parent)
    return root / "x" / "secret"


def _chain(root: Path, secret: Path) -> Path:
    (root / "z").symlink_to(secret)
    (root / "y").symlink_to("z")
    (root / "x").symlink_to("y")
    return root / "x"


def _out_and_in_again(root: Path, secret: Path) -> Path:
    (secret.parent / "back").symlink_to(root / "AGENTS.md")
    (root / "x").symlink_to(secret.parent / "back")
    return root / "x"


def _loop(root: Path, secret: Path) -> Path:
    (root / "x").symlink_to("y")
    (root / "y").symlink_to("x")
    return root / "x"


def _long_chain(root: Path, secret: Path) -> Path:
    (root / "0").symlink_to("AGENTS.md")
    for number in range(1, 60):
        (root / f"{number}").symlink_to(f"{number - 1}")
    return root / "59"


def _git(root: Path, secret: Path) -> Path:
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(SECRET)
    (root / "x").symlink_to(".git/config")
    return root / "x"


def _pipe(root: Path, secret: Path) -> Path:
    os.mkfifo(root / "x")
    return root / "x"


def _socket(root: Path, secret: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(root, os.O_RDONLY)
        listener.bind(f"/proc/self/fd/{here}/x" if os.path.isdir("/proc/self/fd") else str(root / "x"))
        os.close(here)
    return root / "x"


def _device(root: Path, secret: Path) -> Path:
    (root / "x").symlink_to("/dev/zero")
    return root / "x"


def _directory(root: Path, secret: Path) -> Path:
    return root / "docs"


HOSTILE = [
    _final_link,
    _relative_link,
    _folder_link,
    _chain,
    _out_and_in_again,
    _loop,
    _long_chain,
    _git,
    _pipe,
    _socket,
    _device,
    _directory,
]


@pytest.mark.parametrize("make", HOSTILE)
def test_what_is_no_file_of_the_work_tree_is_absent(
    make: Callable[[Path, Path], Path], root: Path, secret: Path
) -> None:
    path = make(root, secret)
    assert read_bytes(path) is None
    assert (text_of(path), read_end(path, 10), stamp_of(path), is_locked(path)) == ("", "", None, None)
    with pytest.raises(OSError, match=r".") as raised:
        open_file(path)
    assert raised.value.strerror


def test_the_person_s_own_files_are_read_through_links_but_never_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    (tmp_path / "b").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    assert text_of(tmp_path / "b") == "mine"
    assert read_bytes(tmp_path / "pipe") is None
    assert read_bytes("/dev/zero") is None


def test_a_folder_that_leads_outside_lists_as_empty(root: Path, secret: Path) -> None:
    (root / "out").symlink_to(secret.parent)
    assert names_in(root / "out") == []
    assert Folder(root / "out").names() == ()
    assert not is_folder(root / "out")
    assert list(walk(root / "out")) == []
    with pytest.raises(RefusedFileError, match="outside the repository"):
        entries(root / "out")


def test_a_walk_goes_through_no_link_and_where_it_is_let(root: Path, secret: Path) -> None:
    (root / "out").symlink_to(secret.parent)
    (root / "in").symlink_to("docs")
    (root / "here").symlink_to(".")
    (root / "leak.md").symlink_to(secret)
    assert [path.relative_to(root).as_posix() for path, _ in files_below(root)] == ["AGENTS.md", "docs/deep/a.md"]
    seen = []
    for path, folders, _ in walk(root):
        seen.append(os.path.relpath(path, root))
        folders[:] = [name for name in folders if name != "deep"]
    assert seen == [".", "docs"]


def test_a_very_deep_tree_is_walked(root: Path) -> None:
    deep = root.joinpath(*["d"] * 300)
    deep.mkdir(parents=True)
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        assert sum(1 for _ in walk(root)) == 303
        files._folders.clear()
        assert read_bytes(deep / "none") is None
    finally:
        sys.setrecursionlimit(before)


def test_a_folder_replaced_by_a_link_after_it_was_proved_is_not_followed(root: Path, secret: Path) -> None:
    path = root / "docs" / "secret"
    path.write_text("ours")
    assert text_of(path) == "ours"
    (root / "docs").rename(root / "moved")
    (root / "docs").symlink_to(secret.parent)
    assert text_of(path) == ""
    assert stamp_of(path) is None
    (root / "docs").unlink()
    (root / "docs").mkdir()
    path.write_text("new")
    assert text_of(path) == "new"


def test_while_a_folder_changes_into_a_link_and_back_nothing_from_outside_is_read(root: Path, secret: Path) -> None:
    path = root / "docs" / "secret"
    path.write_text("ours")
    over = threading.Event()

    def swap() -> None:
        for _ in range(400):
            (root / "docs").rename(root / "aside")
            (root / "docs").symlink_to(secret.parent)
            (root / "docs").unlink()
            (root / "aside").rename(root / "docs")
        over.set()

    other = threading.Thread(target=swap)
    other.start()
    texts = set()
    while not over.is_set():
        texts.add(text_of(path))
    other.join()
    assert texts <= {"ours", ""}


def test_many_folders_do_not_hold_many_descriptors(root: Path) -> None:
    for number in range(200):
        (root / f"{number}").mkdir()
        (root / f"{number}" / "f").write_text("x")
        assert read_bytes(root / f"{number}" / "f") == b"x"
    assert len(files._folders) <= files._MAX_FOLDERS


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../x", "a/../../x", "a/..", "..", "a\0b"])
def test_a_name_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_text(SECRET)
    root = tmp_path / "root"
    root.mkdir()
    assert not leads_down(name)
    assert read_bytes(below(root, name)) is None
    assert status_of(below(root, name)) is None
    assert names_in(below(root, name)) == []
    with pytest.raises((RefusedFileError, ValueError)):
        open_file(below(root, name))
    assert leads_down("a/..b/c")
    assert below(root, "a/..b/c") == root / "a/..b/c"


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "../x", "a\nb", "a\0b", "a\x1b[1m", "é" * 101])
def test_an_id_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(RefusedFileError, match="cannot be the name of a file"):
        path_part(name)
    for good in ("ddx-1a2b", "hx-über", "20260821T220000-abcdef", "-x"):
        assert path_part(good) == good


def test_a_hard_link_is_read(root: Path) -> None:
    os.link(root / "AGENTS.md", root / "other.md")
    assert text_of(root / "other.md") == "how to work here"
    assert stat.S_ISREG((root / "other.md").stat().st_mode)
