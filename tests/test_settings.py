"""The settings file: what is wrong in it is told by its line, and an editor can know what may stand there."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helix_tui.core.ground.text import clean_line
from helix_tui.settings.file import SettingsFile, load_settings, settings_schema
from helix_tui.settings.views import SavedView, ViewBook, as_toml, read_views

KEYS = Path(__file__).resolve().parents[1] / "docs" / "keys.md"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('them = "helix-paper"', "them: no such setting; did you mean theme?"),
        ('budget-run = "$5"', "budget-run: no such setting; did you mean budget_run?"),
        ("quiet_hours = 3", "quiet_hours: no such setting"),
        ("theme = 3", "theme: write a name in quotes"),
        ("stall_after = 0", "stall_after: write a number of seconds"),
        ('autonomy = "none"', "autonomy: write low, medium or high, in quotes"),
        ('quiet = "24:00-07:00"', "quiet: write hours as in 22:00-07:00, in quotes"),
        ('budget_day = "much"', 'budget_day: write a text like "$5, 2M tokens, 10 attempts"'),
        ("budget_run = 0", 'budget_run: write a text like "$5, 2M tokens, 10 attempts"'),
        ('keys = "j"', "keys: write a key in quotes"),
        ("[keys]\n'move.up' = 3", "move.up: write a key in quotes"),
        ("[[view]]\nname = 'a'\nfliter = 'p<=1'", "view 1: fliter: no such setting; did you mean filter?"),
        ("[[view]]\nname = ' '", "view 1: name: write a name in quotes"),
        ("[[view]]\nfilter = 'p<=1'", "view 1: write a table with a name and a filter, both texts"),
        ("view = 3", "view 1: write a table with a name and a filter, both texts"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_and_the_others_hold(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(f'model = "sonnet"\n{line}\n')
    settings = load_settings(file)
    assert settings.model == "sonnet"
    assert settings.problems == (problem,) or (settings.problems[0].startswith(problem) and len(settings.problems) == 1)


def test_the_example_of_the_documentation_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(KEYS.read_text().split("```toml\n")[1].split("```")[0])
    settings = load_settings(file)
    assert settings.problems == ()
    assert (settings.budget.run.usd, settings.quiet_hours.start, settings.views[0].key) == (5.0, 1320, "f6")


def test_a_schema_tells_an_editor_every_line_and_how_to_write_it() -> None:
    schema = settings_schema()["$defs"]["SettingsFile"]
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == {*SettingsFile.__struct_encode_fields__}
    assert all(part.get("description") for part in schema["properties"].values())
    assert schema["properties"]["autonomy"]["enum"] == ["", "high", "low", "medium"]


@given(st.lists(st.builds(
    SavedView,
    st.text(min_size=1).map(lambda text: clean_line(text, 200).strip()).filter(bool),
    st.sampled_from(["", "type:bug order:-age", 'title:"a \\ b"']),
    columns=st.sampled_from([None, (), ("age", "labels")]),
)))  # fmt: skip
def test_views_that_are_saved_read_back_as_they_were(views: list[SavedView]) -> None:
    document = tomllib.loads(as_toml(views))
    back, problems = read_views(document.get("view", []))
    assert (list(back), problems) == (views, [])


def test_no_saved_view_is_a_file_too(tmp_path: Path) -> None:
    book = ViewBook(path=tmp_path / "views.toml")
    book.write()
    assert (ViewBook(path=book.path).problems, ViewBook(path=book.path).saved) == ((), ())
