"""The sources as tests read them: each file is parsed once in a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def syntax_of(path: Path) -> ast.Module:
    """A file's syntax tree; nobody changes it."""
    return ast.parse(path.read_bytes())


def dotted(node: ast.expr) -> str:
    """A name with its attributes, as ``os.path.join``; empty for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file."""
    return tuple(ast.walk(syntax_of(path)))
