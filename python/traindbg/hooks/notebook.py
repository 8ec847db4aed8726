"""What is different in a notebook: its cells end, and its process does not.

Of a cell that trained, the recording learns how it ended, and is up to date when the next one
runs. What the supervisor found meanwhile is said when a cell ends, in one line for each finding:
what it printed itself would come out in the middle of whatever cell runs at that moment.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindbg._say import say
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.recording import recording as recordings

if TYPE_CHECKING:
    import subprocess

# Runs that this kernel began, until all is said, and who judges them, where we started that.
_runs: dict[str, subprocess.Popen[bytes] | None] = {}
_told: set[tuple[str, str, str, int]] = set()  # findings: run, rule, key, worker


def shell() -> Any:
    """IPython's shell, in a notebook or in a terminal; None where there is none."""
    ipython = sys.modules.get("IPython")
    get = getattr(ipython, "get_ipython", None)
    return get() if get is not None else None


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    return "ipykernel" in sys.modules and shell() is not None


def name() -> str:
    """What the notebook is called, as far as the kernel was told."""
    said = os.environ.get("JPY_SESSION_NAME") or shell().user_ns.get("__vsc_ipynb_file__")
    return (Path(str(said)).stem if said else "") or "notebook"


def prepare() -> None:
    """Listens to the ends of cells, if there are cells. Call once in a process."""
    here = shell()
    if here is not None:
        here.events.register("post_run_cell", _cell_ended)


def run_begins(run_dir: str, supervisor: subprocess.Popen[bytes] | None = None) -> None:
    """What is found in this run is to be said. Call it again once its supervisor has started."""
    if is_notebook() and not os.environ.get("TRAINDBG_RUN_DIR"):
        _runs[run_dir] = supervisor


def _cell_ended(result: Any) -> None:
    recording = recordings.current
    if recording is not None:
        error = getattr(result, "error_in_exec", None) or getattr(result, "error_before_exec", None)
        guarded("notebook", recording.loop_ended, error)
    for run_dir, supervisor in list(_runs.items()):
        is_open = recording is not None and recording.session.run_directory == run_dir
        is_judged = supervisor is None or supervisor.poll() is not None  # before it is read
        guarded("notebook", tell_findings, run_dir)
        if is_judged and not is_open:
            _runs.pop(run_dir, None)


def tell_findings(run_dir: str) -> None:
    """Says what was found since the last time."""
    try:
        verdict = json.loads((Path(run_dir) / "verdict.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or none at all
        return
    for finding in verdict.get("findings", ()):
        key = (run_dir, finding["rule"], finding["key"], finding["worker"])
        if key not in _told:
            _told.add(key)
            say(
                f"{finding['severity']}: {finding['rule']}, step {finding['step']}: "
                f"{finding['message']}"
            )
