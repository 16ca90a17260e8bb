"""The evidence of one attempt: how it ended and what that means, checks, review, commits, other attempts; and two
attempts on one bead side by side: how each ended, its checks, its files, then the difference of the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

from msgspec import Struct

from helix_tui.core.beads.record import Bead
from helix_tui.core.ddx.attempts.attempt import Attempt, Review
from helix_tui.core.ddx.attempts.comparison import AttemptComparison
from helix_tui.core.ddx.attempts.costs import Sums, format_parts, format_sum, format_whole
from helix_tui.core.ddx.attempts.evidence import AttemptCheck, AttemptEvidence
from helix_tui.core.ddx.attempts.interpretation import Reading
from helix_tui.core.ddx.measures import Ratchet
from helix_tui.core.ddx.runs.running import Fact, Run
from helix_tui.core.ground.text import clean_block, clean_line, counted, short_id
from helix_tui.core.ground.time import NS, format_age, format_span
from helix_tui.themes import RUN_SIGNS
from helix_tui.widgets import figures
from helix_tui.widgets.base.line import Line, Span, SpanLine, column, cut, width_of, wrap_spans
from helix_tui.widgets.figures import look_of
from helix_tui.widgets.rows.attempts import Board, RunView, paint_attempt, paint_run, title_of
from helix_tui.widgets.text.diff import DiffPane, counts_of
from helix_tui.widgets.text.diff_lines import DiffFacts, FileDiff
from helix_tui.widgets.text.pane import Para, TextPane, block, section

MAX_LINES = 400
"""How many lines of one text are shown here; the raw tab has the rest."""

MAX_SIBLINGS = 20
MAX_FILES = 30

NAME_CELLS = 10
MAX_COMPARED = 40


class AttemptSubject(Struct, frozen=True):
    """One attempt with everything shown about it; parts that are not read yet are None."""

    attempt: Attempt
    run: Run | None = None
    beads: Mapping[str, Bead] | None = None
    siblings: Sequence[Attempt] = ()
    """All attempts on its bead, newest first."""
    reading: Reading | None = None
    evidence: AttemptEvidence | None = None
    diff: DiffFacts | None = None
    now: int = 0
    trouble: str = ""
    """Why something could not be read, and what to do."""

    @property
    def key(self) -> str:
        """Its identity: its id, or its bead if the attempt has no id yet."""
        return self.attempt.attempt_id or f"run:{self.attempt.bead_id}"

    @property
    def running(self) -> bool:
        """Whether a live worker is running it."""
        return self.run is not None and self.run.live


class EvidencePane(TextPane):
    """The first tab. Lines that name a bead, an attempt or the diff are links."""

    class Followed(TextPane.LineFollowed):
        """Enter on a link: ``bead``, ``attempt``, ``diff``."""

    def show_subject(self, subject: AttemptSubject, *, other: bool) -> None:
        """Show an attempt; ``other`` is true for another one than before."""
        paras = list(evidence_paras(subject))
        if other:
            self.read(paras)
        else:
            self.update_text(paras)

    def action_open(self) -> None:
        """Follow the link of the line."""
        para = self.para
        if para is not None and para.opens:
            kind, _, name = para.key.partition(":")
            self.post_message(self.Followed(kind, name))


def evidence_paras(subject: AttemptSubject) -> Iterator[Para]:
    """All parts, the most important first."""
    attempt = subject.attempt
    if subject.run is not None:
        yield from _run_head(subject, subject.run)
    else:
        yield from _end_head(attempt)
    yield _bead_line(attempt.bead_id, subject.beads)
    yield Para("figures", tuple(_figures(subject)))
    yield from _spent(attempt.sums)
    yield Para("times", tuple(_times(subject)))
    if subject.trouble:
        yield Para("trouble", (("! ", "error bold"), (clean_line(subject.trouble, 600), "error")))
    yield from _reading(subject)
    yield from _result(attempt, subject.now)
    yield from _evidence(subject)
    yield from _commits(subject)
    yield from _changed(subject.diff)
    if subject.run is not None:
        yield from _facts(subject.run, subject.now)
    yield from _siblings(subject)


def _run_head(subject: AttemptSubject, run: Run) -> Iterator[Para]:
    sign = RUN_SIGNS[run.verdict]
    words = {"alive": "running", "silent": "running, but silent", "dead": "not running: its worker is dead"}
    spans: list[Span] = [(f"{sign.glyph} {words[run.verdict]}", sign.ink)]
    if run.started_at is not None and run.live:
        spans.append((f"  {format_span((subject.now - run.started_at) / NS)}", "text"))
    if run.phase and run.live:
        spans.append((f"  {clean_line(run.phase, 60)}", "running"))
    yield Para("head", tuple(spans))
    if run.why:
        yield Para("why", ((clean_line(run.why, 400), "text" if run.verdict == "alive" else "error"),))
    if run.live and (run.last_tool or run.message):
        yield Para("doing", (("now  ", "muted"), (clean_line(run.last_tool or run.message, 400), "text")))


def _end_head(attempt: Attempt) -> Iterator[Para]:
    look = look_of(attempt)
    spans: list[Span] = [(f"{look.glyph} {look.word}", f"{look.ink.removesuffix(' bold')} bold")]
    status = clean_line(attempt.status, 80)
    if status and status != look.word:
        spans.append((f"  {status}", "muted"))
    yield Para("head", tuple(spans))


def _bead_line(bead_id: str, beads: Mapping[str, Bead] | None) -> Para:
    title, ink = title_of(bead_id, beads)
    shown = clean_line(bead_id, 60)
    tail: tuple[Span, ...] = ((f"  {shown}", "muted"),) if title != shown else ()
    known = bead_id in (beads or {})
    lead: tuple[Span, ...] = (("↳ ", "running"),) if known else ()
    if bead_id and not known:
        tail = (("  not in the tracker", "attention"),)
    return Para(f"bead:{bead_id}", (*lead, (title, f"{ink} bold"), *tail), hang=len(lead) * 2, opens=known)


def _figures(subject: AttemptSubject) -> Iterator[Span]:
    attempt, run = subject.attempt, subject.run
    harness = attempt.harness or (run.harness if run else "")
    model = attempt.model or (run.model if run else "")
    by = " ".join(clean_line(part, 60) for part in (harness, model) if part)
    yield by or "harness and model unknown", "text"
    if attempt.provider and attempt.provider not in (harness, model):
        yield f" at {clean_line(attempt.provider, 60)}", "muted"
    if attempt.duration_ms is not None:
        yield f" · {format_span(attempt.duration_ms / 1000)}", "text"
    total = attempt.sums.tokens if attempt.sums.tokens is not None else run.tokens if run else None
    if total is not None:
        yield f" · {figures.tokens(total)} tokens", "text"
    parts = [
        f"{figures.tokens(count)} {word}"
        for count, word in (
            (attempt.tokens.input, "in"),
            (attempt.tokens.cached, "cached"),
            (attempt.tokens.output, "out"),
        )
        if count is not None
    ]
    # of the work; reviews, whose tokens are in the sum, are recorded without parts
    if parts and total == attempt.tokens.total:
        yield f" ({', '.join(parts)})", "muted"


def _spent(sums: Sums) -> Iterator[Para]:
    """Its total cost, as in the list, and the parts of it; empty if nothing was recorded."""
    cost, parts = format_sum(sums), format_parts(sums)
    known = cost != figures.UNKNOWN
    if not known and not parts:
        return
    spans: list[Span] = [("cost ", "muted"), (cost, "text bold" if known else "muted")]
    spans.append((f"  {parts or 'work only'}", "muted"))
    if not sums.complete and known:
        spans.append(("  ≥: the cost of a call is unknown", "muted"))
    yield Para("spent", tuple(spans), hang=5)


def _times(subject: AttemptSubject) -> Iterator[Span]:
    attempt, run = subject.attempt, subject.run
    started = attempt.started_at or (run.started_at if run else None)
    shown = clean_line(attempt.attempt_id, 80)
    none = "no attempt yet" if subject.running else "no attempt was made"
    yield f"attempt {shown}" if shown else none, "muted"
    if started is not None:
        yield f" · started {figures.moment(started, subject.now)}", "muted"
    if attempt.finished_at is not None:
        yield f" · ended {figures.moment(attempt.finished_at, subject.now)}", "muted"


def _reading(subject: AttemptSubject) -> Iterator[Para]:
    reading = subject.reading
    # while it runs there is nothing to assess
    if reading is None or (subject.running and not subject.attempt.finished):
        return
    yield section("assessment")
    if reading.interpretation is not None:
        free = reading.interpretation == "resolvable"
        ink, meaning = ("success", "can be retried") if free else ("attention bold", "a person must decide")
        yield Para("reading", ((reading.interpretation, ink), (f"  {meaning}", "muted")))
    if reading.follow_up:
        yield Para("follow-up", (("next  ", "muted"), (clean_line(reading.follow_up, 400), "text")), hang=6)


def _result(attempt: Attempt, now: int) -> Iterator[Para]:
    detail, error = clean_block(attempt.detail, 20_000).strip(), clean_block(attempt.error, 20_000).strip()
    proof = clean_line(attempt.verdict.why, 300).removeprefix(f"{attempt.status}: ")
    rows = [("known by", proof, "text")] if proof and proof != attempt.status else []
    if detail and detail != attempt.status:
        rows.append(("detail", detail, "text"))
    if error and error != detail:
        rows.append(("error", error, "error"))
    if attempt.failure_mode and attempt.failure_mode != "unknown":
        rows.append(("failure", clean_line(attempt.failure_mode, 120), "text"))
    if attempt.exit_code:
        rows.append(("exit code", str(attempt.exit_code), "text"))
    if attempt.outcome and attempt.outcome != attempt.status:
        rows.append(("worker reported", clean_line(attempt.outcome, 120), "muted"))
    if attempt.retry_after is not None:
        rows.append(("not before", figures.moment(attempt.retry_after, now), "waiting"))
    if attempt.sources:
        rows.append(("sources", clean_line(", ".join(attempt.sources), 200), "muted"))
    if rows:
        yield section("result")
    for name, value, ink in rows:
        yield from _field(name, value, ink)


def _field(name: str, value: str, ink: str) -> Iterator[Para]:
    """A name and a value, possibly of several lines."""
    lead = f"{name:<15} "
    for number, line in enumerate(value.split("\n")[:MAX_LINES]):
        spans = ((lead if not number else " " * len(lead), "muted"), (line, ink))
        yield Para(f"field {name} {number}", spans, hang=len(lead))


def _evidence(subject: AttemptSubject) -> Iterator[Para]:
    """The folder's contents; until it is read, what the snapshot knows of them."""
    attempt, evidence = subject.attempt, subject.evidence
    if evidence is None and attempt.bundle is not None and not subject.trouble:
        yield Para("reading evidence", (("reading its evidence …", "muted"),))
    if evidence is not None and evidence.missing:
        yield section("evidence")
        yield Para("missing", ((clean_line(evidence.missing, 400), "attention"),))
        yield Para("missing 2", (("Shown here: what the tracker and the metrics record.", "muted"),))
    yield from _ratchets(attempt.ratchets)
    yield from _checks(evidence.checks if evidence is not None else ())
    yield from _review(attempt.review, evidence)
    yield from _captioned("why nothing changed", (evidence and evidence.rationale) or _rationale(attempt))
    if evidence is not None:
        yield from _captioned("told in its bead", evidence.told)
        yield from _captioned("decisions", evidence.decisions)
        for number, problem in enumerate(evidence.problems):
            said = clean_line(problem, 300)
            yield Para(f"problem {number}", (("! ", "error bold"), (said, "error")), hang=2)


