"""Loaded by Python itself in a script that `traindbg run` started: its folder is on PYTHONPATH.

Does next to nothing: waits for `torch` to be imported, then lets traindbg attach itself. A
`sitecustomize` that this one hides is run as if it were not there.
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


def _attach() -> None:
    try:
        from traindbg import _autostart
    except ImportError as error:
        print(
            f"traindbg: cannot record: {sys.executable} cannot import traindbg ({error}); "
            "install it into this environment",
            file=sys.stderr,
        )
        return
    _autostart.install()


class _TorchFinder:
    """A finder that lets the real ones find torch, and is told when it has been loaded."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != "torch":
            return None
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not cls]
        import importlib.util

        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            try:
                _attach()
            except Exception as error:  # never the script's problem
                print(f"traindbg: cannot record: {error!r}", file=sys.stderr)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if os.environ.get("TRAINDBG_RUN_DIR"):
    if "torch" in sys.modules:
        _attach()
    else:
        sys.meta_path.insert(0, _TorchFinder)
_run_the_hidden_one()
