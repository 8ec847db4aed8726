#!/usr/bin/env python3
"""Proves that modules use only what layers.txt beside them allows, in C++ and in Python.

    tools/check_layers.py [ROOT]

Prints one line per violation, `file:line: message`, and exits 1 when there is any. What it checks:
an include of another module must stand in the including module's list; the list itself may name
only modules that stand above, so that there can be no cycle; every folder is a module and every
module a folder; every include of ours names a file that exists; no files include each other in a
circle; and no two source files of a module have a name of their own that is the same, because what
is shipped is compiled in batches of files (cmake/TraindbgModules.cmake), where they would meet.
Those are the modules of src/traindbg. The packages of python/traindbg/hooks/torch are checked for
the same by what they import; what is imported for its type alone (`if TYPE_CHECKING:`) is no use.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
# What clang-format leaves at a line's beginning, within `namespace {`: a file's own declarations.
OWN_NAME = re.compile(
    r"^(?:template\s*<.*>\s*)?"
    r"(?:(?:struct|class|union|enum class|enum)\s+(\w+)|using\s+(\w+)\s*="
    r"|(?!namespace\b|using\b|static_assert\b)[\w:][^=({;]*?[\s*&](\w+)(?:\[\w*\])?\s*[({=;])"
)
ATTRIBUTES = re.compile(r"\[\[[^\]]*\]\] *|alignas\([^)]*\) *|__attribute__\(\(.*?\)\)\)? *")
NO_NAMES = {"operator", "int", "char", "bool", "float", "double", "void", "auto", "const"}
SUFFIXES = {".h", ".cc", ".inc"}
PACKAGES = Path("python/traindbg/hooks/torch")


def read_layers(table: Path) -> tuple[dict[str, set[str]], list[str]]:
    """Module to what it may use, and what is wrong with the table."""
    layers: dict[str, set[str]] = {}
    errors: list[str] = []
    for number, text in enumerate(table.read_text().splitlines(), start=1):
        line = text.split("#", 1)[0].strip()
        if not line:
            continue
        name, colon, rest = line.partition(":")
        name = name.strip()
        if not colon:
            errors.append(f"{table}:{number}: expected 'module: what it may use', got '{line}'")
            continue
        if name in layers:
            errors.append(f"{table}:{number}: module '{name}' stands here twice")
        used = set(rest.split())
        for other in sorted(used - layers.keys()):
            errors.append(
                f"{table}:{number}: '{name}' may not use '{other}', which does not stand above it"
            )
        layers[name] = used
    return layers, errors


def includes_of(file: Path) -> list[tuple[int, str]]:
    """Line and path of every include with quotes."""
    found = []
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1):
        match = INCLUDE.match(line)
        if match:
            found.append((number, match.group(1)))
    return found


def own_names(file: Path) -> dict[str, int]:
    """Names that a source file declares for itself, in an unnamed namespace, and their lines.

    Each with the namespace that this stands in.
    """
    found: dict[str, int] = {}
    outer = ""
    is_within = False
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1):
        if line == "namespace {":
            is_within = True
        elif is_within and line.startswith("}  // namespace"):
            is_within = False
        elif line.startswith("namespace ") and line.endswith("{"):
            outer = line.split()[1]
        elif is_within and (match := OWN_NAME.match(ATTRIBUTES.sub("", line))):
            name = next(group for group in match.groups() if group)
            if name not in NO_NAMES:
                found.setdefault(f"{outer}::{name}", number)
    return found


def find_cycle(graph: dict[str, list[str]]) -> list[str] | None:
    """A circle of includes as a path that begins and ends with the same file."""
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        on_path: set[str] = set()
        stack: list[tuple[str, int]] = [(start, 0)]
        while stack:
            node, index = stack.pop()
            if index == 0:
                if node in on_path:
                    return [*path[path.index(node) :], node]
                if node in done:
                    continue
                path.append(node)
                on_path.add(node)
            neighbours = graph.get(node, [])
            if index < len(neighbours):
                stack.append((node, index + 1))
                stack.append((neighbours[index], 0))
            else:
                path.pop()
                on_path.discard(node)
                done.add(node)
    return None


def layers_of(source: Path) -> tuple[dict[str, set[str]], list[str]]:
    """Module to what it may use, and where the table and the folders differ."""
    layers, errors = read_layers(source / "layers.txt")
    folders = {
        entry.name for entry in source.iterdir() if entry.is_dir() and entry.name != "__pycache__"
    }
    for name in sorted(folders - layers.keys()):
        errors.append(f"{source / name}: no such module in layers.txt")
    for name in sorted(layers.keys() - folders):
        errors.append(f"{source / 'layers.txt'}: module '{name}' has no folder")
    return layers, errors


def imports_of(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every module that is imported, but of those for their types alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from ((child.lineno, alias.name) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            for alias in child.names:
                yield child.lineno, f"{child.module}.{alias.name}"
        else:
            yield from imports_of(child)


def check_packages(root: Path) -> list[str]:
    """Violations of the packages of Python, as printable lines."""
    source = root / PACKAGES
    if not source.is_dir():
        return []
    layers, errors = layers_of(source)
    prefix = ".".join((*PACKAGES.parts[1:], ""))
    for file in sorted(source.glob("*/*.py")):
        package = file.parent.name
        for number, name in imports_of(ast.parse(file.read_text())):
            other, dot, _ = name.removeprefix(prefix).partition(".")
            if not name.startswith(prefix) or other == package:
                continue
            place = f"{file}:{number}"
            if not dot or other not in layers:
                errors.append(f"{place}: '{name}' is of no package")
            elif other not in layers.get(package, set()):
                errors.append(f"{place}: package '{package}' may not use '{other}' ({name})")
    return errors


def check_modules(root: Path) -> list[str]:
    """Violations of the modules of C++, as printable lines."""
    source = root / "src" / "traindbg"
    layers, errors = layers_of(source)

    graph: dict[str, list[str]] = {}
    owners: dict[tuple[str, str], str] = {}  # of a module's names: the file and line
    for file in sorted(source.rglob("*")):
        if file.suffix not in SUFFIXES:
            continue
        module = file.relative_to(source).parts[0]
        key = file.relative_to(root / "src").as_posix()
        for name, number in own_names(file).items() if file.suffix == ".cc" else ():
            other = owners.setdefault((module, name), f"{file}:{number}")
            if other != f"{file}:{number}":
                errors.append(f"{file}:{number}: '{name}' is an own name of {other}, too")
        for number, path in includes_of(file):
            place = f"{file}:{number}"
            if not path.startswith("traindbg/"):
                errors.append(f'{place}: "{path}": includes of ours start with traindbg/')
                continue
            if (root / "include" / path).is_file():
                continue  # the public interface is open to all
            if not (root / "src" / path).is_file():
                errors.append(f'{place}: "{path}" does not exist')
                continue
            graph.setdefault(key, []).append(path)
            other = path.split("/")[1]
            if other != module and other not in layers.get(module, set()):
                errors.append(f"{place}: module '{module}' may not use '{other}' ({path})")
    cycle = find_cycle(graph)
    if cycle:
        errors.append("files include each other: " + " -> ".join(cycle))
    return errors


def main(arguments: list[str]) -> int:
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    errors = check_modules(root) + check_packages(root)
    for error in errors:
        print(error)
    if errors:
        print(f"layers: {len(errors)} violations")
        return 1
    print("layers: every use goes the way layers.txt says, no two files have the same own name")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