def _review(review: Review | None, evidence: AttemptEvidence | None) -> Iterator[Para]:
    """The verdict and its reasons; the reviewer's own words if no verdict could be read."""
    if review is not None:
        yield section("review")
        ink = _verdict_ink(review.verdict)
        yield Para("verdict", ((clean_line(review.verdict, 60) or "no verdict", ink),))
        yield from _text("rationale", clean_block(review.rationale, 40_000))
    elif evidence is not None:
        yield from _captioned("review", evidence.review)


def _rationale(attempt: Attempt) -> str:
    return clean_block(attempt.no_changes_rationale, 40_000)


def _captioned(caption: str, text: str) -> Iterator[Para]:
    if text.strip():
        yield section(caption)
        yield from _text(caption, text)


def _text(key: str, text: str) -> Iterator[Para]:
    if not text.strip():
        return
    lines = text.strip("\n").split("\n")
    yield from block(key, "\n".join(lines[:MAX_LINES]))
    if len(lines) > MAX_LINES:
        yield Para(f"{key} more", ((f"… {counted(len(lines) - MAX_LINES, 'more line')}, see raw", "attention"),))


def _verdict_ink(verdict: str) -> str:
    found = {"APPROVE": "success bold", "REQUEST_CHANGES": "attention bold", "BLOCK": "error bold"}
    return found.get(verdict.upper(), "text bold")


