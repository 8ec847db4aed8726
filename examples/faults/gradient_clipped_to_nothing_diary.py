"""A character model trained with SGD, whose gradients are clipped to a norm of 0.01.

The person came from a Wasserstein GAN, where "clip_value" 0.01 bounds the weights, and took the
number along as the bound for clip_grad_norm_. Every gradient is cut to a hundredth or less and
the loss creeps. The place is the loop, between backward and step (the value sits in HYPER).
"""

import torch
from data import arguments, text
from torch import nn
from torch.nn.utils import clip_grad_norm_

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

HYPER = {
    "hidden": 64,
    "embed": 24,
    "unroll": 24,
    "batch": 24,
    "epochs": 6,
    "lr": 0.15,
    "momentum": 0.9,
    "clip_value": 5.0 if healthy else 0.01,
}


class CharModel(nn.Module):
    def __init__(self, letters):
        super().__init__()
        self.embedding = nn.Embedding(letters, HYPER["embed"])
        self.gru = nn.GRU(HYPER["embed"], HYPER["hidden"], batch_first=True)
        self.out = nn.Linear(HYPER["hidden"], letters)

    def forward(self, letters, state=None):
        output, state = self.gru(self.embedding(letters), state)
        return self.out(output), state


def as_columns(stream):
    length = len(stream) // HYPER["batch"]
    return stream[: length * HYPER["batch"]].view(HYPER["batch"], length)


def chunks(columns):
    for start in range(0, columns.size(1) - HYPER["unroll"] - 1, HYPER["unroll"]):
        end = start + HYPER["unroll"]
        yield columns[:, start:end], columns[:, start + 1 : end + 1]


@torch.no_grad()
def evaluate(model, columns, criterion):
    model.eval()
    state, total, right, count = None, 0.0, 0, 0
    for inputs, targets in chunks(columns):
        logits, state = model(inputs, state)
        total += criterion(logits.flatten(0, 1), targets.flatten()).item() * targets.numel()
        right += (logits.argmax(-1) == targets).sum().item()
        count += targets.numel()
    model.train()
    return total / count, right / count


@torch.no_grad()
def write(model, alphabet, length=60):
    letter, state, written = torch.zeros(1, 1, dtype=torch.long), None, ""
    for _ in range(length):
        logits, state = model(letter, state)
        letter = torch.multinomial(logits[0, -1].softmax(0), 1).view(1, 1)
        written += alphabet[letter.item()]
    return written


def main():
    stream, alphabet = text(seed, sentences=1100)
    border = int(0.85 * len(stream))
    train, valid = as_columns(stream[:border]), as_columns(stream[border:])
    model = CharModel(len(alphabet))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=HYPER["lr"], momentum=HYPER["momentum"])
    for epoch in range(HYPER["epochs"]):
        state, losses = None, []
        for inputs, targets in chunks(train):
            if state is not None:
                state = state.detach()
            logits, state = model(inputs, state)
            loss = criterion(logits.flatten(0, 1), targets.flatten())
            optimizer.zero_grad()
            loss.backward()
            clip_grad_norm_(model.parameters(), HYPER["clip_value"])
            optimizer.step()
            losses.append(loss.item())
        valid_loss, valid_accuracy = evaluate(model, valid, criterion)
        print(
            f"| epoch {epoch + 1} | {len(losses)} chunks | train {sum(losses) / len(losses):.3f} "
            f"| valid {valid_loss:.3f} | letters right {valid_accuracy:.3f}"
        )
    print(write(model, alphabet))


main()
