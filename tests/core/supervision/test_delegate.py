"""Which command executes and which asks, for ddx that tell much, little or nothing in their help."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from helix_tui.core.ddx.client import DdxError
from helix_tui.core.ground.process import Finished
from helix_tui.core.ground.project import find_project
from helix_tui.core.supervision.stages.delegate import AgentChoice, Delegate, read_answer, tokens_in, unheard

PROMPT = Path("p.md")


def _ddx(folder: Path, script: str) -> Delegate:
    path = folder / "ddx"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Delegate(find_project(folder), str(path), dict(os.environ))


def test_a_help_that_says_nothing_is_taken_for_april_throughout(tmp_path: Path) -> None:
    delegate = _ddx(tmp_path, "exit 0")
    agent_choice = AgentChoice("codex", "m", "low")
    flags = ("--harness", "codex", "--model", "m", "--effort", "low")
    assert delegate.drain(agent_choice) == ("agent", "execute-loop", "--once", "--json", *flags)
    assert delegate.one_bead("a-1", agent_choice) == ("agent", "execute-bead", "a-1", "--json", *flags)
    asked = delegate.question(PROMPT, agent_choice, writes=False)
    assert asked[:5] == ("agent", "run", "--json", "--prompt", "p.md")
    assert asked[5:7] == ("--permissions", "safe")


def test_who_reviews_is_told_to_a_loop_that_takes_it(tmp_path: Path) -> None:
    loop = '"agent execute-loop --help") echo "--once --json --harness --model%s"'
    agent_choice = AgentChoice("claude", "opus", reviewer="codex/org/model")
    start = ("agent", "execute-loop", "--once", "--json")
    own = ("--harness", "claude", "--model", "opus")
    script = f'case "$*" in {loop % " --review-harness --review-model"};; *) exit 1;; esac'
    review = ("--review-harness", "codex", "--review-model", "org/model")
    assert _ddx(tmp_path, script).drain(agent_choice) == (*start, *review, *own)
    (tmp_path / "older").mkdir()
    assert _ddx(tmp_path / "older", f'case "$*" in {loop % ""};; *) exit 1;; esac').drain(agent_choice) == (
        *start,
        *own,
    )


@pytest.mark.parametrize(
    ("reviewer", "who"),
    [
        ("", ("claude", "opus")),
        ("claude", ("claude", "opus")),
        ("codex", ("codex", "")),
        ("claude/haiku", ("claude", "haiku")),
    ],
)
def test_a_model_holds_for_the_harness_that_it_was_named_with(reviewer: str, who: tuple[str, str]) -> None:
    given = AgentChoice("claude", "opus", "high", reviewer).for_agent("alternate")
    assert ((given.harness, given.model), given.effort) == (who, "high")


def test_a_generic_help_is_no_proof_of_age(tmp_path: Path) -> None:
    assert _ddx(tmp_path, "echo a scripted ddx").drain(AgentChoice())[:2] == ("agent", "execute-loop")


def test_only_the_verbs_that_answer_are_used(tmp_path: Path) -> None:
    work, run = '"work --help") echo "--once --json --watch"', '"run --help") echo "--prompt --json"'
    script = f'case "$*" in {work};; {run};; *) exit 1;; esac'
    delegate = _ddx(tmp_path, script)
    assert delegate.drain(AgentChoice("codex")) == ("work", "--once", "--json")
    assert delegate.question(PROMPT, AgentChoice(), writes=True) == ("run", "--json", "--prompt", "p.md")
    with pytest.raises(DdxError) as caught:
        delegate.one_bead("a-1", AgentChoice())
    assert caught.value.exit_code == 69


def test_a_wish_that_a_command_does_not_carry_is_named() -> None:
    assert unheard(("work", "--model", "m"), AgentChoice("codex", "m")) == (
        "this ddx does not take --harness: codex is not passed on",
    )


def test_a_loop_whose_help_names_flags_but_no_json_is_too_old(tmp_path: Path) -> None:
    script = 'case "$*" in "agent execute-loop --help") echo "--once --poll-interval";; *) exit 1;; esac'
    with pytest.raises(DdxError) as caught:
        _ddx(tmp_path, script).drain(AgentChoice())
    assert caught.value.exit_code == 69


def test_no_ddx_is_127(tmp_path: Path) -> None:
    with pytest.raises(DdxError) as caught:
        Delegate(find_project(tmp_path), str(tmp_path / "none")).drain(AgentChoice())
    assert caught.value.exit_code == 127


@pytest.mark.parametrize(
    ("out", "err", "text", "tokens"),
    [
        (b'{"output": "hi", "input_tokens": 3, "output_tokens": 4}', b"", "hi", 7),
        (b'{"result": "hi", "usage": {"input_tokens": 1, "output_tokens": 1}}', b"", "hi", 2),
        (b"plain words\n", b"tokens used: 12\n", "plain words\n", 12),
        (b'advice\n{"output": "hi", "tokens": 5}\n', b"", "hi", 5),
        (b'{"type":"item.completed","item":{"text":"one"}}\n{"type":"x"}\n', b"", "one", 0),
        (b"", b"", "", 0),
    ],
)
def test_an_answer_is_read_in_every_form(out: bytes, err: bytes, text: str, tokens: int) -> None:
    answer = read_answer(Finished(("ddx",), 0, out, err, 1.0))
    assert (answer.text, answer.tokens, answer.problem) == (text, tokens, "")


def test_an_answer_of_a_failing_agent_says_why() -> None:
    finished = Finished(("ddx",), 1, b'{"output": "", "exit_code": 1, "error": "no provider"}', b"", 1.0)
    assert read_answer(finished).problem == "no provider"
    assert "no answer" in read_answer(Finished(("ddx",), -15, b"", b"", 9.0, timed_out=True)).problem


@pytest.mark.parametrize(
    ("text", "tokens"), [("tokens used\n1,234\n", 1234), ("Tokens used: 9.876", 9876), ("none", 0), ("", 0)]
)
def test_footers_of_harnesses_are_read(text: str, tokens: int) -> None:
    assert tokens_in(text) == tokens
