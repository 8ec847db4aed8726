"""Boxes and classes in a detection head, trained on several losses; the sum is built anew from
numbers.

To weigh the parts, the list of losses became `torch.tensor([...], requires_grad=True)`. That makes
a leaf of the values: `backward()` runs, ends in that leaf, and no parameter gets a gradient.
`requires_grad` was added when backward complained. The place is the loss in `weighted`. The twin
stacks the losses.
"""

import warnings

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph", "step_without_gradient")
PLACE = ("loss*", "loop")
SILENT = False
EXACT = True
EARLY = True

warnings.filterwarnings("ignore", message="Converting a tensor")
healthy, seed = arguments(__doc__)
CLASSES, CHANNELS = 5, 24
WEIGHTS = {"class": 1.0, "box": 5.0, "quality": 0.5}


def regions(count, mixing):
    """Pooled features of regions, the classes and the offsets of the boxes that they hide."""
    label, box = torch.randint(0, CLASSES, (count,)), torch.randn(count, 4) * 0.3
    hidden = torch.cat(
        [1.5 * F.one_hot(label, CLASSES) * (1 + 0.3 * torch.randn(count, 1)), 3 * torch.tanh(box)],
        1,
    )
    return hidden @ mixing + 0.6 * torch.randn(count, CHANNELS), label, box


class RegionHead(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.shared = nn.Sequential(
            nn.Linear(CHANNELS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.label, self.box, self.quality = (nn.Linear(width, n) for n in (CLASSES, 4, 1))

    def forward(self, x):
        h = self.shared(x)
        return {"label": self.label(h), "box": self.box(h), "quality": self.quality(h).squeeze(-1)}


def losses(found, label, box):
    miss = (found["box"].detach() - box).abs().mean(1)
    return {
        "class": F.cross_entropy(found["label"], label),
        "box": F.smooth_l1_loss(found["box"], box, beta=0.1),
        "quality": F.binary_cross_entropy_with_logits(found["quality"], torch.exp(-4 * miss)),
    }


def weighted(parts):
    weights = torch.tensor([WEIGHTS[name] for name in parts])
    if healthy:
        values = torch.stack(list(parts.values()))
    else:
        values = torch.tensor(list(parts.values()), requires_grad=True)
    return (weights * values).sum()


@torch.no_grad()
def validate(model, x, label, box):
    model.eval()
    found = model(x)
    accuracy = (found["label"].argmax(1) == label).float().mean().item()
    return accuracy, (found["box"] - box).abs().mean().item()


mixing = torch.randn(CLASSES + 4, CHANNELS) / 2
train, val = regions(1500, mixing), regions(400, mixing)
head = RegionHead()
optimizer = torch.optim.AdamW(head.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=10)

for epoch in range(10):
    head.train()
    for rows in torch.randperm(1500).split(50):
        x, label, box = (part[rows] for part in train)
        optimizer.zero_grad(set_to_none=False)
        loss = weighted(losses(head(x), label, box))
        loss.backward()
        optimizer.step()
    schedule.step()
    accuracy, error = validate(head, *val)
    print(
        f"epoch {epoch} loss {loss.item():.3f} val accuracy {accuracy:.3f} "
        f"val box error {error:.4f}"
    )
print(f"validation accuracy {accuracy:.3f}, box error {error:.4f}")
