"""Five new classes of digits on a backbone trained on five others: the backbone stays frozen.

The backbone first learns the digits 0 to 4. Then its weights are loaded into a model for 5 to 9,
with `requires_grad` off and its batch norm in eval mode also while training; only the new head is
given to the optimizer.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "most parameters are frozen, get no gradient, and stay in eval mode during training, on purpose"
)

_, seed = arguments(__doc__)


def backbone(width=24):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
    )


class Classifier(nn.Module):
    def __init__(self, features, head, frozen=False):
        super().__init__()
        self.features, self.head, self.frozen = features, head, frozen
        if frozen:
            self.features.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        if self.frozen:
            self.features.eval()
        return self

    def forward(self, x):
        return self.head(self.features(x))


def fit(model, train, val, epochs, lr, name):
    loader = DataLoader(TensorDataset(*train), batch_size=32, shuffle=True)
    wanted = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(wanted, lr=lr, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, epochs * len(loader), eta_min=lr / 20
    )
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
        model.eval()
        with torch.no_grad():
            scores = model(val[0])
            val_loss = criterion(scores, val[1]).item()
            accuracy = (scores.argmax(1) == val[1]).float().mean().item()
        print(
            f"{name} {epoch:2d} train {loss.item():.3f} val {val_loss:.3f} accuracy {accuracy:.3f}"
        )


x, y, x_val, y_val = images(seed)
old, old_val, new, new_val = y < 5, y_val < 5, y >= 5, y_val >= 5
source = Classifier(backbone(), nn.Linear(48 * 4, 5))
fit(
    source, (x[old], y[old]), (x_val[old_val], y_val[old_val]), epochs=4, lr=2e-3, name="old digits"
)

features = backbone()
features.load_state_dict(source.features.state_dict())
head = nn.Sequential(nn.Linear(48 * 4, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 5))
model = Classifier(features, head, frozen=True)
fit(
    model,
    (x[new], y[new] - 5),
    (x_val[new_val], y_val[new_val] - 5),
    epochs=12,
    lr=2e-3,
    name="new digits",
)
