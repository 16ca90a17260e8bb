"""``helix-tui help outcomes|autonomy``: what HELIX does with each result, and at each level; docs print the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from helix_tui.cli.call import Call
from helix_tui.core.supervision.signals.responses import DEFAULT, LEVELS, RESPONSES, RULES, SHORT, table

TOPICS = {
    "outcomes": "what HELIX does with each result of ddx",
    "autonomy": "what low, medium and high do on their own",
}


def emit(call: Call, topic: str) -> None:
    """Print a topic, for people, as Markdown or as JSON."""
    if call.json:
        call.emit(document(topic))
    elif call.options.markdown:
        for line in markdown():
            call.print(line)
    else:
        for line in _lines(call, topic):
            call.print(line)


def document(topic: str) -> dict[str, Any]:
    """A topic as JSON."""
    if topic == "autonomy":
        rules = [{"when": when, "low": low, "medium": medium, "high": high} for when, low, medium, high in RULES]
        return {"levels": dict(SHORT), "default": DEFAULT, "rules": rules}
    rows = [
        {"status": word, "meaning": meaning, "response": response, "next": step}
        for word, meaning, response, step in table()
    ]
    return {"outcomes": rows, "responses": dict(RESPONSES)}


def markdown() -> Iterator[str]:
    """The lines of docs/outcomes.md."""
    yield "# What HELIX does with each result, and at each level"
    yield ""
    yield "What `helix-tui help outcomes --markdown` prints. DDx decides how an attempt ended; HELIX decides what"
    yield "follows. Statuses are an open set: a word that is not in the table is shown as it is and never counts as"
    yield "success. The word alone does not decide: what git does not find on the branch has not landed."
    yield ""
    yield "| status | means | HELIX | what a person could do |"
    yield "|---|---|---|---|"
    for word, meaning, response, step in table():
        name = f"`{word}`" if " " not in word else word
        yield f"| {name} | {meaning} | {response} | {step} |"
    yield ""
    for response, said in RESPONSES.items():
        yield f"- **{response}**: {said}"
    yield ""
    yield "A ratchet that got worse keeps the work aside, whatever the status is called; its value, threshold and"
    yield "direction are shown with the attempt."
    yield ""
    yield "## Autonomy"
    yield ""
    for level in LEVELS:
        yield f"- **{level}** {SHORT[level]}."
    yield ""
    yield "`run --autonomy`, then `HELIX_AUTONOMY`, then `autonomy` in the settings, then medium. `L` shows the level"
    yield "and `a` changes it for the next start; while a loop runs, the status bar names it."
    yield ""
    yield "| when | low | medium | high |"
    yield "|---|---|---|---|"
    for row in RULES:
        yield f"| {' | '.join(row)} |"


def _lines(call: Call, topic: str) -> Iterator[str]:
    if topic == "autonomy":
        for level in LEVELS:
            shown = f"{level}{' (default)' if level == DEFAULT else ''}"
            yield f"{call.paint(f'{shown:<17}', 'bold')} {SHORT[level]}"
        for when, *said in RULES:
            yield ""
            yield call.paint(when, "bold")
            yield from (f"  {level:<8} {what}" for level, what in zip(LEVELS, said, strict=True))
        return
    rows = table()
    wide = max(len(row[0]) for row in rows)
    for word, meaning, response, step in rows:
        yield f"{call.paint(f'{word:<{wide}}', 'bold')}  {response:<8} {meaning}"
        if step:
            yield call.paint(f"{'':<{wide}}  {'':<8} {step}", "muted")
    yield ""
    for name, does in RESPONSES.items():
        yield f"{call.paint(f'{name:<8}', 'bold')} {does}"
