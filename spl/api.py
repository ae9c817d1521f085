"""The Python API: one class, the same kernel as the command line's."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from spl import environment
from spl.folds.regression import Question
from spl.kernel import actors, compare, define, history, judge, records, run_import, score, suites
from spl.kernel.home import Kernel, open_home
from spl.kernel.suite_import import parse_cases
from spl.records.definitions import Trust
from spl.records.verdicts import AxisName, PairVerdict
from spl.store.log import Selection

if TYPE_CHECKING:
    from spl.contracts.actors import ActorDocument, DefinitionDocument
    from spl.contracts.comparison import CompareDocument, RegressionsDocument
    from spl.contracts.records import Appended, EntryPart, RecordDocument
    from spl.contracts.runs import RunImport
    from spl.contracts.scores import HistoryDocument, ScoreDocument
    from spl.contracts.suites import SuiteDocument
    from spl.contracts.verdicts import VerdictDocument


class Home:
    """A home: the log of one machine's evidence, with its blobs and keys.

    Open one with `Home.open`. Every method makes one call of the kernel and returns the document that the command of
    the same name prints; ids in documents are bytes, and `.hex()` is their text.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    @classmethod
    def open(cls, path: str | Path | None = None) -> Self:
        """Open the home at a path, made where there is none.

        Args:
            path: The directory; `SPL_HOME`, else the user's data directory, when absent.

        Raises:
            SplError: It cannot be made or trusted, or its log or keys cannot be read.
        """
        place = environment.home_path(None if path is None else str(path))
        return cls(open_home(place, create=True, secrets=environment.secrets()))

    def __enter__(self) -> Self:
        """Return the home; it is closed at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the log."""
        self.close()

    def close(self) -> None:
        """Close the log."""
        self._kernel.log.close()

    def append(self, kind: str, body: dict[str, Any], **envelope: Any) -> Appended:  # noqa: ANN401 - as in JSON
        """Append a record of a namespace of your own, such as `acme.note.v1`.

        Args:
            kind: The kind; `core.` is reserved.
            body: Its content: text, integers, booleans, lists and maps; fractions become decimals.
            envelope: `thread`, `refs`, `by` or `at`, as in `spl put`.

        Raises:
            SplError: It is not a record, or refers to what this home does not hold.
        """
        text = json.dumps({"kind": kind, "body": body, **envelope})
        return records.put_record(self._kernel, text.encode(), "record")

    def get(self, text: str) -> RecordDocument:
        """Return one record in full, by its id or a unique prefix of at least 8 digits.

        Raises:
            SplError: No record, or several, begin so.
        """
        return records.show_record(self._kernel, text)

    def scan(
        self, start: int = 0, stop: int | None = None, *, kind: str | None = None
    ) -> Iterator[EntryPart]:
        """Yield entries in log order and bounded memory; the head is pinned when the scan begins.

        Args:
            start: The first position.
            stop: The position behind the last; the head when absent.
            kind: Only this kind.
        """
        return records.scan_entries(self._kernel, Selection(start=start, stop=stop, kind=kind))

    def add_actor(self, name: str, did: str | None = None) -> ActorDocument:
        """Add an actor; adding the same one again changes nothing. Raises SplError."""
        return actors.add_actor(self._kernel, name, did=did)

    def install(
        self, actor: str, behaviour: dict[str, Any], *, expect: str | None = None
    ) -> DefinitionDocument:
        """Install a behaviour in place of the incumbent, by compare-and-set when `expect` names it. Raises SplError."""
        return define.install(self._kernel, actor, _source(behaviour, "reviewed"), expect=expect)

    def propose(self, actor: str, behaviour: dict[str, Any]) -> DefinitionDocument:
        """Record a behaviour as a candidate; nothing is installed. Raises SplError."""
        return define.propose(self._kernel, actor, _source(behaviour, "untrusted"))

    def add_cases(self, suite: str, cases: Sequence[dict[str, Any]]) -> SuiteDocument:
        """Add cases to a suite, made when there is none of that name. Raises SplError."""
        parsed = parse_cases(json.dumps(list(cases)).encode(), "cases")
        suites.create_suite(self._kernel, suite)
        return suites.add_cases(self._kernel, suite, parsed)

    def import_runs(
        self,
        actor: str,
        runs: Iterable[dict[str, Any]],
        *,
        suite: str,
        definition: str,
        source: str = "python",
    ) -> RunImport:
        """Append runs that were executed elsewhere, all or nothing; the same ones again append nothing.

        Args:
            actor: Who did the work.
            runs: In the shape of a line of `spl run import`.
            suite: The suite of their cases.
            definition: What they were made with: an id, a facet, `incumbent` or `latest`.
            source: Where they came from.

        Raises:
            SplError: A run is malformed; its number is named, and nothing was appended.
        """
        lines = (json.dumps(run).encode() for run in runs)
        batch = run_import.Batch(source=source, suite=suite, definition=definition)
        return run_import.import_runs(self._kernel, actor, lines, batch)

    def score(self, suite: str, actor: str, definition: str) -> ScoreDocument:
        """Grade the runs that the log holds, and append one score unless the latest says the same.

        Raises:
            NothingToGradeError: No run matches; nothing was written.
            SplError: A name means nothing, or several things.
        """
        return score.score_suite(self._kernel, suite, actor, definition)

    def history(self, actor: str, suite: str | None = None) -> HistoryDocument:
        """Return whether an actor is getting better, and on which axis. Raises SplError for an unknown name."""
        return history.history(self._kernel, actor, suite)

    def compare(
        self,
        base: str,
        candidate: str,
        *,
        suite: str | None = None,
        actor: str | None = None,
        common: bool = False,
        margin: float | None = None,
    ) -> CompareDocument:
        """Return whether a candidate is better than the base, axis by axis, and how sure that is.

        Args:
            base: A definition (id, facet, prefix, `incumbent`, `latest`) or a score (id, prefix).
            candidate: What is asked about, likewise.
            suite: What both were scored on; needed for definitions.
            actor: Whose definitions `incumbent`, `latest` and a shared facet mean.
            common: Compare on the cases that both sides cover.
            margin: The difference of rates that does not matter; needed for the verdict `equivalent`.

        Raises:
            SplError: A side means nothing, or several things, or has no score.
        """
        question = Question(margin=margin, common=common)
        asked = compare.Asked(suite=suite, actor=actor, question=question)
        return compare.compare(self._kernel, base, candidate, asked)

    def regressions(self, actor: str, suite: str | None = None) -> RegressionsDocument:
        """Return every install against what it succeeded, and the candidates against the incumbent. Raises SplError."""
        return compare.actor_regressions(self._kernel, actor, compare.Asked(suite=suite))

    def judge(
        self,
        winner: str,
        loser: str,
        *,
        features: Sequence[str] = (),
        loser_features: Sequence[str] = (),
        basis: str | None = None,
        axis: AxisName | None = None,
    ) -> VerdictDocument:
        """Record that one run, score or definition is preferred to another, with what differed. Raises SplError."""
        verdict = PairVerdict(
            features=list(features), loser_features=list(loser_features), basis=basis, axis=axis
        )
        return judge.judge(self._kernel, winner, loser, verdict)


def _source(behaviour: dict[str, Any], trust: Trust) -> define.Source:
    import msgspec  # noqa: PLC0415 - only definitions need it

    parsed = define.parse_source(json.dumps(behaviour).encode(), "definition")
    return msgspec.structs.replace(parsed, trust=trust)
