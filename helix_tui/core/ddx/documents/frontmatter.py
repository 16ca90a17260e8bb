"""Read what a document says of itself in the YAML block at its head.

Format: docs/formats/documents.md. A value of another type than expected is left out; ddx says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml
from msgspec import Struct

from helix_tui.core.ddx.documents.graph import ExecutionDefinition, Metric
from helix_tui.core.ground.errors import HelixError

_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

MAX_BLOCK = 256 << 10
"""Maximum bytes of a block."""


class FrontmatterError(HelixError):
    """A block that is not YAML."""


class Frontmatter(Struct, frozen=True):
    """What a document says of itself."""

    id: str = ""
    """Under ``ddx``, or the older ``dun``; empty if it is no document to ddx."""
    name: str = ""
    """A top-level ``id``, which ddx does not read."""
    status: str = ""
    depends_on: tuple[str, ...] = ()
    execution: ExecutionDefinition | None = None
    metric: Metric | None = None
    superseded_by: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()


def split(content: bytes) -> tuple[bytes, bytes] | None:
    """The block and the body after it; None if the document has no block."""
    lines = content.split(b"\n")
    if lines[0].rstrip(b"\r") != b"---":
        return None
    end = next((place for place, line in enumerate(lines[1:], 1) if line.rstrip(b"\r") == b"---"), 0)
    return (b"\n".join(lines[1:end]), b"\n".join(lines[end + 1 :])) if end else None


def read_frontmatter(block: bytes) -> Frontmatter:
    """What a block says.

    Raises:
        FrontmatterError: it is not YAML, or too long.
    """
    if len(block) > MAX_BLOCK:
        raise FrontmatterError(f"frontmatter is longer than {MAX_BLOCK >> 10} KB")
    try:
        # a safe loader makes plain values only; values that repeat by name are shared, not copied
        found = yaml.load(block.decode("utf-8"), _LOADER)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise FrontmatterError(f"frontmatter is not YAML: {str(error).partition(chr(10))[0] or 'too deep'}") from None
    top = _mapping(found)
    own = next((each for name in ("ddx", "dun") if text_of(each := _mapping(top.get(name)), "id")), {})
    return Frontmatter(
        id=text_of(own, "id"),
        name=text_of(top, "id"),
        status=text_of(own, "status") or text_of(top, "status"),
        depends_on=_names(own.get("depends_on")),
        execution=_execution(own.get("execution")),
        metric=_metric(top.get("metric")),
        superseded_by=_names(own.get("superseded_by")),
        supersedes=_names(own.get("supersedes")),
    )


def text_of(found: Mapping[str, Any], name: str) -> str:
    """A value as text, as YAML may have read it as a number; else ""."""
    value = found.get(name)
    return str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _number(found: Mapping[str, Any], name: str) -> float | None:
    value = found.get(name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _names(value: object) -> tuple[str, ...]:
    """One name, or a list of names."""
    values = value if isinstance(value, list) else [value]
    return tuple(each.strip() for each in values if isinstance(each, str) and each.strip())


def _execution(value: object) -> ExecutionDefinition | None:
    found = _mapping(value)
    limits, metric = _mapping(found.get("thresholds")), _mapping(found.get("metric"))
    if not found:
        return None
    return ExecutionDefinition(
        command=_names(found.get("command")),
        required=found.get("required") is True,
        comparison=text_of(found, "comparison"),
        ratchet=_number(limits, "ratchet"),
        unit=text_of(limits, "unit") or text_of(metric, "unit"),
        metric_id=text_of(metric, "metric_id"),
    )


def _metric(value: object) -> Metric | None:
    found = _mapping(value)
    if not found:
        return None
    return Metric(text_of(found, "unit"), text_of(found, "direction"), _number(found, "goal"), _number(found, "budget"))
