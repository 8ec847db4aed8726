"""Whether a column of the inputs tells the label."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import nn

import traindbg as td
from traindbg.hooks.torch.data.columns import (
    closest_column,
    column_beyond,
    group_means_column,
    one_sided_column,
    ordered_column,
    parts_of_label,
)


def test_a_column_that_is_filled_in_for_one_label_alone():
    torch.manual_seed(0)
    x, y = torch.randn(200, 6), (torch.rand(200) < 0.3).float()
    recovered = y * (torch.rand(200) < 0.9) * torch.rand(200)
    x[:, 3] = (recovered - recovered.mean()) / recovered.std()
    for labels in (y, 1 - y, y[:, None], y.long()):
        found = one_sided_column(x, labels)
        assert found is not None
        agreement, column, rows = found
        assert column == 3
        assert agreement > 0.95
        assert rows == (recovered > 0).sum()
    x[(y == 0).nonzero()[0], 3] = 5.0  # one row of the other label
    found = one_sided_column(x, y)
    assert found is not None
    assert found[0] < 0.9
    assert one_sided_column(torch.randn(200, 6), torch.randn(200))[0] == 0
    assert one_sided_column(torch.randn(200, 6), torch.zeros(200))[0] == 0


def test_a_column_that_the_label_was_made_of_by_a_limit():
    torch.manual_seed(0)
    x = torch.randn(200, 6)
    for labels, is_above in ((x[:, 3] > 0.5, True), (x[:, 3] < 0.5, False)):
        for y in (labels.float(), labels.long()[:, None]):
            found = column_beyond(x, y)
            assert found is not None
            assert (found.columns, found.column, found.is_above) == (1, 3, is_above)
            assert found.low <= 0.5 < found.high
            assert found.high - found.low < 0.1
            assert found.deviation == pytest.approx(float(x[:, 3].std()))
            assert found.fewer == min(int(y.sum()), 200 - int(y.sum()))
            assert found.others < 3  # chance
    x[:, 1] += x[:, 3]
    found = column_beyond(x, (x[:, 3] > 0.5).float())
    assert found is not None
    assert found.others > 5
    y = (x[:, 3] > 0.5).float()
    y[0] = 1 - y[0]
    for other in (y, torch.ones(200), 2 * (x[:, 3] > 0.5).float(), torch.randn(200)):
        found = column_beyond(x, other)
        assert found is not None
        assert found.columns == 0
    assert column_beyond(x[:, :1], y) is None
    assert column_beyond(x[:, :, None], y) is None
    x[5, 0] = float("nan")
    found = column_beyond(x, (x[:, 3] > 0.5).float())
    assert found is not None
    assert found.columns == 0


def grouped_rows(rows: int = 4000, groups: int = 1500) -> tuple[torch.Tensor, torch.Tensor]:
    """The group of each row, and labels whose share is another one in each group."""
    torch.manual_seed(0)
    group = torch.randint(0, groups, (rows,))
    return group, (torch.rand(rows) < torch.rand(groups)[group]).double()


def mean_of_others(group: torch.Tensor, y: torch.Tensor, own: float) -> torch.Tensor:
    """The mean label of each row's group; `own`: how much of the row's own label is taken out."""
    sums, counts = torch.zeros(2, int(group.max()) + 1, dtype=torch.float64)
    sums.index_add_(0, group, y)
    counts.index_add_(0, group, torch.ones_like(y))
    left = counts[group] - own
    return torch.where(left > 0, (sums[group] - own * y) / left, y.mean())


def test_a_column_that_is_the_mean_label_of_a_few_rows():
    group, y = grouped_rows()
    x = torch.randn(4000, 5)
    for own, columns in ((0, 1), (1, 0)):
        means = mean_of_others(group, y, own)
        x[:, 2] = ((means - means.mean()) / means.std()).float()
        for labels in (y.float(), y.long()[:, None]):
            found = group_means_column(x[:128], labels[:128])
            assert found is not None
            assert found.columns == columns
    means = mean_of_others(group, y, 0)
    x[:, 2] = (3 * means + 1).float()
    found = group_means_column(x[:128], y[:128].float())
    assert found is not None
    assert (found.column, found.least, found.most) == (2, 1, 4)
    assert found.none == (means[:128] == 0).sum()
    assert found.all == (means[:128] == 1).sum()
    assert found.none + found.all + found.low + found.high == 128
    for excess, variance in (
        (found.low_excess, found.low_variance),
        (found.high_excess, found.high_variance),
    ):
        assert abs(excess) < 3 * variance**0.5
    assert all(int(found.sizes) >> size & 1 for size in (1, 2, 3, 4, 5))


def test_columns_that_are_no_means_of_labels():
    torch.manual_seed(0)
    x, marks = torch.randn(200, 3), torch.randint(0, 5, (200,))
    y = (torch.rand(200) < marks / 4).float()
    x[:, 1] = marks.float()
    found = group_means_column(x, y)
    assert found is not None
    assert found.columns == 1  # marks that say as much: of steps of one size
    assert int(found.sizes) & ~0b10110 == 0
    other = y.clone()
    other[marks.argmin()] = 1
    for labels in (other, 2 * y, torch.zeros(200), torch.randn(200)):
        found = group_means_column(x, labels)
        assert found is not None
        assert found.columns == 0
    x[:, 1] = y  # nothing in between
    found = group_means_column(x, y)
    assert found is not None
    assert found.columns == 0
    x[0, 1] = float("nan")
    found = group_means_column(x, y)
    assert found is not None
    assert found.columns == 0
    assert group_means_column(x[:, :1], y) is None
    assert group_means_column(x[:20], y[:20]) is None


def test_a_column_that_a_curve_leads_from_to_the_label():
    torch.manual_seed(0)
    x = torch.randn(200, 6)
    for y, is_falling in (
        (x[:, 3].exp(), False),
        (-x[:, 3].exp(), True),
        (x[:, 3].double() ** 3, 0),
    ):
        for labels in (y, y[:, None]):
            found = ordered_column(x, labels)
            assert found is not None
            assert (found.columns, found.column, found.is_falling) == (1, 3, is_falling)
            assert (found.labels, found.rows) == (200, 200)
            assert found.others < 3  # chance
    y = x[:, 3].exp()
    x[:, 1] += x[:, 3]
    found = ordered_column(x, y)
    assert found is not None
    assert found.columns == 1
    assert found.others > 5
    x[:, 5] = -(x[:, 3] ** 3)
    found = ordered_column(x, y)
    assert found is not None
    assert found.columns == 2


def test_rows_that_come_in_the_order_of_their_labels():
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    for way in (torch.arange(64.0), -torch.arange(64.0)):
        x[:, 1] = way
        found = ordered_column(x, way**3)
        assert found is not None
        assert (found.columns, found.column, found.is_as_given) == (1, 1, True)
    x[:, 1] = -torch.arange(64.0).clamp(min=20)  # many rows of the first day
    found = ordered_column(x, x[:, 1] ** 3)
    assert found is not None
    assert (found.columns, found.is_as_given) == (1, True)
    x[:, 1] = way
    shuffled = torch.randperm(64)
    found = ordered_column(x[shuffled], way[shuffled] ** 3)
    assert found is not None
    assert (found.columns, found.is_as_given) == (1, False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_columns_that_are_constant_or_not_finite_are_left_out(dtype):
    torch.manual_seed(0)
    x = torch.arange(48.0)[torch.randperm(48), None] * torch.tensor([0.0, 1.0, 0.0, 0.0])
    x[:, 2] = torch.randn(48) + x[:, 1] / 20
    x[5, 3] = float("nan")
    x.requires_grad_()
    found = ordered_column(x.to(dtype), x[:, 1].to(dtype) * 1000)
    assert found is not None
    assert (found.columns, found.column) == (1, 1)
    assert not found.others.requires_grad
    assert 1 < found.others < 16


def test_rows_that_are_not_in_the_order_of_their_labels():
    torch.manual_seed(0)
    x = torch.randn(200, 6)
    y = x[:, 3].exp()
    swapped = y.clone()
    swapped[[0, 1]] = y[[1, 0]]
    unknown = y.clone()
    unknown[7] = float("nan")
    pairs = (
        x[:, 3]
        .sort()
        .values.reshape(100, 2)
        .mean(1)[torch.arange(200)[x[:, 3].argsort().argsort()] // 2]
    )  # of two rows of one label the values differ
    for labels in (swapped, unknown, pairs, torch.randn(200)):
        found = ordered_column(x, labels)
        assert found is not None
        assert found.columns == 0
    x[:, 3] = (y > 1).float()  # two values: so parts any limit
    found = ordered_column(x, y)
    assert found is not None
    assert found.columns == 0
    x[:, 3] = 1.0
    found = ordered_column(x, y)
    assert found is not None
    assert found.columns == 0
    assert ordered_column(x[:, :2], y) is None
    assert ordered_column(x[:, :, None], y) is None
    assert ordered_column(x, y.long()) is None
    assert ordered_column(x[:10], y[:10]) is None
    for few in (torch.ones(200), (y > 1).float(), y.round()):
        assert ordered_column(x, few) is None


def test_rows_of_one_label_have_one_value_but_for_rounding():
    torch.manual_seed(0)
    x = torch.randn(60, 4).repeat_interleave(2, 0)
    x[1::2, 2] += 1e-5
    found = ordered_column(x, x[:, 2].sub(1e-5).round(decimals=3).exp())
    assert found is not None
    assert (found.columns, found.column) == (1, 2)
    assert found.labels <= 60


def test_what_is_no_table_with_one_label_for_each_row_is_not_compared():
    y = torch.randn(40)
    assert closest_column(torch.randn(40, 6), y) is not None
    assert closest_column(torch.randn(40, 6), torch.randint(0, 3, (40,))) is not None
    assert closest_column(torch.randn(40, 1), y) is None
    assert closest_column(torch.randn(40, 2, 2), y) is None  # no series
    assert closest_column(torch.randn(40, 5, 0), y) is None
    assert closest_column(torch.randn(5, 40, 0), y) is None
    assert closest_column(torch.randn(2, 40, 6), y) is None
    assert closest_column(torch.randn(6, 41, 2), y) is None
    assert closest_column(torch.randint(0, 9, (40, 6)), y) is None
    assert closest_column(torch.randn(8, 6), torch.randn(8)) is None
    assert closest_column(torch.randn(40, 6), torch.randn(40, 2)) is None


def test_of_series_the_last_step_is_compared():
    x, y = torch.randn(40, 5, 3), torch.randn(40)
    x[:, -1, 2], x[:, 0, 1] = y * 2 + 1, y
    found = closest_column(x, y)
    assert found is not None
    assert found[0] == pytest.approx(1, abs=1e-6)
    assert (found[1], found[2]) == (2, True)
    x[:, -1, 2] = torch.randn(40)
    found = closest_column(x, y)  # the first step is what a memory is trained to give back
    assert found is not None
    assert found[0] < 0.9


@pytest.mark.parametrize(
    ("shape", "last", "early", "channel"),
    [
        ((40, 1, 25), (slice(None), 0, -1), (slice(None), 0, 0), 0),  # of convolutions
        ((40, 4, 25), (slice(None), 3, -1), (slice(None), 2, 0), 3),
        ((6, 40, 2), (-1, slice(None), 1), (0, slice(None), 1), 1),  # of recurrent layers
    ],
)
def test_the_last_step_of_series_may_be_in_other_places(shape, last, early, channel):
    x, y = torch.randn(shape), torch.randn(40, 1)
    x[early] = y[:, 0]
    found = closest_column(x, y)
    assert found is not None
    assert found[0] < 0.9
    x[last] = y[:, 0] / 3 - 2
    found = closest_column(x, y)
    assert found is not None
    assert found[0] == pytest.approx(1, abs=1e-6)
    assert (found[1], found[2]) == (channel, True)


def test_a_constant_column_and_a_constant_label_have_no_correlation():
    found = closest_column(torch.ones(40, 3), torch.randn(40))
    assert found is not None
    assert found[0] == 0
    found = closest_column(torch.randn(40, 3), torch.ones(40))
    assert found is not None
    assert found[0] == 0


def test_what_a_column_tells_is_recorded(run_dir):
    torch.manual_seed(0)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["target_leak"])
    for _ in range(6):
        x = torch.randn(40, 5)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), x[:, 2:3].exp()).backward()
        optimizer.step()
    watcher.detach()
    run = td.Run(run_dir)
    told = {
        name: run.scalars(f"loop/label_ordered_{name}").values.tolist()
        for name in ("columns", "column", "is_falling", "is_as_given", "labels", "rows")
    }
    assert told == {
        "columns": [1] * 5,
        "column": [2] * 5,
        "is_falling": [0] * 5,
        "is_as_given": [0] * 5,
        "labels": [40] * 5,
        "rows": [40] * 5,
    }
    assert max(run.scalars("loop/label_in_input_correlation").values) < 0.999


class LastState(nn.Module):
    """A GRU, which keeps nothing of its input for the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.head = nn.GRU(3, 4, batch_first=True), nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.gru(x)[0][:, -1])


