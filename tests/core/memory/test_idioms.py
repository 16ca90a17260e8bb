"""Idioms as planners write them: which code is wanted, which is banned, and what is left to a reader."""

from __future__ import annotations

import pytest

from helix_tui.core.memory.plan_records import read_idioms
from helix_tui.core.memory.tasks.task_check import parse_idiom, shows


@pytest.mark.parametrize(
    ("text", "wanted", "banned"),
    [
        ("Use Depends() for auth", ("Depends()",), ()),
        ("Use `Depends(` for auth, never os.environ", ("Depends(",), ()),  # backticks say which words are code
        ("Use Depends() instead of get_current_user()", ("Depends()",), ("get_current_user()",)),
        ("No print() calls", (), ("print()",)),
        ("Do not use datetime.utcnow", (), ("datetime.utcnow",)),
        ("Mark slow tests with @pytest.mark.slow", ("@pytest.mark.slow",), ()),
        ("Use useState, not this.setState", ("useState",), ("this.setState",)),
        ("Say “not found” to the user", ("not found",), ()),
        ("Write a FastAPI router, as in routers/users.py", (), ()),
        ("Write it in Node.js, with TypeScript", (), ()),
        ("Use Depends() where a route needs a user", (), ()),  # a condition: for a reader
        ("Follow the repository's style, e.g. short functions", (), ()),
    ],
)
def test_a_required_idiom(text: str, wanted: tuple[str, ...], banned: tuple[str, ...]) -> None:
    idiom = parse_idiom(text, forbidden=False)
    assert (idiom.wanted, idiom.banned) == (wanted, banned)


@pytest.mark.parametrize(
    ("text", "banned"),
    [
        ("Store passwords in plain text", ()),
        ("print() for logging", ("print()",)),
        ("Never call eval()", ("eval()",)),
        ("Using print(); use logging.info()", ("print()",)),
        ("print() instead of logging.info()", ("print()",)),
        ("pip install --break-system-packages", ("--break-system-packages",)),
        ("print() outside of scripts", ()),
        ("No `print(` outside of scripts", ("print(",)),
    ],
)
def test_a_forbidden_idiom(text: str, banned: tuple[str, ...]) -> None:
    idiom = parse_idiom(text, forbidden=True)
    assert (idiom.wanted, idiom.banned) == ((), banned)


def test_code_is_found_as_a_whole_name() -> None:
    assert shows("user = Depends(get_user)", "Depends()")
    assert not shows("pprint(x)", "print(")
    assert not shows("my_os.environment", "os.environ")
    assert shows("@app.get('/')", "@app.get")


def test_a_required_idiom_binds_the_tasks_that_it_is_for() -> None:
    idiom = parse_idiom("Use Depends() for auth", forbidden=False)
    assert idiom.concerns("impl-auth Implement JWT authentication src/auth.py")
    assert not idiom.concerns("spec-models Describe the tables src/models.py")
    assert idiom.concerns("")
    assert parse_idiom("Use logging.getLogger()", forbidden=False).concerns("anything")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"required": ["A, b"], "forbidden": "C, d\nE"}, (("A, b",), ("C, d", "E"))),
        (["Use a()", "No b()"], (("Use a()", "No b()"), ())),
        ("Use a(), not b()", (("Use a(), not b()",), ())),
        (None, ((), ())),
        ({"required": {"x": 1}}, ((), ())),
    ],
)
def test_idioms_in_any_form_are_read(value: object, expected: object) -> None:
    assert read_idioms(value) == expected
