"""traindbg for the Trainer of Hugging Face.

from traindbg.integrations.transformers import Callback

trainer = Trainer(model, arguments, ..., callbacks=[Callback()])
"""

from __future__ import annotations

from typing import Any

from traindbg.hooks.torch.base.device import own_operations
from traindbg.hooks.torch.steps import patches
from traindbg.integrations._training import Training, missing

try:
    from transformers import TrainerCallback as _Callback
    from transformers.trainer_pt_utils import LabelSmoother
except ImportError as error:
    raise missing(__name__, "transformers", error) from None

__all__ = ["Callback"]


def _per_target(name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The loss with smoothed labels by the targets of its own batch.

    In training it is divided by those of all accumulated batches, in evaluation by its own.
    """
    number = kwargs.get("num_items_in_batch")
    if number is None:
        return value
    labels = args[2] if len(args) > 2 else kwargs["labels"]  # the first is the smoother
    if kwargs.get("shift_labels"):
        labels = labels[..., 1:]
    with own_operations():
        return value * number / (labels != args[0].ignore_index).sum().clamp(min=1)


class Callback(_Callback):  # type: ignore[misc]
    """Watches the model that `Trainer.train` trains, and records what it logs.

    Args:
        watch: arguments of `traindbg.watch`, such as `run_dir`, `rules`, `collect`.

    Losses, gradients and evaluations are found as in any loop, also the loss with smoothed labels.
    The numbers of `on_log` (`loss`, `grad_norm`, `eval_loss`, ...) are metrics of the run. The
    recording ends with `train`; one that was there before, such as that of `traindbg run`, is
    joined and left open.
    """

    def __init__(self, **watch: Any) -> None:
        self._training = Training(watch)

    @property
    def watcher(self) -> Any:
        """The `Watcher` while `train` runs, else None."""
        return self._training.watcher

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begins to watch."""
        self._training.begin(kwargs["model"])
        patches.also_listen_to(LabelSmoother, "__call__", "label_smoother", _per_target)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """What was logged since belongs to this step."""
        self._training.step_begins()

    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Records what is logged, but for the times of the whole training."""
        logs = kwargs.get("logs") or {}
        if "train_runtime" not in logs:
            self._training.log(logs)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The training is over."""
        self._training.end()
