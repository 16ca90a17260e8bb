"""Recall: the score and its terms, the two queries, words, edges, the gate."""

from __future__ import annotations

import json

import pytest

from helix_tui.core.embedding import word_vectors
from helix_tui.core.memory import recall as keywords
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import MemoryFault, Recalled
from tests.core.memory.conftest import Clock, Opener, Plane, name_of

QUERY = "what the agent is about to do"


def _near(memory: MemoryStore, plane: Plane, trigger: str, cosine: float, type_: str = "failure") -> str:
    """Store a memory whose whole text lies at a cosine from the query."""
    plane.put(f"{trigger} so it is", QUERY, cosine)
    return name_of(memory, trigger, "so it is", type_)


def _by_name(found: tuple[Recalled, ...]) -> dict[str, Recalled]:
    return {hit.memory.name: hit for hit in found}


def test_the_score_is_the_seeds_formula_and_every_term_is_told(memory: MemoryStore, plane: Plane, clock: Clock) -> None:
    name = _near(memory, plane, "A failure to be recalled", 0.6)
    for verdict in ("passed", "passed", "passed", "failed"):
        memory.feedback([name], [name], verdict)
    clock.forward(7)
    hit = memory.recall(QUERY).found[0]
    assert hit.relevance == pytest.approx(0.6, abs=1e-4)
    assert hit.effectiveness == 0.75
    assert hit.recency == pytest.approx(0.5)
    assert hit.score == pytest.approx(0.5 * 0.6 + 0.3 * 0.75 + 0.2 * 0.5, abs=1e-4)
    assert hit.similarity == pytest.approx(0.6, abs=1e-4)


@pytest.mark.parametrize(
    ("days", "recency"), [(0, 1.0), (1, 0.9057), (3, 0.743), (7, 0.5), (14, 0.25), (30, 0.0513), (-3, 1.0)]
)
def test_recency_halves_each_week_and_never_passes_one(
    memory: MemoryStore, clock: Clock, days: float, recency: float
) -> None:
    name_of(memory, "A failure to be recalled")
    clock.forward(days)
    assert memory.recall(QUERY).found[0].recency == pytest.approx(recency, abs=1e-3)


def test_unproven_counts_as_half(memory: MemoryStore) -> None:
    name_of(memory, "A failure to be recalled")
    hit = memory.recall(QUERY).found[0]
    assert hit.effectiveness == 0.5
    assert not hit.memory.proven


def test_recall_is_sorted_and_limited(memory: MemoryStore, plane: Plane) -> None:
    for number in range(12):
        _near(memory, plane, f"Memory number {number} of a dozen", number / 20, "pattern")
    found = memory.recall(QUERY).found
    assert len(found) == 5
    scores = [hit.score for hit in memory.recall(QUERY, limit=50).found]
    assert len(scores) == 12
    assert scores == sorted(scores, reverse=True)
    assert memory.recall(QUERY, limit=0).found == ()


def test_type_and_effectiveness_are_conditions(memory: MemoryStore, plane: Plane) -> None:
    failure = _near(memory, plane, "A failure to be recalled", 0.5)
    pattern = _near(memory, plane, "A pattern to be recalled", 0.5, "pattern")
    memory.feedback([failure], [], "passed")
    assert [hit.memory.name for hit in memory.recall(QUERY, type="pattern").found] == [pattern]
    assert [hit.memory.name for hit in memory.recall(QUERY, min_effectiveness=0.4).found] == [pattern]
    assert memory.recall(QUERY, type="systemic").signal == "NO_MATCHING"


def test_recalling_changes_nothing(memory: MemoryStore) -> None:
    name_of(memory, "A failure to be recalled")
    before = memory.seq
    memory.recall(QUERY)
    assert memory.seq == before


def test_an_empty_store_and_no_match_are_told_apart(memory: MemoryStore) -> None:
    assert memory.recall(QUERY).signal == "NO_PRIOR_MEMORY"
    name_of(memory, "A failure to be recalled")
    assert memory.recall(QUERY, gate=0.9).signal == "NO_MATCHING"


