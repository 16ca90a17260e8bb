"""What a file is for, told by its path, and which paths are left out altogether."""

from __future__ import annotations

import re
from collections.abc import Iterator

from helix_tui.core.ask.records import Role

_LEFT_OUT_DIRS = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".ddx",
        ".helix",
        "node_modules",
        "bower_components",
        "jspm_packages",
        "__pycache__",
        ".venv",
        "venv",
        ".tox",
        ".nox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        ".yarn",
        ".pnp",
        ".next",
        ".nuxt",
        ".gradle",
        ".terraform",
    ]
)
_LEFT_OUT_NAMES = frozenset(
    [
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "cargo.lock",
        "poetry.lock",
        "pdm.lock",
        "uv.lock",
        "pipfile.lock",
        "composer.lock",
        "gemfile.lock",
        "go.sum",
        "flake.lock",
        "mix.lock",
        "packages.lock.json",
        "podfile.lock",
    ]
)
_GENERATED = re.compile(
    r"\.min\.(?:js|css|mjs)$|\.(?:js|css|mjs|ts)\.map$|[-._]bundle\.js$|\.pb\.(?:go|cc|h)$|_pb2(?:_grpc)?\.pyi?$"
    r"|\.g\.(?:dart|cs)$|\.designer\.cs$|_generated\.go$|zz_generated\.[^/]*$|\.snap$",
    re.IGNORECASE,
)
_BINARY = re.compile(
    r"\.(?:png|jpe?g|gif|bmp|ico|webp|avif|tiff?|psd|pdf|zip|gz|tgz|bz2|xz|zst|7z|rar|jar|war|class|pyc|pyo|so|dylib|dll"
    r"|exe|o|a|lib|bin|dat|db|sqlite3?|woff2?|ttf|otf|eot|mp[34]|m4a|ogg|wav|flac|avi|mov|webm|mkv|wasm|npy|npz|pkl"
    r"|parquet|h5|safetensors|onnx|mo|gmo|docx?|xlsx?|pptx?|odt|ods|keystore|jks|p12|der|whl|egg|iso|dmg)$",
    re.IGNORECASE,
)
_DECLARATION = re.compile(r"\.d\.[cm]?ts$|\.pyi$|\.h(?:h|pp|xx)?$", re.IGNORECASE)
_SHELL_COMPLETION = re.compile(
    r"(?:^|/)(?:shell[-_])?complet(?:ions?|es?)/(?:.*/)?(?:_[\w.-]+|[\w-]+(?:\.(?:bash|zsh|fish|ps1|elv|nu|sh|bash-completion))?)$"
    r"|(?:^|/)contrib/completions?/.*(?<!\.md)$|\.bash-completion$",
    re.IGNORECASE,
)
_STANDING = (
    # declares what another file does; a header of C may well do it itself
    (re.compile(r"\.d\.[cm]?ts$|\.pyi$", re.IGNORECASE), 0.7),
    # what a build or a run has left behind says again what its source says
    (
        re.compile(
            r"(?:^|/)(?:%\w+%|\.?te?mp|\.cache|\.parcel-cache|\.turbo|\.nyc_output|htmlcov)/.*\.(?:[cm]?[jt]s|json|html|css|map)$"
            r"|(?:^|/)dist/.*\.[cm]?js$|\.(?:build|compiled|bundled?)\.[cm]?js$|\.timestamp-[\w-]+\.mjs$",
            re.IGNORECASE,
        ),
        0.4,
    ),
    # names every option for a shell and explains none; most are made by a program
    (_SHELL_COMPLETION, 0.6),
    # speaks of everything that ever changed
    (
        re.compile(
            r"(?:^|/)(?:changelogs?|newsfragments?|release[-_]?notes?|\.changeset)/"
            r"|(?:^|/)(?:changelog|changes|history|news|release[-_]?notes?)"
            r"(?:(?:[-_.\d][^/]*)?\.(?:md|markdown|rst|txt|adoc|xml))?$",
            re.IGNORECASE,
        ),
        0.6,
    ),
)
_VERSION = re.compile(r"(?<![^/])(v(\d{1,3})|legacy|deprecated|old|compat)/", re.IGNORECASE)
LATER_VERSIONS = 3
"""Numbers above a version's own that are looked for."""
_VENDORED = re.compile(
    r"(?:^|/)(?:vendor|vendored|_vendor|third[-_]?party|externals?|extern|site-packages)(?:/|$)",
    re.IGNORECASE,
)
# benchmarks below src/ are what a tool for benchmarks does
_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|e2e|testdata|test[-_]data|fixtures?|__mocks__|mocks|__snapshots__|(?<!src/)bench(?:es|marks?)?|fuzz"
    r"|conformance)/|^t/|(?:^|/)(?:test_[^/]*|conftest)\.py$|_tests?\.(?:py|go|rs|cc?|cpp|rb|exs?)$|[-._](?:test|spec|e2e)"
    r"\.[cm]?[jt]sx?$|(?:^|/)[^/]*(?:Test|Tests|IT|Spec)\.(?:java|kt|scala|cs|swift)$|_spec\.rb$|\.test-d\.ts$",
)
_TEST_MARK = re.compile(r"^tests?_|_tests?$|[-_.](?:test|spec|e2e)$|(?:Tests?|IT|Spec)$|^Test(?=[A-Z])|-tests?$")
"""What a test's name has beside that of its source."""
_EXAMPLE = re.compile(
    r"(?:^|/)(?:examples?|samples?|demos?|tutorials?|cookbook|playground|docs_src|doc_src|quickstarts?|templates?/examples)/",
    re.IGNORECASE,
)
_DOC = re.compile(
    r"(?:^|/)(?:docs?|documentation|wiki|man|website|changelogs?|newsfragments?|release[-_]?notes?|\.changeset"
    r"|[^/]+\.(?:dist|egg)-info)/|\.(?:md|mdx|markdown|rst|adoc|asciidoc|txt|org|tex|pod|mkd|textile)$"
    r"|(?:^|/)(?:readme|changelog|changes|history|news|contributing|license|copying|authors|notice|todo|install|maintainers"
    r"|code_of_conduct|security)(?:\.[^/.]*)?$",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(r"^(?!docs?/).*?(?:^|/)templates?/(?:.*/)?[^/]+\.txt$", re.IGNORECASE)
"""Text that a program fills in: part of what it does, though it is written as a document is."""
_CODE_IN_DOCS = re.compile(r"\.(?:py|go|rs|[cm]?[jt]sx?|java|c|cc|cpp|h|hpp|rb|php|cs|kt|swift|scala)$", re.IGNORECASE)
_DATA = re.compile(
    r"\.(?:json|jsonl|ndjson|json5|csv|tsv|svg|xml|html?|xhtml|po|pot|ipynb|geojson|lock|log|sql|sum|plist|xlf|resx|srt"
    r"|ics|css|scss|less|sass|golden|snap|patch|diff)$",
    re.IGNORECASE,
)
_CONFIG = re.compile(
    r"\.(?:ya?ml|toml|ini|cfg|conf|properties|env|editorconfig|gradle|cmake|mk|bazel|bzl|nix|tf|hcl)$"
    r"|(?:^|/)(?:requirements|constraints)[^/]*\.txt$|(?:^|/)(?:makefile|dockerfile[^/]*|jenkinsfile|vagrantfile|procfile|justfile|cmakelists\.txt|build|workspace"
    r"|package\.json|tsconfig[^/]*\.json|setup\.py|go\.mod|[^/]*\.config\.[cm]?[jt]s|\.[^/]*rc(?:\.[^/]*)?)$"
    r"|(?:^|/)\.(?:github|gitlab|circleci|vscode|husky|devcontainer)/",
    re.IGNORECASE,
)


def left_out(path: str) -> str | None:
    """Why a path is not read at all; None where it is."""
    *folders, name = path.split("/")
    if not _LEFT_OUT_DIRS.isdisjoint(folders):
        return "belongs to a tool"
    if name.lower() in _LEFT_OUT_NAMES:
        return "lock file"
    if _GENERATED.search(path):
        return "generated"
    if _BINARY.search(name):
        return "binary"
    return None


def is_declaration(path: str) -> bool:
    """Whether a file says what another one has."""
    return _DECLARATION.search(path) is not None


def standing(path: str) -> float:
    """What a file counts for beside others of its role, above 0 to 1."""
    return min((share for pattern, share in _STANDING if pattern.search(path)), default=1.0)


def completes_for_a_shell(path: str) -> bool:
    """Whether a file only tells a shell which options there are."""
    return _SHELL_COMPLETION.search(path) is not None


def successors(path: str) -> Iterator[tuple[str, str]]:
    """Folders of a path that hold an older version, in lower case, each with what a later one would be: the same file
    without the folder (``x/v1/a.py``: ``x/a.py``), or a folder with a higher number (``x/v2``).
    """
    for match in _VERSION.finditer(path):
        before, step, number = path[: match.start()], match[1], match[2]
        yield step.lower(), before + path[match.end() :]
        for later in range(int(number) + 1, int(number) + 1 + LATER_VERSIONS) if number else ():
            yield step.lower(), f"{before}{step[: -len(number)]}{later}"


def plain_stem(path: str) -> str:
    """A file's name without ending, in lower case, without what joins its words."""
    return path.rpartition("/")[2].rpartition(".")[0].lower().replace("_", "").replace("-", "")


def tested_stem(path: str) -> str:
    """The plain stem of what a test's name says it tests."""
    folder, _, name = path.rpartition("/")
    stem, _, ending = name.rpartition(".")
    return plain_stem(f"{folder}/{_TEST_MARK.sub('', stem)}.{ending}")


def role_of(path: str) -> Role:
    """What a file is for: the first that holds of vendored, test, config, example, doc, data, source."""
    if _VENDORED.search(path):
        return "vendored"
    if _TEST.search(path):
        return "test"
    if _CONFIG.search(path):
        return "config"
    if _EXAMPLE.search(path):
        return "example"
    if _DOC.search(path) and not _CODE_IN_DOCS.search(path) and not _TEMPLATE.match(path):
        return "doc"
    return "data" if _DATA.search(path) else "source"
