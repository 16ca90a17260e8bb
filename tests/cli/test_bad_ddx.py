"""A ddx that is missing, old, slow, loud or wrong: a clear sentence, the exact state, nothing guessed.

Each is a real executable in front of the embedded tracker, in both vocabularies; the console meets the same
ones on its own screens.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from helix_tui.core.editing.execute import gate as executable
from helix_tui.screens.editing.preview import HalfWaySheet, PreviewSheet, TroubleSheet
from tests.cli.conftest import Cli
from tests.conftest import ProjectFactory
from tests.core.supervision.conftest import go_line, row
from tests.double import write_ddx
from tests.screens.conftest import Console, MakeConsole
from tests.screens.conftest import console as console  # a fixture of the screens' room
from tests.screens.journal_host import at_rest

pytestmark = [pytest.mark.realtime, pytest.mark.long]

MakeDdx = Callable[..., Path]

TOO_OLD = """\
if args[:2] == ["bead", "update"]:
    print("Error: unknown flag: --set\\nUsage:\\n  ddx bead update", file=sys.stderr)
    sys.exit(1)
sys.exit(passed())"""

LOUD = """\
sys.stderr.write("warning: " + "x" * 60 + "\\n")
for _ in range(40_000): sys.stderr.write("noise " * 50 + "\\n")
sys.exit(passed())"""

CHATTY = """\
print("\\N{ELECTRIC LIGHT BULB} DDx 9.9 is available: run ddx upgrade", flush=True)
sys.exit(passed())"""

ZERO_WITH_AN_ERROR = """\
print("Error: bead: not today", file=sys.stderr)
sys.exit(0)"""

SECOND_FAILS = """\
if number() == 2:
    print("Error: bead: lock timeout (owner pid: 4711)", file=sys.stderr)
    sys.exit(1)
sys.exit(passed())"""

SOMETHING_ELSE = """\
args = [word.replace("=false", "=true") for word in args]
sys.exit(passed())"""

HANGS = "time.sleep(600)"

DIES = "os.kill(os.getpid(), 9)"


@pytest.fixture
def ddx(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeDdx:
    """Write a ddx that does as a script says; ``passed()`` is the embedded tracker's answer."""

    def make(code: str) -> Path:
        path = write_ddx(tmp_path / "bin" / "ddx", code)
        monkeypatch.setenv("PATH", f"{path.parent}:{os.defpath}")
        return path

    return make


@pytest.fixture
def make_root(project: ProjectFactory) -> Callable[[], Path]:
    def make() -> Path:
        rows = [row(f"demo-{number}") for number in range(3)]
        return project([go_line(each).rstrip("\n") for each in rows])

    return make


def rows_of(root: Path) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in map(json.loads, (root / ".ddx" / "beads.jsonl").read_text().splitlines())}


def hold(cli: Cli, root: Path, *ids: str) -> Any:
    return cli("eligible", *(ids or ("demo-0",)), "off", "--json", "-C", root)


def test_too_old(cli: Cli, ddx: MakeDdx, make_root: Callable[[], Path]) -> None:
    ddx(TOO_OLD)
    root = make_root()
    ran = hold(cli, root)
    assert ran.code == 69
    assert "unknown flag: --set" in ran.err
    assert "another release may" in ran.err
    assert ran.document["result"] == "failed"
    assert rows_of(root)["demo-0"].get("execution-eligible") is None


def test_missing(cli: Cli, make_root: Callable[[], Path], tmp_path: Path) -> None:
    root = make_root()
    ran = cli("eligible", "demo-0", "off", "--ddx", tmp_path / "nowhere", "-C", root)
    assert ran.code == 127
    assert "ddx binary not found at" in ran.err
    assert not (root / ".helix" / "journal.jsonl").exists()


