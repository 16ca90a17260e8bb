#!/usr/bin/env python3
"""The entry point of HELIX's older plugins: their commands and functions, answered from the project's memory store.

``python3 "$HELIX_PLUGIN_ROOT/lib/memory/core.py" VERB …`` with the options of any of the plugin's three generations
becomes ``helix-tui memory VERB …``; the answer has the form that the plugin printed. So does each function here:
``from memory.core import store, recall``, with ``$HELIX_PLUGIN_ROOT/lib`` on Python's path. Standard library only: the
Python that runs this need not have helix-tui.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

LISTS = {
    "recall": "memories",
    "similar-recent": "similar",
    "edges": "edges",
    "connected": "connected",
    "neighbors": "connected",
    "suggest-edges": "suggestions",
}
"""Verbs that the plugin answered with a bare list, and the key of that list in our answer."""

DUPLICATE_THRESHOLD = 0.85
DECAY_HALF_LIFE_DAYS = 7
SCORE_WEIGHTS = {"relevance": 0.5, "effectiveness": 0.3, "recency": 0.2}
"""The constants of the plugin's reference, for readers of this file. They are set in helix-tui, not here."""

LIMIT_S, VERIFY_LIMIT_S = 120, 660
"""How many seconds helix-tui has to answer; where it may run the VERIFY of a task."""

OUTCOMES = {"delivered": "passed", "partial": "partial"}
"""The latest plugin's outcome of a task -> the verification result; anything else means failed."""


def main(words: list[str]) -> int:
    """Answer one call; return its exit code."""
    env = dict(os.environ)
    verbose, words = take(words, "--verbose", "-v")
    base, words = option(words, "--db")
    if base:
        env["HELIX_DB_PATH"] = base
    if not words:
        print("usage: core.py VERB …  (store, recall, feedback, relate, health, …)", file=sys.stderr)
        return 1
    try:
        answer, code, other = ask(words[0], words[1:], env)
    except ValueError as error:
        return refused(str(error), "Write lists as JSON, for example '[\"name\"]', and numbers in digits.", 2)
    except subprocess.TimeoutExpired:
        return refused(f"no answer within {LIMIT_S} s", "`helix-tui doctor` says what is wrong; then try again.", 1)
    # not JSON: pass it to the agent unchanged
    if other:
        sys.stdout.write(other)
        return code
    if verbose:
        print(f"core.py: helix-tui memory {words[0]} ended with {code}", file=sys.stderr)
    print(json.dumps(answer, indent=2))
    # a refusal is an answer too
    return code if "error" in answer and words[0] != "get" else 0


def ask(verb: str, words: list[str], env: dict[str, str], text: str | None = None) -> tuple[Any, int, str]:
    """Ask helix-tui: (its answer in the plugin's form, its exit code, its output if that is not JSON).

    Args:
        text: what it reads from stdin.

    Raises:
        ValueError: a list or a number cannot be read.
        subprocess.TimeoutExpired: no answer in time.
    """
    verb, call, shape = translate(verb, words)
    if call is None:
        return shape, 0, ""
    door = Path(__file__).resolve().parents[2] / "bin" / "helix"
    # for an unknown name the plugin printed its answer alone, so our message on stderr is dropped
    quiet = subprocess.PIPE if verb == "get" else None
    command = [str(door), "memory", *call, "--json"]
    limit = VERIFY_LIMIT_S if verb == "workspace" else LIMIT_S
    done = subprocess.run(command, env=env, input=text, stdout=subprocess.PIPE, stderr=quiet, text=True, timeout=limit)
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return {}, done.returncode, done.stdout or " "
    return reshaped(verb, answer, done.returncode, shape), done.returncode, ""


def value(verb: str, *words: str | int, document: object = None, encodes: bool = True, **options: object) -> Any:
    """The answer to one function.

    Args:
        words: texts, and names or numbers of memories.
        document: sent as JSON on stdin.
        encodes: whether an encoder may be loaded, which can take seconds.

    Raises:
        RuntimeError: there is none; the message says why.
    """
    # an option and its value in one word: a text may begin with a dash
    named = [f"--{name.replace('_', '-')}={text}" for name, text in options.items() if text not in (None, "")]
    sent = None if document is None else json.dumps(document)
    env = dict(os.environ) if encodes else {**os.environ, "HELIX_EMBEDDER": "off"}
    answer, code, other = ask(verb, [*named, *map(str, words)], env, sent)
    if other:
        raise RuntimeError(other.strip() or f"helix-tui memory {verb} ended with {code}")
    if verb != "get" and "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    return answer


