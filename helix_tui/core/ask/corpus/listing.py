"""List the files of a revision, a work tree or a plain folder, and those left out.

A file's role and weight are determined by its path. Paths of tools, locks and generated files are left out before they
are read; binary, minified and too large files by their content.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from helix_tui.core.ask.corpus.git import BlobReader, Git, TrackedFile
from helix_tui.core.ask.records import Role
from helix_tui.core.ground.errors import HelixError
from helix_tui.core.ground.files import is_folder, open_file, walk

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
_GENERATED_PATH = re.compile(
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
    # declares what another file implements; a C header may implement it itself
    (re.compile(r"\.d\.[cm]?ts$|\.pyi$", re.IGNORECASE), 0.7),
    # output of a build or a run, which repeats its source
    (
        re.compile(
            r"(?:^|/)(?:%\w+%|\.?te?mp|\.cache|\.parcel-cache|\.turbo|\.nyc_output|htmlcov)/.*\.(?:[cm]?[jt]s|json|html|css|map)$"
            r"|(?:^|/)dist/.*\.[cm]?js$|\.(?:build|compiled|bundled?)\.[cm]?js$|\.timestamp-[\w-]+\.mjs$",
            re.IGNORECASE,
        ),
        0.4,
    ),
    # lists every option for a shell without an explanation; mostly generated
    (_SHELL_COMPLETION, 0.6),
    # mentions everything that ever changed
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
_VENDORED = re.compile(
    r"(?:^|/)(?:vendor|vendored|_vendor|third[-_]?party|externals?|extern|site-packages)(?:/|$)", re.IGNORECASE
)
# benchmarks below src/ are the source of a benchmarking tool
_TEST = re.compile(
    r"(?:^|/)(?:tests?|testing|__tests__|specs?|e2e|testdata|test[-_]data|fixtures?|__mocks__|mocks|__snapshots__|(?<!src/)bench(?:es|marks?)?|fuzz"
    r"|conformance|(?:__)?perf(?:ormance)?[-_]tests?(?:ing)?(?:__)?)/|^t/|(?:^|/)(?:test_[^/]*|conftest)\.py$|_tests?\.(?:py|go|rs|cc?|cpp|rb|exs?)$|[-._](?:test|spec|e2e)"
    r"\.[cm]?[jt]sx?$|(?:^|/)[^/]*(?:Test|Tests|IT|Spec)\.(?:java|kt|scala|cs|swift)$|_spec\.rb$|\.test-d\.ts$"
)
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
"""Text templates of a program: part of its function, although written like documents."""
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

MAX_BYTES = 8 << 20
"""Maximum bytes of a text. Source files of several megabytes exist, and people ask about them."""

MAX_DATA_BYTES = 1 << 20
"""The same for data: tables and fixtures are numerous and contain little information. Useful trees, catalogues and
schemas have up to some hundred KiB."""

_HEAD = 8_000

_GENERATED = re.compile(
    rb"code generated .{0,200}do not edit|@generated\b|generated by the protocol buffer compiler"
    rb"|\bauto-?generated (?:file|code|by)\b.{0,200}do not (?:edit|modify)"
    rb"|do not edit.{0,80}\bgenerated\b|this file (?:is|was) auto-?generated",
    re.IGNORECASE | re.DOTALL,
)

_LONG_LINE = 1_000
_DATA_LANGUAGES = frozenset({"data"})
MAX_FOLDER_FILES = 200_000


def left_out(path: str) -> str | None:
    """Why a path is not read, or None."""
    *folders, name = path.split("/")
    if not _LEFT_OUT_DIRS.isdisjoint(folders):
        return "belongs to a tool"
    if name.lower() in _LEFT_OUT_NAMES:
        return "lock file"
    if _GENERATED_PATH.search(path):
        return "generated"
    if _BINARY.search(name):
        return "binary"
    return None


def is_declaration(path: str) -> bool:
    """Whether a file only declares the content of another one."""
    return _DECLARATION.search(path) is not None


def standing(path: str) -> float:
    """The weight of a file among others of its role, above 0 and at most 1."""
    return min((share for pattern, share in _STANDING if pattern.search(path)), default=1.0)


def role_of(path: str) -> Role:
    """The role of a file: the first that applies of vendored, test, config, example, doc, data, source."""
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


def unfit(data: bytes, language: str) -> str | None:
    """Why a file's content is not searched, or None."""
    if len(data) > (MAX_DATA_BYTES if language in _DATA_LANGUAGES else MAX_BYTES):
        return "too large"
    head = data[:_HEAD]
    # in UTF-16 every other byte of plain English is zero
    if b"\0" in head and not _is_wide(head):
        return "binary"
    opening = data[:1_500]
    # each form of the pattern holds the word, and looking for the word alone takes a tenth of the time
    if b"generated" in opening.lower() and _GENERATED.search(opening):
        return "generated"
    if len(data) > 20_000 and _is_minified(data):
        return "minified"
    return None


