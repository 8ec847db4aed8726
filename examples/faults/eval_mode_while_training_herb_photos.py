"""Herbs by small photographs; a callback calls eval() at every 10th step and leaves it so.

To show a few predictions in the middle of an epoch the callback puts the model into eval mode.
train() is called once before the loop. From the tenth step on the batch norms use their running
statistics from ten batches, and dropout is off.
The place is the loop. The twin's callback goes back to train mode.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ("overfit",)
PLACE = ("loop", ", ")
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
HERBS = ("basil", "mint", "thyme", "dill", "sage")


def photos(n, g):
    forms = torch.Generator().manual_seed(4)
    leaf = nn.functional.interpolate(
        torch.randn(len(HERBS), 3, 4, 4, generator=forms), size=12, mode="bicubic"
    )
    y = torch.randint(0, len(HERBS), (n,), generator=g)
    x = leaf[y] * (0.4 + 0.8 * torch.rand(n, 1, 1, 1, generator=g))
    x = torch.where(torch.rand(n, 1, 1, 1, generator=g) < 0.5, x.flip(3), x)
    return x + 3.2 * torch.randn(n, 3, 12, 12, generator=g), y


class HerbNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.Conv2d(24, 32, 3, stride=2, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(0.6),
            nn.Linear(288, len(HERBS)),
        )

    def forward(self, x):
        return self.net(x)


class ShowPredictions:
    def __init__(self, x, every=10):
        self.x, self.every, self.step, self.shown = x, every, 0, []

    def __call__(self, model):
        self.step += 1
        if self.step % self.every == 0:
            model.eval()
            with torch.no_grad():
                self.shown.append(model(self.x).argmax(1).tolist())
            if healthy:
                model.train()


g = torch.Generator().manual_seed(seed)
x, y = photos(1200, g)
loader = DataLoader(TensorDataset(x[:240], y[:240]), batch_size=24, shuffle=True)
x_val, y_val = x[240:], y[240:]
model = HerbNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
callback = ShowPredictions(x_val[:8])
model.train()
for epoch in range(30):
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        callback(model)
    with torch.no_grad():
        was_training = model.training
        model.eval()
        out = model(x_val)
        model.train(was_training)
    val = nn.functional.cross_entropy(out, y_val).item()
    right = (out.argmax(1) == y_val).float().mean().item()
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: {loss.item():.3f}, validation {val:.3f} {right:.3f}")
