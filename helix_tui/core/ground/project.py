"""Find the project: its root, git folders and refs, ``.ddx`` and ``.helix``, and the ddx to use.

Refs and settings are read from git's own files, without running git. The folders in which ddx releases keep leases and
work trees are found here too.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from helix_tui.core.ground.files import add_root, text_of
from helix_tui.core.ground.processes.programs import program
from helix_tui.core.ground.text import clean_line
from helix_tui.core.ground.trust.own_folders import own_folder
from helix_tui.core.ground.trust.work_tree import (
    WorkTree,
    configured,
    first_line,
    git_environment,
    origin_url,
    packed_ref,
    work_tree_above,
)

LEASES = "ddx-claim-heartbeats"
"""Name of the folder that contains one lease folder per project."""

LOCK_ROOT = "sharedMainGitLockRoot"
"""Key that ddx of August sets in the ``[ddx]`` section of an attempt's clone: the project's path."""

_ATTEMPT_NAME = re.compile(
    r"\.execute-bead-(?:(?:wt|clone)-(?P<bead>.+)-(?P<attempt>\d{8}T\d{6}-[0-9a-f]{6,16})|(?:slot|ephemeral)-.+)"
)

_WORKTREES = ("executions", "temp_worktree_root")


class AttemptFolder(Struct, frozen=True):
    """A work tree or clone that ddx makes for one attempt and removes afterwards."""

    root: Path
    bead: str = ""
    """"" if the folder's name does not contain it: a slot that is reused by attempts."""
    attempt: str = ""


class Project(Struct, frozen=True):
    """One project on disk. Its folders need not exist."""

    root: Path
    """The current work tree, or the start folder outside git: its files, branch and HEAD are meant."""
    ddx_dir: Path
    git_dir: Path | None = None
    """Git's folder of this work tree; that of a linked work tree differs from `common_dir`."""
    common_dir: Path | None = None
    """Git's folder shared by all work trees: refs and objects."""
    primary: Path | None = None
    """The primary work tree of a linked one, which keeps tracker, memory and journal; None in any other."""
    linked_ddx_dir: Path | None = None
    """DDx's folder of a linked work tree; None in any other."""
    attempt: AttemptFolder | None = None
    """The attempt's folder in which the search began; all other fields are its project's."""
    notice: str = ""
    """What this folder names and was not followed, as it is another project's; what to do."""

    @property
    def name(self) -> str:
        """The display name: the folder's name."""
        return self.main_root.name or str(self.main_root)

    @property
    def beads_file(self) -> Path:
        """The tracker."""
        return self.ddx_dir / "beads.jsonl"

    @property
    def no_queue(self) -> str:
        """What is said where there is no tracker."""
        return f"no queue here: looked for {clean_line(str(self.beads_file), 1_000)}"

    @property
    def records_dir(self) -> Path:
        """Where ddx keeps the records of workers started here: in a linked work tree not with the tracker."""
        return self.linked_ddx_dir or self.ddx_dir

    @property
    def archive_file(self) -> Path:
        """Closed beads that DDx moved out of the tracker (head era)."""
        return self.ddx_dir / "beads-archive.jsonl"

    @property
    def helix_dir(self) -> Path:
        """HELIX's own folder, or a path at which nothing can be (`own_folder`)."""
        return own_folder(self.main_root, ".helix", self.common_dir if self.primary else self.git_dir)

    @property
    def logs_dir(self) -> Path:
        """The folder of agents' prompts and output, or a path at which nothing can be."""
        return own_folder(self.main_root, ".helix-logs", self.common_dir if self.primary else self.git_dir)

    @property
    def main_root(self) -> Path:
        """The folder of the project: the primary work tree of a linked one, else the root itself."""
        return self.primary or self.root

    def branch(self) -> str | None:
        """The branch checked out; the first seven digits of a detached HEAD; None without git."""
        if self.git_dir is None:
            return None
        head = first_line(self.git_dir / "HEAD")
        if head.startswith("ref: "):
            name = head[5:].strip().removeprefix("refs/heads/")
            return None if name == ".invalid" else name  # reftable keeps the real HEAD elsewhere
        return head[:7] or None

    @property
    def detached(self) -> bool:
        """Whether git has no branch checked out here."""
        head = first_line(self.git_dir / "HEAD") if self.git_dir is not None else ""
        return bool(head) and not head.startswith("ref: ")

    def origin_head(self) -> str | None:
        """The commit of ``origin/main`` as last fetched, which ends a cooldown (docs/formats/ddx.md §2)."""
        return self.ref("refs/remotes/origin/main")

    def ref(self, name: str) -> str | None:
        """The commit a full ref name stands for, loose or packed; None if git's files do not say."""
        if self.common_dir is None:
            return None
        # git follows at most five symbolic refs too
        for _ in range(5):
            loose = first_line(self.common_dir / name)
            if not loose:
                return packed_ref(self.common_dir / "packed-refs", name)
            if not loose.startswith("ref: "):
                return loose
            name = loose[5:].strip()
        return None


