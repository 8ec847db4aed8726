"""The tables, which read well in a terminal and are Markdown."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from measure.bars import MEASURES, told
from measure.outcomes import DEFAULT, LOUD_ORIGINALS, ORIGINAL, Outcome, kind_of
from measure.scores import NAN_KINDS, Score, Steps, score

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REACHED = {True: "yes", False: "no", None: ""}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )


def judged_by(outcomes: Iterable[Outcome], rules: str) -> list[Outcome]:
    return [o for o in outcomes if o.task.rules == rules and not o.error]


def without_loud(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return [o.without(LOUD_ORIGINALS) for o in outcomes]


def measures_table(outcomes: Sequence[Outcome]) -> str:
    """Each measure with its bar. Where both judged, the original's figures stand beside."""
    ours, original = judged_by(outcomes, DEFAULT), judged_by(outcomes, ORIGINAL)
    header = ["of all", "bar"]
    scores: list[Score] = []
    if ours:
        header += ["traindbg", "reached"]
        scores.append(score(ours))
    if original:
        header += ["the original's rules", "its less loud rules"]
        scores += [score(original), score(without_loud(original))]
    rows = []
    for measure in MEASURES:
        values = [told(measure.of(s)) for s in scores]
        if set(values) == {"-"}:
            continue
        if ours:
            values.insert(1, REACHED[measure.is_reached(scores[0])])
        rows.append([measure.text, measure.bar.text if measure.bar else "", *values])
    return table(header, rows)


def kinds_table(outcomes: Sequence[Outcome]) -> str:
    """A row for each kind of fault; empty where there is none."""
    ours, original = judged_by(outcomes, DEFAULT), judged_by(outcomes, ORIGINAL)
    shown = ours or original
    kinds = sorted({o.task.program.kind for o in shown if o.task.program.kind})
    if not kinds:
        return ""
    header = ["kind", "programs", "detected", "quiet", "pairs", "first", "first 3", "place"]
    header += ["steps"]
    is_beside = bool(ours and original)
    if is_beside:
        header += ["original: detected", "quiet", "any pairs", "first"]
    rows = []
    for kind in kinds:
        s = score(o for o in shown if o.task.program.kind == kind)
        counts = [s.detected, s.quiet, s.pairs, s.first, s.first_three, s.place, s.steps]
        if is_beside:
            other = score(o for o in original if o.task.program.kind == kind)
            counts += [other.detected, other.quiet, other.pairs_any, other.first]
        rows.append([kind, str(s.programs), *map(str, counts)])
    return table(header, rows)


def steps_table(outcomes: Sequence[Outcome]) -> str:
    """How soon traindbg's first right finding came, by class of fault; empty without any."""
    s = score(judged_by(outcomes, DEFAULT))
    classes: list[tuple[str, Steps, int]] = [
        ("early faults", s.steps, 10),
        ("exact kinds among them", s.exact_steps, 3),
        ("kinds about NaN, from the start", s.nan_steps, 1),
        ("kinds about NaN, from the first loss that is not finite", s.nan_steps_after, 1),
    ]
    rows = [
        [
            text,
            str(len(steps.values)),
            str(steps),
            f"{most}: {told(steps.within(most))}",
            str(steps.latest),
        ]
        for text, steps, most in classes
        if steps.values
    ]
    header = ["steps to the first right finding", "found", "median", "within", "latest"]
    return table(header, rows) if rows else ""


def late_table(outcomes: Sequence[Outcome]) -> str:
    """Early faults of exact kinds that are found later than the bar; empty where there is none."""
    late: dict[str, list[int]] = {}
    for o in judged_by(outcomes, DEFAULT):
        program = o.task.program
        is_counted = o.task.is_faulty and program.exact and program.early
        if is_counted and o.steps is not None and o.steps > (1 if program.kind in NAN_KINDS else 3):
            late.setdefault(program.kind, []).append(o.steps)
    rows = [
        [kind, str(len(steps)), ", ".join(map(str, sorted(steps)))]
        for kind, steps in sorted(late.items())
    ]
    return table(["exact kind", "found later", "after steps"], rows) if rows else ""


