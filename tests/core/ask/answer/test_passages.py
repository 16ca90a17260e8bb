"""What a question is about, how its words may be written, and which passage answers it whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from helix_tui.core.ask.answer.branches import Branch
from helix_tui.core.ask.answer.confidence import agreement, kind_of_answer
from helix_tui.core.ask.answer.passages import Passage
from helix_tui.core.ask.answer.sentences import MOST_QUOTED, cut_code, cut_document, imports_in
from helix_tui.core.ask.records import Span
from helix_tui.core.ask.retrieval.subject import Asks, Wording, may_have, read_subject
from helix_tui.core.ask.tokens import make_terms
from tests.core.ask.sessions.solar import document, run_of, write


@pytest.mark.parametrize(
    ("question", "asks", "about"),
    [
        ("How do I change the theme?", "how to", ["theme"]),
        ("Where are leases written and when do they expire?", "where", ["leases", "written", "expire"]),
        ("Why is a claim not given back?", "why", ["claim", "back"]),
        ("What happens when the disk is full?", "what happens", ["disk", "full"]),
        ("Who calls resolve_lease()?", "who uses", ["resolve", "lease"]),
        ("Which kinds of files are searched?", "list", ["searched"]),
        ("How long may a lease last?", "value", ["lease"]),
        ("What is the difference between a bead and a task?", "compare", ["bead", "task"]),
        ("Where is the difference between two beads shown?", "where", ["two", "beads", "shown"]),
        ("What happens if I ask for a different queue?", "what happens", ["queue"]),
        ("Which parts must be switched on?", "list", ["switched"]),
        ("How many beads are there if I don't ask a worker for more?", "value", ["beads", "worker"]),
        ("How do I ask the user?", "how to", ["ask"]),
        ("What is an attempt?", "what is", ["attempt"]),
        ("How does the queue work?", "how it works", ["queue"]),
    ],
)
def test_the_frame_of_a_question_is_no_part_of_its_subject(question: str, asks: str, about: list[str]) -> None:
    subject = read_subject(question)
    assert subject.asks == asks
    assert [one.word for one in subject.words if one.weight == 1] == about


def test_a_frequent_noun_stays_in_the_subject_and_never_weighs_nothing() -> None:
    wording = Wording(read_subject("Where is the pane of a session closed?"), lambda term: 0.9)
    assert [one.word for one in wording.subject.words] == ["pane", "session", "closed"]
    assert min(wording.weights) > 0


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("environment", "env"),
        ("message", "err_msg"),
        ("file names", "DOTFILENAMES filename"),
        ("directory", "baseDir"),
        ("expression", "exprParser"),
        ("unselective", "selective"),
    ],
)
def test_plain_words_reach_identifiers(asked: str, written: str) -> None:
    wording = Wording(read_subject(f"Where is the {asked} kept?"), lambda term: 0.1)
    assert wording.covered(wording.in_text(written)) > 0.3
    assert wording.covered(wording.in_text("unrelated words")) == 0


def test_a_word_itself_counts_more_than_its_short_form() -> None:
    wording = Wording(read_subject("Where is the environment read?"), lambda term: 0.1)
    assert wording.covered(wording.in_text("environment")) > wording.covered(wording.in_text("env")) > 0


DOCUMENT_TEXT = """\
# Guide

Something else.

## Exit codes

The program ends with one of these:

- 0: all went well
- 3: the file is locked

```
a fenced block

with a gap
```

## Another