def test_an_unknown_ranker_is_refused(memory: MemoryStore) -> None:
    with pytest.raises(MemoryFault, match="no ranker"):
        memory.recall(QUERY, ranker="luck")


def test_lift_ranks_by_what_verification_says(memory: MemoryStore, plane: Plane) -> None:
    good = _near(memory, plane, "This one helps whenever shown", 0.5)
    bad = _near(memory, plane, "That one harms whenever shown", 0.5)
    for number in range(6):
        memory.feedback([good], [good], "passed", attempt=f"g{number}", kind="k")
        memory.feedback([bad], [bad], "failed", attempt=f"b{number}", kind="k")
    found = memory.recall(QUERY, ranker="lift").found
    assert [hit.memory.name for hit in found] == [good, bad]
    assert found[0].terms["lift"] > 0 > found[1].terms["lift"]
    expected = 0.6 * found[0].relevance + 0.4 * found[0].terms["worth"]
    assert found[0].score == pytest.approx(expected)


# Names of code


def test_a_name_of_code_is_found_where_meaning_is_not(memory: MemoryStore, plane: Plane) -> None:
    name = _near(memory, plane, "parse_config() raises on an empty file", -0.1)
    for number in range(6):
        _near(memory, plane, f"Other matter number {number}", 0.2)
    found = memory.recall(f"{QUERY}", limit=3).found
    assert name not in _by_name(found)
    plane.put("why does parse_config fail", QUERY, 0.99)
    hit = memory.recall("why does parse_config fail", limit=3).found[0]
    assert hit.memory.name == name
    assert hit.keyword == hit.relevance == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("ImportError: cannot import name User", "the ImportError again"),
        ("sys.path[0] is the script's folder", "what is in sys.path"),
        ("HTTPServer2 leaks its sockets", "HTTPServer2 leak"),
        ("src/core/auth.py imports itself", "touch src/core/auth.py"),
    ],
)
def test_identifiers_are_split_and_found_whole(memory: MemoryStore, plane: Plane, text: str, query: str) -> None:
    name = name_of(memory, text)
    name_of(memory, "Something about import and path and server")
    assert memory.recall(query, limit=1).found[0].memory.name == name


# Without an encoder


def test_without_an_encoder_words_find_and_the_answer_says_so(words_only: MemoryStore) -> None:
    name = name_of(words_only, "Database pool exhausted under load", "Raise pool_size")
    name_of(words_only, "Timezone of the ferry table is ignored", "Use UTC")
    answer = words_only.recall("the pool of the database is exhausted")
    assert (answer.mode, answer.detail) == ("keyword", "no weights here")
    hit = answer.found[0]
    assert hit.memory.name == name
    assert hit.similarity is None
    assert hit.relevance == hit.keyword > 0.9
    assert answer.found[1].relevance < 0.05, "another matter"


def test_words_are_joined_with_effectiveness(words_only: MemoryStore) -> None:
    good = name_of(words_only, "Flaky test in the timezone suite, one", "freeze the clock")
    bad = name_of(words_only, "Flaky test in the timezone suite, two", "retry it")
    words_only.feedback([bad], [], "passed")
    words_only.feedback([good], [good], "passed")
    assert [hit.memory.name for hit in words_only.recall("flaky timezone test").found] == [good, bad]


def test_endings_and_case_do_not_matter(words_only: MemoryStore) -> None:
    name = name_of(words_only, "Importing circular modules fails")
    hit = words_only.recall("CIRCULAR import of a module", gate=0.3).found[0]
    assert hit.memory.name == name


@pytest.mark.parametrize("query", ['"', "AND OR NOT", "a*", "NEAR(x, y)", "x:y", "'; DROP TABLE memory; --", "", "   "])
def test_no_query_breaks_the_search(words_only: MemoryStore, query: str) -> None:
    name_of(words_only, "Importing circular modules fails")
    assert len(words_only.recall(query).found) == 1


