"""What works over the samples of a batch is told with its layer; what only looks like it is not."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from trainings import fingerprint

import traindbg as td

SAMPLES, TIME, WIDTH, CLASSES = 8, 5, 6, 3
FACTS = (
    "softmax_over_samples",
    "samples_cut_anew",
    "samples_cut_before",
    "recurrent_over_samples",
    "attention_over_samples",
)


class Model(nn.Module):
    """Scores of a sequence, by what is inside of it."""

    def __init__(self, inside):
        super().__init__()
        self.gru = nn.GRU(WIDTH, WIDTH)
        self.gru_first = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.lstm_first = nn.LSTM(WIDTH, WIDTH, num_layers=2, batch_first=True)
        self.attention = nn.MultiheadAttention(WIDTH, 2)
        self.attention_first = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
        self.encoder = nn.TransformerEncoderLayer(WIDTH, 2, 8, dropout=0.0)
        self.encoder_first = nn.TransformerEncoderLayer(WIDTH, 2, 8, dropout=0.0, batch_first=True)
        self.convolution = nn.Conv1d(WIDTH, WIDTH, 3, padding=1)
        self.cell = nn.GRUCell(WIDTH, WIDTH)
        self.score = nn.Linear(WIDTH, 1)
        self.head = nn.Linear(WIDTH, CLASSES)
        self.wide = nn.Linear(TIME * WIDTH, CLASSES)
        self.inside = inside

    def forward(self, x):
        return self.inside(self, x)


# Each of these gives one row of scores for each sample.


def view_for_transpose(m, x):
    out, _ = m.gru(x.view(TIME, -1, WIDTH))
    return m.head(out[-1])


def reshape_after_layers(m, x):
    h = m.convolution(x.transpose(1, 2)).relu()
    return m.head(m.gru(h.reshape(TIME, len(x), WIDTH))[0][-1])


def view_of_outputs(m, x):
    out, _ = m.gru(x.transpose(0, 1))
    return m.wide(out.contiguous().view(len(x), -1))


def stacked_outputs(m, x):
    h, steps = torch.zeros(len(x), WIDTH), []
    for at in range(TIME):
        h = m.cell(x[:, at], h)
        steps.append(h)
    return m.wide(torch.stack(steps).reshape(len(x), TIME * WIDTH))


def frames_of_clips(m, x):
    frames = m.score(x.reshape(len(x) * TIME, WIDTH)).relu() + x.flatten(0, 1)
    return m.head(m.gru(frames.view(TIME, len(x), WIDTH))[0][-1])


def frames_of_clips_turned_back(m, x):
    frames = F.relu(x.flatten(0, 1))
    return m.head(frames.view(TIME, len(x), WIDTH).transpose(0, 1).mean(1))


def gru_without_batch_first(m, x):
    return m.head(m.gru(x)[0][:, -1])


def gru_with_batch_first(m, x):
    return m.head(m.gru_first(x.permute(1, 0, 2))[0][-1])


def attention_without_batch_first(m, x):
    return m.head(m.attention(x, x, x)[0].mean(1))


def encoder_without_batch_first(m, x):
    return m.head(m.encoder(x)[:, 0])


def softmax_over_batch(m, x):
    return m.head((F.softmax(m.score(x), dim=0) * x).sum(1))


def softmax_without_dim(m, x):
    return m.head((F.softmax(m.head(x)) @ m.head.weight).sum(1))


WRONG = {
    view_for_transpose: ("samples_cut_anew", ""),
    reshape_after_layers: ("samples_cut_anew", ""),
    view_of_outputs: ("samples_cut_anew", ""),
    stacked_outputs: ("samples_cut_anew", ""),
    frames_of_clips: ("samples_cut_anew", ""),
    frames_of_clips_turned_back: ("samples_cut_anew", ""),
    gru_without_batch_first: ("recurrent_over_samples", "gru"),
    gru_with_batch_first: ("recurrent_over_samples", "gru_first"),
    attention_without_batch_first: ("attention_over_samples", "attention"),
    encoder_without_batch_first: ("attention_over_samples", "encoder.self_attn"),
    softmax_over_batch: ("softmax_over_samples", ""),
    softmax_without_dim: ("softmax_over_samples", ""),
}


def gru_transposed(m, x):
    out, last = m.gru(x.transpose(0, 1))
    return m.head(out[-1] + last[-1])


def gru_back_again(m, x):
    out, _ = m.gru(x.transpose(0, 1).contiguous())
    return m.wide(out.transpose(0, 1).reshape(len(x), -1))


def gru_batch_first(m, x):
    return m.wide(m.gru_first(x)[0].flatten(1))


def lstm_states(m, x):
    _, (h, c) = m.lstm_first(x)
    return m.head(h[-1] + c[-1])


def states_as_documented(m, x):
    """Of two layers, in a batch of two as well."""
    _, (h, _) = m.lstm_first(x)
    return m.head(h.view(2, 1, len(x), WIDTH)[-1].squeeze(0))


def one_sequence_of_states(m, x):
    """One step of time: the samples are positions of nothing."""
    h = m.score(x).expand(-1, -1, WIDTH).mean(1)
    return m.head(m.gru(h.clone().unsqueeze_(0))[0].squeeze(0))


def over_both_in_turn(m, x):
    scores = m.head(x.mean(1))
    for _ in range(3):
        scores = scores.log_softmax(0).log_softmax(1)
    return scores


def parts_of_it(m, x):
    first, second = x.chunk(2, dim=2)
    return m.head(torch.cat([second, first], -1).narrow(1, 0, 2).mean(1))


def states_side_by_side(m, x):
    _, (h, _) = m.lstm_first(x)
    return F.linear(h.transpose(0, 1).reshape(len(x), -1), m.head.weight.repeat(1, 2))


def attention_both_ways(m, x):
    first = m.attention_first(x, x, x)[0].mean(1)
    turned = x.transpose(0, 1)
    return m.head(first + m.attention(turned, turned, turned)[0].mean(0))


def encoders(m, x):
    h = m.encoder_first(x)
    return m.head(m.encoder(h.permute(1, 0, 2)).mean(0))


def heads_by_hand(m, x):
    """[samples, time, width] to heads and back."""
    n, t, w = x.shape
    h = x.view(n, t, 2, w // 2).permute(0, 2, 1, 3).reshape(n * 2, t, w // 2)
    h = (h @ h.transpose(1, 2)).softmax(-1) @ h
    return m.head(h.view(n, 2, t, w // 2).transpose(1, 2).reshape(n, t, w).mean(1))


def heads_with_time_first(m, x):
    """The same of [time, samples, width]."""
    n, t, w = x.shape
    h = x.transpose(0, 1).contiguous().view(t, n * 2, w // 2).transpose(0, 1)
    h = torch.bmm(torch.bmm(h, h.transpose(1, 2)).softmax(-1), h)
    return m.head(h.transpose(0, 1).contiguous().view(t, n, w).mean(0))


def frames_by_themselves(m, x):
    """A batch of clips is a batch of frames in between."""
    frames = F.relu(m.score(x.flatten(0, 1)) + x.reshape(-1, WIDTH))
    h = m.gru_first(frames.view(len(x), TIME, WIDTH))[0]
    return m.head(h[:, -1] + frames.unflatten(0, (len(x), TIME)).transpose(0, 1).mean(0))


def windows(m, x):
    """Positions in windows, each a sample of its own for a while."""
    each = m.encoder_first(x.view(len(x), TIME, 1, WIDTH).reshape(-1, 1, WIDTH))
    return m.wide(each.view(len(x), TIME, 1, WIDTH).reshape(len(x), -1))


def positions_as_rows(m, x):
    """All positions through a layer as one batch of rows."""
    rows = m.head(x.reshape(-1, WIDTH))
    return rows.view(len(x), TIME, CLASSES).mean(1)


def pooling(m, x):
    return m.head((m.score(x).softmax(1) * x).sum(1))


def pooling_turned(m, x):
    h = x.transpose(0, 1)
    return m.head((m.score(h).softmax(0) * h).sum(0))


def pairs_of_samples(m, x):
    """As of a contrastive loss."""
    h = F.normalize(x.mean(1), dim=1)
    return m.head((h @ h.t()).softmax(0) @ h)


def convolutions(m, x):
    return m.head(m.convolution(x.transpose(1, 2)).unflatten(1, (2, -1)).flatten(1, 2).mean(2))


def cells(m, x):
    h, steps = torch.zeros(len(x), WIDTH), []
    for at in range(TIME):
        h = m.cell(x[:, at], h)
        steps.append(h)
    return m.wide(torch.stack(steps).permute(1, 0, 2).reshape(len(x), -1)) + m.wide(
        torch.stack(steps, dim=1).flatten(1)
    )


def groups_in_the_batch(m, x):
    """Samples in groups of two, that stay whole."""
    return m.wide(x.view(2, len(x) // 2, TIME * WIDTH).flatten(0, 1))


def indexed(m, x):
    x = x[torch.arange(len(x))][..., :][:, None, 0][x.new_ones(len(x), dtype=torch.bool)]
    return m.head(x[:, 0])


RIGHT = [
    states_as_documented, one_sequence_of_states, over_both_in_turn, parts_of_it,
    gru_transposed, gru_back_again, gru_batch_first, lstm_states, states_side_by_side,
    attention_both_ways, encoders, heads_by_hand, positions_as_rows, pooling, pooling_turned,
    heads_with_time_first, frames_by_themselves, windows, pairs_of_samples, convolutions, cells,
    groups_in_the_batch, indexed,
]  # fmt: skip


def batch():
    return torch.randn(SAMPLES, TIME, WIDTH), torch.randint(0, CLASSES, (SAMPLES,))


def train(run_dir, inside, data=batch, loss_of=F.cross_entropy, *, watch=True, steps=4):
    torch.manual_seed(3)
    model = Model(inside)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = None
    if watch:
        rules = ["samples_mixed"]
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    losses = []
    for _ in range(steps):
        x, labels = data()
        loss = loss_of(model(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if watcher is not None:
        watcher.detach()
    return fingerprint(model, losses)


def told(run_dir) -> dict[str, str]:
    """The facts, with their places."""
    found = {}
    for name in td.Run(run_dir).names():
        for fact in FACTS:
            if name == f"loop/{fact}" or name.startswith(f"loop/{fact}/"):
                found[fact] = name.partition(f"loop/{fact}")[2].lstrip("/")
    return found


def are_followed(run_dir) -> bool:
    """Whether it was known where the samples lie, in each step that was looked at."""
    run = td.Run(run_dir)
    name = "loop/samples_followed"
    return name in run.names() and run.scalars(name)[1].min() > 0


def are_dealt(run_dir) -> bool:
    return "loop/samples_dealt" in td.Run(run_dir).names()


@pytest.mark.filterwarnings("ignore:Implicit dimension")
@pytest.mark.parametrize("inside", WRONG, ids=lambda each: each.__name__)
def test_what_works_over_samples_is_told_with_its_layer_and_line(run_dir, inside):
    plain = train(None, inside, watch=False)
    assert train(run_dir, inside) == plain
    fact, place = WRONG[inside]
    assert told(run_dir) == {fact: place}
    lines, first = inspect.getsourcelines(inside)
    _, values = td.Run(run_dir).scalars(f"loop/{fact}/{place}".rstrip("/"))
    assert len(values) > 1
    assert all(first <= line < first + len(lines) for line in values)


@pytest.mark.parametrize("inside", RIGHT, ids=lambda each: each.__name__)
def test_of_what_leaves_samples_alone_nothing_is_told(run_dir, inside):
    train(run_dir, inside)
    assert told(run_dir) == {}
    assert are_followed(run_dir)


def time_first():
    x, labels = batch()
    return x.transpose(0, 1), labels


def time_first_inside(m, x):
    return m.head(m.gru(x)[0][-1] + m.attention(x, x, x)[0].mean(0))


def test_an_input_may_begin_with_its_time(run_dir):
    train(run_dir, time_first_inside, time_first)
    assert told(run_dir) == {}
    assert are_followed(run_dir)


def test_batch_first_of_an_input_that_begins_with_its_time(run_dir):
    train(run_dir, lambda m, x: m.head(m.gru_first(x)[0][-1]), time_first)
    assert told(run_dir) == {"recurrent_over_samples": "gru_first"}


@pytest.mark.parametrize("how", ["view", "reshape"])
def test_the_loop_cuts_its_batches_anew(run_dir, how):
    def cut():
        x, labels = batch()
        return getattr(x, how)(TIME, SAMPLES, WIDTH), labels

    train(run_dir, time_first_inside, cut)
    assert told(run_dir) == {"samples_cut_before": ""}
    assert are_dealt(run_dir)


def each_step(m, x):
    return m.score(m.gru(x)[0]).squeeze(-1)


@pytest.mark.parametrize("is_flat", [False, True])
def test_labels_of_each_step_do_not_say_where_samples_lie(run_dir, is_flat):
    """[time, samples], with a prediction for each."""

    def data():
        return torch.randn(TIME, SAMPLES, WIDTH), torch.randn(TIME, SAMPLES)

    def loss_of(said, labels):
        return F.mse_loss(said.flatten(), labels.flatten()) if is_flat else F.mse_loss(said, labels)

    train(run_dir, each_step, data, loss_of)
    assert told(run_dir) == {}
    assert not are_followed(run_dir)


@pytest.mark.parametrize("is_drawn", [False, True])
def test_labels_of_each_step_of_samples_that_a_loader_draws(run_dir, is_drawn):
    """[samples, time]: how many are drawn at random says which of both the samples are."""

    def inside(m, x):
        h, states = torch.zeros(len(x), WIDTH), []
        for at in range(TIME):
            h = m.cell(x[:, at], h)
            states.append(h)
        return m.score(torch.stack(states).view(len(x), TIME, WIDTH)).squeeze(-1)

    rows, labels = torch.randn(6 * SAMPLES, TIME, WIDTH), torch.randn(6 * SAMPLES, TIME)

    def batches():
        if is_drawn:
            yield from DataLoader(TensorDataset(rows, labels), batch_size=SAMPLES, shuffle=True)
        yield from zip(rows.split(SAMPLES), labels.split(SAMPLES), strict=True)

    given = batches()
    train(run_dir, inside, lambda: next(given), F.mse_loss)
    assert told(run_dir) == ({"samples_cut_anew": ""} if is_drawn else {})
    assert are_followed(run_dir) == is_drawn


def test_one_long_sequence_whose_steps_are_labelled(run_dir):
    def data():
        return torch.randn(SAMPLES, 1, WIDTH), torch.randint(0, CLASSES, (SAMPLES,))

    def inside(m, x):
        h = m.gru(x)[0] + m.attention(x, x, x)[0]
        return m.head(h[:, 0])

    train(run_dir, inside, data)
    assert told(run_dir) == {}


def test_a_set_of_items_with_one_label(run_dir):
    """Multiple-instance learning: the first dimension is that of the set."""

    def data():
        return torch.randn(SAMPLES, WIDTH), torch.randint(0, CLASSES, (1,))

    def inside(m, x):
        weights = m.head(x).softmax(0)
        return m.head((weights.t() @ x).mean(0))[None]

    train(run_dir, inside, data)
    assert told(run_dir) == {}


def test_as_many_steps_as_samples_leave_it_open(run_dir):
    def data():
        return torch.randn(SAMPLES, SAMPLES, WIDTH), torch.randint(0, CLASSES, (SAMPLES,))

    train(run_dir, gru_without_batch_first, data)
    assert told(run_dir) == {}
    assert not are_followed(run_dir)


def test_labels_of_shape_samples_by_one(run_dir):
    def data():
        return torch.randn(SAMPLES, TIME, WIDTH), torch.randn(SAMPLES, 1)

    train(run_dir, lambda m, x: m.score(m.gru(x)[0][:, -1]), data, F.mse_loss)
    assert told(run_dir) == {"recurrent_over_samples": "gru"}


def test_a_batch_of_two_and_the_states_of_two_layers(run_dir):
    def data():
        return torch.randn(2, TIME, WIDTH), torch.randint(0, CLASSES, (2,))

    train(run_dir, states_as_documented, data)
    assert told(run_dir) == {}


def test_two_views_of_each_sample_in_one_batch(run_dir):
    """As many as there are steps: what is labelled are no steps."""

    def data():
        return torch.randn(2 * TIME, TIME, WIDTH), torch.randint(0, CLASSES, (TIME,))

    def inside(m, x):
        one, two = m.head(m.gru_first(x)[0][:, -1]).chunk(2)
        return one - two

    train(run_dir, inside, data)
    assert told(run_dir) == {}


def test_labels_of_several_numbers_each(run_dir):
    def data():
        return torch.randn(SAMPLES, TIME, WIDTH), torch.randn(SAMPLES, CLASSES)

    train(run_dir, gru_without_batch_first, data, F.mse_loss)
    assert told(run_dir) == {"recurrent_over_samples": "gru"}


def test_an_input_that_is_given_by_its_name_is_followed(run_dir):
    torch.manual_seed(3)
    model = Model(gru_without_batch_first)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["samples_mixed"])
    for _ in range(3):
        x, labels = batch()
        optimizer.zero_grad()
        F.cross_entropy(model(x=x), labels).backward()
        optimizer.step()
    watcher.detach()
    assert told(run_dir) == {"recurrent_over_samples": "gru"}


def loader_of(count):
    g = torch.Generator().manual_seed(1)
    rows = torch.randn(count, TIME, WIDTH, generator=g)
    labels = torch.randint(0, CLASSES, (count,), generator=g)
    return rows, labels


@pytest.mark.parametrize("how", ["loader", "rows", "recordings"])
def test_samples_are_known_by_how_they_are_dealt(run_dir, how):
    """Drawn at random by a loader; by hand, in other batches in the second epoch; never so."""
    rows, labels = loader_of(6 * SAMPLES)
    shuffled = DataLoader(TensorDataset(rows, labels), batch_size=SAMPLES, shuffle=True)

    def batches():
        while True:
            if how == "loader":
                yield from shuffled
                continue
            order = torch.randperm(len(rows)) if how == "rows" else torch.arange(len(rows))
            groups = order.split(SAMPLES)
            for at in torch.randperm(len(groups)).tolist():
                yield rows[groups[at]], labels[groups[at]]

    given = batches()
    train(run_dir, gru_without_batch_first, lambda: next(given), steps=80)
    assert told(run_dir) == {"recurrent_over_samples": "gru"}
    if how == "loader":
        assert td.Run(run_dir).scalars("loop/samples_dealt")[0].tolist()[0] == 0
    assert are_dealt(run_dir) == (how != "recordings")


def test_it_looks_at_two_steps_where_nothing_shows(run_dir):
    train(run_dir, gru_batch_first, steps=12)
    assert td.Run(run_dir).scalars("loop/samples_followed")[0].tolist() == [0, 1]


def test_it_looks_at_six_steps_and_keeps_no_tensor(run_dir):
    train(run_dir, softmax_over_batch, steps=12)
    steps, values = td.Run(run_dir).scalars("loop/samples_followed")
    assert steps.tolist() == list(range(6))
    assert set(values) == {SAMPLES}
