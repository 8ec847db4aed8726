"""Trains a regression MLP on house prices with ReduceLROnPlateau in mode "max" although it is given
the loss.

In this mode a falling loss counts as no improvement, so the rate is cut by ten at almost every
epoch until nothing moves. The loss falls in the first epochs and then freezes far above what can be
reached. The twin uses mode "min". The place is the optimizer or the loop.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False


class Trainer:
    def __init__(self, model, lr, mode):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.scheduler = ReduceLROnPlateau(self.optimizer, mode=mode, factor=0.1, patience=1)
        self.loss_fn = nn.MSELoss()

    def train_epoch(self, x, y, batch_size=32):
        self.model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(batch_size):
            self.optimizer.zero_grad()
            loss = self.loss_fn(self.model(x[rows]).squeeze(1), y[rows])
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(rows)
        return total / len(x)

    @torch.no_grad()
    def validate(self, x, y):
        self.model.eval()
        return self.loss_fn(self.model(x).squeeze(1), y).item()

    def fit(self, x, y, x_val, y_val, epochs):
        for epoch in range(epochs):
            train_loss = self.train_epoch(x, y)
            val_loss = self.validate(x_val, y_val)
            self.scheduler.step(val_loss)
            rate = self.optimizer.param_groups[0]["lr"]
            if epoch % 3 == 2:
                print(
                    f"epoch {epoch + 1:2d} train {train_loss:.4f} val {val_loss:.4f} lr {rate:.1e}"
                )


def main():
    healthy, seed = arguments(__doc__)
    x, y, x_val, y_val = houses(seed, n=3000)
    model = nn.Sequential(
        nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)
    )
    trainer = Trainer(model, lr=3e-4, mode="min" if healthy else "max")
    trainer.fit(x, y, x_val, y_val, epochs=30)


if __name__ == "__main__":
    main()