def test_what_was_stored_without_an_encoder_gets_its_vector_when_there_is_one(opener: Opener, plane: Plane) -> None:
    name_of(opener(), "Importing circular modules fails", "split them")
    memory = opener(plane)
    assert memory.health().without_vector == 1
    hit = memory.recall("Importing circular modules fails split them").found[0]
    assert hit.similarity == pytest.approx(1, abs=1e-5)
    assert memory.health().without_vector == 0


def test_many_without_a_vector_are_still_found_by_words(opener: Opener, plane: Plane) -> None:
    bare = opener()
    bare.store_many([(f"Failure number {number} with zebra{number}", "x", "failure", "") for number in range(40)])
    memory = opener(plane)
    answer = memory.recall("something about zebra3 the animal", limit=1)
    assert answer.found[0].memory.trigger.endswith("zebra3")
    assert "without a vector of this model" in answer.detail
    assert memory.embed() > 0
    assert "without a vector" not in memory.recall("zebra").detail


# Files


def test_a_memory_of_a_file_surfaces_when_the_file_may_be_changed(memory: MemoryStore, plane: Plane) -> None:
    name = _near(memory, plane, "Circular imports in auth.py", -0.05)
    for number in range(20):
        _near(memory, plane, f"Endpoint matter number {number}", 0.5 + number / 100)
    assert name not in _by_name(memory.recall(QUERY).found)
    found = _by_name(memory.recall(QUERY, files=["src/auth.py"]).found)
    assert found[name].files == ("src/auth.py",)
    assert found[name].direct
    assert len(found) == 5


@pytest.mark.parametrize(
    ("mention", "file", "meets"),
    [
        ("auth.py", "src/auth.py", True),
        ("src/auth.py", "src/auth.py", True),
        ("src/auth.py", "./src/auth.py", True),
        ("src/auth.py", "auth.py", True),
        ("src/auth.py", "lib/auth.py", False),
        ("auth.py", "src/oauth.py", False),
        ("data.go", "a.go", False),
        ("a.go", "data.go", False),
        ("my_file.py", "myXfile.py", False),
        ("src/api/", "src/api/users.py", True),
        ("src/api/", "src/api.py", False),
        ("api/", "src/api/v1/users.py", True),
        ("auth.py", "src/auth.pyc", False),
        ("auth.py", "src/*.py", True),
        ("core/auth.py", "src/**", False),
        ("src/core/auth.py", "src/**/*.py", True),
        ("geometry.triangle", "src/geometry/triangle.py", True),
        ("geometry.triangle.area", "src/geometry/triangle.py", True),
        ("geometry.triangle", "src/algebra/triangle.py", False),
        ("`triangle`", "src/geometry/triangle.py", True),
        ("the triangle module", "src/geometry/triangle.py", True),
        ("order_rules", "core/order_rules.py", True),
        ("a triangle", "src/geometry/triangle.py", False),
        ("src.geometry.triangle", "src/geometry/triangle.py", True),
        ("src.geometry.triangle", "src/geometry/circle.py", False),
        ("src.geometry.triangle", "src/geometry/__init__.py", True),
        ("triangle.py in src/geometry/", "src/geometry/triangle.py", True),
        ("triangle.py in src/geometry/", "src/geometry/circle.py", False),
        ("src/geometry: triangle.py", "src/geometry/circle.py", False),
        ("the `triangle` helper in `geometry`", "src/geometry/circle.py", False),
        ("the geometry module", "src/geometry/circle.py", True),
        ("all files in src/api/", "src/api/users.py", True),
    ],
)
def test_files_are_matched_as_paths(memory: MemoryStore, mention: str, file: str, meets: bool) -> None:
    name = name_of(memory, f"Something is wrong in {mention} always")
    found = _by_name(memory.recall("unrelated", files=[file], gate=0.9).found)
    assert (name in found) is meets


