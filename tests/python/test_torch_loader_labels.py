"""Losses of evaluations that compute none, of the labels that came with a loader's batch."""

from __future__ import annotations

import collections
import copy
import enum
import itertools
import queue
import threading
import warnings
import weakref

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

import traindbg as td
from traindbg.hooks.torch.labels.forms import OfTraining
from traindbg.hooks.torch.labels.loader_batches import leaf_at, leaves_of
from traindbg.hooks.torch.labels.loader_labels import _listener

X = torch.randn(320, 6, generator=torch.Generator().manual_seed(1))
CLASSES = (X[:, 0] > 0).long() + (X[:, 1] > 0.5).long()
YES = (X[:, :1] > 0).float()
NUMBERS = X[:, :1] * 2 + 1
OF_TRAINING, OF_EVALUATION, BATCH = 192, 128, 16
BATCHES = OF_EVALUATION // BATCH
EPOCHS = 4


def hits(output, y):
    if y.is_floating_point():
        return (output.float() - y).abs().sum().item() if output.shape == y.shape else 0
    return (output.argmax(1 if output.dim() > 1 else 0) == y).sum().item()


def plain(model, batch):
    x, y = batch
    return model(x), y


def loaders(y, **settings):
    parts = slice(0, OF_TRAINING), slice(OF_TRAINING, None)
    generator = torch.Generator().manual_seed(3)
    train, val = (TensorDataset(X[part], y[part]) for part in parts)
    return (
        DataLoader(train, batch_size=BATCH, shuffle=True, generator=generator, **settings),
        DataLoader(val, batch_size=BATCH, **settings),
    )


def train(
    run_dir,
    loss,
    y=CLASSES,
    *,
    given=plain,
    evaluated=None,
    outputs=3,
    model=None,
    data=None,
    watch=True,
    without=torch.no_grad,
    is_known=True,
):
    """Trains `EPOCHS` times through a loader, and evaluates after each time.

    `given(model, batch)` gives the output and the labels, in training, and `evaluated` the same in
    evaluations. Returns the weights at the end and the losses of all evaluated batches but those of
    the first evaluation. Not where
    the loss is not known of them.
    """
    torch.manual_seed(0)
    model = model or nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, outputs))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    trained, val = data or loaders(y)
    expected = []
    watcher = None
    if watch:
        watcher = td.watch(
            model, optimizer, run_dir=run_dir, supervise=False, rules=["overfit", "label_noise"]
        )
    for epoch in range(EPOCHS):
        model.train()
        for batch in trained:
            optimizer.zero_grad()
            loss(*given(model, batch)).backward()
            optimizer.step()
        model.eval()
        with without():
            for batch in val:
                output, labels = (evaluated or given)(model, batch)
                hits(output, labels)
                if epoch > 0:
                    expected.append((output.clone(), labels.clone()))
    if watcher is not None:
        watcher.detach()
    weights = [p.detach().clone() for p in model.parameters()]
    return weights, [loss(*each).item() for each in expected] if is_known and watch else []


def losses(run_dir, function="cross_entropy"):
    run = td.Run(run_dir)
    if f"loss/{function}" not in run.names():
        return []
    return list(run.scalars(f"loss/{function}", "eval")[1])


def weighed(o, y):
    return F.cross_entropy(o, y, torch.tensor([1.0, 2.0, 5.0]), label_smoothing=0.2)


def weighed_yes(o, y):
    return F.binary_cross_entropy_with_logits(o, y, pos_weight=torch.tensor([3.0]))


CASES = {
    "cross_entropy": (F.cross_entropy, CLASSES, 3),
    "nll_loss": (F.nll_loss, CLASSES, nn.LogSoftmax(1)),
    "binary_cross_entropy": (F.binary_cross_entropy, YES, nn.Sigmoid()),
    "binary_cross_entropy_with_logits": (weighed_yes, YES, 1),
    "mse_loss": (F.mse_loss, NUMBERS, 1),
    "l1_loss": (nn.L1Loss(), NUMBERS, 1),
    "smooth_l1_loss": (nn.SmoothL1Loss(beta=0.3), NUMBERS, 1),
    "huber_loss": (nn.HuberLoss(delta=0.2), NUMBERS, 1),
}


