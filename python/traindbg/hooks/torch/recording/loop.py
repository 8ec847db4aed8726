"""Facts about the training loop: what was stepped, reached, detached, left out, in which mode.

At steps where the collection `loop` is due. Each fact is one number per step, `loop/FACT`; where it
has a place, the name of the first one follows, `loop/FACT/PLACE`. A fact of a step is told when its
optimizer is about to step, because only then the step's backward passes are over; what they mean
over several steps, the rules decide. Of a step not seen from its beginning nothing is told.

Nothing here keeps a tensor of the training's: what is remembered between two moments of a step are
weak references, ids, versions and numbers, and a tensor's first few elements.
"""

from __future__ import annotations

import heapq
import itertools
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from traindbg.hooks.torch.base.compiled import compiler_in_use
from traindbg.hooks.torch.base.device import capturing_graph, own_operations, version_of
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.ids import Identities
from traindbg.hooks.torch.base.later import brought, may_read
from traindbg.hooks.torch.base.leaves import OptimizedInputs
from traindbg.hooks.torch.base.parameters import number_of
from traindbg.hooks.torch.base.shards import local_part
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.data.fields import Fields
from traindbg.hooks.torch.evaluations.module_modes import Modes
from traindbg.hooks.torch.evaluations.norms import Norms
from traindbg.hooks.torch.losses.angles import AWAY, ONE_WAY, cosines_in
from traindbg.hooks.torch.losses.arguments import OF_DIFFERENCES
from traindbg.hooks.torch.losses.collapse import Outputs
from traindbg.hooks.torch.losses.compared import summed_output
from traindbg.hooks.torch.losses.functions import ReturnedGradients
from traindbg.hooks.torch.losses.given import GivenInEvaluation
from traindbg.hooks.torch.losses.graph import Graph, look_at_graph
from traindbg.hooks.torch.losses.holders import holder_of
from traindbg.hooks.torch.losses.latents import informed_by
from traindbg.hooks.torch.losses.of_itself import (
    are_of_the_same_samples,
    is_made_of_what_it_compares,
)
from traindbg.hooks.torch.losses.of_weights import parameters_of_penalty
from traindbg.hooks.torch.losses.overlap import lowers_overlap
from traindbg.hooks.torch.losses.policy import has_policy, is_lowered
from traindbg.hooks.torch.losses.ratios import lowers_signal_ratio
from traindbg.hooks.torch.losses.root import Root, head_of, mark_loss, root_of
from traindbg.hooks.torch.losses.scores import cuts_off_raw_scores, is_made_of_raw_scores
from traindbg.hooks.torch.losses.seam import ignores_seam
from traindbg.hooks.torch.losses.through_time import ThroughTime
from traindbg.hooks.torch.steps.added_numbers import AddedNumbers
from traindbg.hooks.torch.steps.slopes import Slopes
from traindbg.hooks.torch.updates.frozen import Frozen, SaidToTrain
from traindbg.hooks.torch.updates.frozen_groups import FrozenGroups
from traindbg.hooks.torch.updates.left_out import LeftOut, in_any_optimizer, parameters_of
from traindbg.hooks.torch.updates.outside import copies_among
from traindbg.hooks.torch.updates.resume import are_fresh, ask_fresh
from traindbg.hooks.torch.updates.untrained import Calls, Untrained, first_elements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traindbg._core import HotPath
    from traindbg.hooks.torch.base.sources import Line
    from traindbg.hooks.torch.base.teller import Teller
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.losses.collapse import Given
    from traindbg.hooks.torch.losses.latents import Informed, Latent
    from traindbg.hooks.torch.updates.untrained import Places

_graph_task = getattr(torch._C, "_current_graph_task_id", None)
_GRAPHS_AT = (0, 2, 8)  # the first due step from each of these on: its graph is looked at
_MOST_CALLS_SEEN = 6  # steps in which modules' calls are listened to
_OF_COSINES = "cosine_embedding_loss"
_MOST_CANDIDATES = 64
_MOST_FRESH = 8  # matrices that are asked whether they are as they were drawn
_MOST_ASKED = 4  # gradients on a device that are asked whether they are zero
# What models return, and running statistics, take longer to look at: at so many due steps, then at
# every so many-th of them; running statistics not at the first ones, when they have yet to settle.
_DENSE_LOOKS = 40
_SPARSE_LOOKS = 4
_FIRST_LOOKS = 10
_FEWEST_UNITS = 16  # of a layer whose directions are told

_State = tuple[int, int]  # a gradient: its id and version


def _any_of(gradient: torch.Tensor) -> torch.Tensor | None:
    """Whether an element is not zero, on the gradient's device. None: that cannot be asked now."""
    with own_operations():
        part = local_part(gradient.detach())
        if part.is_sparse:
            part = part._values()
        return None if part.numel() == 0 or capturing_graph(part) else part.any()


