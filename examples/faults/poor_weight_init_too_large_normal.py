"""An MLP on the digits whose weights start from a normal distribution with std 1.

`nn.init.normal_(m.weight)` keeps its default std of 1, so each layer of 128 units multiplies the
size of its input by about eight: the first loss is in the hundreds, and what is learnt afterwards
stays poor. The place is the weights. The twin uses kaiming_normal_.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ("exploding_gradient",)
PLACE = (
    "layers.0.weight",
    "layers.2.weight",
    "layers.4.weight",
    "layers.6.weight",
    "layers.0",
    "layers.2",
    "layers.4",
    "layers.6",
    "layers",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def init_weights(m):
    if isinstance(m, nn.Linear):
        if healthy:
            nn.init.kaiming_normal_(m.weight)
        else:
            nn.init.normal_(m.weight)
        nn.init.zeros_(m.bias)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 128),
            nn.ReLU(),
            nn.Linear(128, 128),
            nn.ReLU(),
            nn.Linear(128, 128),
            nn.ReLU(),
            nn.Linear(128, 10),
        )

    def forward(self, x):
        return self.layers(x)


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
    return nn.functional.cross_entropy(logits, y).item(), (logits.argmax(1) == y).float().mean()


def main():
    x, y, x_val, y_val = digits(seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True)
    model = MLP()
    model.apply(init_weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    print("before training: loss {:.3f}, accuracy {:.3f}".format(*evaluate(model, x_val, y_val)))
    for epoch in range(16):
        model.train()
        for xb, yb in loader:
            optimizer.zero_grad(set_to_none=True)
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
        if epoch % 4 == 3:
            loss, accuracy = evaluate(model, x_val, y_val)
            print(f"epoch {epoch + 1}: val loss {loss:.3f}, accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