Not this.
"""
DOCUMENT = DOCUMENT_TEXT.split("\n")


def test_a_list_is_quoted_whole_with_the_sentence_that_leads_to_it() -> None:
    at = DOCUMENT.index("- 3: the file is locked")
    start, end = cut_document(DOCUMENT, at, at)
    assert DOCUMENT[start].startswith("The program ends")
    assert DOCUMENT[end] in ("- 3: the file is locked", "```")
    assert "Not this." not in DOCUMENT[start : end + 1]


def test_a_fenced_block_is_never_cut_at_its_gap() -> None:
    at = DOCUMENT.index("a fenced block")
    start, end = cut_document(DOCUMENT, at, at)
    assert "with a gap" in DOCUMENT[start : end + 1]


def test_a_definition_is_quoted_with_its_comment_and_a_long_one_by_its_paragraph() -> None:
    code = ["x = 1", "", "/*", " takes the lock", " */", "void lock() {", "  a();", "}", ""]
    assert cut_code(code, 6, 6, [(5, 7)]) == (2, 7)
    long = ["def f():", *(f"    a{n}" if n % 10 else "" for n in range(1, 200))]
    start, end = cut_code(long, 105, 106, [(0, 199)])
    assert start >= 101
    assert end <= 109
    assert end - start < MOST_QUOTED


FILES = {
    "README.md": "# Parcel\n\nA small tool that packs parcels.\n\n## Colours\n\n"
    "To change the colours, set `PARCEL_COLOURS`:\n\n"
    "```sh\nexport PARCEL_COLOURS=dark\n```\n",
    "parcel/limits.py": '"""What a parcel may weigh."""\n\n# heavier ones break the belt\n'
    "MAX_WEIGHT = 31\nMAX_PARCELS = 12\n",
    "parcel/pack.py": "from parcel.limits import MAX_WEIGHT\n\n\nclass TooHeavyError(ValueError):\n    pass\n\n\n"
    "def pack(parcel):\n    if parcel.weight > MAX_WEIGHT:\n        raise TooHeavyError(parcel)\n"
    "    return box(parcel)\n",
    "parcel/noise.py": "".join(f"def change_{n}():\n    return {n}\n\n\n" for n in range(30)),
    "CHANGELOG.md": "# Changes\n\n- the weight of a parcel is limited\n- change the colours of a parcel\n",
}


@pytest.fixture(scope="module")
def parcel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("parcel"), FILES)


def test_how_to_is_answered_by_instructions_with_their_code(parcel: Path) -> None:
    found = document(parcel, "How do I change the colours?")
    assert "    export PARCEL_COLOURS=dark" in found["answer"]
    assert found["answer"].startswith("`README.md:5-11` `Parcel > Colours` [1]\n    ")


def test_a_section_and_a_definition_are_quoted_whole_with_their_beginning(tmp_path: Path) -> None:
    reefing = "## Reefing\n\nOnly in a storm.\n\nReef the sail by the lower rope.\n\nThen tie the knot.\n"
    files = {
        "docs/sail.md": f"# Sail\n\n## Hoisting\n\nUp.\n\n{reefing}\n## Furling\n\nDown.\n",
        "src/sail.py": "def furl(boat):\n    boat.stop()\n"
        + "".join(f"    boat.lay({n})\n\n" for n in range(18))
        + "    canvas = boat.canvas\n    canvas.roll()\n",
    }
    root = write(tmp_path, files)
    quote = "".join(f"    {line}".rstrip() + "\n" for line in reefing.splitlines())
    found = document(root, "How do I reef the sail by a rope?")
    assert quote in found["answer"]
    assert "    Up." not in found["answer"].split("Also:")[0].split("See also:")[0]
    assert "    def furl(boat):" in document(root, "Where is the canvas of a boat rolled?")["answer"]


def test_lines_that_bring_names_answer_nothing(tmp_path: Path) -> None:
    names = "".join(f"    barge_harbour_{n},\n" for n in range(9))
    files = {
        "src/fleet.py": f"from yard import (\n    dredge_harbour_with_barge,\n{names})\n\nFLEET = 3\n",
        "src/yard.py": "def dig(ground):\n    # the harbour is dredged\n    return ground - 1\n",
    }
    found = document(write(tmp_path, files), "Where is the harbour dredged by a barge?")
    assert found["passages"][0]["file"] == "src/yard.py"


@pytest.mark.parametrize(
    ("lines", "brings"),
    [
        (["from a import (", "    b,", ")", "c = 1"], [0, 1, 2]),
        (["use crate::a::{", "    b,", "};", "fn c() {}"], [0, 1, 2]),
        (["import the file, then", "use the force", "from the server"], []),
        (["export default {", "  run() {},", "}"], []),
    ],
)
def test_what_only_brings_names_is_told_from_prose_and_code(lines: list[str], brings: list[int]) -> None:
    assert list(imports_in(lines)) == brings


def test_how_much_is_answered_by_the_line_with_the_number(parcel: Path) -> None:
    assert "    MAX_WEIGHT = 31" in document(parcel, "How much may a parcel weigh at most?")["answer"]


def test_what_happens_is_answered_by_the_branch_in_the_code(parcel: Path) -> None:
    found = document(parcel, "What happens when a parcel is too heavy?")
    assert "        raise TooHeavyError(parcel)" in found["answer"]


def test_what_answers_is_kept_before_anything_weaker(parcel: Path) -> None:
    found = document(parcel, "How do I change the colours?")
    assert found["evidence"][0]["why"] == "answers best"
    assert found["evidence"][0]["file"] == "README.md"


def test_quoted_lines_claim_nothing_and_cite_nothing(tmp_path: Path) -> None:
    root = write(tmp_path, {"docs/locks.md": "# Locks\n\nA lock is taken by the writer, see [7] and [8].\n"})
    found = document(root, "How is a lock taken?")
    assert "see [7] and [8]" in found["answer"]
    assert {one["id"] for one in found["citations"]} == {1}
    assert found["grounded_claim_ratio"] == 1


@pytest.mark.parametrize(
    ("question", "tier"),
    [
        ("How do I change the colours?", "answered"),
        ("How much may a parcel weigh at most?", "answered"),
        ("How can I change the colours for somebody?", "answered"),  # "somebody" stands nowhere
        ("How can I change the colours for kings?", "not found"),
        ("What happens when a heavy parcel is posted?", "answered"),  # "posted" is said otherwise
        ("What happens when a heavy parcel is sent by rocket?", "not found"),
        ("Where is the xylophone tuned?", "not found"),
    ],
)
def test_an_answer_is_called_what_its_passages_bear_out(parcel: Path, question: str, tier: str) -> None:
    assert document(parcel, question)["tier"] == tier


@pytest.mark.parametrize("told_in", ["tests/test_sail.py", "src/sail.py"])
def test_what_only_a_test_speaks_of_is_not_found(tmp_path: Path, told_in: str) -> None:
    files = {
        "src/harbour.py": 'def dredge(barge):\n    """Dredge the harbour with a barge."""\n    return barge\n',
        told_in: "def test_spinnaker():\n    # the spinnaker is hoisted before the harbour\n    assert hoist\n",
    }
    found = document(write(tmp_path, files), "Where is the spinnaker hoisted?")
    only_in_test = told_in.startswith("tests/")
    assert (found["tier"] == "not found") == only_in_test
    assert ("Nothing that was searched mentions “spinnaker”" in found["answer"]) == only_in_test
    assert (found["tier_selected"] != "Grounded") == only_in_test


def test_a_word_that_stands_nowhere_makes_an_answer_none(tmp_path: Path) -> None:
    root = write(tmp_path, {"README.md": "# Nets\n\nA net is connected by ropes. Use `connect` to connect a rope.\n"})
    assert document(root, "How do I connect to a Postgres database?")["tier"] == "not found"
    assert document(root, "How do I connect a rope?")["tier"] != "not found"


@pytest.mark.parametrize(
    ("question", "is_there"),
    [
        ("How do I moor on Kubernetes?", False),  # written as a name
        ("How do I moor a steel hawser?", False),  # a thing with a word before it
        (
            "What happens when a user mistypes the boat?",
            True,
        ),  # what somebody does is said in many ways
    ],
)
def test_names_and_things_that_stand_nowhere_are_told(tmp_path: Path, question: str, is_there: bool) -> None:
    text = "# Mooring\n\nA user moors a boat with a rope. Use `moor --steel` to moor the boat.\n"
    files = {"README.md": text} | {f"docs/{at}.md": f"# Tide {at}\n\nWater rises by {at}.\n" for at in range(9)}
    assert (document(write(tmp_path, files), question)["tier"] != "not found") == is_there


def _passage(
    *, together: float = 1.0, form: float = 1.0, line: float = 1.0, score: float = 2.0, text: str = ""
) -> Passage:
    return Passage(Span("a.py", 1, 2, "lines", "", text, ""), score, together, 1, line, form, 0.0, 0.0)


def test_a_list_is_answered_by_a_passage_of_items_only() -> None:
    assert kind_of_answer("list", [_passage(form=0.6)]) == "answered"
    assert kind_of_answer("list", [_passage(form=0.4), _passage()]) == "evidence found"
    # of which one line says what they are
    assert kind_of_answer("list", [_passage(form=0.6, line=0.4), _passage()]) == "evidence found"
    assert kind_of_answer("how to", [_passage(form=0.4)]) == "answered"


def test_a_meaning_is_answered_by_a_line_that_defines_it(tmp_path: Path) -> None:
    drift = 'class Drift:\n    """Drift of all drifts."""\n\n    def drift(self, drift):\n        return drift.drift\n'
    files = {f"src/drift/drift_{at}.py": drift.replace("all", f"all {at}") for at in range(6)}
    unexplained = document(write(tmp_path / "unexplained", files), "What is drift?")
    assert unexplained["tier"] == "evidence found"
    row = "| drift, creep | the harbour moved since the chart was drawn |\n"
    terms = {"docs/glossary.md": f"# Glossary\n\n| word | means |\n|---|---|\n| tide | water |\n{row}"}
    found = document(write(tmp_path / "explained", files | terms), "What is drift?")
    assert (found["tier"], found["passages"][0]["file"]) == ("answered", "docs/glossary.md")


@pytest.mark.parametrize(
    ("line", "defines"),
    [
        ("| worker, harness | the process |", True),
        ("- **Harness**: the agent program", True),
        ("A harness is an agent program.", True),
        ("The harness is slow.", False),
        ("| worker | the harness |", False),
    ],
)
def test_a_line_defines_what_it_begins_with(line: str, defines: bool) -> None:
    direct = read_subject("What is a harness?").direct
    assert direct is not None
    assert bool(direct.search(line)) == defines


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("Define TS_ratio in this repo.", "TS_ratio is the crossing time divided by the period."),
        ("What is a dead letter?", "A dead_letter is a message that nobody takes."),
        ("What is a DeadLetter?", "- **DeadLetter**: a message that nobody takes"),
    ],
)
def test_a_name_in_code_is_defined_as_it_is_written(question: str, line: str) -> None:
    direct = read_subject(question).direct
    assert direct is not None
    assert direct.search(line)
    assert not direct.search(f"See also: {line}")


@pytest.mark.parametrize("asks", ["where", "why"])
def test_a_place_and_a_reason_are_answered_by_a_passage_that_leads_the_second(asks: Asks) -> None:
    weak = _passage(score=1.2, together=0.5, line=0.3)
    assert kind_of_answer(asks, [weak, replace(weak, score=0.95)]) == "answered"
    assert kind_of_answer(asks, [weak, replace(weak, score=1.05)]) == "evidence found"
    assert kind_of_answer(asks, [weak]) == "evidence found"
    assert kind_of_answer("how to", [weak, replace(weak, score=0.95)]) == "evidence found"


def test_a_comparison_is_answered_by_a_passage_that_says_both_things() -> None:
    assert kind_of_answer("compare", [_passage(score=1.5, together=0.8)]) == "answered"
    assert kind_of_answer("compare", [_passage(score=1.5, together=0.7)]) == "evidence found"


def test_an_irregular_form_says_its_verb() -> None:
    wording = Wording(read_subject("Who chose the berth that was written down?"), lambda _: 0.1)
    assert wording.in_text("choose_berth") == {0: 0.7, 1: 1.0}
    assert wording.in_text("the log is what the harbour master wrote") == {2: 0.7}
    # the other way round, and a form that begins otherwise
    assert Wording(read_subject("How do I seek a rope?"), lambda _: 0.1).in_text("a rope was sought") == {
        0: 0.7,
        1: 1.0,
    }
    # a form that is a word of code itself stays apart
    assert Wording(read_subject("How do I bind a rope?"), lambda _: 0.1).in_text("rope of a bound") == {1: 1.0}


def test_one_word_is_answered_by_a_sure_place_only() -> None:
    assert read_subject("How do I make it work with my rope?").one_word
    assert not read_subject("How do I moor a boat with my rope?").one_word
    assert not read_subject("Who calls moor_boat?").one_word
    assert kind_of_answer("how to", [_passage(score=1.5)]) == "answered"
    assert kind_of_answer("how to", [_passage(score=1.5)], one_word=True) == "evidence found"
    assert kind_of_answer("how to", [_passage(score=1.9)], one_word=True) == "answered"


@pytest.mark.parametrize(
    ("second", "fourth", "called"), [(1.4, 1.3, "answered"), (1.4, 1.4, "evidence found"), (1.5, 1.3, "answered")]
)
def test_a_reason_is_answered_where_it_leads_the_fourth_place(second: float, fourth: float, called: str) -> None:
    scores = (1.5, second, fourth, fourth)
    assert kind_of_answer("why", [_passage(score=score) for score in scores]) == called
    assert kind_of_answer("why", [_passage(score=score) for score in scores[:3]]) == "answered"
    assert kind_of_answer("how to", [_passage(score=score) for score in scores]) == "answered"
    high = [_passage(score=score + 0.5) for score in scores]
    assert kind_of_answer("whether", high) == kind_of_answer("how it works", high) == called
    assert kind_of_answer("where", high) == "answered"


@pytest.mark.parametrize(("second", "called"), [(1.6, "answered"), (1.7, "evidence found")])
def test_what_happens_is_answered_by_a_branch_that_leads_the_second(second: float, called: str) -> None:
    branch = replace(_passage(together=0.4, score=1.85), branch=Branch("a.py", 1, 2, 2, 2, 1.0, 1.0))
    assert kind_of_answer("what happens", [branch, replace(branch, score=second)]) == called
    assert kind_of_answer("what happens", [branch]) == "evidence found"


@pytest.mark.parametrize(
    ("second", "fourth", "called"),
    [(1.7, 1.3, "answered"), (1.7, 1.4, "evidence found"), (1.8, 1.3, "evidence found")],
)
def test_what_happens_is_answered_by_a_branch_far_ahead_of_the_fourth(
    second: float, fourth: float, called: str
) -> None:
    branch = replace(_passage(together=0.4, score=1.85), branch=Branch("a.py", 1, 2, 2, 2, 1.0, 1.0))
    others = [replace(branch, score=score) for score in (second, fourth, fourth)]
    assert kind_of_answer("what happens", [branch, *others]) == called
    # with fewer places there is no fourth
    assert kind_of_answer("what happens", [branch, *others[:2]]) == "evidence found"


def test_a_value_is_answered_by_what_is_named_after_it() -> None:
    place = _passage(score=1.2)
    assert kind_of_answer("value", [place]) == "evidence found"
    assert kind_of_answer("value", [replace(place, named=0.2)]) == "answered"
    assert kind_of_answer("value", [place, replace(place, named=0.9)]) == "evidence found"


def test_places_far_down_the_ranking_of_files_answer_only_with_nearly_all_of_the_subject() -> None:
    ranked = [*(f"{at}.py" for at in range(9)), "a.py"]
    assert agreement([_passage()] * 5, ranked) == pytest.approx(4 / 10)
    assert agreement([_passage()], ["b.py"]) == 0
    assert agreement([_passage(), _passage()], ["a.py", "b.py", "a.py"]) == 2
    for kind in ("how to", "list"):
        assert kind_of_answer(kind, [_passage(together=0.8)], agreed=1.1) == "evidence found"
        assert kind_of_answer(kind, [_passage(together=0.8)], agreed=1.2) == "answered"
        assert kind_of_answer(kind, [_passage(together=0.9)], agreed=0.1) == "answered"


def test_what_is_done_without_is_told_by_a_line_that_does_without_it(tmp_path: Path) -> None:
    ropes = "".join(f"## Rope {at}\n\nUse a rope: run `rope --{at}` to use the rope.\n\n" for at in range(9))
    hooks = "# Hooks\n\nA boat is moored without a rope by `hook`.\n"
    write(tmp_path, {"docs/ropes.md": f"# Ropes\n\n{ropes}", "docs/hooks.md": hooks})
    found = document(tmp_path, "How can I use it without a rope?")
    assert (found["passages"][0]["file"], found["tier"]) == ("docs/hooks.md", "answered")


def test_an_identifier_with_a_stop_word_is_found_whole(tmp_path: Path) -> None:
    calls = "from moor import to_rope\n\n\ndef tie(boat):\n    return to_rope(boat)\n"
    source = 'def to_rope(boat):\n    """The rope of a boat."""\n    return boat.line\n'
    ropes = {f"rope_{at}.py": f"def rope_{at}(boat):\n    return boat.rope\n" for at in range(9)}
    found = document(write(tmp_path, {"moor.py": source, "tie.py": calls} | ropes), "Who calls to_rope?")
    assert (found["tier"], found["subject"]) == ("answered", ["calls", "to_rope"])
    assert "return to_rope(boat)" in found["answer"]
    assert {one["file"] for one in found["passages"] if one["together"] >= 0.7} == {"moor.py", "tie.py"}
    # with hyphens it is no word of any text
    assert [one.word for one in read_subject("Who sends Moored-By?").words] == ["sends", "moored"]


def test_a_place_is_cited_with_all_lines_that_were_found_and_quoted_with_its_best(tmp_path: Path) -> None:
    tide = 'def tide_at_pier(hours):\n    """The tide at pier {0}."""\n    return hours + {0}\n'
    rest = "".join(f"\n\ndef boat_{at}():\n    return {at}\n" for at in range(4))
    files = {f"pier_{at}.py": tide.format(at) + rest for at in range(9)}
    found = document(write(tmp_path, files), "How does the tide at a pier return?")
    passages = run_of(tmp_path, "How does the tide at a pier return?").passages
    assert len(passages) > 4
    for one in passages:
        assert (one.span.start, one.span.end) == one.found
        assert "boat_3" in one.span.text
        assert "boat_3" not in one.text
        assert one.span.text.split("\n")[one.line - one.span.start] in tide.format(one.span.file[5])
    quoted = found["citations"][0]
    first, last = passages[0].lines
    assert f"`{quoted['file']}:{first}-{last}`" in found["answer"].splitlines()[0]
    assert (quoted["start"], quoted["end"]) == passages[0].found
    assert "boat_3" not in found["answer"].partition("See also")[0]


def test_the_lines_beside_a_quote_are_the_nearest_that_fit(tmp_path: Path) -> None:
    before = "".join(f"BOAT_{at:03} = {at}\n" for at in range(60))
    after = "".join(f"    boat_{at:03} = hours + {at}\n" for at in range(60))
    tide = 'def tide_at_pier(hours):\n    """The tide at a pier, by the hours since noon."""\n'
    text = f"{before}{tide}{after}    return boat_000\n"
    root = write(tmp_path, {"pier.py": text})
    one = run_of(root, "How is the tide at a pier worked out?").passages[0]
    assert one.lines[0] <= 61 < one.lines[1]
    assert one.lines[1] - one.lines[0] < one.span.end - one.span.start <= 60
    small = one.within(len(one.text.encode()) + 60)
    assert (small.lines, small.text) == (one.lines, one.text)
    assert one.span.end - one.span.start > small.span.end - small.span.start > small.lines[1] - small.lines[0]
    assert small.span.text in text
    none = one.within(1)
    assert (none.span.start, none.span.end) == none.lines == one.lines
    assert none.span.text == one.text


def test_the_label_of_a_run_hears_what_the_ranking_of_files_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "# Mooring\n\nUse `moor --rope` to moor a heavy boat: run it in the harbour.\n"
    files = {"docs/moor.md": text} | {f"src/night_{at}.py": f"night = {at}\n" for at in range(9)}
    question = "How do I moor a heavy boat at night in the harbour?"
    run = run_of(write(tmp_path, files), question)
    assert (run.kind, run.passages[0].span.file, run.passages[0].together < 0.9) == ("answered", "docs/moor.md", True)
    monkeypatch.setattr("helix_tui.core.ask.sessions.session.agreement", lambda *_: 0.5)
    assert run_of(tmp_path, question).kind == "evidence found"


def test_of_several_branches_that_say_as_much_none_answers() -> None:
    two = [_passage(score=2.6), _passage(score=2.5)]
    branches = [replace(one, branch=Branch("a.py", 1, 2, 2, 2, 1.0, 1.0)) for one in two]
    assert [kind_of_answer("what happens", found) for found in (two, branches)] == ["evidence found"] * 2
    assert kind_of_answer("how to", two) == "answered"


def test_a_word_that_turns_the_question_stands_in_what_is_quoted() -> None:
    turned = read_subject("How do I count without the nested ones?").turned_by
    assert turned == ("without",)
    assert kind_of_answer("how to", [_passage(text="Counts the nested ones.")], turned_by=turned) == "evidence found"
    assert kind_of_answer("how to", [_passage(text="Counts Without them.")], turned_by=turned) == "answered"
    # a reason or a case says it otherwise
    assert kind_of_answer("list", [_passage(text="Counts the nested ones.")], turned_by=turned) == "answered"
    assert read_subject("How do I count?\n\nAfter: Which are left out again?").turned_by == ()


@pytest.mark.parametrize(
    ("question", "two"), [("Which shell runs a line, and with which arguments?", True), ("Which shells run?", False)]
)
def test_two_things_are_answered_where_one_place_says_both(question: str, two: bool) -> None:
    assert read_subject(question).two_things == two
    assert kind_of_answer("list", [_passage(together=0.9)], two_things=two) == ("evidence found" if two else "answered")
    assert kind_of_answer("list", [_passage(together=1.0)], two_things=two) == "answered"


def test_the_line_that_sets_it_answers_how_to_change_it(tmp_path: Path) -> None:
    rules = "# Rules\n\n- Whoever changes a theme says so.\n- A theme is `frozen`: use `--strict`, run `check`.\n"
    rules += "- To change the theme of a rule, use `change theme` and set it.\n"
    config = '# Settings\n\nKeys and theme are yours:\n\n```toml\nwidth = 3\ntheme = "paper"\n```\n'
    root = write(tmp_path, {"AGENTS.md": rules, "docs/keys.md": config})
    found = document(root, "How do I change the theme?")
    assert found["passages"][0]["file"] == "docs/keys.md"


HANDBOOK = """\
# Handbook

