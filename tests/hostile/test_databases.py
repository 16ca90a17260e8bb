"""A database that somebody else wrote is not used, and cannot be made to change, show or hang anything."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from helix_tui.cli.program import main
from helix_tui.core.ask.index.database import Database as AskDatabase
from helix_tui.core.ground import sqlite
from helix_tui.core.ground.project import find_project
from helix_tui.core.ground.sqlite import connect, record_of
from helix_tui.core.ground.trust import person
from helix_tui.core.ground.trust.own_folders import NotUsed
from helix_tui.core.ground.writes import exclude, make_folder
from helix_tui.core.memory.injection import memories_given
from helix_tui.core.memory.memory_store import look_into, open_memory
from helix_tui.core.memory.records import DatabaseForeign, MemoryFault
from tests.conftest import ProjectFactory

BEAD = {"id": "de-1", "title": "A bead", "status": "open", "issue_type": "task", "priority": 2}
LESSON = "Name the version of the parser in the lock file"


def strangers(root: Path) -> Path:
    """A memory in the repository that this person's ledger does not have, as a stranger's machine made it."""
    path = root / ".helix" / "helix.db"
    with open_memory(path, teacher="person") as memory:
        memory.store("when a build fails", LESSON)
    person.revoke(os.path.realpath(root))
    person._notes.clear()
    return path


def trust(path: Path) -> None:
    """What `helix-tui trust` enters."""
    record = record_of(path)
    assert record is not None
    person.allow(record)


def is_refused(path: Path, why: str = "not used") -> bool:
    """Whether no way into the memory opens the file, and its bytes stay."""
    content = path.read_bytes() if path.is_file() else b""
    with pytest.raises(MemoryFault, match=why):
        open_memory(path, teacher="person").close()
    with pytest.raises(MemoryFault, match=why):
        open_memory(path, read_only=True, teacher="person").close()
    with pytest.raises(MemoryFault, match=why):
        look_into(path).close()
    assert memories_given(find_project(path.parent.parent)) == {}
    return (path.read_bytes() if path.is_file() else b"") == content


def as_clone(root: Path) -> None:
    """Our line is in git's exclude file, as every release wrote it."""
    exclude(root / ".git")


# --- what a stranger brings ---------------------------------------------------------------------------------


