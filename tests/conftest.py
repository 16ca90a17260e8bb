"""What every test may use: an isolated home, projects in temporary folders, the shared data where present."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import mkdtemp
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from helix_tui.core.ddx import trial
from helix_tui.core.ddx.dialect import NO_TRIAL, Dialect
from helix_tui.core.ddx.trial import examine
from helix_tui.core.embedding.weights import find_weights
from helix_tui.core.ground.process import allow_programs
from helix_tui.core.ground.processes import start
from helix_tui.core.ground.trust import person
from tests.forked import CAN_FORK, ForkedPopen
from tests.programs import SCRIPT
from tests.rerun import pytest_configure, pytest_runtest_logreport, pytest_sessionfinish

__all__ = ["pytest_configure", "pytest_runtest_logreport", "pytest_sessionfinish"]  # hooks of this suite


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that read the sources run in one worker (`--dist loadgroup`), which parses them once for all."""
    for item in items:
        if isinstance(item, pytest.Function) and {"nodes_of", "syntax_of"} & vars(item.module).keys():
            item.add_marker(pytest.mark.xdist_group("sources"))


# how long an example takes says something of the machine, nothing of the code
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

Row = Mapping[str, Any] | str | bytes
"""A bead as a mapping, or a line as it is to stand in the file."""

ProjectFactory = Callable[..., Path]

_REPOSITORY = Path(__file__).resolve().parents[1]


_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Tester",
    "GIT_AUTHOR_EMAIL": "tester@example.com",
    "GIT_COMMITTER_NAME": "Tester",
    "GIT_COMMITTER_EMAIL": "tester@example.com",
}
"""The git of tests: nobody's settings, and a name to commit under, which a fresh machine lacks."""


@pytest.fixture(autouse=True, scope="session")
def _one_zone() -> Iterator[None]:
    """What a face says of an hour or a day is the same wherever the suite runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(autouse=True, scope="session")
def _nobodys_git() -> Iterator[None]:
    """Repositories that fixtures of a module or the session make have that name too."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _GIT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def _checked_weights(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the console keeps of having read the weights: without it each home would hash 90 MB anew."""
    cache = tmp_path_factory.mktemp("weights")
    find_weights(env={"XDG_CACHE_HOME": str(cache)})
    kept = cache / "helix-tui" / "weights.json"
    return kept.read_bytes() if kept.exists() else b"{}"


@pytest.fixture(autouse=True)
def _isolated(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, _checked_weights: bytes
) -> None:
    """No test sees or touches the home, the configuration or the temporary files of whoever runs it."""
    # mktemp looks through all that it has made
    homes = tmp_path_factory.getbasetemp() / "homes"
    homes.mkdir(exist_ok=True)
    home = Path(mkdtemp(dir=homes))
    places = {"HOME": home, "TMPDIR": home / "tmp"}
    places |= {f"XDG_{kind}_HOME": home / kind.lower() for kind in ("CONFIG", "CACHE", "DATA", "STATE")}
    for name, place in places.items():
        place.mkdir(exist_ok=True)
        monkeypatch.setenv(name, str(place))
    (home / "cache" / "helix-tui").mkdir()
    (home / "cache" / "helix-tui" / "weights.json").write_bytes(_checked_weights)
    monkeypatch.setattr("tempfile.tempdir", None)  # Python looks at TMPDIR once a process
    for name in list(os.environ):
        if name == "TEXTUAL_SNAPSHOT_TEMPDIR":
            continue  # the snapshot plugin's own, set for the whole session
        if name.startswith(("DDX_", "HELIX_", "GIT_", "TEXTUAL")) or name in {"NO_COLOR", "TMUX"}:
            monkeypatch.delenv(name)
    monkeypatch.setenv("HELIX_DDX_TRIAL", "off")  # a scripted ddx is asked for its help alone
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    for name, value in _GIT.items():
        monkeypatch.setenv(name, value)
    allow_programs()  # a console that left in this process has ended them
    person._notes.clear()
    monkeypatch.setattr(person, "attended", False)


@pytest.fixture(autouse=True)
def _programs_are_forked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded tracker and scripts of the tests are forked, not loaded anew, unless the process is the point."""
    if CAN_FORK and request.node.get_closest_marker("processes") is None:
        monkeypatch.setattr(start, "subprocess", SimpleNamespace(Popen=ForkedPopen))
        if "ddx" not in request.path.parts:
            monkeypatch.setattr(trial, "examine", _examined)


_dialects: dict[bytes, Dialect] = {}


def _examined(path: Path, root: Path, env: Mapping[str, str]) -> Dialect:
    """The dialect of a script, asked for its two dozen helps once a worker and not once a test."""
    script = path.read_bytes()
    if env.get(NO_TRIAL) != "off" or not script.startswith(SCRIPT.encode()):
        return examine(path, root, env)
    if script not in _dialects:
        _dialects[script] = examine(path, root, env)
    return _dialects[script]


@pytest.fixture(autouse=True)
def _databases_are_ours(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that a test or a fixture of a module writes by hand is this person's, but where strangers are met."""
    allows = person.allows
    if not {"hostile", "test_person.py"} & set(request.path.parts):
        monkeypatch.setattr(person, "allows", lambda entry: entry.kind == "database" or allows(entry))


@pytest.fixture(autouse=True)
def _nothing_caught(request: pytest.FixtureRequest) -> Iterator[None]:
    """The error barrier keeps a console alive; it must not keep a test green that planted nothing."""
    barrier = sys.modules.get("helix_tui.barrier")
    if barrier is not None:
        barrier.RECENT.clear()
    yield
    process = sys.modules.get("helix_tui.core.ground.process")
    # a console that left has ended all reads of its process, and the next test of this one runs git
    if process is not None:
        process.allow_programs()
    barrier = sys.modules.get("helix_tui.barrier")
    caught = list(barrier.RECENT) if barrier is not None else []
    if caught and request.node.get_closest_marker("plants") is None:
        pytest.fail("the error barrier caught:\n" + caught[0])


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the design, the references and the real data; a clone alone does not have it."""
    folder = _REPOSITORY.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the shared data is not on this machine")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> ProjectFactory:
    """Make a project: ``project(rows)`` writes ``.ddx/beads.jsonl``; ``git=True`` makes it a repository."""

    def make(rows: Iterable[Row] = (), *, name: str = "demo", git: bool = False) -> Path:
        root = tmp_path / name
        (root / ".ddx").mkdir(parents=True)
        (root / ".ddx" / "beads.jsonl").write_bytes(b"".join(_line(row) + b"\n" for row in rows))
        if git:
            for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "start")):
                subprocess.run(["git", "-C", str(root), *words], check=True, timeout=30)
        return root

    return make


def _line(row: Row) -> bytes:
    if isinstance(row, bytes):
        return row
    return (row if isinstance(row, str) else json.dumps(dict(row), sort_keys=True, separators=(",", ":"))).encode()
