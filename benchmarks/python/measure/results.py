"""The section of benchmarks/RESULTS.md that tells what the whole gallery gave."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from measure import report
from measure.bars import MEASURES, Measure
from measure.outcomes import DEFAULT, LOUD_ORIGINALS, ORIGINAL, as_json
from measure.pages import Part
from measure.programs import ROOT
from measure.recording import ORIGINAL_EVERY, clock
from measure.scores import Count, Steps, score

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from measure.conditions import Conditions
    from measure.outcomes import Outcome

RESULTS = ROOT / "benchmarks" / "RESULTS.md"
WIDTH = 125  # of lines of prose in it


def part_of(path: Path) -> Part:
    return Part(
        path,
        "<!-- gallery begins: diagnosis.py --write -->",
        "<!-- gallery ends -->",
    )


def prose(text: str) -> str:
    return textwrap.fill(
        " ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False
    )


def section(outcomes: Sequence[Outcome], given: Conditions) -> str:
    """Markdown, without a heading."""
    has_original = bool(report.judged_by(outcomes, ORIGINAL))
    late = report.late_table(outcomes)
    false_alarms = report.false_alarms_table(outcomes)
    not_first = report.not_first_table(outcomes)
    broken = report.broken_table(outcomes)
    parts = [
        head(outcomes, given),
        words_about_original() if has_original else "",
        report.measures_table(outcomes),
        prose(
            """A row that begins with `…` details the one before. Steps are those that were taken
            when the finding fired, that one included, of faults that were found."""
        ),
        report.steps_table(outcomes),
        "Of exact kinds that are there from the start, these took longer:" if late else "",
        late,
        report.kinds_table(outcomes),
        "On healthy runs fired:" if false_alarms else "",
        false_alarms,
        "Not named first were:" if not_first else "",
        not_first,
        prose(report.original_alarms(outcomes)) if has_original else "",
        "Not measured, and in none of the counts:" if broken else "",
        broken,
    ]
    return "\n\n".join(part for part in parts if part)


def head(outcomes: Sequence[Outcome], given: Conditions) -> str:
    programs = {o.task.program.name: o.task.program for o in outcomes}.values()
    faulty = [p for p in programs if p.kind]
    commit = f" at commit {given.commit}" if given.commit else ""
    judges = f"{given.rules} default rules"
    if report.judged_by(outcomes, ORIGINAL):
        judges += f", and {given.original_rules} of SageMaker Debugger"
    seeds = "seed " if len(given.seeds) == 1 else "seeds "
    seeds += ", ".join(map(str, given.seeds))
    return prose(
        f"""`{given.command}`, {given.date}, traindbg {given.version}{commit}, judged by {judges}:
        {len(faulty)} faulty programs of {len({p.kind for p in faulty})} kinds, each with its
        healthy twin, and {len(programs) - len(faulty)} healthy trainings that look odd; {seeds};
        {len(outcomes)} trainings in {clock(given.seconds)}, {given.jobs} at a time
        ({given.machine}, Python {given.python}, PyTorch {given.torch})."""
    )


def words_about_original() -> str:
    return prose(
        f"""The original's rules are our implementations of what it documents
        ([compatible rules](../docs/rules/compatible/README.md)), with their defaults. Each
        training is recorded twice, since what one set of rules has captured would be evidence for
        the other: once as the default rules ask for it, and once with what the original's need at
        every {ORIGINAL_EVERY}th step instead of every 500th, as these trainings are short. The
        original's rules name no kinds; one that is called after a kind counts as naming it. Its
        less loud rules are those without {", ".join(sorted(LOUD_ORIGINALS))}: nobody would switch
        these on with their defaults, which are meant to be set for a training."""
    )


def whole(outcomes: Sequence[Outcome], given: Conditions) -> dict[str, Any]:
    """All there is, for --json."""
    by = {rules: report.judged_by(outcomes, rules) for rules in (DEFAULT, ORIGINAL)}
    return {
        "schema_version": 1,
        "conditions": given._asdict(),
        "measures": {
            rules: [measure_of(m, judged) for m in MEASURES]
            for rules, judged in by.items()
            if judged
        },
        "kinds": {
            rules: {
                kind: {
                    m.name: value_of(m.of(score(o for o in judged if o.task.program.kind == kind)))
                    for m in MEASURES
                }
                for kind in sorted({o.task.program.kind for o in judged} - {""})
            }
            for rules, judged in by.items()
            if judged
        },
        "outcomes": [as_json(o) for o in outcomes],
    }


def measure_of(measure: Measure, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    total = score(outcomes)
    return {
        "name": measure.name,
        "text": measure.text,
        "bar": measure.bar.text if measure.bar else None,
        "is_reached": measure.is_reached(total),
        **value_of(measure.of(total)),
    }


def value_of(value: Count | Steps) -> dict[str, Any]:
    if isinstance(value, Count):
        return {"hits": value.hits, "of": value.of}
    return {"median": value.median, "found": len(value.values), "latest": value.latest}
