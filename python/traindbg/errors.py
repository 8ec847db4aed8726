"""What traindbg raises.

Nothing of this is ever raised into a training, except `TrainingStopped`, and that only after
somebody asked for the training to be stopped.
"""

from __future__ import annotations

STOPPED_EXIT_CODE = 90


class TraindbgError(Exception):
    """Something failed: the message says what, and what to do. Base of all others."""


class InvalidArgument(TraindbgError, ValueError):  # noqa: N818 - named after the core's codes
    """The input is wrong; trying again cannot help."""


class NotFound(TraindbgError, LookupError):  # noqa: N818
    """A run, tensor, rule or file of that name does not exist."""


class RunNotFound(NotFound):
    """The path is not a run directory."""


class AlreadyExists(TraindbgError):  # noqa: N818
    """Something is there that must not be overwritten."""


class PermissionDenied(TraindbgError, PermissionError):  # noqa: N818
    """The operating system said no."""


class ResourceExhausted(TraindbgError):  # noqa: N818
    """Disk, memory, quota or file descriptors are used up."""


class DataLoss(TraindbgError):  # noqa: N818
    """Stored bytes are damaged."""


class DamageWarning(UserWarning):
    """Something of a run could not be read: what is whole was given, the rest is missing."""


class Unavailable(TraindbgError):  # noqa: N818
    """Not now; it may work later."""


class Unsupported(TraindbgError):  # noqa: N818
    """Understood, but this build or this version of the format cannot do it."""


class TrainingStopped(SystemExit):
    """Raised once out of `optimizer.step()` when a stop was asked for.

    A `SystemExit`, so that `finally` blocks run, `except Exception` does not swallow it, and the
    process ends with code 90 when nobody catches it.
    """

    def __init__(self, run_dir: str = "") -> None:
        super().__init__(STOPPED_EXIT_CODE)
        self.run_dir = run_dir

    def __str__(self) -> str:
        return f"traindbg stopped the training; see {self.run_dir or 'its report'}"
