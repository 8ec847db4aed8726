"""traindbg for Accelerate.

from traindbg.integrations.accelerate import Tracker

accelerator = Accelerator(log_with=Tracker(model))
accelerator.init_trackers("digits")
...
accelerator.log({"accuracy": 0.97})
accelerator.end_training()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch import watching as hook
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.recording.user_values import number_in
from traindbg.integrations._training import Training, missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

try:
    from accelerate.tracking import GeneralTracker as _Tracker
except ImportError as error:
    raise missing(__name__, "accelerate", error) from None

__all__ = ["Tracker", "log_numbers"]


def log_numbers(values: Mapping[str, Any]) -> None:
    """Records the numbers among `values` as `traindbg.log` does."""
    for name, value in values.items():
        number = number_in(value)
        if number is not None:
            hook.log(str(name), number)


class Tracker(_Tracker):  # type: ignore[misc]
    """Watches a model from `init_trackers` to `end_training`, and records what is logged.

    Args:
        model: the one to watch. Without it only what is given to `Accelerator.log` is recorded,
            into a recording that is there: that of `traindbg.watch` or of `traindbg run`.
        watch: arguments of `traindbg.watch`, such as `run_dir`, `rules`, `collect`.

    Accelerate calls trackers in its main process only, so that this one records; of several
    processes, `traindbg.watch` in each of them, beside a tracker without a model, records them all.
    Metrics belong to the step under way; the `step` that `Accelerator.log` is given is left out of
    account.
    """

    name = "traindbg"
    requires_logging_directory = False

    def __init__(self, model: torch.nn.Module | None = None, **watch: Any) -> None:
        super().__init__()
        self._model = model
        self._training = Training(watch)

    @property
    def tracker(self) -> Any:
        """The `Watcher` while the model is watched, else None."""
        return self._training.watcher

    def start(self) -> None:
        """Begins to watch."""
        if self._model is not None:
            self._training.begin(self._model)

    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Not kept: the optimizer's own settings are found."""

    def log(self, values: dict[str, Any], step: int | None = None, **kwargs: Any) -> None:
        """Records the numbers among `values`."""
        guarded("metrics", log_numbers, values)

    def finish(self) -> None:
        """The training is over."""
        self._training.end()
