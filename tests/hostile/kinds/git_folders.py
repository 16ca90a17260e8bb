"""Git's own folder, as an archive or a shared folder brings it: settings that name programs, and folders of others."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.kinds.registry import (
    ATTEMPT,
    BEAD,
    combined,
    evil,
    git,
    kind,
    link,
    named,
    victim,
    write,
    write_json,
)

PROGRAMS = {
    "core.fsmonitor": "{program}",
    "core.hooksPath": "{folder}",
    "core.pager": "{program}",
    "pager.log": "{program}",
    "core.sshCommand": "{program}",
    "core.gitProxy": "{program}",
    "core.askPass": "{program}",
    "core.editor": "{program}",
    "core.alternateRefsCommand": "{program}",
    "credential.helper": "!{program}",
    "diff.external": "{program}",
    "diff.evil.textconv": "{program}",
    "diff.evil.command": "{program}",
    "filter.evil.clean": "{program}",
    "filter.evil.process": "{program}",
    "merge.evil.driver": "{program}",
    "gpg.program": "{program}",
    "gpg.ssh.defaultKeyCommand": "{program}",
    "interactive.diffFilter": "{program}",
    "uploadpack.packObjectsHook": "{program}",
    "alias.status": "!{program}",
    "trailer.bead.command": "{program}",
    "remote.origin.url": "ext::{program}",
    "remote.origin.uploadpack": "{program}",
    "remote.origin.promisor": "true",
    "submodule.sub.update": "!{program}",
    "include.path": "{folder}/included",
}
"""Where `.git/config` may name a program."""

SETTINGS = PROGRAMS | {
    "core.attributesFile": "{secret}",
    "core.excludesFile": "{secret}",
    "commit.template": "{secret}",
    "mailmap.file": "{secret}",
    "diff.orderFile": "{secret}",
}
"""What `.git/config` may name; each is a kind, and all together are one."""

ALWAYS = {
    "protocol.allow": "always",
    "protocol.ext.allow": "always",
    "log.showSignature": "true",
    "commit.gpgSign": "true",
    "diff.submodule": "diff",
    "filter.evil.required": "true",
}
"""Set beside each, so that git would use it."""


def _settings(name: str, settings: dict[str, str]) -> None:
    def make(root: Path, secret: Path) -> None:
        folder = root / "brought"
        for hook in ("pre-commit", "post-index-change", "reference-transaction"):
            write(folder / hook, evil(secret).read_bytes(), 0o755)
        write(folder / "included", f'[core]\n\tfsmonitor = {evil(secret)}\n[filter "evil"]\n\tclean = {evil(secret)}\n')
        write(root / ".git" / "info" / "attributes", "* diff=evil merge=evil filter=evil\n")
        for setting, value in (ALWAYS | settings).items():
            git(root, "config", setting, value.format(program=evil(secret), folder=folder, secret=secret))
        write(root / "main.py", "def sail():\n    return 'ship'\n")  # as long as before: git must read it

    named(name, make, kind)


_settings("git_settings", SETTINGS)
for _setting, _value in SETTINGS.items():
    _settings(f"git_{_setting.replace('.', '_')}", {_setting: _value})


@kind
def hooks_of_git(root: Path, secret: Path) -> None:
    names = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-merge", "pre-push")
    for name in (
        *names,
        "post-index-change",
        "reference-transaction",
        "fsmonitor-watchman",
        "pre-auto-gc",
        "post-rewrite",
    ):
        write(root / ".git" / "hooks" / name, evil(secret).read_bytes(), 0o755)


@combined
def attributes_of_the_work_tree(root: Path, secret: Path) -> None:
    lines = "* diff=evil merge=evil filter=evil text=auto ident working-tree-encoding=UTF-32\n*.md export-subst\n"
    write(root / ".gitattributes", lines)


@kind
def a_submodule(root: Path, secret: Path) -> None:
    """With a configuration of its own, and names that lead out."""
    sub = root / "sub"
    git(root, "init", "-q", str(sub))
    write(sub / "a.txt", "one\n")
    git(sub, "add", "-A")
    git(sub, "commit", "-q", "-m", "sub")
    git(root, "add", "sub")
    for name in ("core.fsmonitor", "filter.evil.clean", "diff.external"):
        git(sub, "config", name, str(evil(secret)))
    write(sub / ".git" / "info" / "attributes", "* filter=evil\n")
    write(sub / "a.txt", "two\n")
    modules = f'[submodule "../../home"]\n\tpath = sub\n\turl = ext::{evil(secret)}\n\tupdate = !{evil(secret)}\n'
    write(root / ".gitmodules", modules)


@kind
def a_bare_repository_inside(root: Path, secret: Path) -> Path:
    """A folder that git takes for a repository by its content alone, with a tracker, so that it may be opened."""
    inner = root / "inner"
    git(root, "init", "-q", "--bare", str(inner))
    git(inner, "config", "core.bare", "false")
    git(inner, "config", "core.worktree", str(victim(secret)))
    git(inner, "config", "core.fsmonitor", str(evil(secret)))
    (inner / "index").write_bytes((victim(secret) / ".git" / "index").read_bytes())
    write_json(inner / ".ddx" / "beads.jsonl", BEAD)
    return inner


@kind
def a_git_file(root: Path, secret: Path) -> None:
    (root / ".git").rename(root / "not-git")
    write(root / ".git", f"gitdir: {victim(secret) / '.git'}\n")


@kind
def a_git_link(root: Path, secret: Path) -> None:
    (root / ".git").rename(root / "not-git")
    link(root / ".git", victim(secret) / ".git")


@kind
def a_git_file_that_never_ends(root: Path, secret: Path) -> None:
    (root / ".git").rename(root / "not-git")
    link(root / ".git", "/dev/zero")


@kind
def a_made_up_worktree(root: Path, secret: Path) -> None:
    (root / ".git").rename(root / "not-git")
    write(root / ".git" / "HEAD", "ref: refs/heads/main\n")
    write(root / ".git" / "commondir", f"{victim(secret) / '.git'}\n")
    write(root / ".git" / "gitdir", f"{root / '.git'}\n")


@kind
def a_worktree_of_another(root: Path, secret: Path) -> None:
    git(victim(secret), "worktree", "add", "-q", "-b", "topic", str(secret.parent / "topic"))
    (root / ".git").rename(root / "not-git")
    write(root / ".git", f"gitdir: {victim(secret) / '.git' / 'worktrees' / 'topic'}\n")


@kind
def a_work_tree_elsewhere(root: Path, secret: Path) -> None:
    with open(root / ".git" / "config", "a") as config:
        config.write(f"[core] WorkTree = {victim(secret)}\n")


@kind
def refs_of_another(root: Path, secret: Path) -> None:
    (root / ".git" / "refs").rename(root / ".git" / "elsewhere")
    link(root / ".git" / "refs", victim(secret) / ".git" / "refs")


@kind
def objects_of_another(root: Path, secret: Path) -> None:
    """All objects by a link: what they are is known by whoever made the archive."""
    (root / ".git" / "objects").rename(root / ".git" / "elsewhere")
    link(root / ".git" / "objects", victim(secret) / ".git" / "objects")
    write(root / ".git" / "refs" / "heads" / "main", git(victim(secret), "rev-parse", "HEAD") + "\n")


@kind
def an_attempt_that_is_none(root: Path, secret: Path) -> Path:
    """A clone inside, named as ddx names those of its attempts, with the other repository as its origin."""
    clone = root / f".execute-bead-clone-private-1-{ATTEMPT}"
    git(root, "init", "-q", "-b", "main", str(clone))
    git(clone, "config", "remote.origin.url", str(victim(secret)))
    git(clone, "config", "ddx.sharedMainGitLockRoot", str(victim(secret)))
    return clone


@kind
def a_remote_that_names_another_tracker(root: Path, secret: Path) -> None:
    """ddx keeps trackers of some repositories by the address of their remote."""
    git(root, "config", "remote.origin.url", "git@host:../../../home/victim.git")
    (root / ".ddx").rename(root / "elsewhere")


@combined
def options_as_refs(root: Path, secret: Path) -> None:
    commit = git(root, "rev-parse", "HEAD") + "\n"
    for name in (f"--output={secret.parent.name}", "-x", "--upload-pack=evil"):
        write(root / ".git" / "refs" / "heads" / name, commit)
        write(root / ".git" / "refs" / "remotes" / "origin" / name, commit)


@kind
def a_head_that_is_an_option(root: Path, secret: Path) -> None:
    write(root / ".git" / "HEAD", "ref: refs/heads/--output=../home/ran\n")


@kind
def refs_that_lead_out(root: Path, secret: Path) -> None:
    write(root / ".git" / "HEAD", "ref: refs/heads/../../../../home/secret\n")
    write(root / ".git" / "refs" / "remotes" / "origin" / "main", "ref: ../../home/secret\n")


@kind
def a_damaged_git_folder(root: Path, secret: Path) -> None:
    for name in ("HEAD", "config", "index", "packed-refs"):
        write(root / ".git" / name, b"\0\xff[" * 2_000)


@combined
def texts_of_commits(root: Path, secret: Path) -> None:
    """Escape sequences in names and messages."""
    author = "A\x1b[2J\u202e <a@b>"
    git(
        root,
        "-c",
        "i18n.commitEncoding=UTF-8",
        "commit",
        "-q",
        "--allow-empty",
        f"--author={author}",
        "-m",
        "hunter2 \x1b]0;x\x07\x9b31m\u202e",
    )


@kind
def replaced_objects(root: Path, secret: Path) -> None:
    """What git shows in place of a commit, grafts beside it, and a history that begins nowhere."""
    commit = git(root, "rev-parse", "HEAD")
    write(root / ".git" / "refs" / "replace" / commit, f"{commit}\n")
    write(root / ".git" / "info" / "grafts", f"{commit} {commit}\n")
    write(root / ".git" / "shallow", "no commit\n")
