"""A small network for spoken vowels learns from a larger one that was trained before.

The large network stays in evaluation mode and without gradients while the small one is trained. The
small one is taught with softened probabilities and, for a part, with the labels. Its loss ends far
above zero, since the soft targets have an entropy of their own that nobody can take away.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "half of the parameters in play are frozen (the teacher), and the loss stays far above zero"

_, seed = arguments(__doc__)

CFG = {
    "vowels": 8,
    "bins": 32,
    "temperature": 3.0,
    "soft_share": 0.7,
    "teacher": {"width": 192, "epochs": 5, "lr": 2e-3},
    "student": {"width": 12, "epochs": 8, "lr": 4e-3},
    "batch": 64,
}


def spectra(formants, n):
    """Two bumps at the speaker's formants, on a falling spectrum, with noise."""
    vowel = torch.randint(0, CFG["vowels"], (n,))
    speaker = 1 + 0.04 * torch.randn(n, 1)
    places = formants[vowel] * speaker + 0.4 * torch.randn(n, 2)
    bins = torch.arange(CFG["bins"])
    bumps = torch.exp(-((bins - places.unsqueeze(-1)) ** 2) / 4).sum(1)
    x = bumps - 0.03 * bins + 0.3 * torch.randn(n, CFG["bins"])
    return x, vowel


def mlp(width):
    return nn.Sequential(
        nn.Linear(CFG["bins"], width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Linear(width, CFG["vowels"]),
    )


@torch.no_grad()
def accuracy(net, x, y):
    net.eval()
    return (net(x).argmax(1) == y).float().mean().item()


def hard_loss(net, x, y):
    return F.cross_entropy(net(x), y, label_smoothing=0.05)


class Distill:
    def __init__(self, teacher):
        self.teacher = copy.deepcopy(teacher).eval().requires_grad_(False)

    def __call__(self, net, x, y):
        t, share = CFG["temperature"], CFG["soft_share"]
        logits = net(x)
        with torch.no_grad():
            target = F.softmax(self.teacher(x) / t, dim=1)
        soft = F.cross_entropy(logits / t, target) * t * t
        return share * soft + (1 - share) * F.cross_entropy(logits, y)


def fit(net, loss_fn, loader, val, epochs, lr, name):
    optimizer = torch.optim.AdamW(net.parameters(), lr=lr, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=lr, total_steps=epochs * len(loader)
    )
    for epoch in range(epochs):
        net.train()
        losses = []
        for x, y in loader:
            loss = loss_fn(net, x, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        mean = sum(losses) / len(losses)
        print(f"{name} {epoch + 1} loss {mean:.4f} val acc {accuracy(net, *val):.4f}")
    return net


low = torch.linspace(3, 14, CFG["vowels"])
high = torch.linspace(18, 29, CFG["vowels"])[torch.randperm(CFG["vowels"])]
formants = torch.stack([low, high], 1)
train, val = spectra(formants, 3000), spectra(formants, 1000)
loader = DataLoader(TensorDataset(*train), CFG["batch"], shuffle=True, drop_last=True)

big, small = CFG["teacher"], CFG["student"]
teacher = fit(mlp(big["width"]), hard_loss, loader, val, big["epochs"], big["lr"], "teacher")
student = fit(
    mlp(small["width"]), Distill(teacher), loader, val, small["epochs"], small["lr"], "student"
)