@pytest.mark.parametrize("function", CASES)
def test_the_loss_of_the_training_is_computed(function, tmp_path):
    loss, y, last = CASES[function]
    model = None
    if isinstance(last, nn.Module):
        model = nn.Sequential(nn.Linear(6, y.shape[1] if y.dim() > 1 else 3), last)
    outputs = last if isinstance(last, int) else 0
    _, expected = train(tmp_path / "run", loss, y, outputs=outputs, model=model)
    found = losses(tmp_path / "run", function)
    assert len(found) == (EPOCHS - 1) * BATCHES  # of all but the first evaluation
    assert found == pytest.approx(expected, rel=1e-5)
    told = [each for each in td.Run(tmp_path / "run").events if each["kind"] == "evaluation_losses"]
    assert [each["data"]["loss"] for each in told] == [function]


def test_of_each_batch_of_many(tmp_path, monkeypatch):
    """Whatever else is due of evaluations, which is looked at in the first ones alone."""
    monkeypatch.setitem(globals(), "EPOCHS", 14)
    _, expected = train(tmp_path / "run", F.cross_entropy)
    found = losses(tmp_path / "run")
    assert len(found) >= 12 * BATCHES
    assert found == pytest.approx(expected[-len(found) :], rel=1e-5)


def test_settings_of_the_training_count(tmp_path):
    _, expected = train(tmp_path / "run", weighed)
    found = losses(tmp_path / "run")
    assert len(found) == (EPOCHS - 1) * BATCHES
    assert found == pytest.approx(expected, rel=1e-5)


def test_classes_are_counted(tmp_path):
    right = []

    def evaluated(model, batch):
        output, y = plain(model, batch)
        right.append(hits(output, y))
        return output, y

    train(tmp_path / "run", F.cross_entropy, evaluated=evaluated)
    run = td.Run(tmp_path / "run")
    classes = [run.step(step, "eval").classes for step in run.steps("eval")]
    counted = [each["classes/cross_entropy"] for each in classes if each]
    assert counted
    of_losses = right[-len(losses(tmp_path / "run")) :]
    assert [sum(each.hits) for each in counted] == of_losses[: len(counted)]