def find_project(start: Path, *, env: Mapping[str, str] | None = None) -> Project:
    """The project that contains ``start``: the git root above it, else ``start`` itself.

    Where the git root has no ``.ddx`` but ``start`` has one, the project is ``start``: a tracker in a subfolder of
    another repository counts. A linked work tree has the tracker of its primary one, as for ddx. In a folder that ddx
    made for an attempt the project is the one that the attempt works for (docs/decisions/0021): the repository of the
    common git folder, or the origin of a clone. Neither is followed without proof (docs/decisions/0021).
    """
    env = os.environ if env is None else env
    start = Path(os.path.abspath(start))
    tree = work_tree_above(start) or WorkTree(start)
    add_root(tree.root)
    inner = start.relative_to(tree.root)
    attempt = _attempt_at(tree.root)
    owner, problem = _primary(tree), tree.problem
    if attempt is not None and tree.common_dir is not None and tree.common_dir == tree.git_dir:
        owner, problem = _origin(attempt, tree.common_dir, env)
    if attempt is not None and owner is not None:
        same = owner / inner
        return replace(find_project(same if same.is_dir() else owner, env=env), attempt=attempt)
    home = owner or tree.root
    if (home / ".ddx").is_dir() or not (home / inner / ".ddx").is_dir():
        inner = Path()
    ddx_dir, misplaced = _ddx_dir(home / inner, tree.common_dir, env)
    root, primary = tree.root / inner, home / inner if owner is not None else None
    linked = _ddx_dir(root, tree.common_dir, env)[0] if primary is not None else None
    notice = problem or misplaced
    return _opened(Project(root, ddx_dir, tree.git_dir, tree.common_dir, primary, linked, notice=notice))


def _opened(project: Project) -> Project:
    """Make its folders roots of the door to files; a ``.ddx`` in the work tree is reached through it, so by no link."""
    roots = (project.root, project.main_root, project.git_dir, project.common_dir)
    outside = (each for each in (project.ddx_dir, project.records_dir) if not set(roots[:2]) & set(each.parents))
    for folder in (*roots, *outside):
        if folder is not None:
            add_root(folder)
    return project


def ddx_environment(project: Project, env: Mapping[str, str]) -> dict[str, str]:
    """The environment in which ddx works on this project, whatever else its folder names."""
    full = {**env, **git_environment(project.root)}
    if project.notice or find_project(project.root, env=full).ddx_dir != project.ddx_dir:
        full["DDX_BEAD_DIR"] = os.fspath(project.ddx_dir)
    return full


def _attempt_at(root: Path) -> AttemptFolder | None:
    """An attempt's folder, by its name; None for any other folder."""
    # some releases keep the work tree below the folder with that name
    named = _ATTEMPT_NAME.fullmatch(root.name) or _ATTEMPT_NAME.fullmatch(root.parent.name)
    return AttemptFolder(root, named["bead"] or "", named["attempt"] or "") if named is not None else None


def _primary(tree: WorkTree) -> Path | None:
    """The primary work tree of a linked one; a bare repository has none."""
    linked = tree.common_dir is not None and tree.git_dir != tree.common_dir and tree.common_dir.name == ".git"
    return tree.common_dir.parent if tree.common_dir is not None and linked else None


