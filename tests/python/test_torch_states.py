"""States that a model or a recurrent cell returned and is given again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")

from traindbg.hooks.torch.data.states import CELLS, Cells, OwnResults

if TYPE_CHECKING:
    from collections.abc import Callable


class _Told(torch.overrides.TorchFunctionMode):
    """Tells `cells` what is called, as a forward pass that is looked at does."""

    def __init__(self, cells: Cells) -> None:
        super().__init__()
        self._cells = cells

    def __torch_function__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func in CELLS:
            self._cells.called("cell", func, args, result)
        return result


def _told_of(forward: Callable[[], None], is_due: bool = True) -> list[tuple[str, float, str]]:
    cells = Cells()
    cells.begin(is_due)
    with _Told(cells):
        forward()
    return list(cells.facts())


def _steps(cut_every: int, cell_type: type[torch.nn.Module] = torch.nn.LSTMCell) -> None:
    cell = cell_type(3, 4)
    state = torch.zeros(2, 4)
    state = (state, state) if cell_type is torch.nn.LSTMCell else state
    for step in range(10):
        if step % cut_every == 0:
            state = (
                tuple(part.detach() for part in state)
                if isinstance(state, tuple)
                else state.detach()
            )
        state = cell(torch.randn(2, 3), state)


@pytest.mark.parametrize("cell", [torch.nn.LSTMCell, torch.nn.GRUCell, torch.nn.RNNCell])
def test_state_cut_at_each_step_is_told(cell: type[torch.nn.Module]) -> None:
    assert _told_of(lambda: _steps(1, cell)) == [("states_cut", 9.0, "cell")]


def test_state_cut_at_some_steps_is_none() -> None:
    assert _told_of(lambda: _steps(2)) == [("states_cut", 0.0, "")]


def test_state_that_keeps_its_graph_is_none() -> None:
    assert _told_of(lambda: _steps(100)) == [("states_cut", 0.0, "")]


def test_layer_given_one_step_at_a_time_is_a_cell() -> None:
    def forward() -> None:
        layer = torch.nn.GRU(3, 4, batch_first=True)
        state = None
        for _ in range(10):
            state = state if state is None else state.detach()
            _, state = layer(torch.randn(2, 1, 3), state)

    assert _told_of(forward) == [("states_cut", 9.0, "cell")]


def test_chunks_of_a_sequence_are_no_steps() -> None:
    def forward() -> None:
        layer = torch.nn.GRU(3, 4, batch_first=True)
        state = None
        for _ in range(10):
            state = state if state is None else state.detach()
            _, state = layer(torch.randn(2, 7, 3), state)

    assert _told_of(forward) == []


def test_cells_without_gradients_are_not_looked_at() -> None:
    with torch.no_grad():
        assert _told_of(lambda: _steps(1)) == []


def test_steps_that_are_not_due_are_not_looked_at() -> None:
    assert _told_of(lambda: _steps(1), is_due=False) == []


def test_input_that_the_model_returned_is_its_own() -> None:
    own = OwnResults()
    layer = torch.nn.GRU(3, 4)
    data = torch.randn(5, 2, 3)
    output, state = layer(data)
    own.returned({"logits": output, "state": (state,), "data": data})
    assert own.has(state.detach())
    assert own.has(state.data[:, :1])
    assert not own.has(state.detach().clone())
    # What goes through the model unchanged stays data.
    assert not own.has(data[:2])
