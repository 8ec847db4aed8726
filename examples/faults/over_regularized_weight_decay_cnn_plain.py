"""A CNN on digit images is trained by SGD with weight_decay=0.1 where 1e-4 was meant.

The decay pulls the weights to zero about as fast as the data push them away: learning begins late
and the loss stops far above what the network can reach, on training and validation data alike. The
twin has weight_decay=1e-4. The place is the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Trainer:
    def __init__(self, model, train_set, val_set, lr, weight_decay, epochs):
        self.model, self.epochs = model, epochs
        self.train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
        self.val_loader = DataLoader(val_set, batch_size=256)
        self.optimizer = torch.optim.SGD(
            model.parameters(), lr=lr, momentum=0.9, weight_decay=weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)

    def fit(self):
        for epoch in range(1, self.epochs + 1):
            loss = self.train_epoch()
            self.scheduler.step()
            if epoch % 4 == 0:
                val_loss, acc = self.validate()
                size = sum(p.norm() ** 2 for p in self.model.parameters()).sqrt()
                print(
                    f"epoch {epoch}: loss {loss:.3f}, val {val_loss:.3f}, acc {acc:.3f}, "
                    f"weights {size:.3f}"
                )

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total = right = n = 0
        for x, y in self.val_loader:
            out = self.model(x)
            total += F.cross_entropy(out, y, reduction="sum").item()
            right += (out.argmax(1) == y).sum().item()
            n += len(y)
        return total / n, right / n


x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 16, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
trainer = Trainer(
    model,
    TensorDataset(x, y),
    TensorDataset(x_val, y_val),
    lr=0.02,
    weight_decay=1e-4 if healthy else 0.1,
    epochs=20,
)
trainer.fit()
