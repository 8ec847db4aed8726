"""traindbg: records what a training's tensors do, and says what is wrong and why.

    import traindbg as td

    td.watch(model)             # in a training; or change nothing and use `traindbg run -- ...`
    run = td.Run("traindbg-runs/…")
    steps, loss = run.scalars("loss")

Importing this package loads no framework; what it offers is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from traindbg._core import __version__ as __version__
    from traindbg.errors import DamageWarning as DamageWarning
    from traindbg.errors import TraindbgError as TraindbgError
    from traindbg.errors import TrainingStopped as TrainingStopped
    from traindbg.hooks.torch.watching import Watcher as Watcher
    from traindbg.hooks.torch.watching import watch as watch
    from traindbg.run import Run as Run
    from traindbg.table import Table as Table

_LAZY = {
    "DamageWarning": "traindbg.errors",
    "Run": "traindbg.run",
    "Table": "traindbg.table",
    "TraindbgError": "traindbg.errors",
    "TrainingStopped": "traindbg.errors",
    "Watcher": "traindbg.hooks.torch.watching",
    "watch": "traindbg.hooks.torch.watching",
    "__version__": "traindbg._core",
}

__all__ = [
    "DamageWarning",
    "Run",
    "Table",
    "TraindbgError",
    "TrainingStopped",
    "Watcher",
    "__version__",
    "log",
    "runs",
    "save",
    "watch",
]


def log(name: str, value: float) -> None:
    """Records a number of your own, such as an accuracy, as `metric/<name>` of the current step.

    Args:
        name: what it is called in the run.
        value: a number, or a tensor or array of one element. Anything else is skipped and counted,
            and said once for each name.

    Does nothing when no training is being watched, so it may stay in a script for good; nor inside
    of code that torch.compile has compiled, which is said once.
    """
    import sys

    hook = sys.modules.get("traindbg.hooks.torch.watching")
    if hook is not None:
        hook.log(name, value)


def save(name: str, tensor: Any) -> None:
    """Records a tensor of your own as `custom/<name>` of the current step, as it is now.

    Args:
        name: what it is called in the run; of one name, the first of a step is kept.
        tensor: of any shape, strides and real type: a torch tensor, on a device too, a NumPy array,
            or a number.

    Its statistics are kept at every step at which it is given; whole values and histograms where
    they are asked for, of the collection `other` or of one of yours whose pattern finds the name.
    What cannot be read (a string, None, a quantized tensor) is skipped and counted, and said once
    for each name. Does nothing when no training is being watched, so it may stay in a script for
    good; nor inside of code that torch.compile has compiled, which is said once.
    """
    import sys

    hook = sys.modules.get("traindbg.hooks.torch.watching")
    if hook is not None:
        hook.save(name, tensor)


def runs(root: str | Path = "traindbg-runs") -> list[Run]:
    """The runs in a directory, oldest first. An empty list when there is no such directory."""
    from traindbg.run import runs as find

    return find(root)


def __getattr__(name: str) -> Any:
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(f"module 'traindbg' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