def test_an_input_that_nobody_holds_is_compared_and_let_go(run_dir):
    torch.manual_seed(0)
    model = LastState()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(60, 7, 3)
    labels = data[:, -1, 1:2] * 2 + 1
    inputs = weakref.WeakSet()
    model.register_forward_pre_hook(lambda _, given: inputs.add(given[0]))
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["target_leak"]):
        for _ in range(8):
            rows = torch.randperm(60)[:40]
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(data[rows]), labels[rows])
            assert len(inputs) == 0
            loss.backward()
            optimizer.step()
        model(data[rows]).sum().backward()  # a loss that nobody compares
        optimizer.step()
        assert len(inputs) == 0
    run = td.Run(run_dir)
    assert run.scalars("loop/label_in_input_column").values.tolist() == 5 * [1]
    assert run.scalars("loop/label_in_input_correlation").values.min() > 1 - 1e-6


@pytest.mark.parametrize("rules", [["target_leak"], None])
def test_a_loss_that_is_written_out_is_of_labels_too(run_dir, rules):
    torch.manual_seed(0)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for _ in range(8):
            x = torch.randn(40, 5)
            optimizer.zero_grad()
            (model(x).squeeze(1) - (3 * x[:, 2] + 1)).square().mean().backward()
            optimizer.step()
    run = td.Run(run_dir)
    assert run.scalars("loop/label_in_input_column").values.tolist() == 5 * [2]
    assert run.scalars("loop/label_in_input_correlation").values.min() > 1 - 1e-6