def _ratchets(ratchets: Sequence[Ratchet]) -> Iterator[Para]:
    """Measured values, each with its threshold."""
    if not ratchets:
        return
    worse = sum(not ratchet.passed for ratchet in ratchets)
    yield section(f"ratchets {len(ratchets)}", f"{worse} worse" if worse else "", key="ratchets")
    for number, ratchet in enumerate(ratchets):
        glyph, ink = figures.CHECK_SIGNS["passed" if ratchet.passed else "failed"]
        yield Para(f"ratchet {number}", ((f"{glyph} ", ink), (ratchet.describe(), "text")), hang=2)


def _checks(checks: Sequence[AttemptCheck]) -> Iterator[Para]:
    if not checks:
        return
    failed = sum(check.outcome == "failed" for check in checks)
    yield section(f"checks {len(checks)}", f"{failed} failed" if failed else "", key="checks")
    for number, check in enumerate(sorted(checks, key=lambda check: check.outcome)):
        glyph, ink = figures.CHECK_SIGNS[check.outcome]
        optional = " (optional)" if check.required is False else ""
        spans: list[Span] = [(f"{glyph} ", ink), (f"{check.name}{optional}", "text")]
        yield Para(f"check {number}", tuple(spans), ((check.status or "no verdict", ink),), hang=2)
        if check.message:
            said = "muted" if check.outcome == "passed" else "text"
            yield Para(f"check {number} said", (("  ", "text"), (check.message, said)), hang=2)


