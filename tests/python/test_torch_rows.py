"""Rows of inputs that are known again, and how many labels the model contradicts."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg import _core
from traindbg.hooks.torch.base.later import Later
from traindbg.hooks.torch.data.loaders import missed_labels
from traindbg.hooks.torch.data.passes import Pass
from traindbg.hooks.torch.data.rows import Rows, changes, fingerprints

RULES = ["train_val_overlap", "label_noise"]


class Device:
    """Brings tensors over, as `Deferred` does when a step ends."""

    has_deferred = False

    def bring(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone()


def unscored(rows: Rows):
    """What is told of batches that had no loss."""
    told = [(None, None)]
    later = Later(Device(), Device())
    rows.ask_unscored(later, lambda *found: told.append(found))
    later.send()
    later.deliver()
    return told[-1]


def evaluated(rows: Rows, x: torch.Tensor):
    rows.given(x, in_evaluation_mode=True, step=0)
    rows.evaluated()
    (found,) = rows.read()
    return found


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.bool]
)
def test_equal_rows_have_equal_fingerprints(dtype):
    x = torch.randn(20, 40)
    x = x > 0 if dtype is torch.bool else x.mul(100).to(dtype)
    found = fingerprints(x)
    assert found is not None
    assert found.shape == (20, 3)
    order = torch.randperm(20)
    assert torch.equal(fingerprints(x[order]), found[order])
    assert torch.equal(fingerprints(x.t().contiguous().t()), found)  # however it lies in memory
    assert found.unique(dim=0).shape[0] == 20


DTYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
]


def ways_to_lie(x: torch.Tensor):
    """The same values, wherever they are in memory."""
    yield x
    yield x.mT.contiguous().mT
    yield x.transpose(0, -1).contiguous().transpose(0, -1)
    yield x.repeat_interleave(2, 1)[:, ::2]
    yield torch.cat([x.new_zeros(3), x.reshape(-1)])[3:].view(x.shape)


@pytest.mark.parametrize("shape", [(2, 2), (5, 3, 4), (70, 255), (66, 257), (3, 7, 300), (4, 1500)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_core_makes_the_fingerprints_that_operations_make(dtype, shape):
    torch.manual_seed(0)
    x = torch.randn(shape).mul(3).round()
    if dtype.is_floating_point:
        x.view(-1)[:4] = torch.tensor([0.0, -0.0, torch.nan, torch.nan])
    x = x > 0 if dtype is torch.bool else x.abs().to(dtype) if dtype is torch.uint8 else x.to(dtype)
    for each in (*ways_to_lie(x), x[:1].expand(shape)):
        prints = _core.row_prints(each, True)
        assert prints.halves == [tuple(row[:2]) for row in fingerprints(each).tolist()]
        assert prints.changes == changes(each).tolist()
        assert prints.batch == len(x)


def test_the_core_makes_no_fingerprints_of_what_it_cannot_read():
    assert _core.row_prints(torch.randn(30)) is None
    assert _core.row_prints(torch.randn(30, 1)) is None
    assert _core.row_prints(torch.randn(4, 4).to_sparse()) is None
    assert _core.row_prints(torch.randn(4, 4, dtype=torch.complex64)) is None
    assert _core.row_prints(torch.randn(4, 4, device="meta")) is None


def test_one_value_more_is_another_row():
    x = torch.zeros(3, 500)
    changed = x.clone()
    changed[1, 0] = 1e-30
    same = (fingerprints(x) == fingerprints(changed)).all(1)
    assert same.tolist() == [True, False, True]


def test_what_has_no_rows_has_no_fingerprints():
    assert fingerprints(torch.tensor(1.0)) is None
    assert fingerprints(torch.randn(30)) is None
    assert fingerprints(torch.randn(30, 1)) is None  # a number is soon the same by chance
    assert fingerprints(torch.randn(1, 30)) is None
    assert fingerprints(torch.randn(4, 4).to_sparse()) is None
    assert fingerprints(torch.randn(4, 4, dtype=torch.complex64)) is None


def test_rows_of_the_training_are_known_again():
    rows, x = Rows(), torch.randn(60, 12)
    rows.trained(x[:40], 1.0)
    found = evaluated(rows, x[30:])
    assert (found.rows_evaluated, found.rows_evaluated_trained, found.rows_known) == (30, 10, 40)
    assert found.rows_evaluated_half_alike == 0
    assert found.rows_alike == 0
    assert evaluated(rows, x[:40]).rows_as_in_training == 1


def test_another_training_begins_with_nothing():
    rows, x = Rows(), torch.randn(40, 12)
    rows.trained(x, 1.0)
    rows.read()
    rows.forget()
    assert evaluated(rows, x).rows_evaluated_trained == 0


def labelled(labels_of, x=None, epochs=2):
    """What is known after so many passes; `labels_of(rows)`: what the loss is given."""
    rows = Rows()
    x = torch.randn(128, 12) if x is None else x
    for _ in range(epochs):
        for chosen in torch.randperm(128).split(32):
            rows.trained(x[chosen], 1.0)
            rows.labelled(labels_of(chosen))
            rows.read()
    return rows.read_labelled()


def test_a_row_that_comes_again_with_another_class_is_counted():
    torch.manual_seed(0)
    y = torch.arange(128) % 4
    kept = labelled(lambda rows: y[rows])
    assert (kept.rows_again, kept.rows_again_changed) == (128, 0)
    assert kept.rows_again_by_chance == pytest.approx(0.75)
    assert labelled(lambda rows: y[rows].float()[:, None]).rows_again_changed == 0  # of two, say
    dealt = labelled(lambda rows: y[rows[torch.randperm(32)]])
    assert 0.6 < dealt.rows_again_changed / dealt.rows_again < 0.9


def test_what_belongs_to_two_inputs_is_not_taken_for_that_of_one():
    torch.manual_seed(0)
    anchors, others = torch.randn(128, 12), torch.randn(128, 12)
    rows, told = Rows(), Rows()
    lengths = torch.randint(1, 12, (128,))
    for _ in range(3):
        for chosen in torch.randperm(128).split(32):
            partner = torch.randint(128, (32,))
            rows.trained(anchors[chosen], 1.0)
            rows.further_input(others[partner])
            rows.labelled((chosen % 2 == partner % 2).long())
            rows.read()
            told.trained(anchors[chosen], 1.0)
            told.further_input(lengths[chosen])
            told.labelled(torch.randint(3, (32,)))
            told.read()
    found = rows.read_labelled()
    assert found is None or found.rows_again_changed == 0
    dealt = told.read_labelled()
    assert dealt.rows_again == 256
    assert dealt.rows_again_changed > 128


class Graphs(nn.Module):
    """Of atoms and of the bonds between them."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(42, 1)

    def forward(self, nodes, bonds):
        return self.head(torch.cat([nodes.float(), bonds], 1))