def test_a_strangers_memories_are_given_to_nobody(project: ProjectFactory, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither to an agent nor to a person, and one line says why."""
    root = project([BEAD], git=True)
    path = strangers(root)
    assert is_refused(path)
    assert len(person.notes()) == 1
    for words in (("memory", "list"), ("memory", "recall", "build fails"), ("queue",), ("next",)):
        main(["-C", str(root), *words])
        shown = capsys.readouterr()
        assert LESSON not in shown.out + shown.err
        assert shown.err.count("nothing shows that it is yours") <= 1


def test_a_trusted_one_is_used(project: ProjectFactory) -> None:
    """Under its own name, and as long as it is the same file."""
    root = project([BEAD], git=True)
    path = strangers(root)
    trust(path)
    with open_memory(path, teacher="person") as memory:
        assert memory.list()[0].resolution == LESSON
    content = path.read_bytes()
    path.rename(root / "kept")
    path.write_bytes(content)
    assert is_refused(path)


def test_a_journal_that_was_brought_is_never_rolled_back(project: ProjectFactory, tmp_path: Path) -> None:
    """Its header may name any file, which SQLite would delete."""
    victim = tmp_path / "victim"
    victim.write_text("the person's own")
    root = project([BEAD], git=True)
    path = strangers(root)
    name = os.fsencode(victim)
    end = len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big") + bytes.fromhex("d9d505f920a163d7")
    header = bytes.fromhex("d9d505f920a163d7") + (0).to_bytes(4, "big") + b"\0" * 4 + (1).to_bytes(4, "big")
    journal = path.with_name("helix.db-journal")
    journal.write_bytes((header + (512).to_bytes(4, "big") + (4096).to_bytes(4, "big")).ljust(512, b"\0") + name + end)
    content = journal.read_bytes()
    as_clone(root)
    person.attended = True
    assert is_refused(path)
    assert journal.read_bytes() == content
    path.unlink()
    assert is_refused(path, "without it|no memory here")
    assert victim.read_text() == "the person's own"
    assert journal.read_bytes() == content


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_links_are_not_followed(
    project: ProjectFactory, tmp_path: Path, ending: str, link: Callable[[Path, Path], None]
) -> None:
    """Even where the database is trusted: neither it nor what SQLite opens beside it may be another file."""
    root = project([BEAD], git=True)
    path = strangers(root)
    trust(path)
    victim = tmp_path / "victim"
    victim.write_bytes(b"the person's own")
    companion = path.with_name(f"helix.db{ending}")
    companion.unlink(missing_ok=True)
    link(companion, victim)
    with pytest.raises(DatabaseForeign, match="link"):
        open_memory(path, teacher="person").close()
    assert memories_given(find_project(root)) == {}
    assert victim.read_bytes() == b"the person's own"


def test_a_folder_or_fifo_in_its_place_is_refused(project: ProjectFactory) -> None:
    """Nobody waits."""
    root = project([BEAD], git=True)
    path = strangers(root)
    trust(path)
    os.mkfifo(path.with_name("helix.db-wal"))
    with pytest.raises(DatabaseForeign, match="not a regular file"):
        open_memory(path, teacher="person").close()


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER more AFTER INSERT ON memory BEGIN DELETE FROM memory; END",
        "DROP TRIGGER helix_memory_added;"
        "CREATE TRIGGER helix_memory_added AFTER INSERT ON memory BEGIN DELETE FROM memory; END",
        "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
        "ALTER TABLE injection RENAME TO other; CREATE VIEW injection AS WITH RECURSIVE n(x) AS"
        " (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, 'a' AS attempt FROM n",
    ],
)
def test_triggers_and_views_of_others_run_nowhere(project: ProjectFactory, statement: str) -> None:
    """Not even in a database that was trusted."""
    root = project([BEAD], git=True)
    path = strangers(root)
    trust(path)
    with closing(sqlite3.connect(path)) as theirs:
        theirs.executescript(statement)
    assert is_refused(path, "somebody else's")


def test_a_statement_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever makes it so; the next one has all its steps again."""
    monkeypatch.setattr(sqlite, "_MAX_LOOKS", 3)
    with closing(connect(None, timeout=1)) as database:
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            database.execute(
                "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
            ).fetchone()
        assert database.execute("SELECT 1").fetchone() == (1,)


def test_a_huge_value_is_not_read(project: ProjectFactory) -> None:
    """A row of a trusted database, too."""
    root = project([BEAD], git=True)
    path = strangers(root)
    trust(path)
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute("UPDATE memory SET resolution = hex(zeroblob(20000000))")
        theirs.commit()
    with pytest.raises(MemoryFault), open_memory(path, teacher="person") as memory:
        memory.list()


def test_the_schema_is_not_trusted(project: ProjectFactory) -> None:
    """For reading it stays off; a change of ours may use our own triggers."""
    with open_memory(project([BEAD]) / ".helix" / "helix.db", teacher="person") as memory:
        memory.store("when a build fails", LESSON)
        memory.remove([memory.list()[0].name])
        assert memory.read("PRAGMA trusted_schema") == [(0,)]


def test_an_index_of_ask_that_was_brought_is_replaced(project: ProjectFactory, tmp_path: Path) -> None:
    """It may claim to hold what the repository does not; a link in its place is removed, not followed."""
    path = project([BEAD], git=True) / ".helix" / "ask" / "index.db"
    AskDatabase(path).close()
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute("INSERT INTO past VALUES(1, 'a', 'theirs', '', '[]')")
        theirs.commit()
    person.revoke(os.path.realpath(path.parents[2]))
    with closing(AskDatabase(path)) as index:
        assert index.past_shas() == set()
    victim = tmp_path / "victim"
    victim.write_text("the person's own")
    path.unlink()
    path.symlink_to(victim)
    with closing(AskDatabase(path)) as index:
        assert index.past_shas() == set()
    assert victim.read_text() == "the person's own"


# --- whose it is --------------------------------------------------------------------------------------------


def test_a_memory_of_an_earlier_release_is_adopted_once(project: ProjectFactory) -> None:
    """In a clone: our line in its exclude file was written here, and so was the database."""
    root = project([BEAD], git=True)
    as_clone(root)
    path = strangers(root)
    assert is_refused(path)
    person._notes.clear()
    person.attended = True
    with open_memory(path, teacher="person") as memory:
        assert len(memory.list()) == 1
    assert [line for line in person.notes() if "entered as yours" in line]
    person.attended = False
    with open_memory(path, teacher="person") as memory:
        assert len(memory.list()) == 1


def _unpacked(root: Path, path: Path) -> None:
    os.utime(path, (1_700_000_000, 1_700_000_000))
    subprocess.run(["tar", "-cf", "archive.tar", root.name], check=True, cwd=root.parent)
    path.unlink()
    subprocess.run(["tar", "-xf", "archive.tar"], check=True, cwd=root.parent)


def _without_line(root: Path, path: Path) -> None:
    (root / ".git" / "info" / "exclude").write_text("*.o\n")


def _tracked(root: Path, path: Path) -> None:
    subprocess.run(["git", "-C", str(root), "add", "-f", str(path)], check=True)


def _of_another_user(root: Path, path: Path) -> None:
    os.chown(path, 4711, 4711)
    os.chown(path.parent, 4711, 4711)


def _without_git(root: Path, path: Path) -> None:
    (root / ".git").rename(root / "not-git")


@pytest.mark.parametrize("change", [_unpacked, _without_line, _tracked, _of_another_user, _without_git])
def test_every_other_waits_for_the_person(project: ProjectFactory, change: Callable[[Path, Path], None]) -> None:
    """An archive that brings our line too, a shared folder, a clone that tracks it, one without git."""
    if change is _of_another_user and os.geteuid():
        pytest.skip("only root can give files away")
    root = project([BEAD], git=True)
    as_clone(root)
    path = strangers(root)
    change(root, path)
    person.attended = True
    helix = find_project(root).helix_dir
    with pytest.raises(MemoryFault):
        open_memory(helix / "helix.db", teacher="person").close()
    assert person.load() == []


def test_our_line_is_not_added_beside_a_database_that_is_there(project: ProjectFactory) -> None:
    """It would make the next start take the database for ours; git ignores the folder by a file in it instead."""
    root = project([BEAD], git=True)
    path = strangers(root)
    _without_line(root, path)
    make_folder(root / ".helix" / "logs")
    assert "helix" not in (root / ".git" / "info" / "exclude").read_text()
    listed = subprocess.run(["git", "-C", str(root), "status", "--porcelain"], capture_output=True, text=True)
    assert ".helix" not in listed.stdout


def test_one_that_we_make_is_ours_and_private(project: ProjectFactory) -> None:
    """Whatever the umask, and without a word."""
    before = os.umask(0)
    try:
        path = project([BEAD], git=True) / ".helix" / "helix.db"
        with open_memory(path, teacher="person") as memory:
            memory.store("when a build fails", LESSON)
            modes = {stat.S_IMODE(file.stat().st_mode) for file in path.parent.glob("helix.db*")}
    finally:
        os.umask(before)
    assert modes == {0o600}
    assert person.notes() == ()


_MAKER = """
import sys
from pathlib import Path
from helix_tui.core.memory.memory_store import open_memory
with open_memory(Path(sys.argv[1]), teacher="person") as memory:
    memory.store(sys.argv[2], "do it otherwise")
"""


@pytest.mark.long
def test_processes_that_make_it_at_once_all_use_it(project: ProjectFactory) -> None:
    """None finds it before it is entered."""
    path = project([BEAD], git=True) / ".helix" / "helix.db"
    names = ["first trigger", "second reason", "third cause"]
    makers = [subprocess.Popen([sys.executable, "-P", "-c", _MAKER, str(path), name]) for name in names]
    assert [maker.wait(60) for maker in makers] == [0, 0, 0]
    with open_memory(path, teacher="person") as memory:
        assert {found.trigger for found in memory.list()} == set(names)


# --- what people really have --------------------------------------------------------------------------------


def test_one_that_another_process_writes_is_read(project: ProjectFactory) -> None:
    """With its log beside it."""
    path = project([BEAD], git=True) / ".helix" / "helix.db"
    with open_memory(path, teacher="person") as writer, open_memory(path, read_only=True, teacher="person") as reader:
        writer.store("when a build fails", LESSON)
        assert path.with_name("helix.db-wal").stat().st_size
        assert len(reader.list()) == 1


def test_a_project_reached_by_a_link_keeps_its_memory(project: ProjectFactory) -> None:
    """The ledger names real paths."""
    root = project([BEAD], git=True)
    strangers(root)
    trust(root / ".helix" / "helix.db")
    (root.parent / "link").symlink_to(root)
    with open_memory(find_project(root.parent / "link").helix_dir / "helix.db", teacher="person") as memory:
        assert len(memory.list()) == 1


def test_one_that_the_person_names_elsewhere_is_theirs(tmp_path: Path) -> None:
    """HELIX_DB_PATH is the person's own word."""
    with open_memory(tmp_path / "memory.db", teacher="person") as memory:
        memory.store("when a build fails", LESSON)
    assert person.load() == []
    with open_memory(tmp_path / "memory.db", teacher="person") as memory:
        assert len(memory.list()) == 1


def test_without_a_state_folder_nothing_is_made(project: ProjectFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that could not be entered would be refused at the next start."""
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null/nowhere")
    path = project([BEAD], git=True) / ".helix" / "helix.db"
    with pytest.raises(MemoryFault):
        open_memory(path, teacher="person").close()
    assert not path.exists()


def test_a_refusal_is_an_error_of_ours() -> None:
    """Every face shows what is one of ours; readers that skip what cannot be opened skip it too."""
    assert issubclass(NotUsed, OSError)