class Named(Dataset):
    """Batches with names, in double precision, and a number of the row that nobody trains on."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return {"row": row, "of": {"x": X[row].double(), "y": CLASSES[row]}}


def test_parts_are_found_by_their_values(tmp_path):
    """The model is given a copy of one part in other numbers, and the loss that of another one."""
    rows = torch.arange(320)
    data = (
        DataLoader(Named(rows[:OF_TRAINING]), batch_size=BATCH, shuffle=True),
        DataLoader(Named(rows[OF_TRAINING:]), batch_size=BATCH),
    )

    def given(model, batch):
        return model(batch["of"]["x"].float()), batch["of"]["y"].to(torch.int32).long()

    _, expected = train(tmp_path / "run", F.cross_entropy, given=given, data=data)
    assert losses(tmp_path / "run") == pytest.approx(expected, rel=1e-5)
    assert len(expected) == (EPOCHS - 1) * BATCHES


def test_forms_are_those_of_the_training(tmp_path):
    """Of labels without a second dimension, in whole numbers, for one output."""
    y = YES.squeeze(1).long()

    def given(model, batch):
        return model(batch[0]).squeeze(1), batch[1].float()

    def evaluated(model, batch):
        output = model(batch[0])
        return output.squeeze(1), batch[1].float()

    loss = nn.BCEWithLogitsLoss()
    _, expected = train(tmp_path / "run", loss, y, given=given, evaluated=evaluated, outputs=1)
    found = losses(tmp_path / "run", "binary_cross_entropy_with_logits")
    assert len(found) == (EPOCHS - 1) * BATCHES
    assert found == pytest.approx(expected, rel=1e-5)


def test_words_of_sentences_are_rows(tmp_path):
    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(9, 8), nn.Linear(8, 9)

        def forward(self, words):
            return self.head(self.embed(words)), "beside it"

    words = torch.randint(0, 9, (320, 7), generator=torch.Generator().manual_seed(2))
    data = TensorDataset(words, (words + 1) % 9)
    of = [
        torch.utils.data.Subset(data, rows)
        for rows in (range(OF_TRAINING), range(OF_TRAINING, 320))
    ]
    data = [DataLoader(each, batch_size=BATCH) for each in of]

    def given(model, batch):
        output, _ = model(batch[0])
        return output.view(-1, 9), batch[1].view(-1)

    _, expected = train(tmp_path / "run", F.cross_entropy, given=given, data=data, model=Words())
    assert losses(tmp_path / "run") == pytest.approx(expected, rel=1e-5)
    assert len(expected) == (EPOCHS - 1) * BATCHES


@pytest.mark.parametrize("workers", [0, 2])
def test_tensors_of_inference_mode(workers, tmp_path):
    _, expected = train(
        tmp_path / "run",
        F.cross_entropy,
        without=torch.inference_mode,
        data=loaders(CLASSES, num_workers=workers),
    )
    assert losses(tmp_path / "run") == pytest.approx(expected, rel=1e-5)
    assert len(expected) == (EPOCHS - 1) * BATCHES


def test_fewer_bits_of_autocast(tmp_path):
    def given(model, batch):
        with torch.autocast("cpu", torch.bfloat16):
            return model(batch[0]), batch[1]

    def loss(output, y):
        with torch.autocast("cpu", torch.bfloat16):
            return F.cross_entropy(output, y)

    _, expected = train(tmp_path / "run", loss, given=given)
    assert losses(tmp_path / "run") == pytest.approx(expected, rel=1e-5)
    assert len(expected) == (EPOCHS - 1) * BATCHES


def test_without_evaluation_mode(tmp_path):
    """Gradients alone are off, and only around the model's call."""
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    trained, val = loaders(CLASSES)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, rules=["overfit"]):
        for _ in range(EPOCHS):
            for x, y in trained:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
            for x, y in val:
                with torch.no_grad():
                    hits(model(x), y)
    assert len(losses(tmp_path / "run")) == (EPOCHS - 1) * BATCHES


# What is not an evaluation of the same kind, or has a loss.


def test_what_the_program_computes_is_recorded_alone(tmp_path):
    def evaluated(model, batch):
        output, y = plain(model, batch)
        F.cross_entropy(output, y)
        return output, y

    train(tmp_path / "run", F.cross_entropy, evaluated=evaluated)
    assert len(losses(tmp_path / "run")) == EPOCHS * BATCHES
    assert "evaluation_losses" not in {e["kind"] for e in td.Run(tmp_path / "run").events}
    assert _listener.labels is None


def test_another_loss_of_the_program_is_recorded_alone(tmp_path):
    def evaluated(model, batch):
        output, y = plain(model, batch)
        F.nll_loss(output.log_softmax(1), y)
        return output, y

    train(tmp_path / "run", F.cross_entropy, evaluated=evaluated)
    assert losses(tmp_path / "run") == []
    assert len(losses(tmp_path / "run", "nll_loss")) == EPOCHS * BATCHES


def noise(model, batch):
    return model(batch[0] + 0.1), batch[1]


def permuted(model, batch):
    x, y = batch
    x[:, 0] = x[:, 0].roll(1)  # where it lies
    return model(x), y


def renamed(model, batch):
    x, y = batch
    y.copy_((y + 1) % 3)
    return model(x), y


def of_another_model(model, batch):
    return copy.deepcopy(model)(batch[0]), batch[1]


@pytest.mark.parametrize("evaluated", [noise, permuted, renamed, of_another_model])
@pytest.mark.parametrize("without", [torch.no_grad, torch.inference_mode])
def test_what_is_changed_says_nothing(evaluated, without, tmp_path):
    # What is changed in place must not be the data set.
    data = (
        loaders(CLASSES)[0],
        DataLoader(
            TensorDataset(X[OF_TRAINING:].clone(), CLASSES[OF_TRAINING:].clone()), batch_size=BATCH
        ),
    )
    train(tmp_path / "run", F.cross_entropy, evaluated=evaluated, data=data, without=without)
    assert losses(tmp_path / "run") == []


