"""Prompt tuning: a trained transformer is frozen altogether, in evaluation mode; four vectors
before the input and the head are all that learns the new task. 1 % of the weights moves.
"""

import torch
from data import arguments, batches, images
from torch import nn
from torch.nn import functional as F

ODD = "99 % of the parameters are frozen and the model is in evaluation mode while it trains"

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


class Base(nn.Module):
    def __init__(self, d=40):
        super().__init__()
        self.patch = nn.Linear(8, d)
        self.pos = nn.Parameter(torch.randn(1, 8, d) * 0.1)
        layer = nn.TransformerEncoderLayer(d, 4, 80, 0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(d)

    def forward(self, x, prompt=None):
        h = self.patch(x.squeeze(1)) + self.pos
        if prompt is not None:
            h = torch.cat([prompt.expand(len(h), -1, -1), h], 1)
        return self.norm(self.encoder(h)).mean(1)


class Prompted(nn.Module):
    def __init__(self, base, classes, d=40):
        super().__init__()
        self.base = base.requires_grad_(False).eval()
        self.prompt = nn.Parameter(torch.randn(1, 4, d) * 0.1)
        self.head = nn.Linear(d, classes)

    def forward(self, x):
        return self.head(self.base(x, self.prompt))


def fit(model, y, y_val, steps, lr):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    for step, (xb, yb) in enumerate(batches(x, y, size=48, steps=steps, seed=seed), 1):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            was_training = model.training
            model.eval()
            with torch.no_grad():
                accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
            model.train(was_training)
            model.base.eval() if isinstance(model, Prompted) else None
            print(f"step {step}: loss {loss.item():.4f}, validation accuracy {accuracy:.3f}")
    return loss.item(), accuracy


base = Base()
fit(nn.Sequential(base, nn.Linear(40, 10)), y, y_val, 200, 3e-3)
print("new task: is the digit even?")
last, accuracy = fit(Prompted(base, 2), y % 2, y_val % 2, 150, 1e-2)
print(f"loss {last:.4f} | validation accuracy {accuracy:.3f}")
