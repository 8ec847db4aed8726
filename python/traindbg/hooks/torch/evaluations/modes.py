"""Which modules are set to evaluation mode, so that one that is forgotten is known by the others.

Where a network is in several modules (an encoder and its heads), each has a mode of its own. Only
`Module.eval()` is heard, of those that were in training mode before; nothing is kept alive. One
that was set before the last optimizer step belongs to another evaluation than the one under way.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.device import capturing_graph
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.shards import has_values
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.evaluations.module_modes import acting_in_training
from traindbg.hooks.torch.evaluations.unsaid import some_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.evaluations.module_modes import Acting

_MOST_MODULES = 64
# Dynamo knows the function by any name.
_is_compiling = torch.compiler.is_compiling
_TURNS = 2  # one that was set once may stay so for good, as a teacher does


class Modes:
    """Of the process; its calls come from the training's thread."""

    def __init__(self) -> None:
        # How often, and after how many optimizer steps the last time.
        self._turns: weakref.WeakKeyDictionary[torch.nn.Module, tuple[int, int]] = (
            weakref.WeakKeyDictionary()
        )
        # Who is told of each, before it is in evaluation mode.
        self.listener: weakref.WeakMethod[Callable[[torch.nn.Module], None]] | None = None

    def clear(self) -> None:
        """Forgets all, as where another training begins."""
        self._turns.clear()

    def evaluates(self, module: torch.nn.Module, steps: int) -> None:
        """`module.eval()` is called after so many optimizer steps."""
        if module.training and (module in self._turns or len(self._turns) < _MOST_MODULES):
            turns, _ = self._turns.get(module, (0, 0))
            self._turns[module] = turns + 1, steps
        listener = self.listener() if self.listener is not None else None
        if listener is not None and module.training:
            listener(module)

    def others_evaluate(self, model: torch.nn.Module, steps: int) -> bool:
        """A module beside `model`, which goes from mode to mode, was set to evaluation mode now."""
        inside: set[torch.nn.Module] | None = None
        for other, (turns, when) in list(self._turns.items()):
            if turns < _TURNS or when != steps or other.training or other is model:
                continue
            inside = set(model.modules()) if inside is None else inside
            if other not in inside and all(part is not model for part in other.modules()):
                return True
        return False


modes = Modes()


def _is_several(rows: int, fewer: int) -> bool:
    """Whether it is a multiple: each row several times, as for as many draws."""
    return 0 < 2 * fewer <= rows and rows % fewer == 0


class Forgotten:
    """A module that evaluations call in training mode, though they set others to their own mode.

    One per recording. It is the model, or a companion of it.
    """

    def __init__(self, watched: WatchedModels) -> None:
        self._watched = watched
        self._acting: Acting | None = None  # what of it acts as in training
        self._looked_at: dict[int, int] = {}  # by ids of models: after so many steps
        self._steps = -1  # after so many: of the evaluation that follows
        self._parts: set[int] = set()  # ids of companions called since the model was
        self._are_sampled = False  # dropout draws several times of one input, which is meant
        self._rows = 0  # that the model was given last
        self._part_rows = 0  # the same of a companion
        # Once one is forgotten: a few values of the model's first input since, and of its last one.
        self._given: list[torch.Tensor] = []

    def forget(self) -> None:
        """Another training begins."""
        self._acting = None
        self._looked_at.clear()
        self._at_step(-1)

    def _at_step(self, steps: int) -> None:
        if self._steps != steps:
            self._steps = steps
            self._parts.clear()
            self._are_sampled = False
            self._rows = self._part_rows = 0
            self._given.clear()

    @property
    def is_any(self) -> bool:
        """Whether there was one since the last step."""
        return self._acting is not None

    def taken(self) -> Acting | None:
        """Its modules that act as in training; from now on there was none."""
        acting, self._acting = self._acting, None
        self._given.clear()
        return acting

    def model_called(
        self, training: torch.nn.Module | None, tensor: torch.Tensor, steps: int
    ) -> None:
        """The model, with `tensor`, in an evaluation after so many steps.

        `training`: it, where it is in training mode.
        """
        self._at_step(steps)
        self._parts.clear()
        self._rows = tensor.shape[0] if tensor.dim() else 0
        if _is_several(self._rows, self._part_rows) or self._is_given_again(tensor):
            self._is_meant()
        elif training is not None:
            self._look_at(training, steps)

    def part_called(self, companion: torch.nn.Module, steps: int) -> None:
        """A companion of it."""
        self._at_step(steps)
        if id(companion) in self._parts:
            self._is_meant()
        self._parts.add(id(companion))
        if companion.training:
            self._look_at(companion, steps)

    def part_given(self, tensor: torch.Tensor) -> None:
        """What a companion was called with."""
        self._part_rows = tensor.shape[0] if tensor.dim() else 0
        if _is_several(self._part_rows, self._rows):
            self._is_meant()

    def _is_meant(self) -> None:
        self._are_sampled, self._acting = True, None
        self._given.clear()

    def _is_given_again(self, tensor: torch.Tensor) -> bool:
        """Whether the first or the last input comes again, as far as values are at hand."""
        if self._acting is None or tensor.numel() == 0 or not has_values(tensor):
            return False
        if capturing_graph(tensor) or not may_read(tensor):
            return False
        values = some_values(tensor)
        is_again = any(
            values.shape == known.shape and torch.equal(values, known) for known in self._given
        )
        self._given = [*self._given[:1], values]
        return is_again

    def _look_at(self, model: torch.nn.Module, steps: int) -> None:
        if torch.is_grad_enabled() or self._acting is not None or self._are_sampled:
            return
        if self._looked_at.get(id(model)) != steps:
            self._looked_at[id(model)] = steps
            if modes.others_evaluate(model, steps):
                self._acting = acting_in_training(model, self._watched.prefix_of(model))


def listening_eval(
    steps: Callable[[], int | None], original: Callable[..., Any]
) -> Callable[..., Any]:
    """`Module.eval`. `steps`: how many the optimizer has made, None while nobody listens."""

    @functools.wraps(original)
    def eval(self: Any) -> Any:  # noqa: A001
        if not _is_compiling():  # what is compiled as a whole may call it
            made = steps()
            if made is not None:
                guarded("modes", modes.evaluates, self, made)
                guarded("sources", sources.note, "eval")
        return original(self)

    return eval
