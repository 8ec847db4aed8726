"""Transfer: a backbone is trained on the digits 0 to 6, then frozen for a head that knows 7, 8 and
9 from 150 images.

The second training is the one of interest: nine of ten parameters do not require a gradient, the
backbone stays in eval mode in training (its batch norm must not drift), features are computed
without a graph, and only the head's parameters are in the optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "most parameters frozen and absent from the optimizer, a backbone in eval mode while training, "
    "two trainings"
)

_, seed = arguments(__doc__)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1, stride=2),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Linear(512, classes)
        self.frozen = False

    def freeze(self, classes):
        self.backbone.requires_grad_(False)
        self.head, self.frozen = nn.Linear(512, classes), True
        return self

    def train(self, mode=True):
        super().train(mode)
        if self.frozen:
            self.backbone.eval()
        return self

    def forward(self, x):
        if self.frozen:
            with torch.no_grad():
                features = self.backbone(x)
            return self.head(features)
        return self.head(self.backbone(x))


def fit(model, train, val, epochs, lr, name):
    optimizer = torch.optim.Adam(
        (p for p in model.parameters() if p.requires_grad), lr=lr, weight_decay=1e-3
    )
    for epoch in range(epochs):
        model.train()
        for xb, yb in DataLoader(TensorDataset(*train), batch_size=30, shuffle=True):
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            out = model(val[0])
        if epoch % 6 == 5 or epochs < 6:
            print(
                f"{name} {epoch + 1:2d} loss {loss.item():.4f} "
                f"val loss {nn.functional.cross_entropy(out, val[1]):.4f} "
                f"val accuracy {(out.argmax(1) == val[1]).float().mean():.3f}"
            )


x, y, x_val, y_val = images(seed)
model = Net(7)
fit(model, (x[y < 7], y[y < 7]), (x_val[y_val < 7], y_val[y_val < 7]), 4, 2e-3, "source")
model.freeze(3)
few = torch.where(y >= 7)[0][:150]
fit(model, (x[few], y[few] - 7), (x_val[y_val >= 7], y_val[y_val >= 7] - 7), 36, 1e-3, "target")
