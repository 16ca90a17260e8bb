"""One verb of the command line, as the tables have it."""

from __future__ import annotations

from dataclasses import dataclass

from helix_ddx.base.flags import BOTH, Flag

APRIL, HEAD = ("april",), ("head",)

MANY = 1 << 30

REFUSED = "cli.missing:refuse"
"""Where verbs lead that need ddx itself: they are known, so that nobody gets another verb's help for them."""


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb. Without ``run`` it only stands above others, and answers with its help."""

    path: tuple[str, ...]
    about: str
    run: str = ""
    """Module of this package and function, ``writing:create``; elsewhere with the module's whole name."""
    use: str = ""
    """What follows the name in the usage line: ``<title>``."""
    least: int = 0
    most: int = 0
    flags: tuple[Flag, ...] = ()
    aliases: tuple[str, ...] = ()
    eras: tuple[str, ...] = BOTH
    quiet: bool = False
    """Complaints come once, without the usage block."""

    @property
    def name(self) -> str:
        """The last word of the path."""
        return self.path[-1]


def refused(*path: str, eras: tuple[str, ...]) -> Verb:
    """A verb of DDx that is known, so that nobody gets another one's help for it, and not offered."""
    return Verb(path, "Needs ddx itself", REFUSED, most=MANY, eras=eras)