@pytest.mark.parametrize("code", [LOUD, CHATTY])
def test_noise_is_no_harm(code: str, cli: Cli, ddx: MakeDdx, make_root: Callable[[], Path]) -> None:
    ddx(code)
    root = make_root()
    assert hold(cli, root).code == 0
    assert rows_of(root)["demo-0"]["execution-eligible"] is False
    made = cli("create", "A new one", "--labels", "helix,phase:build", "--type", "bug", "--json", "-C", root)
    assert made.code == 0, made.err
    (bead_id,) = made.document["created"]
    assert rows_of(root)[bead_id]["title"] == "A new one"


def test_an_error_with_exit_code_0(cli: Cli, ddx: MakeDdx, make_root: Callable[[], Path]) -> None:
    ddx(ZERO_WITH_AN_ERROR)
    root = make_root()
    ran = hold(cli, root)
    assert ran.code == 1
    assert "execution-eligible is absent, not False" in ran.err
    assert "not today" in ran.err, "what ddx itself said is not lost"
    assert ran.document["after"] == {}


def test_another_change_than_was_asked_for(cli: Cli, ddx: MakeDdx, make_root: Callable[[], Path]) -> None:
    ddx(SOMETHING_ELSE)
    root = make_root()
    ran = hold(cli, root)
    assert ran.code == 1
    assert "execution-eligible is True, not False" in ran.err
    assert rows_of(root)["demo-0"]["execution-eligible"] is True


def test_half_of_a_bulk_change(cli: Cli, ddx: MakeDdx, make_root: Callable[[], Path]) -> None:
    ddx(SECOND_FAILS)
    root = make_root()
    ran = hold(cli, root, "demo-0", "demo-1", "demo-2")
    assert ran.code == 1
    assert (ran.document["ran"], ran.document["result"]) == (1, "partial")
    assert list(ran.document["after"]) == ["demo-0"]
    assert "1 of 3 commands succeeded; already changed, not undone: demo-0" in ran.err
    assert "lock timeout (owner pid: 4711)" in ran.err
    assert [each.get("execution-eligible") for each in rows_of(root).values()] == [False, None, None]
    assert cli("undo", "-C", root).code == 0
    assert all("execution-eligible" not in each for each in rows_of(root).values())


def test_a_ddx_that_hangs_or_dies_is_told_with_its_state(
    cli: Cli, ddx: MakeDdx, make_root: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executable, "TIMEOUT_S", 1.0)
    root = make_root()
    for code, words in ((HANGS, "no answer after 1 s"), (DIES, "ddx ended with -9")):
        ddx(code)
        ran = hold(cli, root)
        assert ran.code == 1
        assert words in ran.err
        assert "nothing was changed" in ran.err


async def changed_from_the_console(app: Console, pilot: Any, *keys: str) -> None:
    await at_rest(pilot)
    await pilot.press(*keys)
    await at_rest(pilot)
    assert isinstance(app.screen, PreviewSheet)
    await pilot.press("enter")
    await at_rest(pilot)


LINES = [go_line(row(f"demo-{number}", "demo-9" if number else "demo-8")).rstrip("\n") for number in range(3)]
LINES += [go_line(row(f"demo-{number}")).rstrip("\n") for number in (8, 9)]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (TOO_OLD, ["unknown flag: --set", "another release may", "Nothing was changed"]),
        (ZERO_WITH_AN_ERROR, ["execution-eligible is absent, not False"]),
        (SOMETHING_ELSE, ["execution-eligible is True, not False"]),
        (DIES, ["ddx ended with -9", "Nothing was changed"]),
        (SECOND_FAILS, ["lock timeout", "1 of 2 ran", "failed", "u undoes the finished part"]),
    ],
)
async def test_the_console_says_what_stands(
    code: str,
    words: list[str],
    console: MakeConsole,
    ddx: MakeDdx,
) -> None:
    ddx(code)
    app = console(LINES)
    async with app.run_test(size=(120, 40)) as pilot:
        await at_rest(pilot)
        keys = ("space", "j", "space", "e") if code == SECOND_FAILS else ("e",)
        await changed_from_the_console(app, pilot, *keys)
        assert isinstance(app.screen, HalfWaySheet | TroubleSheet)
        for word in words:
            assert app.sees(word), (word, app.rows())
