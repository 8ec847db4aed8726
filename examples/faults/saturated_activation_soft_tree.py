"""A soft decision tree whose gates are sigmoids so steep that they have no slope to learn from.

What goes into the sigmoid is multiplied by 200, for crisp decisions, so that it works like a step.
Nearly every gate sits on a flat end from the start: only the leaves learn, on top of random splits.
The place is the gates (layer gate_activation).
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient", "poor_weight_init")
PLACE = ("gate_activation*", "gates*", "model")
SILENT = True
EXACT = False
EARLY = True

DEPTH = 4


class SteepSigmoid(nn.Module):
    def __init__(self, steepness):
        super().__init__()
        self.steepness = steepness

    def forward(self, z):
        return torch.sigmoid(self.steepness * z)


class SoftTree(nn.Module):
    """Every inner node sends a sample to the right with some probability; leaves hold classes."""

    def __init__(self, features, classes, steepness):
        super().__init__()
        self.gates = nn.Linear(features, 2**DEPTH - 1)
        self.gate_activation = SteepSigmoid(steepness)
        self.leaves = nn.Parameter(0.1 * torch.randn(2**DEPTH, classes))

    def forward(self, x):
        right = self.gate_activation(self.gates(x))
        reach = torch.ones(len(x), 1)
        first = 0
        for level in range(DEPTH):
            here = right[:, first : first + 2**level]
            reach = torch.stack([reach * (1 - here), reach * here], dim=2).flatten(1)
            first += 2**level
        return torch.log(reach @ self.leaves.softmax(dim=1) + 1e-6)


def evaluate(tree, loader):
    tree.eval()
    right = total = loss = 0
    with torch.no_grad():
        for x, y in loader:
            log_probs = tree(x)
            loss += nn.functional.nll_loss(log_probs, y, reduction="sum").item()
            right += (log_probs.argmax(1) == y).sum().item()
            total += len(y)
    return loss / total, right / total


def main():
    healthy, seed = arguments(__doc__)
    pixels, digit = load_digits(return_X_y=True)
    pixels = (pixels - pixels.mean()) / pixels.std()
    x, x_val, y, y_val = train_test_split(
        torch.tensor(pixels, dtype=torch.float32),
        torch.tensor(digit),
        test_size=0.25,
        stratify=digit,
        random_state=seed,
    )
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=256)

    tree = SoftTree(64, 10, steepness=1.0 if healthy else 200.0)
    optimizer = torch.optim.Adam(tree.parameters(), lr=0.02)
    for epoch in range(30):
        tree.train()
        running = 0.0
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.nll_loss(tree(inputs), labels)
            loss.backward()
            optimizer.step()
            running += loss.item()
        if epoch % 3 == 2:
            val_loss, val_acc = evaluate(tree, val_loader)
            print(
                f"epoch {epoch + 1}: loss {running / len(loader):.4f} "
                f"val_loss {val_loss:.4f} val_acc {val_acc:.4f}"
            )


if __name__ == "__main__":
    main()
