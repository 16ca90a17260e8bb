"""Code cut at its definitions, documents at their headings; whatever the text, nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.ask.corpus.languages import GRAMMARS, language_of
from helix_tui.core.ask.corpus.listing import role_of, standing
from helix_tui.core.ask.corpus.reader import read_pieces
from helix_tui.core.ask.index.reading import Raw, read_batch
from helix_tui.core.ask.question import read_question, slots_of
from helix_tui.core.ask.tokens import count_terms, stem
from helix_tui.core.ground.text import stem_english

CODE = {
    "a.py": ("class A:\n    def m(self):\n        pass\n\nLIMIT = 3\n", {"A", "A.m", "LIMIT"}),
    "a.js": ("export function f() {}\nclass K { m() {} }\nconst g = () => 1;\n", {"f", "K", "K.m", "g"}),
    "a.cjs": ("module.exports = class Shelf {\n  take() {}\n};\n", {"Shelf", "Shelf.take"}),
    "a.ts": (
        "interface I { k(): void }\ntype T = string;\nenum E { X }\nabstract class C {}\n",
        {"I", "T", "E", "C"},
    ),
    "a.tsx": ("export default function View() { return <b>x</b>; }\n", {"View"}),
    "a.go": ("package p\n\nfunc (s *Store[T]) Get() {}\n\ntype Store struct{}\n", {"Store.Get", "Store"}),
    "a.rs": (
        "struct S;\nimpl S {\n    fn new() {}\n}\ntrait R {\n    fn r(&self);\n}\n",
        {"S", "S.new", "R.r"},
    ),
    "A.java": ("class A {\n  int x;\n  void m() {}\n}\nrecord R(int a) {}\n", {"A", "A.m", "R"}),
    "a.c": ("#define MAX 3\nstruct s { int a; };\nint *run(void) { return 0; }\n", {"MAX", "s", "run"}),
    "a.cpp": ("namespace n {\nclass K {\n  void m();\n};\n}\nvoid n::K::m() {}\n", {"n", "n.K", "n.K.m"}),
    "a.rb": ("class Shelf\n  def take\n  end\nend\n", {"Shelf", "Shelf.take"}),
    "a.sh": ("deploy() {\n  true\n}\n", {"deploy"}),
}


@pytest.mark.parametrize("name", CODE)
def test_definitions_are_found_with_what_encloses_them(name: str) -> None:
    text, wanted = CODE[name]
    pieces, _ = read_pieces(text.encode(), language_of(name))
    assert wanted <= {definition.header for definition in pieces.definitions}


def test_every_name_of_a_block_of_go_is_a_definition() -> None:
    text = (
        "package p\n\nconst (\n\tLow Level = iota\n\t_\n\tHigh\n\tFirst, Last = 1, 2\n)\n\nvar (\n"
        '\tErrClosed = errors.New("closed")\n)\n\ntype (\n\tBerth int\n\tQuay = Berth\n)\n'
    )
    pieces, _ = read_pieces(text.encode(), "go")
    assert [(definition.header, definition.start, definition.end) for definition in pieces.definitions] == [
        ("Low", 4, 4),
        ("High", 6, 6),
        ("First", 7, 7),
        ("Last", 7, 7),
        ("ErrClosed", 11, 11),
        ("Berth", 15, 15),
        ("Quay", 16, 16),
    ]


def test_every_language_with_a_grammar_has_a_case() -> None:
    assert set(GRAMMARS) <= {language_of(name) for name in CODE}


@given(
    st.text(),
    st.sampled_from([*GRAMMARS, "markdown", "restructuredtext", "asciidoc", "text", "data", "lines"]),
)
def test_chunks_cover_every_line_once(text: str, language: str) -> None:
    pieces, lines = read_pieces(text.encode("utf-8", "replace"), language)
    covered = [line for chunk in pieces.chunks for line in range(chunk.start, chunk.end + 1)]
    assert covered == list(range(1, len(lines) + 1))


@given(st.lists(st.sampled_from(["def f():", "    x = 1", "class A:", "", "    def g(self):", "        pass", "}"])))
def test_chunks_of_broken_code_cover_every_line_once(lines: list[str]) -> None:
    pieces, read = read_pieces("\n".join(lines).encode(), "python")
    covered = [line for chunk in pieces.chunks for line in range(chunk.start, chunk.end + 1)]
    assert covered == list(range(1, len(read) + 1))


def test_headings_in_fences_are_none() -> None:
    pieces, _ = read_pieces(b"# One\n```\n# no\n```\nTwo\n---\n### Three ###\n", "markdown")
    assert [(title.level, title.text) for title in pieces.titles] == [(1, "One"), (2, "Two"), (3, "Three")]


def test_a_name_in_a_heading_keeps_its_underscores() -> None:
    pieces, _ = read_pieces(b"# TS_ratio of _one_ `tile_gap`\n## __Whole__ name\n", "markdown")
    assert [title.text for title in pieces.titles] == ["TS_ratio of one tile_gap", "Whole name"]


def test_underlined_titles_take_their_level_from_their_order() -> None:
    pieces, _ = read_pieces(b"=====\nTitle\n=====\n\nPart\n----\n\ntext\n", "restructuredtext")
    assert [(title.level, title.text) for title in pieces.titles] == [(1, "Title"), (2, "Part")]


def test_spellings_of_a_name_meet() -> None:
    assert count_terms("parseHTTPHeaders").keys() >= count_terms("parse http header").keys()
    assert count_terms("colours are normalised") == count_terms("colors are normalized")
    assert not count_terms("settings").keys() & count_terms("set_value").keys()
    assert count_terms("user_names").keys() & count_terms("userName").keys() >= {"user", "name"}


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("src/a_test.go", "test"),
        ("tests/conftest.py", "test"),
        ("web/a.spec.ts", "test"),
        ("docs/guide.md", "doc"),
        ("README", "doc"),
        ("examples/run.py", "example"),
        (".github/workflows/ci.yml", "config"),
        ("third_party/x/y.c", "vendored"),
        ("data/table.csv", "data"),
        ("perf-testing/run.js", "test"),
        ("src/performance/run.js", "source"),
        ("src/latest.py", "source"),
        ("pkg/contest/main.go", "source"),
        ("changelog/1.2/issue-7", "doc"),
        ("lib/mock/agent.js", "source"),
        ("templates/fish.txt", "source"),
        ("docs/templates/guide.txt", "doc"),
        ("ci/requirements-dev.txt", "config"),
    ],
)
def test_a_path_tells_the_role(path: str, role: str) -> None:
    assert role_of(path) == role


@pytest.mark.parametrize(
    ("path", "counts_less"),
    [
        ("types/agent.d.ts", True),
        ("pkg/core.pyi", True),
        ("CHANGELOG-2.0.md", True),
        ("HISTORY", True),
        ("contrib/completions/_tool", True),
        ("completions/tool.fish", True),
        ("contrib/completions/README.md", False),
        ("src/shell_completion.py", False),
        ("src/completions/engine.py", False),
        ("src/history.py", False),
        ("lib/agent.ts", False),
    ],
)
def test_a_declaration_a_completion_and_a_changelog_count_for_less(path: str, counts_less: bool) -> None:
    assert (standing(path) < 1.0) == counts_less


def test_a_question_is_taken_apart() -> None:
    text = "Crash in `load_config`\n\nsee app.conf.Loader and docs/a.md, parse() of FEAT-003 and “two words”"
    question = read_question(text)
    assert question.title == "Crash in `load_config`"
    assert {"load_config", "parse", "app.conf.Loader"} <= set(question.names)
    assert question.paths == ("docs/a.md", "FEAT-003")
    assert question.quoted == ("two words",)
    assert {"crash", "see"} <= set(question.words)


@given(st.text(max_size=400))
def test_any_text_is_a_question(text: str) -> None:
    question = read_question(text)
    assert all(slot.terms and slot.id for slot in slots_of(question, lambda _: 1.0))


_ENDINGS = [
    "ed",
    "ing",
    "ly",
    "s",
    "es",
    "e",
    "l",
    "al",
    "or",
    "er",
    "our",
    "ic",
    "ant",
    "ent",
    "ist",
    "ism",
    "ion",
    "y",
    "i",
    "ness",
    "ful",
    "able",
    "ate",
    "ize",
    "ogist",
    "ment",
    "ous",
    "ive",
]


@pytest.mark.parametrize("ending", [*_ENDINGS, *"abcdefghijklmnopqrstuvwxyz"])
def test_a_word_that_passes_the_stemmer_by_has_no_ending(ending: str) -> None:
    for begin in ("hand", "pars", "generali", "colo", "mat", "young", "analys"):
        word = begin + ending
        if not word.endswith(
            ("our", "ours", "ise", "ised", "ising", "iser", "isable", "isation", "is", "ises", "isers")
        ):
            assert stem(word) == stem_english(word)


def test_a_file_has_the_same_terms_whatever_was_read_before_it() -> None:
    raws = [
        Raw(f"{at}.py", "1", f"def name_{at}(value):\n    return naïve_{at} + Ünder{at} + value # tidied-up".encode())
        for at in range(6)
    ]
    alone = read_batch(raws[3:])
    assert read_batch(raws)[3:] == alone
    assert "naïve_3" in alone[0].passages[0].split()


def test_a_section_ends_where_a_heading_of_its_level_or_above_begins() -> None:
    pieces, _ = read_pieces(b"# a\nx\n### b\nx\n## c\nx\n# d\nx", "markdown")
    assert [(title.text, title.start, title.end) for title in pieces.titles] == [
        ("a", 1, 6),
        ("b", 3, 4),
        ("c", 5, 6),
        ("d", 7, 8),
    ]
