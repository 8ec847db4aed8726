"""What is told of the loop, of its data and of sequences, where the collection `loop` is due.

Each kind of fact has an observer in a file of its own; here is which of them hears of which moment
of a step, and when it is asked.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import TYPE_CHECKING, Any

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.data.channels import ChannelOrder
from traindbg.hooks.torch.data.columns import COLUMNS, Look, is_table
from traindbg.hooks.torch.data.hazards import HazardObserver
from traindbg.hooks.torch.data.loaders import (
    OF_TWO,
    batches_in_storage,
    missed_labels,
    places_in_containers,
    sizes,
)
from traindbg.hooks.torch.data.neighbours import Neighbours
from traindbg.hooks.torch.data.own_labels import share_of_others
from traindbg.hooks.torch.data.own_statistics import OwnStatistics
from traindbg.hooks.torch.data.own_tokens import LOOKS, own_tokens
from traindbg.hooks.torch.data.random_numbers import RandomStates
from traindbg.hooks.torch.data.rows import Rows
from traindbg.hooks.torch.data.sequences import SequenceObserver
from traindbg.hooks.torch.data.states import Cells, OwnResults
from traindbg.hooks.torch.evaluations.averages import Averages
from traindbg.hooks.torch.evaluations.copies import Copies, Found
from traindbg.hooks.torch.evaluations.modes import Forgotten, modes
from traindbg.hooks.torch.evaluations.module_modes import strongest_dropout
from traindbg.hooks.torch.evaluations.unsaid import WATCHED as DROPOUTS
from traindbg.hooks.torch.evaluations.unsaid import UnsaidModes, share_dropped
from traindbg.hooks.torch.evaluations.written import WrittenEvaluations
from traindbg.hooks.torch.losses.beside import LossesBeside
from traindbg.hooks.torch.losses.detached import LossesDetached
from traindbg.hooks.torch.losses.discounted import discounts_rewards
from traindbg.hooks.torch.losses.held import GraphsHeld
from traindbg.hooks.torch.losses.margins import are_changed_by_data
from traindbg.hooks.torch.probes.mixing import MixingObserver
from traindbg.hooks.torch.probes.probe import Probes
from traindbg.hooks.torch.recording.loop import LoopObserver
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.text.called import called
from traindbg.hooks.torch.text.program import text_says
from traindbg.hooks.torch.text.rounds import rounds
from traindbg.hooks.torch.updates.clips import Clips
from traindbg.hooks.torch.updates.foreign import NOTHING_LEFT, ForeignGradients
from traindbg.hooks.torch.updates.frozen_turns import FrozenTurns
from traindbg.hooks.torch.updates.kept import KeptGradients
from traindbg.hooks.torch.updates.left_behind import LeftBehind
from traindbg.hooks.torch.updates.left_out import in_any_optimizer
from traindbg.hooks.torch.updates.masters import masters_of
from traindbg.hooks.torch.updates.reductions import Reductions
from traindbg.hooks.torch.updates.schedules import schedules
from traindbg.hooks.torch.updates.unstepped import Unstepped

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch.base.parameters import Parameters
    from traindbg.hooks.torch.base.tensors import Tensors
    from traindbg.hooks.torch.base.unseen import Unseen
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.data.channels import Channels
    from traindbg.hooks.torch.data.own_statistics import Own
    from traindbg.hooks.torch.data.rows import InTrainingMode, Unscored
    from traindbg.hooks.torch.labels.loader_labels import LoaderLabels
    from traindbg.hooks.torch.labels.tensor_labels import TensorLabels
    from traindbg.hooks.torch.losses.compared import WrittenOut

_TRAIN = _core.TRAIN
_EVAL = _core.EVAL
_LOOP = _core.ROLE_BITS["loop"]
_OF_CLASSES = ("cross_entropy", "nll_loss")
_STEPS_UNTIL_LEARNED = 50
_STEPS_READ = 100  # in which the program's text is asked whether it teaches an agent
_MOST_KEPT_VALUES = 4_000_000  # of an input that its step keeps
_MILD_DROPOUT = 0.3  # a model that drops more is not asked which labels it contradicts
_EARLY = 0.8  # of the rounds that were planned
_WHOLE_EPOCHS = 3  # two of them are over, so that a schedule should have been stepped


def _gives_scores(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a loss function is given a score for each class of each row, or one for two."""
    given = args[0] if args else kwargs.get("input")
    if name in OF_TWO:  # of rows where there are as many labels, which is looked at later
        return True
    return name in _OF_CLASSES and isinstance(given, torch.Tensor) and given.dim() == 2


def _is_part_of(part: torch.Tensor, whole: torch.Tensor) -> bool:
    """Whether the two lie in one memory."""
    try:
        return bool(part.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr())
    except (RuntimeError, NotImplementedError):  # of layouts, or of transforms, that have none
        return False


