"""A net that learned digits 0 to 5 is frozen on purpose, and a small head on it learns digits 6
to 9 from few pictures.

The person sees that most parameters have no gradient and never change, and that the loss starts
high again in the second part. That is the plan: only the head is in the second optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "most parameters get no gradient and are in no optimizer in the second part: they are frozen on"
    " purpose, in eval mode, and the head alone learns the new classes"
)
_, seed = arguments(__doc__)

FEATURES = 24 * 16


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 24, 3, padding=1),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
        )

    def forward(self, x):
        return self.layers(x)


def subset(x, y, low, high):
    chosen = (y >= low) & (y <= high)
    return x[chosen], y[chosen] - low


def accuracy(backbone, head, x, y):
    was_training = backbone.training
    backbone.eval()
    head.eval()
    with torch.no_grad():
        share = (head(backbone(x)).argmax(1) == y).float().mean().item()
    backbone.train(was_training)
    head.train()
    return share


def fit(backbone, head, optimizer, loader, epochs, val, title):
    for epoch in range(1, epochs + 1):
        total = 0.0
        for x, y in loader:
            loss = nn.functional.cross_entropy(head(backbone(x)), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        if epoch % (epochs // 4) == 0:
            share = accuracy(backbone, head, *val)
            print(f"{title} epoch {epoch:2d}: loss {total:.4f}, val accuracy {share:.3f}")


def main():
    x, y, x_val, y_val = images(seed)
    backbone, head = Backbone(), nn.Linear(FEATURES, 6)
    optimizer = torch.optim.Adam([*backbone.parameters(), *head.parameters()], lr=1e-3)
    loader = DataLoader(TensorDataset(*subset(x, y, 0, 5)), batch_size=32, shuffle=True)
    val = subset(x_val, y_val, 0, 5)
    fit(backbone, head, optimizer, loader, 8, val, "digits 0-5")

    backbone.requires_grad_(False).eval()
    new_head = nn.Linear(FEATURES, 4)
    few_x, few_y = subset(x, y, 6, 9)
    few_x, few_y = few_x[:240], few_y[:240]
    loader = DataLoader(TensorDataset(few_x, few_y), batch_size=16, shuffle=True)
    optimizer = torch.optim.Adam(new_head.parameters(), lr=1e-3)
    val = subset(x_val, y_val, 6, 9)
    fit(backbone, new_head, optimizer, loader, 20, val, "digits 6-9")


if __name__ == "__main__":
    main()
