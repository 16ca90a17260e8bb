"""Question sets out of what repositories and their people left behind: ``python -m bench.ask_collect``.

Prints JSONL of the form that ``bench.ask_quality --set`` reads. ``messages DIR`` asks with commit messages of a
length (``--merges``: with what merges say), ``beads DIR`` with closed beads whose landing commit the tracker or the
message names, ``tasks DIR FILE`` with issues (JSON rows of problem_statement, base_commit, patch), ``answers DIR
FILE`` with questions that people answered (JSONL of question, answer; gold are the files that the answer names), and
``annotations DIR FILE`` with annotated queries (JSON rows of query, relevant, secondary). Trees are those before the
change, or ``--revision``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

MOST_CHANGED = 8
"""Files; a commit that changed more is about none of them."""
_TRAILER = re.compile(r"^(?:[A-Z][\w-]+-by|Change-Id|Reviewed-on|Bead|PR-URL|Co-authored-by):.*$", re.MULTILINE | re.I)
_NUMBER = re.compile(r"\(?#\d+\)?|https?://\S+")
_ROUTINE = re.compile(
    r"^(?:merge|revert|bump|release|prepare|version|chore\b|ci\b|build\(deps|update (?:dependency|changelog)|\W*$)",
    re.I,
)
_UNREPORTED = re.compile(r"change(?:log|s)|news|releases?[-_ ]?notes|\.svg$|\.lock$|go\.sum$|^\.ddx/", re.IGNORECASE)
_TEST = re.compile(r"(?:^|/)(?:tests?|testing|__tests__|spec|testdata)/|(?:^|/)test_|_test\.|\.(?:test|spec)\.")
_PATH = re.compile(r"[\w.@-]+(?:/[\w.@-]+)+|\b[\w-]+\.(?:go|md|py|ts|tsx|js|rs|java|ya?ml|json|toml|sh)\b")


@dataclass(frozen=True, slots=True)
class Row:
    """One question, as `bench.ask_sets.rows_of` reads it."""

    root: str
    revision: str
    query: str
    relevant: list[str]
    set: str


def main() -> int:
    """Print a set."""
    options = _options()
    root = options.dir.resolve()
    rows: Iterator[Row] = {
        "messages": lambda: _messages(root, options),
        "beads": lambda: _beads(root),
        "tasks": lambda: _tasks(root, options.file),
        "answers": lambda: _answers(root, options.file, options.revision),
        "annotations": lambda: _annotations(root, options),
    }[options.kind]()
    for number, row in enumerate(rows):
        if number >= options.most:
            break
        print(json.dumps(asdict(row) | {"set": options.name or row.set}))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("messages", "beads", "tasks", "answers", "annotations"))
    parser.add_argument("dir", type=Path)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--revision", default="HEAD")
    parser.add_argument("--below", default="", help="annotations: the folder that their paths count from")
    parser.add_argument("--merges", action="store_true")
    parser.add_argument("--words", type=int, nargs=2, default=(45, 600), metavar=("LEAST", "MOST"))
    parser.add_argument("--most", type=int, default=40)
    parser.add_argument("--name", default="")
    return parser.parse_args()


def _messages(root: Path, options: argparse.Namespace) -> Iterator[Row]:
    """Commit messages of a length, newest first; of a merge its body asks and all that it brought answers."""
    which = "--merges" if options.merges else "--no-merges"
    log = _git(root, "log", which, "--max-count=4000", "--format=%H%x01%s%x01%b%x02", options.revision)
    for record in log.split("\x02"):
        sha, _, rest = record.strip().partition("\x01")
        subject, _, body = rest.partition("\x01")
        text = _told(body if options.merges else f"{subject}\n\n{body}")
        least, most = options.words
        if not least <= len(text.split()) <= most or (not options.merges and _ROUTINE.match(subject)):
            continue
        gold = _changed(root, f"{sha}^", sha)
        if 0 < len(gold) <= MOST_CHANGED and any(not _TEST.search(path) for path in gold):
            yield Row(str(root), f"{sha}^", text, gold, f"messages {root.parent.name}")


def _told(text: str) -> str:
    text = _NUMBER.sub("", _TRAILER.sub("", text.replace("\r", "")))
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _beads(root: Path) -> Iterator[Row]:
    """Closed beads with the files of their commits, at the parent; paths are taken out of the text."""
    beads = {}
    for name in (".ddx/beads.jsonl", ".ddx/beads-archive.jsonl"):
        for line in _git(root, "show", f"HEAD:{name}", check=False).splitlines():
            row = json.loads(line) if line.startswith("{") else {}
            if row.get("status") == "closed" and row.get("description"):
                beads[row["id"]] = row
    log = _git(root, "log", "--no-merges", "--format=%H%x01%s", "HEAD")
    commits: dict[str, list[str]] = {}
    for line in log.splitlines():
        sha, _, subject = line.partition("\x01")
        for ident in re.findall(r"\[([a-z]+-[\w.-]+)\]", subject):
            if not re.match(r"chore", subject):
                commits.setdefault(ident, []).append(sha)
    for ident, bead in sorted(beads.items()):
        shas = commits.get(ident, [])
        if len(shas) != 1:
            continue
        gold = _changed(root, f"{shas[0]}^", shas[0])
        if 0 < len(gold) <= MOST_CHANGED:
            text = "\n\n".join(filter(None, (bead["title"], bead["description"], bead.get("acceptance", ""))))
            yield Row(str(root), f"{shas[0]}^", _PATH.sub("", text), gold, f"beads {root.parent.name}")


def _tasks(root: Path, file: Path) -> Iterator[Row]:
    for row in json.loads(file.read_text("utf-8")):
        text = _told(row.get("problem_statement") or "")
        if len(text.split()) < 12 or re.match(r"bump\b", text, re.I):
            continue
        known = set(_git(root, "ls-tree", "-r", "--name-only", row["base_commit"], check=False).splitlines())
        named = re.findall(r"^diff --git a/(\S+) b/", row["patch"], re.MULTILINE)
        gold = [
            path for path in named if path in known and not _UNREPORTED.search(path) and not path.endswith("pom.xml")
        ]
        if 0 < len(gold) <= MOST_CHANGED:
            yield Row(str(root), row["base_commit"], text, gold, f"tasks {root.parent.name}")


def _answers(root: Path, file: Path, revision: str) -> Iterator[Row]:
    known = set(_git(root, "ls-tree", "-r", "--name-only", revision).splitlines())
    for line in file.read_text("utf-8").splitlines():
        row = json.loads(line)
        named = dict.fromkeys(re.findall(r"[\w./-]+\.\w+", row["answer"]))
        gold = [path for path in (name.lstrip("./") for name in named) if path in known]
        if 0 < len(gold) <= MOST_CHANGED:
            yield Row(str(root), revision, row["question"], gold, f"answers {root.parent.name}")


def _annotations(root: Path, options: argparse.Namespace) -> Iterator[Row]:
    known = set(_git(root, "ls-tree", "-r", "--name-only", options.revision).splitlines())
    for row in json.loads(options.file.read_text("utf-8")):
        named = [one if isinstance(one, str) else one["path"] for one in row["relevant"] + row.get("secondary", [])]
        places = [path if path in known else f"{options.below}/{path}".lstrip("/") for path in named]
        gold = [path for path in places if path in known]
        if gold:
            yield Row(str(root), options.revision, row["query"], gold, f"annotations {root.parent.name}")


def _changed(root: Path, before: str, after: str) -> list[str]:
    """The files that a change touched and that were there before it."""
    done = _git(root, "diff", "--name-only", "--diff-filter=MD", "--no-renames", before, after, check=False)
    return [path for path in done.splitlines() if not _UNREPORTED.search(path)]


def _git(root: Path, *words: str, check: bool = True) -> str:
    argv = ["git", "-c", "core.quotePath=false", "-C", str(root), *words]
    done = subprocess.run(argv, capture_output=True, timeout=120, check=check)
    return done.stdout.decode("utf-8", "replace")


if __name__ == "__main__":
    raise SystemExit(main())
