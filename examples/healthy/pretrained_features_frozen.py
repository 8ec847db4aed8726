"""A CNN learns the digits 0 to 4; its features are then frozen, and a new head learns 5 to 9.

Transfer as it should be: the features were trained, are put into eval mode, and only the head is in
the second optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = "in the second half most parameters are frozen and get no gradient"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
low, low_val = y < 5, y_val < 5

features = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
)


def fit(head, parameters, x, y, x_val, y_val, epochs, frozen):
    optimizer = torch.optim.Adam(parameters, lr=2e-3, weight_decay=1e-4)
    model = nn.Sequential(features, head)
    for epoch in range(epochs):
        model.train()
        if frozen:
            features.eval()
        for rows in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            accuracy = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"epoch {epoch}: loss {loss.item():.4f} val loss "
            f"{F.cross_entropy(out, y_val).item():.4f} accuracy {accuracy:.3f}"
        )


first = nn.Linear(512, 5)
everything = [*features.parameters(), *first.parameters()]
fit(first, everything, x[low], y[low], x_val[low_val], y_val[low_val], 8, frozen=False)

print("new head on the trained features")
features.requires_grad_(False)
second = nn.Linear(512, 5)
fit(
    second,
    second.parameters(),
    x[~low],
    y[~low] - 5,
    x_val[~low_val],
    y_val[~low_val] - 5,
    15,
    frozen=True,
)
