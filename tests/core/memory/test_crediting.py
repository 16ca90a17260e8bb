"""Feedback (docs/decisions/0014): the truth table, the ledger, once per attempt."""

from __future__ import annotations

import pytest

from helix_tui.core.memory.changes import MemoryChanges
from helix_tui.core.memory.memory_store import MemoryStore
from helix_tui.core.memory.records import MemoryFault, Verdict
from tests.core.memory.conftest import Clock, Opener, Plane, name_of


@pytest.fixture
def pair(memory: MemoryStore) -> tuple[str, str]:
    return (
        name_of(memory, "Circular import in the auth models"),
        name_of(memory, "Timezone of the ferry table is ignored"),
    )


def _counts(memory: MemoryStore, name: str) -> tuple[float, float]:
    found = memory.get(name)
    assert found is not None
    return found.helped, found.failed


@pytest.mark.parametrize(
    ("verdict", "claimed", "unclaimed"),
    [
        ("passed", (1, 0), (0, 1)),
        ("failed", (0, 1), (0, 0)),
        ("partial", (0.3, 0.7), (0, 0)),
        (None, (1, 0), (0, 1)),
    ],
)
def test_the_truth_table(
    memory: MemoryStore,
    pair: tuple[str, str],
    verdict: Verdict | None,
    claimed: tuple[float, float],
    unclaimed: tuple[float, float],
) -> None:
    report = memory.feedback(injected=pair, utilized=[pair[0]], verified=verdict)
    assert _counts(memory, pair[0]) == pytest.approx(claimed)
    assert _counts(memory, pair[1]) == pytest.approx(unclaimed)
    assert report.verified is (verdict is not None)


def test_a_claim_followed_by_a_failed_verification_is_a_failed_memory(
    memory: MemoryStore, pair: tuple[str, str]
) -> None:
    memory.feedback(injected=[pair[0]], utilized=[pair[0]], verified="failed")
    assert _counts(memory, pair[0]) == (0, 1)


def test_seed_004_gets_its_keys_back(memory: MemoryStore, pair: tuple[str, str]) -> None:
    document = memory.feedback(utilized=[pair[0]], injected=[*pair, "nobody"]).document()
    assert {key: document[key] for key in ("helped", "unhelpful", "missing")} == {
        "helped": 1,
        "unhelpful": 1,
        "missing": ["nobody"],
    }


def test_feedback_without_an_outcome_is_kept_apart(memory: MemoryStore, pair: tuple[str, str]) -> None:
    memory.feedback(injected=[pair[0]], utilized=[pair[0]])
    memory.feedback(injected=[pair[0]], utilized=[pair[0]], verified="passed")
    found = memory.get(pair[0])
    assert found is not None
    document = found.document()
    assert (document["helped"], document["verified"]["helped"], document["unverified"]["helped"]) == (2, 1, 1)


def test_only_verified_outcomes_judge_a_memory_that_has_any(
    memory: MemoryStore, pair: tuple[str, str], opener: Opener, plane: Plane
) -> None:
    def judged(store: MemoryStore = memory) -> tuple[float, ...]:
        hit = next(hit for hit in store.recall("auth").found if hit.memory.name == pair[0])
        return hit.effectiveness, hit.memory.effectiveness, store.health().effectiveness

    for _ in range(9):
        memory.feedback(injected=[pair[0]], utilized=[pair[0]])
    assert judged() == (1.0, 1.0, 1.0)
    assert memory.prune(0.25, 1, apply=False).removed == ()
    memory.feedback(injected=[pair[0]], utilized=[pair[0]], verified="failed")
    assert judged() == (0.0, 0.0, 0.0)
    assert judged(opener(plane)) == (0.0, 0.0, 0.0), "all read at once, not the one that changed"
    assert [each.name for each in memory.prune(0.25, 1, apply=False).removed] == [pair[0]]
    assert memory.prune(0.25, 2, apply=False).removed == (), "one verified outcome is one use, whatever was reported"


