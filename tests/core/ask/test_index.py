"""The index over real repositories in temporary folders: what it finds, and that it finds it the same way."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from helix_tui.core.ask.corpus.git import BlobReader
from helix_tui.core.ask.index import channels as meaning
from helix_tui.core.ask.index import database
from helix_tui.core.ask.index.index import IndexKeeper, RepositoryIndex, State, open_index
from helix_tui.core.ask.index.question import read_question
from helix_tui.core.embedding.minilm import Encoder
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
    assert index.rank_files("how is a lease renewed")[0].file == "store/holders.py"


def test_every_score_is_the_sum_of_its_channels_times_the_prior(index: RepositoryIndex) -> None:
    for one in index.rank_files("how is a lease renewed"):
        assert one.score == pytest.approx(sum(one.channels.values()) * one.prior)


def test_a_path_of_another_folder_says_little(index: RepositoryIndex) -> None:
    """A file of the same name elsewhere, as in the trace of a library, is another file."""
    ours, other = (
        next(one for one in index.rank_files(f"crash at {path}:12") if one.file == "store/worker.py")
        for path in ("/home/me/app/store/worker.py", "/usr/lib/celery/worker.py")
    )
    assert ours.channels["trace"] > 2 * other.channels["trace"]


def test_a_span_is_the_lines_it_names(index: RepositoryIndex) -> None:
    for span in index.search("renew lease"):
        assert span.text == "\n".join(index.lines(span.file, span.start, span.end))
        assert span.channels


def test_definitions_and_uses_are_told_apart(index: RepositoryIndex) -> None:
    (defined,) = index.definitions("renew_lease")
    assert (defined.file, defined.start, defined.header) == ("store/holders.py", 9, "LeaseTable.renew_lease")
    (use,) = index.uses("renew_lease")
    assert (use.file, use.line, use.header, use.kind) == ("store/worker.py", 5, "run", "call")


def test_headings_know_those_above_them(index: RepositoryIndex) -> None:
    assert [heading.path for heading in index.headings("docs/guide.md")] == ["Guide", "Guide > Leases"]


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
    (commit,) = index.commits("start with leases")
    assert commit.subject == "Start with leases"
    assert "store/holders.py" in commit.files


def test_in_a_folder_below_gits_root_the_past_has_the_paths_of_the_work_tree(tmp_path: Path) -> None:
    make(tmp_path / "r", {**{f"part/{file}": text for file, text in FILES.items()}, "other.py": "x = 1\n"})
    (tmp_path / "r" / "part" / ".ddx").mkdir()
    index, past = index_of(tmp_path / "r" / "part"), index_of(tmp_path / "r" / "part", "HEAD")
    assert [one.file for one in past.documents()] == [one.file for one in index.documents()] == sorted(FILES)
    assert past.lines("docs/guide.md") == index.lines("docs/guide.md") != []
    (commit,) = index.commits("start with leases")
    assert sorted(commit.files) == sorted(FILES)


def test_the_tree_holds_folders_files_and_what_is_in_them(index: RepositoryIndex) -> None:
    tree = index.tree()
    assert tree.nodes["store/"].children == ("store/holders.py", "store/worker.py")
    assert tree.nodes["docs/guide.md#5"].parent == "docs/guide.md"


def test_what_is_held_of_an_index_between_questions_has_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"part{number}.py": f"def lease_{number}(): return renew\n" for number in range(12)}
    index = index_of(make(tmp_path / "r", files))
    every = [index.definitions(f"lease_{number}") for number in range(12)]
    monkeypatch.setattr("helix_tui.core.ask.index.view.MAX_POSTINGS", 1_000)
    monkeypatch.setattr("helix_tui.core.ask.index.contents._PIECES", 3)
    again = open_index(find_project(tmp_path / "r"))
    again.refresh()
    for number in range(12):
        assert again.definitions(f"lease_{number}") == every[number]
        assert again.rank_files(f"renew lease_{number}")[0].file
        assert len(again._view._cache) <= 5
        assert len(again._read_pieces) <= 4


def test_an_older_version_stands_behind_the_present_one_unless_it_is_named(tmp_path: Path) -> None:
    body = "def parse_header(line: str) -> None: ...\n"
    older = "def parse_header(line: str, header: str) -> None: ...  # parse the header\n"
    names = {"lib/header.py": body, "lib/v1/header.py": older, "api/v2/parse.go": "", "api/v3/parse.go": ""}
    index = index_of(make(tmp_path / "r", {**names, "lib/v1/other.py": older}))
    found = {one.file: one.prior for one in index.rank_files("how is a header parsed")}
    assert next(iter(found)) in ("lib/header.py", "lib/v1/other.py")
    assert found["lib/v1/header.py"] < found["lib/v1/other.py"] == found["lib/header.py"] == 1.0
    assert index.rank_files("how is a header parsed in v1")[0].file == "lib/v1/header.py"
    api = {one.file: one.prior for one in index.rank_files("where is it parsed")}
    assert api["api/v2/parse.go"] < api["api/v3/parse.go"]


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
    files = [one.file for one in index_of(root, "HEAD").documents()]
    assert files == [one.file for one in index_of(root).documents()] == ["a.py", "b.md", "c.py", "d.txt"]


def test_what_a_build_left_behind_stands_behind_its_source(tmp_path: Path) -> None:
    code = "export function renewLease(owner) {\n  return owner + 60;\n}\n"
    left = ("%TEMP%/lease.mjs", ".tmp/lease.build.js", "packages/a/dist/lease.js", "vite.config.ts.timestamp-17-a.mjs")
    root = make(tmp_path / "r", {name: code + f"// {name}\n" for name in ("src/lease.js", *left)})
    assert index_of(root).rank_files("renew a lease")[0].file == "src/lease.js"


def test_data_is_read_up_to_a_megabyte_and_what_is_left_out_is_told(tmp_path: Path) -> None:
    rows = ",\n".join(f'"capability {number}": "warp"' for number in range(20_000))
    files = {"atlas.json": f"{{{rows}}}", "dump.json": f"{{{rows * 3}}}", "a.py": "x = 1\n"}
    index = open_index(find_project(make(tmp_path / "r", files)))
    notes = index.refresh().notes
    assert 256 << 10 < len(files["atlas.json"]) < 1 << 20 < len(files["dump.json"])
    assert [one.file for one in index.documents()] == ["a.py", "atlas.json"]
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


LAYERS = {
    "api/query.py": "from engine.compiler import Compiler\n\n\ndef exclude_rows(filters):\n"
    '    """Exclude rows by filters."""\n    return Compiler().render(filters)\n',
    "engine/compiler.py": "from engine.nodes import Inversion\n\n\nclass Compiler:\n    def render(self, tree):\n"
    "        return Inversion(tree)\n",
    "engine/nodes.py": "class Inversion:\n    def __init__(self, inner):\n        self.inner = inner\n",
    "engine/unrelated.py": "class Palette:\n    pass\n",
}


def test_what_the_first_file_calls_is_found_two_steps_down(tmp_path: Path) -> None:
    """Neither the compiler nor its nodes say a word of the question."""
    index = index_of(make(tmp_path / "r", LAYERS))
    found = {one.file: one.channels.get("calls", 0.0) for one in index.rank_files("how are rows excluded by filters")}
    assert next(iter(found)) == "api/query.py"
    assert found["engine/compiler.py"] > found["engine/nodes.py"] > 0
    assert "engine/unrelated.py" not in found
    revision = index_of(tmp_path / "r", "HEAD").rank_files("how are rows excluded by filters")
    assert {one.file: one.channels.get("calls", 0.0) for one in revision} == found


def test_calls_find_names_with_capitals_outside_ascii(tmp_path: Path) -> None:
    layers = {file: text.replace("Inversion", "Überzug") for file, text in LAYERS.items()}
    index = index_of(make(tmp_path / "r", layers))
    found = {one.file: one.channels.get("calls", 0.0) for one in index.rank_files("how are rows excluded by filters")}
    assert found.get("engine/nodes.py", 0.0) > 0


def test_the_title_of_a_report_weighs_by_itself(tmp_path: Path) -> None:
    story = "It began on Monday. " + "The screen showed palette colours and the palette looked odd. " * 6
    files = {"core/lease.py": "def renew_lease():\n    pass\n", "core/palette.py": "def palette():\n    pass\n"}
    ranked = index_of(make(tmp_path / "r", files)).rank_files(f"Lease is not renewed\n\n{story}")
    titles = {one.file: one.channels.get("title", 0.0) for one in ranked}
    assert titles["core/lease.py"] > titles["core/palette.py"] == 0


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("LeaseTable", "name"),
        ("where is a lease renewed", "question"),
        ("What does returning a dictionary mean " + "and why " * 12 + "when the proxy is set?", "question"),
        ("Leases expire too soon\n\nI renew a lease and it is gone. " + "My worker then waits. " * 6, "report"),
        ("Leases expire\n\nTraceback (most recent call last):\n" + "  more of it must be read here\n" * 5, "report"),
        ("feat(lease): renew leases ahead of time\n\n" + "Renewal starts at half of the time. " * 4, "work"),
        ("Leases expire in pytest\n\nThe fixture must be renewed by pytest itself. " + "It is not. " * 9, "report"),
        ("lease: renew ahead\n\n" + "Renewal starts at half of the time of a lease. " * 3, "work"),
        ("lease: expires\n\n" + "When I start two workers one lease is gone at once. " * 3, "report"),
        ("Renew leases early\n\nAcceptance: go test passes and the lease " + "is renewed at half time " * 4, "work"),
    ],
)
def test_a_text_is_read_by_its_shape(text: str, shape: str) -> None:
    assert read_question(text).shape == shape


def test_work_brings_the_test_of_what_it_changes_a_report_does_not(tmp_path: Path) -> None:
    files = {
        "core/lease.go": "package core\n\n// RenewLease renews a lease of a worker.\nfunc RenewLease() {}\n",
        "core/lease_test.go": "package core\n\nfunc TestOther() {}\n",
        "core/clock.go": "package core\n\nfunc Now() {}\n",
    }
    index = index_of(make(tmp_path / "r", files))
    told = "\n\nThe lease of a worker is renewed at half of its time, so that no other worker takes it meanwhile."
    work = index.rank_files(f"feat: renew lease early{told} Acceptance: go test passes.")
    report = index.rank_files(f"Lease is lost{told} I lost mine.")
    assert [one.file for one in work][:2] == ["core/lease.go", "core/lease_test.go"]
    assert all("tested" not in one.channels for one in report)
    for one in work:
        assert one.score == pytest.approx(sum(one.channels.values()) * one.prior)


def test_the_number_of_a_document_names_it(tmp_path: Path) -> None:
    files = {f"docs/FEAT-00{n}-area.md": f"# Area {n}\n\nLeases and workers.\n" for n in (1, 3)} | {
        "FEAT-0033.md": "# X\n"
    }
    ranked = index_of(make(tmp_path / "r", files)).rank_files("what do leases do in FEAT-003")
    assert [one.file for one in ranked if "mention" in one.channels] == ["docs/FEAT-003-area.md"]
    assert ranked[0].file == "docs/FEAT-003-area.md"


def test_short_forms_and_joined_words_are_found(tmp_path: Path) -> None:
    """No file has a word of the questions but one that is about neither."""
    files = {
        "core/expr.py": "def fold_expr(node):\n    pass\n",
        "core/expr_list.py": "class ExprList:\n    pass\n",
        "net/agents.py": "class UserAgent:\n    pass\n",
        "other.py": "expression = user = agent = 1\n",
    }
    index = index_of(make(tmp_path / "r", files))
    short = {one.file: one.channels.get("short", 0.0) for one in index.rank_files("where is an expression made")}
    assert short["core/expr.py"] > 0 < short["core/expr_list.py"]
    assert short.get("net/agents.py", 0.0) == short["other.py"] == 0
    joined = index.rank_files("which user agent is sent")[0]
    assert (joined.file, joined.channels["symbol"] > 0) == ("net/agents.py", True)


class CountingEncoder(Encoder):
    """A vector says which letters a text has; how many texts were encoded is counted."""

    model_id = "letters"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.texts += texts
        counted = np.array([[text.lower().count(chr(97 + at % 26)) for at in range(384)] for text in texts], np.float32)
        unit: np.ndarray = counted / np.maximum(np.linalg.norm(counted, axis=1, keepdims=True), 1e-9)
        return unit


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingEncoder]:
    counting = CountingEncoder()
    monkeypatch.setattr(meaning, "encoder", lambda: counting)
    meaning._encoded.cache_clear()
    yield counting
    meaning._encoded.cache_clear()


def test_the_encoder_compares_what_ranks_first_of_a_repository_of_any_size(
    tmp_path: Path, encoder: CountingEncoder
) -> None:
    names = [f"lease_{chr(97 + at % 26) * 3}{chr(97 + at // 26) * 2}" for at in range(450)]
    files = {f"part/{name}.py": f"def {name}():\n    pass\n" for name in names}
    root = make(tmp_path / "r", files)
    index = index_of(root)
    assert not any("meaning" in one.channels for one in index.rank_files("where is a lease", rerank=False))
    assert encoder.texts == []
    ranked = index.rank_files("where is a lease")
    assert sum("meaning" in one.channels for one in ranked) > 5
    assert len(encoder.texts) == 1 + meaning.MOST_BY_MEANING
    index.close()
    again = index_of(root)
    assert [(one.file, one.score) for one in again.rank_files("where is a lease")] == [
        (one.file, one.score) for one in ranked
    ]
    assert len(encoder.texts) == 1 + meaning.MOST_BY_MEANING, "what is kept under its digest is not encoded again"


def test_kept_vectors_have_a_bound(tmp_path: Path, encoder: CountingEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "MOST_MEANINGS", 5)
    held = database.Database(tmp_path / "index.db")
    meanings = meaning.Meanings(lambda: held)
    for turn in range(4):
        meanings.score("leases", [f"digest {turn} {number}" for number in range(3)])
    keys = [meaning._key(f"digest {turn} {number}") for turn in range(4) for number in range(3)]
    assert 0 < len(held.meanings(keys)) <= 5


def test_a_long_question_is_compared_with_passages(tmp_path: Path, encoder: CountingEncoder) -> None:
    question = "How does the lease table find out that the owner of a lease went away long before its time?"
    index_of(make(tmp_path / "r", FILES)).rank_files(question)
    assert any("Push the expiry of a lease into the future" in text for text in encoder.texts)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple[Path, IndexKeeper, Callable[[str], bool]]]:
    """A repository that is followed, and a wait for one of its files to be searchable."""
    root = make(tmp_path / "followed", FILES)
    told = threading.Condition()

    def tell(_: State) -> None:
        with told:
            told.notify_all()

    keeper = IndexKeeper(find_project(root), tell)

    def searchable(line: str) -> bool:
        def found() -> bool:
            index = keeper.index()
            return index is not None and any(line in span.text for span in index.search(line))

        with told:
            return told.wait_for(found, 30)

    keeper.start()
    assert keeper.index() is not None
    yield root, keeper, searchable
    keeper.stop()
    keeper._thread.join(30)


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
