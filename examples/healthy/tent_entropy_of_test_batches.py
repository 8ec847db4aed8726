"""Adapts a trained digit classifier to washed-out pictures while they arrive, without labels."""

import torch
from data import arguments, batches, images
from torch import nn

ODD = (
    "the second stage trains on test pictures and stays in train mode while it answers: test- "
    "time entropy minimisation; no labels are used there, and only the affine parts of the norms "
    "move"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

x, y, x_val, y_val = images(seed)
BLACK = x.min()


def conv(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


net = nn.Sequential(
    conv(1, 16),
    conv(16, 32),
    nn.MaxPool2d(2),
    conv(32, 32),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)


def washed_out(pictures):
    """Fog of uneven strength over low contrast, with grain."""
    fog = torch.linspace(0, 0.8, 8).view(1, 1, 1, 8)
    return 0.5 * (pictures - BLACK) + BLACK + fog + 0.5 + 0.1 * torch.randn_like(pictures)


@torch.no_grad()
def accuracy(pictures):
    net.eval()
    return (net(pictures).argmax(1) == y_val).float().mean().item()


optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
for step, (pictures, labels) in enumerate(batches(x, y, size=64, steps=240, seed=seed)):
    net.train()
    loss = nn.functional.cross_entropy(net(pictures), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 59:
        print(f"step {step + 1}  loss {loss.item():.3f}  validation {accuracy(x_val):.3f}")

foggy = washed_out(x_val)
clean_accuracy, frozen_accuracy = accuracy(x_val), accuracy(foggy)

net.requires_grad_(False)
affine = []
for module in net.modules():
    if isinstance(module, nn.BatchNorm2d):
        module.requires_grad_(True)
        module.track_running_stats = False
        module.running_mean = module.running_var = None
        affine += [module.weight, module.bias]
net.train()
adapter = torch.optim.Adam(affine, lr=1e-3)
right_online = 0
for visit in range(4):
    for rows in torch.randperm(len(foggy)).split(75):
        logits = net(foggy[rows])
        chances = logits.softmax(1)
        entropy = -(chances * logits.log_softmax(1)).sum(1).mean()
        adapter.zero_grad()
        entropy.backward()
        adapter.step()
        right = (logits.argmax(1) == y_val[rows]).sum().item()
        right_online += right if visit == 0 else 0
    if visit in (0, 3):
        print(f"visit {visit}  entropy {entropy.item():.3f}")

with torch.no_grad():
    adapted = (net(foggy).argmax(1) == y_val).float().mean().item()
print(
    f"accuracy: clean {clean_accuracy:.3f}, washed out, not adapted {frozen_accuracy:.3f}, first "
    f"visit {right_online / len(foggy):.3f}, after four visits {adapted:.3f}"
)
