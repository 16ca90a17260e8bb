"""Files that are none, never end, have odd names, sizes or times, or belong to others."""

from __future__ import annotations

import gzip
import io
import os
import socket
import stat
import zipfile
from pathlib import Path

from tests.hostile.kinds.registry import BUNDLE, SECRET, add_beads, combined, kind, write, write_json

FAR = 4_102_444_800
"""A time in the year 2100."""

_READ_OFTEN = (
    *(".helix/queue-snapshot.json", ".helix/journal.jsonl", ".helix/logs/helix.log", ".helix/curation.lock"),
    *(".helix/ask/ready.txt", ".ddx/config.yaml", ".ddx/graphs/all.yaml", f"{BUNDLE}/prompt.md", "docs/odd.md"),
    *(".ddx/workers/worker-1/status.json", ".ddx/agent-logs/agent-loop-1.jsonl", "odd.py", "lefthook.yml"),
    *(".helix/helix.pid", ".helix/questions.json", ".claude/settings.json", ".helix/run.lock", "package.json"),
)


def _places(root: Path) -> list[Path]:
    """Paths that are read often, free of what was there."""
    places = [root / path for path in _READ_OFTEN]
    for path in places:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    return places


@kind
def pipes(root: Path, secret: Path) -> None:
    for path in _places(root):
        os.mkfifo(path)


@kind
def pipes_of_the_memory(root: Path, secret: Path) -> None:
    (root / ".helix" / "ask").mkdir(parents=True)
    for name in ("helix.db", "helix.db-wal", "helix.db-journal", "ask/index.db", "ask/index.db-journal"):
        os.mkfifo(root / ".helix" / name)


@kind
def a_tracker_that_is_a_pipe(root: Path, secret: Path) -> None:
    (root / ".ddx" / "beads.jsonl").unlink()
    os.mkfifo(root / ".ddx" / "beads.jsonl")


@kind
def sockets(root: Path, secret: Path) -> None:
    for path in _places(root):
        with socket.socket(socket.AF_UNIX) as bound:
            folder = os.getcwd()
            os.chdir(path.parent)  # a long path is no address
            bound.bind(path.name)
            os.chdir(folder)


@kind
def devices(root: Path, secret: Path) -> None:
    """/dev/zero under other names; without the right to make devices, links to it."""
    for path in _places(root):
        try:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))
        except PermissionError:
            path.symlink_to("/dev/zero")


@kind
def folders_in_place_of_files(root: Path, secret: Path) -> None:
    for path in _places(root):
        (path / "inner").mkdir(parents=True)


@kind
def files_in_place_of_folders(root: Path, secret: Path) -> None:
    for path in (".helix", ".helix-logs", ".claude", ".ddx/workers", ".ddx/hooks", ".ddx/graphs", ".ddx/agent-logs"):
        write(root / path, "no folder\n")


@kind
def our_parts_are_files(root: Path, secret: Path) -> None:
    for path in ("logs", "ask", "notified", "prompts", "helix.db-wal"):
        write(root / ".helix" / path, "no folder\n")


@kind
def sparse_files(root: Path, secret: Path) -> None:
    """Files of 12 GB that take no room."""
    for path in (
        ".helix/journal.jsonl",
        ".helix/queue-snapshot.json",
        f"{BUNDLE}/result.json",
        "docs/huge.md",
        "huge.py",
    ):
        write(root / path, "")
        with open(root / path, "wb") as file:
            file.truncate(12 << 30)


@kind
def lines_without_end(root: Path, secret: Path) -> None:
    write(root / "docs" / "line.md", "# " + "a" * (4 << 20))
    write(root / ".helix" / "journal.jsonl", b'{"id": "' + b"a" * (4 << 20))
    write(root / "long.py", "x = '" + "b" * (4 << 20) + "'\n")


@kind
def a_deep_tree(root: Path, secret: Path) -> None:
    folder = root / "deeper"
    for _ in range(200):
        folder = folder / "d"
    folder.mkdir(parents=True)
    write(folder / "end.md", "# The end\n")


@combined
def a_name_as_long_as_names_get(root: Path, secret: Path) -> None:
    write(root / "docs" / ("n" * 252 + ".md"), "# Long\n")
    add_beads(root, {"id": "x" * 5_000}, {"id": "lo-1", "spec-id": "docs/" + "n" * 9_000})


@combined
def names_with_controls(root: Path, secret: Path) -> None:
    """Escape sequences, direction marks, line breaks, and what ends a command line."""
    names = (
        "\x1b]0;owned\x07.md",
        "\u202egpj.md",
        "two\nlines.md",
        "\x9b31m.md",
        "a\rb.md",
        "$(evil).md",
        "`evil`.md",
        ";evil;.md",
    )
    for name in names:
        write(root / "docs" / name, "# hunter2 of a name\n")
    write(root / ".ddx" / "agent-logs" / "agent-\x1b[2J-1.jsonl", "{}\n")