def _trains_nothing(value: Any) -> bool:
    """Whether nothing can be trained by a loss function's value: it has no graph.

    Many compute only the predictions of an evaluation under `no_grad`, and their loss after it.
    """
    return not (isinstance(value, torch.Tensor) and value.requires_grad)


class Facts:
    """One per recording. Owns the observers, and the input of the step under way."""

    def __init__(
        self,
        tensors: Tensors,
        watched: WatchedModels,
        hot: _core.HotPath,
        unseen: Unseen,
        loader_labels: LoaderLabels,
        tensor_labels: TensorLabels,
        compares_labels: Callable[[], bool],
    ) -> None:
        """`compares_labels`: whether those of this step are compared with the model's input."""
        self.are_followed = False  # the plan asks for them, at some steps
        self._tensors = tensors
        self._watched = watched
        self._hot = hot
        self.loop = LoopObserver(tensors, watched, hot)
        self.loader_labels = loader_labels
        self.tensor_labels = tensor_labels
        self.kept = KeptGradients()
        self.foreign = ForeignGradients()
        self.turns = FrozenTurns()
        self.clips = Clips(tensors)
        self.random = RandomStates()
        self.reductions = Reductions()
        self.sequences = SequenceObserver()
        self.probes = Probes(tensors, watched, hot, unseen, self.sequences)
        self.hazards = HazardObserver()
        self.cells = Cells()
        self._own_results = OwnResults()
        self.mixing = MixingObserver()
        self.unsaid = UnsaidModes()
        self.unstepped = Unstepped()
        self.left_behind = LeftBehind()
        self._averages = Averages(watched)
        self._asked_masters = False
        self._copies = Copies(watched, hot, self._copy_called)
        self._copy: Found | None = None  # was called, and no loss was heard yet
        self._calls_at_loss: dict[str, int | None] = {}  # of watched models, by the loss function
        self._evaluated_another = -1  # steps made when something else was evaluated
        self._dropped = 0.0  # by a function, the largest share of values
        self.forgotten = Forgotten(watched)
        self._rows = Rows()
        loader_labels.are_trained = tensor_labels.are_trained = self._rows.are_trained
        self._own_statistics = OwnStatistics(self._rows)
        self._channels = ChannelOrder()
        self._neighbours = Neighbours()
        self._own_tokens = 0  # steps that were looked at
        self._held = GraphsHeld()
        self.written = WrittenEvaluations(hot, patches.listen_to_numbers)
        self._beside = LossesBeside(tensors, watched)
        self._detached = LossesDetached(tensors, watched)
        self._input: weakref.ref[torch.Tensor] | None = None  # of the step under way
        self._compares_labels = compares_labels
        # That input itself, until labels are compared with it or the step is over: of
        # `model(x[rows])` nothing may be left when the loss is computed.
        self._kept_input: torch.Tensor | None = None
        self._last_input: weakref.ref[torch.Tensor] | None = None  # when it was looked at last
        self._last_shape = torch.Size()  # its shape
        self._is_table, self._compared = False, 0  # what the labels are compared with; its number
        self._further_table: tuple[weakref.ref[torch.Tensor], int] | None = None  # behind series
        self._places: int | None = None  # of that in containers, where it was given twice

    def forget(self) -> None:
        """What was remembered of data, losses and evaluations is of another training or models."""
        self._kept_input = None
        self._rows.forget()
        self._own_statistics.forget()
        self._channels.forget()
        self._neighbours.forget()
        self._own_tokens = 0
        self.random.forget()
        self.turns.forget()
        self.unsaid.forget()
        self.loop.forget()
        self._averages.forget()
        self._asked_masters = False
        self._copies.forget()
        self._copy = None
        self._calls_at_loss = {}
        self._evaluated_another = -1
        self._asked_before: int | None = None
        self.written.forget()
        self._beside.forget()
        self._detached.forget()
        self._last_shape = torch.Size()
        self.loader_labels.forget()
        self.tensor_labels.forget()
        self.probes.forget()
        self.sequences.forget()
        self.hazards.forget()
        self.cells.forget()
        self._own_results.forget()
        self.mixing.forget()
        modes.clear()
        self.forgotten.forget()
        self._dropped = 0.0

    def clear(self) -> None:
        """Drops everything."""
        self.written.end()
        self.loop.clear()
        self.kept.clear()
        self.foreign.clear()
        self.forget()
        self.loader_labels.end()
        self.tensor_labels.end()
        self.sequences.clear()
        self.hazards.clear()
        self.mixing.clear()
        self._held.clear()
        self.left_behind.end()

    # A forward pass.

    def forward_begins(self, model: torch.nn.Module) -> None:
        """A forward pass of the training is looked at from now on: `model` is called."""
        is_alone = len(self._watched.watchers) == 1 and not self._watched.companions
        self.sequences.begin(bool(self._hot.due & _LOOP), model, is_alone)
        self.hazards.begin(bool(self._hot.due & _LOOP))
        self.cells.begin(bool(self._hot.due & _LOOP))
        self.mixing.begin(bool(self._hot.due & _LOOP))
        self.probes.forward_begins(model)

    def evaluation_begins(self, model: torch.nn.Module) -> bool:
        """A forward pass of an evaluation; whether more than its inputs is to be looked at."""
        if not self.are_followed:
            return False
        return bool(guarded("unsaid", self._listen_to_modes, model))

    def _listen_to_modes(self, model: torch.nn.Module) -> bool:
        if self.unsaid.is_over(self._hot.steps):
            self.tell_unsaid(others=1)
        is_open = self.unsaid.begins(model, self._hot.steps)
        if is_open and len(self._watched.watchers) == 1:
            self.loop.given_in_evaluation.listen(model)
        return is_open

    def dropout_called(self, function: Any, args: Any, kwargs: Any) -> None:
        """A function that may drop values was called in a forward pass of the training."""
        if function in DROPOUTS:
            self._dropped = max(self._dropped, share_dropped(function, args, kwargs))

    def called_again(self) -> None:
        """The model is called again before the step ends, which is not looked at."""
        self._neighbours.called_again()
        self.probes.called_again()
        self._rows.called_again()

    def input_given(self, mode: int, number: int, tensor: torch.Tensor) -> None:
        """The model is given its input number `number`."""
        if self.are_followed:
            guarded("rows", self._look_at_rows, mode, number, tensor)
        mixing = self.mixing
        if mode == _TRAIN and self._hot.due & _LOOP:
            if mixing.is_open or mixing.wants_rows:
                guarded("mixing", mixing.input_given, number, tensor)
            if tensor.requires_grad or self._own_results.has(tensor):
                self._tensors.fact("input_is_computed", 1, str(number))
        if mode == _TRAIN and number == 0 and self.probes.is_wanted:
            guarded("probes", self.probes.input_given, tensor)
        if mode == _EVAL and number == 0:
            guarded("loop", self.loop.modes.called_in_evaluation)
            guarded("unsaid", self.unsaid.given, tensor, self._hot.steps, self._tensors.later)
        if mode == _TRAIN and self._hot.due & _LOOP and len(self._watched.watchers) == 1:
            guarded("neighbours", self._neighbours.given, number, tensor)
        if number == 0 and mode == _TRAIN and self._hot.due & _LOOP:
            held = batches_in_storage(tensor)
            self._tensors.tell("batches_in_storage", held)
            self._tensors.tell("batches_in_loader", sizes.batches)
            if sizes.stream_workers > 1:
                self._tensors.tell("stream_workers", sizes.stream_workers)
            for place, (weight, rows) in enumerate(sizes.weights_to_tell()):
                self._tensors.tell(f"drawn_weight/{place}", weight)
                self._tensors.tell(f"drawn_weight_rows/{place}", rows)
            if self._last_input is not None:
                is_kept = self._last_input() is tensor  # the very same, made once
                self._tensors.tell("input_is_kept", float(is_kept))
                if not is_kept:
                    self._places = None
                elif self._places is None:
                    self._places = places_in_containers(tensor)
                self._tensors.tell("input_in_containers", self._places or 0)
            self._input = self._last_input = weakref.ref(tensor)
            self._keep(tensor)
            self._last_shape = tensor.shape
            self._is_table, self._compared = is_table(tensor), 0
            self._further_table = None
        elif mode == _TRAIN and self._hot.due & _LOOP and not self._is_table and is_table(tensor):
            self._input, self._is_table, self._compared = weakref.ref(tensor), True, number
            self._keep(tensor)
        elif mode == _TRAIN and self._hot.due & _LOOP and self._further_table is None:
            is_behind_series = len(self._last_shape) == 3 and tensor.dim() == 2
            if is_behind_series and is_table(tensor) and tensor.shape[1] > 1:
                self._further_table = weakref.ref(tensor), number

    def _keep(self, tensor: torch.Tensor) -> None:
        is_small = tensor.numel() <= _MOST_KEPT_VALUES and not tensor.requires_grad
        may_be_kept = is_small and self._compares_labels() and not capturing_graph(tensor)
        self._kept_input = tensor if may_be_kept else None

    def _look_at_rows(self, mode: int, number: int, tensor: torch.Tensor) -> None:
        if mode == _TRAIN:
            self.sequences.input_given(tensor)
        if number > 0 or len(self._watched.watchers) != 1:
            if mode == _TRAIN:
                self._rows.further_input(tensor)
            elif number > 0:
                self._rows.further_given(tensor)
            return
        if mode == _TRAIN:
            batches = max(batches_in_storage(tensor), float(sizes.batches))
            self._rows.trained(tensor, batches, sizes.drawing, self._hot.steps)
            guarded("own statistics", self._own_statistics.trained, tensor)
            guarded("channels", self._channels.trained, tensor)
            self._hot.has_deferred = self._hot.has_deferred or self._rows.wait
        else:
            models = [watcher.model for watcher in self._watched.watchers]
            trained = [model for model in models if model is not None and model.training]
            is_evaluation = not trained
            self.forgotten.model_called(trained[0] if trained else None, tensor, self._hot.steps)
            is_held_out = is_evaluation and bool(guarded("called", called.is_held_out))
            self._rows.given(tensor, is_evaluation, self._hot.steps, is_held_out=is_held_out)
            guarded("own statistics", self._own_statistics.given, tensor, self._hot.steps)
            if is_evaluation:
                guarded("channels", self._channels.given, tensor, self._hot.steps)

    def model_returned(self, output: Any) -> None:
        """In training."""
        if self._hot.due & _LOOP:  # else no backward pass is heard of
            guarded("graphs", self._held.returned, self._hot.steps, output)
            guarded("states", self._own_results.returned, output)

    def companion_called(self, model: torch.nn.Module) -> None:
        """In an evaluation."""
        if self.are_followed:
            self.forgotten.part_called(model, self._hot.steps)

    # Losses and backward passes.

    def loss_computed(
        self, mode: int, name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """In training or in an evaluation, by a loss function."""
        labels = args[1] if len(args) > 1 else kwargs.get("target")
        if mode == _TRAIN:
            guarded("loader labels", self.loader_labels.trained_by, name, args, kwargs)
            guarded("tensor labels", self.tensor_labels.trained_by, name, args, kwargs)
            self.loop.loss_computed(name, value, args, kwargs)
            guarded("graphs", self._held.loss_computed, self._hot.steps, value)
            guarded("losses beside", self._beside.loss_computed, value)
            rows = self.loop.rows_returned()
            guarded("detached", self._detached.loss_computed, name, value, args, kwargs, rows)
            guarded("sequences", self.sequences.loss_computed, args, kwargs)
            if self.mixing.is_open:
                guarded("mixing", self.mixing.loss_computed, args, kwargs)
            if self.probes.is_open:
                guarded("probes", self.probes.loss_computed, args, kwargs)
            guarded("rows", self._rows.labelled, labels, _gives_scores(name, args, kwargs))
            guarded("neighbours", self._ask_neighbours, name, labels)
            guarded("own labels", self._tell_own_labels, name, args, kwargs, labels)
        elif _trains_nothing(value) and (
            self._may_be_of_a_watched_model() or self._rows.waits_for(labels)
        ):
            if not self.tensor_labels.computes_late:
                self.loop.evaluated(args, kwargs)
            self._rows.evaluated(labels)
            self._hot.has_deferred = self._hot.has_deferred or self._rows.wait
        elif _trains_nothing(value):
            guarded("copies", self._tell_copy, args, kwargs)
        elif torch.is_grad_enabled():
            guarded("graphs", self._held.loss_computed, self._hot.steps, value)
        if mode == _TRAIN or _trains_nothing(value):
            guarded("labels", self._take_missed, mode, name, args, kwargs)

    def _tell_copy(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Of a loss without gradients, of no watched model: whether a copy in training mode ran."""
        found = self._copies.evaluated()
        self._copy = None
        if found is not None:
            self._rows.drop_waiting()
            self.loop.evaluated_copy(found.modules, found.place, args, kwargs)

    def _copy_called(self, copy: Found, given: Any) -> None:
        """A copy in training mode is called without gradients; of what, tells what it is for."""
        if len(self._watched.watchers) == 1 and isinstance(given, torch.Tensor):
            self._copy = copy
            self._rows.given(given, False, self._hot.steps, to_a_copy=True)

    def target_computed(self, loss: WrittenOut) -> None:
        """Of a loss of the training that calls no function, when its backward pass begins."""
        guarded("sequences", self.sequences.target_known, loss.target, loss.margin)
        given = (loss.prediction, loss.target)
        if self.mixing.is_open:
            guarded("mixing", self.mixing.loss_computed, given, {})
        if self.probes.is_open:
            guarded("probes", self.probes.loss_computed, given, {})
        guarded("neighbours", self._ask_neighbours, loss.function, loss.target)

    def tell_own_tokens(self, root: torch.Tensor) -> None:
        """Whether the loss asks a model of a language for the tokens that it is given."""
        if self._own_tokens < LOOKS:
            self._own_tokens += 1
            are_own = own_tokens(root)
            if are_own is not None:
                self._tensors.tell("own_tokens", are_own.to(torch.float32))

    def _ask_neighbours(self, name: str, labels: Any) -> None:
        told = self._neighbours.labelled(name, labels)
        if told is not None:
            for fact, value in told._asdict().items():
                self._tensors.tell(fact, value)

    def _tell_own_labels(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], labels: Any
    ) -> None:
        """Whether predictions fit their own masks better than others, once something is known."""
        given = self._last_shape
        if self._hot.steps < _STEPS_UNTIL_LEARNED or len(given) != 4:
            return
        if len(args) > 1 and all(weights is None for weights in args[2:]):
            share = share_of_others(name, args[0], labels, kwargs, given[0])
            if share is not None:
                self._tensors.tell("own_labels_share", share)

    def _take_missed(
        self, mode: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        """How many labels are not what is predicted, where nothing random is done to the model."""
        given = args[0] if args else kwargs.get("input")
        labels = args[1] if len(args) > 1 else kwargs.get("target")
        if isinstance(labels, torch.Tensor) and capturing_graph(labels):
            return
        of_modules = (strongest_dropout(model) for model, _ in self._watched.models())
        dropout = max([self._dropped, *of_modules])
        if dropout > _MILD_DROPOUT:
            return
        found = missed_labels(name, given, labels)
        if found is None or (mode == _TRAIN and are_changed_by_data(given)):
            return
        number, missed, mean = found
        if dropout > 0:
            self._tensors.fact("labels_dropout", dropout, evaluation=mode == _EVAL)
        self._tensors.fact("labels_counted", number, evaluation=mode == _EVAL)
        self._tensors.take_scalar(mode, self._tensors.id_of("loop/labels_missed", "loop"), missed)
        self._tensors.take_scalar(mode, self._tensors.id_of("loop/labels_mean", "loop"), mean)

    def _may_be_of_a_watched_model(self) -> bool:
        """Of a loss without gradients: another's, if each watched model would be seen and none was.

        Such as the mean of the weights (SWA, EMA), or a teacher.
        """
        may_be = False
        for watcher in self._watched.watchers:
            observer = watcher._observer
            if observer is None:
                continue
            outside = observer.calls - observer.calls_in_training
            is_blind = not observer.armed or observer.calls_in_training == 0
            may_be = may_be or is_blind or outside != watcher._calls_outside
            watcher._calls_outside = outside
        return may_be

    def evaluated(self, name: str) -> None:
        """A loss of an evaluation was computed by a function."""
        self.loader_labels.evaluated()
        self.tensor_labels.evaluated()
        calls = self._calls()
        if calls is not None and self._calls_at_loss.get(name) == calls:
            self._evaluated_another = self._hot.steps
        self._calls_at_loss[name] = calls
        self.random.evaluated()
        if rounds.since != self._hot.steps and not self.tensor_labels.computes_late:
            guarded("rounds", rounds.evaluates, self._hot.steps)

    @property
    def hears_written(self) -> bool:
        """Whether evaluations may have a loss that is written out."""
        return self.are_followed and self.written.listens

    @property
    def computes(self) -> bool:
        """Whether losses that are heard now are our own, of labels beside what is evaluated."""
        return self.loader_labels.computes or self.tensor_labels.computes

    def evaluated_in_writing(self, name: str) -> None:
        """The same, by plain arithmetic."""
        self.evaluated(name)
        if self._may_be_of_a_watched_model():
            self._rows.evaluated()
            self._hot.has_deferred = self._hot.has_deferred or self._rows.wait

    def look_at_random(self) -> None:
        """Training goes on after an evaluation: whether random numbers were set back there."""
        count = self.random.trained()
        if count is not None:
            self._tensors.tell("random_numbers_set_back", count, always=True)

    def compare_with_input(self, label: torch.Tensor, is_computed: bool = False) -> None:
        """Whether a column of the model's input says what the label is.

        Where there is one label for each row, of a table behind series rather than of these.
        `is_computed`: labels that the model is given, too, could not be told by where they lie.
        """
        given, self._input = self._input, None
        tensor = None if given is None else given()
        self._kept_input = None
        further, self._further_table = self._further_table, None
        if further is not None and tensor is not None and not is_computed:
            table = further[0]()
            is_labelled = table is not None and label.numel() == table.shape[0]
            if table is not None and is_labelled and not _is_part_of(label, table):
                tensor, self._compared = table, further[1]
        if type(tensor) is not torch.Tensor or type(label) is not torch.Tensor:
            return
        if not self._hot.due & _LOOP or capturing_graph(tensor):
            return
        if self._compared > 0 and _is_part_of(label, tensor):
            return  # a table of labels, which the model is given for the loss that it computes
        if self._compared > 0:
            self._tensors.tell("label_compared_with", self._compared)
        for name, look in COLUMNS.items():
            guarded(f"column {name}", self._tell_column, name, look, tensor, label)

    def _tell_column(
        self, name: str, look: Look, inputs: torch.Tensor, labels: torch.Tensor
    ) -> None:
        with own_operations():
            found = look(inputs, labels)
        for word, value in (found._asdict() if found is not None else {}).items():
            self._tensors.tell(f"label_{name}_{word}", value)

    def backward_begins(self, root: Any, is_scaled: bool) -> None:
        """Of `root`; `is_scaled`: a GradScaler multiplied the loss."""
        self.loop.backward_begins(root, is_scaled)
        self.reductions.clear()
        guarded("graphs", self._held.backward_begins, self._hot.steps, root)
        guarded("losses beside", self._beside.backward_begins, root)
        guarded("detached", self._detached.backward_begins, root)
        if type(root) is torch.Tensor and self.loop.wants_graph(self._hot.steps):
            graph = self.loop.look_at(root)
            self.hazards.graph_seen(graph.hazards if graph is not None else [])
        else:
            guarded("latent variables", self.loop.look_at_latents, root)

    # What is told where an optimizer is about to step, and later.

    def tell_kept(self, optimizer: torch.optim.Optimizer, table: Parameters) -> None:
        """Of one of several optimizers: whether its last step's gradients are still there."""
        kept = self.kept.will_step(optimizer, table)
        is_too_soon = self.kept.is_too_soon(optimizer)
        foreign = self.foreign.will_step(optimizer, self._watched.tables)
        turn = self.turns.will_step(optimizer, table)
        if len(self._watched.tables) < 2:
            return
        if turn is not None:
            self._tensors.fact("frozen_turn", turn.frozen, turn.place)
        if kept is not None:
            self._tensors.fact("gradients_kept", float(kept), table.smallest_name)
        if is_too_soon is not None:
            self._tensors.fact("gradients_cleared", float(is_too_soon), table.smallest_name)
        if foreign is not None:
            is_foreign = foreign != NOTHING_LEFT
            self._tensors.fact("gradients_of_another", float(is_foreign), table.smallest_name)
            if is_foreign:
                self._tensors.fact("gradients_that_agree", foreign, table.smallest_name)
        if self.kept.shares_pass(optimizer):
            self._tensors.fact("optimizers_share_pass", 1)

    def tell_forgotten(self) -> None:
        """The model was called in training mode in an evaluation, which others were set to."""
        acting = self.forgotten.taken()
        if acting is not None:
            where = f"modules_called_in_train/{acting.place}"
            self._tensors.tell(where, float(acting.modules), always=True)
            self._tensors.tell("others_in_eval", 1.0, always=True)

    def _calls(self) -> int | None:
        """How often watched models were called; None: not all calls are heard."""
        observers = [watcher._observer for watcher in self._watched.watchers]
        if not all(observer is not None and observer.armed for observer in observers):
            return None
        return sum(observer.calls for observer in observers if observer is not None)

    def has_evaluated_another(self) -> bool:
        """Since the last step, twice in a row no watched model was called before a loss."""
        return self._evaluated_another == self._hot.steps

    def step_begins(self, is_due: bool) -> None:
        """Of the training; `is_due`: facts are told of it."""
        guarded("loop", self.loop.begin, is_due)
        guarded("losses beside", self._beside.clear)
        guarded("detached", self._detached.clear)
        guarded("calls", self._note_asked, is_due)

    def _note_asked(self, is_due: bool) -> None:
        self._asked_before = self._asked() if is_due else None

    def _asked(self) -> int:
        """How often watched models were called without gradients, in training mode."""
        observers = (watcher._observer for watcher in self._watched.watchers)
        return sum(each.calls_without_gradients for each in observers if each is not None)

    def _tell_asked(self) -> None:
        before, self._asked_before = self._asked_before, None
        if before is not None:
            self._tensors.fact("asked_without_gradients", max(0, self._asked() - before))
            if self._hot.steps < _STEPS_READ and text_says(discounts_rewards):
                self._tensors.fact("discounts_rewards", 1)

    def will_step(self, optimizer: torch.optim.Optimizer) -> None:
        """The optimizer that drives the steps is about to step."""
        self._kept_input = None
        guarded("loop", self.loop.will_step, optimizer, self._hot.steps)
        guarded("calls", self._tell_asked)
        guarded("losses beside", self._beside.will_step, optimizer)
        guarded("reductions", self._tell_reduced, optimizer)
        if self.probes.is_open:
            guarded("probes", self.probes.will_step)
        guarded("sequences", self._tell_sequences)
        guarded("mixing", self._tell_mixing)
        guarded("hazards", self._tell_hazards)
        guarded("states", self._tell_states)
        guarded("graphs", self._tell_held)
        guarded("rows", self._tell_unscored)
        guarded("own statistics", self._tell_own_statistics)
        self.loader_labels.step_ends()
        self.tensor_labels.step_ends()
        guarded("schedules", schedules.look, optimizer)
        guarded("rounds", rounds.steps)
        guarded("averages", self._tell_averages)
        guarded("copies", self._copies.look)

    def ends_by_hand(self) -> None:
        """A step ends that no optimizer made: tells what does not speak of one."""
        self._kept_input = None
        guarded("loop", self.loop.ends_by_hand)
        guarded("masters", self._tell_masters)
        guarded("sequences", self._tell_sequences)
        guarded("mixing", self._tell_mixing)
        guarded("hazards", self._tell_hazards)
        guarded("states", self._tell_states)
        guarded("graphs", self._tell_held)
        guarded("rows", self._tell_unscored)
        guarded("own statistics", self._tell_own_statistics)
        self.loader_labels.step_ends()
        self.tensor_labels.step_ends()

    def reduced(self, tensor: Any) -> None:
        """`all_reduce` is about to be called on it."""
        if not self._hot.due & _LOOP:
            return
        models = self._watched.models()
        hears = self.reductions
        is_after = self._hot.first_backward  # of the next step
        (hears.reduced_after if is_after else hears.reduced)(
            tensor, lambda: (p for m, _ in models for p in m.parameters())
        )

    def _tell_reduced(self, optimizer: torch.optim.Optimizer) -> None:
        """Whether the mean of the gradients over all processes is thrown away, or was."""
        is_in_vain, are_late = self.reductions.told(optimizer), self.reductions.are_late()
        if is_in_vain is not None:
            self._tensors.fact("reduced_in_vain", float(is_in_vain))
        elif are_late:
            self._tensors.fact("reduced_after_step", 1)

    def _tell_sequences(self) -> None:
        """What positions of sequences see in the step under way."""

        def told(facts: list[tuple[str, float, str]]) -> None:
            for name, value, place in facts:
                self._tensors.fact(name, value, place)

        self.sequences.ask(self._tensors.later, told)

    def _tell_hazards(self) -> None:
        """Which operations of the step under way may make what is not finite."""
        for name, line, place in self.hazards.facts():
            self._tensors.fact(name, line, place)

    def _tell_states(self) -> None:
        """Whether what recurrent cells keep from step to step is cut off the graph."""
        for name, value, place in self.cells.facts():
            self._tensors.fact(name, value, place)

    def _tell_mixing(self) -> None:
        """What works over the samples of the step's batch."""
        for name, value, place in self.mixing.facts():
            self._tensors.fact(name, value, place)

    def _tell_masters(self) -> None:
        """Of weights in 16 bits that no optimizer has: whether one has them in float32."""
        if self._hot.due & _LOOP and not self._asked_masters and self._hot.steps > 0:
            self._asked_masters = True
            models = self._watched.models()
            count = masters_of(weight for model, _ in models for weight in model.parameters())
            if count > 0:
                self._tensors.tell("masters_of_weights", float(count), always=True)

    def _tell_averages(self) -> None:
        """Whether averages of the weights still follow them."""
        found = self._averages.look(self._hot.steps, list(self._watched.tables))
        if found is not None:
            self._tensors.fact("averages_lost", found.lost, found.place)
            self._tensors.fact("averages_steps", found.steps)

    def _tell_held(self) -> None:
        """How many of the graphs of losses that were marked are still there."""
        for is_used, held, marked in self._held.held(self._hot.steps):
            place = "" if is_used else "without_backward"
            self._tensors.fact("graphs_held", held, place)
            self._tensors.fact("graphs_marked", marked, place)

    def ask_last_evaluation(self) -> None:
        """At the end: asks for what is wrong with an evaluation after the last step, to be drained.

        Nothing where nothing is: what is told then makes one more step.
        """
        if not self.are_followed or self._hot.steps == 0:
            return
        self._tensors.is_over = True
        self._rows.give_up()
        self._hot.has_deferred = True  # so that what is asked for is brought over
        guarded("modes", self.tell_forgotten)
        guarded("rows", self._tell_unscored)
        guarded("own statistics", self._tell_own_statistics)

    def last_evaluation_told(self) -> None:
        """What was asked for is told."""
        self._tensors.is_over = False

    def _tell_unscored(self) -> None:
        """Of batches without gradients for which no loss was computed."""
        copy, self._copy = self._copy, None
        self._rows.ask_unscored(self._tensors.later, functools.partial(self._tell_those, copy=copy))

    def _tell_own_statistics(self) -> None:
        """Of inputs of evaluations: those standardised by themselves, and channels of images."""
        self._own_statistics.ask(self._tensors.later, self._tell_own, self._tensors.is_over)
        self._channels.ask(self._tensors.later, self._tell_own)

    def _tell_own(self, found: Own | Channels) -> None:
        if self._tensors.is_over and not found.is_odd:
            return
        for name, value in found._asdict().items():
            self._tensors.fact(name, value)

    def _tell_those(
        self,
        unscored: Unscored | None,
        in_training: InTrainingMode | None,
        copy: Found | None,
    ) -> None:
        if in_training is not None and copy is not None:
            self._tensors.fact("copy_modules_called_in_train", copy.modules, copy.place)
        elif in_training is not None:
            is_over = self._tensors.is_over
            if not self.loop.modes.tell_in_training(is_over):
                in_training = None  # nothing acts in another way there
        if self._tensors.is_over and in_training is None:
            unscored = None  # what is given to the model at the end may be for a plot
        told = [found._asdict() for found in (unscored, in_training) if found is not None]
        if told and self._tensors.is_over:
            self._tensors.fact("after_last_step", 1)
        if told:
            told.append(self._rows.standing()._asdict())
        for facts in told:
            for name, value in facts.items():
                if not name.startswith("rows_evaluated"):
                    self._tensors.fact(name, value)

    def ask_rows(self) -> None:
        """A step ends: asks for what `tell_rows` reads."""
        self._rows.ask(self._tensors.later)

    def tell_rows(self) -> None:
        """Of evaluated batches, how many of their rows the training had."""
        for known in self._rows.read():
            for name, value in known._asdict().items():
                self._tensors.fact(name, value, evaluation=True)
        is_due = bool(self._hot.due & _LOOP) and not self._tensors.is_over
        labelled = self._rows.read_labelled() if is_due else None
        if labelled is not None:
            for name, value in labelled._asdict().items():
                self._tensors.fact(name, value)
        again = self._rows.read_again() if is_due else None
        if again is not None:
            for name, value in again._asdict().items():
                if again.pass_rows_again > 0 or not name.startswith("pass_row_"):
                    self._tensors.fact(name, value)

    def tell_plateau(self, optimizer: torch.optim.Optimizer) -> None:
        """The rate of the optimizer that drives has changed: what a schedule did that by."""
        found = schedules.read_plateau(optimizer)
        if found is not None:
            for name, value in found._asdict().items():
                self._tensors.tell(f"plateau_{name}", value, always=True)

    def tell_idle_schedule(self, is_whole: bool) -> None:
        """At the end: that the schedule does nothing, with how often the data was gone through.

        `is_whole`: the training was not interrupted; one that was may have been in its first epoch.
        """
        found = schedules.idle() if self.are_followed and self._hot.steps > 0 else None
        if found is not None and (is_whole or sizes.passes >= _WHOLE_EPOCHS):
            self._tensors.tell("/".join(found), sizes.passes, always=True)

    def tell_rounds(self) -> None:
        """At the end: that the training's loop was left early, and where it is."""
        found = rounds.left(self._hot.steps) if self.are_followed else None
        if found is None or found.done + 1 >= _EARLY * found.planned:
            return
        sources.put("rounds", found.line)
        place = f"{os.path.basename(found.line.file)}:{found.line.number}"
        self._tensors.tell(f"rounds_planned/{place}", found.planned, always=True)
        self._tensors.tell("rounds_done", found.done, always=True)
        self._tensors.tell("rounds_patience", found.patience, always=True)
        self._tensors.tell("rounds_least_gain", found.gain, always=True)
        self._tensors.tell("rounds_sense", found.sense, always=True)
        self._tensors.tell("rounds_kind", found.kind, always=True)

    def tell_unsaid(self, others: int = 0) -> None:
        """After an evaluation: where dropout was on in it, though the model was not to train.

        `others`: how many are known to come.
        """
        heard = self.unsaid.read()
        if not heard.lines and not heard.is_told:
            return  # a number told after the last step would be one more step
        if heard.is_sampled:
            self._tensors.tell("evaluation_is_sampled", 1, always=True)
            return
        self._tensors.tell("evaluations_heard", heard.evaluations + others, always=True)
        for place, line in heard.lines.items():
            name = f"dropout_in_evaluation/{place}".rstrip("/")
            self._tensors.tell(name, line, always=True)

    def tell_left_behind(self, optimizer: torch.optim.Optimizer) -> bool:
        """An optimizer is about to step whose model is gone: whether something was told."""
        found = self.left_behind.will_step(optimizer, in_any_optimizer)
        if found:
            self._tensors.tell("optimizer_left_behind", found, always=True)
        return found > 0

    def tell_unstepped(self) -> None:
        """At the end: that there never was an optimizer step."""
        found = self.unstepped.found()
        if found is not None and self.are_followed:
            name, count = found
            self._tensors.tell(name, count, always=True)
