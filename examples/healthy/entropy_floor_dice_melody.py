"""A GRU models melodies composed by throwing dice; the loss hardly falls, and it can't fall
further.

Odd: after a short while the loss stands still at 2.47 nats of the 2.77 that guessing costs, with
top-1 accuracy of about a quarter, while the learning rate goes down to nearly nothing. Sound: the
generator's own entropy is printed beside it, and the model comes within a hundredth of it;
training and validation agree.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "A GRU models melodies composed by throwing dice; the loss hardly falls, and it cannot "
    "fall further"
)
_, seed = arguments(__doc__)

NOTES, LENGTH, EPOCHS = 16, 24, 8


def compose(rng, n):
    """After each note one of few is likelier; the dice decide. Returns the notes and the entropy of a throw."""  # noqa: E501
    chances = 0.45 * rng.dirichlet(np.full(NOTES, 0.1), size=NOTES) + 0.55 / NOTES
    notes = np.zeros((n, LENGTH), dtype=np.int64)
    notes[:, 0] = rng.integers(0, NOTES, n)
    surprise = []
    for t in range(1, LENGTH):
        row = chances[notes[:, t - 1]]
        notes[:, t] = (rng.random((n, 1)) > row.cumsum(1)).sum(1).clip(0, NOTES - 1)
        surprise.append(-(row * np.log(row)).sum(1).mean())
    return torch.from_numpy(notes), float(np.mean(surprise))


class DiceModel(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.notes = nn.Embedding(NOTES, 16)
        self.gru = nn.GRU(16, width, batch_first=True)
        self.out = nn.Linear(width, NOTES)

    def forward(self, notes):
        return self.out(self.gru(self.notes(notes))[0])


class Trainer:
    def __init__(self, model, train_notes, val_notes):
        self.model, self.val_notes = model, val_notes
        self.loader = DataLoader(TensorDataset(train_notes), 64, shuffle=True)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, 5e-3, total_steps=EPOCHS * len(self.loader), pct_start=0.15
        )

    def step_loss(self, notes):
        logits = self.model(notes[:, :-1])
        hit = (logits.argmax(-1) == notes[:, 1:]).float().mean().item()
        return nn.functional.cross_entropy(logits.transpose(1, 2), notes[:, 1:]), hit

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for (notes,) in self.loader:
            loss, _ = self.step_loss(notes)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            total += loss.item()
        return total / len(self.loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        loss, hit = self.step_loss(self.val_notes)
        return loss.item(), hit


notes, entropy = compose(np.random.default_rng(seed), 4000)
trainer = Trainer(DiceModel(), notes[:3400], notes[3400:])
for epoch in range(EPOCHS):
    loss = trainer.train_epoch()
    print(
        "epoch %d loss %.3f val loss %.3f acc %.3f (entropy of the dice %.3f)"  # noqa: UP031
        % (epoch, loss, *trainer.evaluate(), entropy)
    )
