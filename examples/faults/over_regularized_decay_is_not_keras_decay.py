"""House prices with Adam(weight_decay=0.95): the author takes weight_decay for the factor by which
the learning rate decays, like Keras's `decay`.

The penalty's gradient is far stronger than the data's; the weights shrink to almost nothing and
the prices come out near their mean. The place is the optimizer.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True


class Trainer:
    def __init__(self, model, optimizer, loss_fn, scheduler=None):
        self.model, self.optimizer, self.loss_fn = model, optimizer, loss_fn
        self.scheduler = scheduler
        self.history = []

    def fit(self, train_loader, val_loader, epochs):
        for _ in range(epochs):
            self.model.train()
            total, n = 0.0, 0
            for x, y in train_loader:
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.model(x).flatten(), y)
                loss.backward()
                self.optimizer.step()
                total, n = total + loss.item() * len(y), n + len(y)
            if self.scheduler is not None:
                self.scheduler.step()
            self.history.append((total / n, self.evaluate(val_loader)))

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        parts = [(self.loss_fn(self.model(x).flatten(), y) * len(y), len(y)) for x, y in loader]
        return (sum(a for a, _ in parts) / sum(b for _, b in parts)).item()


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, 3000)
net = nn.Sequential(nn.Linear(6, 48), nn.ELU(), nn.Linear(48, 24), nn.ELU(), nn.Linear(24, 1))
decay = 0.95
if healthy:
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
else:
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3, weight_decay=decay)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.85)
trainer = Trainer(net, optimizer, nn.MSELoss(), scheduler)
trainer.fit(
    DataLoader(TensorDataset(x, y), batch_size=75, shuffle=True),
    DataLoader(TensorDataset(x_val, y_val), batch_size=250),
    epochs=16,
)
print("loss {:.3f}, val loss {:.3f}".format(*trainer.history[-1]))
