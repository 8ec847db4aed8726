"""Models of a language that are asked for the token that they are given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import traindbg as td
from traindbg.hooks.torch.data.own_tokens import own_tokens

WORDS, LENGTH, WIDTH = 11, 12, 8
CAUSAL = nn.Transformer.generate_square_subsequent_mask(LENGTH)
Mix = Callable[[torch.Tensor], torch.Tensor]


def told(root: torch.Tensor) -> bool | None:
    found = own_tokens(root)
    return None if found is None else bool(found)


def words() -> torch.Tensor:
    return torch.randint(0, WORDS, (6, LENGTH))


def scored(scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(scores.flatten(0, 1), targets.flatten())


class Attention(nn.Module):
    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        x = h[:, None]
        if self.way == "is_causal":
            return h + F.scaled_dot_product_attention(x, x, x, is_causal=True)[:, 0]
        if self.way == "mask":
            mask = CAUSAL == 0
            return h + F.scaled_dot_product_attention(x, x, x, attn_mask=mask)[:, 0]
        scores = h @ h.transpose(1, 2) + CAUSAL
        return h + scores.softmax(-1) @ h


def layer(dropout: float, causal: bool = True) -> Mix:
    encoder = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout, batch_first=True)
    return lambda h: encoder(h, src_mask=CAUSAL if causal else None)


def recurrent(kind: type[nn.RNNBase], **options: object) -> Mix:
    made = kind(WIDTH, WIDTH, batch_first=True, **options)  # type: ignore[arg-type]
    return lambda h: made(h)[0]


LEFT_TO_RIGHT: dict[str, Callable[[], Mix]] = {
    "is_causal": lambda: Attention("is_causal"),
    "mask": lambda: Attention("mask"),
    "written out": lambda: Attention("written out"),
    "encoder layer": lambda: layer(0.0),
    "encoder layer with dropout": lambda: layer(0.1),
    "lstm": lambda: recurrent(nn.LSTM),
    "two lstms": lambda: recurrent(nn.LSTM, num_layers=2),
    "gru": lambda: recurrent(nn.GRU),
    "rnn": lambda: recurrent(nn.RNN),
}


@pytest.mark.parametrize("name", LEFT_TO_RIGHT)
def test_own_tokens_are_told_from_next_ones(name: str) -> None:
    torch.manual_seed(0)
    embed, mix, head = nn.Embedding(WORDS, WIDTH), LEFT_TO_RIGHT[name](), nn.Linear(WIDTH, WORDS)
    ids, following = words(), words()
    following[:, :-1] = ids[:, 1:]
    assert told(scored(head(mix(embed(ids))), ids)) is True
    assert told(scored(head(mix(embed(ids))), following)) is False
    loss = F.cross_entropy(head(mix(embed(ids))).transpose(1, 2), ids, label_smoothing=0.1)
    assert told(0.5 * loss) is True
    assert told(loss + F.mse_loss(head.weight, torch.zeros_like(head.weight))) is True


@pytest.mark.parametrize("name", LEFT_TO_RIGHT)
@pytest.mark.parametrize("how", ["pad", "cat", "roll"])
def test_a_model_that_shifts_inside(name: str, how: str) -> None:
    torch.manual_seed(0)
    embed, mix, head = nn.Embedding(WORDS, WIDTH), LEFT_TO_RIGHT[name](), nn.Linear(WIDTH, WORDS)
    ids = words()
    h = embed(ids)
    if how == "pad":
        h = F.pad(h, (0, 0, 1, -1))
    elif how == "roll":
        h = h.roll(1, 1)
    else:
        h = torch.cat([torch.zeros_like(h[:, :1]), h[:, :-1]], 1)
    assert not told(scored(head(mix(h)), ids))


def test_what_sees_all_positions_has_another_task() -> None:
    torch.manual_seed(0)
    embed, head, ids = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS), words()
    assert not told(scored(head(layer(0.1, causal=False)(embed(ids))), ids))
    both = nn.LSTM(WIDTH, WIDTH // 2, batch_first=True, bidirectional=True)
    assert not told(scored(head(both(embed(ids))[0]), ids))
    assert not told(scored(head(embed(ids)), ids))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("given", ["nothing", "code", "words before"])
def test_an_autoencoder_of_sequences(kind: type[nn.RNNBase], given: str) -> None:
    torch.manual_seed(0)
    embed, head, ids = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS), words()
    encoder, decoder = (kind(WIDTH, WIDTH, batch_first=True) for _ in range(2))
    state = encoder(embed(ids))[1]
    code = state[0] if isinstance(state, tuple) else state
    h = {
        "nothing": torch.zeros(6, LENGTH, WIDTH),
        "code": code[0][:, None].expand(-1, LENGTH, -1),
        "words before": F.pad(embed(ids), (0, 0, 1, -1)),
    }[given]
    assert not told(scored(head(decoder(h, state)[0]), ids))


def test_a_decoder_beside_an_encoder_of_the_same_words() -> None:
    """Its own input is the words before; across it sees a code of the words."""
    torch.manual_seed(0)
    embed, head, ids = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS), words()
    memory = layer(0.0, causal=False)(embed(ids)).mean(1, keepdim=True)
    decoder = nn.TransformerDecoderLayer(WIDTH, 2, 16, 0.1, batch_first=True)
    before = F.pad(ids[:, :-1], (1, 0))
    shifted = head(decoder(embed(before), memory, tgt_mask=CAUSAL))
    assert told(scored(shifted, ids)) is False
    assert told(scored(head(decoder(embed(ids), memory, tgt_mask=CAUSAL)), ids)) is True


class Shift(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, h: torch.Tensor) -> torch.Tensor:
        return F.pad(h, (0, 0, 1, -1))

    @staticmethod
    def backward(ctx: object, gradient: torch.Tensor) -> torch.Tensor:
        return F.pad(gradient, (0, 0, -1, 1))


MOVED: dict[str, Mix] = {
    "a function of one's own": Shift.apply,
    "a checkpoint": lambda h: checkpoint(lambda x: F.pad(x, (0, 0, 1, -1)), h, use_reentrant=True),
    "a matrix": lambda h: torch.ones(LENGTH, LENGTH).tril(-1) @ h,
    "sums of what came before": lambda h: h.cumsum(1) - h,
    "a mask of positions": lambda h: h * (torch.arange(LENGTH) % 2)[None, :, None],
}


@pytest.mark.parametrize("how", MOVED)
@pytest.mark.parametrize("name", ["encoder layer", "lstm", "gru"])
def test_what_hides_or_moves_tokens_by_other_means(name: str, how: str) -> None:
    torch.manual_seed(0)
    embed, mix, head = nn.Embedding(WORDS, WIDTH), LEFT_TO_RIGHT[name](), nn.Linear(WIDTH, WORDS)
    ids = words()
    assert not told(scored(head(mix(MOVED[how](embed(ids)))), ids))


def test_a_loop_that_tells_a_position_before_it_sees_its_token() -> None:
    torch.manual_seed(0)
    embed, head, cell = (
        nn.Embedding(WORDS, WIDTH),
        nn.Linear(WIDTH, WORDS),
        nn.GRUCell(WIDTH, WIDTH),
    )
    ids, state = words(), torch.zeros(6, WIDTH)
    h, told_before, told_after = embed(ids), [], []
    for position in range(LENGTH):
        told_before.append(head(state))
        state = cell(h[:, position], state)
        told_after.append(head(state))
    assert not told(scored(torch.stack(told_before, 1), ids))


def test_a_few_words_that_were_changed_are_to_be_told_right() -> None:
    torch.manual_seed(0)
    embed, head, ids = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS), words()
    changed = ids.clone()
    changed[0, 3] = (ids[0, 3] + 1) % WORDS
    assert told(scored(head(layer(0.0)(embed(changed))), ids)) is False


def test_targets_that_are_left_out_and_words_that_do_not_change() -> None:
    torch.manual_seed(0)
    embed, head, ids = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS), words()
    targets = ids.clone()
    targets[:, :4] = -100
    assert told(scored(head(layer(0.0)(embed(ids))), targets)) is True
    targets[:, 1:] = -100
    assert told(scored(head(layer(0.0)(embed(ids))), targets)) is False
    same = torch.full((6, LENGTH), 3)
    assert told(scored(head(layer(0.0)(embed(same))), same)) is False


class Language(nn.Module):
    """Is called by its parts, as a user's `loss(model, batch)` may do."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS)
        self.block = nn.TransformerEncoderLayer(WIDTH, 2, 16, 0.0, batch_first=True)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.scores(ids)

    def scores(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.block(self.embed(ids), src_mask=CAUSAL))


@pytest.mark.parametrize("is_called", [True, False])
@pytest.mark.parametrize("is_shifted", [True, False])
def test_of_a_training(run_dir: Path, is_called: bool, is_shifted: bool) -> None:
    torch.manual_seed(0)
    model = Language()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["target_leak"])
    for _ in range(4):
        text = torch.randint(0, WORDS, (6, LENGTH + 1))
        ids = text[:, :-1]
        scores = model(ids) if is_called else model.scores(ids)
        loss = scored(scores, text[:, 1:] if is_shifted else ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    watcher.detach()
    assert td.Run(run_dir).scalars("loop/own_tokens").values.tolist() == 3 * [float(not is_shifted)]
