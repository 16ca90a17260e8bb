"""The ledger of what this person allowed: exact, private, and empty when in doubt."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from helix_tui.core.ground.trust import person
from helix_tui.core.ground.trust.person import Allowed, LedgerUnreadable, state_folder

HOOK = Allowed("run", "/srv/clone", "lefthook.yml", "sha256:1")


def ledger() -> Path:
    """The file itself."""
    return state_folder() / "trust.json"


def test_only_what_was_allowed_exactly_is_allowed() -> None:
    """Another content, file or repository is not."""
    assert not person.allows(HOOK)
    person.allow(HOOK)
    assert person.allows(HOOK)
    for other in (
        Allowed("run", "/srv/clone", "lefthook.yml", "sha256:2"),
        Allowed("run", "/srv/clone", "", ""),
        Allowed("run", "/srv/other", "lefthook.yml", "sha256:1"),
        Allowed("database", "/srv/clone", "lefthook.yml", "sha256:1"),
    ):
        assert not person.allows(other)


def test_a_new_content_takes_the_place_of_the_older_one() -> None:
    """The old one, brought back, is asked about again."""
    newer = Allowed("run", "/srv/clone", "lefthook.yml", "sha256:2")
    person.allow(HOOK)
    person.allow(newer)
    assert person.load() == [newer]


def test_revoking_takes_a_repository() -> None:
    """Other repositories keep theirs."""
    database, other = Allowed("database", "/srv/clone", ".helix/helix.db", "7"), Allowed("run", "/srv/other")
    person.allow(HOOK, database, other)
    person.revoke("/srv/clone")
    assert person.load() == [other]


def test_the_file_is_for_its_owner_only() -> None:
    """Whatever the umask."""
    before = os.umask(0)
    try:
        person.allow(HOOK)
    finally:
        os.umask(before)
    assert stat.S_IMODE(ledger().stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b'{"run": "*"}',
        b'[{"kind":"everything","repository":"/srv/clone"}]',
        b'[{"kind":"run"}]',
        b"[" * 5_000,
        b'[{"kind":"run","repository":"\xff"}]',
    ],
)
def test_odd_content_allows_nothing_and_is_not_written_over(content: bytes) -> None:
    """The person is told, and decides."""
    ledger().parent.mkdir(parents=True)
    ledger().write_bytes(content)
    assert person.load() == []
    assert str(ledger()) in person.notes()[0]
    with pytest.raises(LedgerUnreadable):
        person.allow(HOOK)
    assert ledger().read_bytes() == content


def test_a_ledger_that_others_can_write_or_that_is_a_fifo_allows_nothing() -> None:
    """And neither keeps anybody waiting."""
    person.allow(HOOK)
    ledger().chmod(0o622)
    assert not person.allows(HOOK)
    ledger().unlink()
    os.mkfifo(ledger())
    assert person.load() == []
    assert len(person.notes()) == 2


def test_a_repository_cannot_stand_in_for_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative names in the environment are not looked for where the person happens to stand."""
    monkeypatch.chdir(tmp_path)
    for env in ({"XDG_STATE_HOME": "state", "HOME": "/home/ann"}, {"HOME": "/home/ann"}):
        assert state_folder(env) == Path("/home/ann/.local/state/helix-tui")
    assert state_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/helix-tui")
    for env in ({}, {"HOME": "here"}, {"HOME": ""}):
        assert state_folder(env).is_absolute()
        assert not state_folder(env).is_relative_to(tmp_path)


def test_entries_made_at_once_are_all_kept() -> None:
    """Each change is read and written under one lock."""
    entries = [Allowed("run", f"/srv/{number}") for number in range(24)]
    threads = [threading.Thread(target=person.allow, args=(entry,)) for entry in entries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(person.load()) == set(entries)
