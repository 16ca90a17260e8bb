"""Languages: how to recognise one by a file's name, its grammar, and the form of its definitions.

A new language needs one row of `GRAMMARS` with its query: every ``@def`` is a definition's node, the ``@name``
in the same match its name, and the name of the pattern's third capture its kind.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from tree_sitter import Language, Query

_PYTHON = """
(function_definition name: (identifier) @name) @def @function
(class_definition name: (identifier) @name) @def @class
(module (expression_statement (assignment left: (identifier) @name) @def @constant))
(class_definition body: (block (expression_statement (assignment left: (identifier) @name) @def @field)))
"""
_JAVASCRIPT = """
(function_declaration name: (identifier) @name) @def @function
(generator_function_declaration name: (identifier) @name) @def @function
(class_declaration name: (_) @name) @def @class
(method_definition name: (property_identifier) @name) @def @method
(program (lexical_declaration (variable_declarator name: (identifier) @name)) @def @constant)
(program (variable_declaration (variable_declarator name: (identifier) @name)) @def @constant)
(export_statement (lexical_declaration (variable_declarator name: (identifier) @name)) @def @constant)
(assignment_expression left: (member_expression property: (property_identifier) @name)
  right: [(function_expression) (arrow_function) (class)]) @def @function
(pair key: (property_identifier) @name value: [(function_expression) (arrow_function)]) @def @function
"""
_TYPESCRIPT = """
(function_signature name: (identifier) @name) @def @function
(abstract_class_declaration name: (type_identifier) @name) @def @class
(interface_declaration name: (type_identifier) @name) @def @type
(type_alias_declaration name: (type_identifier) @name) @def @type
(enum_declaration name: (identifier) @name) @def @type
(internal_module name: (_) @name) @def @module
(method_signature name: (property_identifier) @name) @def @method
(abstract_method_signature name: (property_identifier) @name) @def @method
(public_field_definition name: (property_identifier) @name) @def @field
"""
_GO = """
(function_declaration name: (identifier) @name) @def @function
(method_declaration name: (field_identifier) @name) @def @method
(type_declaration (type_spec name: (type_identifier) @name) @def @type)
(type_declaration (type_alias name: (type_identifier) @name) @def @type)
(source_file (const_declaration (const_spec . (identifier) @name ("," . (identifier) @name)*) @def @constant))
(source_file (var_declaration (var_spec . (identifier) @name ("," . (identifier) @name)*) @def @constant))
(source_file (var_declaration (var_spec_list
  (var_spec . (identifier) @name ("," . (identifier) @name)*) @def @constant)))
(method_elem name: (field_identifier) @name) @def @method
"""
_RUST = """
(function_item name: (identifier) @name) @def @function
(function_signature_item name: (identifier) @name) @def @function
(struct_item name: (type_identifier) @name) @def @class
(enum_item name: (type_identifier) @name) @def @type
(union_item name: (type_identifier) @name) @def @type
(trait_item name: (type_identifier) @name) @def @type
(type_item name: (type_identifier) @name) @def @type
(impl_item type: (_) @name) @def @impl
(mod_item name: (identifier) @name body: (_)) @def @module
(macro_definition name: (identifier) @name) @def @function
(const_item name: (identifier) @name) @def @constant
(static_item name: (identifier) @name) @def @constant
"""
_JAVA = """
(class_declaration name: (identifier) @name) @def @class
(interface_declaration name: (identifier) @name) @def @type
(enum_declaration name: (identifier) @name) @def @type
(record_declaration name: (identifier) @name) @def @class
(annotation_type_declaration name: (identifier) @name) @def @type
(method_declaration name: (identifier) @name) @def @method
(constructor_declaration name: (identifier) @name) @def @method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @def @field
"""
_C = """
(function_definition declarator: (function_declarator declarator: (identifier) @name)) @def @function
(function_definition declarator: (pointer_declarator declarator:
  (function_declarator declarator: (identifier) @name))) @def @function
