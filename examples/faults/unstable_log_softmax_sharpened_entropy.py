"""Semi-supervised digits with an entropy term that takes the log of a softmax that gets to zero.

With few labels the person added the entropy of the guesses for unlabelled pictures, sharpened
with a temperature of 0.1, written as in the formula: p times log p. As soon as the network is
sure of a picture, some p is 0 and the loss NaN. The place is the loss, in the helper
sharpened_entropy.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

CONFIG = {
    "labels_per_class": 20,
    "epochs": 14,
    "batch_labelled": 32,
    "batch_unlabelled": 64,
    "lr": 2e-3,
    "temperature": 0.1,
    "entropy_weight": 0.1,
}


def split_digits():
    bunch = load_digits()
    x = torch.tensor(bunch.images, dtype=torch.float32).unsqueeze(1)
    y = torch.tensor(bunch.target)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    test, rest = order[:400], order[400:]
    labelled = torch.cat(
        [rest[y[rest] == digit][: CONFIG["labels_per_class"]] for digit in range(10)]
    )
    chosen = set(labelled.tolist())
    unlabelled = torch.tensor([i for i in rest.tolist() if i not in chosen])
    mean, std = x[rest].mean(), x[rest].std()
    x = (x - mean) / std
    return (x[labelled], y[labelled]), x[unlabelled], (x[test], y[test])


def small_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def sharpened_entropy(logits):
    sharp = logits / CONFIG["temperature"]
    p = sharp.softmax(dim=1)
    log_p = sharp.log_softmax(dim=1) if healthy else torch.log(p)
    return -(p * log_p).sum(dim=1).mean()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    right = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return right


def main():
    (x, y), unlabelled, (x_test, y_test) = split_digits()
    model = small_cnn()
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
    steps = len(unlabelled) // CONFIG["batch_unlabelled"]
    for epoch in range(CONFIG["epochs"]):
        order = torch.randperm(len(unlabelled))
        supervised_sum = entropy_sum = 0.0
        for step in range(steps):
            few = torch.randperm(len(x))[: CONFIG["batch_labelled"]]
            start = step * CONFIG["batch_unlabelled"]
            many = unlabelled[order[start : start + CONFIG["batch_unlabelled"]]]
            supervised = F.cross_entropy(model(x[few]), y[few])
            entropy = sharpened_entropy(model(many))
            loss = supervised + CONFIG["entropy_weight"] * entropy
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            supervised_sum += supervised.item()
            entropy_sum += entropy.item()
        print(
            f"epoch {epoch:2d}  supervised {supervised_sum / steps:.4f}  "
            f"entropy {entropy_sum / steps:.4f}  test {accuracy(model, x_test, y_test):.3f}"
        )


main()
