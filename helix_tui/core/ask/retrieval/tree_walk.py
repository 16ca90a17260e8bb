"""Match tree nodes with a question and walk to them from the root; define the policy of a run.

An answer mentions a node only if a kept document span is in the node's evidence; any other node is a hint for
navigation (docs/formats/ask.md §1, phase 6). Without such a node, the walk also follows the folders and headings above
each document.

`Policy` has the thresholds and budgets of a run: names, defaults and ranges (docs/formats/ask.md §5).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, get_args

from msgspec import Struct
from msgspec.structs import asdict, replace

from helix_tui.core.ask.question import terms_in
from helix_tui.core.ask.records import Span, Tree, TreeNode
from helix_tui.core.ground.errors import HelixError

Depth = Literal["root_to_anchor", "full_path", "anchors_only"]
"""How much of a tree a walk shows: the path to a match, the path and what is around the match, or the match alone."""

DEPTHS: tuple[Depth, ...] = get_args(Depth)

_RANGES: dict[str, tuple[float, float]] = {
    "min_doc_span_count": (0, 50),
    "min_slot_coverage_ratio": (0, 1),
    "max_iters": (1, 12),
    "max_files": (1, 200),
    "max_span_bytes": (120, 100_000),
    "max_runtime_ms": (0, 600_000),
    "dominance_threshold": (0, 1),
    "grounded_claim_threshold": (0, 1),
    "max_items": (1, 100),
    "max_spans": (1, 200),
    "max_spans_per_file": (1, 20),
    "max_bytes": (500, 400_000),
    "max_symbols": (0, 50),
    "max_code_spans": (0, 50),
    "max_code_bytes": (0, 200_000),
    "max_prompt_bytes": (1_000, 400_000),
}

_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*$")
MOST_TREES = 3
MOST_ANCHORS = 3
MOST_NODES = 24

MOST_AROUND = 4
"""Children of an anchor that a full path shows."""

LEAST_SCORE = 4
"""Score from which a node matches a question (docs/formats/ask.md §3.3)."""


class BudgetError(HelixError, ValueError):
    """An unknown budget, or an invalid value; the message says what is valid."""


class Policy(Struct, frozen=True):
    """The budgets and thresholds of a run."""

    min_doc_span_count: int = 1
    """Spans of documents below which a question about meaning expands its search once."""
    min_slot_coverage_ratio: float = 0.67
    """Share of the required slots that must have evidence."""
    max_iters: int = 4
    """Retrieval steps."""
    max_files: int = 18
    """Files that evidence may come from."""
    max_span_bytes: int = 4_000
    """Bytes of one span; a longer one is cut at a line."""
    max_runtime_ms: int = 10_000
    """Computing time for the loop. A run that it ends is not repeatable, so it is far more than a question takes."""
    dominance_threshold: float = 0.18
    """Minimum lead in score of the first sense of a word over the second."""
    grounded_claim_threshold: float = 0.8
    """Share of an answer's claims that their citations must support."""
    max_items: int = 20
    """Items of evidence that reach the answer; each is a span."""
    max_spans: int = 20
    """Spans that reach the answer, of all files together."""
    max_spans_per_file: int = 2
    """Spans of one file that reach the answer."""
    max_bytes: int = 32_000
    """Bytes of all spans that reach the answer."""
    max_symbols: int = 6
    """Symbols of documents that are followed to code."""
    max_code_spans: int = 6
    """Spans of code that this adds."""
    max_code_bytes: int = 8_000
    """Bytes of code that this adds."""
    max_prompt_bytes: int = 48_000
    """Bytes of evidence for a model; less for one with a small context."""


_INTEGERS = frozenset(name for name, value in asdict(Policy()).items() if isinstance(value, int))


def with_budgets(policy: Policy, settings: Iterable[str]) -> Policy:
    """The policy with some values set, each written ``name=value``.

    Raises:
        BudgetError: a setting is malformed, unknown or out of range.
    """
    values: dict[str, float] = {}
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        name = name.replace("-", "_").lower()
        if name not in _RANGES:
            near = get_close_matches(name, _RANGES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(_RANGES)}"
            raise BudgetError(f"there is no budget “{name[:60]}”; {hint}")
        low, high = _RANGES[name]
        try:
            # out of range, so that a setting without a value gets the same message
            value = float(text) if equals else low - 1
        except ValueError:
            value = low - 1
        whole = name in _INTEGERS
        if not low <= value <= high or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise BudgetError(f"{name} is {kind} from {low:g} to {high:g}, not “{text[:40]}”")
        values[name] = int(value) if whole else value
    return replace(policy, **values)


Part = Literal["root", "walk", "anchor", "around"]


class Match(Struct, frozen=True):
    """A tree and its nodes that match a question, best first."""

    tree: Tree
    nodes: tuple[str, ...]
    score: float


