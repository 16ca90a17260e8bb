"""The one table of verbs and flags of the embedded tracker, with the eras that know them.

Help, complaints about flags and arguments, and the way to the code all come from here. The names, the kinds
of flags and the numbers of arguments are DDx's (transcripts of both eras); the descriptions are our own.
"""

from __future__ import annotations

from helix_ddx.base.flags import HEAD, MANY, REFUSED, Flag, Verb, refused
from helix_ddx.work.loop_verbs import LOOP_VERBS

JSON = Flag("json", "bool", "machine-readable answer")
SET = Flag("set", "stringArray", "write a field of your own, key=value; may be repeated")

GLOBAL_FLAGS = (
    Flag("config", about="another settings file", default="$HOME/.ddx.yml"),
    Flag("library-base-path", about="another place of the library"),
    Flag("no-update-check", "bool", "no look for a newer release; the embedded tracker never looks", eras=HEAD),
    Flag("verbose", "bool", "say more", short="v"),
)
"""Flags that every verb of DDx accepts."""

VERBS = (
    Verb(("bead",), "Beads: the queue's work items", aliases=("beads",)),
    Verb(("bead", "init"), "Make an empty tracker", "verbs.import_export:init"),
    Verb(
        ("bead", "create"),
        "Make a bead and print its id",
        "verbs.create_update:create",
        "<title>",
        1,
        1,
        (
            Flag("type", about="kind of work: task, bug, epic, chore …"),
            Flag("priority", "int", "0 is the most urgent, 4 the least; without the flag it is 0", default="2"),
            Flag("labels", about="labels, with commas between"),
            Flag("acceptance", about="how to tell when it is done"),
            Flag("description", about="what it is about"),
            Flag("parent", about="id of the bead it is a part of"),
            Flag("depends-on", "strings", "ids it waits for, with commas or repeated", eras=HEAD),
            SET,
        ),
    ),
    Verb(("bead", "show"), "Everything about one bead", "verbs.show:show", "<id>", 1, 1, (JSON,)),
    Verb(
        ("bead", "update"),
        "Change fields of a bead",
        "verbs.create_update:update",
        "<id>",
        1,
        1,
        (
            Flag("title", about="new title"),
            Flag("status", about="new status; at head only a step of the lifecycle"),
            Flag("priority", "int", "new priority, 0 to 4", default="0"),
            Flag("labels", about="new labels in place of all old ones, with commas between"),
            Flag("acceptance", about="new acceptance"),
            Flag("assignee", about="new owner; with --claim, who claims"),
            Flag("parent", about="new parent"),
            Flag("description", about="new description"),
            Flag("notes", about="new notes in place of the old ones"),
            Flag("claim", "bool", "take it: in_progress, with an owner"),
            Flag("unclaim", "bool", "give it back: open, without an owner"),
            Flag("external-blocker-reason", about="why it is blocked, for --status blocked", eras=HEAD),
            Flag("blocked-by-ref", about="bead of another repository it waits for, repo#id", eras=HEAD),
            Flag("reject-preserved", about="refuse a preserved result by its revision", eras=HEAD),
            SET,
            Flag("unset", "stringArray", "remove a field of your own; may be repeated"),
        ),
    ),
    Verb(
        ("bead", "close"),
        "Close a bead",
        "verbs.close:close",
        "<id>",
        1,
        1,
        (
            Flag("session", about="id of the session that did the work"),
            Flag("commit", about="the commit that did the work"),
        ),
    ),
    Verb(
        ("bead", "reopen"),
        "Open a closed bead again",
        "verbs.close:reopen",
        "<id>",
        1,
        1,
        (
            Flag("reason", about="why, kept as an event"),
            Flag("append-notes", about="text to add to the notes"),
        ),
    ),
    Verb(
        ("bead", "list"),
        "List beads",
        "verbs.lists:list_beads",
        flags=(
            Flag("status", about="only this status"),
            Flag("label", about="only with this label"),
            JSON,
            Flag("all", "bool", "no effect: archived beads are always listed", eras=HEAD),
            Flag("where", "stringArray", "only where a field has a value, key=value; may be repeated"),
        ),
        aliases=("ls",),
    ),
    Verb(
        ("bead", "ready"),
        "List what can be worked on",
        "verbs.lists:ready",
        flags=(
            JSON,
            Flag("execution", "bool", "only what the loop would pick"),
            Flag("include-human", "bool", "no effect", eras=HEAD),
        ),
    ),
    Verb(("bead", "blocked"), "List what is blocked, and why", "verbs.lists:blocked", flags=(JSON,)),
    Verb(("bead", "status"), "Count beads", "verbs.status:status", flags=(JSON,)),
    Verb(("bead", "dep"), "Dependencies between beads"),
    Verb(("bead", "dep", "add"), "Let a bead wait for another", "verbs.edges:add", "<id> <dep-id>", 2, 2),
    Verb(("bead", "dep", "remove"), "Let it wait no longer", "verbs.edges:remove", "<id> <dep-id>", 2, 2),
    Verb(("bead", "dep", "tree"), "Draw what waits on what", "verbs.edges:tree", "[id]", 0, 1),
    Verb(("bead", "evidence"), "Events of a bead, only ever added to"),
    Verb(
        ("bead", "evidence", "add"),
        "Add an event to a bead",
        "verbs.status:add",
        "<id>",
        1,
        1,
        (
            Flag("kind", about="kind of event", default="summary"),
            Flag("summary", about="one line"),
            Flag("body", about="the whole text"),
            Flag("source", about="where it comes from"),
            Flag("actor", about="who says it"),
        ),
    ),
    Verb(
        ("bead", "evidence", "list"),
        "List a bead's events",
        "verbs.status:list_events",
        "<id>",
        1,
        1,
        (JSON,),
    ),
    Verb(
        ("bead", "import"),
        "Take beads over from a file or another tool",
        "verbs.import_export:import_beads",
        "[file]",
        0,
        1,
        (Flag("from", about="auto, bd, br or jsonl", default="auto"),),
    ),
    Verb(
        ("bead", "export"),
        "Write every bead as JSONL",
        "verbs.import_export:export",
        "[file]",
        0,
        1,
        (Flag("stdout", "bool", "print instead of writing a file"),),
    ),
    Verb(("bead", "metrics"), "Attempts, tokens and cost a bead", "verbs.status:metrics", flags=(JSON,)),
    Verb(
        ("bead", "doctor"),
        "Look for rows that DDx would stumble over",
        "verbs.checks:doctor",
        most=MANY,
        flags=(JSON, Flag("fix", "bool", "repair them; needs ddx itself")),
    ),
    Verb(("bead", "queue"), "Order of beads of one priority", eras=HEAD),
    Verb(("bead", "queue", "top"), "Put a bead first", "verbs.create_update:top", "<id>", 1, 1, eras=HEAD),
    Verb(
        ("bead", "queue", "move"),
        "Put a bead next to another",
        "verbs.create_update:move",
        "<id>",
        1,
        1,
        (Flag("before", about="id to place it before"), Flag("after", about="id to place it after")),
        eras=HEAD,
    ),
    Verb(("bead", "queue", "clear"), "Forget a bead's place", "verbs.create_update:clear", "<id>", 1, 1, eras=HEAD),
    Verb(("bead", "cooldown"), "The pause after an attempt that failed", eras=HEAD),
    Verb(
        ("bead", "cooldown", "show"),
        "Until when, and why",
        "work.focus:show",
        "<id>",
        1,
        1,
        (JSON,),
        eras=HEAD,
    ),
    Verb(("bead", "cooldown", "clear"), "End it now", "work.focus:clear", "<id>", 1, 1, eras=HEAD),
    Verb(
        ("bead", "clear-cooldown"),
        "End the pause of many beads",
        "work.focus:clear_many",
        flags=(
            Flag("all", "bool", "of every bead that has one"),
            Flag("reason", about="of those whose last status is this"),
        ),
        eras=HEAD,
    ),
    Verb(
        ("bead", "needs-human"),
        "List proposed beads, under an older name",
        "verbs.status:needs_human",
        flags=(JSON,),
        eras=HEAD,
    ),
    Verb(
        ("bead", "operator-attention"),
        "List claims that a stuck worker gave up",
        "verbs.status:released",
        flags=(JSON,),
        eras=HEAD,
    ),
    Verb(("bead", "human"), "Decide on a proposed bead", eras=HEAD),
    Verb(
        ("bead", "human", "resolve"),
        "Retry, split, drop or keep a proposed bead",
        "verbs.status:resolve",
        "<id>",
        1,
        1,
        (
            Flag("action", about="retry, split, obsolete or defer", required=True),
            Flag("note", about="why; needed"),
            Flag("children", "strings", "ids it was split into, with commas or repeated"),
        ),
        eras=HEAD,
    ),
    Verb(
        ("bead", "reap"),
        "Close epics whose parts are all done",
        "verbs.close:reap",
        flags=(Flag("apply", "bool", "do it; without it they are only listed"),),
        eras=HEAD,
    ),
    Verb(
        ("bead", "lint"),
        "How much of the acceptance a machine can check",
        "verbs.checks:lint",
        "<bead-id>",
        1,
        1,
        (JSON,),
        eras=HEAD,
    ),
    Verb(("bead", "ac-check"), "Needs ddx itself", REFUSED, "<bead-id>", 1, MANY, eras=HEAD),
    refused("bead", "archive", eras=HEAD),
    Verb(("bead", "merge"), "Needs ddx itself", REFUSED, "[path]", most=1, eras=HEAD),
    refused("bead", "migrate", eras=HEAD),
    refused("bead", "recheck-blockers", eras=HEAD),
    Verb(("bead", "reconcile"), "Needs ddx itself", REFUSED, "[id ...]", most=MANY, eras=HEAD),
    refused("bead", "reconcile-attachments", eras=HEAD),
    refused("bead", "replay", eras=HEAD),
    refused("bead", "replay-bench", eras=HEAD),
    Verb(("bead", "review"), "Needs ddx itself", REFUSED, "<id>", 1, MANY),
    Verb(("bead", "routing"), "Needs ddx itself", REFUSED, "<id>", 1, 1, (JSON,)),
    Verb(("bead", "validate-ready"), "Needs ddx itself", REFUSED, eras=HEAD, quiet=True),
    Verb(("version",), "Which helix-ddx this is", "cli.program:tell"),
    *LOOP_VERBS,
)


def verbs_of(era: str) -> tuple[Verb, ...]:
    """The verbs of one release, each with the flags it has there."""
    return tuple(verb for verb in VERBS if era in verb.eras)


def flags_of(verb: Verb, era: str) -> tuple[Flag, ...]:
    """The verb's own flags of one release, and help."""
    own = tuple(flag for flag in verb.flags if era in flag.eras)
    return (*own, Flag("help", "bool", f"help for {verb.name}", short="h"))


def global_flags(era: str) -> tuple[Flag, ...]:
    """The flags of one release that go with every verb."""
    return tuple(flag for flag in GLOBAL_FLAGS if era in flag.eras)
