"""Seven people label each digit, and the label taken is the highest vote instead of the most
frequent one.

Whenever one of the seven slips upwards, the slip becomes the label: a third of the training labels
are wrong, mostly those of small digits. The network first learns the right ones, then the slips by
heart; on the clean validation labels it gets worse. The place is the loader (the labels).
"""

import numpy as np
import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ()
PLACE = ("loader", "", "loss*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, truth, x_val, y_val = digits(seed)
r = np.random.default_rng(seed)
votes = np.repeat(truth.numpy()[:, None], 7, axis=1)
slips = r.random(votes.shape) < 0.15
votes[slips] = r.integers(0, 10, slips.sum())
votes = torch.from_numpy(votes)
consensus = votes.mode(dim=1).values if healthy else votes.max(dim=1).values

loader = DataLoader(TensorDataset(x, consensus), batch_size=64, shuffle=True, drop_last=True)
classifier = nn.Sequential()
classifier.add_module("wide", nn.Linear(64, 256))
classifier.add_module("act1", nn.SiLU())
classifier.add_module("mid", nn.Linear(256, 128))
classifier.add_module("act2", nn.SiLU())
classifier.add_module("logits", nn.Linear(128, 10))
optimizer = torch.optim.Adam(classifier.parameters(), lr=1e-3)
cross_entropy = nn.CrossEntropyLoss()
history = []
for epoch in range(25):
    classifier.train()
    for pixels, label in loader:
        optimizer.zero_grad()
        loss = cross_entropy(classifier(pixels), label)
        loss.backward()
        optimizer.step()
    classifier.eval()
    with torch.no_grad():
        out = classifier(x_val)
        history.append(
            (cross_entropy(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item())
        )
wrong = (consensus != truth).float().mean()
print(
    f"loss {loss.item():.3f}, validation loss {history[-1][0]:.3f} (best "
    f"{min(v for v, _ in history):.3f}), accuracy {history[-1][1]:.3f} "
    f"(best {max(a for _, a in history):.3f}), wrong labels {wrong:.2f}"
)