@pytest.mark.parametrize(("first", "expected"), [(32, [0, 0, 0]), (8, [16, 16, 16])])
def test_rows_of_two_inputs_are_known_by_both(run_dir, first, expected):
    torch.manual_seed(0)
    nodes = torch.randint(4, (8, 6)).repeat(8, 1)  # a few molecules have the same atoms
    bonds = torch.randn(64, 36)
    model = Graphs()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with td.watch(model, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(3):
            model.train()
            for rows in torch.arange(32).split(16):
                F.mse_loss(model(nodes[rows], bonds[rows]), bonds[rows, :1]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                rows = torch.arange(first, first + 16)
                F.mse_loss(model(nodes[rows], bonds[rows]), bonds[rows, :1])
    trained = td.Run(run_dir).scalars("loop/rows_evaluated_trained", "eval").values
    assert trained.tolist() == expected


def test_what_are_no_classes_of_rows_is_not_counted():
    torch.manual_seed(0)
    assert labelled(lambda rows: torch.arange(32)) is None  # which row belongs to which
    assert labelled(lambda rows: torch.randn(32)) is None
    assert labelled(lambda rows: torch.full((32,), torch.nan)) is None
    assert labelled(lambda rows: torch.randint(3, (32, 5))) is None  # of each position
    assert labelled(lambda rows: torch.ones(32, requires_grad=True)) is None
    assert labelled(lambda rows: rows % 4, epochs=1) is None  # none came again
    assert labelled(lambda rows: rows % 4, x=torch.arange(256).view(128, 2) // 100) is None


def test_rows_of_few_different_ones_are_alike_in_halves():
    bits = torch.randint(0, 2, (60, 10))
    rows = Rows()
    rows.trained(bits, 1.0)
    found = evaluated(rows, bits)
    assert found.rows_half_alike > 5 * max(found.rows_alike, 1)
    copies = Rows()
    copies.trained(torch.randn(20, 10).repeat(3, 1), 1.0)
    found = evaluated(copies, bits)
    assert found.rows_alike == 60
    assert found.rows_half_alike == 0


@pytest.mark.parametrize("device_path", ["0", "1"])
def test_rows_of_few_words_are_alike_in_halves_though_padded(monkeypatch, device_path):
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", device_path)
    torch.manual_seed(0)
    sentences = torch.zeros(120, 12, dtype=torch.int64)
    sentences[:, :4] = torch.randint(1, 5, (120, 4))  # the second half is the same in all
    rows = Rows()
    rows.trained(sentences[:60], 1.0)
    found = evaluated(rows, sentences[60:])
    assert found.rows_half_alike > 5 * max(found.rows_alike, 1)
    assert found.rows_evaluated_half_alike > found.rows_evaluated_trained > 5


def test_what_is_remembered_is_bounded():
    rows = Rows()
    for _ in range(400):
        rows.trained(torch.randn(64, 4), 1.0)
        rows.read()
    assert rows.standing().rows_known < 17_000


def test_a_forward_pass_without_a_loss_is_no_evaluation():
    rows, x = Rows(), torch.randn(20, 4)
    rows.trained(x, 1.0)
    rows.given(x, in_evaluation_mode=True, step=0)
    rows.trained(x, 1.0)
    rows.evaluated()
    assert rows.read() == []


@pytest.mark.parametrize(
    ("sizes", "order"), [((12, 30), (0, 1)), ((12, 30), (1, 0)), ((30, 12), (0, 1))]
)
def test_two_batches_may_come_before_the_losses_of_both(sizes, order):
    rows, x = Rows(), torch.randn(60, 4)
    val, known = torch.randn(sizes[0], 4), x[: sizes[1]]
    rows.trained(x, 1.0)
    rows.read()
    for part in (val, known):
        rows.given(part, in_evaluation_mode=True, step=1)
    for at in order:
        rows.evaluated(torch.zeros(sizes[at]))
    found = [(told.rows_evaluated, told.rows_evaluated_trained) for told in rows.read()]
    assert found == [[(sizes[0], 0), (sizes[1], sizes[1])][at] for at in order]
    rows.trained(x, 1.0)
    assert unscored(rows) == (None, None)


@pytest.mark.parametrize("before", [1, 2, 3])
def test_a_loss_after_predictions_alone_is_of_the_last_batch(before):
    rows, x = Rows(), torch.randn(60, 4)
    rows.trained(x, 1.0)
    rows.read()
    for part in (*(torch.randn(20, 4) for _ in range(before)), x[:20]):
        rows.given(part, in_evaluation_mode=True, step=1)
    rows.evaluated(torch.zeros(20))
    assert [told.rows_evaluated_trained for told in rows.read()] == [20]
    found, _ = unscored(rows)
    assert found is not None
    assert found.rows_unscored_batches == before


def test_batches_of_the_training_and_others_are_counted_apart() -> None:
    rows, x = Rows(), torch.randn(80, 12)
    rows.trained(x[:40], 1.0)
    rows.read()
    for step, parts in ((2, (x[:40], x[30:50], x[39:45])), (3, (x[:20], x[38:42]))):
        for part in parts:
            rows.given(part, in_evaluation_mode=True, step=step)
    rows.trained(x[:40], 1.0)
    found, _ = unscored(rows)
    assert found is not None
    assert found.rows_unscored_trained == 40 + 10 + 1 + 20 + 2
    assert found.rows_unscored_mixed == 20 + 6 + 4
    assert found.rows_unscored_mixed_trained == 10 + 1 + 2
    assert found.rows_unscored_mixed_batches == 1
    assert found.rows_unscored_mixed_of == 26
    assert found.rows_unscored_evaluations == 2


def test_rows_of_an_evaluation_are_counted_whether_looked_at_or_not() -> None:
    rows, x = Rows(), torch.randn(80, 12)
    rows.trained(x, 1.0)
    rows.read()
    for _ in range(60):
        rows.given(x[:20], in_evaluation_mode=True, step=1)
    rows.trained(x, 1.0)
    found, _ = unscored(rows)
    assert found is not None
    assert found.rows_unscored_batches == 48
    assert (found.rows_unscored_of, found.rows_unscored_batches_of) == (60 * 20, 60)


def test_a_batch_without_fingerprints_is_not_taken_for_the_one_before():
    rows, x = Rows(), torch.randn(60, 4)
    rows.trained(x, 1.0)
    rows.read()
    rows.given(x[:20], in_evaluation_mode=True, step=1)
    rows.given(torch.randn(20), in_evaluation_mode=True, step=1)
    rows.evaluated(torch.zeros(20))
    assert rows.read() == []


def test_batches_without_a_loss_are_counted_together():
    rows, x = Rows(), torch.randn(60, 12)
    rows.trained(x[:40], 1.0)
    rows.read()
    for part in (x[50:], x[30:50], x[20:40]):
        rows.given(part, in_evaluation_mode=True, step=2)
    rows.trained(x[:40], 1.0)
    found, in_training = unscored(rows)
    assert found is not None
    assert in_training is None
    assert found.rows_unscored_batches == 3
    assert found.rows_unscored == 50
    assert found.rows_unscored_trained == 30
    assert found.rows_unscored_longest_without == 10
    assert unscored(rows) == (None, None)
    rows.given(x, in_evaluation_mode=False, step=3)
    rows.trained(x[:40], 1.0)
    found, in_training = unscored(rows)
    assert found is None
    assert tuple(in_training or ()) == (1, 60, 40, 1, 0)


@pytest.mark.parametrize(
    ("parts", "again"),
    [
        pytest.param(lambda x: [x[40:50], x[50:]], 0, id="each row once"),
        pytest.param(lambda x: [x[40:]] * 2, 1, id="a second pass"),
        pytest.param(lambda x: [x[40:], x[40:].flip(0)] * 3, 5, id="draws in another order"),
        pytest.param(lambda x: [x[40:]] * 120, 119, id="more batches than are kept"),
        pytest.param(lambda x: [x[40:].repeat(5, 1)], 4, id="draws in one batch"),
        pytest.param(lambda x: [x[40:41].expand(100, -1)], 24 + 36, id="one row"),
    ],
)
def test_how_often_rows_come_again_in_one_evaluation(parts, again):
    rows, x = Rows(), torch.randn(60, 12)
    for step in (0, 1):  # the last one counts
        rows.trained(x[:40], 1.0)
        rows.read()
        for part in parts(x):
            rows.given(part, in_evaluation_mode=False, step=step)
    rows.give_up()
    found = unscored(rows)[1]
    assert found is not None
    assert found.rows_in_train_mode_again == pytest.approx(again, rel=0.5)


def evaluations(rows: Rows, steps: int, parts_of):
    """What is told of evaluations, one after each step; `parts_of(step)`: their batches."""
    for step in range(steps):
        for part in parts_of(step):
            rows.given(part, in_evaluation_mode=True, step=step)
        rows.trained(torch.randn(20, 12), 1.0, step=step)
        yield unscored(rows)[0]
        rows.read()


def test_an_evaluation_is_as_large_as_its_batches_and_is_known_again():
    x = torch.randn(400, 12)
    before, *told = evaluations(Rows(), 4, lambda step: (x[100:300], x[300:400]))
    assert before is None  # of the training nothing is known yet
    assert [found.rows_unscored_of for found in told] == [300] * 3
    assert [found.rows_unscored_again for found in told] == [1, 2, 3]


def test_an_evaluation_that_depends_on_the_model_is_another_one_each_time():
    x = torch.randn(400, 12)
    _, *told = evaluations(Rows(), 4, lambda step: (x[:50], x[:50] * (1 + step)))
    assert [found.rows_unscored_again for found in told] == [0] * 3
    rows = Rows()
    rows.given(torch.randn(400, 12), in_evaluation_mode=False, step=0)  # is looked at instead
    _, *told = evaluations(rows, 4, lambda step: (x[:50],))
    assert [found.rows_unscored_again for found in told] == [0] * 3


@pytest.mark.parametrize(
    ("labels", "pairs"),
    [
        (torch.arange(40.0), 20),
        (torch.arange(80.0).view(40, 2), 20),
        (torch.arange(20).repeat(2), 0),  # drawn twice
        (torch.arange(20.0).repeat(4), 0),  # none of these rows
    ],
)
@pytest.mark.parametrize("path", ["0", "1"])
def test_equal_rows_with_two_labels_are_records_of_their_own(monkeypatch, path, labels, pairs):
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", path)
    rows, x = Rows(), torch.randn(20, 12).repeat(2, 1)

    def counted() -> int:
        rows.read()
        rows.given(x[:10], in_evaluation_mode=True, step=1)
        rows.trained(torch.randn(40, 12), 1.0)
        return unscored(rows)[0].rows_alike_labelled_otherwise

    rows.trained(x, 1.0)
    rows.labelled(labels)
    assert counted() == pairs
    rows.trained(x, 1.0)
    rows.further_input(torch.randn(40, 3))  # in which they may differ
    rows.labelled(labels)
    assert counted() == pairs


@pytest.mark.parametrize("kind", ["numbers", "bits", "copies"])
def test_rows_of_a_device_are_the_same_rows(monkeypatch, kind: str):
    torch.manual_seed(0)
    here, there = Rows(), Rows()
    x = torch.randint(0, 2, (200, 12)) if kind == "bits" else torch.randn(200, 12)
    x = x[torch.randint(200, (200,))] if kind == "copies" else x
    y, lengths = torch.randint(4, (200,)), torch.randint(5, (200,))
    told = []
    for step in range(40):
        chosen = torch.randperm(200)[:40]
        of = Pass(1 + step // 5, 200)
        batch, labels = x[chosen], (y[chosen] + (step % 7 == 0)) % 4
        kept = batch.clone(), labels.clone()
        for path, rows in enumerate((here, there)):
            monkeypatch.setenv("TRAINDBG_DEVICE_PATH", str(path))
            rows.trained(batch, 5.0, of, step)
            if step % 3 == 0:
                rows.further_input(lengths[chosen])
            rows.labelled(labels, are_classes=True)
            batch.zero_()  # what is done to it afterwards is no matter
            labels.zero_()
            if step % 4 == 0:
                rows.given(x[:50], in_evaluation_mode=True, step=step)
                rows.evaluated()
            if step % 5 == 0:
                rows.given(x[50:90], in_evaluation_mode=step % 2 == 0, step=step)
            told.append([rows.read(), rows.read_labelled(), rows.read_again(), rows.standing()])
            told[-1].append(unscored(rows))
            batch.copy_(kept[0])
            labels.copy_(kept[1])
    assert told[::2] == told[1::2]
    assert told[-1][2].pass_rows == 200


def train(run_dir, x, y, x_val, y_val) -> td.Run:
    torch.manual_seed(3)
    model = nn.Linear(x.shape[1], 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES)
    for _ in range(3):
        for i in range(0, len(x), 20):
            loss = F.cross_entropy(model(x[i : i + 20]), y[i : i + 20])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for i in range(0, len(x_val), 20):
                F.cross_entropy(model(x_val[i : i + 20]), y_val[i : i + 20])
        model.train()
    watcher.detach()
    return td.Run(run_dir)


def test_an_evaluation_tells_which_rows_were_trained(run_dir):
    x, y = torch.randn(100, 8), torch.randint(0, 3, (100,))
    run = train(run_dir, x[:80], y[:80], x[50:], y[50:])
    trained = run.scalars("loop/rows_evaluated_trained", "eval").values
    assert trained.tolist() == [20, 10, 0] * 3
    assert run.scalars("loop/rows_known", "eval").values.tolist() == [80] * 9
    assert (
        run.scalars("loop/rows_looked_at", "eval").values.tolist()
        == [80] * 3 + [160] * 3 + [240] * 3
    )


def test_training_data_evaluated_beside_other_data_is_told_of_its_own_batch(run_dir):
    torch.manual_seed(5)
    x, y = torch.randn(80, 8), torch.randint(0, 3, (80,))
    x_val, y_val = torch.randn(30, 8), torch.randint(0, 3, (30,))
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            with torch.no_grad():
                out, seen = model(x_val), model(x)
                F.cross_entropy(out, y_val)
                F.cross_entropy(seen, y)
    run = td.Run(run_dir)
    of = {k: run.scalars(f"loop/rows_evaluated{k}", "eval").values for k in ("", "_trained")}
    assert of[""].tolist() == [30, 64] * 4  # at most 64 rows of a batch are looked at
    assert of["_trained"].tolist() == [0, 64] * 4


@pytest.mark.parametrize(
    ("passes", "epochs", "steps", "count"),
    [(1, 3, [4, 8], 2), (4, 6, [25, 50, 75], 4), (10, 4, [50, 100, 150], 3)],
)
def test_an_accuracy_alone_is_an_evaluation(
    run_dir, passes: int, epochs: int, steps: list[int], count: int
):
    """Where it comes at steps of which nothing is told, the next one that is due tells."""
    x, y = torch.randn(100, 8), torch.randint(0, 3, (100,))
    model = nn.Linear(8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=RULES):
        for _ in range(epochs):
            for i in list(range(0, 80, 20)) * passes:
                optimizer.zero_grad()
                F.cross_entropy(model(x[i : i + 20]), y[i : i + 20]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                model(x[60:]).argmax(1)
            model.train()
    run = td.Run(run_dir)
    assert run.scalars("loop/rows_unscored_trained").steps.tolist() == steps
    trained = run.scalars("loop/rows_unscored_trained").values.tolist()
    evaluated = run.scalars("loop/rows_unscored").values.tolist()
    assert trained == [0.5 * number for number in evaluated]
    assert sum(evaluated) == 40 * count  # of the last ones no step of the training tells
    assert set(run.scalars("loop/rows_known").values) == {80}


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_an_accuracy_in_training_mode(run_dir, dropout: float):
    x, y = torch.randn(100, 8), torch.randint(0, 3, (100,))
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(dropout), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rules = [*RULES, "train_mode_in_validation"]
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for _ in range(3):
            for i in range(0, 80, 20):
                optimizer.zero_grad()
                F.cross_entropy(model(x[i : i + 20]), y[i : i + 20]).backward()
                optimizer.step()
            with torch.no_grad():
                model(x[80:]).argmax(1)
    run = td.Run(run_dir)
    if dropout == 0:  # the mode makes no difference
        assert "loop/rows_in_train_mode" not in run
        return
    assert run.scalars("loop/rows_in_train_mode").values.tolist() == [20, 20, 20]
    assert run.scalars("loop/rows_in_train_mode_trained").values.tolist() == [0, 0, 0]
    assert run.scalars("loop/modules_called_in_train/2").values.tolist() == [1, 1, 1]


def test_labels_that_the_model_contradicts_are_counted(run_dir):
    x, y = torch.randn(100, 8), torch.randint(0, 3, (100,))
    run = train(run_dir, x[:80], y[:80], x[50:], y[50:])
    for mode, count in (("train", 10), ("eval", 9)):
        missed = run.scalars("loop/labels_missed", mode).values
        assert len(missed) == count
        assert ((missed >= 0) & (missed <= 1)).all()
        assert set(run.scalars("loop/labels_counted", mode).values) <= {10, 20}


class Dropping(nn.Module):
    """By a function, or by a module."""

    def __init__(self, rate: float, by_function: bool) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)
        self.drop = nn.Dropout(0.0 if by_function else rate)
        self.rate = rate if by_function else 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.drop(F.relu(self.first(x)))
        return self.last(F.dropout(h, self.rate, training=self.training))


@pytest.mark.parametrize("by_function", [False, True])
@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5])
def test_labels_are_counted_where_little_is_dropped(run_dir, rate: float, by_function: bool):
    x, y = torch.randn(100, 8), torch.randint(0, 3, (100,))
    model = Dropping(rate, by_function)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["label_noise"]):
        for _ in range(3):
            model.train()
            for i in range(0, 80, 20):
                optimizer.zero_grad()
                F.cross_entropy(model(x[i : i + 20]), y[i : i + 20]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                F.cross_entropy(model(x[80:]), y[80:])
    run = td.Run(run_dir)
    for mode, count in (("train", 10), ("eval", 3)):
        told = [] if rate > 0.3 else [20.0] * count
        has_labels = "loop/labels_counted" in run
        assert (
            run.scalars("loop/labels_counted", mode).values.tolist() if has_labels else []
        ) == told
        if rate == 0.2:
            dropped = run.scalars("loop/labels_dropout", mode).values.tolist()
            assert dropped == pytest.approx([0.2] * count)
    assert ("loop/labels_dropout" in run) == (rate == 0.2)


@pytest.mark.parametrize("is_outside", [False, True])
def test_an_evaluations_loss_may_be_computed_after_no_grad(run_dir, is_outside):
    """Of predictions without gradients nothing can be trained."""
    x, y = torch.randn(100, 8), torch.randint(0, 3, (100,))
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    rules = ["label_noise", "train_val_overlap"]
    with td.watch(model, optimizer, run_dir=run_dir, rules=rules, supervise=False):
        for _ in range(3):
            model.train()
            for i in range(0, 80, 20):
                optimizer.zero_grad()
                F.cross_entropy(model(x[i : i + 20]), y[i : i + 20]).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                scores = model(x[70:])
                if not is_outside:
                    F.cross_entropy(scores, y[70:])
            if is_outside:
                F.cross_entropy(scores, y[70:])
    run = td.Run(run_dir)
    assert run.scalars("loop/labels_counted", "eval").values.tolist() == [30] * 3
    assert run.scalars("loop/rows_evaluated", "eval").values.tolist() == [30] * 3
    assert run.scalars("loop/rows_evaluated_trained", "eval").values.tolist() == [10] * 3
    assert "loop/rows_unscored" not in run


def test_a_loss_that_is_given_the_target_first_is_of_the_training(run_dir):
    """In evaluation mode, too: its value has a graph, whichever of its arguments has one."""
    x, y = torch.randn(100, 8), torch.randn(100, 1)
    model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    model.eval()
    rules = ["eval_mode_while_training", "train_val_overlap"]
    with td.watch(model, optimizer, run_dir=run_dir, rules=rules, supervise=False):
        for i in range(0, 100, 20):
            optimizer.zero_grad()
            F.mse_loss(y[i : i + 20], model(x[i : i + 20])).backward()
            optimizer.step()
    run = td.Run(run_dir)
    assert not [name for name in run.names() if name.startswith("loop/rows_evaluated")]
    assert "loop/modules_in_train" not in run


def test_missed_labels():
    scores = torch.tensor([[2.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    number, missed, mean = missed_labels("cross_entropy", scores, torch.tensor([0, 0, 1]))
    assert (number, float(missed), float(mean)) == (3, pytest.approx(2 / 3), pytest.approx(1 / 3))
    # Those that are left out are no labels.
    _, missed, mean = missed_labels("cross_entropy", scores, torch.tensor([0, -100, 0]))
    assert (float(missed), float(mean)) == (0, 0)
    logits, wanted = torch.tensor([1.0, -1.0]), torch.tensor([1.0, 1.0])
    _, missed, _ = missed_labels("binary_cross_entropy_with_logits", logits, wanted)
    assert float(missed) == 0.5
    # Shares are no classes.
    shares = torch.tensor([0.2, 0.9])
    _, missed, _ = missed_labels("binary_cross_entropy_with_logits", logits, shares)
    assert not torch.isfinite(missed)
    assert missed_labels("cross_entropy", scores, scores.softmax(1)) is None
    assert missed_labels("mse_loss", logits, wanted) is None
