"""Draws the gallery of faults: docs/gallery.md and its pictures in docs/images/faults.

Of each kind of fault one program of examples/faults runs with its fault and without (--healthy), is
recorded and judged as diagnosis.py does, and its loss is drawn: faulty, healthy, and where the
first right finding fired. It is the first by name whose first right finding is of that kind and no
other one that would be accepted, of the first three; else the first.

    python benchmarks/python/gallery_plots.py                        # all kinds; minutes
    python benchmarks/python/gallery_plots.py --only redundant_softmax

The pictures are SVG with the colours of the page that shows them, dark or light.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from measure.outcomes import Outcome, Task
from measure.pages import Part
from measure.programs import ROOT, Program, gallery
from measure.recording import directory_of, import_once, run_all

if TYPE_CHECKING:
    from collections.abc import Sequence

IMAGES = ROOT / "docs" / "images" / "faults"
PAGE = Part(
    ROOT / "docs" / "gallery.md",
    "<!-- pictures begin: gallery_plots.py -->",
    "<!-- pictures end -->",
)

WIDTH, HEIGHT = 640, 232
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 26, 34
MOST_POINTS = 160
MOST_EVALUATIONS = 30
MOST_CANDIDATES = 3  # programs of a kind
STYLE = """
  text { font: 11px system-ui, sans-serif; fill: #57606a; }
  .axis { stroke: #8c959f; stroke-width: 1; }
  .grid { stroke: #8c959f; stroke-opacity: 0.25; }
  .faulty { stroke: #cf222e; } .healthy { stroke: #1a7f37; }
  polyline { fill: none; stroke-width: 1.6; }
  .evaluation { stroke-dasharray: 2 3; stroke-width: 2.2; }
  .mark { stroke: #9a6700; stroke-dasharray: 4 3; }
  .word { fill: #9a6700; stroke: #ffffff; stroke-width: 4px; paint-order: stroke; }
  .of-faulty { fill: #cf222e; } .of-healthy { fill: #1a7f37; }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1; }
    .faulty { stroke: #f85149; } .healthy { stroke: #3fb950; }
    .of-faulty { fill: #f85149; } .of-healthy { fill: #3fb950; }
    .mark { stroke: #d29922; } .word { fill: #d29922; stroke: #0d1117; }
  }
"""

Point = tuple[float, float]  # step, loss


def loss_of(run_dir: Path, mode: str = "train") -> list[Point]:
    """The loss by step: what backward() was called on, or a loss function's value.

    That of evaluations by the share of the training that is over, as far as their number tells.
    """
    import traindbg as td

    run = td.Run(run_dir)
    names = [name for name in run.names() if name == "loss" or name.startswith("loss/")]
    for name in sorted(names, key=lambda name: name != "loss"):
        steps, values = run.scalars(name, mode)
        if len(steps) > 0:
            return [(float(s), float(v)) for s, v in zip(steps, values, strict=True)]
    return []


def thinned(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most so many of them: the mean of each stretch, so that single losses hide nothing."""
    finite = [(step, value) for step, value in points if math.isfinite(value)]
    size = max(1, math.ceil(len(finite) / most))
    parts = [finite[i : i + size] for i in range(0, len(finite), size)]
    return [(part[0][0], sum(value for _, value in part) / len(part)) for part in parts]


def curves_of(run_dir: Path) -> list[list[Point]]:
    """The training's loss, and that of its evaluations at the steps of the training, if any."""
    train, evaluations = loss_of(run_dir), loss_of(run_dir, "eval")
    last = train[-1][0] if train else 0
    count = len(evaluations)
    placed = [((i + 1) / count * last, value) for i, (_, value) in enumerate(evaluations)]
    return [thinned(train), thinned(placed, MOST_EVALUATIONS)]


class Scale:
    """From steps and losses to places. Logarithmic where the losses span more than two decades."""

    def __init__(self, curves: Sequence[Sequence[Point]]) -> None:
        steps = [step for curve in curves for step, _ in curve] or [0.0]
        values = [value for curve in curves for _, value in curve] or [0.0]
        self.last = max(*steps, 1.0)
        low, high = min(values), max(values)
        self.is_log = low > 0 and high > 100 * low
        if self.is_log:
            self.low, self.high = math.log10(low), math.log10(high)
        else:
            self.low, self.high = (min(low, 0.0) if low > -1e-12 else low), high
        if self.high - self.low < 1e-12:
            self.high = self.low + 1

    def x(self, step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.last

    def y(self, value: float) -> float:
        if self.is_log:
            value = math.log10(max(value, 10**self.low))
        share = (value - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def ticks(self) -> list[float]:
        if self.is_log:
            first, last = math.ceil(self.low), math.floor(self.high)
            step = max(1, (last - first) // 4)
            return [10.0**power for power in range(first, last + 1, step)]
        rough = (self.high - self.low) / 4
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= rough)
        first = math.ceil(self.low / step)
        return [step * number for number in range(first, int(self.high / step) + 1)]


def picture(
    faulty: Sequence[list[Point]], healthy: Sequence[list[Point]], mark: float | None
) -> str:
    """An SVG of the losses of `curves_of`; `mark`: the step at which the finding fired."""
    curves = [
        (name + (" evaluation" if index else ""), curve)
        for name, several in (("faulty", faulty), ("healthy", healthy))
        for index, curve in enumerate(several)
        if len(curve) > 1
    ]
    scale = Scale([curve for _, curve in curves])
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>Loss with the fault and without</title><style>{STYLE}</style>",
    ]
    for tick in scale.ticks():
        y = scale.y(tick)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:.4g}</text>')
    out.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    for share in (0, 0.25, 0.5, 0.75, 1):
        step = share * scale.last
        anchor = "end" if share == 1 else "middle"
        out.append(
            f'<text x="{scale.x(step):.1f}" y="{bottom + 16}" text-anchor="{anchor}">'
            f"{step:.0f}</text>"
        )
    out.append(
        f'<text x="{(LEFT + right) / 2:.0f}" y="{HEIGHT - 4}" text-anchor="middle">step</text>'
    )
    for name, curve in curves:
        places = " ".join(f"{scale.x(step):.1f},{scale.y(value):.1f}" for step, value in curve)
        out.append(f'<polyline class="{name}" points="{places}"/>')
    if mark is not None:
        x = scale.x(min(mark, scale.last))
        anchor, shift = ("end", -5) if x > WIDTH / 2 else ("start", 5)
        out.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
        out.append(
            f'<text class="word" x="{x + shift:.1f}" y="{bottom - 6}" text-anchor="{anchor}">'
            f"found at step {mark:.0f}</text>"
        )
    words = ", log scale" if scale.is_log else ""
    words += "; dots: evaluation" if any("evaluation" in name for name, _ in curves) else ""
    out.append(
        f'<text x="{right}" y="{TOP - 12}" text-anchor="end"><tspan class="of-faulty">'
        f'with the fault</tspan> · <tspan class="of-healthy">without</tspan> · '
        f"loss{words}</text></svg>"
    )
    return "\n".join(out) + "\n"


def candidates(programs: list[Program]) -> dict[str, list[Program]]:
    """Of each kind the first programs by name."""
    kinds: dict[str, list[Program]] = {}
    for program in sorted(programs, key=lambda program: program.name):
        if program.kind:
            kinds.setdefault(program.kind, []).append(program)
    return {kind: some[:MOST_CANDIDATES] for kind, some in kinds.items()}


def is_of_its_kind(outcome: Outcome) -> bool:
    """Whether what was found first of what is right is the kind itself."""
    finding = outcome.right_finding
    return finding is not None and finding["kind"] == outcome.task.program.kind


def shown(
    kinds: dict[str, list[Program]], jobs: int, keep: Path
) -> tuple[dict[str, Outcome], list[Outcome]]:
    """Runs the candidates, with their fault and without, until each kind has what shows it.

    Returns its faulty run by kind, and the runs that failed.
    """
    found: dict[str, Outcome] = {}
    for number in range(MOST_CANDIDATES):
        left = [
            some[number]
            for kind, some in kinds.items()
            if number < len(some) and (kind not in found or not is_of_its_kind(found[kind]))
        ]
        outcomes = run_all([Task(p, True, 0) for p in left], jobs, 60, keep=keep)
        failed = [outcome for outcome in outcomes if outcome.error]
        if failed:
            return found, failed
        for outcome in outcomes:
            kind = outcome.task.program.kind
            if kind not in found or is_of_its_kind(outcome):
                found[kind] = outcome
    twins = [Task(outcome.task.program, False, 0) for outcome in found.values()]
    outcomes = run_all(twins, jobs, 60, keep=keep)
    return found, [outcome for outcome in outcomes if outcome.error]


def section(program: Program, outcome: Outcome) -> str:
    """What the page says of one kind."""
    file = program.path.relative_to(ROOT)
    finding = outcome.right_finding
    lines = [
        f"### {program.kind}",
        "",
        f"![loss with the fault and without](images/faults/{program.kind}.svg)",
        "",
        f"[`{program.path.stem}`](../{file}): {program.title}",
        "",
    ]
    if finding is None:
        lines.append("Not found by the default rules.")
    else:
        rule = finding["rule"]
        fix = finding.get("fix", "")
        lines.append(
            f"> **{finding['severity']}** [`{rule}`](rules/{rule}.md): {finding['message']}"
        )
        if fix:
            lines += [">", f"> *{fix}*"]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="KIND", action="append", default=[], help="these kinds")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="default: 2")
    options = parser.parse_args()
    kinds = candidates(gallery())
    unknown = set(options.only) - set(kinds)
    if unknown:
        print(f"gallery_plots.py: no kind is called {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    if options.only:
        kinds = {kind: some for kind, some in kinds.items() if kind in options.only}
    import_once()
    IMAGES.mkdir(parents=True, exist_ok=True)
    sections = []
    with tempfile.TemporaryDirectory(prefix="traindbg-gallery-") as temporary:
        found, failed = shown(kinds, options.jobs, Path(temporary))
        for outcome in failed:
            print(
                f"gallery_plots.py: {outcome.task.program.name}: {outcome.error}", file=sys.stderr
            )
        if failed:
            return 1
        for kind, faulty in sorted(found.items()):
            program = faulty.task.program
            runs = [
                directory_of(Task(program, is_faulty, 0), Path(temporary)) / "run"
                for is_faulty in (True, False)
            ]
            finding = faulty.right_finding
            drawn = picture(
                curves_of(runs[0]),
                curves_of(runs[1]),
                None if finding is None else float(finding["step"]),
            )
            (IMAGES / f"{kind}.svg").write_text(drawn, encoding="utf-8")
            sections.append(section(program, faulty))
    if not options.only:
        PAGE.write("\n\n".join(sections))
    return 0


if __name__ == "__main__":
    sys.exit(main())