def false_alarms_table(outcomes: Sequence[Outcome]) -> str:
    """What fired on healthy runs; empty where nothing did."""
    fired: dict[tuple[str, str, str], set[int]] = {}
    for o in judged_by(outcomes, DEFAULT):
        for f in [] if o.task.is_faulty else o.alarms:
            key = (o.task.program.name, kind_of(f), f["severity"])
            fired.setdefault(key, set()).add(o.task.seed)
    rows = [[*key, ", ".join(map(str, sorted(seeds)))] for key, seeds in sorted(fired.items())]
    return table(["training", "kind", "severity", "seeds"], rows) if rows else ""


def not_first_table(outcomes: Sequence[Outcome]) -> str:
    """The faulty programs whose fault is not what is named first; empty where there is none."""
    wrong: dict[str, list[Outcome]] = {}
    for o in judged_by(outcomes, DEFAULT):
        if o.task.is_faulty and not o.right_kinds & set(o.kinds[:1]):
            wrong.setdefault(o.task.program.path.stem, []).append(o)
    rows = [
        [
            name,
            group[0].task.program.kind,
            ", ".join(str(o.task.seed) for o in group),
            "; or ".join(dict.fromkeys(", ".join(o.kinds) or "nothing" for o in group)),
        ]
        for name, group in sorted(wrong.items())
    ]
    return table(["training", "fault", "seeds", "what was named"], rows) if rows else ""


def original_alarms(outcomes: Sequence[Outcome]) -> str:
    """Which of the original's rules fire on healthy runs, as words."""
    healthy = [o for o in judged_by(outcomes, ORIGINAL) if not o.task.is_faulty]
    fired = Counter(rule for o in healthy for rule in {f["rule"] for f in o.alarms})
    words = ", ".join(f"{rule} {times}" for rule, times in fired.most_common())
    return f"Of {len(healthy)} healthy runs, rules of the original fire on: {words or 'none'}."


def broken_table(outcomes: Sequence[Outcome]) -> str:
    """What could not be measured, and why; empty where all could."""
    rows = [
        [o.task.program.name, o.task.form, str(o.task.seed), o.task.rules, o.error]
        for o in outcomes
        if o.error
    ]
    return table(["training", "form", "seed", "rules", "why"], rows) if rows else ""


def findings_of(o: Outcome) -> str:
    """All that was said of one training."""
    by = "" if o.task.rules == DEFAULT else f", by the {o.task.rules} rules"
    head = f"{o.task.program.name} {o.task.form}, seed {o.task.seed}{by}, {o.seconds:.1f} s"
    lines = [f"{head}: {o.said}"]
    lines += [f"  cause {cause['name']} ({cause['confidence']:.0%})" for cause in o.causes]
    for f in o.findings:
        place = f.get("layer") or f.get("tensor") or "no place"
        lines.append(f"  {f['severity']} {kind_of(f)}, step {f['step']}, {place}: {f['message']}")
    return "\n".join(lines)


def print_report(outcomes: Sequence[Outcome], *, verbose: bool) -> None:
    parts = [
        ("", kinds_table(outcomes)),
        ("", measures_table(outcomes)),
        ("", steps_table(outcomes)),
        ("Exact kinds that take longer:", late_table(outcomes)),
        ("On healthy trainings fired:", false_alarms_table(outcomes)),
        ("Not named first:", not_first_table(outcomes)),
        ("", original_alarms(outcomes) if judged_by(outcomes, ORIGINAL) else ""),
        ("", "\n".join(findings_of(o) for o in outcomes) if verbose else ""),
        ("Not measured:", broken_table(outcomes)),
    ]
    for heading, part in parts:
        if part:
            print(*([heading, ""] if heading else []), part, sep="\n", end="\n\n")
