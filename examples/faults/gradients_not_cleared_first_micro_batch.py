"""A recurrent tagger of bus trips whose gradients pile up, as accumulation is set to one batch.

The person clears the gradients at the first micro batch of each group, step % accumulate == 1.
With 4 that worked; the configuration now says 1, no remainder is ever 1, and zero_grad is never
called, while the optimizer steps after each batch. The place is the loop.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader, Dataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CONFIG = {"accumulate": 1, "batch": 32, "epochs": 12, "lr": 0.3, "clip": 5.0, "hidden": 40}
STATES = ("drives", "waits at a light", "stops", "jam")


class Trips(Dataset):
    """Speed and acceleration each second; the state follows a chain and shows in the speed."""

    def __init__(self, n, generator):
        self.trips = [self.drive(generator) for _ in range(n)]

    @staticmethod
    def drive(generator):
        length = int(torch.randint(20, 45, (1,), generator=generator))
        chain = torch.tensor(
            [[0.85, 0.05, 0.05, 0.05], [0.2, 0.8, 0, 0], [0.15, 0, 0.85, 0], [0.1, 0.05, 0, 0.85]]
        )
        state, speed, rows, states = 0, 10.0, [], []
        for second in range(length):
            state = int(torch.multinomial(chain[state], 1, generator=generator))
            aim = (11.0, 0.0, 0.0, 2.5 + 2 * math.sin(second / 2))[state]
            pull = (0.5, 0.9, 0.45, 0.5)[state]
            before = speed
            speed += pull * (aim - speed) + 0.4 * float(torch.randn((), generator=generator))
            door = float(state == 2 and speed < 2) + 0.3 * float(
                torch.randn((), generator=generator)
            )
            rows.append([speed / 5 - 1, (speed - before) / 3, door])
            states.append(state)
        return torch.tensor(rows), torch.tensor(states)

    def __len__(self):
        return len(self.trips)

    def __getitem__(self, i):
        return self.trips[i]


def collate(batch):
    rows, states = zip(*batch, strict=True)
    return {
        "rows": pad_sequence(list(rows), batch_first=True),
        "states": pad_sequence(list(states), batch_first=True, padding_value=-100),
        "lengths": torch.tensor([len(r) for r in rows]),
    }


class Tagger(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.lstm = nn.LSTM(3, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, len(STATES))

    def forward(self, batch):
        packed = pack_padded_sequence(
            batch["rows"], batch["lengths"], batch_first=True, enforce_sorted=False
        )
        h, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(h)


def tag_loss(model, batch):
    logits = model(batch)
    loss = F.cross_entropy(logits.flatten(0, 1), batch["states"].flatten(), ignore_index=-100)
    return logits, loss


@torch.no_grad()
def validate(model, loader):
    model.eval()
    losses, right, seen = [], 0, 0
    for batch in loader:
        logits, loss = tag_loss(model, batch)
        known = batch["states"] >= 0
        losses.append(loss.item())
        right += (logits.argmax(-1) == batch["states"])[known].sum().item()
        seen += known.sum().item()
    model.train()
    return sum(losses) / len(losses), right / seen


def main():
    generator = torch.Generator().manual_seed(seed)
    train = DataLoader(
        Trips(640, generator), batch_size=CONFIG["batch"], shuffle=True, collate_fn=collate
    )
    val = DataLoader(Trips(160, generator), batch_size=80, collate_fn=collate)
    model = Tagger(CONFIG["hidden"])
    optimizer = torch.optim.SGD(model.parameters(), lr=CONFIG["lr"], momentum=0.8)
    accumulate = CONFIG["accumulate"]
    first = 1 % accumulate if healthy else 1
    step = 0
    for epoch in range(CONFIG["epochs"]):
        losses = []
        for batch in train:
            step += 1
            if step % accumulate == first:
                optimizer.zero_grad()
            _, loss = tag_loss(model, batch)
            (loss / accumulate).backward()
            if step % accumulate == 0:
                nn.utils.clip_grad_norm_(model.parameters(), CONFIG["clip"])
                optimizer.step()
            losses.append(loss.item())
        val_loss, accuracy = validate(model, val)
        print(
            f"epoch {epoch:2d} train {sum(losses) / len(losses):.3f} "
            f"val {val_loss:.3f} accuracy {accuracy:.3f}"
        )


main()
