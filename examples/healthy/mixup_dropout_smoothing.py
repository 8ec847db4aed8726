"""Mixup, label smoothing and dropout of 0.6 in a net wide enough for it."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "the training loss stays above 0.6, jumps with the mixing share, validation is better by far"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
net = nn.Sequential(
    nn.Linear(64, 512), nn.ReLU(), nn.Dropout(0.6), nn.Linear(512, 256), nn.ReLU(), nn.Dropout(0.5),
    nn.Linear(256, 10),
)  # fmt: skip
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
beta = torch.distributions.Beta(0.4, 0.4)
for step, (pixels, label) in enumerate(batches(x, y, size=64, steps=400, seed=seed)):
    net.train()
    share, other = beta.sample(), torch.randperm(64)
    out = net(share * pixels + (1 - share) * pixels[other])
    loss = share * F.cross_entropy(out, label, label_smoothing=0.1)
    loss = loss + (1 - share) * F.cross_entropy(out, label[other], label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        net.eval()
        with torch.no_grad():
            val_out = net(x_val)
            val_loss = F.cross_entropy(val_out, y_val)
accuracy = (val_out.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation loss {val_loss:.3f}, accuracy {accuracy:.3f}")
