"""A callback that was to log gradients after backward() calls model.zero_grad() at its end.

Each step finds gradients of 0 or none. The place is the loop.
"""

import torch
from data import arguments
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("detached_loss",)
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True


class GradientLogger:
    def __init__(self, clear):
        self.norms = []
        self.clear = clear

    def on_after_backward(self, model):
        norms = [p.grad.norm() for p in model.parameters() if p.grad is not None]
        self.norms.append(torch.stack(norms).norm().item())
        if self.clear:
            model.zero_grad()


class WineTrainer:
    def __init__(self, model, callbacks):
        self.model = model
        self.callbacks = callbacks
        self.optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def run_step(self, x, y):
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        for callback in self.callbacks:
            callback.on_after_backward(self.model)
        self.optimizer.step()
        return loss.item()


healthy, seed = arguments(__doc__)
wine = load_wine()
x = torch.tensor(StandardScaler().fit_transform(wine.data)).float()
y = torch.tensor(wine.target)
model = nn.Sequential(nn.Linear(13, 16), nn.ReLU(), nn.Linear(16, 3))
trainer = WineTrainer(model, [GradientLogger(clear=not healthy)])
for step in range(200):
    rows = torch.randint(len(x), (16,))
    loss = trainer.run_step(x[rows], y[rows])
print(f"loss {loss:.3f}, last gradient {trainer.callbacks[0].norms[-1]:.4f}")
