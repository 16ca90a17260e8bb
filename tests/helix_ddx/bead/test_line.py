"""The command line: flags in every place and form, and complaints in DDx's words."""

from __future__ import annotations

import re

import pytest

from helix_ddx.__main__ import main
from helix_ddx.flags import parse_duration
from helix_ddx.program import VERBS, help_text
from tests.helix_ddx.bead.conftest import MakeDesk


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("create",), "accepts 1 arg(s), received 0"),
        (("create", "a", "b"), "accepts 1 arg(s), received 2"),
        (("dep", "add", "a"), "accepts 2 arg(s), received 1"),
        (("dep", "tree", "a", "b"), "accepts at most 1 arg(s), received 2"),
        (("list", "x"), 'unknown command "x" for "ddx bead list"'),
        (("create", "x", "--bogus"), "unknown flag: --bogus"),
        (("create", "x", "-p", "1"), "unknown shorthand flag: 'p' in -p"),
        (("create", "x", "--priority"), "flag needs an argument: --priority"),
        (("create", "x", "--=1"), "bad flag syntax: --=1"),
        (
            ("create", "x", "--priority", "high"),
            'invalid argument "high" for "--priority" flag: strconv.ParseInt: parsing "high": invalid syntax',
        ),
        (
            ("create", "x", "--priority", "99999999999999999999"),
            'invalid argument "99999999999999999999" for "--priority" flag: strconv.ParseInt: parsing '
            '"99999999999999999999": value out of range',
        ),
        (
            ("list", "--json=maybe"),
            'invalid argument "maybe" for "--json" flag: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        (("create", "x", "--set", "novalue"), "--set requires key=value format, got: novalue"),
        (("update", "demo-1", "--set", "novalue"), "--set requires key=value format, got: novalue"),
        (("update", "demo-1", "--unset", "events"), "cannot unset protected bead field: events"),
        (("update", "demo-1", "--set", "closing_commit_sha="), 'invalid closing_commit_sha "": empty value'),
        (("human", "resolve", "demo-1"), 'required flag(s) "action" not set'),
        (("human", "resolve", "demo-1", "--action", "retry"), "--note is required"),
        (("queue", "move", "demo-1"), "must specify exactly one of --before or --after"),
        (("clear-cooldown",), "requires --all or --reason <value>"),
        (("import", "--from", "jira"), "bead: unknown import source: jira"),
        (("validate-ready", "x"), 'unknown command "x" for "ddx bead validate-ready"'),
    ],
)
def test_a_mistake_is_told_as_ddx_tells_it(words: tuple[str, ...], complaint: str, desk: MakeDesk) -> None:
    answer = desk({"id": "demo-1"})(*words)
    assert (answer.rc, answer.out, answer.error) == (1, "", complaint)
    lines = answer.err.rstrip("\n").split("\n")
    assert lines[-1] == f"Error: {complaint}"
    assert ("Usage:" in lines) == (words[0] != "validate-ready")


@pytest.mark.parametrize(
    "words",
    [
        ("create", "x", "--priority", "3", "--labels", "a,b"),
        ("create", "--priority=3", "--labels=a,b", "x"),
        ("--verbose", "create", "--labels", "a,b", "--priority", "0x3", "--", "x"),
        ("-v", "create", "x", "--labels", "z", "--labels", "a,b", "--priority", "3"),
        ("--config", "somewhere", "create", "x", "--labels", "a,b", "--priority", "0b11"),
    ],
)
def test_flags_stand_anywhere(words: tuple[str, ...], desk: MakeDesk) -> None:
    bench = desk()
    bead_id = bench.must(*words)
    row = bench.rows()[bead_id]
    assert (row["title"], row["priority"], row["labels"]) == ("x", 3, ["a", "b"])


def test_a_word_that_is_no_verb_gets_the_help_of_the_one_above(desk: MakeDesk) -> None:
    bench = desk()
    assert bench("nonsense").out == bench("--help").out == bench().out
    assert bench("dep", "nonsense").out == bench("dep", "-h").out
    assert bench("nonsense").rc == 0


def test_every_verb_has_a_help_that_names_it() -> None:
    for verb in VERBS:
        text = help_text(verb)
        assert re.search(rf"(?m)^  ddx {' '.join(verb.path)}( |$)", text)
        assert text.count("Global Flags:") == 1
        assert text.endswith("\n")


def test_what_needs_ddx_itself_says_so(desk: MakeDesk) -> None:
    bench = desk({"id": "demo-1"})
    for words in (("archive",), ("migrate", "--help"), ("review", "demo-1"), ("doctor", "--fix")):
        answer = bench(*words)
        assert (answer.rc, answer.out) == (1, "")
        assert "needs ddx itself" in answer.error


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("work --bogus", "unknown flag: --bogus"),
        ("work --poll-interval 30s", "unknown flag: --poll-interval"),
        ("work now", 'unknown command "now" for "ddx work"'),
        ("try", "accepts 1 arg(s), received 0"),
        (
            "work --idle-interval 5",
            'invalid argument "5" for "--idle-interval" flag: time: missing unit in duration "5"',
        ),
        ("work clear-cooldowns", "requires --all or --status <value>"),
        ("agent execute-loop", 'unknown command "agent" for "ddx"'),
        ("--config x agent", 'unknown command "agent" for "ddx"'),
        ("-- bead", 'unknown command "--" for "ddx"'),
    ],
)
def test_the_loops_verbs_take_ddxs_flags_and_no_others(
    words: str,
    complaint: str,
    desk: MakeDesk,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(desk().root)
    assert main(words.split()) == 1
    assert capsys.readouterr().err.rstrip("\n").split("\n")[-1] == f"Error: {complaint}"


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("1m30s", 90), ("-1.5h", -5400), ("250ms", 0.25), ("+2us", 2e-6)]
)
def test_a_span_of_time_is_read_as_go_reads_it(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)
    for wrong in (f"{text}x", "", "s", "1 s", ".", "٣s"):
        with pytest.raises(ValueError, match="time: "):
            parse_duration(wrong)
