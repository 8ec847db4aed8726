"""A GRU finds bots among the sessions of a web site; two sessions in a hundred are bots, and it
finds none.

The bots behave much like people, and with a plain mean over the batch it pays to call everybody
human: accuracy is 98 %, recall is zero. The twin gives bots their weight in the loss. The place
is the loss (no weights), or the loader (no sampler).
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import balanced_accuracy_score, recall_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("loader", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

ACTIONS, LENGTH = 8, 16


def sessions(rng, n, share):
    """Action and log of the pause before it; bots search and list more, repeat more often and pause more evenly."""  # noqa: E501
    bot = rng.random(n) < share
    actions = rng.integers(0, ACTIONS, (n, LENGTH))
    actions = np.where(
        rng.random((n, LENGTH)) < 0.37 * bot[:, None], rng.integers(0, 2, (n, LENGTH)), actions
    )
    repeat = np.where(bot, 0.3, 0.2)
    for t in range(1, LENGTH):
        again = rng.random(n) < repeat
        actions[:, t] = np.where(again, actions[:, t - 1], actions[:, t])
    pauses = rng.normal(0, 1, (n, LENGTH)) * np.where(bot, 0.75, 1.0)[:, None] + rng.normal(
        0, 0.5, (n, 1)
    )
    return (
        torch.from_numpy(actions),
        torch.tensor(pauses, dtype=torch.float32),
        torch.from_numpy(bot.astype(np.int64)),
    )


class BotDetector(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.action = nn.Embedding(ACTIONS, 8)
        self.gru = nn.GRU(9, width, batch_first=True)
        self.classifier = nn.Linear(width, 2)

    def forward(self, actions, pauses):
        states, _ = self.gru(torch.cat([self.action(actions), pauses.unsqueeze(-1)], -1))
        return self.classifier(states.mean(1))


class Trainer:
    def __init__(self, model, train_loader, val_loader, weight):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.criterion = nn.CrossEntropyLoss(weight=weight)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, EPOCHS)

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for actions, pauses, bot in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(actions, pauses), bot)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        self.scheduler.step()
        return total / len(self.train_loader)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        logits, truth = [], []
        for actions, pauses, bot in self.val_loader:
            logits.append(self.model(actions, pauses))
            truth.append(bot)
        logits, truth = torch.cat(logits), torch.cat(truth)
        said = logits.argmax(1)
        recall = recall_score(truth, said, zero_division=0.0)
        return self.criterion(logits, truth).item(), recall, balanced_accuracy_score(truth, said)


EPOCHS = 5
rng = np.random.default_rng(seed)
train_set = TensorDataset(*sessions(rng, 8000, 0.02))
val_set = TensorDataset(*sessions(rng, 4000, 0.02))
bots = train_set.tensors[2].float().mean()
weight = torch.stack([0.5 / (1 - bots), 0.5 / bots]) if healthy else None
loader = DataLoader(train_set, 128, shuffle=True, drop_last=True)
trainer = Trainer(BotDetector(), loader, DataLoader(val_set, 500), weight)
for epoch in range(EPOCHS):
    loss = trainer.train_epoch()
    print(
        "epoch %d loss %.3f val loss %.3f recall %.3f balanced accuracy %.3f"  # noqa: UP031
        % (epoch, loss, *trainer.evaluate())
    )