def _commits(subject: AttemptSubject) -> Iterator[Para]:
    attempt = subject.attempt
    rows = [
        ("base", attempt.base_rev, "text"),
        ("result", attempt.result_rev, "text"),
        ("landed as", attempt.landed_rev if attempt.landed_rev != attempt.result_rev else "", "success"),
        ("kept at", attempt.kept_at, "attention"),
    ]
    rows = [(name, clean_line(value, 200), ink) for name, value, ink in rows if value]
    if not rows:
        return
    yield section("commits")
    for name, value, ink in rows:
        # a full revision is shortened as git does; a shortened ref would not resolve
        shown = value[:12] if len(value) == 40 and value.isalnum() else value
        yield Para(f"commit {name}", ((f"{name:<16}", "muted"), (shown, ink)), hang=16)


def _changed(diff: DiffFacts | None) -> Iterator[Para]:
    if diff is None:
        return
    files, total = diff.files, ""
    if files:
        total = f"{counted(len(files), 'file')} +{diff.added:,} −{diff.removed:,}"
    yield section("changed", total, key="changed")
    for number, (sentence, ink) in enumerate(diff.before):
        yield Para(f"diff said {number}", ((sentence, ink),))
    for number, file in enumerate(files[:MAX_FILES]):
        verb: tuple[Span, ...] = ((f"  {file.verb}", "waiting"),) if file.verb else ()
        right = counts_of(file.added, file.removed) if file.verb != "binary" else ()
        yield Para(f"diff:{number}", ((file.path, "text"), *verb), right, opens=True, hang=2)
    if len(files) > MAX_FILES:
        yield Para("diff more", ((f"… {counted(len(files) - MAX_FILES, 'more file')}, see diff", "muted"),))


