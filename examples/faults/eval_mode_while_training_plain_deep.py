"""A trainer measures the untrained net first, in eval mode, and trains in that mode from then on.

model.train() is called once, in the trainer's constructor, and an evaluation before the first epoch
gives a baseline. evaluate() calls model.eval() and nobody goes back: the batch norms use mean 0 and
variance 1 for ever, and dropout is off. The place is the loop (the model's mode).
"""

import itertools

import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "model", "stages*", "*norm*", "head*")
SILENT = True
EXACT = True
EARLY = True


class Stage(nn.Module):
    def __init__(self, n_in, n_out, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(n_out)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class PlainNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = [1, 12, 12, 24, 24, 24]
        self.stages = nn.Sequential(
            *(Stage(a, b, stride=2 if b > a > 1 else 1) for a, b in itertools.pairwise(widths))
        )
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(96, 10)
        )

    def forward(self, x):
        return self.head(self.stages(x))


class Trainer:
    def __init__(self, model, train_loader, val_loader, switch_each_epoch):
        self.model = model
        self.train_loader, self.val_loader = train_loader, val_loader
        self.switch_each_epoch = switch_each_epoch
        self.loss_fn = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
        self.model.train()

    def evaluate(self):
        self.model.eval()
        loss = correct = count = 0
        with torch.no_grad():
            for images, digits in self.val_loader:
                logits = self.model(images)
                loss += self.loss_fn(logits, digits).item() * len(digits)
                correct += (logits.argmax(1) == digits).sum().item()
                count += len(digits)
        return {"val_loss": loss / count, "val_acc": correct / count}

    def train_epoch(self):
        if self.switch_each_epoch:
            self.model.train()
        loss_sum = 0.0
        for images, digits in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.loss_fn(self.model(images), digits)
            loss.backward()
            self.optimizer.step()
            loss_sum += loss.item()
        return {"loss": loss_sum / len(self.train_loader)}

    def fit(self, epochs):
        self.report(0, self.evaluate())
        for epoch in range(1, epochs + 1):
            self.report(epoch, {**self.train_epoch(), **self.evaluate()})

    @staticmethod
    def report(epoch, metrics):
        print(f"[{epoch}] " + " ".join(f"{k}={v:.4f}" for k, v in metrics.items()))


def main():
    healthy, seed = arguments(__doc__)
    bunch = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1)
    images = (images - images.mean()) / images.std()
    digits = torch.tensor(bunch.target)
    x, x_val, y, y_val = train_test_split(
        images, digits, test_size=0.25, stratify=digits, random_state=seed
    )
    trainer = Trainer(
        PlainNet(),
        DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True),
        DataLoader(TensorDataset(x_val, y_val), batch_size=225),
        switch_each_epoch=healthy,
    )
    trainer.fit(epochs=8)


if __name__ == "__main__":
    main()