def decode(data: bytes) -> str:
    """The text of a file: UTF-8, UTF-16 with its mark, else Latin-1, in which every byte is valid."""
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    if _is_wide(data):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def split_lines(text: str) -> list[str]:
    """Lines as counted by editors and git: ended by LF, without a CR before it; no other separator counts."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line[:-1] if line.endswith("\r") else line for line in lines]


def blob_id(data: bytes, digits: int = 40) -> str:
    """The id that git would give the content, in a repository with ids of ``digits`` digits."""
    digest = hashlib.sha256() if digits == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % len(data))
    digest.update(data)
    return digest.hexdigest()


def _is_wide(head: bytes) -> bool:
    return head[:2] in (b"\xff\xfe", b"\xfe\xff")


def _is_minified(data: bytes) -> bool:
    """Whether most of the bytes are in lines too long to be written by hand."""
    long = sum(len(line) for line in data.split(b"\n") if len(line) > _LONG_LINE)
    return long * 2 > len(data)


class NothingToAsk(HelixError):
    """There are no files to search. The message says why and what to do."""


class Listing(Struct):
    """Files in order of path, and those left out."""

    entries: list[TrackedFile]
    commit: str | None
    """The commit of the files, or on which the work tree is based; None before the first one and without git."""
    oid_digits: int = 40
    skipped: list[tuple[str, str]] = []
    notes: list[str] = []


class Source:
    """The source of files: one revision, or the work tree (``revision`` None)."""

    def __init__(self, root: Path, revision: str | None) -> None:
        self.root = root
        self.git: Git | None = Git(root)
        self._blobs = BlobReader(root)
        if not is_folder(root):
            raise NothingToAsk(f"{root} is not a folder: name a folder with -C")
        if not self.git.is_repository():
            self.git = None
            if revision is not None:
                raise NothingToAsk(
                    f"{root} is not a git repository, so it has no revision {revision}: ask without a revision"
                )
        self.revision = revision
        # without a work tree there are only committed files
        if self.git is not None and revision is None and self.git.is_bare():
            self.revision = "HEAD"

    def close(self) -> None:
        """Stop the process that reads blobs; it is started again when needed."""
        self._blobs.close()

    def list(self) -> Listing:
        """The current files.

        Raises:
            NothingToAsk: the revision does not exist.
            GitFailed: git fails.
        """
        if self.git is None:
            entries, notes = _walk(self.root)
            return _sift(Listing(entries, None, notes=notes))
        if self.revision is None:
            entries = self.git.tracked()
            return _sift(Listing(entries, self.git.commit_of("HEAD"), _digits(entries)))
        commit = self.git.commit_of(self.revision)
        if commit is None:
            raise NothingToAsk(f"{self.root} has no revision {self.revision}: `git log --oneline` shows what there is")
        entries = self.git.tree(commit)
        return _sift(Listing(entries, commit, _digits(entries)))

    def read(self, entries: Iterable[TrackedFile], digits: int) -> Iterator[tuple[TrackedFile, str, bytes | int]]:
        """(entry, blob id, bytes) of each file, with the size instead of the bytes if it is too large.

        A file that cannot be read (gone, no permission, not checked out) is left out.
        """
        if self.git is not None and self.revision is not None:
            by_oid: dict[str, list[TrackedFile]] = {}
            for entry in entries:
                by_oid.setdefault(entry.oid, []).append(entry)
            for oid, blob in self.git.blobs(list(by_oid), cap=MAX_BYTES):
                # files with the same bytes may differ in language: each one gets them
                for entry in by_oid[oid]:
                    yield entry, oid, blob
            return
        for entry in entries:
            data = read_file(self.root, entry.path)
            if isinstance(data, int):
                # too large to be hashed: its size shows a change
                yield entry, entry.oid or f"large-{data}", data
            elif data is not None:
                yield entry, blob_id(data, digits), data

    def text(self, path: str, oid: str) -> bytes | None:
        """The bytes of one file of the listing; None if it cannot be read."""
        if self.git is not None and self.revision is not None:
            return self._blobs.read(oid, cap=MAX_BYTES)
        data = read_file(self.root, path)
        return data if isinstance(data, bytes) else None


def read_file(root: Path, path: str) -> bytes | int | None:
    """The bytes of a regular file below a folder, its size if it is too large, None if it cannot be read.

    A symbolic link is not followed: it may lead out of the repository, or form a loop.
    """
    try:
        with open_file(f"{root}/{path}", follow=False) as file:
            size = os.fstat(file.fileno()).st_size
            return size if size > MAX_BYTES else file.read(MAX_BYTES)
    except (OSError, ValueError):
        return None


def _sift(listing: Listing) -> Listing:
    """Filter out irrelevant files by path."""
    kept = []
    for entry in listing.entries:
        reason = left_out(entry.path)
        if reason is None:
            kept.append(entry)
        else:
            listing.skipped.append((entry.path, reason))
    listing.entries = kept
    return listing


def _digits(entries: list[TrackedFile]) -> int:
    return next((len(entry.oid) for entry in entries if entry.oid), 40)


def _walk(root: Path) -> tuple[list[TrackedFile], list[str]]:
    """The files below a folder that is not a repository; links and hidden folders are not followed."""
    found: list[TrackedFile] = []
    notes = [f"{root} is not a git repository: every file below it was read, and there is no history"]
    for folder, folders, files in walk(root):
        # in place: those that are removed are not entered
        folders[:] = [name for name in folders if not name.startswith(".") and left_out(f"{name}/x") is None]
        place = os.path.relpath(folder, root)
        found += [TrackedFile(name if place == "." else f"{place}/{name}", "") for name in files]
        if len(found) > MAX_FOLDER_FILES:
            notes.append(f"only the first {MAX_FOLDER_FILES:,} files were read")
            break
    return sorted(found[:MAX_FOLDER_FILES], key=lambda entry: entry.path), notes
