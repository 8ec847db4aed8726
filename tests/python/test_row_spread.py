"""How the samples of a batch differ: what the core reads of memory, beside torch's operations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from traindbg import _core
from traindbg.hooks.torch.losses import collapse
from traindbg.hooks.torch.losses.collapse import directions_of, turn_of


def expected(batch: torch.Tensor) -> tuple[float, float, float, float]:
    """By float64 operations, on the rows that are looked at."""
    rows = collapse.rows_of(batch)
    assert rows is not None
    rows = rows.double()
    deviation = (rows - rows.mean(0)).square().mean().sqrt()
    size = rows.square().mean().sqrt()
    return float(deviation), float(size), float(directions_of(rows)), float(turn_of(rows))


def check(batch: torch.Tensor) -> None:
    deviation, size, directions, turn = expected(batch)
    found = _core.row_spread(batch)
    assert found is not None
    assert found[0] == pytest.approx(deviation, rel=1e-6)
    assert found[1] == pytest.approx(size, rel=1e-6)
    assert found[2] == pytest.approx(directions, rel=1e-5)
    assert found[3] == pytest.approx(turn, abs=1e-6)
    assert _core.row_deviation(batch) == pytest.approx(found[:2], rel=1e-12)
    assert _core.row_directions(batch) == pytest.approx(found[2], rel=1e-6)


@pytest.mark.parametrize(
    "shape", [(8, 2), (32, 10), (64, 512), (200, 513), (9, 5000), (32, 16, 8, 8), (9, 3, 70, 71)]
)
def test_dense_tensors(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    check(torch.randn(shape))
    check(torch.relu(torch.randn(shape) - 0.5))
    check(torch.randn(shape) + 100)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_floats(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    check(torch.randn(32, 40).to(dtype))
    check(torch.randn(32, 3, 11, 13).to(dtype).transpose(1, 3))


def test_layouts() -> None:
    torch.manual_seed(0)
    check(torch.randn(30, 16).t())
    check(torch.randn(16, 80)[:, 3:60:2])
    check(torch.randn(16, 30).flip(1))
    check(torch.randn(16, 6, 5, 4).to(memory_format=torch.channels_last))
    check(torch.randn(16, 1, 5).expand(16, 4, 5))


def test_a_part_of_a_graph_stays_as_it_is() -> None:
    x = torch.randn(16, 4, requires_grad=True)
    y = x * 2
    version, node = y._version, y.grad_fn
    check(y)
    assert (y._version, y.grad_fn) == (version, node)
    y.sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 2))


@pytest.mark.parametrize(
    "batch",
    [
        torch.zeros(7, 4),
        torch.zeros(16, 1),
        torch.zeros(16),
        torch.zeros(()),
        torch.zeros(0, 4),
        torch.zeros(16, 4, dtype=torch.int64),
        torch.zeros(16, 4, dtype=torch.complex64),
        torch.zeros(16, 4, device="meta"),
        torch.zeros(16, 4).to_sparse(),
        3.5,
    ],
    ids=repr,
)
def test_what_is_no_batch_or_has_no_memory(batch: object) -> None:
    assert _core.row_spread(batch) is None
    assert _core.row_deviation(batch) is None
    assert _core.row_directions(batch) is None


def test_what_is_wrapped_is_not_read() -> None:
    seen = []

    def look(row: torch.Tensor) -> torch.Tensor:
        seen.append(_core.row_spread(row))
        return row.sum()

    torch.vmap(look)(torch.randn(3, 16, 4))
    assert seen == [None]


@pytest.mark.parametrize(
    "measure",
    [collapse._spread, collapse._deviation_and_size, collapse._directions],
)
def test_torch_tells_the_same_of_what_the_core_cannot_read(
    measure: Callable[[torch.Tensor], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    batch = torch.randn(32, 3, 40, 50) + 1
    by_core = measure(batch)
    for name in ("row_spread", "row_deviation", "row_directions"):
        monkeypatch.setattr(_core, name, lambda _: None)
    by_torch = measure(batch)
    numbers = by_torch if isinstance(by_torch, tuple) else (by_torch,)
    assert all(isinstance(number, torch.Tensor) for number in numbers)
    told = [float(number) for number in numbers]
    assert (by_core if isinstance(by_core, tuple) else (by_core,)) == pytest.approx(told, rel=1e-4)


def test_few_rows_are_no_batch_in_either_way() -> None:
    batch = torch.randn(4, 10)
    assert collapse._spread(batch) is None
    assert collapse._directions(batch) is None
    assert collapse._deviation_and_size(batch) is None
    assert collapse._directions(None) is None
