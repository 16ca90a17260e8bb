"""The verbs of DDx's loop, with the flags that each release gives them (help texts of both transcripts).

``work``, ``try`` and ``agent execute-…`` are simulated; what reads the queue for them is answered truly.
"""

from __future__ import annotations

from helix_ddx.flags import APRIL, HEAD, Flag, Kind, Verb, refused

_SIMULATION = "helix_ddx.simulator.verb:run"

JSON = Flag("json", "bool", "the result object on stdout")
_ONCE = Flag("once", "bool", "one bead, then stop")
_PROJECT = Flag("project", about="the project's folder")
_NO_REVIEW = Flag("no-review", "bool", "skip the review")

_OWN = (
    Flag("folder", about="the project's folder, as -C DIR", short="C", hidden=True),
    Flag("pace", "float", "seconds that a step takes; 0 is at once", hidden=True),
    Flag("plan", about="a JSON file with the act of each bead", hidden=True),
)
_ABOUT_OWN = "\n\nBeside DDx's flags: -C DIR, --pace SECONDS (0 is at once), --plan FILE (acts by bead id, as JSON)."


def _passed_over(kind: Kind, names: str) -> tuple[Flag, ...]:
    """Flags of DDx that the simulation does not use: parsed, checked and ignored."""
    return tuple(Flag(name, kind, "read and ignored by the simulation") for name in names.split())


_ROUTE = _passed_over("string", "effort from harness model provider")

_APRIL_LOOP = (
    *_ROUTE,
    *_passed_over("string", "max-tier min-tier model-ref profile review-harness review-model"),
    *_passed_over("int", "adaptive-min-tier-window"),
    *_passed_over("float", "max-cost"),
    *_passed_over("bool", "local no-adaptive-min-tier"),
    Flag("poll-interval", "duration", "how often to look for more; without it the loop ends"),
    *(_PROJECT, _ONCE, _NO_REVIEW, JSON, *_OWN),
)

_APRIL_ONE = (
    *_ROUTE,
    *_passed_over("string", "context-budget model-ref prompt"),
    *_passed_over("bool", "no-merge"),
    *(_PROJECT, JSON, *_OWN),
)

_HEAD_ATTEMPT = (
    *_ROUTE,
    *_passed_over("string", "attempt-backend profile reason review-tier"),
    *_passed_over("int", "max-power min-power"),
    *_passed_over("bool", "allow-non-default-branch no-review-i-know-what-im-doing"),
    *_passed_over("duration", "attempt-wall-clock preclaim-timeout request-timeout route-resolution-timeout"),
    *(_PROJECT, _NO_REVIEW, *_OWN),
)

_HEAD_LOOP = (
    *_HEAD_ATTEMPT,
    *_passed_over("int", "claim-rate-window preclaim-warn-threshold"),
    *_passed_over("float", "claim-rate-threshold max-bead-cost max-cost max-recovery-cost"),
    *_passed_over("bool", "ignore-cooldown no-self-refresh no-tracker-sync self-refresh tracker-sync"),
    *_passed_over("duration", "rate-limit-max-wait"),
    Flag("local", "bool", hidden=True),
    Flag("watch", "bool", "wait for more when nothing is ready"),
    Flag("idle-interval", "duration", "how long to wait with --watch", default="30s"),
    Flag("label-filter", about="only beads with this label"),
    *(_ONCE, JSON),
)

_AGENT = (
    "benchmark capabilities catalog check condense doctor executions list log metrics models providers "
    "replay route-status run usage"
)

LOOP_VERBS = (
    Verb(("work",), f"Drain the queue, simulated{_ABOUT_OWN}", _SIMULATION, flags=_APRIL_LOOP, eras=APRIL),
    Verb(("work",), f"Drain the queue, simulated{_ABOUT_OWN}", _SIMULATION, flags=_HEAD_LOOP, eras=HEAD),
    Verb(
        ("work", "plan"),
        "What the loop would take next",
        "verbs.work:plan",
        flags=(JSON, Flag("limit", "int", "at most N, 0 for all", default="10")),
        eras=HEAD,
    ),
    Verb(("work", "status"), "Live workers of this project", "verbs.work:status", flags=(JSON,), eras=HEAD),
    Verb(("work", "focus"), "What the loop will not take, and why", "verbs.work:focus", flags=(JSON,), eras=HEAD),
    Verb(
        ("work", "clear-cooldowns"),
        "End the pause of many beads",
        "verbs.work:clear_for_work",
        flags=(
            Flag("all", "bool", "of every bead that has one"),
            Flag("status", about="of those whose last status is this"),
            Flag("dry-run", "bool", "only count them"),
        ),
        eras=HEAD,
    ),
    refused("work", "analyze", eras=HEAD),
    refused("work", "metrics", eras=HEAD),
    Verb(
        ("try",),
        f"Run one bead, simulated{_ABOUT_OWN}",
        _SIMULATION,
        "<bead-id>",
        1,
        1,
        (*_HEAD_ATTEMPT, *_passed_over("bool", "force-claim")),
        eras=HEAD,
    ),
    Verb(("agent",), "April's loop, simulated", eras=APRIL),
    Verb(
        ("agent", "execute-loop"), f"Drain the queue, simulated{_ABOUT_OWN}", _SIMULATION, flags=_APRIL_LOOP, eras=APRIL
    ),
    Verb(
        ("agent", "execute-bead"),
        f"Run one bead, simulated{_ABOUT_OWN}",
        _SIMULATION,
        "<bead-id>",
        1,
        1,
        _APRIL_ONE,
        eras=APRIL,
    ),
    Verb(("agent", "workers"), "Attempts at work", "verbs.work:workers", flags=(JSON, _PROJECT), eras=APRIL),
    *(refused("agent", name, eras=APRIL) for name in _AGENT.split()),
)
