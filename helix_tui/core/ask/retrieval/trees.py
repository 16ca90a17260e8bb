"""Trees of the repository: which nodes speak of a question, and the way from the root to them.

A node is told in an answer only where a span of a document that was kept stands in the node's evidence; any
other node is a hint for navigation (docs/formats/ask.md §1, phase 6). Where the repository keeps no tree,
the walk follows the folders and headings above each document.

The thresholds and budgets of a run: names, defaults and ranges (docs/formats/ask.md §5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Literal, get_args

from helix_tui.core.ask.records import Span, Tree, TreeNode
from helix_tui.core.ask.retrieval.question import terms_in
from helix_tui.core.ground.errors import HelixError

Depth = Literal["root_to_anchor", "full_path", "anchors_only"]
"""How much of a tree a walk shows: the way to what was found, that and its surroundings, or it alone."""

DEPTHS: tuple[Depth, ...] = get_args(Depth)


class BudgetError(HelixError, ValueError):
    """A budget that does not exist, or a value that it cannot have; the message says what can be written."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What a run may spend and what it must reach."""

    min_doc_span_count: int = 1
    """Spans of documents that are wanted before a question about meaning counts as covered."""
    min_slot_coverage_ratio: float = 0.67
    """Share of the required slots that must have evidence."""
    max_iters: int = 4
    """Retrieval steps."""
    max_files: int = 18
    """Files that evidence may come from."""
    max_span_bytes: int = 4_000
    """Bytes of one span; a longer one is cut at a line."""
    max_runtime_ms: int = 10_000
    """Time for the loop. A run that it ends is not repeatable, so it lies far above what a question takes."""
    dominance_threshold: float = 0.18
    """By how much the first sense of a word must lead the second one."""
    grounded_claim_threshold: float = 0.8
    """Share of an answer's claims that their citations must bear out."""
    max_items: int = 12
    """Spans that reach the answer."""
    max_spans: int = 2
    """Spans of one file that reach the answer."""
    max_bytes: int = 18_000
    """Bytes of all of them."""
    max_symbols: int = 6
    """Symbols of documents that are followed into the code."""
    max_code_spans: int = 6
    """Spans that this adds."""
    max_code_bytes: int = 8_000
    """Bytes that this adds."""
    max_prompt_bytes: int = 48_000
    """Bytes of the evidence that a model is given; less for one with a small context."""


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
    "max_spans": (1, 20),
    "max_bytes": (500, 400_000),
    "max_symbols": (0, 50),
    "max_code_spans": (0, 50),
    "max_code_bytes": (0, 200_000),
    "max_prompt_bytes": (1_000, 400_000),
}

_INTEGERS = frozenset(entry.name for entry in fields(Policy) if isinstance(entry.default, int))


def with_budgets(policy: Policy, settings: Iterable[str]) -> Policy:
    """The policy with some values set, each written ``name=value``.

    Raises:
        BudgetError: a setting that cannot be read, names nothing, or is out of range.
    """
    values: dict[str, float] = {}
    for setting in settings:
        name, equals, text = (part.strip() for part in setting.partition("="))
        name = name.replace("-", "_").lower()
        if name not in _RANGES:
            near = get_close_matches(name, _RANGES, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(_RANGES)}"
            raise BudgetError(f"no budget is called “{name[:60]}”; {hint}")
        low, high = _RANGES[name]
        try:
            value = float(text) if equals else low - 1
        except ValueError:
            value = low - 1
        whole = name in _INTEGERS
        if not low <= value <= high or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise BudgetError(f"{name} is {kind} from {low:g} to {high:g}, not “{text[:40]}”")
        values[name] = int(value) if whole else value
    return replace(policy, **values)  # type: ignore[arg-type]  # the names were looked up above


MOST_TREES = 3
MOST_ANCHORS = 3
MOST_NODES = 24
MOST_AROUND = 4
"""Children of an anchor that a full path shows."""
LEAST_SCORE = 4
"""Score from which a node speaks of a question (docs/formats/ask.md §3.3)."""

Part = Literal["root", "walk", "anchor", "around"]


@dataclass(frozen=True, slots=True)
class Match:
    """A tree and its nodes that speak of a question, the best first."""

    tree: Tree
    nodes: tuple[str, ...]
    score: float


@dataclass(frozen=True, slots=True)
class WalkNode:
    """One stop of a walk."""

    tree: str
    source: str
    """Path of the tree's JSON; empty for folders and headings."""
    id: str
    title: str
    depth: int
    part: Part
    bound: bool
    """A kept span of a document bears it out; else it is a hint for navigation only."""
    path: str
    """The document that it names, if any."""
    detail: str
    """Its summary, only where it is bound."""
    span: str
    """``file:start-end`` of the span that it is bound to."""
    stale: bool = False
    """The tree recorded another content of its evidence than the one that is there."""


