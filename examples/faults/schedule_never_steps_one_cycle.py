"""An MLP on the digits under a one-cycle schedule whose step() is never called.

OneCycleLR starts at a twenty-fifth of the peak rate and rises with each step(). The call was lost
when the loop was rewritten, so the training stays at the start of the warm-up. The place is the
schedule. The twin steps it after each batch.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("schedule", "learning_rate*", "optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
EPOCHS = 15


class Trainer:
    def __init__(self, model, loader, max_lr):
        self.model, self.loader = model, loader
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(model.parameters(), lr=max_lr, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, max_lr=max_lr, total_steps=EPOCHS * len(loader)
        )

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for xb, yb in self.loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(xb), yb)
            loss.backward()
            self.optimizer.step()
            if healthy:
                self.scheduler.step()
            total += loss.item()
        return total / len(self.loader)

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        out = self.model(x)
        return self.criterion(out, y).item(), (out.argmax(1) == y).float().mean().item()


x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10))
trainer = Trainer(model, DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True), max_lr=0.05)
for epoch in range(EPOCHS):
    train_loss = trainer.train_epoch()
    val_loss, accuracy = trainer.evaluate(x_val, y_val)
    rate = trainer.optimizer.param_groups[0]["lr"]
    print(
        f"{epoch + 1:2d} lr {rate:.4f} train {train_loss:.3f} val {val_loss:.3f} acc {accuracy:.3f}"
    )
