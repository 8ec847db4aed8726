"""An MLP regressor in a Trainer class that clears the gradients once, before the loop.

zero_grad() is there, but above the two loops instead of in the inner one, so it runs a single time
and the gradients pile up from then on. The place is the loop. The twin clears for each batch.
"""

import torch
from data import arguments, houses
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True


class Trainer:
    def __init__(self, model, lr, batch_size):
        self.model = model
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.loss_fn = nn.MSELoss()
        self.batch_size = batch_size

    def fit(self, x, y, x_val, y_val, epochs, healthy):
        self.optimizer.zero_grad()
        for epoch in range(epochs):
            self.model.train()
            order = torch.randperm(len(x))
            for start in range(0, len(x), self.batch_size):
                rows = order[start : start + self.batch_size]
                if healthy:
                    self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(x[rows]), y[rows])
                loss.backward()
                self.optimizer.step()
            print(
                f"epoch {epoch + 1}: train {loss.item():.4f}  val {self.validate(x_val, y_val):.4f}"
            )

    def validate(self, x, y):
        self.model.eval()
        with torch.no_grad():
            return self.loss_fn(self.model(x), y).item()


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
model = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 1), nn.Flatten(0))
trainer = Trainer(model, lr=0.03, batch_size=128)
trainer.fit(x, y, x_val, y_val, epochs=60, healthy=healthy)
