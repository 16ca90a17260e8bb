"""What the loop asks of an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from helix_tui.core.ask.records import Definition, Heading, PastCommit, RankedFile, Span, Tree, Use


class SearchResult(Protocol):
    """What one search brought, best first, in an order that does not depend on anything but the content."""

    @property
    def files(self) -> Sequence[RankedFile]: ...

    @property
    def spans(self) -> Sequence[Span]: ...


class DayOfWork(Struct, frozen=True):
    """What is recorded of one day, in the zone of whoever asks."""

    day: str
    """``2026-10-30``; as it was asked for where nothing has it."""
    ends: Mapping[str, int] = {}
    """How many attempts of that day ended how, in people's words; the commonest first."""
    attempts: Sequence[Span] = ()
    """The passages that tell of them, in the order in which they began."""
    runs: Sequence[Span] = ()
    """The logs of the runs that began then, each whole."""
    cost: str = ""
    """What its attempts cost together, in people's words."""


class Records(Protocol):
    """Beads, attempts, reviews, memories and runs of one project, searchable; passages of role ``record``."""

    def refresh(self, commits: Sequence[PastCommit]) -> None:
        """Bring the index up to date; ``commits`` say which files belong to which bead."""
        ...

    def search(self, text: str, *, spans: int = 24, kinds: Sequence[str] = ()) -> Sequence[Span]:
        """The passages that speak most of a text, best first; of some kinds only, where any is named."""
        ...

    def named(self, word: str) -> Sequence[Span]:
        """All passages of the record that an id names; empty where none has it."""
        ...

    def lines(self, file: str, start: int = 1, end: int | None = None) -> Sequence[str]:
        """Lines of the record that a passage names as its file, both ends included; empty where there is none."""
        ...

    def in_state(self, kind: str, state: str) -> tuple[int, Sequence[Span]]:
        """How many beads or attempts are in a state, and the first passages of the first of them, in order."""
        ...

    def ended(self, ends: Sequence[str]) -> Sequence[Span]:
        """The passages of all attempts with one of some ends, newest first; attempts told together stand in one."""
        ...

    def of_day(self, day: str) -> DayOfWork:
        """What is recorded of a day: ``x in the newest year that has it, ``today``, ``yesterday``,
        or ``last`` for that of the last run."""
        ...

    def title(self, file: str) -> str:
        """The title of the record that a passage comes from."""
        ...

    def state(self, bead_id: str) -> str:
        """The status of a bead; empty where there is none."""
        ...


class Library(Protocol):
    """One repository at one revision, searchable."""

    @property
    def empty(self) -> str:
        """Why nothing of the repository can be asked, a sentence; empty where something can."""
        ...

    @property
    def revision(self) -> str:
        """The commit that is asked about; empty for the work tree."""
        ...

    def search(self, text: str, *, spans: int = 60, docs_only: bool = False, per_file: int = 0) -> SearchResult:
        """Files and spans for a text, through every channel; ``per_file`` spans of a file at most, 0 for as usual."""
        ...

    def definitions(self, name: str, *, any_case: bool = False) -> Sequence[Definition]:
        """Where an identifier is defined; a dotted one by its last part within its first."""
        ...

    def definitions_in(self, file: str) -> Sequence[Definition]:
        """The definitions of a file in order of line."""
        ...

    def lines(self, file: str, start: int = 1, end: int | None = None) -> Sequence[str]:
        """Lines of a file; empty where it is not searched."""
        ...

    def uses(self, name: str, *, most: int = 50) -> Sequence[Use]:
        """Lines that mention an identifier without defining it."""
        ...

    def headings(self, terms: Sequence[str]) -> Sequence[Heading]:
        """Headings of documents with any of some stems."""
        ...

    def trees(self) -> Sequence[Tree]:
        """The trees that the repository keeps."""
        ...

    def opening(self) -> Span | None:
        """The beginning of what introduces the repository; None where nothing does."""
        ...

    def span_at(self, file: str, start: int, end: int) -> Span | None:
        """Some lines of a file as a span; None where the file has no such lines."""
        ...

    def share(self, term: str) -> float:
        """The share of all files that have a stem."""
        ...

    @property
    def records(self) -> Records | None:
        """What is known of the work on the repository; None where nothing is."""
        ...

    def origins(self, file: str, first: int, last: int) -> Sequence[str]:
        """The commit that each of some lines comes from; empty where none is known."""
        ...

    def commits_of(self, shas: Sequence[str]) -> Sequence[Span]:
        """Some commits, each whole, in the order asked; those that are not known are left out."""
        ...

    def commits(self, text: str, most: int) -> Sequence[Span]:
        """The commits whose messages are most like a text, each whole, best first."""
        ...
