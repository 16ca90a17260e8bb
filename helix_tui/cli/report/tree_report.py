"""``helix-tui ask --check-trees``: every tree of the repository against the schema that users are given."""

from __future__ import annotations

from helix_tui.cli.call import Call, CliError
from helix_tui.cli.report.loading import locate
from helix_tui.core.ask.corpus.listing import NothingToAsk, Source, read_file
from helix_tui.core.ask.index.tree_check import TreeProblem, check_tree
from helix_tui.core.ask.index.trees import MAX_TREE_BYTES, may_hold_tree
from helix_tui.core.ground.git import open_nonblocking
from helix_tui.core.ground.text import clean_line

SCHEMA = "docs/knowledge/dag-node-schema.md"
MAX_SHOWN = 40
"""Lines of one tree for people; all of them are in --json."""


def check_trees(call: Call) -> int:
    """Check each tree; 1 where one has a problem."""
    root = locate(call).root
    try:
        files = [entry.path for entry in Source(root, None).list().entries if may_hold_tree(entry.path)]
    except NothingToAsk as error:
        raise CliError(clean_line(str(error), 400), "Name a repository with -C DIR.") from None

    def read(path: str) -> bytes | None:
        found = None if path.startswith(("/", "..")) or "/../" in path else read_file(root, path)
        if isinstance(found, int):  # larger than what is searched
            with open(root / path, "rb", opener=open_nonblocking) as file:
                return file.read(MAX_TREE_BYTES + 1)
        return found

    checked = {path: check_tree(read(path) or b"", read) for path in sorted(files)}
    broken = sum(any(not problem.hint for problem in found) for found in checked.values())
    if call.json:
        trees = [{"path": path, "problems": [_record(each) for each in found]} for path, found in checked.items()]
        call.emit({"schema_file": SCHEMA, "trees": trees, "broken": broken})
    else:
        for path, found in checked.items():
            _print(call, path, found)
        if not checked:
            call.print(f"no tree here: files `*-tree.json` or `dag*.json` as {SCHEMA} describes them")
    return 1 if broken else 0


def _record(problem: TreeProblem) -> dict[str, object]:
    return {"node": problem.node, "text": problem.text, "hint": problem.hint}


def _print(call: Call, path: str, found: list[TreeProblem]) -> None:
    wrong = sum(not problem.hint for problem in found)
    hints = len(found) - wrong
    said = (
        f"{wrong} problem{'' if wrong == 1 else 's'}, {hints} hint{'' if hints == 1 else 's'}" if found else "in order"
    )
    call.print(f"{clean_line(path, 200)}: {call.paint(said, 'error' if wrong else 'success')}")
    for problem in found[:MAX_SHOWN]:
        where = f"{clean_line(problem.node, 80)}: " if problem.node else ""
        call.print(f"  {'hint  ' if problem.hint else ''}{where}{clean_line(problem.text, 300)}")
    if len(found) > MAX_SHOWN:
        call.print(f"  … {len(found) - MAX_SHOWN} more (all in --json)")