def test_a_batch_that_is_given_several_times_says_nothing(tmp_path):
    """As for Monte-Carlo dropout, or with changes that are averaged."""

    def evaluated(model, batch):
        x, y = batch
        outputs = [model(x) for _ in range(5)]
        model(x.flip(1))
        return outputs[0], y

    train(tmp_path / "run", F.cross_entropy, evaluated=evaluated)
    assert losses(tmp_path / "run") == []


def of_angles(o, y):
    return F.cross_entropy(F.normalize(o, dim=1) * 30, y)


def of_samples(o, y):
    return F.cross_entropy(o, y, reduction="none").mean()


def summed(o, y):
    return F.cross_entropy(o, y, reduction="sum")


def mixed(o, y):
    return F.cross_entropy(o, F.one_hot(y, 3).float() * 0.9 + 0.03)


def after_another(o, y):
    return F.cross_entropy(o * 0.5, y) + F.cross_entropy(o, y)


@pytest.mark.parametrize("loss", [of_angles, of_samples, summed, mixed, after_another])
def test_a_loss_of_something_else_says_nothing(loss, tmp_path):
    train(tmp_path / "run", loss)
    assert losses(tmp_path / "run") == []


def test_mixed_inputs_of_the_training_say_nothing(tmp_path):
    def given(model, batch):
        x, y = batch
        return model(0.7 * x + 0.3 * x.roll(1, 0)), y

    train(tmp_path / "run", F.cross_entropy, given=given, evaluated=plain)
    assert losses(tmp_path / "run") == []


def test_probabilities_are_not_what_the_loss_is_given(tmp_path):
    class InEvaluation(nn.Module):
        def forward(self, x):
            return x if self.training else x.softmax(1)

    train(tmp_path / "run", F.cross_entropy, model=nn.Sequential(nn.Linear(6, 3), InEvaluation()))
    assert losses(tmp_path / "run") == []


def test_labels_that_the_loss_cannot_be_given(tmp_path):
    """A device may refuse to go on; and a mean of none is no number."""
    y = CLASSES.clone()
    y[OF_TRAINING] = 3  # of a class that was not trained
    y[OF_TRAINING + BATCH :] = -100
    train(tmp_path / "run", F.cross_entropy, data=loaders(y), is_known=False)
    assert losses(tmp_path / "run") == []


def test_of_whole_tensors_nothing_is_known(tmp_path):
    class Whole:
        def __iter__(self):
            return iter(zip(X.split(BATCH), CLASSES.split(BATCH), strict=True))

    train(tmp_path / "run", F.cross_entropy, data=(Whole(), Whole()))
    assert losses(tmp_path / "run") == []


def test_batches_that_a_thread_draws_say_nothing(tmp_path):
    class Ahead:
        def __init__(self, loader):
            self.loader = loader

        def __iter__(self):
            drawn = queue.Queue()
            thread = threading.Thread(target=lambda: [drawn.put(each) for each in self.loader])
            thread.start()
            thread.join()
            return iter(list(drawn.queue))

    train(tmp_path / "run", F.cross_entropy, data=[Ahead(each) for each in loaders(CLASSES)])
    assert losses(tmp_path / "run") == []


def test_images_may_be_larger_than_in_training(tmp_path):
    torch.manual_seed(1)
    small, large = torch.randn(192, 2, 4, 4), torch.randn(128, 2, 8, 6)
    data = [
        DataLoader(TensorDataset(each, (each[:, 0] > 0).long()), batch_size=BATCH)
        for each in (small, large)
    ]
    model = nn.Conv2d(2, 3, 1)

    def evaluated(model, batch):
        return model(batch[0]).contiguous(), batch[1]

    _, expected = train(
        tmp_path / "run", F.cross_entropy, model=model, data=data, evaluated=evaluated
    )
    assert losses(tmp_path / "run") == pytest.approx(expected, rel=1e-5)
    assert len(expected) == (EPOCHS - 1) * BATCHES


