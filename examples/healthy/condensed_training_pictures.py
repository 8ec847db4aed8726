"""Condenses a training set of digits into fifty synthetic pictures (distribution matching)."""

import torch
from data import arguments, images
from torch import nn

ODD = (
    "the trained tensors are pictures; the nets that compare them are drawn anew at every step "
    "and never trained, so the loss is noisy and has a floor far from zero"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

PER_CLASS, CLASSES, STEPS = 5, 10, 250
x, y, x_val, y_val = images(seed)
rows_of = [torch.nonzero(y == c).flatten() for c in range(CLASSES)]
labels = torch.arange(CLASSES).repeat_interleave(PER_CLASS)


def real_rows(each):
    return torch.cat([rows[torch.randperm(len(rows))[:each]] for rows in rows_of])


def random_embedding():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.GroupNorm(8, 32),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.GroupNorm(8, 32),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
    ).requires_grad_(False)


def accuracy_of_a_net_trained_on(pictures, targets):
    net = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, CLASSES)
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.05)
    for _ in range(120):
        noisy = pictures + 0.2 * torch.randn_like(pictures)
        loss = nn.functional.cross_entropy(net(noisy), targets, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        return (net(x_val).argmax(1) == y_val).float().mean().item()


chosen = real_rows(PER_CLASS)
synthetic = nn.Parameter(x[chosen].clone())
optimizer = torch.optim.SGD([synthetic], lr=5.0, momentum=0.5)
for step in range(STEPS):
    embed = random_embedding()
    real = embed(x[real_rows(48)]).view(CLASSES, 48, -1).mean(1)
    made = embed(synthetic).view(CLASSES, PER_CLASS, -1).mean(1)
    loss = (real - made).square().sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0 or step == STEPS - 1:
        print(f"step {step:3d}  distance of the class means {loss.item():.4f}")

condensed = [accuracy_of_a_net_trained_on(synthetic.detach(), labels) for _ in range(5)]
picked = []
for _ in range(5):
    rows = real_rows(PER_CLASS)
    picked.append(accuracy_of_a_net_trained_on(x[rows], y[rows]))
print(
    f"validation accuracy of nets trained on fifty pictures: picked real ones "
    f"{sum(picked) / 5:.3f}, condensed ones {sum(condensed) / 5:.3f}"
)
