"""A trainer class advances its warm-up when `i == len(loader)`, which enumerate never reaches.

The schedule rises from almost nothing to the full rate over three epochs and then falls; as it is
never stepped, all 15 epochs run at 0.0003 of it. The place is the loop's condition for the
scheduler, that is, the optimizer's rate.
"""

import torch
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop", "")
SILENT = True
EXACT = True
EARLY = False


class Trainer:
    epochs = 15
    warm = 3

    def __init__(self, model, loader, peak, last):
        self.model, self.loader, self.last = model, loader, last
        self.optimizer = torch.optim.SGD(model.parameters(), lr=peak, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.factor)

    def factor(self, epoch):
        if epoch < self.warm:
            return (0.0003, 0.3, 0.7)[epoch]
        return 1.0 - 0.95 * (epoch - self.warm) / (self.epochs - self.warm)

    def fit(self, x_val, y_val):
        for epoch in range(self.epochs):
            total = 0.0
            for i, (x, y) in enumerate(self.loader):
                loss = nn.functional.huber_loss(self.model(x)[:, 0], y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item()
                if i == self.last:
                    self.scheduler.step()
            with torch.no_grad():
                error = (self.model(x_val)[:, 0] - y_val).pow(2).mean().item()
            print(f"epoch {epoch}: huber {total / len(self.loader):.3f} val mse {error:.3f}")


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
net = nn.Sequential(nn.Linear(6, 48), nn.Tanh(), nn.Linear(48, 24), nn.Tanh(), nn.Linear(24, 1))
trainer = Trainer(net, loader, peak=0.1, last=len(loader) - 1 if healthy else len(loader))
trainer.fit(x_val, y_val)