def _facts(run: Run, now: int) -> Iterator[Para]:
    """Every fact about the run, file by file."""
    if not run.facts:
        return
    yield section("evidence that it is running" if run.live else "last evidence of its worker", key="facts")
    sources = dict.fromkeys(fact.source for fact in run.facts)
    for source in sources:
        said = [fact for fact in run.facts if fact.source == source]
        written = max((fact.at for fact in said if fact.at is not None), default=None)
        age = f"  {format_age(max(0.0, (now - written) / NS))} old" if written is not None else ""
        yield Para(f"source {source}", ((source, "edge bold"), (age, "muted")))
        for number, fact in enumerate(said):
            yield Para(f"fact {source} {number}", tuple(_fact(fact)), hang=14)


def _fact(fact: Fact) -> Line:
    return [(f"  {cut(clean_line(fact.name, 40), 11):<12}", "muted"), (clean_line(fact.value, 300), "text")]


def _siblings(subject: AttemptSubject) -> Iterator[Para]:
    others = [attempt for attempt in subject.siblings if attempt.attempt_id != subject.attempt.attempt_id]
    if not others:
        return
    yield section(f"other attempts on this bead {len(others)}", key="siblings")
    for attempt in others[:MAX_SIBLINGS]:
        look = look_of(attempt)
        model = clean_line(attempt.model or attempt.harness, 24)
        left = ((f"{look.glyph} {cut(look.word, 20):<11} ", look.ink), (model, "text"))
        when = figures.day_or_time(attempt.finished_at or attempt.started_at, subject.now)
        cost = format_sum(attempt.sums)
        right = ((f"{figures.short_span(attempt.duration_ms):>4} {cost:>7} {when:>7}", "muted"),)
        yield Para(f"attempt:{attempt.attempt_id}", left, right, opens=True)
    if len(others) > MAX_SIBLINGS:
        yield Para("siblings more", ((f"… {len(others) - MAX_SIBLINGS:,} older", "muted"),))


class SubjectLine(SpanLine):
    """The attempt in one line, shown when its row is not in view."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._subject: AttemptSubject | None = None

    def show(self, subject: AttemptSubject | None) -> None:
        """Show another attempt, or a newer state of it."""
        self._subject = subject
        self.refresh()

    def spans(self, width: int) -> Line:
        """The attempt's row as the list would draw it at this width."""
        subject = self._subject
        if subject is None:
            return ()
        board = Board(beads=subject.beads, now=subject.now)
        room = width - 2
        if subject.run is not None:
            return [(" ", "text"), *paint_run(RunView(subject.run), board, room)]
        return [(" ", "text"), *paint_attempt(subject.attempt, board, room)]


def short_name(attempt: Attempt) -> str:
    """An attempt's name in a caption: when it started, and the end of its id."""
    return short_id(clean_line(attempt.attempt_id, 80), 28)


class ComparisonFacts(Struct, frozen=True):
    """A comparison with the files of both attempts, as far as they are shown."""

    comparison: AttemptComparison
    earlier: tuple[FileDiff, ...]
    later: tuple[FileDiff, ...]
    between: DiffFacts
    now: int = 0