class _Asked:
    """Whether one of some gradients is not zero. Of those on devices it is known later."""

    def __init__(self) -> None:
        self.is_any = False
        self.later: list[torch.Tensor] = []  # of those of which it is not known yet

    def look(self, gradient: torch.Tensor) -> None:
        """One more; nothing is asked where it is known already."""
        found = None if self.is_any else _any_of(gradient)
        if found is None:
            return
        if may_read(found):
            with own_operations():
                self.is_any = bool(found)
        else:
            self.later.append(found)

    def settle(self) -> None:
        """Waits for devices."""
        if not self.is_any:
            with own_operations():
                self.is_any = any(map(bool, brought(self.later)))
        self.later.clear()


def _samples(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """How many samples a loss function was given."""
    given = args[0] if args else kwargs.get("input")
    return given.shape[0] if isinstance(given, torch.Tensor) and given.dim() > 0 else 0


def _are_made(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether both of what a loss function compares has a gradient, and is of other samples."""
    both = [*args[:2], *(kwargs[key] for key in ("input", "target") if key in kwargs)]
    if len(both) != 2 or not all(isinstance(t, torch.Tensor) and t.requires_grad for t in both):
        return False
    return not are_of_the_same_samples(*both)


def _have_gradients(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether both of what a loss function takes the cosine of has a gradient."""
    both = [*args[:2], *(kwargs[key] for key in ("input1", "input2") if key in kwargs)]
    return len(both) == 2 and all(isinstance(t, torch.Tensor) and t.requires_grad for t in both)


def _terms(target: Any, kwargs: dict[str, Any]) -> int:
    """How many values a loss function adds up that is told to; 0 where it takes their mean."""
    is_sum = kwargs.get("reduction") == "sum" and isinstance(target, torch.Tensor)
    return target.numel() if is_sum else 0


class LoopObserver:
    """Follows the steps that are due, from the end of the one before. One per recording."""

    def __init__(self, teller: Teller, models: WatchedModels, hot: HotPath) -> None:
        self._teller = teller
        self._models = models
        self.is_open = False  # the step under way is due and was seen from its beginning
        self._before: dict[int, _State] = {}  # gradients when the step began
        self._pass_before: dict[int, _State] | None = None  # and when the pass under way began
        self._reached: dict[int, _State] = {}  # those that backward changed, as it left them
        self._was_any = False  # one of them was not zero
        self._perhaps_any: list[torch.Tensor] = []  # the same of the last ones, on their devices
        self._watched: list[weakref.ref[nn.Parameter]] = []  # parameters of the step under way
        self._passes = 0
        self._roots: list[Root] = []
        self._lines: set[Line | None] = set()  # where losses were computed, or passes began
        self._heads: set[int] = set()  # ids of the parameters nearest to them
        self._retained = False
        self._adds_up = True  # passes of a step add to what those before left
        self._losses = 0
        self._graphs = 0  # that were looked at
        self._is_by_hand = False  # no optimizer made the last step
        # Leaves that are no Parameters and that a model holds: where they lie, and what they are.
        self._strangers: dict[int, tuple[int, tuple[float, ...]]] = {}
        self._was_of_a_copy = False  # a loss that was looked at
        self._calls: Calls | None = None
        self._calls_seen = 0
        self._wants_calls = False
        self._left_out = LeftOut(teller, models)
        self.modes = Modes(teller, models)
        self._frozen = Frozen(teller.later)
        self._said_to_train = SaidToTrain()
        self._is_said = False
        self._frozen_groups = FrozenGroups()
        self._is_group_frozen = False
        self._ever_reached = Identities()
        self._told_fresh = False
        self._batches: set[int] = set()  # of how many samples losses were computed in training
        self._samples = 0  # in the last one of them
        self._terms = 0  # that its value is the sum of; 0 of a mean
        self._calls_of: dict[str, int] = {}  # of each loss function, in the step under way
        self._scaled = 0  # passes whose loss a GradScaler multiplied
        self._target_is_made = False  # a loss was given a target that has a gradient
        self._compared_to_itself: bool | None = None  # all that losses compare; None: there is none
        self._latents: list[Latent] = []
        self._informed: list[Informed] = []  # by them, in this step
        self._compares_directions = False  # the loss, and nothing else
        self._is_of_cosines: bool | None = None  # all that losses compare, each with two gradients
        self._is_of_compared = False  # the loss is made of what loss functions compare
        self._penalized: int | None = None  # parameters that are all that the loss is made of
        self._outputs: Outputs | None = None
        self._fields = Fields(teller)
        self.given_in_evaluation = GivenInEvaluation()
        self._norms: Norms | None = None
        self._looks = 0  # steps that were due
        self._times: ThroughTime | None = None
        self._returned: ReturnedGradients | None = None
        self._untrained = Untrained(teller, models)
        self.slopes = Slopes(teller, models, hot)
        self.added_numbers = AddedNumbers(teller, models, hot)
        self._first: set[str] = set()  # modules that run before all that are trained, and are not

    # Moments of a step.

    def begin(self, is_due: bool) -> None:
        """A step begins."""
        self.clear()
        self.modes.step_begins()
        self.is_open = is_due
        if not is_due:
            return
        for model, _ in self._models.models():
            self._watched.extend(map(weakref.ref, model.parameters()))
        self._before = self._gradients()
        self._untrained.begin()
        self.slopes.begin()
        self.added_numbers.begin()
        is_few = self._calls_seen < _MOST_CALLS_SEEN
        wants_calls = self._wants_calls and (is_few or self._untrained.wants_calls())
        if wants_calls and not compiler_in_use():
            self._calls_seen += 1
            self._calls = Calls(self._models.models())
        self._looks += 1
        if self._looks > _DENSE_LOOKS and self._looks % _SPARSE_LOOKS != 0:
            return
        if not compiler_in_use():
            self._outputs = Outputs(self._models.models())
        if self._looks > _FIRST_LOOKS:
            self._norms = Norms(self._models.models())

    def clear(self) -> None:
        """Drops what was seen of a step."""
        if self._calls is not None:
            self._calls.end()
        if self._outputs is not None:
            self._outputs.end()
        self.given_in_evaluation.end()
        self._end_hooks_of_graph()
        self._untrained.clear()
        self.slopes.clear()
        self.added_numbers.clear()
        self._calls, self._pass_before = None, None
        self._outputs, self._norms, self._times = None, None, None
        self._returned = None
        self._target_is_made = False
        self._compared_to_itself = self._is_of_cosines = None
        self._penalized = None
        self._before, self._reached, self._roots = {}, {}, []
        self._lines, self._heads = set(), set()
        self._perhaps_any, self._watched, self._informed = [], [], []
        self.is_open = self._was_any = self._retained = False
        self._adds_up = True
        self._passes = self._losses = self._scaled = 0
        self._calls_of = {}

    def forget(self) -> None:
        """The losses that were looked at are of another training, or of other models."""
        self.slopes.forget()
        self.added_numbers.forget()
        self._fields.forget()
        self.given_in_evaluation.forget()
        self._left_out.forget()
        self.modes.forget()
        self._graphs = 0
        self._compares_directions = self._is_of_compared = False

    def evaluated(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss function was called without gradients."""
        self.modes.evaluated(_samples(args, kwargs), self._batches)

    def evaluated_copy(
        self, modules: int, place: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """The same of a copy that nobody watches: so many of its modules act as in training."""
        self._teller.fact("copy_modules_in_train", modules, place, evaluation=True)
        self.modes.tell_whether_other(_samples(args, kwargs), self._batches)

    def loss_computed(self, name: str, value: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """In training, by a loss function."""
        if self.is_open and self._compared_to_itself is not False:
            self._compared_to_itself = name in OF_DIFFERENCES and _are_made(args, kwargs)
        if self.is_open and self._is_of_cosines is not False:
            self._is_of_cosines = name == _OF_COSINES and _have_gradients(args, kwargs)
        if self.is_open and isinstance(value, torch.Tensor) and value.numel() == 1:
            self._losses += 1
            self._calls_of[name] = self._calls_of.get(name, 0) + 1
            self._samples = _samples(args, kwargs)
            if len(self._batches) < _MOST_CANDIDATES:
                self._batches.add(self._samples)
            target = args[1] if len(args) > 1 else kwargs.get("target")
            self._terms = _terms(target, kwargs)
            if isinstance(target, torch.Tensor) and target.requires_grad:
                self._target_is_made = True
            if self._outputs is not None and name in OF_DIFFERENCES:
                self._outputs.compared_with(target)
            mark_loss(value, name, self._losses, args, kwargs)

    def backward_begins(self, root: Any, is_scaled: bool) -> None:
        """Of `root`; `is_scaled`: a GradScaler multiplied the loss."""
        if not self.is_open or (_graph_task is not None and _graph_task() != -1):
            return
        self._pass_before = self._gradients()
        # Gradients taken aside, cut or cleared since the pass before are not summed as they are.
        left = self._pass_before
        if self._passes > 0 and any(left.get(key) != state for key, state in self._reached.items()):
            self._adds_up = False
        self._passes += 1
        self._scaled += is_scaled
        found = root_of(root, is_scaled) if isinstance(root, torch.Tensor) else None
        self._roots.append(found or Root())
        of_loss = None if found is None else found.line
        self._lines.add(of_loss or sources.here())
        self._heads.add(head_of(root) if isinstance(root, torch.Tensor) else 0)
        self._untrained.backward_begins(root, self._passes)
        self.slopes.backward_begins(root)
        self.added_numbers.backward_begins(root)

    def rows_returned(self) -> set[int]:
        """How many rows there are of what models returned since the last call of `returned`."""
        known = {} if self._outputs is None else self._outputs.returned
        return {len(tensor) for tensor in known.values() if tensor.dim() > 0}

    def returned(self) -> dict[int, torch.Tensor]:
        """What models returned since the last call, by the numbers in the graph. Forgets it."""
        if self._outputs is None:
            return {}
        known = self._outputs.returned
        self._outputs.forget()
        return known

    def _end_hooks_of_graph(self) -> None:
        for each in (self._times, self._returned):
            if each is not None:
                each.end()

    def backward_ended(self, retains: bool) -> None:
        before = self._pass_before
        if before is None or (_graph_task is not None and _graph_task() != -1):
            return
        self._pass_before = None
        self._end_hooks_of_graph()
        self._untrained.backward_ended()
        self._retained = self._retained or retains
        for parameter, state in self._gradients_now():
            if before.get(id(parameter)) != state:
                self._reached[id(parameter)] = state
                self._look_for_any(parameter)

    def _look_for_any(self, parameter: nn.Parameter) -> None:
        gradient = parameter.grad
        if self._was_any or gradient is None:
            return
        found = _any_of(gradient)
        if found is None:
            return
        if may_read(found):
            with own_operations():
                self._was_any = bool(found)
        else:
            self._perhaps_any = [*self._perhaps_any[1 - _MOST_ASKED :], found]

    def wants_graph(self, step: int) -> bool:
        """Whether the graph of the pass that begins is to be looked at."""
        return (
            self.is_open
            and self._passes == 1
            and self._graphs < len(_GRAPHS_AT)
            and step >= _GRAPHS_AT[self._graphs]
        )

    def look_at_latents(self, root: Any) -> None:
        """Where there are any, takes what they tell in the first pass of a step."""
        is_looked_at = self._outputs is not None and self._passes == 1
        if self._latents and is_looked_at and type(root) is torch.Tensor:
            self._informed = list(informed_by(root, self._latents))

    def look_at(self, root: torch.Tensor) -> Graph | None:
        """Tells what the graph of a loss shows, and returns it, not to be kept."""
        self._graphs += 1
        cosines = cosines_in(root)
        self._compares_directions = cosines == ONE_WAY
        self._is_of_compared = is_made_of_what_it_compares(root)
        owners = self._models.owners()
        if self._outputs is not None and self._outputs.returned:
            self._penalized = parameters_of_penalty(root, self._outputs.returned, owners)
            summed = summed_output(root, self._outputs.returned)
            if summed is not None:
                self._teller.fact("loss_sums_output", 1, self._outputs.places[summed])
        has_dropout = any(
            isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0 and module.training
            for model, _ in self._models.models()
            for module in model.modules()
        )
        graph = look_at_graph(root, owners, has_dropout)
        if graph is None:
            return None  # too large, or of a PyTorch that does not show it
        tell = self._teller.fact
        if is_made_of_raw_scores(root):
            tell("loss_is_raw_scores", 1)
        if cuts_off_raw_scores(root):
            tell("loss_cuts_off_raw_scores", 1)
        if graph.softmax_twice is not None:
            tell("softmax_twice", 1, graph.softmax_twice)
        if graph.sigmoid_twice is not None:
            place, fact = graph.sigmoid_twice
            tell(fact, 1, place)
        if cosines == AWAY:
            tell("loss_turns_away", 1)
        if lowers_overlap(root):
            tell("loss_lowers_overlap", 1)
        if lowers_signal_ratio(root):
            tell("loss_lowers_signal_ratio", 1)
        compared_by = ignores_seam(root)
        if compared_by is not None:
            tell("loss_ignores_seam", 1, compared_by)
        if has_policy(root):
            tell("loss_has_policy", 1)
        if is_lowered(root):
            tell("policy_is_lowered", 1)
        self._latents = graph.latents
        self.look_at_latents(root)
        if graph.repeated or graph.sequences:
            self._times = ThroughTime(graph.repeated, graph.sequences)
        if graph.written:
            self._returned = ReturnedGradients(graph.written)
        if graph.affine > 0:
            tell("affine_layers", graph.affine)
            place = graph.adjacent[0] if graph.adjacent else ""
            tell("adjacent_affine_layers", len(graph.adjacent), place)
            tell("is_linear", float(bool(graph.linear)), graph.linear)
        before, self._strangers = self._strangers, {}
        found: list[tuple[torch.Tensor, str]] = []
        outside: list[torch.Tensor] = []
        for leaf in graph.leaves:
            if id(leaf) in owners:
                continue
            place = self._holder(leaf)
            if not place:
                outside.append(leaf)
                continue
            if self._is_by_hand or not isinstance(leaf, nn.Parameter):
                # An input is another tensor each time, and what is changed by hand is trained.
                first = self._strangers[id(leaf)] = (leaf.data_ptr(), first_elements(leaf))
                if before.get(id(leaf)) != first:
                    continue
            found.append((leaf, place))
        if found:
            known = in_any_optimizer()
            found = [(leaf, place) for leaf, place in found if id(leaf) not in known]
        tell("unregistered_parameters", len(found), found[0][1] if found else "")
        if not self.is_for_a_model():
            self._left_out.graph_seen(outside, self._parameters())
        self._tell_copies(outside if len(outside) == len(graph.leaves) else [])
        return graph

    def is_for_a_model(self) -> bool:
        """Whether what is trained may be an input of models, which stay as they are: an image, say.

        It may be there to raise their loss.
        """
        return any(isinstance(model, OptimizedInputs) for model, _ in self._models.models())

    def _tell_copies(self, leaves: list[torch.Tensor]) -> None:
        """Of a graph that has no watched parameter: how many copies, trained by nobody, it has."""
        copies = copies_among(leaves, self._parameters())
        held = in_any_optimizer() if copies else set()
        count = 0 if any(id(copy) in held for copy in copies) else len(copies)
        if count > 0 or self._was_of_a_copy:
            self._teller.fact("loss_is_of_a_copy", count)
        self._was_of_a_copy = self._was_of_a_copy or count > 0

    def _holder(self, leaf: torch.Tensor) -> str:
        for model, prefix in self._models.models():
            found = guarded("holders", holder_of, leaf, model)
            if found:
                return f"{prefix}{found}"
        return ""

    def will_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        """The optimizer that drives the steps is about to: tells the facts of this one."""
        self._is_by_hand = False
        if not self.is_open:
            return
        self.is_open = False
        held = [p for p in parameters_of(optimizer) if p.requires_grad]
        if not self._told_fresh:
            self._told_fresh = True
            self._tell_fresh(held)
        reached = self._tell_gradients(optimizer, held)
        self._tell_passes()
        self._tell_values()
        self.slopes.tell()
        self.added_numbers.tell()
        if self._passes > 0:
            self.modes.tell(held, self._reached)
        self._left_out.tell(self._parameters(), self._reached, self.modules, step)
        self._tell_calls(held, optimizer, reached)

    def ends_by_hand(self) -> None:
        """A step ends that no optimizer made."""
        self._is_by_hand = True
        if not self.is_open:
            return
        self.is_open = False
        self._tell_values()
        self.slopes.tell()
        self.added_numbers.tell()
        if self._passes > 0:
            self.modes.tell([], self._reached)
        if self._reached:  # torch.autograd.grad leaves no trace in a parameter
            held: list[torch.Tensor] = [p for p in self._parameters() if p.requires_grad]
            self._tell_calls(held, None, set(self._reached))

    # What was changed by backward.

    def _parameters(self) -> Iterator[nn.Parameter]:
        for watched in self._watched:
            parameter = watched()
            if parameter is not None:
                yield parameter

    def _gradients_now(self) -> Iterator[tuple[nn.Parameter, _State]]:
        for parameter in self._parameters():
            gradient = parameter.grad
            if gradient is not None:
                yield parameter, (id(gradient), version_of(gradient))

    def _gradients(self) -> dict[int, _State]:
        return {id(parameter): state for parameter, state in self._gradients_now()}

    def _tell_gradients(
        self, optimizer: torch.optim.Optimizer, held: list[torch.Tensor]
    ) -> set[int]:
        """Tells how many parameters of the optimizer were reached, and if they still are."""
        reached: set[int] = set()
        asked = _Asked()
        watched = self._models.owners()
        for parameter in held:
            gradient = parameter.grad
            was = self._reached.get(id(parameter))
            if was is not None or (gradient is not None and id(parameter) not in watched):
                reached.add(id(parameter))
            if gradient is None:
                continue
            now = (id(gradient), version_of(gradient))
            if was == now:
                asked.is_any = True  # as backward left it
            elif was is not None or now != self._before.get(id(parameter)):
                # Set or changed by something else than a backward pass: a clip, zero_grad, by hand.
                asked.look(gradient)
                if was is None:
                    asked.settle()
                    if asked.is_any:
                        reached.add(id(parameter))
            elif self._passes == 0:
                asked.look(gradient)
        tell = self._teller.fact
        tell("backward_passes", self._passes)
        if not type(optimizer).__module__.startswith("torch.optim") and self._passes == 0:
            return reached  # it may do without gradients
        tell("parameters_held", len(held))
        tell("parameters_reached", len(reached))
        if not reached and held and id(held[0]) in watched:
            elsewhere = sum(key not in reached for key in self._reached)
            tell("parameters_reached_elsewhere", elsewhere, watched[id(held[0])].module)
        is_there = any(parameter.grad is not None for parameter in held)
        # They may be zero as backward left them.
        left = self._perhaps_any if reached and is_there else []
        self._tell_any(asked, left, is_alike=bool(reached) and is_there and not self._was_any)
        return reached

    def _tell_any(self, asked: _Asked, left: list[torch.Tensor], *, is_alike: bool) -> None:
        """Tells whether a gradient is not zero, or all are as backward left them.

        `left`: whether one was not that backward left; `is_alike`: none other was.
        """

        def told(values: list[torch.Tensor]) -> None:
            now, before = values[: len(asked.later)], values[len(asked.later) :]
            is_any = asked.is_any or any(map(bool, now))
            is_any = is_any or (is_alike and not any(map(bool, before)))
            self._teller.fact("gradients_at_step", float(is_any))

        if asked.is_any:
            self._teller.fact("gradients_at_step", 1.0)
        else:
            self._teller.later.ask("loop", [*asked.later, *left], told)

    def _tell_passes(self) -> None:
        """Tells what backward was called on, where that was a loss function's value."""
        if self._penalized is not None and self._passes == 1:
            self._teller.fact("loss_is_of_weights_alone", self._penalized)
        calls = max(self._calls_of.values(), default=0)
        if calls > self._passes > 0:
            self._teller.fact("calls_of_one_loss", calls / self._passes)
        roots = [root for root in self._roots if root.is_known]
        if not roots or len(roots) != len(self._roots):
            return
        tell = self._teller.fact
        first = roots[0]
        is_told = all(root.tells_sign and root.sign != 0 for root in roots)
        if is_told and not self.is_for_a_model():
            tell("loss_sign", roots[0].sign if len({r.sign for r in roots}) == 1 else 0, first.name)
        if len(roots) > 1:
            follow = all(
                root.number != other.number and root.labels != other.labels
                for root, other in itertools.pairwise(roots)
            )
            alike = all(r.name == first.name and r.is_mean and r.is_undivided for r in roots)
            is_told = follow and alike and self._adds_up and not self._retained
            # Losses that are computed in several lines, or of several heads, are several terms.
            is_told = is_told and len(self._lines) == len(self._heads) == 1
            tell("undivided_passes", len(roots) if is_told else 0)

    def _tell_directions(self, given: list[Given]) -> None:
        """Of what the first layer is given, and where fewest of them are left.

        What the last layer is given is left out: there as many directions stay as are asked for.
        """
        tell = self._teller.fact
        if given:
            tell("input_directions", given[0].directions)
            self._tell_zeros(given[0])
        hidden = [one for one in given[1:-1] if one.units >= _FEWEST_UNITS]

        def told(directions: list[float]) -> None:
            fewest = min(directions)
            of = hidden[directions.index(fewest)]
            for name, module in self.modules().items():
                if module is of.layer:
                    tell("given_directions", fewest, name)
                    tell("given_units", of.units, name)

        if hidden:
            self._teller.later.ask_numbers("loop", [one.directions for one in hidden], told)

    def _tell_zeros(self, first: Given) -> None:
        """Of what the first layer is given, beside what it was given in evaluations so far."""
        evaluated = self.given_in_evaluation.zeros_of(first.layer)
        if first.zeros is None or not evaluated:
            return
        names = [name for name, module in self.modules().items() if module is first.layer]

        def told(zeros: list[float]) -> None:
            for name in names:
                self._teller.fact("given_zeros_in_evaluation", sum(zeros) / len(zeros), name)

        for name in names:
            self._teller.fact("given_zeros", first.zeros, name)
        self._teller.later.ask_numbers("loop", evaluated, told)

    def _tell_values(self) -> None:
        """Tells what was seen of outputs, batch norms and gradients."""
        tell = self._teller.fact
        if any(capturing_graph(parameter) for parameter in itertools.islice(self._parameters(), 1)):
            return
        tell("scaled_passes", self._scaled)
        if self._samples > 0:
            tell("samples_of_loss", self._samples)
        if self._terms > 0:
            tell("loss_is_summed", self._terms)
        if self._target_is_made:
            tell("target_has_gradient", 1)
        if self._compared_to_itself and self._is_of_compared and self._passes == 1:
            tell("compared_to_itself", 1)
        if self._times is not None:
            for place, first, last, uses in self._times.ends():
                self._tell_through_time(place, first, last, uses)
        if self._returned is not None:
            for function, times in self._returned.astray():
                tell("gradient_gone_astray", times, function)
        if self._outputs is not None:
            for spread in self._outputs.spreads():
                tell("output_deviation", spread.deviation, spread.place + spread.suffix)
                tell("output_size", spread.size, spread.place + spread.suffix)
                tell("output_directions", spread.directions, spread.place + spread.suffix)
                tell("output_units", spread.units, spread.place + spread.suffix)
                if self._compares_directions or self._is_of_cosines:
                    tell("output_turn", spread.turn, spread.place + spread.suffix)
            self._tell_directions(self._outputs.given())
            if (given := self._outputs.given_size()) is not None:
                tell("input_given_size", given)
            branch = self._outputs.branch()
            if branch is not None:
                for name, module in self.modules().items():
                    if module is branch.layer:
                        tell("branch_deviation", branch.deviation, name)
                        tell("branch_size", branch.size, name)
            if self._outputs.looked_up:
                for name, module in self.modules().items():
                    rows = self._outputs.looked_up.get(id(module))
                    if rows is not None:
                        tell("rows_in_order", rows.in_order, name)
                        if rows.is_one_each:
                            tell("rows_one_each", 1, name)
                        self._fields.look(module, name, rows.highest)
            if self._outputs.target is not None:
                tell("target_deviation", self._outputs.target)
            for known in self._informed:
                tell("latent_information", known.nats, known.place)
                tell("latent_variables", known.variables, known.place)
                if known.is_beside_learned:
                    tell("latent_prior_is_learned", 1, known.place)
                if known.deviation is not None:
                    tell("latent_deviation", known.deviation, known.place)
        if self._norms is not None and (standing := self._norms.standing()):
            tell("norm_standing", 1, standing)
        gap = self._norms.gap() if self._norms is not None and self._passes == 1 else None
        if gap is not None:
            tell("norm_gap", gap.size, gap.place)
            tell("norm_momentum", gap.momentum, gap.place)
            tell("norm_start_left", gap.left, gap.place)
            if gap.is_of_all:
                tell("norm_of_all_batches", 1, gap.place)
        noise = self._norms.noise() if self._norms is not None and self._passes > 1 else None
        if noise is not None:
            tell("norm_noise", *noise)

    def _tell_through_time(
        self, place: str, first: list[torch.Tensor], last: list[torch.Tensor], uses: int
    ) -> None:
        """Of a layer: the norms of the gradients of its first uses, and of its last ones."""

        def told(norms: list[float]) -> None:
            begin, end = max(norms[: len(first)]), max(norms[len(first) :])
            if end > 0:
                self._teller.fact("gradient_through_time", begin / end, place)
                self._teller.fact("uses_in_time", uses, place)

        self._teller.later.ask_numbers("loop", [*first, *last], told)

    def _tell_fresh(self, held: list[torch.Tensor]) -> None:
        """Tells whether the largest matrices that are to be trained are as they were drawn."""
        ours = {id(parameter) for parameter in held}
        matrices = [
            (module, name, parameter)
            for module in self.modules().values()
            for name, parameter in module.named_parameters(recurse=False)
            if id(parameter) in ours and parameter.dim() >= 2
        ]
        largest = heapq.nlargest(_MOST_FRESH, matrices, key=lambda found: number_of(found[2]))

        def told(fresh: list[bool | None]) -> None:
            self._teller.fact("trained_are_fresh", float(True in fresh and False not in fresh))

        ask_fresh(self._teller.later, largest, told)

    def modules(self) -> dict[str, nn.Module]:
        """All modules of the watched models, by the names that facts use."""
        return {
            prefix + path if path else prefix.rstrip(".") or "model": module
            for model, prefix in self._models.models()
            for path, module in model.named_modules()
        }

    def _tell_calls(
        self,
        held: list[torch.Tensor],
        optimizer: torch.optim.Optimizer | None,
        reached: set[int],
    ) -> None:
        """Tells which modules run and stay untrained: detached from the loss, or frozen."""
        if new := reached - self._ever_reached:
            there = itertools.chain(self._parameters(), held)
            self._ever_reached.remember(p for p in there if id(p) in new)
        is_missing = bool(reached) and any(id(p) not in self._ever_reached for p in held)
        mine: Places = [
            (path, module, own)
            for path, module in self.modules().items()
            if (own := list(module.named_parameters(recurse=False)))
        ]
        self._tell_said_to_train()
        self._tell_frozen_group()
        if reached:
            self._untrained.tell_zeros(mine, reached)
        if not is_missing and all(p.requires_grad for p in self._parameters()):
            self._wants_calls = False
            self._teller.fact("detached_modules", 0)
            self._teller.fact("frozen_fresh_modules", 0)
            self._untrained.tell(mine, set(), set(), None, self._ever_reached)
            self._untrained.tell_parts([], self._ever_reached)
            return
        in_optimizer = {id(parameter) for parameter in held}

        def is_missed(own: list[tuple[str, nn.Parameter]]) -> bool:
            """None of a module's parameters that are to be trained ever had a gradient."""
            trained = [p for _, p in own if p.requires_grad and id(p) in in_optimizer]
            return bool(trained) and not any(
                id(p) in self._ever_reached or (optimizer is not None and optimizer.state.get(p))
                for p in trained
            )

        missed = [path for path, _, own in mine if reached and is_missed(own)]
        parts = [
            (f"{path}.{name}", module, [(name, p)])
            for path, module, own in mine
            if reached and any(id(p) in self._ever_reached for _, p in own)
            for name, p in own
            if is_missed([(name, p)])
        ]
        self._untrained.tell_parts(parts, self._ever_reached)
        calls = self._calls
        order = {} if calls is None else calls.order

        def told(frozen: set[str]) -> None:
            self._wants_calls = bool(missed or frozen)
            self._tell_frozen(frozen, mine, order)

        self._frozen.ask(mine, self._ever_reached, told)
        if calls is None or not order:
            if not missed:
                self._teller.fact("detached_modules", 0)
            self._untrained.tell(mine, set(missed), self._first, None, self._ever_reached)
            return
        by_id = {id(module): (path, own) for path, module, own in mine}
        before: list[tuple[str, bool, bool | None]] = []
        has_later = False
        for key, had_gradients in order.items():
            if key not in by_id:
                continue
            path, own = by_id[key]
            if not any(p.requires_grad and id(p) in in_optimizer for _, p in own):
                continue
            if self._untrained.is_set_elsewhere(path):
                continue
            if not is_missed(own):
                has_later = True
                break
            module = self.modules().get(path)
            if module is not None and any(id(p) in self._ever_reached for p in module.parameters()):
                continue  # it runs around what is trained, not before
            fresh = are_fresh([(module, name, p) for name, p in own])
            known = [is_it for is_it in fresh if is_it is not None]
            before.append((path, had_gradients, any(known) if known else None))
        if not has_later:
            before = []
        meant = bool(before) and all(
            not had_gradients and fresh is False for _, had_gradients, fresh in before
        )
        self._teller.fact("detached_modules", len(before), before[0][0] if before else "")
        self._teller.fact("detached_modules_loaded", float(meant))
        self._first = {path for path, _, _ in before}
        self._untrained.tell(mine, set(missed), self._first, calls, self._ever_reached)

    def _tell_said_to_train(self) -> None:
        """Of modules whose attribute `requires_grad` says what none of their parameters does."""
        found = self._said_to_train.find(self.modules())
        if found:
            self._teller.fact("said_to_train", len(found), found[0].place)
            self._teller.fact("said_to_train_parameters", found[0].parameters)
        elif self._is_said:
            self._teller.fact("said_to_train", 0)
        self._is_said = bool(found)

    def _tell_frozen_group(self) -> None:
        """Of an optimizer's group that has nothing to train."""
        group = self._frozen_groups.find(self._models.optimizers(), self.modules())
        if group is not None:
            self._teller.fact("frozen_group", group.parameters, group.place)
        elif self._is_group_frozen:
            self._teller.fact("frozen_group", 0)
        self._is_group_frozen = group is not None

    def _tell_frozen(self, frozen: set[str], places: Places, order: dict[int, bool]) -> None:
        """Of modules that stay as they were initialised. `order`: as `Calls` has it."""
        if not order:
            if not frozen:
                self._teller.fact("frozen_fresh_modules", 0)
            return
        run = {
            path: own for path, module, own in places if path in frozen and order.get(id(module))
        }
        self._teller.fact("frozen_fresh_modules", len(run), next(iter(run), ""))
        if run:
            owned = self._left_out.held()
            is_held = [all(id(p) in owned for _, p in own) for own in run.values()]
            self._teller.fact("frozen_fresh_held", sum(is_held))
            in_part = [any(p.requires_grad for _, p in own) for own in run.values()]
            self._teller.fact("frozen_fresh_biased", sum(in_part))
        elif frozen:
            self._teller.fact("frozen_fresh_uncalled", len(frozen))
