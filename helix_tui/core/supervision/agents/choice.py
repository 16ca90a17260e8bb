"""Who is to do the work: the same words everywhere, whether typed, in the environment or in the settings.

A command line's ``--agent`` and ``--model`` come first, then ``HELIX_AGENT`` and ``HELIX_MODEL``, then what
the settings say. The settings' model goes with the settings' agent only.
"""

from __future__ import annotations

from collections.abc import Mapping

from helix_tui.core.supervision.stages.delegate import AgentChoice


def environment_options(env: Mapping[str, str]) -> dict[str, str]:
    """What the environment says of a run where nobody says it on the command line (docs/formats/helix.md
    §1)."""
    names = {
        "harness": "HELIX_AGENT",
        "review_harness": "HELIX_REVIEW_AGENT",
        "model": "HELIX_MODEL",
        "effort": "HELIX_EFFORT",
        "autonomy": "HELIX_AUTONOMY",
        "auto_align": "HELIX_AUTO_ALIGN",
    }
    found = {name: env.get(variable, "").strip() for name, variable in names.items()}
    alternate = env.get("HELIX_ALT_AGENT", "").strip()
    if not found["review_harness"] and alternate not in ("", "auto", "none"):
        found["review_harness"] = alternate
    return {name: value for name, value in found.items() if value}


def chosen(
    env: Mapping[str, str],
    *,
    agent: str = "",
    model: str = "",
    effort: str = "",
    review_agent: str = "",
    set_agent: str = "",
    set_model: str = "",
) -> AgentChoice:
    """Who is to do the work.

    Args:
        env: the environment.
        agent, model, effort, review_agent: what a command line says.
        set_agent, set_model: what the settings say.
    """
    given = environment_options(env)
    harness = agent or given.get("harness", "") or set_agent
    model = model or given.get("model", "") or (set_model if harness == set_agent else "")
    return AgentChoice(
        harness, model, effort or given.get("effort", ""), review_agent or given.get("review_harness", "")
    )
