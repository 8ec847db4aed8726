"""Loaded by Python itself in a script that `traindbg run` started: its folder is on PYTHONPATH.

Does next to nothing: waits for `torch` and for trainers of frameworks to be imported, then lets
traindbg attach itself. A `sitecustomize` that this one hides is run as if it were not there.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # without importing typing
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def _run_the_hidden_one() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or os.curdir) != here]
    import importlib.util
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


# Modules after which something is to be done, once they are loaded.
_AWAITED = (
    "torch",
    "accelerate.accelerator",
    "lightning.pytorch.trainer.trainer",
    "pytorch_lightning.trainer.trainer",
    "transformers.trainer",
)


def _attach(module: ModuleType) -> None:
    try:
        from traindbg import _autostart
    except ImportError as error:
        if module.__name__ == "torch":
            print(
                f"traindbg: cannot record: {sys.executable} cannot import traindbg ({error}); "
                "install it into this environment",
                file=sys.stderr,
            )
        return
    _autostart.imported(module)


class _Finder:
    """A finder that lets the real ones find these, and is told when they have been loaded."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name not in _AWAITED:
            return None
        spec: ModuleSpec | None = None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is not cls and find is not None and spec is None:
                spec = find(name, path, target)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            try:
                _attach(module)
            except Exception as error:  # never the script's problem
                print(f"traindbg: cannot record: {error!r}", file=sys.stderr)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if os.environ.get("TRAINDBG_RUN_DIR"):
    if "torch" in sys.modules:
        _attach(sys.modules["torch"])
    sys.meta_path.insert(0, _Finder)
_run_the_hidden_one()
