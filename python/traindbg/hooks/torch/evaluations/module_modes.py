"""In which mode models are trained and evaluated: dropout, batch norms, what is held back."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from traindbg.hooks.torch.base.device import capturing_graph, own_operations

if TYPE_CHECKING:
    import types
    from collections.abc import Container

    from traindbg.hooks.torch.base.teller import Teller
    from traindbg.hooks.torch.base.watched import WatchedModels

_FIRST_CALLS = 8  # of a model without gradients between two steps, of which each is looked at
_ONE_CALL_OF = 64  # of those that follow
_STRONG_DROPOUT = 0.5  # above it, the strongest one is told
_DROPOUTS = frozenset(
    {"dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"}
)


@functools.lru_cache(maxsize=1024)
def _names_of_dropout(code: types.CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """What a `forward` names of functions of dropout and of shares, if it asks for `training`.

    As `F.dropout(x, self.dropout, training=self.training)` does: no module says it there.
    """
    names = frozenset(code.co_names)
    if "training" not in names:
        return frozenset(), frozenset()
    return names & _DROPOUTS, frozenset(name for name in names if "drop" in name or name == "p")


def _drops_by_itself(module: nn.Module) -> bool:
    """Whether a module's own `forward` leaves values out in training mode."""
    # A scripted module's class has a `forward` that cannot be asked for.
    code = getattr(getattr(type(module), "forward", None), "__code__", None)
    if code is None or type(module).__module__.startswith("torch.nn."):
        return False
    functions, shares = _names_of_dropout(code)
    if all(name in module._modules for name in functions):
        return False  # `self.dropout(x)`: a module that speaks for itself, or none at all
    own = [vars(module).get(name, vars(type(module)).get(name)) for name in shares]  # calls nothing
    given = [value for value in own if isinstance(value, (int, float))]
    return not given or max(given) > 0


def acts_by_mode(module: nn.Module) -> bool:
    """Whether a module computes something else in training mode than in evaluation mode."""
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return bool(module.p > 0)
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return bool(module.track_running_stats)
    if isinstance(module, (nn.modules.rnn.RNNBase, nn.MultiheadAttention)):
        return bool(module.dropout > 0)
    return _drops_by_itself(module)


def strongest_dropout(model: nn.Module) -> float:
    """The largest share of values that a model leaves out at random where it is trained."""
    return max(map(_left_out, model.modules()), default=0.0)


def _left_out(module: nn.Module) -> float:
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return float(module.p)
    has_own = isinstance(module, (nn.modules.rnn.RNNBase, nn.MultiheadAttention))
    return float(module.dropout) if has_own else 0.0


class Acting(NamedTuple):
    """Modules that act as in training."""

    modules: int
    place: str  # the first one


def acting_in_training(model: nn.Module, prefix: str) -> Acting | None:
    """Those of a model in training mode, if any."""
    if not model.training:
        return None
    on = [name for name, m in model.named_modules() if acts_by_mode(m) and m.training]
    return Acting(len(on), prefix + on[0]) if on else None


def _is_fresh_norm(module: nn.Module) -> bool:
    """A batch norm that has yet to see a batch in training mode."""
    counted = getattr(module, "num_batches_tracked", None)
    mean = getattr(module, "running_mean", None)
    if not isinstance(counted, torch.Tensor) or not isinstance(mean, torch.Tensor):
        return False
    if capturing_graph(counted):
        return False
    with own_operations():
        return int(counted) == 0 and not bool(mean.any())


def _norms_held_back(models: list[tuple[nn.Module, str]], reached: Container[int]) -> list[str]:
    """The batch norms of models in training mode, where all of them stay as they were made.

    Those of a backbone that was trained before bring their statistics along, and those whose
    parameters no gradient has `reached` are of a part that is not trained, such as a teacher.
    """
    norms = [
        (prefix + name, module)
        for model, prefix in models
        for name, module in model.named_modules()
        if isinstance(module, nn.modules.batchnorm._BatchNorm)
        and module.track_running_stats
        and any(id(parameter) in reached for parameter in module.parameters())
    ]
    if not norms or any(module.training for _, module in norms):
        return []
    return [name for name, _ in norms] if all(_is_fresh_norm(m) for _, m in norms) else []


