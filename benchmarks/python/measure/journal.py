"""The outcomes of trainings in a file, so that a measure that was interrupted goes on there.

One line of JSON for each, appended when its training ends. A line counts only for the same script
with the same data, judged by the same traindbg: what is older is measured again. A line that a
crash has cut off is left out.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from measure.outcomes import Outcome, Task, as_json, from_json

if TYPE_CHECKING:
    from pathlib import Path


def digest_of(files: list[Path], *words: str) -> str:
    """Names what is in these files."""
    total = hashlib.sha256("\n".join(words).encode())
    for file in files:
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()[:16]


class Journal:
    """The outcomes in `path`, which need not be there. `made_with` names what records and judges.

    Raises OSError where the file cannot be read or written.
    """

    def __init__(self, path: Path, made_with: str) -> None:
        self._path = path
        self._made_with = made_with
        self._of: dict[Path, str] = {}
        self._lines: dict[str, dict[str, Any]] = {}
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in text.splitlines():
            try:
                values = json.loads(line)
                self._lines[values["of"]] = values["outcome"]
            except (ValueError, KeyError, TypeError):
                continue
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            if text and not text.endswith("\n"):
                file.write("\n")

    def find(self, task: Task) -> Outcome | None:
        """What became of it, if that is known and went well."""
        values = self._lines.get(self._name_of(task))
        return None if values is None or values["error"] else from_json(values, task)

    def add(self, outcome: Outcome) -> None:
        line = {"of": self._name_of(outcome.task), "outcome": as_json(outcome)}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _name_of(self, task: Task) -> str:
        path = task.program.path
        if path not in self._of:
            data = path.parent / "data.py"
            files = [path, data] if data.exists() else [path]
            self._of[path] = digest_of(files, self._made_with, task.program.name)
        return f"{self._of[path]}-{task.form}-{task.seed}-{task.rules}"
