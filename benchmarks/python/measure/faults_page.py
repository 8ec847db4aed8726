"""The tables of programs in docs/faults.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from measure.pages import Part
from measure.programs import ROOT

if TYPE_CHECKING:
    from measure.programs import Program

PAGE = Part(
    ROOT / "docs" / "faults.md",
    "<!-- table begins: diagnosis.py --write-docs -->",
    "<!-- table ends -->",
)


def tables_of(programs: list[Program]) -> str:
    faults = [p for p in programs if p.kind]
    healthy = [p for p in programs if not p.kind]
    lines = [
        f"{len(faults)} programs with {len({p.kind for p in faults})} kinds of faults:",
        "",
        "| kind | program | fault | place | silent | exact |",
        "|---|---|---|---|---|---|",
    ]
    for p in sorted(faults, key=lambda p: (p.kind, p.name)):
        file = p.path.relative_to(ROOT)
        place = ", ".join(f"`{place}`" for place in p.place)
        marks = ["yes" if mark else "" for mark in (p.silent, p.exact)]
        lines.append(
            f"| `{p.kind}` | [{p.path.stem}](../{file}) | {p.title} | {place}"
            f" | {marks[0]} | {marks[1]} |"
        )
    lines += [
        "",
        f"{len(healthy)} healthy trainings:",
        "",
        "| training | what it is | what looks odd |",
        "|---|---|---|",
    ]
    for p in healthy:
        file = p.path.relative_to(ROOT)
        lines.append(f"| [{p.path.stem}](../{file}) | {p.title} | {p.odd} |")
    return "\n".join(lines)