def _origin(attempt: AttemptFolder, common_dir: Path, env: Mapping[str, str]) -> tuple[Path | None, str]:
    """The project for which an attempt's clone was made, if its records name the attempt; else why it is not used."""
    named = configured(common_dir, "ddx", LOCK_ROOT) or origin_url(common_dir).removeprefix("file://")
    origin = Path(named)
    if not origin.is_absolute() or _attempt_at(origin) is not None or work_tree_above(origin) is None:
        return None, ""
    folder, wanted = clean_line(str(attempt.root), 300), attempt.attempt or f'"{os.path.realpath(attempt.root)}"'
    for ddx_dir in (find_project(origin, env=env).ddx_dir, origin / ".ddx"):
        records = (text_of(path) for path in (ddx_dir / "run-state.json", *ddx_dir.glob("run-state/*.json")))
        if (ddx_dir / "executions" / wanted).is_dir() or any(wanted in record for record in records):
            return origin, ""
    return None, f"{folder} is a project of its own: no record of {clean_line(named, 300)} names this attempt"


def find_ddx(explicit: str | os.PathLike[str] | None, env: Mapping[str, str] | None = None) -> Path | None:
    """The ddx to use: the one asked for, else ``DDX_BIN``, else the first on ``PATH``.

    None if the ddx asked for does not exist: it is not replaced by another one.
    """
    env = os.environ if env is None else env
    wanted = os.fspath(explicit) if explicit else env.get("DDX_BIN", "")
    # a name with a slash is a path, as for a shell
    found = program(os.path.abspath(wanted) if os.path.dirname(wanted) else wanted or "ddx", env)
    return Path(os.path.abspath(found)) if found else None


def machine_name(env: Mapping[str, str] | None = None) -> str:
    """The host name that DDx writes into claims made on this machine."""
    env = os.environ if env is None else env
    return env.get("DDX_MACHINE_ID") or os.uname().nodename


