#!/usr/bin/env python3
"""Proves that every header compiles alone, and that public ones keep private ones to themselves.

    tools/check_headers.py [--root ROOT] [--jobs N] [--all] [HEADER ...]

A header whose own source includes it before anything else is compiled alone by the build already.
Each other one of src/ and include/ is compiled here as the only content of a file, twice included,
with our warnings as errors: so it includes all that it uses, and may be included twice. A header
below include/ is compiled without src/ on the search path: so it includes nothing private.
Compilation goes through ccache where there is one. Exits 1 with the compiler's words when a header
fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLAGS = [
    "-std=c++20", "-O0", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror",
    "-Wnon-virtual-dtor", "-DFMT_HEADER_ONLY=1",
]  # fmt: skip


def is_first_in_its_source(header: Path) -> bool:
    """Whether y.cc beside y.h begins with it, and it may be included twice."""
    source = header.with_suffix(".cc")
    if not source.exists() or "#pragma once\n" not in header.read_text():
        return False
    first = re.search(r'^#include [<"]([^>"]+)', source.read_text(), re.MULTILINE)
    return first is not None and header.as_posix().endswith("/" + first.group(1))


def compile_alone(root: Path, header: Path, scratch: Path) -> str | None:
    """What the compiler says against the header, or None."""
    public = root / "include"
    private = root / "src"
    is_public = public in header.parents
    base = public if is_public else private
    name = header.relative_to(base).as_posix()
    source = scratch / (name.replace("/", "__") + ".cc")
    source.write_text(f'#include "{name}"\n#include "{name}"\n')
    command = [os.environ.get("CXX", "g++"), *FLAGS, f"-I{public}"]
    if not is_public:
        command.append(f"-I{private}")
    command += ["-c", str(source), "-o", str(source.with_suffix(".o"))]
    if shutil.which("ccache"):
        command.insert(0, "ccache")
    result = subprocess.run(
        command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    source.with_suffix(".o").unlink(missing_ok=True)
    if result.returncode == 0:
        return None
    return f"{header}: does not compile alone\n{result.stderr.strip()}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--all", action="store_true", help="also what the build compiles alone")
    parser.add_argument("headers", type=Path, nargs="*", help="these only")
    arguments = parser.parse_args()
    root = arguments.root.resolve()
    headers = [header.resolve() for header in arguments.headers]
    if not headers:
        headers = sorted([*(root / "src").rglob("*.h"), *(root / "include").rglob("*.h")])
    if not headers:
        print(f"headers: none below {root}")
        return 1
    every = len(headers)
    if not arguments.headers and not arguments.all:
        public = root / "include"
        headers = [h for h in headers if public in h.parents or not is_first_in_its_source(h)]
    # A fixed folder: ccache compares the commands, and the path is part of them.
    scratch = root / "build" / "headers"
    try:
        scratch.mkdir(parents=True, exist_ok=True)
    except OSError:
        scratch = Path(tempfile.mkdtemp())
    with ThreadPoolExecutor(arguments.jobs) as pool:
        failures = [f for f in pool.map(lambda h: compile_alone(root, h, scratch), headers) if f]
    for failure in failures:
        print(failure)
    if failures:
        print(f"headers: {len(failures)} of {len(headers)} do not stand alone")
        return 1
    others = (
        f", {every - len(headers)} as the first of their source" if every > len(headers) else ""
    )
    print(f"headers: all {every} compile alone{others}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