class WalkNode(Struct, frozen=True):
    """One node of a walk."""

    tree: str
    source: str
    """Path of the tree's JSON; empty for folders and headings."""
    id: str
    title: str
    depth: int
    part: Part
    bound: bool
    """Whether a kept span supports it; else it is only a hint for navigation."""
    path: str
    """Its file; empty if it has none."""
    detail: str
    """Its summary; empty unless bound."""
    span: str
    """``file:start-end`` of the span that it is bound to; empty unless bound."""
    stale: bool = False
    """Whether a file of its evidence has changed since the tree recorded its hash."""
    fields: Mapping[str, Any] = {}
    """What makes it reproducible, as recorded in the tree; empty unless bound."""


def matching_trees(trees: Iterable[Tree], terms: Sequence[str]) -> tuple[Match, ...]:
    """Trees with nodes that match some stems, best first."""
    matches = []
    for tree in trees:
        scores = {ident: node_score(node, terms) for ident, node in tree.nodes.items()}
        best = sorted((ident for ident in scores if scores[ident] >= LEAST_SCORE), key=lambda i: (-scores[i], i))
        if best:
            top = best[:MOST_ANCHORS]
            matches.append(Match(tree, tuple(top), sum(scores[ident] for ident in top)))
    matches.sort(key=lambda match: (-match.score, match.tree.id))
    return tuple(matches[:MOST_TREES])


def node_score(node: TreeNode, terms: Sequence[str]) -> int:
    """How well a node matches some stems (weights of docs/formats/ask.md §3.3)."""
    ident, title = terms_in(node.id), terms_in(node.title)
    tags, summary = terms_in(" ".join(node.tags)), terms_in(node.summary)
    return sum(
        max(8 * (term in ident), 6 * (term in title), 5 * (term in tags), 3 * (term in summary)) for term in terms
    )


def chain(tree: Tree, ident: str) -> list[str]:
    """The path to a node along parents, from the root or the highest ancestor there is."""
    up = {child: node.id for node in tree.nodes.values() for child in node.children if child in tree.nodes}
    # a node's own parent overrides another node's list of children
    up |= {node.id: node.parent for node in tree.nodes.values() if node.parent in tree.nodes}
    way = [ident]
    # trees of a repository may have cycles
    while (above := up.get(way[-1])) is not None and above not in way and way[-1] != tree.root:
        way.append(above)
    return way[::-1]


Lines = Callable[[str], Sequence[str]]
"""Returns the lines of a file; empty if it does not exist."""


def walk(
    matches: Sequence[Match], docs: Sequence[Span], depth: Depth, lines: Lines = lambda _: ()
) -> tuple[WalkNode, ...]:
    """Return the walk for an answer, `MOST_NODES` at most.

    Args:
        matches: trees that match the question, best first.
        docs: the kept spans of documents, best first.
        depth: how much of each tree is shown.
        lines: returns a file's lines, to detect stale evidence and to find the sections around a span.
    """
    nodes: list[WalkNode] = []
    for match in matches:
        nodes += _walk_tree(match, docs, depth, lines)
    # a tree without bound nodes does not show where the kept documents are
    if not any(node.bound for node in nodes):
        nodes += _walk_folders(docs, depth, lines)
    return tuple(nodes[:MOST_NODES])


def _walk_tree(match: Match, docs: Sequence[Span], depth: Depth, lines: Lines) -> Iterator[WalkNode]:
    tree = match.tree
    binding = {ident: _bound_to(node, docs) for ident, node in tree.nodes.items()}
    # nodes with evidence in the answer first; without any the best one as a hint
    anchors = [ident for ident in match.nodes if binding[ident] is not None] or list(match.nodes[:1])
    anchors += [ident for ident in sorted(tree.nodes) if binding[ident] is not None and ident not in anchors]
    anchors = anchors[:MOST_ANCHORS]
    shown: set[str] = set()
    for anchor in anchors:
        way = chain(tree, anchor) if depth != "anchors_only" else [anchor]
        around = [child for child in tree.nodes[anchor].children if child in tree.nodes][:MOST_AROUND]
        stops = [*enumerate(way), *((len(way), child) for child in around if depth == "full_path")]
        for level, ident in stops:
            if ident in shown:
                continue
            shown.add(ident)
            part: Part = "anchor" if ident in anchors else "around" if level == len(way) else "walk"
            if part == "walk" and ident == tree.root:
                part = "root"
            yield _stop(tree, tree.nodes[ident], level, part, binding[ident], lines)