@combined
def names_that_are_no_text(root: Path, secret: Path) -> None:
    for name in (b"\xff\xfe.md", b"\xc3\x28.py", b"\xed\xa0\x80.md"):
        with open(os.path.join(os.fsencode(root), name), "wb") as file:
            file.write(b"# hunter2 \xff\xfe\n")


@combined
def names_that_are_options(root: Path, secret: Path) -> None:
    out = secret.parent / "ran"
    for name in ("-rf", f"--output={out.name}", "--upload-pack=evil", "-", "--", "@{-1}", ":(top)", ":!x"):
        write(root / "docs" / f"{name}", "# hunter2 of an option\n")
        write(root / name, "# hunter2 of an option\n")


@kind
def names_beside_ours(root: Path, secret: Path) -> None:
    """Names that another file system takes for ours or for git's."""
    for name in (
        ".HELIX/helix.db",
        ".Helix/journal.jsonl",
        ".he\u200clix/journal.jsonl",
        "GIT~1/config",
        ".git\u200c/config",
    ):
        write(root / name, "theirs\n")


@combined
def files_nobody_may_read(root: Path, secret: Path) -> None:
    for path in ("docs/closed.md", ".helix/questions.json", "closed.py", f"{BUNDLE}/prompt.md"):
        write(root / path, "closed\n", 0o000)


@kind
def folders_nobody_may_write(root: Path, secret: Path) -> None:
    for path in (".helix/logs", ".helix/ask", ".ddx/executions"):
        (root / path).mkdir(parents=True, exist_ok=True)
        (root / path).chmod(0o555)


@kind
def folders_of_another_user(root: Path, secret: Path) -> None:
    """Only root can give files away; the others see a folder that everybody may write."""
    write(root / ".helix" / "journal.jsonl", "{}\n")
    for path in (root / ".helix", root / ".helix" / "journal.jsonl"):
        if os.geteuid() == 0:
            os.chown(path, 4711, 4711)
        else:
            path.chmod(0o777)


@kind
def a_git_folder_of_another_user(root: Path, secret: Path) -> None:
    if os.geteuid() == 0:
        for folder, _, names in os.walk(root / ".git"):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                os.chown(path, 4711, 4711)


@combined
def programs_with_another_s_rights(root: Path, secret: Path) -> None:
    write(root / "docs" / "rights.md", "# Rights\n", 0o4777)
    (root / "docs").chmod(0o1777)


@combined
def times_in_the_future(root: Path, secret: Path) -> None:
    rows = [{"id": f"fu-{number}", "created_at": time, "updated_at": time} for number, time in enumerate(_TIMES)]
    add_beads(root, *rows)
    write_json(root / ".helix" / "run-state.json", {"run_id": "r", "started_at": _TIMES[0], "updated_at": _TIMES[1]})
    for path in (root / ".ddx" / "beads.jsonl", root / "main.py", root / ".helix" / "run-state.json"):
        os.utime(path, (FAR, FAR))


_TIMES = (
    "9999-12-31T23:59:59Z",
    "2100-01-01T00:00:00+99:99",
    "0000-00-00T00:00:00Z",
    "1e400",
    "-1",
    "2026-08-21T10:00:00+14:00",
)


@kind
def archives(root: Path, secret: Path) -> None:
    """A bomb of zeros, and an archive whose members have paths to outside."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../home/ran", SECRET[::-1])
        archive.writestr("zeros", b"\0" * (8 << 20))
    for name in ("docs/bomb.md", "docs/bomb.zip", ".ddx/beads-archive.jsonl"):
        write(root / name, packed.getvalue())
    write(root / "docs" / "bomb.gz", gzip.compress(b"\0" * (8 << 20)))
    write(root / "docs" / "data.md", b"SQLite format 3\0" + bytes(4096))


@kind
def patterns_that_explode(root: Path, secret: Path) -> None:
    write(root / ".gitignore", ("*a" * 4 + "b\n") * 2_000 + "**/" * 6 + "x\n")
    write(root / ("a" * 80), "a\n")
    write(root / "docs" / "brackets.md", "# B\n\n" + "[" * 5_000 + "*" * 5_000 + "`" * 4_999 + "|" * 5_000 + "\n")


@kind
def very_many_files(root: Path, secret: Path) -> None:
    (root / "many").mkdir()
    for number in range(1_500):
        (root / "many" / f"{number}.md").touch()
