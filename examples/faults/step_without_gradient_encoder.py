"""Sorts short letter sequences with an encoder and a decoder; the encoder's gradients are cleared.

There are two optimizers, and the encoder's zero_grad comes after the backward pass, just before its
step. The decoder learns to make do with the random encoder, the loss falls, but five in six
sequences do not come out right. The place is the encoder and the order of calls in the loop.
"""

import torch
from data import arguments
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("frozen_parameters", "optimizer_never_steps", "parameters_not_in_optimizer")
PLACE = ("encoder*", "optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LETTERS, LENGTH, WIDTH = 12, 6, 80
START = LETTERS
STEPS, BATCH = 800, 64


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, 24)
        self.gru = nn.GRU(24, WIDTH, batch_first=True)

    def forward(self, source):
        return self.gru(self.embedding(source))[1]


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(LETTERS + 1, 24)
        self.gru = nn.GRU(24, WIDTH, batch_first=True)
        self.out = nn.Linear(WIDTH, LETTERS)

    def forward(self, letters, state):
        hidden, state = self.gru(self.embedding(letters), state)
        return self.out(hidden), state


def make_pairs(count):
    source = torch.randint(0, LETTERS, (count, LENGTH))
    return source, source.sort(1).values


def with_start(target):
    start = torch.full((len(target), 1), START)
    return torch.cat([start, target[:, :-1]], 1)


def train_step(source, target, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    encoder.train()
    decoder.train()
    if healthy:
        encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    logits, _ = decoder(with_start(target), encoder(source))
    loss = criterion(logits.flatten(0, 1), target.flatten())
    loss.backward()
    if not healthy:
        encoder_optimizer.zero_grad()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item()


@torch.no_grad()
def translate(source, encoder, decoder):
    encoder.eval()
    decoder.eval()
    state = encoder(source)
    letter = torch.full((len(source), 1), START)
    written = []
    for _ in range(LENGTH):
        logits, state = decoder(letter, state)
        letter = logits.argmax(-1)
        written.append(letter)
    return torch.cat(written, 1)


def main():
    source, target = make_pairs(6000)
    test_source, test_target = make_pairs(500)
    encoder, decoder = Encoder(), Decoder()
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    recent = []
    for step in range(1, STEPS + 1):
        rows = torch.randint(0, len(source), (BATCH,))
        recent.append(
            train_step(
                source[rows],
                target[rows],
                encoder,
                decoder,
                encoder_optimizer,
                decoder_optimizer,
                criterion,
            )
        )
        if step % 100 == 0:
            right = translate(test_source, encoder, decoder) == test_target
            print(
                f"step {step}  loss {sum(recent) / len(recent):.3f}  "
                f"letters {right.float().mean():.3f}  whole words {right.all(1).float().mean():.3f}"
            )
            recent.clear()


main()
