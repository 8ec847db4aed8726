"""Probes: at a few steps a child of the process computes the step's batch again, changed in part.

What the model is given in a step is held until its optimizer steps; what it was given a target for,
too. Then, if it can tell something, a child is made (`probes.apart`) in which the model is
asked (`probes.forward_pass`): whether samples see each other (`probes.samples`), whether
positions see what comes later (`probes.positions`). At the second step, once more where
something was found, and then where the time since is a hundred times as long as a probe takes. Off
unless it is asked for.
"""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Any

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import own_operations
from traindbg.hooks.torch.data.loaders import sizes
from traindbg.hooks.torch.probes import positions, samples
from traindbg.hooks.torch.probes.apart import NotProbedError, apart
from traindbg.hooks.torch.probes.compare import Seen
from traindbg.hooks.torch.probes.forward_pass import ON_CPU, Given, Passes, given, look_at

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.tensors import Tensors
    from traindbg.hooks.torch.base.unseen import Unseen
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.data.next_values import Next
    from traindbg.hooks.torch.data.sequences import SequenceObserver
    from traindbg.hooks.torch.recording.compilation import Compilation

_LOOP = _core.ROLE_BITS["loop"]
_FIRST = 1  # steps that were made before
_MOST = 6
_TIMES = 100.0  # so much longer than a probe is the time to the next one
_MOST_TARGETS = 4


class Probes:
    """One per recording. Holds what a model was given only from its call to the step's end."""

    def __init__(
        self,
        tensors: Tensors,
        watched: WatchedModels,
        hot: _core.HotPath,
        unseen: Unseen,
        sequences: SequenceObserver,
    ) -> None:
        self.is_wanted = False
        self.is_open = False  # the pass under way, or the last one of the step, is held
        self.compilation: Compilation | None = None
        self._tensors = tensors
        self._watched = watched
        self._hot = hot
        self._unseen = unseen
        self._sequences = sequences
        self.forget()

    def follow(self, is_wanted: bool) -> None:
        """Whether probes are asked for, from now on."""
        self.is_wanted = is_wanted
        if not is_wanted:
            self.clear()

    def forget(self) -> None:
        """Another training or other models begin."""
        self._made = 0
        self._not_before = 0.0
        self._dealt = samples.Dealt()
        self.clear()

    def clear(self) -> None:
        """Lets go of what the model was given."""
        self.is_open = False
        self._model: weakref.ref[torch.nn.Module] | None = None
        self._given: Given | None = None
        self._step = -1
        self._targets: list[torch.Tensor] = []
        self._has_all_targets = False  # later losses are of another pass

    # What is heard of a step.

    def forward_begins(self, model: torch.nn.Module) -> None:
        """A pass of the training that is looked at."""
        is_again = self._step == self._hot.steps
        self.clear()
        self._step = self._hot.steps
        if not self.is_wanted or self._made >= _MOST or not self._hot.due & _LOOP or is_again:
            return
        if self._hot.steps >= _FIRST and time.perf_counter() >= self._not_before:
            self.is_open = True
            self._model = weakref.ref(model)

    def input_given(self, tensor: torch.Tensor) -> None:
        """The first one, at any step that is looked at."""
        if self._made >= _MOST or self._dealt.is_anew or type(tensor) is not torch.Tensor:
            return
        prints = _core.row_prints(tensor, False)
        if prints is not None:
            self._dealt.learn(prints.halves)

    def called(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The model has returned."""
        if self._model is not None and self._model() is model:
            self._given = given(args, kwargs)

    def called_again(self) -> None:
        """In one step: the losses to come are not of the pass that is held."""
        if self._targets:
            self._has_all_targets = True
        else:
            self.clear()

    def loss_computed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """By a loss function, of the training."""
        target: Any = args[1] if len(args) > 1 else kwargs.get("target")
        if type(target) is not torch.Tensor or target.requires_grad or self._has_all_targets:
            return
        if len(self._targets) < _MOST_TARGETS:
            self._targets.append(target)

    # A probe.

    def will_step(self) -> None:
        """The optimizer is about to step, with the weights that the pass was made with."""
        held, targets = self._given, self._targets
        model = None if self._model is None else self._model()
        is_of_step = self.is_open and self._step == self._hot.steps
        self.clear()
        if held is None or model is None or not is_of_step or not targets:
            return
        if len(self._watched.watchers) != 1:
            return
        begin = time.perf_counter()
        try:
            found = self._ask(model, held, targets)
        except NotProbedError as why:
            self._give_up(model, str(why))
        except Exception as error:
            self._give_up(model, f"{type(error).__name__}: {error}"[:300])
        else:
            if found is None:
                return
            self._made += 1
            now = time.perf_counter()
            is_first = found and self._made == 1
            self._not_before = now if is_first else now + _TIMES * (now - begin)

    def _ask(self, model: torch.nn.Module, held: Given, targets: list[torch.Tensor]) -> bool | None:
        """Whether something was found; None: there is nothing to ask."""
        if not held.is_unchanged():
            return None
        tensors = held.tensors()
        for tensor in (*tensors, *targets):
            if tensor.device.type != "cpu":
                raise NotProbedError(f"it is given a tensor on {tensor.device}: {ON_CPU}")
        with own_operations():
            number = samples.samples_of(model, tensors, targets, self._is_dealt)
            sequence = self._sequence(model, tensors)
        if number == 0 and sequence is None:
            return None
        if self.compilation is not None and self.compilation.is_in_use:
            raise NotProbedError("torch.compile is in use")
        look_at(model)

        def work() -> dict[str, Any]:
            passes = Passes(model, held)
            answer: dict[str, Any] = {}
            if number > 0:
                answer["samples_mixed"] = samples.look(passes, tensors, number)
            if sequence is not None:
                answer["earlier_changed"] = positions.look(passes, *sequence)
            return answer

        answer = apart(work)
        found = [self._tell(name, Seen(*seen)) for name, seen in answer.items() if seen]
        return any(found)

    def _is_dealt(self, number: int) -> bool:
        return self._dealt.is_anew or (number in sizes.dealt and number not in sizes.in_order)

    def _sequence(
        self, model: torch.nn.Module, tensors: list[torch.Tensor]
    ) -> tuple[torch.Tensor, Next, int] | None:
        """The input whose next values are the targets, how they are, and its middle."""
        found = self._sequences.next_input()
        if found is None:
            return None
        source, following = found
        if not any(tensor is source for tensor in tensors):
            return None
        middle = positions.middle_of(model, source, following)
        return None if middle is None else (source, following, middle)

    def _tell(self, name: str, seen: Seen) -> bool:
        prefix = self._watched.watchers[0].prefix
        place = f"{prefix}{seen.place}" if seen.place else ""
        self._tensors.fact(name, seen.share, place)
        self._tensors.fact(f"{name}_change", seen.change)
        return seen.share > 0

    def _give_up(self, model: torch.nn.Module, why: str) -> None:
        self._made = _MOST
        self._unseen.say("probe", f"what probes of {type(model).__name__} would show", why)
