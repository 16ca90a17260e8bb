"""The index over real repositories in temporary folders: what it finds, and that it finds it the same way."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from helix_tui.core.ask.corpus.git import BlobReader
from helix_tui.core.ask.index.index import RepositoryIndex, open_index
from helix_tui.core.ask.index.keeper import IndexKeeper, State
from helix_tui.core.ask.question import read_question
from helix_tui.core.ground.project import find_project

FILES = {
    "store/holders.py": '''"""Leases on work."""

import time


class LeaseTable:
    """Who holds what."""

    def renew_lease(self, owner: str) -> float:
        """Push the expiry of a lease into the future."""
        return time.time() + 60
''',
    "store/worker.py": """from store.leases import LeaseTable


def run(table: LeaseTable) -> None:
    table.renew_lease("me")
""",
    "tests/test_leases.py": """from store.leases import LeaseTable


def test_renew_lease() -> None:
    LeaseTable()
""",
    "docs/guide.md": "# Guide\n\nText.\n\n## Leases\n\nA lease is renewed by its owner.\n",
}


def git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], check=True, timeout=30, capture_output=True, text=True)
    return done.stdout


def make(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    if not (root / ".git").exists():
        git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Start with leases")
    return root


def index_of(root: Path, revision: str | None = None) -> RepositoryIndex:
    index = open_index(find_project(root), revision)
    index.refresh()
    return index


@pytest.fixture
def index(tmp_path: Path) -> RepositoryIndex:
    return index_of(make(tmp_path / "r", FILES))


def test_source_stands_before_its_test_and_its_document(index: RepositoryIndex) -> None:
    assert index.search("how is a lease renewed").files[0].file == "store/holders.py"


def test_every_score_is_the_sum_of_its_channels_times_the_prior(index: RepositoryIndex) -> None:
    for file in index.search("how is a lease renewed").files:
        assert file.score == pytest.approx(sum(file.channels.values()) * file.prior)


def test_a_span_is_the_lines_it_names(index: RepositoryIndex) -> None:
    for span in index.search("renew lease").spans:
        assert span.text == "\n".join(index.lines(span.file, span.start, span.end))
        assert span.channels


def test_definitions_and_uses_are_told_apart(index: RepositoryIndex) -> None:
    (defined,) = index.definitions("renew_lease")
    assert (defined.file, defined.start, defined.header) == ("store/holders.py", 9, "LeaseTable.renew_lease")
    (use,) = index.uses("renew_lease")
    assert (use.file, use.line, use.header, use.kind) == ("store/worker.py", 5, "run", "call")


def test_headings_know_those_above_them(index: RepositoryIndex) -> None:
    assert [heading.path for heading in index.headings_in("docs/guide.md")] == ["Guide", "Guide > Leases"]


def test_a_revision_is_read_as_it_was(index: RepositoryIndex, tmp_path: Path) -> None:
    root = tmp_path / "r"
    make(root, {"store/holders.py": "def other():\n    pass\n"})
    assert index_of(root, "HEAD~1").definitions("renew_lease")
    assert not index_of(root).definitions("renew_lease")


def test_a_changed_file_is_seen_after_a_refresh(index: RepositoryIndex, tmp_path: Path) -> None:
    (tmp_path / "r/store/worker.py").write_text("def brand_new_thing():\n    pass\n")
    assert index.refresh().parsed == 1
    assert index.definitions("brand_new_thing")[0].file == "store/worker.py"


def test_past_commits_speak_for_their_files(index: RepositoryIndex) -> None:
    (commit,) = index.commits("start with leases", 5)
    assert commit.header == "Start with leases"
    assert "store/holders.py" in commit.text
    assert all("commits" in file.channels for file in index.search("start with leases").files)


def test_in_a_folder_below_gits_root_the_past_has_the_paths_of_the_work_tree(tmp_path: Path) -> None:
    make(tmp_path / "r", {**{f"part/{file}": text for file, text in FILES.items()}, "other.py": "x = 1\n"})
    (tmp_path / "r" / "part" / ".ddx").mkdir()
    index, past = index_of(tmp_path / "r" / "part"), index_of(tmp_path / "r" / "part", "HEAD")
    assert (
        [document.file for document in past.documents()]
        == [document.file for document in index.documents()]
        == sorted(FILES)
    )
    assert past.lines("docs/guide.md") == index.lines("docs/guide.md") != []
    (commit,) = index.commits("start with leases", 5)
    assert commit.text.split("\n\n")[1].split("\n") == sorted(FILES)


def test_the_files_of_a_revision_are_read_by_one_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make(tmp_path / "r", FILES)
    said, shim = tmp_path / "said", tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$@" >> {said}\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    index = index_of(root, "HEAD")
    said.unlink()
    for name, text in FILES.items():
        assert "\n".join(index.lines(name)) == text.rstrip("\n")
    assert len(said.read_text().splitlines()) == 1
    index.close()


def test_blobs_are_read_on_after_a_large_a_lacking_and_a_killed_one(tmp_path: Path) -> None:
    root = make(tmp_path / "r", {"small": "a\n\nb", "large": "x" * 5_000, "empty": ""})
    oid = {name: git(root, "rev-parse", f"HEAD:{name}").strip() for name in ("small", "large", "empty")}
    reader = BlobReader(root)
    assert reader.read(oid["small"], cap=100) == b"a\n\nb"
    assert reader.read(oid["large"], cap=100) is None
    assert reader.read("0" * 40, cap=100) is None
    assert reader.read(oid["empty"], cap=100) == b""
    reader.close()
    assert reader.read(oid["large"], cap=9_000) == b"x" * 5_000
    reader.close()


def test_a_revision_holds_the_same_bytes_under_each_name_that_has_them(tmp_path: Path) -> None:
    """An empty ``__init__.py`` and an empty note are one content to git, and two files to a reader."""
    root = make(tmp_path / "r", {"a.py": "value = 1\n", "b.md": "value = 1\n", "c.py": "value = 1\n", "d.txt": "x\n"})
    files = [document.file for document in index_of(root, "HEAD").documents()]
    assert files == [document.file for document in index_of(root).documents()] == ["a.py", "b.md", "c.py", "d.txt"]


def test_what_a_build_left_behind_stands_behind_its_source(tmp_path: Path) -> None:
    code = "export function renewLease(owner) {\n  return owner + 60;\n}\n"
    left = ("%TEMP%/lease.mjs", ".tmp/lease.build.js", "packages/a/dist/lease.js", "vite.config.ts.timestamp-17-a.mjs")
    root = make(tmp_path / "r", {name: code + f"// {name}\n" for name in ("src/lease.js", *left)})
    assert index_of(root).search("renew a lease").files[0].file == "src/lease.js"


def test_data_is_read_up_to_a_megabyte_and_what_is_left_out_is_told(tmp_path: Path) -> None:
    rows = ",\n".join(f'"capability {number}": "warp"' for number in range(20_000))
    files = {"atlas.json": f"{{{rows}}}", "dump.json": f"{{{rows * 3}}}", "a.py": "x = 1\n"}
    index = open_index(find_project(make(tmp_path / "r", files)))
    notes = index.refresh().notes
    assert 256 << 10 < len(files["atlas.json"]) < 1 << 20 < len(files["dump.json"])
    assert [document.file for document in index.documents()] == ["a.py", "atlas.json"]
    assert [note for note in notes if "dump.json is too large to be searched" in note]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.py": "x = 1\n"}, ""),
        ({}, "no file is tracked by git yet: `git add`"),
        ({"a.png": b"\x89PNG\0", "b.dat": b"\0\0"}, "no searchable text in 2 files (2 binary)"),
    ],
)
def test_an_index_of_nothing_says_why(tmp_path: Path, files: Mapping[str, str | bytes], said: str) -> None:
    root = tmp_path / "r"
    if files:
        make(root, files)
    else:
        root.mkdir()
        git(root, "init", "-q", "-b", "main")
    index = open_index(find_project(root))
    assert index.empty_reason() == ""
    index.refresh()
    assert said in index.empty_reason()
    assert bool(said) == bool(index.empty_reason())


def test_the_title_of_a_report_weighs_by_itself(tmp_path: Path) -> None:
    story = "It began on Monday. " + "The screen showed palette colours and the palette looked odd. " * 6
    files = {"core/lease.py": "def renew_lease():\n    pass\n", "core/palette.py": "def palette():\n    pass\n"}
    ranked = index_of(make(tmp_path / "r", files)).search(f"Lease is not renewed\n\n{story}").files
    titled = [one.file for one in ranked if "title passage" in one.channels]
    assert titled == ["core/lease.py"]


def test_the_number_of_a_document_names_it(tmp_path: Path) -> None:
    files = {f"docs/FEAT-00{n}-area.md": f"# Area {n}\n\nLeases and workers.\n" for n in (1, 3)} | {
        "FEAT-0033.md": "# X\n"
    }
    ranked = index_of(make(tmp_path / "r", files)).search("what do leases do in FEAT-003").files
    assert [one.file for one in ranked if "mention" in one.channels] == ["docs/FEAT-003-area.md"]
    assert ranked[0].file == "docs/FEAT-003-area.md"


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple[Path, IndexKeeper, Callable[[str], bool]]]:
    """A repository that is followed, and a wait for one of its files to be searchable."""
    root = make(tmp_path / "followed", FILES)
    condition = threading.Condition()

    def tell(_: State) -> None:
        with condition:
            condition.notify_all()

    keeper = IndexKeeper(find_project(root), tell)

    def searchable(line: str) -> bool:
        def found() -> bool:
            index = keeper.index()
            return index is not None and any(line in span.text for span in index.search(line).spans)

        with condition:
            return condition.wait_for(found, 30)

    keeper.start()
    assert keeper.index() is not None
    yield root, keeper, searchable
    keeper.stop()
    keeper._thread.join(30)


@pytest.mark.long
def test_what_changes_is_searchable_soon(kept: tuple[Path, IndexKeeper, Callable[[str], bool]]) -> None:
    root, _, searchable = kept
    (root / "docs/guide.md").write_text("# Guide\n\nThe zebrafish swims.\n")
    assert searchable("zebrafish")
    # a file in a new folder: only git knows that it belongs to the repository from now on
    (root / "fresh/deep").mkdir(parents=True)
    (root / "fresh/deep/new.py").write_text("def armadillo():\n    return 1\n")
    git(root, "add", "fresh")
    assert searchable("armadillo")
    (root / "fresh/deep/new.py").write_text("def pangolin():\n    return 1\n")
    assert searchable("pangolin")


@pytest.mark.skipif(not Path("/proc/self/fdinfo").is_dir(), reason="only Linux counts watches there")
@pytest.mark.long
def test_evidence_folders_take_no_watches(kept: tuple[Path, IndexKeeper, Callable[[str], bool]]) -> None:
    root, _, searchable = kept
    (root / "docs/guide.md").write_text("# Guide\n\nThe zebrafish swims.\n")
    assert searchable("zebrafish")
    before = _watches()
    for number in range(50):
        (root / f".ddx/executions/{number}/embedded").mkdir(parents=True)
    (root / "docs/guide.md").write_text("# Guide\n\nThe armadillo walks.\n")
    assert searchable("armadillo")
    assert before
    assert _watches() == before


def _watches() -> int:
    """The folders that this process has the kernel watch."""
    count = 0
    for entry in Path("/proc/self/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            count += entry.read_text().count("inotify wd")
    return count


def test_words_side_by_side_name_what_they_make_joined(tmp_path: Path) -> None:
    files = {"net/agents.py": "class UserAgent:\n    pass\n", "other.py": "user = agent = 1\n"}
    joined = {
        file.file: file.channels
        for file in index_of(make(tmp_path / "r", files)).search("which user agent is sent").files
    }
    assert "symbol" in joined["net/agents.py"]
    assert "symbol" not in joined["other.py"]


def test_a_misspelt_name_is_found_by_the_nearest_one(index: RepositoryIndex) -> None:
    found = {file.file: file.channels for file in index.search("where is renew_leese").files}
    assert "fuzzy" in found["store/holders.py"]


def test_a_frame_of_a_stack_trace_and_a_module_name_their_files(index: RepositoryIndex) -> None:
    for text in (
        "crash at store/worker.py:12",
        'File "/home/me/store/worker.py", line 5',
        "import of store.worker fails",
    ):
        named = [file.file for file in index.search(text).files if "mention" in file.channels]
        assert named == ["store/worker.py"], text


def test_files_that_are_gone_are_gone_from_every_table(index: RepositoryIndex, tmp_path: Path) -> None:
    git(tmp_path / "r", "rm", "-q", "store/holders.py")
    index.refresh()
    assert not index.definitions("renew_lease")
    assert "store/holders.py" not in {file.file for file in index.search("renew_lease LeaseTable holders").files}


def test_a_revision_begins_with_what_the_work_tree_has(index: RepositoryIndex, tmp_path: Path) -> None:
    (tmp_path / "r/store/worker.py").write_text("def brand_new_thing():\n    pass\n")
    index.refresh()
    past = open_index(find_project(tmp_path / "r"), "HEAD")
    assert past.refresh().parsed == 1
    assert not past.definitions("brand_new_thing")
    assert past.definitions("run")


def test_records_are_searched_apart_from_files(index: RepositoryIndex) -> None:
    before = [(file.file, file.score) for file in index.search("renew a lease").files]
    texts = {"bead:fy-1a2b": "# Renew the lease\n\n## Attempt 1\n\nIt failed at the lease.\n", "memory:m": "# Tide\n"}
    index.take_records({path: path for path in texts}, texts.__getitem__)
    assert [(file.file, file.score) for file in index.search("renew a lease").files] == before
    assert index.search_records(read_question("lease failed"), 5)[0].header == "Renew the lease > Attempt 1"
    assert {record.file for record in index.search_records(read_question("what of fy-1a2b"), 5)} == {"bead:fy-1a2b"}
    assert index.lines("bead:fy-1a2b", 1, 1) == ["# Renew the lease"]
    index.take_records({"memory:m": "other"}, texts.__getitem__)
    assert index.search_records(read_question("lease failed"), 5) == []
    assert index.refresh().parsed == 0
    assert index.search_records(read_question("tide"), 5)
