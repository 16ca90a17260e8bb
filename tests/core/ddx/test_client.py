"""Asking a ddx: real processes, and errors that say what to do."""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from helix_tui.core.ddx.attempts.report import MalformedReport, parse_report
from helix_tui.core.ddx.attempts.sources.loop_logs import LoopLogs, parse_entry
from helix_tui.core.ddx.client import MALFORMED, MISSING, TOO_OLD, Ddx, DdxError
from helix_tui.core.ddx.help_text import flags_in
from helix_tui.core.ddx.probe import dialect_of
from helix_tui.core.ground.process import run
from tests.programs import write_program


@pytest.fixture
def make(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Write an executable that runs this Python code."""

    def program(code: str) -> Ddx:
        return Ddx(write_program(tmp_path / "ddx", f"import sys, os, json\nargs = sys.argv[1:]\n{code}"), tmp_path)

    return program


def test_a_command_gets_no_input_and_is_asked_quietly(make) -> None:  # type: ignore[no-untyped-def]
    ddx = make("print(json.dumps([args, sys.stdin.read(), os.environ['DDX_DISABLE_UPDATE_CHECK'], os.getcwd()]))")
    assert ddx.json("bead", "list") == [["bead", "list"], "", "1", str(ddx.root)]


@pytest.mark.parametrize(
    ("stderr", "message", "advice"),
    [
        ("Error: 1\\nUsage:\\n  ddx\\nError: bead: lock timeout (owner pid: 7)", "owner pid: 7", "holds the"),
        ("Error: bead: hook validate-bead-create: spec-id required", "spec-id required", "hook refuses"),
        ("Error: bead: circular dependency: a -> b", "a -> b", "must not wait"),
        ("only words\\n", "only words", "by hand"),
        (
            "Error: x\\nError: load: configuration validation failed: [SCHEMA]\\n\\n"
            "Details: 'oops' not allowed\\nno 'b'\\nUsage:\\n  ddx work",
            "failed: [SCHEMA]; 'oops' not allowed; no 'b'",
            "correct .ddx/config.yaml",
        ),
        ("Error: this project requires DDx v9.1-2 or newer (you have v8).\\nRun it", "requires DDx", "ddx upgrade"),
        ("Error: \\x1b[31mred\\x1b[0m", "red", "by hand"),
        ("", "no message", "by hand"),
    ],
)  # fmt: skip
def test_the_last_error_line_is_what_counts(make, stderr: str, message: str, advice: str) -> None:  # type: ignore[no-untyped-def]
    ddx = make(f'sys.stderr.write("{stderr}"); sys.exit(1)')
    with pytest.raises(DdxError) as caught:
        ddx.run("bead", "create", "x")
    assert message in caught.value.message
    assert advice in caught.value.advice
    assert caught.value.exit_code == 1
    assert caught.value.argv[1:] == ("bead", "create", "x")


@pytest.mark.parametrize(
    ("said", "refuses"),
    [
        ("Error: configuration validation failed: [SYNTAX] line 3", True),
        ("Error: this project requires DDx v9 or newer (you have v8).", True),
        ('Error: unknown command "config" for "ddx"', False),
        ("", False),
    ],
)
def test_what_would_end_every_worker_at_its_start_is_asked_without_starting_one(
    make: Callable[[str], Ddx], said: str, refuses: bool
) -> None:
    ddx = make(f"assert args == ['config', '--validate', '--offline']\nsys.exit({said!r} or 0)")
    assert (ddx.refusal() is not None) == refuses


def test_what_it_does_not_know_means_it_is_too_old(make) -> None:  # type: ignore[no-untyped-def]
    ddx = make('sys.stderr.write("Error: unknown flag: --queue-rank\\n"); sys.exit(1)')
    with pytest.raises(DdxError) as caught:
        ddx.run("bead")
    assert caught.value.exit_code == TOO_OLD


def test_a_missing_ddx_is_told_as_missing(tmp_path: Path) -> None:
    ddx = Ddx(tmp_path / "none", tmp_path)
    for ask in (lambda: ddx.run("x"), lambda: dialect_of(ddx.path, tmp_path)):
        with pytest.raises(DdxError) as caught:
            ask()
        assert caught.value.exit_code == MISSING
        assert "DDX_BIN" in caught.value.advice


def test_what_is_no_program_is_told(tmp_path: Path) -> None:
    (tmp_path / "ddx").write_bytes(b"\x7fELF nonsense")
    (tmp_path / "ddx").chmod(0o755)
    with pytest.raises(DdxError, match="does not start"):
        Ddx(tmp_path / "ddx", tmp_path).run("x")


@pytest.mark.parametrize("printed", ["", "no json", "{", '{"a":'])
def test_malformed_output_keeps_what_was_printed(make, printed: str) -> None:  # type: ignore[no-untyped-def]
    ddx = make(f"sys.stdout.write({printed!r})")
    with pytest.raises(DdxError) as caught:
        ddx.json("x")
    assert (caught.value.exit_code, caught.value.output) == (MALFORMED, printed.encode())


def test_a_text_stream_before_the_object_is_no_harm(make) -> None:  # type: ignore[no-untyped-def]
    ddx = make('print("progress {\\n" + json.dumps({"results": [{"bead_id": "b"}]}, indent=2))')
    assert ddx.json("work") == {"results": [{"bead_id": "b"}]}
    assert ddx.report(ddx.attempt("work")).results == ({"bead_id": "b"},)


@pytest.mark.parametrize(
    ("before", "rows"),
    [("\U0001f4a1 DDx 9 is available\n\n", [{"id": "a"}]), ("[1] update\n[notice] x\n", []), ("{\n", [1])],
)
def test_an_advisory_line_before_a_list_is_no_harm(make, before: str, rows: list[object]) -> None:  # type: ignore[no-untyped-def]
    ddx = make(f"print({before!r} + json.dumps({rows!r}, indent=2))")
    assert ddx.json("bead", "ready", "--json") == rows


def has_ended(pid: int) -> bool:
    """Whether a process that was killed is gone; the kernel may take its moment."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 10)[0])
    finally:
        os.close(handle)


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux lets one wait for a grandchild")
@pytest.mark.parametrize("first", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN); "])
def test_time_up_ends_the_program_and_its_children(make, tmp_path: Path, first: str) -> None:  # type: ignore[no-untyped-def]
    note = tmp_path / "child"
    ddx = make(
        "import subprocess, signal\n"
        f"{first}\n"
        f"child = subprocess.Popen([sys.executable, '-c', 'import signal; {first}signal.pause()'])\n"
        f"{'signal.signal(signal.SIGTERM, signal.SIG_DFL)' if first else ''}\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "signal.pause()"
    )
    with pytest.raises(DdxError, match="no answer after"):
        ddx.run("x", timeout=1.5)
    assert note.exists()
    assert has_ended(int(note.read_text()))


def test_output_is_capped_without_ending_the_command(tmp_path: Path) -> None:
    code = "import sys; sys.stdout.write('x' * 300_000); sys.stderr.write('done')"
    finished = run([sys.executable, "-c", code], cap=1000)
    assert (len(finished.stdout), finished.truncated, finished.rc, finished.err) == (1000, True, 0, "done")


def test_a_child_that_holds_the_pipe_is_not_waited_for(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; print('started', flush=True);"
        "words = [sys.executable, '-c', 'import signal; signal.pause()'];"
        "p = subprocess.Popen(words, start_new_session=True);"
        "print(p.pid, flush=True)"
    )
    finished = run([sys.executable, "-c", code], timeout=60)
    assert not finished.timed_out
    os.kill(int(finished.out.split()[1]), 9)


HELPS = """
known = json.loads({helps!r})
words = [a for a in args if a != "--help"]
while words and " ".join(words) not in known: words.pop()
if not words: sys.exit(1)
print("About it.\\n\\nUsage:\\n  ddx " + " ".join(words) + " [flags]\\n\\nFlags:\\n" + known[" ".join(words)])
"""


@pytest.mark.parametrize(
    ("helps", "drain", "plan"),
    [
        ({"agent execute-loop": "  --once\n  --json", "agent run": "", "work": "  --once", "bead ready": ""},
         ("agent", "execute-loop"), False),
        ({"work": "  --once\n  --watch", "work plan": "", "try": ""}, ("work",), True),
        ({"work": "  --watch", "agent execute-loop": ""}, ("work",), False),
        ({"work": "  --once"}, ("work",), False),
        ({}, (), False),
    ],
)  # fmt: skip
def test_each_verb_is_asked_for_by_its_own_help(make, helps, drain, plan) -> None:  # type: ignore[no-untyped-def]
    ddx = make(HELPS.format(helps=json.dumps(helps)))
    dialect = dialect_of(ddx.path, ddx.root)
    assert (dialect.drain, "plan" in dialect.verbs, dialect.proven) == (drain, plan, False)
    if drain:
        assert not dialect.verbs["drain"].knows("--wat")
    assert dialect_of(ddx.path, ddx.root) is dialect, "asked once for one executable"


def test_a_flag_that_a_help_only_mentions_is_none_of_its_flags() -> None:
    flags = "Flags:\n  -h, --help  help\n      --json"
    text = f"The legacy --local flag is ignored.\n\nUsage:\n  ddx work\n\n{flags}"
    assert flags_in(text) == {"--help", "--json"}
    assert flags_in("--once --json") == {"--once", "--json"}


def test_ready_execution_is_the_ids_in_order(make) -> None:  # type: ignore[no-untyped-def]
    assert make('print(json.dumps([{"id": "b"}, {"id": "a"}]))').ready_execution() == ("b", "a")
    assert make("print('null')").ready_execution() == ()
    with pytest.raises(DdxError, match="not a list"):
        make("print('{\"status\": 1}')").ready_execution()


@pytest.mark.parametrize(
    ("output", "document"),
    [
        ('{"a": 1}', {"a": 1}),
        ('x\n{\n  "a": {\n  }\n}\n', {"a": {}}),
        ('{\n  "old": 1\n}\nmore\n{\n  "a": 2\n}\ntrailing words\n', {"a": 2}),
        ('{\r\n  "a": 1\r\n}\r\n', {"a": 1}),
        ('{\n "results": [\n{\n}\n]\n}', {"results": [{}]}),
        ('{\n  "a": 1\n}\n{\n  "cut', None),
        ('{"level": "info"}\n{\n  "attempts": 1\n}\n{"level": "bye"}\n', {"attempts": 1}),
        ('{"attempts": 1, "results": []}\n{"level": "inf', {"attempts": 1, "results": []}),
        ('{"level": "info"}\n{\n  "attempts": 1,\n  "resul', None),
        ('{\n  "attempts": 1,\n12:00:00 do thinking ...\n  "results": []\n}\n', None),
        ("", None),
        ("{\n", None),
    ],
)
def test_the_object_at_the_end_of_a_stream(output: str, document: object) -> None:
    if document is None:
        with pytest.raises(MalformedReport):
            parse_report(output)
    else:
        assert parse_report(output).document == document


def test_an_open_set_of_fields(shared: Path) -> None:
    for path in sorted((shared / "data" / "ddx" / "loops").glob("*.jsonl")):
        entries = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
        printed = "\n".join(entry["text"] for entry in entries if entry["src"] == "stdout")
        if "\n{\n" in f"\n{printed}":
            report = parse_report(printed)
            assert isinstance(report.document.get("project_root", ""), str)
            assert all(result["bead_id"] for result in report.results)


def test_loop_logs_give_new_entries_of_any_type(tmp_path: Path) -> None:
    logs = LoopLogs(tmp_path)
    assert logs.poll() == []
    cli, server = tmp_path / "agent-logs", tmp_path / "workers" / "worker-1"
    cli.mkdir()
    server.mkdir(parents=True)
    (cli / "agent-loop-1.jsonl").write_text('{"type":"loop.start","ts":"2026-08-01T00:00:00Z","data":{}}\n{"type":"lo')
    (cli / "svc-1.jsonl").write_text('{"type":"session.start"}\n')
    (server / "worker-events.jsonl").write_text('{"type":"brand.new","data":{"bead_id":"b"}}\nnonsense\n[]\n')
    entries = logs.poll()
    assert [(entry.type, entry.bead_id) for entry in entries] == [("loop.start", ""), ("brand.new", "b")]
    assert logs.poll([server / "worker-events.jsonl"]) == []
    assert parse_entry(b'{"type": 5}') is None