def store(trigger: str, resolution: str, type: str = "failure", source: str = "") -> Any:
    """Store a failure or a pattern: status, name, reason."""
    return value("store", trigger=trigger, resolution=resolution, type=type, source=source)


def recall(query: str, type: str | None = None, limit: int = 5, min_effectiveness: float = 0.0) -> Any:
    """The memories closest to a text, best first."""
    return value("recall", query, type=type, limit=limit, min_effectiveness=min_effectiveness)


def get(name: str | int) -> Any:
    """One memory by its name or id; None if there is none."""
    found = value("get", name)
    return None if found == {"error": "not found"} else found


def feedback(utilized: list[str], injected: list[str]) -> Any:
    """Credit what was used and blame what was shown and not used: helped, unhelpful, missing."""
    return value("feedback", utilized=json.dumps(utilized), injected=json.dumps(injected))


def chunk(task_objective: str, outcome: str, approach: str, source: str = "") -> Any:
    """Keep the approach of a successful task as a pattern: status, name, reason."""
    return value("chunk", task=task_objective, outcome=outcome, approach=approach, source=source)


def relate(from_name: str | int, to_name: str | int, rel_type: str, weight: float = 1.0) -> Any:
    """Link two memories, or strengthen their link."""
    named: dict[str, Any] = {"from": from_name, "to": to_name, "type": rel_type, "weight": weight}
    return value("relate", **named)


edge = relate


def edges(name: str | int | None = None, rel_type: str | None = None) -> Any:
    """The links of a memory, or all links."""
    return value("edges", *([name] if name else []), type=rel_type)


def connected(name: str | int, max_hops: int = 2) -> Any:
    """The memories that links lead to."""
    return value("connected", name, max_hops=max_hops)


def prune(min_effectiveness: float = 0.25, min_uses: int = 3) -> Any:
    """Remove memories that do not help."""
    return value("prune", threshold=min_effectiveness, min_uses=min_uses)


def decay(unused_days: int = 30, min_uses: int = 2) -> Any:
    """List dormant memories."""
    return value("decay", days=unused_days, min_uses=min_uses)


def consolidate(similarity_threshold: float = 0.9) -> Any:
    """Merge memories that say nearly the same."""
    return value("consolidate", threshold=similarity_threshold)


def health() -> Any:
    """The state of the memory."""
    return value("health")


def refused(message: str, fix: str, code: int) -> int:
    """Report that a call failed, as helix-tui itself does; return the exit code."""
    print(json.dumps({"error": {"message": message, "fix": fix, "code": code}}, indent=2))
    return code


def translate(verb: str, words: list[str]) -> tuple[str, list[str] | None, dict[str, Any]]:
    """Translate a call: (the plugin's verb, our command or None if nothing is to be run, how to shape the answer).

    Raises:
        ValueError: a list or a number cannot be read.
    """
    if verb == "recall":
        hops, words = option(words, "--graph-hops")
        least, words = option(words, "--min-relevance")
        hidden, words = option(words, "--suppress-names")
        expand, words = take(words, "--expand")
        # one generation counted the steps, another had a flag for a single step
        words += ["--expand"] if expand or (hops or "0") != "0" else []
        words += ["--gate", least] if least else []
        return verb, [verb, *words], {"hidden": listed("--suppress-names", hidden)}
    if verb == "store":
        content, words = option(words, "--content")
        tags, words = option(words, "--tags")
        return verb, [verb, *words, *(from_content(content, listed("--tags", tags)) if content else [])], {}
    if verb == "feedback":
        return verb, [verb, *feedback_words(words)], {}
    if verb == "feedback-verify":
        task, words = option(words, "--task-id")
        passed, words = option(words, "--verify-passed")
        shown, words = option(words, "--injected")
        said = "passed" if (passed or "").lower() == "true" else "failed"
        # this generation did not distinguish used from shown memories
        both = ["--injected", shown or "[]", "--utilized", shown or "[]"]
        return verb, ["feedback", "--task", task or "", *both, "--verified", said], {}
    if verb == "edge":
        kind, words = option(words, "--rel")
        return verb, [verb, *words, *(["--type", kind] if kind else [])], {}
    if verb == "edges":
        name, words = option(words, "--name")
        kind, words = option(words, "--rel")
        return verb, [verb, *words, *([name] if name else []), *(["--type", kind] if kind else [])], {}
    if verb == "neighbors":
        kind, words = option(words, "--relation")
        most, words = option(words, "--limit")
        return (
            verb,
            ["connected", *words, "--max-hops", "1"],
            {"kind": kind, "most": int(number("--limit", most or "5"))},
        )
    if verb == "decay-edges":
        return verb, None, {"status": "skipped", "reason": "edges do not fade"}
    return verb, ["health" if verb == "stats" else verb, *words], {}