def matching_trees(trees: Iterable[Tree], terms: Sequence[str]) -> tuple[Match, ...]:
    """Trees with nodes that speak of some stems, the best first."""
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
    """How much a node speaks of some stems (weights of docs/formats/ask.md §3.3)."""
    ident, title = terms_in(node.id), terms_in(node.title)
    tags, summary = terms_in(" ".join(node.tags)), terms_in(node.summary)
    return sum(
        max(8 * (term in ident), 6 * (term in title), 5 * (term in tags), 3 * (term in summary)) for term in terms
    )


def chain(tree: Tree, ident: str) -> list[str]:
    """The shortest way from the root to a node along parents; the node alone where there is none."""
    up = {child: node.id for node in tree.nodes.values() for child in node.children if child in tree.nodes}
    up |= {node.id: node.parent for node in tree.nodes.values() if node.parent in tree.nodes}
    way = [ident]
    while (above := up.get(way[-1])) is not None and above not in way and way[-1] != tree.root:
        way.append(above)
    return way[::-1]


def walk(
    matches: Sequence[Match], docs: Sequence[Span], depth: Depth, hashes: Mapping[str, str] | None = None
) -> tuple[WalkNode, ...]:
    """The walk for an answer.

    Args:
        matches: trees that speak of the question.
        docs: spans of documents that were kept, the best first.
        depth: how much of each tree is shown.
        hashes: path -> SHA-256 of the content that is there, to tell stale evidence.
    """
    nodes: list[WalkNode] = []
    for match in matches:
        nodes += _walk_tree(match, docs, depth, hashes or {})
    if not any(node.bound for node in nodes):
        nodes += _walk_folders(docs, depth)
    return tuple(nodes[:MOST_NODES])


def _walk_tree(match: Match, docs: Sequence[Span], depth: Depth, hashes: Mapping[str, str]) -> Iterator[WalkNode]:
    tree = match.tree
    binding = {ident: _bound_to(node, docs) for ident, node in tree.nodes.items()}
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
            yield _stop(tree, tree.nodes[ident], level, part, binding[ident], hashes)


def _stop(tree: Tree, node: TreeNode, level: int, part: Part, span: Span | None, hashes: Mapping[str, str]) -> WalkNode:
    proofs = [proof for proof in node.evidence if proof.type == "doc"] or list(node.evidence)
    stale = any(
        proof.content_hash and proof.path in hashes and hashes[proof.path] != proof.content_hash.removeprefix("sha256:")
        for proof in node.evidence
    )
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
    )


def _bound_to(node: TreeNode, docs: Sequence[Span]) -> Span | None:
    """The best span of a document that stands in the node's evidence."""
    for span in docs:
        for proof in node.evidence:
            if proof.type == "doc" and proof.path == span.file and _in_heading(span, proof.heading):
                return span
    return None


def _in_heading(span: Span, heading: str) -> bool:
    return not heading or heading.strip().lower() in span.header.lower() or heading.strip().lower() in span.text.lower()


def _walk_folders(docs: Sequence[Span], depth: Depth) -> Iterator[WalkNode]:
    """The way through folders, document and headings to each kept span of a document."""
    shown: set[str] = set()
    for span in docs[:MOST_ANCHORS]:
        folders = span.file.split("/")
        steps = ["/".join(folders[: place + 1]) for place in range(len(folders))]
        heads = [head for head in span.header.split(" > ") if head]
        titles = [*folders, *heads]
        idents = [*steps, *(f"{span.file}#{' > '.join(heads[: place + 1])}" for place in range(len(heads)))]
        last = len(titles) - 1
        first = last if depth == "anchors_only" else 0
        for level in range(first, last + 1):
            if idents[level] in shown:
                continue
            shown.add(idents[level])
            bound = level == last
            yield WalkNode(
                tree="folders and headings",
                source="",
                id=idents[level],
                title=titles[level],
                depth=level - first,
                part="anchor" if bound else "root" if level == 0 else "walk",
                bound=bound,
                path=span.file if level >= len(folders) - 1 else "",
                detail=first_sentence(span.text) if bound else "",
                span=place_of(span) if bound else "",
            )


def place_of(span: Span) -> str:
    """``file:start-end``."""
    return f"{span.file}:{span.start}-{span.end}"


def first_sentence(text: str) -> str:
    """The first line of a section that is neither a heading nor a mark."""
    for line in text.split("\n"):
        line = line.strip().strip("*_> ").strip()
        if line and not line.startswith(("#", "```", "---", "===", "|", "<!--", "![")):
            return line[:200]
    return ""