# Edges


def test_a_neighbour_never_takes_the_place_of_a_direct_hit(memory: MemoryStore, plane: Plane) -> None:
    direct = _near(memory, plane, "The direct hit of them all", 0.9)
    neighbour = _near(memory, plane, "A neighbour of the direct hit", 0.2)
    for _ in range(10):
        memory.relate(direct, neighbour, "similar", 5.0)
    for limit in (1, 2):
        found = memory.recall(QUERY, limit=limit, expand=True).found
        assert found[0].memory.name == direct
        assert len(found) == limit


def test_a_neighbour_takes_a_place_that_nothing_relevant_wants(memory: MemoryStore, plane: Plane) -> None:
    direct = _near(memory, plane, "The direct hit of them all", 0.9)
    neighbour = _near(memory, plane, "A pattern that solves the failure", 0.0, "pattern")
    fillers = [_near(memory, plane, f"Filler number {number} of it", 0.1) for number in range(5)]
    memory.relate(neighbour, direct, "solves")
    plain = _by_name(memory.recall(QUERY, limit=3).found)
    assert neighbour not in plain
    hit = _by_name(memory.recall(QUERY, limit=3, expand=True).found)[neighbour]
    assert (hit.via, hit.direct) == ((direct,), False)
    assert hit.bonus == pytest.approx(0.1)
    assert hit.score == pytest.approx(0.5 * 0 + 0.3 * 0.5 + 0.2 * 1 + 0.1, abs=1e-3)
    assert fillers


def test_the_bonus_is_bounded(memory: MemoryStore, plane: Plane) -> None:
    direct = _near(memory, plane, "The direct hit of them all", 0.9)
    neighbour = _near(memory, plane, "A neighbour of the direct hit", 0.0)
    memory.relate(direct, neighbour, "similar", 1_000.0)
    assert _by_name(memory.recall(QUERY, expand=True).found)[neighbour].bonus == 0.2


def test_systemic_memories_come_first_where_they_are_relevant(memory: MemoryStore, plane: Plane) -> None:
    best = _near(memory, plane, "The best failure of them all", 0.9)
    systemic = _near(memory, plane, "A systemic matter of some kind", 0.4, "systemic")
    far = _near(memory, plane, "A systemic matter far away", 0.0, "systemic")
    found = memory.recall(QUERY).found
    assert [hit.memory.name for hit in found] == [systemic, best, far]
    assert found[0].document()["note"] == "This has occurred 3+ times. Consider architectural changes."
    assert [hit.memory.name for hit in memory.recall(QUERY, limit=1).found] == [systemic]
    assert [hit.memory.name for hit in memory.recall(QUERY, limit=2).found] == [systemic, best]


def test_many_systemic_memories_leave_room_for_what_fits_better(memory: MemoryStore, plane: Plane) -> None:
    fitting = [_near(memory, plane, f"What fits well, number {each}", 0.8, "pattern") for each in range(6)]
    for each in range(8):
        _near(memory, plane, f"A systemic matter, number {each}", 0.3, "systemic")
    found = [hit.memory.name for hit in memory.recall(QUERY, limit=8).found]
    assert set(fitting) == set(found[2:])


@pytest.mark.parametrize(
    ("helped", "failed", "expected"),
    [(9e999, 0, 1.0), (-5, 2, 0.0), ("abc", b"\0", 0.5), (9e999, 9e999, 0.5), (1e308, 1e308, 0.5)],
)
def test_counts_that_a_hand_has_spoilt_stay_numbers(
    memory: MemoryStore, helped: object, failed: object, expected: float
) -> None:
    name = name_of(memory, "A failure to be recalled")
    with memory.write() as db:
        db.execute("UPDATE memory SET helped = ?, failed = ?", [helped, failed])
    hit = memory.recall(QUERY).found[0]
    assert hit.effectiveness == hit.memory.effectiveness == expected
    assert json.loads(json.dumps(memory.health().document(), allow_nan=False))["total"] == 1
    assert memory.feedback([name], [name], "passed").helped == (name,)


