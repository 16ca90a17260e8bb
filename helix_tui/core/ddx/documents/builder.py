"""Build the document graph from files, by ddx's rule.

A document is a Markdown file whose frontmatter names an id under ``ddx`` (or, older, ``dun``). Rule:
docs/formats/documents.md; the wording of issues is ddx's own.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import yaml
from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.beads.graph import components
from helix_tui.core.ddx.dialect import AUGUST, DocumentRule
from helix_tui.core.ddx.documents.frontmatter import (
    FrontmatterError,
    NodeDecoder,
    number_at,
    read_fields,
    read_node,
    split,
    text_at,
    value_at,
)
from helix_tui.core.ddx.documents.graph import (
    Bucket,
    DocumentGraph,
    DocumentsUnreadable,
    GraphDocument,
    GraphIssue,
    Metric,
    slug_of,
)
from helix_tui.core.ddx.documents.hashing import content_hash
from helix_tui.core.ground.files import (
    Stamps,
    below,
    is_file,
    leads_down,
    names_in,
    read_bytes,
    read_status,
    stamp_of,
    status_of,
    walk,
)

MAX_FILES = 50_000
"""Maximum number of Markdown files in one tree."""

_MANAGED = frozenset((".git", ".ddx", ".claude", "worktrees"))
_LINK = re.compile(r"\[\[([^\[\]]+)\]\]")
_HISTORICAL = frozenset(("superseded", "archived", "historical", "deprecated"))
_DONE = frozenset(("published", "complete", "implemented", "converged"))


def read_graph(root: Path, ddx_dir: Path, *, rule: DocumentRule = AUGUST.documents) -> DocumentGraph:
    """The graph of a project's documents.

    Args:
        root: the folder searched for documents.
        ddx_dir: the folder whose ``graphs/*.yaml`` may narrow the search.
        rule: what is included.

    Raises:
        DocumentsUnreadable: a file under ``graphs`` is broken.
    """
    configs, roots = _configured(root, ddx_dir)
    made = _Making(Path(os.path.normpath(root)), rule)
    made.warnings += [
        f"root {_quoted(name)} is outside the repository and is not read"
        for config in configs
        for name in config.roots
        if not leads_down(name)
    ]
    made.read(_markdown_files(made.root, roots or [made.root], hidden=rule.hidden))
    made.resolve_links()
    made.find_missing()
    made.find_cycles()
    if rule.gates:
        made.find_metrics()
    if roots:
        made.apply(configs)
    return made.graph()


def read_stamps(root: Path, ddx_dir: Path, *, rule: DocumentRule = AUGUST.documents) -> Stamps:
    """The stamp of each file that `read_graph` reads, to detect changes.

    Raises:
        DocumentsUnreadable: as `read_graph`.
    """
    configs, roots = _configured(root, ddx_dir)
    start = Path(os.path.normpath(root))
    beside = [str(below(start, path)) for config in configs for path in config.id_to_path.values()]
    own = map(str, _config_files(ddx_dir / "graphs"))
    texts = _markdown_files(start, roots or [start], hidden=rule.hidden)
    return {path: stamp_of(path) for path in (*own, *texts, *beside)}


def _configured(root: Path, ddx_dir: Path) -> tuple[list[_Config], list[Path]]:
    """The configuration in ``.ddx/graphs``, and the folders that it names."""
    configs = [config for path in _config_files(ddx_dir / "graphs") if (config := _read_config(path))]
    configs.sort(key=lambda config: -len(config.roots))
    return configs, [below(root, each) for config in configs for each in config.roots if each]


class _Config(Struct, frozen=True):
    """One file under ``.ddx/graphs``."""

    roots: tuple[str, ...]
    id_to_path: Mapping[str, str]
    cascade: Mapping[str, tuple[str, ...]]
    required: tuple[str, ...]


class _Making:
    """A graph under construction."""

    def __init__(self, root: Path, rule: DocumentRule) -> None:
        self.root = root
        self._rule = rule
        self.documents: dict[str, GraphDocument] = {}
        self.issues: list[GraphIssue] = []
        self.warnings: list[str] = []
        self.undeclared: list[GraphDocument] = []
        self._sources: dict[str, tuple[bytes, yaml.Node | None, bytes]] = {}
        self._links: dict[str, tuple[str, ...]] = {}

    def read(self, paths: Iterable[str]) -> None:
        """Add the documents among some files; the first file with an id wins."""
        for path in paths:
            relative = _relative(self.root, path)
            try:
                document = self._parse(path, relative)
            except FrontmatterError as error:
                self.issues.append(GraphIssue("parse_error", f"{path}: {error}", relative))
                continue
            if document is None:
                continue
            there = self.documents.get(document.id)
            if there is not None:
                said = f"duplicate document id {_quoted(document.id)} in {_quoted(path)}"
                self.issues.append(GraphIssue("duplicate_id", said, relative, document.id, there.path))
                continue
            self.documents[document.id] = document

    def _parse(self, path: str, relative: str) -> GraphDocument | None:
        raw = read_bytes(path)
        if raw is None:
            raise FrontmatterError(_unread(path))
        parts = split(raw)
        if parts is None:
            self._pass_over(relative, None, raw)
            return None
        try:
            node = read_node(parts[0])
            fields = read_fields(node, status=self._rule.status)
        except FrontmatterError as error:
            raise FrontmatterError(f"parse frontmatter: {error}") from None
        if not fields.id:
            self._pass_over(relative, node, parts[1])
            return None
        text = parts[1].decode("utf-8", "replace")
        # of two files with one id the first wins, so its text is the one that is hashed
        if fields.id not in self.documents:
            self._sources[fields.id] = (parts[0], node, parts[1])
            self._links[fields.id] = tuple(found.strip() for found in _LINK.findall(text) if found.strip())
        return GraphDocument(
            id=fields.id,
            path=relative,
            title=_title(text),
            status=fields.status,
            depends_on=_sorted(fields.depends_on),
            review=fields.review,
            parking_lot=fields.parking_lot,
            execution=fields.execution,
            metric=_metric(node),
            bucket=_bucket(fields.status, fields.parking_lot, relative, text),
            superseded_by=fields.superseded_by,
            supersedes=fields.supersedes,
        )

    def _pass_over(self, relative: str, node: yaml.Node | None, body: bytes) -> None:
        """Keep a file that is not a document to ddx, for the search."""
        name = text_at(node, "id")
        if name or relative.startswith(f"docs{os.sep}"):
            title = _title(body.decode("utf-8", "replace"))
            self.undeclared.append(GraphDocument(name or relative, relative, title, text_at(node, "status")))

    def resolve_links(self) -> None:
        """Add a dependency for every ``[[ID]]`` in a text that names a document."""
        for document in tuple(self.documents.values()):
            named = {text: _resolve(text, self.documents) for text in self._links[document.id]}
            more = [target for target in named.values() if target and target != document.id]
            unresolved = tuple(text for text, target in named.items() if not target)
            depends_on = _sorted((*document.depends_on, *more)) if named else document.depends_on
            self.documents[document.id] = replace(document, depends_on=depends_on, unresolved=unresolved)

    def find_missing(self) -> None:
        """Report dependencies that name no document."""
        for document in self._ordered():
            for needed in document.depends_on:
                if needed not in self.documents:
                    said = f"document {_quoted(document.id)} declares dependency {_quoted(needed)}"
                    said += " which is not in the graph"
                    self.issues.append(GraphIssue("missing_dep", said, document.path, needed))

    def find_cycles(self) -> None:
        """Report cycles of documents."""
        edges = {each.id: each.depends_on for each in self._ordered()}
        for group in components(edges):
            alone = len(group) == 1
            if not alone or group[0] in edges[group[0]]:
                ids = sorted(group)
                said = " -> ".join((*ids, ids[0]))
                self.issues.append(GraphIssue("cycle", f"cycle detected: {said}", id=ids[0] if alone else ""))

    def find_metrics(self) -> None:
        """Report gates without a defined metric, and budgets that differ from the gate's ratchet."""
        for document in self._ordered():
            name = document.execution.metric_id if document.execution else ""
            if not name:
                continue
            defined = self.documents.get(name)
            if defined is None or defined.metric is None or not name.startswith("MET-"):
                said = f"document {_quoted(document.id)} declares execution metric_id {_quoted(name)}"
                said += " which does not resolve to a MET artifact"
                self.issues.append(GraphIssue("missing_metric_artifact", said, document.path, name))
                continue
            ratchet = number_at(self._sources[document.id][1], "ddx", "execution", "thresholds", "ratchet")
            budget = defined.metric.budget
            if budget is not None and ratchet is not None and budget != ratchet:
                self.warnings.append(
                    f"metric artifact {_quoted(name)} budget {budget:g} conflicts with gate ratchet {ratchet:g} on "
                    f"{_quoted(document.id)}; gate ratchet is authoritative"
                )

    def apply(self, configs: Iterable[_Config]) -> None:
        """Apply ``.ddx/graphs``: required documents, ids of files outside the roots, dependencies."""
        configs = list(configs)
        for config in configs:
            for name in config.required:
                if name not in self.documents:
                    said = f"required root document {_quoted(name)} not found"
                    self.issues.append(GraphIssue("required_root_missing", said, id=name))
        paths = {name: path for config in configs for name, path in config.id_to_path.items()}
        for name, path in paths.items():
            if name not in self.documents:
                self._add(name, path)
        cascade: dict[str, list[str]] = {}
        for config in configs:
            for source, targets in config.cascade.items():
                if source and any(targets):
                    cascade.setdefault(source, []).extend(filter(None, targets))
        for source, named in cascade.items():
            self._cascade(source, named)
        # documents and edges were added: find missing ones again
        self.issues = [issue for issue in self.issues if issue.kind != "missing_dep"]
        self.find_missing()
        self.find_cycles()  # once more, as ddx does: a circle is then listed twice

    def _add(self, name: str, named: str) -> None:
        path = os.path.normpath(self.root / named)
        relative = _relative(self.root, path)
        start = f"id_to_path entry {_quoted(name)} -> {_quoted(path)}"
        kind, said = "id_path_missing", ""
        document = None
        if not leads_down(named):
            said = f"{start} is outside the repository"
        elif status_of(path) is None:
            said = f"{start} does not exist"
        else:
            try:
                document = self._parse(path, relative)
            except FrontmatterError as error:
                said = f"{start} could not be loaded: {error}"
            if document is None:
                said = said or f"{start} is not a doc graph document"
            elif document.id != name:
                kind = "id_path_mismatch"
                said = f"id_to_path mismatch for {_quoted(name)}: {_quoted(path)} declares {_quoted(document.id)}"
        if said or document is None:
            self.issues.append(GraphIssue(kind, said, relative, name))
        else:
            self.documents[name] = document

    def _cascade(self, source: str, targets: Iterable[str]) -> None:
        if source not in self.documents:
            said = f"cascade rule refers to unknown dependency root {_quoted(source)}"
            self.issues.append(GraphIssue("cascade_unknown", said, id=source))
            return
        for target in _sorted(targets):
            document = self.documents.get(target)
            if document is None:
                said = f"cascade rule refers to unknown target doc {_quoted(target)}"
                self.issues.append(GraphIssue("cascade_unknown", said, id=target))
            else:
                self.documents[target] = replace(document, depends_on=_sorted((*document.depends_on, source)))

    def graph(self) -> DocumentGraph:
        """The finished graph."""
        dependents: dict[str, list[str]] = {}
        for document in self._ordered():
            for needed in document.depends_on:
                dependents.setdefault(needed, []).append(document.id)
        documents = {
            each.id: replace(each, dependents=_sorted(dependents.get(each.id, ()))) for each in self._ordered()
        }
        # hashing reads every text, and only documents named in a review are compared by hash
        reviewed = {needed for each in documents.values() for needed in each.review.deps}
        return DocumentGraph(
            root=self.root,
            documents=documents,
            issues=tuple(sorted(self.issues, key=lambda issue: (issue.kind, issue.message))),
            warnings=tuple(sorted(self.warnings)),
            undeclared=tuple(self.undeclared),
            hashes={name: content_hash(*self._sources[name]) for name in reviewed if name in documents},
        )

    def _ordered(self) -> Iterator[GraphDocument]:
        for name in sorted(self.documents):
            yield self.documents[name]


def _markdown_files(root: Path, roots: Iterable[Path], *, hidden: bool) -> list[str]:
    """Every Markdown file under some folders, sorted, except in hidden folders and those of tools.

    Raises:
        DocumentsUnreadable: there are too many.
    """
    found: list[str] = []
    for start in roots:
        top = os.fspath(start)
        if os.path.basename(top) in _MANAGED or (not hidden and _hidden(_relative(root, top))):
            continue
        # as for ddx, a link to a folder is a file that cannot be read
        for folder, folders, names in walk(top):
            # in place: those that are removed are not entered
            folders[:] = [name for name in folders if name not in _MANAGED and (hidden or not name.startswith("."))]
            paths = (os.path.join(folder, name) for name in names if not name.startswith("."))
            found += [path for path in paths if os.path.splitext(path)[1].lower() == ".md"]
            if len(found) > MAX_FILES:
                raise DocumentsUnreadable(
                    f"more than {MAX_FILES:,} Markdown files under {start}: name the folders of documents as "
                    "`roots` in .ddx/graphs/*.yaml"
                )
    return sorted(found)


def _unread(path: str) -> str:
    """Why a file cannot be read, in ddx's words."""
    try:
        mode = read_status(path).st_mode
    except OSError as error:
        return f"open {path}: {(error.strerror or 'cannot be read').lower()}"
    if stat.S_ISDIR(mode):
        return f"read {path}: is a directory"
    return f"open {path}: " + ("permission denied" if stat.S_ISREG(mode) else "not a regular file")


def _hidden(relative: str) -> bool:
    return any(part.startswith(".") and part not in (".", "..") for part in relative.split(os.sep))


def _relative(root: Path, path: str) -> str:
    relative = os.path.relpath(path, root)
    return path if relative == ".." or relative.startswith(f"..{os.sep}") else relative


def _config_files(folder: Path) -> list[Path]:
    names = (name for name in names_in(folder) if name.lower().endswith((".yml", ".yaml")))
    return [folder / name for name in names if is_file(folder / name)]


def _read_config(path: Path) -> _Config | None:
    """One configuration of the graph; None if it is empty.

    Raises:
        DocumentsUnreadable: it is not YAML, or not of this form.
    """
    try:
        node = read_node(read_bytes(path) or b"")
        decoder = NodeDecoder()
        known = decoder.mapping(node, "docgraph.GraphConfig")
        places, more = (decoder.mapping(known.get(name), "map[string]string") for name in ("id_to_path", "id_map"))
        paths = [(name, decoder.text(value)) for name, value in (*places.items(), *more.items())]
        cascade = decoder.mapping(known.get("cascade"), "map[string][]string")
        config = _Config(
            roots=decoder.texts(known.get("roots")),
            id_to_path={name: path for name, path in paths if name and path},
            cascade={name: decoder.texts(value) for name, value in cascade.items()},
            required=decoder.texts(known.get("required_roots")),
        )
        decoder.check()
    except FrontmatterError as error:
        raise DocumentsUnreadable(f"parse graph config {_quoted(str(path))}: {error}") from None
    return config if node is not None else None


def _metric(node: yaml.Node | None) -> Metric | None:
    found = value_at(node, "metric")
    if found is None:
        return None
    return Metric(
        unit=text_at(found, "unit"),
        direction=text_at(found, "direction"),
        goal=number_at(found, "goal"),
        budget=number_at(found, "budget"),
    )


def _bucket(status: str, parking_lot: bool, path: str, text: str) -> Bucket:
    first = text.strip().lower().partition("\n\n")[0]
    if parking_lot or "> **historical**" in first or "> **superseded" in first:
        return "historical_superseded"
    word = status.strip().lower().replace("-", "_").replace(" ", "_")
    if word in _HISTORICAL:
        return "historical_superseded"
    if word in _DONE or "/references/" in path:
        return "noise"
    return "historical_superseded" if "/alignment-reviews/" in path else "active_actionable"


def _title(text: str) -> str:
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.strip().startswith("# "):
            return line.strip()[2:].strip()
    return ""


def _resolve(text: str, documents: Mapping[str, GraphDocument]) -> str:
    """The id that a link names, as written or as a slug; else ""."""
    if text in documents:
        return text
    slug = slug_of(text)
    return slug if slug in documents else ""


def _sorted(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({value.strip() for value in values} - {""}))


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f"}


def _quoted(text: str) -> str:
    """A text in quotes as Go writes it."""
    shown = "".join(_ESCAPES.get(char) or (char if char.isprintable() else f"\\u{ord(char):04x}") for char in text)
    return f'"{shown}"'
