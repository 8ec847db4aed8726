"""Deep hashing for retrieval: codes by tanh(beta * z), where beta begins at the end of its
schedule.

HashNet sharpens tanh step by step, from beta 1 upwards, so that the codes become binary only when
the net has learnt. Here the phase counts from one, not from zero (the warm-up phase of the
paper's code is missing, its offset is not), so that the units sit at +-1 with hardly a gradient
while the net is still random. The place is the activation `hash_act` after `hash_layer`.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("hash_act*", "hash_layer*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

config = {
    "bits": 24,
    "batch": 64,
    "iters": 700,
    "lr": 5e-4,
    "beta_end": 40.0,
    "alpha": 10.0,
    "eval_every": 140,
}


class HashNet(nn.Module):
    def __init__(self, bits):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 16, 64), nn.ReLU(),  # noqa: E501
        )  # fmt: skip
        self.hash_layer = nn.Linear(64, bits)
        nn.init.xavier_normal_(self.hash_layer.weight, gain=2.0)
        nn.init.zeros_(self.hash_layer.bias)
        self.hash_act = nn.Tanh()
        self.beta = 1.0

    def forward(self, x):
        return self.hash_act(self.beta * self.hash_layer(self.backbone(x)))


def continuation(step, total, end):
    """Beta for this step: 1 at first, `end` at the end, by powers."""
    phase = step / total if healthy else 1 + step / total
    return end**phase


def pairwise_loss(codes, labels, alpha):
    """The weighted likelihood of similar and dissimilar pairs."""
    same = (labels[:, None] == labels[None, :]).float()
    upper = torch.triu(torch.ones_like(same), 1).bool()
    product = alpha / codes.shape[1] * (codes @ codes.T)[upper]
    same = same[upper]
    weight = torch.where(
        same > 0, 0.5 / same.mean().clamp(min=1e-3), 0.5 / (1 - same.mean()).clamp(min=1e-3)
    )
    return (weight * (F.softplus(product) - same * product)).mean()


@torch.no_grad()
def mean_average_precision(net, base, base_y, query, query_y):
    net.eval()
    b, q = net(base).sign(), net(query).sign()
    net.train()
    distance = (b.shape[1] - q @ b.T) / 2
    order = distance.argsort(dim=1, stable=True)
    hits = (base_y[order] == query_y[:, None]).float()
    rank = torch.arange(1, hits.shape[1] + 1)
    return ((hits.cumsum(1) / rank * hits).sum(1) / hits.sum(1)).mean().item()


bunch = load_digits()
pixels = bunch.images.astype(np.float32)
pixels = pixels + np.random.default_rng(seed).normal(0, 2.0, pixels.shape).astype(np.float32)
x, xq, y, yq = train_test_split(
    pixels, bunch.target, test_size=0.25, random_state=seed, stratify=bunch.target
)
mean, std = x.mean(), x.std()
x, xq = (torch.tensor((part - mean) / std).unsqueeze(1) for part in (x, xq))
y, yq = torch.tensor(y), torch.tensor(yq)

net = HashNet(config["bits"])
optimizer = torch.optim.RMSprop(net.parameters(), lr=config["lr"], weight_decay=1e-5)
running = None
for step in range(config["iters"]):
    net.beta = continuation(step, config["iters"], config["beta_end"])
    rows = torch.randint(len(x), (config["batch"],))
    codes = net(x[rows])
    loss = pairwise_loss(codes, y[rows], config["alpha"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running = loss.item() if running is None else 0.95 * running + 0.05 * loss.item()
    if (step + 1) % config["eval_every"] == 0:
        score = mean_average_precision(net, x, y, xq, yq)
        print(
            f"[{step + 1:4d}] beta {net.beta:6.2f}  loss {running:.4f}  |code| {codes.abs().mean():.3f}  mAP {score:.4f}"  # noqa: E501
        )
