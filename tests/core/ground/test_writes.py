"""What is written below a repository follows no link, and is for this user only."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helix_tui.core.ground.files import RefusedFileError, add_root, locked_folder
from helix_tui.core.ground.writes import (
    DATABASE,
    make_folder,
    open_own,
    prove,
    remove,
    rename,
    replace_file,
)

SECRET = "the person's own secret"
APPEND = os.O_WRONLY | os.O_APPEND


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "clone"
    (folder / ".helix").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "secret").write_text(SECRET)
    add_root(folder)
    yield folder
    assert (tmp_path / "home" / "secret").read_text() == SECRET
    assert os.listdir(tmp_path / "home") == ["secret"]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def append(path: Path, data: bytes) -> None:
    descriptor = open_own(path, APPEND)
    os.write(descriptor, data)
    os.close(descriptor)


def test_what_is_ours_is_for_this_user_only_whatever_the_umask(root: Path) -> None:
    before = os.umask(0)
    try:
        replace_file(root / ".helix" / "ask" / "one", b"1")
        append(root / ".helix-logs" / "two", b"2")
        (root / ".helix" / "old").write_bytes(b"o")
        append(root / ".helix" / "old", b"3")
        (root / ".helix" / "older").write_bytes(b"o")
        replace_file(root / ".helix" / "older", b"4")
    finally:
        os.umask(before)
    assert [mode(root / name) for name in (".helix", ".helix/ask", ".helix-logs")] == [0o700] * 3
    files = (".helix/ask/one", ".helix-logs/two", ".helix/old", ".helix/older")
    assert [(root / name).read_bytes() for name in files] == [b"1", b"2", b"o3", b"4"]
    assert [mode(root / name) for name in files] == [0o600] * 4


def test_a_file_is_written_again_and_renamed_and_removed(root: Path) -> None:
    path = root / ".helix" / "state.json"
    replace_file(path, b"1")
    replace_file(path, b"2", 0o755)
    assert (path.read_bytes(), mode(path)) == (b"2", 0o755)
    rename(path, "state.1")
    assert (root / ".helix" / "state.1").read_bytes() == b"2"
    remove(root / ".helix" / "state.1")
    remove(root / ".helix" / "state.1")
    assert not (root / ".helix" / "state.1").exists()
    assert sorted(os.listdir(root / ".helix")) == [".gitignore"]


def test_an_own_file_is_emptied_only_when_it_is_proved(root: Path) -> None:
    path = root / ".helix" / "log"
    path.write_bytes(b"old")
    os.close(open_own(path, os.O_WRONLY | os.O_TRUNC))
    assert path.read_bytes() == b""


def _link(root: Path) -> Path:
    (root / ".helix" / "x").symlink_to(root.parent / "home" / "secret")
    return root / ".helix" / "x"


def _dangling_link(root: Path) -> Path:
    (root / ".helix" / "x").symlink_to(root.parent / "home" / "new")
    return root / ".helix" / "x"


def _inner_link(root: Path) -> Path:
    (root / "README.md").write_text("theirs")
    (root / ".helix" / "x").symlink_to("../README.md")
    return root / ".helix" / "x"


def _hard_link(root: Path) -> Path:
    os.link(root.parent / "home" / "secret", root / ".helix" / "x")
    return root / ".helix" / "x"


def _pipe(root: Path) -> Path:
    os.mkfifo(root / ".helix" / "x")
    return root / ".helix" / "x"


def _folder(root: Path) -> Path:
    (root / ".helix" / "x").mkdir()
    return root / ".helix" / "x"


@pytest.mark.parametrize("make", [_link, _dangling_link, _inner_link, _hard_link, _pipe, _folder])
@pytest.mark.parametrize("flags", [APPEND, os.O_RDWR, os.O_WRONLY | os.O_TRUNC])
def test_nothing_else_is_written_in_place(make: Callable[[Path], Path], flags: int, root: Path) -> None:
    path = make(root)
    with pytest.raises(OSError, match=r".") as raised:
        open_own(path, flags)
    assert raised.value.strerror
    with pytest.raises(RefusedFileError):
        prove(path)
    assert not (root / "README.md").exists() or (root / "README.md").read_text() == "theirs"


@pytest.mark.parametrize("make", [_link, _dangling_link, _inner_link, _hard_link, _pipe])
def test_a_new_file_takes_the_place_of_what_leads_elsewhere(make: Callable[[Path], Path], root: Path) -> None:
    path = make(root)
    replace_file(path, b"ours")
    assert not path.is_symlink()
    assert path.read_bytes() == b"ours"
    assert path.stat().st_nlink == 1
    assert not (root / "README.md").exists() or (root / "README.md").read_text() == "theirs"


@pytest.mark.parametrize("target", ["../home", "data"])
def test_a_folder_of_ours_that_is_a_link_is_not_written_in(target: str, root: Path) -> None:
    (root / ".helix").rmdir()
    (root / "data").mkdir()
    (root / ".helix").symlink_to(target)
    for write in (
        lambda: replace_file(root / ".helix" / "x", b"1"),
        lambda: replace_file(root / ".helix" / "ask" / "x", b"1"),
        lambda: append(root / ".helix" / "x", b"1"),
        lambda: remove(root / ".helix" / "secret"),
        lambda: rename(root / ".helix" / "secret", "x"),
        lambda: prove(root / ".helix" / "helix.db", endings=DATABASE),
        lambda: make_folder(root / ".helix"),
    ):
        with pytest.raises(RefusedFileError):
            write()
    assert os.listdir(root / "data") == []


def test_without_a_root_our_folders_are_held_to_the_same(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".helix").symlink_to(tmp_path / "home")
    with pytest.raises(RefusedFileError):
        replace_file(tmp_path / "other" / ".helix" / "x", b"1")
    assert os.listdir(tmp_path / "home") == []


@pytest.mark.parametrize("ending", DATABASE)
def test_a_database_is_proved_with_its_companions(ending: str, root: Path) -> None:
    path = root / ".helix" / "helix.db"
    prove(path, endings=DATABASE)
    path.write_bytes(b"")
    prove(path, endings=DATABASE)
    path.unlink()
    path.with_name(path.name + ending).symlink_to(root.parent / "home" / "secret")
    with pytest.raises(RefusedFileError, match="a link"):
        prove(path, endings=DATABASE)


def test_a_file_of_the_person_is_written_where_its_folder_leads(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "state").symlink_to("disk")
    replace_file(tmp_path / "state" / "deep" / "x", b"1")
    append(tmp_path / "state" / "deep" / "x", b"2")
    assert (tmp_path / "disk" / "deep" / "x").read_bytes() == b"12"
    with locked_folder(tmp_path / "state"):
        remove(tmp_path / "state" / "deep" / "x")
    assert os.listdir(tmp_path / "disk" / "deep") == []
