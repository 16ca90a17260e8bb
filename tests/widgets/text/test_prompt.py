"""A prompt is laid out in its parts, with every character that it has."""

from __future__ import annotations

from pathlib import Path

import pytest

from helix_tui.widgets.text.prompt import PromptPane, decoded, parts_of
from tests.widgets.host import Host

XML = """<execute-bead>
  <instructions>
Do it well.&#xA;&#xA;## Step 0&#xA;&#xA;- More than ~6 ACs&#xA;- `go test ./...` &lt;once&gt;&#xA;
  </instructions>
  <bead id="ddx-1">
    <title>Pin the &quot;provider&quot; release</title>
    <acceptance>
1. `make test` passes
2. a &lt;b&gt; is &amp;amp; shown
    </acceptance>
    <metadata base-rev="3368df8c" bundle=".ddx/executions/x"/>
  </bead>
</execute-bead>
"""


def test_xml_is_decoded_and_parted_by_its_tags() -> None:
    parts = {part.name: part for part in parts_of(XML) if part.text}
    assert list(parts) == ["instructions", "bead › title", "bead › acceptance"]
    assert parts["bead › title"].text == 'Pin the "provider" release'
    assert "- `go test ./...` <once>" in parts["instructions"].text.split("\n")
    assert "2. a <b> is &amp; shown" in parts["bead › acceptance"].text
    about = {part.name: part.about for part in parts_of(XML) if part.about}
    assert about == {"bead": 'id="ddx-1"', "bead › metadata": 'base-rev="3368df8c" bundle=".ddx/executions/x"'}


def test_what_is_no_xml_is_parted_by_its_headings() -> None:
    names = [part.name for part in parts_of("# Work on ddx-1\n\nDo it.\n\n## How\n\nWell.\n")]
    assert names == ["Work on ddx-1", "How"]


def test_tags_that_do_not_match_lose_no_text() -> None:
    torn = "<a><b>one</c> two</b> three <d>four"
    said = " ".join(part.text for part in parts_of(torn))
    assert [word for word in ("one", "two", "three", "four") if word not in said] == []


async def test_what_every_prompt_says_is_folded_and_unfolds() -> None:
    pane = PromptPane()
    app = Host(pane)
    async with app.run_test(size=(80, 24)) as pilot:
        pane.show_prompt(XML)
        pane.focus()
        await pilot.pause()
        shown = "\n".join(app.rows())
        assert "▸ instructions" in shown
        assert "Step 0" not in shown
        assert 'Pin the "provider" release' in shown
        pane.select("0\n0")
        pane.action_open()
        await pilot.pause()
        assert "Step 0" in "\n".join(app.rows())


SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "ddx" / "executions"


@pytest.mark.skipif(not SHARED.is_dir(), reason="no recorded executions beside this checkout")
def test_of_real_prompts_nothing_is_lost() -> None:
    for file in SHARED.glob("*/prompt.md"):
        text = file.read_text("utf-8")
        said = " ".join(f"{part.name} {part.about} {part.text}" for part in parts_of(text))
        for word in decoded(text).split():
            if word.isalpha() and len(word) > 6:
                assert word in said or f"<{word}" in text, (file, word)