def user_cache_dirs(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Cache folders in which newer releases keep leases and work trees: Go's ``os.UserCacheDir`` first.

    A worker may have been started with another ``XDG_CACHE_HOME`` than ours, so the default counts too.
    """
    home = env.get("HOME", "")
    named = [env.get("XDG_CACHE_HOME", "")]
    usual = [os.path.join(home, ".cache")] if home else []
    apple = [os.path.join(home, "Library", "Caches")] if home and sys.platform == "darwin" else []
    return tuple(Path(text) for text in dict.fromkeys([*apple, *named, *usual]) if text)


def lease_roots(project: Project, env: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Every folder in which any release of DDx would keep this project's leases, the likeliest first.

    The folder is named by the SHA-1 of the real path of the folder that holds ``.ddx``; its location has changed
    between releases (docs/formats/ddx.md §4.3), so all are candidates.
    """
    env = os.environ if env is None else env
    owners = dict.fromkeys(os.path.realpath(path) for path in (project.ddx_dir.parent, project.root, project.main_root))
    hashes = [hashlib.sha1(os.fsencode(owner), usedforsecurity=False).hexdigest() for owner in owners]
    return tuple(base / digest for base in _lease_bases(project, env) for digest in hashes)


def worktree_roots(project: Project, env: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    """Folders that may contain attempts' work trees, for records that do not name one."""
    env = os.environ if env is None else env
    roots = _exec_roots(project, env)
    temp = env.get("TMPDIR") or "/tmp"
    roots += [cache / "ddx" / "exec-wt" for cache in user_cache_dirs(env)]
    roots += [Path(temp, "ddx-exec-wt"), Path("/tmp/ddx-exec-wt"), Path("/var/tmp/ddx-exec-wt")]
    return tuple(dict.fromkeys(roots))


def _lease_bases(project: Project, env: Mapping[str, str]) -> list[Path]:
    temps = [Path(text) for text in (env.get("TMPDIR", ""), "/tmp") if text]
    bases: list[Path] = []
    if env.get("DDX_CLAIM_HEARTBEAT_DIR"):
        bases.append(Path(env["DDX_CLAIM_HEARTBEAT_DIR"]))
    bases += [root / LEASES for root in _exec_roots(project, env)]
    for cache in user_cache_dirs(env):
        bases += [cache / "ddx" / LEASES, cache / "ddx" / "exec-wt" / LEASES, cache / "fleet-tmp" / LEASES]
    for temp in temps:
        bases += [temp / LEASES, temp / "ddx" / LEASES, temp / "ddx-exec-wt" / LEASES]
    return list(dict.fromkeys(bases))


def _exec_roots(project: Project, env: Mapping[str, str]) -> list[Path]:
    """Execution roots from the environment, the project's and the user's configuration."""
    texts = [env.get("DDX_EXEC_WT_DIR", ""), ddx_setting(project.ddx_dir / "config.yaml", *_WORKTREES)]
    home = env.get("HOME", "")
    if home:
        texts.append(ddx_setting(Path(home, ".ddx", "config.yaml"), *_WORKTREES))
    roots = []
    for text in texts:
        if text.startswith("~/") and home:
            text = os.path.join(home, text[2:])
        if text:
            roots.append(Path(os.path.abspath(project.root / text)))
    return roots


def ddx_setting(config: Path, section: str, name: str) -> str:
    """A plain scalar in a section of a config.yaml of ddx; empty if it is not set."""
    # parsed by hand: every start needs one such line, and YAML is slow to import
    inside = False
    for line in text_of(config).split("\n"):
        if line[:1] not in ("", " ", "\t", "#"):
            inside = line.split("#")[0].strip() == f"{section}:"
        elif inside and line.strip().startswith(f"{name}:"):
            value = line.split(":", 1)[1].strip()
            if value[:1] in ("'", '"'):
                return value[1:].partition(value[0])[0]
            return value.partition(" #")[0].strip()
    return ""


def _ddx_dir(root: Path, common_dir: Path | None, env: Mapping[str, str]) -> tuple[Path, str]:
    """DDx's folder: ``DDX_BEAD_DIR``, else in the work tree, else the conventional one in the user's data folder; and
    why the one that the work tree names is not used.
    """
    named = env.get("DDX_BEAD_DIR", "")
    if named:
        return Path(os.path.abspath(root / named)), ""
    in_tree, real = root / ".ddx", os.path.realpath(root)
    if in_tree.is_dir():
        if all(Path(real) in Path(os.path.realpath(path)).parents for path in (in_tree, in_tree / "beads.jsonl")):
            return in_tree, ""
        problem = f"the tracker of {clean_line(real, 300)} is not used: it is a link to another folder"
        return _convention_dir(root, None, env) or in_tree, problem
    elsewhere = _convention_dir(root, common_dir, env)
    if elsewhere is None or not elsewhere.is_dir():
        return in_tree, ""
    # named by the remote's address, which any configuration may claim: ddx enters each work tree that it serves there
    if elsewhere.parent.name == "local" or f'"{real}"' in text_of(elsewhere / "worktrees.json"):
        return elsewhere, ""
    problem = f"{clean_line(str(elsewhere), 300)} is not used: it does not name this folder. `ddx bead list` enters it"
    return in_tree, problem


def _convention_dir(root: Path, common_dir: Path | None, env: Mapping[str, str]) -> Path | None:
    home = env.get("HOME", "")
    data = env.get("XDG_DATA_HOME") or (os.path.join(home, ".local", "share") if home else "")
    if not data:
        return None
    identity = _remote_identity(origin_url(common_dir)) if common_dir is not None else None
    if identity is None:
        digest = hashlib.sha1(os.fsencode(root), usedforsecurity=False).hexdigest()[:8]
        identity = f"local/{root.name or 'project'}-{digest}"
    return Path(data, "ddx", "projects", identity)


def _remote_identity(url: str) -> str | None:
    """``host/path`` of a remote's address, from either address syntax of git."""
    if "://" in url:
        address = url.partition("://")[2]
        host, _, path = address.partition("/")
        host = host.rpartition("@")[2]
    else:
        host, colon, path = url.partition(":")
        if not colon or "@" not in host:
            return None
        host = host.rpartition("@")[2]
    steps = [step for step in path.strip().strip("/").removesuffix(".git").split("/") if step]
    return "/".join([host, *steps]) if host and steps and ".." not in steps else None
