"""The programs of the gallery (docs/faults.md), and what each says of itself."""

from __future__ import annotations

import ast
import fnmatch
import importlib.util
import sys
from pathlib import Path
from typing import Any, NamedTuple

from measure.errors import MeasureError

ROOT = Path(__file__).resolve().parents[3]
GALLERY = ROOT / "examples"
CONSTANTS = {
    "KIND": str,
    "ACCEPT": tuple,
    "PLACE": tuple,
    "SILENT": bool,
    "EXACT": bool,
    "EARLY": bool,
}


# Those that a program may leave out.
OPTIONAL = {"ODD": str, "PROBE": bool}


class Program(NamedTuple):
    """A script of the gallery. `kind` is empty for those of examples/healthy."""

    name: str  # "faults/redundant_softmax_digits"
    path: Path
    title: str  # the first sentence of its docstring
    kind: str = ""
    accept: tuple[str, ...] = ()  # other kinds that are right, too
    place: tuple[str, ...] = ()  # patterns of layers and tensors, or one of WORDS_OF_PLACES
    silent: bool = False  # the training loss still falls
    exact: bool = False  # to be told without a threshold
    early: bool = False  # there from the first steps on
    odd: str = ""  # of a healthy training: what looks wrong and is not
    probe: bool = False  # it is recorded with --probe


def packages_missing(program: Program) -> set[str]:
    """Packages that a program imports and that are not installed: those of
    requirements/gallery.txt, perhaps."""
    tree = ast.parse(program.path.read_text(encoding="utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    beside = {path.stem for path in program.path.parent.glob("*.py")}
    found = {name.partition(".")[0] for name in names} - beside - set(sys.stdlib_module_names)
    return {name for name in found if importlib.util.find_spec(name) is None}


def constants_of(path: Path) -> tuple[str, dict[str, Any]]:
    """The docstring and the constants of a script, without running it.

    Raises MeasureError, which names the script, where it cannot be read.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise MeasureError(f"{path}: {error.strerror or error}") from None
    except SyntaxError as error:
        raise MeasureError(f"{path}: line {error.lineno}: {error.msg}") from None
    except ValueError as error:  # bytes that are no text, or a NUL
        raise MeasureError(f"{path}: {error}") from None
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in CONSTANTS or name in OPTIONAL:
                try:
                    found[name] = ast.literal_eval(node.value)
                except ValueError:
                    raise MeasureError(f"{path}: {name} is computed; write its value") from None
    return ast.get_docstring(tree) or "", found


def gallery(root: Path = GALLERY) -> list[Program]:
    """All programs below `root`, by name. Raises MeasureError where one does not tell of itself."""
    programs = []
    for path in sorted((root / "faults").glob("*.py")):
        if path.stem == "data":
            continue
        doc, found = constants_of(path)
        for name, kind in CONSTANTS.items():
            if not isinstance(found.get(name), kind):
                raise MeasureError(f"{path}: {name} is missing, or no {kind.__name__}")
        values = {name.lower(): found[name] for name in CONSTANTS}
        values["probe"] = found.get("PROBE", False)
        programs.append(Program(f"faults/{path.stem}", path, first_sentence(doc), **values))
    for path in sorted((root / "healthy").glob("*.py")):
        if path.stem == "data":
            continue
        doc, found = constants_of(path)
        if not isinstance(found.get("ODD"), str):
            raise MeasureError(f"{path}: ODD is missing, or no str")
        programs.append(
            Program(
                f"healthy/{path.stem}",
                path,
                first_sentence(doc),
                odd=found["ODD"],
                probe=found.get("PROBE", False),
            )
        )
    return programs


def first_sentence(doc: str) -> str:
    return " ".join(doc.split("\n\n", maxsplit=1)[0].split())


def matches(program: Program, globs: list[str]) -> bool:
    short = program.path.stem
    return not globs or any(
        fnmatch.fnmatchcase(name, glob) for name in (program.name, short) for glob in globs
    )
