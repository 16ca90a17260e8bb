"""Memory that learns from verified outcomes: store, recall, inject, feedback (docs/formats/memory.md;
docs/decisions/0013, 0014, 0015, 0016).

The interface for other rooms, in `memory_store`, its records in `records` and `reports` (names and record types are
stable; new ones may be added)::

    open_memory(path, encoder=None, *, read_only=False, clock=now_ns, busy_seconds=10) -> MemoryStore
    look_into(path, encoder=None, ...) -> MemoryStore, for reading only where the file may not be written
    database_path(project) -> Path            MemoryFault(message, fix) is every error of this room

    store(trigger, resolution, type="failure", source="", attempt="") -> Stored
        status: added, merged, revised (another resolution for a known trigger), rejected
    revisions(name_or_id) -> list[Revision]   earlier wordings, each with its counts
    edit(name_or_id, MemoryEdit(trigger, resolution, type, source, revision), apply=True) -> Correction
    supersede(name_or_id, by, apply=True) -> Correction       take_back(way_back) undoes either
    store_many(iterable of (trigger, resolution, type, source)) -> list[Stored], in one transaction
    recall(query, type=None, limit=5, min_effectiveness=0.0, files=(), expand=False, gate=0.0,
           ranker="seed") -> Recall(found: Recalled…, mode, detail, signal)
    get(name_or_id) -> Memory | None          list(type=None) -> list[Memory], newest first
    inject(objective, files=(), attempt="", bead="", agent="", kind="", limit=8, ranker="seed",
           screen=None, record=True) -> Injection(text, shown, mode, signal, …)
        screen(memory) returns why a memory must not be shown, or "" (a scanner for secrets)
    claim(attempt, names)                     what an agent reports as used, kept until the outcome is known
    feedback(injected=None, utilized=(), verified=None, attempt="", kind="", revise=False) -> FeedbackReport
    injections(name="", attempt="", bead="") -> list[Injection]
    outcomes(name="", attempt="") -> list[MemoryOutcome]
    relate(from_name, to_name, rel_type, weight=1.0) -> Related       (edge is the same)
    edges(name="", rel_type="") -> list[Edge]
    connected(name, max_hops=2) -> list[Connected]
    suggest_edges(name, limit=5) -> list[Suggestion]
    similar_recent(trigger, threshold=0.65, days=7, type=None) -> list[Similar]
    decay(days=30, min_uses=2, apply=False) -> Decayed
    prune(threshold=0.25, min_uses=3, apply=True) -> Pruned
    chunk(task, outcome, approach, source="chunked") -> Stored
    consolidate(threshold=0.9) -> Consolidated
    assess(task, approach, history=()) -> Assessment       (assess_approach is the same)
    health() -> Health                        embed(limit=None) -> number of memories given a vector
    remove(names) -> list of rows             put_back(rows): the way back, for undo
    seq                                       grows with every change by any process
    write() is one BEGIN IMMEDIATE transaction, db the sqlite-utils Database: exploration, plan and
    workspace (helix v1) are in the same file

Every record has ``document()``, the JSON shape of the command line. A store may be used from any thread, one
call at a time (it has a lock); close it, or use it as a context manager.
"""
