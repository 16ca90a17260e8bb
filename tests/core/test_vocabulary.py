"""Every name of a vocabulary has its record: who adds a name is told where its record belongs."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from helix_tui.core.beads import readiness
from helix_tui.core.beads.states import OPENED_BY_A_PERSON, STATES, Remedy, State
from helix_tui.core.ddx.attempts.verdict import OUTCOME_ROWS
from helix_tui.core.ddx.names import STATUSES, VERBS, DdxAction, Outcome
from helix_tui.core.statements.stuck import MENDS
from helix_tui.core.supervision.decide import needs
from helix_tui.core.supervision.decide.need_kinds import GROUPS, KINDS, ActionId, Group, KindName
from helix_tui.core.supervision.signals import questions
from helix_tui.keymap import BY_ID
from helix_tui.screens.needs.need_list import KEYS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("vocabulary", "records", "place"),
    [
        (State, STATES, "core/beads/states.py: STATES"),
        (Outcome, OUTCOME_ROWS, "core/ddx/attempts/verdict.py: OUTCOME_ROWS"),
        (DdxAction, VERBS, "core/ddx/names.py: VERBS"),
        (KindName, KINDS, "core/supervision/decide/need_kinds.py: KINDS"),
        (Group, GROUPS, "core/supervision/decide/need_kinds.py: GROUPS"),
        (ActionId, KEYS, "screens/needs/need_list.py: KEYS"),
    ],
)
def test_each_name_has_its_record(vocabulary: Any, records: Collection[str], place: str) -> None:
    assert set(get_args(vocabulary)) == set(records), f"{place} has no record for a name, or one too many"


def test_each_remedy_has_a_command() -> None:
    assert set(get_args(Remedy)) - {"wait"} <= set(MENDS), "core/statements/stuck.py: MENDS"


def test_each_key_of_an_action_is_a_key() -> None:
    assert set(KEYS.values()) <= set(BY_ID), "keymap.py"


def test_what_a_person_opens_or_answers_is_a_kind_of_need() -> None:
    place = "core/supervision/decide/need_kinds.py: KINDS lacks a kind, so that nobody is asked"
    assert set(OPENED_BY_A_PERSON) <= set(KINDS), place
    assert set(questions.KINDS) <= set(KINDS), place


def test_each_kind_of_need_is_found_somewhere() -> None:
    made = {text for text in _texts(needs) if text in KINDS}
    assert made | set(get_args(State)) | set(questions.KINDS) >= set(KINDS), "decide/needs.py: no finder"


def _texts(module: ModuleType) -> set[str]:
    """The texts that a module holds."""
    tree = ast.parse(inspect.getsource(module))
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_each_state_is_found_somewhere() -> None:
    assert set(get_args(State)) <= _texts(readiness), "core/beads/readiness.py: no finder"


@pytest.mark.parametrize(("key", "vocabulary"), [("state", State), ("outcome", Outcome)])
def test_the_documents_list_each_word(key: str, vocabulary: Any) -> None:
    text = (ROOT / "docs" / "formats" / "cli.md").read_text("utf-8")
    listed = re.search(rf"^- `{key}`[^:]*: ([\w, \n]+)\.", text, re.MULTILINE)
    assert listed is not None
    assert set(re.split(r"[,\s]+", listed[1])) == set(get_args(vocabulary)), "docs/formats/cli.md §2"


def test_a_status_that_means_an_outcome_means_one_with_a_record() -> None:
    assert {status.outcome for status in STATUSES.values()} <= set(OUTCOME_ROWS), "core/ddx/names.py: STATUSES"