def _stop(tree: Tree, node: TreeNode, level: int, part: Part, span: Span | None, lines: Lines) -> WalkNode:
    proofs = [proof for proof in node.evidence if proof.type == "doc"] or list(node.evidence)
    stale = any(is_stale(proof.content_hash, lines(proof.path)) for proof in node.evidence if proof.content_hash)
    return WalkNode(
        tree=tree.label or tree.id,
        source=tree.source,
        id=node.id,
        title=node.title or node.id,
        depth=level,
        part=part,
        bound=span is not None,
        path=span.file if span is not None else proofs[0].path if proofs else "",
        detail=node.summary if span is not None else "",
        span=place_of(span) if span is not None else "",
        stale=stale,
        fields=node.fields if span is not None else {},
    )


def is_stale(content_hash: str, lines: Sequence[str]) -> bool:
    """Whether a file's content differs from the ``sha256:…`` that a tree recorded; False for a missing file."""
    if not lines:
        return False
    # the lines have lost their ends: try each way in which the file may be written
    texts = ("\n".join(lines) + "\n", "\n".join(lines), "\r\n".join(lines) + "\r\n")
    hashes = {hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest() for text in texts}
    return content_hash.removeprefix("sha256:").lower() not in hashes


def _bound_to(node: TreeNode, docs: Sequence[Span]) -> Span | None:
    """The best document span in a node's evidence; None if there is none."""
    for span in docs:
        for proof in node.evidence:
            if proof.type == "doc" and proof.path == span.file and _in_heading(span, proof.heading):
                return span
    return None


def _in_heading(span: Span, heading: str) -> bool:
    return not heading or heading.strip().lower() in span.header.lower() or heading.strip().lower() in span.text.lower()


def _walk_folders(docs: Sequence[Span], depth: Depth, lines: Lines) -> Iterator[WalkNode]:
    """Yield the path through folders, document and headings to each of the best document spans; for a full path also
    the sections around it.
    """
    shown: set[str] = set()
    # a section that is a stop of its own is not also told as one around another
    anchors = {(span.file, span.header.split(" > ")[-1]) for span in docs[:MOST_ANCHORS]}
    for span in docs[:MOST_ANCHORS]:
        folders = span.file.split("/")
        heads = [head for head in span.header.split(" > ") if head]
        titles = [*folders, *heads]
        idents = ["/".join(folders[: place + 1]) for place in range(len(folders))]
        idents += [f"{span.file}#{' > '.join(heads[: place + 1])}" for place in range(len(heads))]
        last = len(titles) - 1
        first = last if depth == "anchors_only" else 0
        for level in range(first, last + 1):
            if idents[level] not in shown:
                shown.add(idents[level])
                part: Part = "anchor" if level == last else "root" if level == 0 else "walk"
                file = span.file if level >= len(folders) - 1 else ""
                yield _place(idents[level], titles[level], level - first, part, file, span)
        for title in _sections_around(lines(span.file), heads[-1:]) if depth == "full_path" else ():
            ident = f"{span.file}#{title}"
            if ident not in shown and title not in heads and (span.file, title) not in anchors:
                shown.add(ident)
                yield _place(ident, title, last + 1, "around", span.file, span)


def _place(ident: str, title: str, depth: int, part: Part, file: str, span: Span) -> WalkNode:
    """A folder, document or heading on the path to a span."""
    bound = part == "anchor"
    return WalkNode(
        tree="folders and headings",
        source="",
        id=ident,
        title=title,
        depth=depth,
        part=part,
        bound=bound,
        path=file,
        detail=first_sentence(span.text) if bound else "",
        span=place_of(span) if bound else "",
    )


def _sections_around(lines: Sequence[str], heading: Sequence[str]) -> list[str]:
    """The sections directly below a heading, else those beside it; without a heading, the first ones."""
    found: list[tuple[int, str]] = []
    fence = False
    for line in lines:
        fence ^= line.lstrip().startswith(("```", "~~~"))
        mark = None if fence else _HEADING.match(line)
        if mark is not None:
            found.append((len(mark[1]), mark[2].strip()))
    at = next((place for place, (_, title) in enumerate(found) if heading and title == heading[0]), -1)
    level = found[at][0] if at >= 0 else 0
    below: list[str] = []
    for depth, title in found[at + 1 :]:
        if depth <= level:
            break
        below += [title] if depth == level + 1 or (level == 0 and depth <= 2) else []
    beside = [title for place, (depth, title) in enumerate(found) if depth == level and place != at]
    return (below or beside)[:MOST_AROUND]


def place_of(span: Span) -> str:
    """``file:start-end``."""
    return f"{span.file}:{span.start}-{span.end}"


def first_sentence(text: str) -> str:
    """The first line of a section that is neither a heading nor markup, at most 200 characters; else empty."""
    for line in text.split("\n"):
        line = line.strip().strip("*_> ").strip()
        if line and not line.startswith(("#", "```", "---", "===", "|", "<!--", "![")):
            return line[:200]
    return ""
