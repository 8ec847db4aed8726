"""Whether what is computed now is of the training or of an evaluation, and when one of these ends.

An evaluation is a step of its own, from its first loss or number on. A model that is trained in
evaluation mode is recorded as trained, from the second step on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from traindbg import _core

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch.base.watched import WatchedModels

_TRAIN = _core.TRAIN
_EVAL = _core.EVAL


class Evaluations:
    """One per recording. Owns the names of what the evaluation that is open has had.

    `drain` brings over what waits on devices, which belongs to the step that ends.
    """

    def __init__(
        self,
        session: _core.Session,
        hot: _core.HotPath,
        watched: WatchedModels,
        drain: Callable[[], None],
    ) -> None:
        self.names: set[str] = set()  # empty: none is open
        self.ended = 0  # evaluations
        self._session = session
        self._hot = hot
        self._watched = watched
        self._drain = drain
        self._backward_in_eval = False  # the step under way had one
        self._trains_in_eval = False  # the step before was made in evaluation mode

    def mode(self) -> int:
        """TRAIN or EVAL."""
        # One of several is enough: a teacher stays in evaluation mode while its student is trained.
        models = [watcher.model for watcher in self._watched.watchers if watcher.model is not None]
        return _TRAIN if not models or any(map(self.is_training, models)) else _EVAL

    def is_training(self, model: torch.nn.Module) -> bool:
        """Whether what this model computes now is of the training."""
        # Some train a model in evaluation mode, by mistake or not: it is a training all the same.
        return (model.training or self._trains_in_eval) and torch.is_grad_enabled()

    def end(self, by_backward: bool = False) -> None:
        """Ends the evaluation that is open, if there is one; `by_backward`: a pass begins."""
        if self.names:
            if by_backward and not self._trains_in_eval:
                self._backward_in_eval = self._hot.watches_mode = True
            self.names.clear()
            self.ended += 1
            self._drain()
            self._session.end_eval_step()

    def step_ended(self) -> None:
        """After a step: whether it was made in evaluation mode."""
        if not self._hot.watches_mode:
            return
        watchers = self._watched.watchers
        in_eval = (self._backward_in_eval or self._trains_in_eval) and not any(
            watcher.model.training for watcher in watchers if watcher.model is not None
        )
        self._trains_in_eval = self._hot.watches_mode = in_eval
        self._backward_in_eval = False