@pytest.mark.parametrize("is_first", [True, False])
def test_a_table_beside_an_input_of_whole_numbers_is_compared(run_dir, is_first):
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.pages, self.head = nn.Embedding(20, 4), nn.Linear(7, 1)

        def forward(self, a, b):
            pages, table = (b, a) if is_first else (a, b)
            return self.head(torch.cat([self.pages(pages).mean(1), table], 1))[:, 0]

    torch.manual_seed(0)
    model = Both()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["target_leak"]):
        for _ in range(4):
            pages, table = torch.randint(0, 20, (32, 5)), torch.randn(32, 3)
            given = (table, pages) if is_first else (pages, table)
            loss = nn.functional.mse_loss(model(*given), 2 * table[:, 1] + 1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    run = td.Run(run_dir)
    assert run.scalars("loop/label_in_input_column").values.tolist() == 4 * [1]
    assert run.scalars("loop/label_in_input_correlation").values.min() > 1 - 1e-6
    compared = "loop/label_compared_with"
    assert is_first or run.scalars(compared).values.tolist() == 4 * [1]
    assert (compared in run.names()) == (not is_first)


def _bills(rows: int = 64) -> tuple[torch.Tensor, torch.Tensor]:
    """Three columns of which the label is the sum where it was taken apart, and two others."""
    torch.manual_seed(0)
    parts = torch.rand(rows, 3) * torch.tensor([1.0, 4.0, 2.0])
    label = parts.sum(1)
    parts[label < label.median() + 0.5] = 0.0
    x = torch.cat([torch.randn(rows, 2), (parts - parts.mean(0)) / parts.std(0)], 1)
    return x, label / 20 - 1


def test_columns_that_add_up_to_the_label_where_they_are_filled_in():
    x, y = _bills()
    found = parts_of_label(x, y)
    assert found is not None
    assert (found.columns, found.column) == (3, 2)
    assert 11 <= found.rows <= 32
    assert found.error < 1e-5
    assert found.others > 0.2
    found = parts_of_label(x, y + 0.01 * torch.randn(len(y)))
    assert found is not None
    assert found.error > 1e-2
    found = parts_of_label(x[:, :4], y)  # one part is not there
    assert found is not None
    assert found.error > 1e-2
    assert parts_of_label(x[:, :3], y) is None  # one alone
    is_known = (x[:, 2:] != x[:, 2:].median(0).values).any(1, keepdim=True)
    assert parts_of_label(torch.cat([x, is_known], 1), y) is None  # it is meant to be so


def test_tables_whose_columns_are_filled_in_everywhere_or_with_few_values_have_no_parts():
    x, y = _bills()
    assert parts_of_label(torch.randn(64, 5), y) is None
    assert parts_of_label((x > 0).float(), y) is None
    assert parts_of_label(x, (y > 0).long()) is None
    assert parts_of_label(x, (y > 0).float()) is None
    assert parts_of_label(x[:20], y[:20]) is None
    assert parts_of_label(torch.where(torch.rand(64, 5) < 0.02, torch.nan, x), y) is None