def feedback_words(words: list[str]) -> list[str]:
    """Feedback of three generations: utilized and injected; names with a delta; names with an outcome."""
    shown, words = option(words, "--names")
    if not shown:
        return words
    delta, words = option(words, "--delta")
    outcome, words = option(words, "--outcome")
    causal, words = option(words, "--causal-names")
    if outcome:
        said = OUTCOMES.get(outcome, "failed")
        return [*words, "--injected", shown, "--utilized", causal or shown, "--verified", said]
    amount = number("--delta", delta or "0")
    # a delta of 0 credits and blames nothing
    if not amount:
        return [*words, "--injected", "[]", "--utilized", "[]"]
    return [*words, "--injected", shown, "--utilized", shown if amount > 0 else "[]"]


def from_content(content: str, tags: list[str]) -> list[str]:
    """An insight of the latest plugin, one text, as a situation and what to do in it."""
    # split at the first mark that leaves a long enough situation and something to do
    for mark in (", ", " — ", " - ", "\n", ": "):
        trigger, found, resolution = content.partition(mark)
        if found and len(trigger.strip()) >= 10 and resolution.strip():
            break
    else:
        trigger = resolution = content
    kind = "failure" if "failure" in tags or "blocked" in tags else "pattern"
    source = ["--source", "user-provided"] if "user-provided" in tags else []
    return ["--trigger", trigger.strip(), "--resolution", resolution.strip(), "--type", kind, *source]


def reshaped(verb: str, answer: dict[str, Any], code: int, shape: dict[str, Any]) -> Any:
    """Our answer in the plugin's form."""
    if verb == "get" and code:
        return {"error": "not found"}
    for ours in ("schema", "verb"):
        answer.pop(ours, None)
    if code or verb not in LISTS:
        return answer.get("memory", answer) if verb == "get" else answer
    found = answer.get(LISTS[verb], answer)
    if shape.get("hidden"):
        found = [each for each in found if each.get("name") not in shape["hidden"]]
    if shape.get("kind"):
        found = [each for each in found if shape["kind"] in (each.get("rel_type"), each.get("relation"))]
    return found[: shape["most"]] if "most" in shape else found


def listed(name: str, text: str | None) -> list[Any]:
    """The JSON list in an option; empty if the option is missing."""
    try:
        found = json.loads(text or "[]")
    except ValueError as error:
        raise ValueError(f"{name} is not JSON: {error}") from error
    if not isinstance(found, list):
        raise ValueError(f"{name} is not a list: {text}")
    return found


def number(name: str, text: str) -> float:
    """The number in an option."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{name} is not a number: {text}")
    return found


def take(words: list[str], *names: str) -> tuple[bool, list[str]]:
    """Whether a flag is present, and the other words."""
    return any(name in words for name in names), [word for word in words if word not in names]


def option(words: list[str], name: str) -> tuple[str | None, list[str]]:
    """The value of an option, None where it is not there, and the other words."""
    for place, word in enumerate(words):
        if word == name and place + 1 < len(words):
            return words[place + 1], [*words[:place], *words[place + 2 :]]
        if word.startswith(f"{name}="):
            return word.partition("=")[2], [*words[:place], *words[place + 1 :]]
    return None, words


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
