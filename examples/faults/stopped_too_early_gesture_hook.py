"""Gestures by a GRU; the early-stopping hook takes the falling loss for a worsening score.

The hook's rule "greater" was meant for an accuracy, and what it watches is the validation loss. So
the first epoch is the best for ever, and the run ends after the patience while the loss still
falls; the log says "early stopping", as if the model could do no more. The place is the loop.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


def gestures(n, length=40):
    """Turns of a wrist: two jerks, each up or down, somewhere in the first and second half."""
    first, second = torch.randint(0, 2, (2, n))
    t = torch.arange(length).float()
    when = torch.stack([torch.randint(3, 14, (n,)), torch.randint(18, 30, (n,))]).float()
    bumps = torch.exp(-((t - when.unsqueeze(2)) ** 2) / 4.0)
    x = (2.0 * first.unsqueeze(1) - 1) * bumps[0] + (2.0 * second.unsqueeze(1) - 1) * bumps[1]
    x = x + 0.15 * torch.randn(n, length)
    return ((x - x.mean()) / x.std()).unsqueeze(2), 2 * first + second


class EarlyStoppingHook:
    def __init__(self, monitor, rule, patience):
        self.monitor = monitor
        self.rule = rule
        self.patience = patience
        self.best = None
        self.waited = 0

    def is_better(self, value):
        if self.best is None:
            return True
        return value > self.best if self.rule == "greater" else value < self.best

    def should_stop(self, metrics):
        value = metrics[self.monitor]
        if self.is_better(value):
            self.best = value
            self.waited = 0
        else:
            self.waited += 1
        return self.waited >= self.patience


class GestureNet(nn.Module):
    def __init__(self, n_classes, hidden=24):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.dropout = nn.Dropout(0.1)
        self.classify = nn.Linear(hidden, n_classes)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.classify(self.dropout(states[:, -1]))


class Trainer:
    def __init__(self, model, train_data, valid_data, epochs):
        self.model = model
        self.train_loader = DataLoader(train_data, batch_size=48, shuffle=True)
        self.valid_loader = DataLoader(valid_data, batch_size=128)
        self.epochs = epochs
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
        rule = "less" if healthy else "greater"
        self.hook = EarlyStoppingHook(monitor="valid_loss", rule=rule, patience=6)

    def train_epoch(self):
        self.model.train()
        losses = []
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        loss, hits, n = 0.0, 0, 0
        for x, y in self.valid_loader:
            logits = self.model(x)
            loss += self.criterion(logits, y).item() * len(y)
            hits += (logits.argmax(1) == y).sum().item()
            n += len(y)
        return loss / n, hits / n

    def fit(self):
        for epoch in range(1, self.epochs + 1):
            train_loss = self.train_epoch()
            valid_loss, accuracy = self.validate()
            print(f"epoch {epoch:3d} | {train_loss:.4f} | {valid_loss:.4f} | acc {accuracy:.3f}")
            if self.hook.should_stop({"valid_loss": valid_loss, "accuracy": accuracy}):
                print(f"early stopping after {epoch} of {self.epochs} epochs")
                break
        return self.validate()


def main():
    x, y = gestures(1200)
    generator = torch.Generator().manual_seed(seed)
    train_data, valid_data = random_split(TensorDataset(x, y), [900, 300], generator=generator)
    trainer = Trainer(GestureNet(4), train_data, valid_data, epochs=30)
    loss, accuracy = trainer.fit()
    print(f"final: valid loss {loss:.4f}, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