(struct_specifier name: (type_identifier) @name body: (_)) @def @type
(union_specifier name: (type_identifier) @name body: (_)) @def @type
(enum_specifier name: (type_identifier) @name body: (_)) @def @type
(type_definition declarator: (type_identifier) @name) @def @type
(preproc_def name: (identifier) @name) @def @constant
(preproc_function_def name: (identifier) @name) @def @function
(declaration declarator: (function_declarator declarator: (identifier) @name)) @def @function
"""
_CPP = (
    _C
    + """
(class_specifier name: (type_identifier) @name body: (_)) @def @class
(namespace_definition name: (_) @name) @def @module
(function_definition declarator: (function_declarator declarator: (field_identifier) @name)) @def @method
(function_definition declarator: (function_declarator declarator: (qualified_identifier name: (_) @name)))
  @def @method
(function_definition declarator: (reference_declarator
  (function_declarator declarator: (_) @name))) @def @method
(field_declaration declarator: (function_declarator declarator: (field_identifier) @name)) @def @method
(alias_declaration name: (type_identifier) @name) @def @type
"""
)

_BY_SUFFIX: Mapping[str, str] = {
    suffix: language
    for language, suffixes in {
        "python": "py pyi pyw pyx pxd",
        "javascript": "js jsx mjs cjs",
        "typescript": "ts mts cts",
        "tsx": "tsx",
        "go": "go",
        "rust": "rs",
        "java": "java",
        "c": "c h",
        "cpp": "cc cpp cxx c++ hpp hh hxx h++ cu cuh",
        "markdown": "md mdx markdown mkd",
        "restructuredtext": "rst",
        "asciidoc": "adoc asciidoc",
        "text": "txt",
        "data": "json jsonl ndjson json5 csv tsv svg xml html htm xhtml po pot ipynb geojson log sql plist"
        " xlf resx srt ics css scss less sass golden patch diff lock",
    }.items()
    for suffix in suffixes.split()
}

DOCUMENTS = frozenset({"markdown", "restructuredtext", "asciidoc"})


class Grammar(Struct, frozen=True):
    """The source of a grammar, and its query for definitions."""

    package: str
    function: str
    query: str


GRAMMARS: Mapping[str, Grammar] = {
    "python": Grammar("tree_sitter_python", "language", _PYTHON),
    "javascript": Grammar("tree_sitter_javascript", "language", _JAVASCRIPT),
    "typescript": Grammar("tree_sitter_typescript", "language_typescript", _JAVASCRIPT + _TYPESCRIPT),
    "tsx": Grammar("tree_sitter_typescript", "language_tsx", _JAVASCRIPT + _TYPESCRIPT),
    "go": Grammar("tree_sitter_go", "language", _GO),
    "rust": Grammar("tree_sitter_rust", "language", _RUST),
    "java": Grammar("tree_sitter_java", "language", _JAVA),
    "c": Grammar("tree_sitter_c", "language", _C),
    "cpp": Grammar("tree_sitter_cpp", "language", _CPP),
}


def language_of(path: str) -> str:
    """The language of a file, from its name; ``lines`` if it has neither a grammar nor headings."""
    name = path.rpartition("/")[2].lower()
    _, dot, suffix = name.rpartition(".")
    if dot:
        return _BY_SUFFIX.get(suffix, "lines")
    return "text" if name in {"readme", "changelog", "news", "authors", "license", "copying"} else "lines"


@cache
def grammar(language: str) -> tuple[Language, Query] | None:
    """The loaded grammar and its query; None if there is none or its package is not installed."""
    row = GRAMMARS.get(language)
    if row is None:
        return None
    # imported when a file is read: an up-to-date index needs no grammar
    from tree_sitter import Language, Query

    try:
        module = importlib.import_module(row.package)
    except ImportError:
        return None
    loaded = Language(getattr(module, row.function)())
    return loaded, Query(loaded, row.query)