def test_verified_outcomes_fade_too_and_return(memory: MemoryStore, pair: tuple[str, str]) -> None:
    for verdict in ("passed", "passed", "passed", "passed"):
        memory.feedback(injected=[pair[0]], utilized=[pair[0]], verified=verdict)
    changes = MemoryChanges(memory)
    change, _ = changes.fade(days=-1, min_uses=9)
    assert change is not None
    faded = memory.get(pair[0])
    assert faded is not None
    assert (faded.counted, memory.recall("auth").found[0].effectiveness) == ((3, 1), 0.75)
    changes.undo()
    again = memory.get(pair[0])
    assert again is not None
    assert (again.counted, again.helped, again.failed) == ((4, 0), 4, 0)


def test_a_claim_of_what_was_not_injected_is_ignored_and_reported(memory: MemoryStore, pair: tuple[str, str]) -> None:
    report = memory.feedback(injected=[pair[0]], utilized=pair, verified="passed")
    assert report.ignored == (pair[1],)
    assert _counts(memory, pair[1]) == (0, 0)


def test_the_ledger_says_what_was_injected_whatever_the_caller_says(memory: MemoryStore, pair: tuple[str, str]) -> None:
    shown = memory.inject("Circular import in the auth models do it otherwise", attempt="a-1")
    assert [each.name for each in shown.shown] == [pair[0]]
    report = memory.feedback(injected=[pair[1]], utilized=[pair[1]], verified="passed", attempt="a-1")
    assert (report.outside_ledger, report.ignored) == ((pair[1],), (pair[1],))
    assert report.unhelpful == (pair[0],)
    assert _counts(memory, pair[1]) == (0, 0)


def test_an_attempt_counts_once(memory: MemoryStore, pair: tuple[str, str]) -> None:
    for _ in range(3):
        report = memory.feedback(injected=pair, utilized=[pair[0]], verified="passed", attempt="a-1")
    assert report.duplicate
    assert _counts(memory, pair[0]) == (1, 0)
    memory.feedback(injected=pair, utilized=[], verified="failed", attempt="a-1")
    assert _counts(memory, pair[0]) == (1, 0)
    memory.feedback(injected=pair, utilized=[pair[0]], verified="passed", attempt="a-2")
    assert _counts(memory, pair[0]) == (2, 0)


def test_a_verified_outcome_takes_the_place_of_an_unverified_one(memory: MemoryStore, pair: tuple[str, str]) -> None:
    memory.feedback(injected=pair, utilized=[pair[0]], attempt="a-1")
    assert _counts(memory, pair[1]) == (0, 1)
    report = memory.feedback(injected=pair, utilized=[pair[0]], verified="failed", attempt="a-1")
    assert report.replaced
    assert (_counts(memory, pair[0]), _counts(memory, pair[1])) == ((0, 1), (0, 0))
    assert memory.feedback(injected=pair, utilized=pair, attempt="a-1").duplicate


def test_a_revised_outcome_leaves_no_trace_of_the_former(memory: MemoryStore, pair: tuple[str, str]) -> None:
    memory.feedback(injected=pair, utilized=[pair[0]], verified="passed", attempt="a-1", kind="bug")
    memory.feedback(injected=pair, utilized=[pair[0]], verified="failed", attempt="a-1", kind="bug", revise=True)
    found = memory.get(pair[0])
    assert found is not None
    assert (found.helped, found.failed, found.verified_helped, found.verified_failed) == (0, 1, 0, 1)
    assert (found.trials, found.lift) == pytest.approx((1.0, -0.5 / 13))
    assert [outcome.verdict for outcome in memory.outcomes(attempt="a-1")] == ["failed", "failed"]


