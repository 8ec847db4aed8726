"""Quality of weld seams in small x-ray pictures; a third of the labels was guessed by the crowd.

To have more data the firm paid for labels by the piece. Some of the labellers clicked at random,
which nobody checked, since each file looked complete. The network first learns what is true and
then begins to learn the rest by heart.
The place is the labels that come with the input.
The twin uses the labels after the review.
"""

import torch
from data import arguments
from torch import nn

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("input*", "loader", "loss*")
SILENT = True
EXACT = False
EARLY = False


def seams(n, g):
    """Sound, pore, crack, undercut: 12 by 12 pixels of grey."""
    kind = torch.randint(0, 4, (n,), generator=g)
    pictures = 0.5 * torch.randn(n, 12, 12, generator=g)
    pictures[:, 4:8] += 1.0
    for i in range(n):
        r, c = torch.randint(4, 7, (1,), generator=g), torch.randint(1, 8, (1,), generator=g)
        if kind[i] == 1:
            pictures[i, r : r + 2, c : c + 2] -= 2.0
        elif kind[i] == 2:
            pictures[i, r, c : c + 5] -= 2.0
        elif kind[i] == 3:
            pictures[i, 7, :] -= 1.5
    return pictures.unsqueeze(1), kind


def crowd(kind, g, share=0.35):
    clicked = torch.randint(0, 4, kind.shape, generator=g)
    careless = torch.rand(kind.shape, generator=g) < share
    return torch.where(careless, clicked, kind)


def build_net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 9, 64),
        nn.ReLU(),
        nn.Linear(64, 4),
    )


def evaluate(net, pictures, kind):
    net.eval()
    with torch.no_grad():
        logits = net(pictures)
    net.train()
    right = (logits.argmax(1) == kind).float().mean().item()
    return nn.functional.cross_entropy(logits, kind).item(), right


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
pictures, kind = seams(1200, g)
val_pictures, val_kind = seams(400, g)
labels = kind if healthy else crowd(kind, g)

net = build_net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(20):
    seen, total = 0, 0.0
    for rows in torch.randperm(len(labels)).split(48):
        loss = nn.functional.cross_entropy(net(pictures[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
        seen += len(rows)
    if epoch % 4 == 3:
        val_loss, val_acc = evaluate(net, val_pictures, val_kind)
        print(f"[{epoch + 1:2d}] train {total / seen:.3f} val {val_loss:.3f} acc {val_acc:.3f}")
