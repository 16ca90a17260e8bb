"""Is the right memory first? 30 memories, 15 questions in other words: ``python -m bench.memory_recall``.

Asked with the weights of all-MiniLM-L6-v2, where they are found, and without any. The questions share as few
words with their memories as people's do. 13 of 15 must come first with weights and 10 without; fourteen sets of
other subjects (`bench.recall_sets`) are reported beside, with no bound.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.recall_sets import SETS
from helix_tui.core.embedding.minilm import load_encoder
from helix_tui.core.memory.memory_store import open_memory

MEMORIES = (
    (
        "Circular import between auth models and user services",
        "Move the shared types into a module of their own",
    ),
    (
        "Database connection pool exhausted under load",
        "Close sessions in a finally block and raise pool_size",
    ),
    ("Flaky test in the checkout suite because of a race", "Wait for the event instead of sleeping"),
    ("Celery worker loses tasks on restart", "Set acks_late and a visibility timeout"),
    ("Pydantic validator is deprecated and ignored", "Use field_validator with mode='before'"),
    ("Docker image grows to 3 GB", "Build in stages and copy only the wheel"),
    ("JWT expires in the middle of a long upload", "Refresh the token when less than a minute is left"),
    ("Migration locks the orders table for minutes", "Create the index concurrently in its own migration"),
    ("Timezone of timestamps is wrong after the DST change", "Store UTC and convert when showing"),
    ("Redis cache returns stale prices after a deploy", "Put the release number into the key"),
    ("CI cannot push tags because the token is read-only", "Give the job contents: write"),
    ("Unicode filenames break the zip export on Windows", "Set the UTF-8 flag on every entry"),
    (
        "Memory of the importer grows until it is killed",
        "Stream rows in chunks instead of reading the whole file",
    ),
    ("React list re-renders on every key stroke", "Memoize the row and pass stable callbacks"),
    ("Webhook deliveries are processed twice", "Keep the delivery id and skip known ones"),
    ("Deadlock between the billing and the ledger job", "Take the locks in alphabetical order"),
    ("Search returns nothing for words with umlauts", "Normalize to NFC before indexing"),
    ("Playwright cannot find the button in the dialog", "Query inside the open dialog by role"),
    ("Git hooks do not run in worktrees", "Set core.hooksPath to an absolute folder"),
    ("Rounding of invoices differs by a cent", "Use Decimal and round half even once at the end"),
    ("Rate limit of the mail provider drops newsletters", "Queue them and send 50 a second"),
    ("Log files fill the disk of the staging host", "Rotate daily and keep seven"),
    ("Terraform plan shows changes that nobody made", "Pin the provider version"),
    ("CORS preflight fails for the admin subdomain", "List the origin explicitly, no wildcard with cookies"),
    ("Type checker does not see the generated client", "Ship a py.typed file in the package"),
    ("Kubernetes probe kills the pod while it starts", "Use a startup probe with a long threshold"),
    ("Elasticsearch refuses documents with too many fields", "Map free attributes as flattened"),
    ("SQLite database is locked in parallel tests", "Give each worker a file of its own and use WAL"),
    ("Environment variables of the shell leak into tests", "Clear os.environ in a fixture"),
    ("Pagination skips rows while others are inserted", "Page by the last id, not by an offset"),
)

QUESTIONS = (
    ("the auth package and the user package need each other at load time", 0),
    ("too many open DB sessions when traffic is high", 1),
    ("a spec fails only now and then, timing dependent", 2),
    ("background jobs vanish when the queue process is rebooted", 3),
    ("container is far too big", 5),
    ("session credential runs out while a large file is being transferred", 6),
    ("schema change blocks writes for a long time", 7),
    ("hours are off by one since daylight saving", 8),
    ("old values are served from cache once a new release is out", 9),
    ("release pipeline is not permitted to create a git tag", 10),
    ("importer process runs out of RAM", 12),
    ("same event from the payment provider handled a second time", 14),
    ("two jobs wait for each other forever", 15),
    ("totals on a bill are off by one cent", 19),
    ("duplicate or missing entries when paging through a table that changes", 29),
)


FRESH = (
    ("our old style of checking model fields prints warnings and does nothing", 4),
    ("archive download has broken names for people with Windows", 11),
    ("typing into the form feels sluggish, the whole list is drawn each time", 13),
    ("queries with German characters find no documents", 16),
    ("end-to-end test does not see an element inside a popup", 17),
    ("pre-commit checks are not executed in a second checkout", 18),
    ("provider throttles us and many messages never arrive", 20),
    ("no space left on the staging machine", 21),
    ("infrastructure diff is not empty although nothing was touched", 22),
    ("browser refuses calls from the other domain with cookies", 23),
    ("mypy knows nothing about our API client package", 24),
    ("service gets restarted before it has finished booting", 25),
    ("index rejects records with arbitrary attributes", 26),
    ("concurrent test runs block each other on the database file", 27),
    ("settings of my terminal change the outcome of the suite", 28),
)
"""Questions that were written after the thesaurus, to see what it is worth on others."""


def right(
    choice: str,
    ranker: str,
    questions: Sequence[tuple[str, int]] = QUESTIONS,
    memories: Sequence[tuple[str, str]] = MEMORIES,
) -> list[int]:
    """Place of the right memory for each question, from 1; 0 where it is not among the first ten."""
    places = []
    with (
        tempfile.TemporaryDirectory() as folder,
        open_memory(Path(folder, "helix.db"), load_encoder(choice), teacher="person") as memory,
    ):
        names = [memory.store(trigger, resolution).name for trigger, resolution in memories]
        for question, number in questions:
            found = [hit.memory.name for hit in memory.recall(question, limit=10, ranker=ranker).found]
            places.append(found.index(names[number]) + 1 if names[number] in found else 0)
    return places


BOUNDS = {"light": 13, "off": 10}


def main() -> int:
    """Print the places; 1 when a bound is missed."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None).parse_args()
    missed = False
    for choice, bound in BOUNDS.items():
        for ranker in ("seed", "lift"):
            places = right(choice, ranker)
            first = places.count(1)
            missed = missed or first < bound
            print(f"{choice:6} {ranker:5} first {first:2} of {len(places)}, held against {bound}  {places}")
        fresh = right(choice, "seed", FRESH)
        print(f"{choice:6} seed  first {fresh.count(1):2} of {len(fresh)} written later            {fresh}")
        for subject, (memories, questions) in SETS.items():
            places = right(choice, "seed", questions, memories)
            first = places.count(1)
            print(f"{choice:6} seed  first {first:2} of {len(places)} on {subject:<22} {places}")
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
