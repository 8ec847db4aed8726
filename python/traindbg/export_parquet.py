"""`python -m traindbg.export_parquet REQUEST`: what `traindbg export --format parquet` starts.

REQUEST is one JSON object; so is the answer, the last line on standard output.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from typing import Any

from traindbg import _core
from traindbg.errors import DamageWarning, TraindbgError
from traindbg.table import Table


def _progress(rows: int) -> None:
    global _next
    now = time.monotonic()
    if now >= _next:
        _next = now + 0.2
        sys.stderr.write(f"\r\x1b[Kexporting: {rows} rows")
        sys.stderr.flush()


_next = 0.0


def write(request: dict[str, Any]) -> dict[str, Any]:
    """Writes the file that `request` asks for; says how many rows and bytes."""
    global _next
    name = str(request["table"])
    files = _core.RunFiles(request["run"], request["program"])

    def make() -> _core.Table:
        return _core.Table(
            files,
            request["run"],
            name,
            request.get("names"),
            request["collection"],
            request.get("mode"),
            request["first_step"],
            request["end_step"],
            request.get("worker"),
            request["statistics"],
        )

    is_terminal = sys.stderr.isatty()
    _next = time.monotonic() + 0.5
    path = str(request["to"])
    try:
        table = Table(name, request["run"], make)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamageWarning)  # the program tells of it
            rows = table.to_parquet(
                path,
                overwrite=bool(request["overwrite"]),
                progress=_progress if is_terminal else None,
            )
    finally:
        if is_terminal:
            sys.stderr.write("\r\x1b[K")
    from pathlib import Path

    return {"rows": rows, "bytes": Path(path).stat().st_size, "damage": table.damage}


def main(arguments: list[str]) -> int:
    """The whole program."""
    try:
        answer = write(json.loads(arguments[0]))
    except FileExistsError as error:
        answer = {"error": f"{error}; --force replaces it", "code": "already_exists"}
    except (TraindbgError, OSError) as error:
        answer = {"error": str(error), "code": "failed"}
    print(json.dumps(answer))
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
