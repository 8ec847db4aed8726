"""traindbg for Lightning.

from traindbg.integrations.lightning import Callback

trainer = Trainer(callbacks=[Callback()])
"""

from __future__ import annotations

import sys
from typing import Any

from traindbg.integrations._training import Training, missing

_IS_OLD = "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules
try:
    if _IS_OLD:  # the same package under its old name
        from pytorch_lightning.callbacks import Callback as _Callback
    else:
        from lightning.pytorch.callbacks import Callback as _Callback
except ImportError as error:
    try:
        from pytorch_lightning.callbacks import Callback as _Callback
    except ImportError:
        raise missing(__name__, "lightning", error) from None

__all__ = ["Callback"]


class Callback(_Callback):  # type: ignore[misc]
    """Watches the module that `Trainer.fit` trains, and records what it logs.

    Args:
        watch: arguments of `traindbg.watch`, such as `run_dir`, `rules`, `collect`.

    Losses, gradients and evaluations are found as in any loop. Metrics (`self.log`) are recorded
    when they are there: those of training batches every `log_every_n_steps`, others at the end of a
    validation and of an epoch. What `fit` raises is recorded. The recording ends with `fit`; one
    that was there before, such as that of `traindbg run`, is joined and left open.
    """

    def __init__(self, **watch: Any) -> None:
        self._training = Training(watch)

    @property
    def watcher(self) -> Any:
        """The `Watcher` while `fit` runs, else None."""
        return self._training.watcher

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Begins to watch."""
        self._training.begin(pl_module)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """What trains is `training_step`, which need not call the module itself."""
        self._training.calls_parts()

    def on_train_batch_start(self, trainer: Any, *args: Any) -> None:
        """What was logged since belongs to this step."""
        self._training.step_begins()

    def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
        """Logs, now and then."""
        every = trainer.log_every_n_steps
        if every and trainer.global_step % every == 0:
            self._training.log(trainer.callback_metrics, changed_only=True)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Logs what the validation gave."""
        if not trainer.sanity_checking:
            self._training.log(trainer.callback_metrics, changed_only=True)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Logs what the epoch gave."""
        self._training.log(trainer.callback_metrics, changed_only=True)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """The training is over."""
        self._training.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """The training is over, by what it raised."""
        self._training.end(exception)
