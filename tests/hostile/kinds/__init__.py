"""Kinds of repository made to do harm, by what they bring."""

from __future__ import annotations

from tests.hostile.kinds import git_folders, links, odd_files, programs, records
from tests.hostile.kinds.registry import COMBINED, KINDS

__all__ = ["COMBINED", "KINDS", "ROOMS"]

ROOMS = (links, odd_files, git_folders, programs, records)
"""The modules that enter kinds."""
