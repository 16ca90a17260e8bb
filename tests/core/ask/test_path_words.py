"""The words of paths, by which a question finds files that say nothing else of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from helix_tui.core.ask.corpus.listing import role_of
from helix_tui.core.ask.index import view
from helix_tui.core.ask.index.index import RepositoryIndex
from helix_tui.core.ask.index.segment import index_paths
from tests.core.ask.sessions.solar import write


def test_a_name_counts_twice_and_each_of_its_last_three_folders_once() -> None:
    found = index_paths(
        ["a/b/lease/store/lease_store.py", "lease/x/y/z/tide.go", "README", "a/b/lease/store/__init__.py"]
    )

    def posting(term: str) -> tuple[list[int], list[float]] | None:
        at = found.posting(term)
        return None if at is None else (at[0].tolist(), at[1].tolist())

    # of the four folders of the second the first is too far away
    assert posting("leas") == ([0, 3], [3.0, 1.0])
    assert posting("lease_store") == ([0], [2.0])
    assert posting("tide") == ([1], [2.0])
    assert posting("readm") == ([2], [2.0])
    assert posting("boat") is None
    names = [[found.words[word] for word in found.word_of[found.file_of_word == at]] for at in range(4)]
    assert names == [["lease", "store"], ["tide"], ["readme"], ["store"]]
    assert index_paths([]).posting("tide") is None


def test_a_file_name_is_found_by_its_words_and_by_the_beginning_of_one(tmp_path: Path) -> None:
    names = ("config", "configuration", "configured_boat", "con", "tide")
    root = write(tmp_path, {f"src/{name}.py": f"x = {at}\n" for at, name in enumerate(names)})
    index = RepositoryIndex(root, tmp_path / "index.db", with_meaning=False)
    index.refresh()

    def stems(question: str) -> dict[str, float]:
        return {one.file[4:-3]: one.channels["stem"] for one in index.rank_files(question) if "stem" in one.channels}

    long, short = stems("where is the configuration read"), stems("where is config read")
    assert long.keys() == short.keys() == {"config", "configuration", "configured_boat"}
    assert long["configuration"] > long["config"] > long["configured_boat"] > 0
    assert short["config"] > short["configuration"] > short["configured_boat"] > 0
    assert stems("where is the tide read") == {"tide": long["configuration"]}


def test_the_words_of_many_paths_are_stored_until_a_path_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("config", "configuration", "tide", "naïve_größe")
    root = write(tmp_path, {f"src/{name}.py": f"x = {at}\n" for at, name in enumerate(names)})
    path = tmp_path / "index.db"
    read: list[list[str]] = []

    def reading(files: list[str]) -> object:
        read.append(files)
        return index_paths(files)

    monkeypatch.setattr(view, "MANY_PATHS", 2)
    monkeypatch.setattr(view, "index_paths", reading)

    def ranked() -> list[tuple[str, float, dict[str, float]]]:
        index = RepositoryIndex(root, path, with_meaning=False)
        index.refresh()
        return [
            (one.file, one.score, dict(one.channels)) for one in index.rank_files("where is the config of the tide")
        ]

    first = ranked()
    assert ranked() == first
    assert len(read) == 1
    write(root, {"src/harbour.py": "x = 9\n"})
    ranked()
    assert [len(files) for files in read] == [4, 5]
    # bytes that are none of ours are read anew
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE path_words SET packed=x'00'")
    ranked()
    assert len(read) == 3


def test_roles_and_weights_of_many_paths_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("src/tide.py", "tests/test_tide.py", "docs/tide.md", "CHANGES.md")
    root = write(tmp_path, {name: f"# the tide {at}\n" for at, name in enumerate(names)})
    path = tmp_path / "index.db"
    told: list[str] = []

    def telling(file: str) -> str:
        told.append(file)
        return role_of(file)

    monkeypatch.setattr(view, "MANY_PATHS", 2)
    monkeypatch.setattr(view, "role_of", telling)

    def ranked() -> list[tuple[str, str, float]]:
        index = RepositoryIndex(root, path, with_meaning=False)
        index.refresh()
        return [(one.file, one.role, one.score) for one in index.rank_files("when is the tide")]

    first = ranked()
    assert {file: role for file, role, _ in first} == {name: role_of(name) for name in names}
    told.clear()
    assert ranked() == first
    assert told == []
    # another set of patterns tells anew, and so do bytes that are none of ours
    monkeypatch.setattr(view, "kinds_version", lambda: "another")
    assert ranked() == first
    assert sorted(told) == sorted(names)
    told.clear()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE path_words SET packed=x'00'")
    assert ranked() == first
    assert sorted(told) == sorted(names)
