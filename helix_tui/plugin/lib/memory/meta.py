"""Whether an agent of HELIX's older plugins should continue with an approach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory.core import value


def assess_approach(task_objective: str, current_approach: str, memories: Sequence[Any] = ()) -> Any:
    """Recommend to continue, pivot or escalate: recommendation, reason, attempts, suggested_pivot.

    ``memories`` is the plugin's parameter; the store itself is searched.
    """
    del memories
    return value("assess", task=task_objective, approach=current_approach)