def test_what_an_agent_claimed_before_counts_when_the_outcome_comes(memory: MemoryStore, pair: tuple[str, str]) -> None:
    memory.inject("Circular import in the auth models do it otherwise", attempt="a-1", bead="x-1")
    memory.claim("a-1", [pair[0], "nobody"])
    report = memory.feedback(verified="passed", attempt="a-1")
    assert (report.helped, report.missing) == ((pair[0],), ("nobody",))


def test_a_bead_that_was_given_memories_settles_each_of_its_attempts(
    memory: MemoryStore, pair: tuple[str, str]
) -> None:
    memory.inject("Circular import in the auth models do it otherwise", bead="x-1")
    memory.feedback(verified="passed", attempt="a-1", bead="x-1")
    memory.feedback(verified="passed", attempt="a-2", bead="x-1")
    memory.feedback(verified="passed", attempt="a-2", bead="x-1")
    assert _counts(memory, pair[0]) == (0, 2)


def test_only_use_refreshes_the_last_use(memory: MemoryStore, pair: tuple[str, str], clock: Clock) -> None:
    clock.forward(3)
    memory.feedback(injected=pair, utilized=[pair[0]], verified="passed")
    used, bystander = memory.get(pair[0]), memory.get(pair[1])
    assert used is not None
    assert bystander is not None
    assert used.last_used == clock.now
    assert bystander.last_used is None
    memory.recall("anything at all")
    again = memory.get(pair[1])
    assert again is not None
    assert again.last_used is None


def test_ids_and_names_both_address_a_memory(memory: MemoryStore, pair: tuple[str, str]) -> None:
    found = memory.get(pair[0])
    assert found is not None
    memory.feedback(injected=[str(found.id)], utilized=[pair[0]], verified="passed")
    assert _counts(memory, pair[0]) == (1, 0)


def test_an_unknown_verdict_is_refused(memory: MemoryStore, pair: tuple[str, str]) -> None:
    with pytest.raises(MemoryFault, match="no verdict"):
        memory.feedback(injected=pair, verified="maybe")  # type: ignore[arg-type]


def test_lift_is_the_surprise_against_what_the_others_let_expect(memory: MemoryStore, pair: tuple[str, str]) -> None:
    memory.feedback(injected=pair, utilized=[pair[0]], verified="passed", attempt="1", kind="bug")
    memory.feedback(injected=pair, utilized=[pair[0]], verified="passed", attempt="2", kind="bug")
    found = memory.get(pair[0])
    assert found is not None
    # the second task: its topic's rate is read from the one task of the other (passed, shrunk to the rate of
    # the kind), and the other itself has a lift by then
    rate = (1 + 2 * 2 / 3) / (1 + 2)
    first = 1 - 1 / 2
    surprise = 1 - (rate + 0.8 * first / (0.8 + 12))
    assert found.lift == pytest.approx((first + surprise) / (2 + 12))
    bystander = memory.get(pair[1])
    assert bystander is not None
    surprise = 1 - (rate + first / (1 + 12))
    assert bystander.lift == pytest.approx(0.8 * (first + surprise) / (1.6 + 12))


def test_a_revised_outcome_takes_back_what_it_said_of_the_rate(memory: MemoryStore, pair: tuple[str, str]) -> None:
    def kept() -> list[tuple[float, ...]]:
        return [
            tuple(round(value, 9) for value in row)
            for row in memory.read(
                "SELECT lift_trials, lift_residual, lift_passed FROM memory_extra ORDER BY memory_id"
            )
        ]

    for attempt in "123":
        memory.feedback(injected=pair, utilized=[pair[0]], verified="passed", attempt=attempt)
    before = kept()
    memory.feedback(injected=pair, utilized=pair, verified="failed", attempt="4")
    failed = kept()
    assert failed != before
    memory.feedback(injected=pair, utilized=pair, verified="passed", attempt="4", revise=True)
    memory.feedback(injected=pair, utilized=pair, verified="failed", attempt="4", revise=True)
    assert kept() == failed