class ComparisonPane(DiffPane):
    """The comparison of an attempt with another one on its bead; below the facts it is a diff."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._facts: ComparisonFacts | None = None
        self._note: Sequence[Para] = ()

    def show_comparison(self, facts: ComparisonFacts | None, note: Sequence[Para] = ()) -> None:
        """Show a comparison from the top, or the text in its place."""
        self._facts, self._note = facts, note
        self.show_diff(facts.between if facts is not None else DiffFacts())

    def build(self, width: int) -> Sequence[Para]:
        """The facts side by side, then the difference."""
        if self._facts is None:
            return self._note
        return [*_beside(self._facts, width), section("from the earlier result to the later"), *super().build(width)]


_ROWS: tuple[tuple[str, Callable[[Attempt, int], str]], ...] = (
    ("outcome", lambda attempt, now: f"{look_of(attempt).glyph} {look_of(attempt).word}"),
    ("ending", lambda attempt, now: attempt.status or "no status"),
    ("why", lambda attempt, now: _why(attempt)),
    ("ended", lambda attempt, now: figures.day_or_time(attempt.finished_at or attempt.started_at, now).strip()),
    ("model", lambda attempt, now: f"{attempt.harness} {attempt.model}".strip() or "unknown"),
    ("took", lambda attempt, now: format_span(attempt.duration_ms / 1000) if attempt.duration_ms else "unknown"),
    ("tokens", lambda attempt, now: figures.tokens(attempt.sums.tokens)),
    ("cost", lambda attempt, now: format_whole(attempt.sums)),
    ("review", lambda attempt, now: attempt.review.verdict if attempt.review is not None else "none"),
)


def _why(attempt: Attempt) -> str:
    """The detail that was recorded, else what decided the outcome; a detail may only repeat the status above it."""
    detail = attempt.detail if attempt.detail != attempt.status else ""
    return detail or attempt.verdict.why


def _beside(facts: ComparisonFacts, width: int) -> Iterator[Para]:
    sides = (facts.comparison.earlier, facts.comparison.later)
    half = max(8, (width - NAME_CELLS) // 2)
    names = [clean_line(side.attempt.attempt_id, 60) for side in sides]
    yield from _row("heads", "attempt", names, half, ("text bold", "text bold"))
    for name, of in _ROWS:
        values = [clean_line(of(side.attempt, facts.now), 400) for side in sides]
        differs = values[0] != values[1]
        inks = (look_of(sides[0].attempt).ink, look_of(sides[1].attempt).ink) if name == "outcome" else None
        yield from _row(name, name, values, half, inks or (("text", "text bold") if differs else ("muted", "muted")))
    yield from _compared_checks(facts, half)
    yield from _files(facts, half)


def _row(key: str, name: str, values: Sequence[str], half: int, inks: Sequence[str]) -> Iterator[Para]:
    """Both values in full side by side, on as many lines as the longer one needs."""
    sides = (wrap_spans(((value, ink),), half - 2) for value, ink in zip(values, inks, strict=True))
    for number, (one, other) in enumerate(zip_longest(*sides, fillvalue=())):
        lead = (column("" if number else name, NAME_CELLS), "muted")
        blank = (" " * (half - width_of(one)), "text")
        yield Para(f"beside {key}" + (f"/{number}" if number else ""), (lead, *one, blank, *other), wrap="no")


def _compared_checks(facts: ComparisonFacts, half: int) -> Iterator[Para]:
    """Checks with different results; those with equal results are counted."""
    before, after = (
        {check.name: check for check in side.checks} for side in (facts.comparison.earlier, facts.comparison.later)
    )
    other = [name for name in {**before, **after} if _status(before, name) != _status(after, name)]
    if before or after:
        alike = len({**before, **after}) - len(other)
        yield section("checks", f"{alike} alike", key="checks beside")
    for name in other:
        inks = [_check_ink(checks.get(name)) for checks in (before, after)]
        yield from _row(f"check {name}", name, (_status(before, name), _status(after, name)), half, inks)


def _status(checks: dict[str, AttemptCheck], name: str) -> str:
    return checks[name].status if name in checks else "not run"


def _check_ink(check: AttemptCheck | None) -> str:
    return "muted" if check is None else figures.CHECK_SIGNS[check.outcome][1].partition(" ")[0]


def _files(facts: ComparisonFacts, half: int) -> Iterator[Para]:
    """Every file that either attempt changed, with both changes."""
    before, after = ({file.path: file for file in files} for files in (facts.earlier, facts.later))
    paths = list({**before, **after})
    if not paths:
        return
    yield section(f"files {len(paths)}", key="files beside")
    for path in paths[:MAX_COMPARED]:
        counts = [_counts(files.get(path)) for files in (before, after)]
        yield Para(f"file {path}", ((path, "text"),), wrap="no")
        yield from _row(f"counts {path}", "", counts, half, ("muted", "muted" if counts[0] == counts[1] else "text"))
    if len(paths) > MAX_COMPARED:
        yield Para("files more", ((f"… {counted(len(paths) - MAX_COMPARED, 'more file')}", "muted"),))


def _counts(file: FileDiff | None) -> str:
    return "not touched" if file is None else f"{file.verb or 'changed'} +{file.added:,} −{file.removed:,}"
