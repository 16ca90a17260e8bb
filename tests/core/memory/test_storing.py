"""Storing: what is refused, merged, added, promoted; names; variants."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import SYSTEMIC_NOTE, MemoryFault
from helix_tui.core.memory.store.database import window_days
from helix_tui.core.memory.words import slug
from tests.core.memory.conftest import Clock, Opener, Plane, name_of

TRIGGER = "Circular import in the auth models"


@pytest.mark.parametrize(
    ("trigger", "resolution", "type_", "reason"),
    [
        ("Circular import", "x", "decision", "type must be one of ('failure', 'pattern', 'systemic')"),
        ("123456789", "x", "failure", "trigger too short"),
        ("   123456789   ", "x", "failure", "trigger too short"),
        ("1234567890", "  \n ", "failure", "resolution empty"),
        ("short", "", "decision", "type must be one of ('failure', 'pattern', 'systemic')"),
        ("x" * 20_001, "x", "failure", "longer than 20,000 characters"),
    ],
)
def test_what_is_refused_and_in_which_order(
    memory: MemoryStore, trigger: str, resolution: str, type_: str, reason: str
) -> None:
    stored = memory.store(trigger, resolution, type_)
    assert (stored.status, stored.name, stored.reason) == ("rejected", "", reason)
    assert memory.list() == []


def test_ten_characters_are_enough(memory: MemoryStore) -> None:
    assert memory.store("1234567890", "x").status == "added"


@pytest.mark.parametrize("mode", ["semantic", "keyword"])
def test_the_same_trigger_and_resolution_are_merged(opener: Opener, plane: Plane, mode: str) -> None:
    memory = opener(plane if mode == "semantic" else None)
    name = memory.store(TRIGGER, "Move the types").name
    again = memory.store("  circular import, in the AUTH models! ", "move the types.")
    assert (again.status, again.name, again.reason) == ("merged", name, "similar exists")
    assert memory.list()[0].resolution == "Move the types"
    assert [variant[1] for variant in memory.variants(name)] == ["move the types."]


@pytest.mark.parametrize(("cosine", "status"), [(0.86, "merged"), (0.84, "added")])
def test_near_duplicates_are_merged_at_085(memory: MemoryStore, plane: Plane, cosine: float, status: str) -> None:
    plane.put("The auth models import each other", TRIGGER, cosine)
    memory.store(TRIGGER, "Move the types")
    stored = memory.store("The auth models import each other", "Move the types")
    assert stored.status == status
    if status == "merged":
        assert stored.similarity == pytest.approx(cosine, abs=1e-4)


def test_like_is_held_against_like(memory: MemoryStore, plane: Plane) -> None:
    # The whole text lies far from the trigger alone: the seeds compared one with the other and missed this.
    plane.put(f"{TRIGGER} Move the types", TRIGGER, 0.4)
    memory.store(TRIGGER, "Move the types")
    plane.put("Auth models: import circle", TRIGGER, 0.9)
    assert memory.store("Auth models: import circle", "Move the types").status == "merged"


def test_the_nearest_of_several_is_merged_into(memory: MemoryStore, plane: Plane) -> None:
    plane.put("The second trigger of two", TRIGGER, 0.5)
    plane.put("Of two triggers it is the second", "The second trigger of two", 0.97)
    memory.store(TRIGGER, "x")
    second = memory.store("The second trigger of two", "x").name
    assert memory.store("Of two triggers it is the second", "x").name == second


def test_types_are_apart(memory: MemoryStore) -> None:
    memory.store(TRIGGER, "Move the types", "failure")
    stored = memory.store(TRIGGER, "Move the types", "pattern")
    assert (stored.status, stored.name) == ("added", f"{stored.name.removesuffix('-2')}-2")


def test_models_are_never_compared(opener: Opener, plane: Plane) -> None:
    other = Plane("another-model", dimensions=16)
    opener(plane).store(TRIGGER, "Move the types")
    memory = opener(other, read_only=True)
    hit = memory.recall(TRIGGER).found[0]
    assert hit.similarity is None
    assert hit.keyword > 0.5
    assert opener(other).store("Some other thing entirely", "x").status == "added"
    assert opener(other).recall(TRIGGER).found[0].similarity is not None


def test_names_are_slugs_with_a_number_where_taken(memory: MemoryStore, clock: Clock) -> None:
    names = [
        memory.store("Ünïcode & 100% — of it!", "x").name,
        memory.store("日本語のトリガーテキストです", "x").name,
        memory.store("日本語の別のトリガーテキスト", "x").name,
        memory.store("a" * 80, "x").name,
        memory.store("a" * 81, "x").name,
    ]
    assert names == [
        "n-code-100-of-it",
        "failure-20260601120000",
        "failure-20260601120000-2",
        "a" * 50,
        "a" * 50 + "-2",
    ]


def test_a_name_ends_with_a_whole_word() -> None:
    assert slug("The deploy of the service failed because certificates expired") == (
        "the-deploy-of-the-service-failed-because"
    )
    fifty = "one two three four five six seven eight nine tenth"
    assert slug(fifty) == slug(f"{fifty} more") == fifty.replace(" ", "-")
    assert slug("one " + "a" * 60) == "one-" + "a" * 46, "half a name, at least"


@given(st.text(max_size=200))
def test_a_slug_is_lower_case_words_and_dashes(text: str) -> None:
    name = slug(text)
    assert len(name) <= 50
    assert name == name.strip("-").lower()
    assert all(char.isascii() and (char.isalnum() or char == "-") for char in name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(st.text(min_size=10, max_size=80), st.text(min_size=1, max_size=80))
def test_any_text_is_stored_and_given_back_or_refused(memory: MemoryStore, trigger: str, resolution: str) -> None:
    stored = memory.store(trigger, resolution, "pattern")
    assert stored.status in ("added", "merged", "revised", "rejected")
    if stored.status == "added":
        found = memory.get(stored.name)
        assert found is not None
        if found.withheld:  # hidden characters: who hides an order in them uses the same
            return
        assert found.trigger == trigger.replace("\0", "").encode("utf-8", "replace").decode().strip()
        assert memory.get(found.id) == found


def test_the_third_similar_failure_is_systemic(memory: MemoryStore, plane: Plane) -> None:
    plane.put("Auth errors are swallowed again", TRIGGER, 0.7)
    plane.put("Login problems leave no trace", TRIGGER, 0.72)
    first = memory.store(TRIGGER, "a")
    second = memory.store("Auth errors are swallowed again", "b")
    assert (first.type, second.type, second.promoted) == ("failure", "failure", False)
    third = memory.store("Login problems leave no trace", "c")
    assert (third.status, third.type, third.promoted) == ("added", "systemic", True)
    assert set(third.similar) <= {first.name, second.name}
    found = memory.get(third.name)
    assert found is not None
    assert found.note == SYSTEMIC_NOTE
    assert {edge.rel_type for edge in memory.edges(third.name)} == {"similar"}


def test_a_fourth_makes_no_second_systemic_one(memory: MemoryStore, plane: Plane) -> None:
    for number in range(1, 5):
        plane.put(f"The like of it, number {number}", TRIGGER, 0.9)
    memory.store(TRIGGER, "a")
    for number in range(1, 5):
        plane.put(f"Kin of it, the number {number}", TRIGGER, 0.8)
        memory.store(f"Kin of it, the number {number}", "b")
    assert len(memory.list("systemic")) == 1


def test_the_same_failure_in_three_attempts_is_systemic(memory: MemoryStore) -> None:
    expected = (("added", "failure"), ("merged", "failure"), ("merged", "systemic"))
    for number, (status, type_) in enumerate(expected):
        stored = memory.store(TRIGGER, "a", attempt=f"attempt-{number}")
        assert (stored.status, stored.type) == (status, type_)
    assert memory.store(TRIGGER, "a").status == "merged"
    assert [each.type for each in memory.list()] == ["systemic"]


def test_the_same_text_again_and_the_same_attempt_are_no_occurrences(memory: MemoryStore) -> None:
    for _ in range(5):
        memory.store(TRIGGER, "a")
    for number in range(5):
        memory.store("A deadlock in the ledger job", f"resolve it in way {'abcde'[number]}", attempt="one")
    for number in range(5):
        memory.store("A timeout of the ferry clock", "ask it again", attempt=f"{number}", bead="one-bead")
    assert {each.type for each in memory.list()} == {"failure"}
    assert {each.seen for each in memory.list()} == {1}


def test_occurrences_count_within_a_window_that_can_be_set(opener: Opener, plane: Plane, clock: Clock) -> None:
    memory = opener(plane)
    for number in range(3):
        assert memory.store(TRIGGER, "a", attempt=f"{number}").type == "failure"
        clock.forward(4)
    memory.close()
    memory = opener(plane, window_days=30)
    assert memory.store(TRIGGER, "a", attempt="four").promoted


def test_corrections_of_one_failure_do_not_make_it_systemic(memory: MemoryStore) -> None:
    cures = ("Raise the timeout", "Send it in chunks", "Use another proxy", "Retry with backoff")
    told = [memory.store(TRIGGER, cure) for cure in cures]
    assert [each.promoted for each in told] == [False] * 4
    (found,) = memory.list()
    assert (found.type, found.seen, found.revision) == ("failure", 1, 4)


def test_a_failure_that_somebody_calls_systemic_is_systemic_from_then_on(memory: MemoryStore) -> None:
    name = memory.store(TRIGGER, "a").name
    stored = memory.store(TRIGGER, "a", "systemic")
    assert (stored.status, stored.name, stored.type, stored.promoted) == ("merged", name, "systemic", True)
    assert [each.type for each in memory.list()] == ["systemic"]


def test_a_refused_memory_tells_the_mode_too(memory: MemoryStore) -> None:
    assert memory.store("short", "a").mode == "semantic"


class Blind(Plane):
    """An encoder that does not know a script: every text of it is the same to it."""

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return super().encode(["?" if not text.isascii() else text for text in texts])


def test_what_the_model_cannot_tell_apart_is_told_apart_by_its_words(opener: Opener) -> None:
    memory = opener(Blind())
    ships, rockets, thai = "\U0001f6a2" * 12, "\U0001f680" * 12, "\u0e23\u0e30\u0e1a\u0e1a" * 4
    stored = [memory.store(text, "do it otherwise") for text in (ships, rockets, thai, ships, thai)]
    assert [each.status for each in stored] == ["added", "added", "added", "merged", "merged"]
    assert (stored[3].id, stored[4].id) == (stored[0].id, stored[2].id)
    assert memory.list("systemic") == []
    assert memory.consolidate().remaining == 3


def test_a_name_is_never_a_small_number(memory: MemoryStore) -> None:
    stored = memory.store("\u8a8d\u8bc1\u9519\u8bef\u88ab\u541e\u6389\u6ca1\u6709 2", "do it otherwise")
    assert stored.name == "failure-2"
    assert memory.get("2") is None


def test_what_is_no_text_is_a_fault_with_a_way_on(memory: MemoryStore) -> None:
    for memory_change in (memory.get, memory.edges, lambda name: memory.feedback([name], [], "passed")):
        with pytest.raises(MemoryFault, match="UTF-8"):
            memory_change("a\ud800")
    with pytest.raises(MemoryFault, match="not a valid age"):
        memory.decay(float("nan"))


def test_patterns_are_never_promoted(memory: MemoryStore) -> None:
    for _ in range(5):
        memory.store(TRIGGER, "a", "pattern")
    assert [each.type for each in memory.list()] == ["pattern"]


def test_similar_failures_are_found_without_an_encoder_too(words_only: MemoryStore) -> None:
    words_only.store("Database connection timeout under load", "a")
    words_only.store("Timeout of the database connection", "b")
    third = words_only.store("Database connection: timeout again", "c")
    assert third.promoted


def test_similar_recent_looks_back_a_number_of_days(memory: MemoryStore, plane: Plane, clock: Clock) -> None:
    plane.put("Auth errors are swallowed again", TRIGGER, 0.7)
    memory.store(TRIGGER, "a")
    clock.forward(8)
    memory.store("Auth errors are swallowed again", "b")
    found = memory.similar_recent(TRIGGER)
    assert [round(each.similarity, 2) for each in found] == [0.7]
    assert len(memory.similar_recent(TRIGGER, days=30)) == 2
    assert memory.similar_recent(TRIGGER, threshold=0.9) == []
    assert memory.similar_recent(TRIGGER, days=30, type="pattern") == []


def test_many_are_stored_in_one_transaction(memory: MemoryStore) -> None:
    stored = memory.store_many(
        [
            (TRIGGER, "a", "failure", "x"),
            (TRIGGER, "b", "failure", "x"),
            ("no", "", "failure", ""),
            ("A pattern of it", "c", "pattern", "y"),
        ]
    )
    assert [each.status for each in stored] == ["added", "revised", "rejected", "added"]


@pytest.mark.parametrize(
    ("text", "days"), [("", 7), ("30", 30), ("0.5", 0.5), ("0", 7), ("-1", 7), ("nan", 7), ("soon", 7)]
)
def test_the_window_is_set_in_days(text: str, days: float) -> None:
    assert window_days({"HELIX_SYSTEMIC_DAYS": text}) == days


def test_what_stands_in_the_database_is_in_utc(memory: MemoryStore) -> None:
    name_of(memory, TRIGGER)
    rows = memory.read("SELECT created_at FROM memory")
    assert rows == [("2026-06-01T12:00:00Z",)]


def test_what_fails_inside_a_transaction_changes_nothing(memory: MemoryStore) -> None:
    def fail() -> None:
        with memory.write() as database:
            memory.store(TRIGGER, "a")
            assert memory.recall(TRIGGER).found
            database.execute("INSERT INTO memory (name) VALUES (NULL)")

    with pytest.raises(MemoryFault, match="NOT NULL"):
        fail()
    assert memory.list() == []
    memory.store("Something else happened instead", "b")
    assert [hit.memory.trigger for hit in memory.recall(TRIGGER).found] == ["Something else happened instead"]


def test_chunk_remembers_only_success_and_strengthens_what_it_knows(memory: MemoryStore) -> None:
    assert memory.chunk("Add auth", "failed", "x").document()["reason"] == "only chunk successful outcomes"
    first = memory.chunk("Add auth", "SUCCESS: all green", "Depends()")
    found = memory.get(first.name)
    assert found is not None
    assert (found.type, found.trigger, found.resolution, found.source) == (
        "pattern",
        "Task: Add auth",
        "Approach that worked: Depends()",
        "chunked",
    )
    again = memory.chunk("Add auth", "success", "depends()")
    assert (again.status, again.reason) == ("strengthened", "similar pattern exists, reinforced it")
    found = memory.get(first.name)
    assert found is not None
    assert found.helped == 1


def test_chunk_keeps_a_second_approach_apart_from_the_first(memory: MemoryStore) -> None:
    name = memory.chunk("Add auth", "success", "Depends() in each route").name
    second = memory.chunk("Add auth", "success", "one middleware that reads the header")
    assert (second.status, second.name, second.revision) == ("revised", name, 2)
    found, (first,) = memory.get(name), memory.revisions(name)
    assert found is not None
    assert (found.resolution, found.helped) == (
        "Approach that worked: one middleware that reads the header",
        0,
    )
    assert first.memory.helped == 0
    again = memory.chunk("Add auth", "success", "Depends() in each route")
    assert (again.status, again.revision) == ("strengthened", 1)
    assert memory.get(name) == found
    assert memory.revisions(name)[0].memory.helped == 1


def test_a_memory_is_not_called_proven_by_one_outcome(memory: MemoryStore) -> None:
    memory.store(TRIGGER, "Raise the timeout")
    assert memory.health().words == "1 memory, none proven"