@pytest.mark.parametrize("semantic", [True, False])
def test_what_is_asked_in_the_words_of_a_trigger_is_about_that(opener: Opener, plane: Plane, semantic: bool) -> None:
    memory = opener(plane if semantic else None)
    triggers = ("Cache is read before it is written", "Cache is written before it is read")
    plane.put(f"{triggers[0]} warm it", like=triggers[1], cosine=0.98)
    plane.put(f"{triggers[1]} flush it", like=triggers[1], cosine=0.9)
    names = [memory.store(text, what).name for text, what in zip(triggers, ("warm it", "flush it"), strict=True)]
    assert memory.recall("cache is WRITTEN before it is read.").found[0].memory.name == names[1]


def test_a_question_is_held_against_the_trigger_as_well(opener: Opener, plane: Plane) -> None:
    memory = opener(plane)
    question = "what is asked"
    plane.put("The first trigger", like=question, cosine=0.8)
    plane.put("The first trigger with its resolution", like=question, cosine=0.5)
    plane.put("The second trigger", like=question, cosine=0.4)
    plane.put("The second trigger with its resolution", like=question, cosine=0.6)
    for text in ("The first trigger", "The second trigger"):
        memory.store(text, "with its resolution")
    found = memory.recall(question).found
    assert [hit.relevance for hit in found] == pytest.approx([0.65, 0.5], abs=1e-4)
    assert [hit.similarity for hit in found] == pytest.approx([0.5, 0.6], abs=1e-4)


def test_without_an_encoder_a_word_close_in_meaning_finds_a_memory(words_only: MemoryStore) -> None:
    photo = name_of(words_only, "Photographs are far too heavy", "serve them by width")
    name_of(words_only, "Deadlock between two workers", "take the locks in one order")
    found = words_only.recall("huge pictures").found
    assert [hit.memory.name for hit in found if hit.relevance] == [photo]
    assert found[0].relevance < 0.8, "another word is worth less than the word itself"


def test_without_an_encoder_a_word_of_the_trigger_counts_for_more(words_only: MemoryStore) -> None:
    named = name_of(words_only, "Rounding of invoices is off", "use integers everywhere")
    name = name_of(words_only, "Integers overflow in the counter", "note them on the invoices")
    by_name = _by_name(words_only.recall("invoices").found)
    assert by_name[named].relevance > by_name[name].relevance > 0


def test_words_of_the_query_are_sought_before_those_close_in_meaning() -> None:
    frequency = {"slow": keywords.MOST_POSTINGS, "sluggish": 1, "fast": 2}
    assert keywords._rarest(frequency, {"slow"}) == ["slow"]
    assert keywords._rarest(frequency | {"slow": 9}, {"slow"}) == ["slow", "sluggish", "fast"]


def test_without_an_encoder_a_memory_that_shares_no_word_is_found_by_its_meaning(words_only: MemoryStore) -> None:
    leak = name_of(words_only, "The importer is killed as it grows", "read rows in chunks")
    for trigger in ("Invoices are off by a cent", "The dialog has no title", "Newsletters are sent twice"):
        name_of(words_only, trigger)
    hit = words_only.recall("process runs out of RAM while loading").found[0]
    assert (hit.memory.name, hit.similarity) == (leak, None)
    assert not words_only.recall("which flowers bloom in autumn", gate=0.25).found


def test_without_an_encoder_words_of_a_text_are_known_or_say_nothing() -> None:
    known, other, none, long = word_vectors.vectors([["deadlock"], ["mutex"], ["qqqzzz", "größe"], ["lock" * 9]])
    assert float(known @ known) == pytest.approx(1.0, abs=1e-5)
    assert float(known @ other) > 0.15
    assert not none.any()
    assert not long.any()
    assert not word_vectors.near("qqqzzz")
