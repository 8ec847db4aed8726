"""How watching gets along with torch.compile.

Compiled code calls no hooks. So a step that needs what modules return may be run uncompiled
(`EagerStep`); nothing is compiled anew for that, before or after. And code that happens to be
compiled while hooks are attached must not have them compiled in, or it would be compiled a second
time once they are gone (`HiddenFromCompiler`).
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable


def compiler_in_use() -> bool:
    """Whether torch.compile was used in this process, though perhaps nothing is compiled yet."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    # What only switches the compiler off is registered there too, with a callback of None.
    backends = getattr(frames, "cached_backends", {})
    return bool(backends) and any(callable(backend) for backend in backends.values())


class _Stance:
    """A stance of the compiler: `force_eager` as long as `is_wanted`, else the one before.

    PyTorch asks for it at every call of compiled code, so that an evaluation in the middle of a
    step runs as it always does. Once ended it stays what was before: a `with set_stance(...)` of
    the user's that began while it was on brings it back when it ends.
    """

    def __init__(self, before: Any, is_wanted: Callable[[], bool]) -> None:
        self._before = before
        self._is_wanted: Callable[[], bool] | None = is_wanted

    def end(self) -> None:
        self._is_wanted = None

    @property
    def stance(self) -> str:
        with contextlib.suppress(Exception):  # this is called by the training
            if self._is_wanted is not None and self._is_wanted():
                return "force_eager"
        before: str = self._before.stance
        return before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._before, name)


class EagerStep:
    """Makes compiled code run uncompiled, from `begin` to `end`, where `is_wanted` says so."""

    def __init__(self, is_wanted: Callable[[], bool]) -> None:
        self._is_wanted = is_wanted
        self._ours: _Stance | None = None

    @property
    def is_on(self) -> bool:
        """Whether it has begun and not ended."""
        return self._ours is not None

    @property
    def is_in_force(self) -> bool:
        """Whether it is on, and the user has set no stance since."""
        frames = sys.modules.get("torch._dynamo.eval_frame")
        return self._ours is not None and getattr(frames, "_stance", None) is self._ours

    def begin(self) -> None:
        """Raises RuntimeError inside compiled code, AttributeError if PyTorch knows no stances."""
        self.end()
        from torch._dynamo import eval_frame

        before = eval_frame._stance
        while isinstance(before, _Stance):  # an ended one that a block of the user's brought back
            before = before._before
        ours = _Stance(before, self._is_wanted)
        # PyTorch's own setter takes only words, and its stances cannot depend on anything.
        eval_frame._set_stance(ours)
        self._ours = ours

    def end(self) -> None:
        """Puts back what was before, unless somebody else has set a stance since."""
        ours, self._ours = self._ours, None
        if ours is None:
            return
        ours.end()
        from torch._dynamo import eval_frame

        if eval_frame._stance is ours:
            with contextlib.suppress(RuntimeError):  # inside compiled code: it acts as ended
                eval_frame._set_stance(ours._before)


our_hooks: set[int] = set()  # ids of global module hooks that are attached now


def others_have_global_hooks() -> bool:
    """`torch.nn.modules.module._has_any_global_hook` without ours.

    PyTorch asks it when a compiled module is called, to warn the user of hooks that fire twice.
    """
    module = torch.nn.modules.module
    return any(
        not our_hooks.issuperset(getattr(module, name, ()))
        for name in (
            "_global_backward_pre_hooks",
            "_global_backward_hooks",
            "_global_forward_pre_hooks",
            "_global_forward_hooks",
            "_global_forward_hooks_always_called",
            "_global_forward_hooks_with_kwargs",
        )
    )


class HiddenFromCompiler:
    """Takes global hooks away whenever something is being compiled, until `stop`.

    `hooks` are entries of PyTorch's tables of hooks: the table, the key. `also` is called then.
    """

    def __init__(self, hooks: list[tuple[dict[int, Any], int]], also: Callable[[], None]) -> None:
        self._hooks = hooks
        self._also = also
        self._taken: list[tuple[dict[int, Any], int, Any]] = []
        self._handler = getattr(sys.modules.get("torch._dynamo.callback"), "callback_handler", None)
        if self._handler is not None:
            self._handler.register_start_callback(self._begins)
            self._handler.register_end_callback(self._ends)

    @property
    def is_active(self) -> bool:
        """False when torch.compile is not loaded yet, or was reset."""
        return self._handler is not None and self._begins in self._handler.start_callbacks

    def _begins(self, *_: Any) -> None:
        self._also()
        for table, key in self._hooks:
            if key in table:
                self._taken.append((table, key, table.pop(key)))

    def _ends(self, *_: Any) -> None:
        for table, key, hook in self._taken:
            table[key] = hook
        self._taken.clear()

    def stop(self) -> None:
        """The hooks are about to be removed."""
        self._taken.clear()
        if self._handler is not None:
            with contextlib.suppress(ValueError):  # torch._dynamo.reset() has done it
                self._handler.remove_start_callback(self._begins)
            with contextlib.suppress(ValueError):
                self._handler.remove_end_callback(self._ends)