class Modes:
    """Of the modules of watched models. One per recording."""

    def __init__(self, teller: Teller, models: WatchedModels) -> None:
        self._teller = teller
        self._models = models
        self._norms_were_fresh: bool | None = None
        self._called: list[str] | None = None  # what acted as in training at the last call
        self._calls = 0  # since the step before

    def forget(self) -> None:
        """Another training begins: norms that were trained before bring their statistics along."""
        self._norms_were_fresh = None

    def _tell_dropout(self) -> None:
        """Tells the strongest dropout that acts."""
        strongest, place = _STRONG_DROPOUT, ""
        for model, prefix in self._models.models():
            for name, module in model.named_modules():
                if (
                    isinstance(module, nn.modules.dropout._DropoutNd)
                    and module.training
                    and module.p > strongest
                ):
                    strongest, place = module.p, prefix + name
        if place:
            self._teller.fact("dropout", strongest, place)

    def tell(self, held: list[torch.Tensor], reached: Container[int]) -> None:
        """Of a step of training.

        `held`: by its optimizer; `reached`: ids of what backward changed.
        """
        self._tell_dropout()
        # A model that nothing of this step trains is somebody else's: a teacher, a frozen encoder.
        trained = [
            (model, prefix)
            for model, prefix in self._models.models()
            if any(id(parameter) in reached for parameter in model.parameters())
        ]
        # Of several that are trained together, one in evaluation mode is a part. Of companions such
        # do not count that compute the same in both modes.
        leaders = {id(watcher.model) for watcher in self._models.watchers}
        in_training = any(
            model.training and (id(model) in leaders or any(map(acts_by_mode, model.modules())))
            for model, _ in trained
        )
        acting = [
            (prefix + name, module)
            for model, prefix in ([] if in_training else trained)
            for name, module in model.named_modules()
            if acts_by_mode(module)
        ]
        if not acting:
            if any(acts_by_mode(m) for model, _ in trained for m in model.modules()):
                held_back = _norms_held_back(trained, reached)
                if held_back:
                    self._teller.fact("norms_held_back", len(held_back), held_back[0])
                else:
                    self._teller.fact("modules_in_eval", 0)
                if all(model.training for model, _ in trained if id(model) in leaders):
                    self._norms_were_fresh = True  # they were trained, here
            return
        if any(module.training for _, module in acting):
            self._teller.fact("modules_in_eval", 0)
            return
        if self._norms_were_fresh is None:
            norms = [m for _, m in acting if isinstance(m, nn.modules.batchnorm._BatchNorm)]
            # All of them are norms that bring their statistics along: they may be meant to stay.
            self._norms_were_fresh = len(norms) < len(acting) or any(map(_is_fresh_norm, norms))
        # Where the optimizer trains more than what is watched, that is a part; it may be meant.
        owners = self._models.owners()
        is_part = any(id(p) not in owners and p.grad is not None for p in held)
        is_fault = self._norms_were_fresh and not is_part
        name = "modules_in_eval" if is_fault else "loaded_norms_in_eval"
        self._teller.fact(name, len(acting), acting[0][0])

    def evaluated(self, samples: int, batches: set[int]) -> None:
        """A loss was computed without gradients: tells in which mode the models are.

        Of so many `samples`; in training it was of so many as `batches` holds.
        """
        on = self._in_training() if self._called is None else self._called
        if on is not None:
            place = on[0] if on else ""
            self._teller.fact("modules_in_train", len(on), place, evaluation=True)
            self.tell_whether_other(samples, batches)

    def called_in_evaluation(self) -> None:
        """A model is called without gradients; by the loss its mode may be another one."""
        self._calls += 1
        if self._calls <= _FIRST_CALLS or self._calls % _ONE_CALL_OF == 0:
            self._called = self._in_training()

    def step_begins(self) -> None:
        """What was called before belongs to no evaluation that comes."""
        self._called, self._calls = None, 0

    def _in_training(self) -> list[str] | None:
        """What acts as in training, of what acts by its mode; None where nothing does."""
        for watcher in self._models.watchers:
            together = [watcher, *self._models.companions_of(watcher)]
            acting = [
                (each.prefix + name, module, model.training)
                for each in together
                if (model := each.model) is not None
                for name, module in model.named_modules()
                if acts_by_mode(module)
            ]
            if acting:
                return [name for name, module, is_on in acting if is_on and module.training]
        return None

    def tell_whether_other(self, samples: int, batches: set[int]) -> None:
        """Of an evaluation. Of as many samples as the training's batches it may be one of those."""
        is_other = bool(batches) and samples not in batches
        self._teller.fact("evaluated_other_samples", float(is_other), evaluation=True)

    def tell_in_training(self, is_over: bool = False) -> bool:
        """Of a model that was called without gradients in training mode: which modules act so.

        False, and nothing is told, where none does. `is_over`: as it was called last; it may be in
        another mode since, or gone.
        """
        if is_over:
            called = self._called
            if called:
                self._teller.fact("modules_called_in_train", len(called), called[0])
            return bool(called)
        for model, prefix in self._models.models():
            on = acting_in_training(model, prefix)
            if on is not None:
                self._teller.fact("modules_called_in_train", on.modules, on.place)
                return True
        return False