class Denormalises(nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return y if self.training else 40 * y + 300


class Probabilities(nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return y if self.training else y.bfloat16().softmax(1)


class Sigmoid(nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return y if self.training else y.sigmoid()


class Says(nn.Linear):
    def forward(self, x):
        y = super().forward(x)
        return y if self.training else y > 0


IDS = torch.arange(320)
OTHER_LABELS = {
    "raw units": (F.mse_loss, NUMBERS, 300 + 40 * NUMBERS, None),
    "other units": (F.mse_loss, NUMBERS, 2 + 3 * NUMBERS, None),
    "small units": (F.mse_loss, NUMBERS, 0.1 * NUMBERS, None),
    "ids": (F.mse_loss, NUMBERS, IDS, None),
    "ids like numbers": (F.mse_loss, NUMBERS, IDS[:, None].float(), None),
    "other classes": (F.cross_entropy, CLASSES, (CLASSES + 1) % 3, None),
    "mostly yes": (F.binary_cross_entropy_with_logits, YES, (IDS % 16 > 0).float(), None),
    "placeholders": (F.cross_entropy, CLASSES, torch.zeros_like(CLASSES), None),
    "unknown": (F.binary_cross_entropy_with_logits, YES, -torch.ones_like(YES), None),
    "denormalised": (F.mse_loss, NUMBERS, NUMBERS, Denormalises(6, 1)),
    "probabilities": (F.cross_entropy, CLASSES, CLASSES, Probabilities(6, 3)),
    "sigmoid": (F.binary_cross_entropy_with_logits, YES, YES, Sigmoid(6, 1)),
    "yes or no": (F.binary_cross_entropy_with_logits, YES, YES, Says(6, 1)),
}


@pytest.mark.parametrize("case", OTHER_LABELS)
def test_what_is_no_label_of_what_the_model_returns_says_nothing(case, tmp_path):
    loss, y, other, model = OTHER_LABELS[case]
    data = (
        loaders(y)[0],
        DataLoader(TensorDataset(X[OF_TRAINING:], other[OF_TRAINING:]), batch_size=4),
    )
    outputs = 3 if loss is F.cross_entropy else 1
    train(tmp_path / "run", loss, data=data, outputs=outputs, model=model, is_known=False)
    assert losses(tmp_path / "run", loss.__name__) == []


@pytest.mark.parametrize("loss", ["l1_loss", "cross_entropy"])
def test_of_labels_that_are_large_numbers_no_table_is_made(loss):
    """What is ignored may be any number, and a regression's target an integer."""
    known = OfTraining()
    target = torch.tensor([0, 1, 1, 1 << 60])
    assert known.add(loss, torch.rand(4, 3), target)
    assert known.labels().shares == ((1 / 3, 2 / 3, 0.0) if loss == "cross_entropy" else ())


DEALT = torch.randperm(320, generator=torch.Generator().manual_seed(2))
AT_CHANCE = {
    "cross_entropy": (F.cross_entropy, CLASSES, CLASSES[DEALT], 3),
    "yes or no": (F.binary_cross_entropy_with_logits, YES, YES[DEALT], 1),
}


@pytest.mark.parametrize("case", AT_CHANCE)
def test_an_evaluation_at_chance_has_losses_from_its_third_pass_on(case, tmp_path):
    """Nothing tells that they are labels but their place in the batch, and how frequent each is."""
    loss, y, other, outputs = AT_CHANCE[case]
    data = (
        loaders(y)[0],
        DataLoader(TensorDataset(X[OF_TRAINING:], other[OF_TRAINING:]), batch_size=4),
    )
    _, expected = train(tmp_path / "run", loss, data=data, outputs=outputs)
    found = losses(tmp_path / "run", loss.__name__)
    assert len(found) == (EPOCHS - 3) * len(data[1])
    np.testing.assert_allclose(found, expected[-len(found) :], rtol=1e-6)


def test_rows_of_the_training_are_no_evaluation(tmp_path):
    """As another object that holds them, which is gone through for the training's hits."""
    trained, val = loaders(CLASSES)
    again = DataLoader(TensorDataset(X[:OF_TRAINING], CLASSES[:OF_TRAINING]), batch_size=BATCH)

    class Both:
        def __iter__(self):
            return itertools.chain(again, val)

    _, expected = train(tmp_path / "run", F.cross_entropy, data=(trained, Both()))
    of_training = OF_TRAINING // BATCH
    of_val = [
        loss for at, loss in enumerate(expected) if at % (of_training + BATCHES) >= of_training
    ]
    assert losses(tmp_path / "run") == pytest.approx(of_val, rel=1e-5)


def test_an_evaluation_in_another_way_ends_it(tmp_path):
    """Of data that is known to be evaluated."""
    passes = []

    def evaluated(model, batch):
        passes.append(0)
        x, y = batch
        return model(x + (len(passes) > 2 * BATCHES)), y

    train(tmp_path / "run", F.cross_entropy, evaluated=evaluated)
    assert len(losses(tmp_path / "run")) == BATCHES
    assert _listener.labels is None


class Case(enum.Enum):
    WARM = 1
    COLD = 2


@pytest.mark.parametrize("values", [(Case.WARM, Case.COLD), (np.float32(1), np.float32(2))])
def test_other_arguments_count(values, tmp_path):
    class Takes(nn.Linear):
        def forward(self, x, case):
            return super().forward(x) * (1.0 if case == values[0] else 0.3)

    def given(model, batch):
        return model(batch[0], values[0 if model.training else 1]), batch[1]

    train(tmp_path / "run", F.cross_entropy, given=given, model=Takes(6, 3))
    assert losses(tmp_path / "run") == []


def test_odd_things_in_a_batch(tmp_path):
    class Odd(float):
        def __eq__(self, other):
            raise ValueError("no truth")

        __hash__ = None

    class Ignores(nn.Linear):
        def forward(self, x, *others, **more):
            return super().forward(x)

    def collate(rows):
        x, y = (torch.stack(each) for each in zip(*rows, strict=True))
        return [
            x,
            y,
            Odd(1),
            {torch.ones(1): 3, "c": x.to(torch.complex64)},
            None,
            "text",
            X.numpy(),
        ]

    def given(model, batch):
        return model(batch[0], Odd(2), a={Odd.__name__: None}), batch[1]

    data = loaders(CLASSES, collate_fn=collate)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(tmp_path / "run", F.cross_entropy, given=given, model=Ignores(6, 3), data=data)


def test_one_set_of_data_is_evaluated(tmp_path):
    """Further ones may be from elsewhere, or be the test."""
    trained, val = loaders(CLASSES)
    other = DataLoader(TensorDataset(X[:32] + 5, CLASSES[:32]), batch_size=BATCH)

    class Both:
        def __iter__(self):
            return itertools.chain(val, other)

    _, expected = train(tmp_path / "run", F.cross_entropy, data=(trained, Both()))
    of_first = [loss for at, loss in enumerate(expected) if at % (BATCHES + 2) < BATCHES]
    assert losses(tmp_path / "run") == pytest.approx(of_first, rel=1e-5)


@pytest.mark.parametrize("when", ["before", "after"])
def test_passes_without_gradients_in_each_step_say_nothing(when, tmp_path):
    """Hits are counted in training; and a loader gives what has no labels, in turn."""
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    trained, others = loaders(CLASSES)

    def look(x, y, other):
        with torch.no_grad():
            hits(model(x), y)
            model(other[0]).softmax(1).max(1)

    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, rules=["overfit"]):
        for _ in range(EPOCHS):
            for (x, y), other in zip(trained, others, strict=False):
                if when == "before":
                    look(x, y, other)
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
                if when == "after":
                    look(x, y, other)
    assert losses(tmp_path / "run") == []


def test_a_condition_beside_noise_is_not_enough(tmp_path):
    class Sampler(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.embed = nn.Linear(6, 6), nn.Embedding(3, 6)

        def forward(self, x, y):
            return self.layer(x) + self.embed(y)

    def given(model, batch):
        x, y = batch
        return model(x + 0.1 * torch.randn_like(x), y), x

    train(tmp_path / "run", F.mse_loss, given=given, model=Sampler())
    assert losses(tmp_path / "run", "mse_loss") == []


def test_arguments_count(tmp_path):
    class Flag(nn.Linear):
        def forward(self, x, is_cold=False):
            return super().forward(x) * (0.1 if is_cold else 1.0)

    def evaluated(model, batch):
        return model(batch[0], is_cold=True), batch[1]

    train(tmp_path / "run", F.cross_entropy, evaluated=evaluated, model=Flag(6, 3))
    assert losses(tmp_path / "run") == []


def test_a_model_in_training_mode_that_acts_by_it_says_nothing(tmp_path):
    class Never(nn.Sequential):
        def eval(self):
            return self

    model = Never(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    train(tmp_path / "run", F.cross_entropy, model=model)
    assert losses(tmp_path / "run") == []


@pytest.mark.parametrize("row", [2, 9])
def test_a_copy_that_differs_in_one_row_says_nothing(row, tmp_path):
    def evaluated(model, batch):
        x = batch[0].clone()
        x[row, 3] += 1
        return model(x), batch[1]

    train(tmp_path / "run", F.cross_entropy, evaluated=evaluated)
    assert losses(tmp_path / "run") == []


def test_a_target_in_another_order_says_nothing(tmp_path):
    class Square(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x)

    x = torch.randn(320, 4, 4, generator=torch.Generator().manual_seed(5))
    parts = slice(0, OF_TRAINING), slice(OF_TRAINING, None)
    data = [DataLoader(TensorDataset(x[part], 2 * x[part]), batch_size=BATCH) for part in parts]

    def given(model, batch):
        return model(batch[0]), batch[1].transpose(1, 2)

    train(tmp_path / "run", F.mse_loss, given=given, data=data, model=Square())
    assert losses(tmp_path / "run", "mse_loss") == []


def test_settings_that_change_say_nothing(tmp_path):
    def loss(o, y):
        return F.binary_cross_entropy_with_logits(o, y, pos_weight=1 / y.mean())

    train(tmp_path / "run", loss, YES, outputs=1)
    assert losses(tmp_path / "run", "binary_cross_entropy_with_logits") == []


def test_a_metric_between_the_model_and_its_loss(tmp_path):
    """Its values are of inference mode, and have no version."""

    def given(model, batch):
        output = model(batch[0])
        with torch.inference_mode():
            said = output.sigmoid()
        F.l1_loss(said, torch.ones(3))
        return output, batch[1]

    train(tmp_path / "run", F.cross_entropy, given=given, evaluated=plain)
    assert losses(tmp_path / "run") == []


@pytest.mark.filterwarnings("ignore")
def test_a_loop_may_draw_one_ahead(tmp_path):
    class Ahead:
        def __init__(self, loader):
            self.loader = loader

        def __iter__(self):
            drawn = iter(self.loader)
            last = next(drawn)
            for batch in drawn:
                yield last
                last = batch
            yield last

    data = [Ahead(each) for each in loaders(CLASSES)]
    _, expected = train(tmp_path / "run", F.cross_entropy, data=data)
    assert losses(tmp_path / "run") == pytest.approx(expected, rel=1e-5)
    assert len(expected) == (EPOCHS - 1) * BATCHES


def test_an_evaluation_that_is_left_early_says_nothing(tmp_path):
    class First:
        def __init__(self, loader):
            self.loader = loader

        def __iter__(self):
            for number, batch in enumerate(self.loader):
                if number == BATCHES - 1:
                    return
                yield batch

    trained, val = loaders(CLASSES)
    train(tmp_path / "run", F.cross_entropy, data=(trained, First(val)))
    assert losses(tmp_path / "run") == []


def test_lists_are_data_too(tmp_path):
    rows = list(zip(X, CLASSES, strict=True))
    data = (
        DataLoader(rows[:OF_TRAINING], batch_size=BATCH, shuffle=True),
        DataLoader(rows[OF_TRAINING:], batch_size=BATCH),
    )
    _, expected = train(tmp_path / "run", F.cross_entropy, data=data)
    assert losses(tmp_path / "run") == pytest.approx(expected, rel=1e-5)


def test_what_a_batch_is_made_of_is_not_asked(tmp_path):
    """One that makes its values when it is asked may draw random numbers."""

    class Lazy(collections.abc.Mapping):
        def __init__(self, x, y):
            self.values_ = {"x": x, "y": y}

        def __getitem__(self, key):
            torch.rand(1)
            return self.values_[key]

        def __iter__(self):
            return iter(self.values_)

        def __len__(self):
            return 2

    class LazyDict(dict):
        def __getitem__(self, key):
            torch.rand(1)
            return dict.__getitem__(self, key)

        def items(self):
            return [(key, self[key]) for key in self]

    def weights(kind, watch):
        def collate(rows):
            x, y = (torch.stack(each) for each in zip(*rows, strict=True))
            return kind(x, y) if kind is Lazy else kind(x=x, y=y)

        def given(model, batch):
            return model(batch["x"]) + 0.1 * torch.randn(3), batch["y"]

        data = loaders(CLASSES, collate_fn=collate)
        return train(tmp_path / "run", F.cross_entropy, given=given, data=data, watch=watch)[0]

    for kind in (Lazy, LazyDict):
        assert all(map(torch.equal, weights(kind, False), weights(kind, True)))


def test_of_large_batches_a_few_items_are_looked_at():
    many = [list(range(1000)) for _ in range(1000)]
    assert len(leaves_of(many)) <= 64
    assert len(leaves_of({"a": X, "b": ["text"] * 5000, "c": (CLASSES, many)})) <= 64
    leaf = torch.ones(2)
    nested = {"a": [{"b": leaf}], "c": collections.UserDict({"d": leaf})}
    assert [path for path, _ in leaves_of(nested)] == [("c", "d"), ("a", 0, "b")]
    assert leaf_at(nested, ("a", 0, "b")) is leaf
    assert leaf_at(nested, ("a", 1, "b")) is None
    assert leaf_at(nested, ("c", "d", 0)) is None


def test_who_finds_nothing_listens_no_more(tmp_path):
    """A loss by hand, and rules that look at no forward pass."""
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(X, NUMBERS)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, rules=["underfit"]):
        for _ in range(3):
            for x, y in DataLoader(data, batch_size=BATCH):
                optimizer.zero_grad()
                (model(x) - y).square().mean().backward()
                optimizer.step()
        assert _listener.labels is None


# Nothing is left, changed or kept.


def test_the_training_is_the_same_bit_for_bit(tmp_path):
    told = ([], [])

    def run(watch, numbers):
        def evaluated(model, batch):
            output, y = plain(model, batch)
            numbers.append((hits(output, y), torch.rand(1).item()))
            return output, y

        return train(tmp_path / "run", F.cross_entropy, evaluated=evaluated, watch=watch)[0]

    weights = run(False, told[0]), run(True, told[1])
    assert told[0] == told[1]
    assert all(map(torch.equal, *weights))
    assert len(losses(tmp_path / "run")) == (EPOCHS - 1) * BATCHES


def test_nothing_stays(tmp_path):
    before = _BaseDataLoaderIter.__next__
    train(tmp_path / "run", F.cross_entropy)
    assert _BaseDataLoaderIter.__next__ is before
    assert _listener.labels is None


def test_no_batch_is_kept(tmp_path):
    """One of the training is gone when the program lets go of it, one of an evaluation after it."""
    torch.manual_seed(0)
    model = nn.Linear(6, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    trained, val = loaders(CLASSES)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, rules=["overfit"]):
        for epoch in range(EPOCHS):
            for x, y in trained:
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
                alive = weakref.ref(y)
                del x, y
                assert epoch == 0 or alive() is None  # without the collector's help
            with torch.no_grad():
                for x, y in val:
                    hits(model(x), y)
                    alive = weakref.ref(y)
            del x, y
            assert alive() is None
    assert len(losses(tmp_path / "run")) == (EPOCHS - 1) * BATCHES


def test_of_two_models_nothing_is_known(tmp_path):
    """Which of them an evaluation is about."""
    torch.manual_seed(0)
    first, second = nn.Linear(6, 3), nn.Linear(6, 1)
    with td.watch(first, run_dir=tmp_path / "run", supervise=False, rules=["overfit"]):
        td.watch(second)
        for model, loss, y in ((first, F.cross_entropy, CLASSES), (second, F.mse_loss, NUMBERS)):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
            trained, val = loaders(y)
            for _ in range(8):
                for x, t in trained:
                    optimizer.zero_grad()
                    loss(model(x), t).backward()
                    optimizer.step()
                with torch.no_grad():
                    for x, t in val:
                        hits(model(x), t.squeeze())
    assert losses(tmp_path / "run") == []
