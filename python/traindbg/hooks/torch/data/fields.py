"""Of an embedding that is given a table of numbers: how many rows each column asks for.

    self.embedding = nn.Embedding(sum(field_sizes), width)
    vectors = self.embedding(fields)  # each field counts from 0: all of them share the first rows

A table that several fields share has as many rows as they have values together, where each of them
has rows of its own. That they all count from 0 shows in the greatest number of each column, which
is kept over the steps that are looked at: on its device, and nothing is kept of the numbers.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import torch

from traindbg.hooks.torch.base.device import own_operations

if TYPE_CHECKING:
    from torch import nn

    from traindbg.hooks.torch.base.teller import Teller

_MOST_FIELDS = 128


def highest_of_columns(rows: torch.Tensor) -> torch.Tensor | None:
    """The greatest number of each column. None: it is no table of two to 128 columns."""
    is_table = rows.dim() == 2 and rows.shape[0] > 1 and 2 <= rows.shape[1] <= _MOST_FIELDS
    return rows.detach().amax(0) if is_table else None


class Fields:
    """One per recording, one thread."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        # None: of an embedding that is given other things than one table, or whose columns ask for
        # more rows together than it has.
        self._highest: weakref.WeakKeyDictionary[nn.Embedding, torch.Tensor | None] = (
            weakref.WeakKeyDictionary()
        )

    def look(self, module: nn.Embedding, name: str, highest: torch.Tensor | None) -> None:
        """An embedding was given a table whose columns have these greatest numbers.

        `name`: of the embedding; `highest`: as `highest_of_columns` gives it.
        """
        known = self._highest.get(module, highest)
        if highest is None or known is None or known.shape != highest.shape:
            self._end(module, name)
            return
        with own_operations():
            known = self._highest[module] = torch.maximum(known.to(highest.device), highest)
            sizes = known + 1
            numbers = [sizes.sum(), sizes.amax(), sizes.amin()]

        def told(values: list[float]) -> None:
            if values[0] > module.num_embeddings:
                self._end(module, name)
                return
            self._teller.fact("fields_rows", values[0], name)
            self._teller.fact("fields_widest", values[1], name)
            self._teller.fact("fields_narrowest", values[2], name)
            self._teller.fact("fields", highest.shape[0], name)

        self._teller.later.ask_numbers("loop", numbers, told)

    def _end(self, module: nn.Embedding, name: str) -> None:
        """No fields share its rows; says so where the contrary was told."""
        if self._highest.get(module) is not None:
            self._teller.fact("fields", 0, name)
        self._highest[module] = None