## Plugins

Put a plugin into the folder `plugins/` and name it in `settings.toml`; the loader finds it there.

## Plugins and filters

A plugin adds a command. A filter changes the output of one; a plugin may bring several filters.

## Why plugins are loaded late

Plugins are loaded late, because each costs a tenth of a second to import.
"""

PLUGINS = '''\
"""Plugins and filters."""


def load_plugin(folder, plugin):
    """Load one plugin from its folder, late."""
    # a plugin is loaded late from its folder
    return plugin_of(folder, plugin)


def filter_of_plugin(plugin, filters):
    """The filter of a plugin: plugins and filters differ."""
    # a plugin and a filter
    return filters[plugin]
'''


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How do I put a plugin into its folder?", "name it in `settings.toml`"),
        ("Why are plugins loaded late?", "a tenth of a second"),
        ("What is the difference between a plugin and a filter?", "A plugin adds a command."),
    ],
)
def test_a_document_explains_before_code_in_the_same_words(tmp_path: Path, question: str, said: str) -> None:
    write(tmp_path, {"docs/handbook.md": HANDBOOK, "tool/plugins.py": PLUGINS})
    first = run_of(tmp_path, question).passages[0].span
    assert first.role == "doc"
    assert said in first.text


def test_a_word_for_one_more_thing_is_no_thing() -> None:
    subject = read_subject("How do I give a key another function?")
    assert subject.one_word


def test_words_that_stand_apart_are_no_answer(tmp_path: Path) -> None:
    filler = "\n".join(f"x{n} = {n}" for n in range(40))
    apart = write(tmp_path, {"a.py": f"# the harbour\n{filler}\n# is dredged\n{filler}\n# by barges\n"})
    assert document(apart, "Why is the harbour dredged by barges?")["tier"] == "evidence found"
    near = write(
        tmp_path / "near", {"a.py": "# the harbour is dredged by barges, because ships are deep\nDREDGED = True\n"}
    )
    assert document(near, "Why is the harbour dredged by barges?")["tier"] == "answered"


@pytest.mark.parametrize(
    "word", ["dying", "trying", "owing", "skies", "colours", "organised", "getUserName", "relying", "DB", "icing"]
)
def test_the_quick_look_passes_over_no_word_that_has_a_term(word: str) -> None:
    for term in make_terms(word):
        assert may_have([term]).search(f"and {word} too")
    assert not may_have(make_terms(word)).search("zebra vxx")


def test_words_that_begin_otherwise_are_still_said() -> None:
    wording = Wording(read_subject("Why is the configuration of the database disabled?"), lambda _: 0.1)
    assert all(map(wording.said_by, ("cfg", "DB_NAME", "configured", "disabling")))
    assert not wording.said_by("zebra")


def test_a_word_that_the_repository_lacks_is_said_by_one_near_in_meaning() -> None:
    lacking = Wording(read_subject("Where is the pause computed?"), lambda term: 0.0 if term == "paus" else 0.1)
    assert lacking.in_text("delay_ms = 5")[0] == pytest.approx(0.5)
    assert "delay" in lacking.alike
    known = Wording(read_subject("Where is the pause computed?"), lambda _: 0.1)
    assert not known.in_text("delay_ms = 5")
    # nothing else means a product, and other forms of a word are no other words
    assert not Wording(read_subject("How do I deploy to Kubernetes?"), lambda term: float(term != "kubernet")).alike
    assert "back" not in Wording(read_subject("Where is the backup?"), lambda term: float(term != "backup")).alike


def test_what_is_said_in_other_words_is_found(tmp_path: Path) -> None:
    files = {
        "retry.py": 'def delay_of(attempt):\n    """The delay before the next attempt."""\n    return 2**attempt\n',
        **{f"tide_{at}.py": f"def rise_{at}():\n    return {at}\n" for at in range(9)},
    }
    found = document(write(tmp_path, files), "How long is the pause before an attempt?")
    assert found["tier"] != "not found"
    assert "return 2**attempt" in found["answer"]
    assert document(tmp_path, "How long is the guitar before an attempt?")["tier"] == "not found"
    # a number in words is no thing that may be missing
    assert "“guitar”. " in document(tmp_path, "How long is the guitar between two attempts?")["answer"]


def test_a_value_is_shown_where_the_constant_is_defined_that_a_quoted_line_names(tmp_path: Path) -> None:
    files = {
        "screen.py": "from limits import FALLBACK_ROWS, FALLBACK_INK\n\n\ndef draw(window):\n"
        '    """Draw a window, with FALLBACK_ROWS if its height is unknown."""\n'
        "    paint(FALLBACK_INK)\n    return window.height or FALLBACK_ROWS\n",
        "limits.py": "".join(f"SPARE_{at} = {at}\n\n\n" for at in range(90)) + "FALLBACK_ROWS = 41\nFALLBACK_INK = 7\n",
        **{
            f"window_{at}.py": f"def height_{at}(window):\n"
            f'    """The height of a window if it is unknown to part {at}."""\n    return {at}\n'
            for at in range(4)
        },
    }
    answer = document(write(tmp_path, files), "How many rows are drawn in a window of unknown height?")["answer"]
    assert "limits.py:271 `FALLBACK_ROWS`: `FALLBACK_ROWS = 41`" in answer
    # it says nothing of what is asked about
    assert "FALLBACK_INK = 7" not in answer


def test_weak_places_answer_neither_how_to_nor_what_happens() -> None:
    assert kind_of_answer("how to", [_passage(score=1.0)]) == "answered"
    assert kind_of_answer("how to", [_passage(score=0.9)]) == "evidence found"
    weak = _passage(score=1.3, together=0.4)
    assert kind_of_answer("what happens", [weak, replace(weak, score=1.0)]) == "evidence found"
    assert kind_of_answer("what happens", [replace(weak, score=1.6), weak]) == "answered"
