"""The memory functions of HELIX's older plugins, answered from the project's store."""

from memory.core import (
    chunk,
    connected,
    consolidate,
    decay,
    edge,
    edges,
    feedback,
    get,
    health,
    prune,
    recall,
    relate,
    store,
)
from memory.embeddings import is_available as embeddings_available
from memory.meta import assess_approach

__all__ = [
    "assess_approach",
    "chunk",
    "connected",
    "consolidate",
    "decay",
    "edge",
    "edges",
    "embeddings_available",
    "feedback",
    "get",
    "health",
    "prune",
    "recall",
    "relate",
    "store",
]
