"""Trains a character GRU in two parts; the second begins with new objects that take everything from
the checkpoint.

The checkpoint has the states of the model, of Adam, of the schedule and of the random generator
that orders the batches.
"""

import io

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

ODD = "model, optimizer and schedule are made a second time in the middle of the training"

LENGTH = 56
EPOCHS = 8


class CharGRU(nn.Module):
    def __init__(self, vocab, hidden=64):
        super().__init__()
        self.embedding = nn.Embedding(vocab, 24)
        self.gru = nn.GRU(24, hidden, batch_first=True)
        self.head = nn.Linear(hidden, vocab)

    def forward(self, x):
        h, _ = self.gru(self.embedding(x))
        return self.head(h)


def loss_of(model, rows):
    return F.cross_entropy(model(rows[:, :-1]).transpose(1, 2), rows[:, 1:])


def part(train_rows, val_rows, vocab, first, last, checkpoint=None):
    model = CharGRU(vocab)
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS, eta_min=1e-4)
    order = torch.Generator().manual_seed(1)
    if checkpoint is not None:
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        order.set_state(state["order"])
        print(f"resumed before epoch {first}, rate {optimizer.param_groups[0]['lr']:.5f}")
    for epoch in range(first, last):
        model.train()
        losses = []
        for rows in torch.randperm(len(train_rows), generator=order).split(16):
            optimizer.zero_grad()
            loss = loss_of(model, train_rows[rows])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        model.eval()
        with torch.no_grad():
            val = loss_of(model, val_rows).item()
        print(f"epoch {epoch} train {sum(losses) / len(losses):.4f} val {val:.4f}")
    out = io.BytesIO()
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "order": order.get_state(),
        },
        out,
    )
    out.seek(0)
    return out


def main():
    _, seed = arguments(__doc__)
    ids, alphabet = text(seed, 1300)
    rows = ids[: len(ids) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
    cut = int(0.85 * len(rows))
    checkpoint = part(rows[:cut], rows[cut:], len(alphabet), 0, 4)
    part(rows[:cut], rows[cut:], len(alphabet), 4, EPOCHS, checkpoint)


if __name__ == "__main__":
    main()
