"""Digits of which two fifths were labelled by hand; the rest has the guesses of a small model.

The guesses come from nearest centroids in a coarse view of the image, right in half of the cases,
and were to be used where the model is sure; the threshold in the config is 0. The network first
learns, then memorises. The place is the labels. The twin keeps only hand-made labels (threshold
1).
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("labels", "data")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

CONFIG = {"min_confidence": 1.0 if healthy else 0.0, "epochs": 20, "lr": 1e-3}
x, y, x_val, y_val = digits(seed)


def pseudo_labels(images, hand, labels):
    """Nearest centroids in 2 x 2 averages; the confidence is the softmax of the distances."""
    coarse = nn.functional.avg_pool2d(images.view(-1, 1, 8, 8), 4).flatten(1)
    few = hand.nonzero()[:40, 0]
    centroids = torch.stack([coarse[few][labels[few] == c].mean(0) for c in range(10)]).nan_to_num(
        9.0
    )
    probability = torch.softmax(-torch.cdist(coarse, centroids), 1)
    confidence, guess = probability.max(1)
    return torch.where(hand, labels, guess), torch.where(
        hand, torch.ones_like(confidence), confidence
    )


hand = torch.rand(len(x), generator=torch.Generator().manual_seed(seed)) < 0.4
labels, confidence = pseudo_labels(x, hand, y)
kept = confidence >= CONFIG["min_confidence"]
print(
    f"{kept.sum()} of {len(x)} rows kept, "
    f"{(labels == y)[kept].float().mean():.2f} of their labels right"
)
train_set = TensorDataset(x[kept], labels[kept])
loader = DataLoader(train_set, batch_size=32, shuffle=True)

model = nn.Sequential(
    nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.2), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10)
)
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"], weight_decay=1e-4)
for epoch in range(CONFIG["epochs"]):
    model.train()
    total = 0.0
    for image, label in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(image), label)
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    val = nn.functional.cross_entropy(logits, y_val).item()
    print(
        f"epoch {epoch} train {total:.4f} val {val:.4f} "
        f"accuracy {(logits.argmax(1) == y_val).float().mean():.3f}"
    )
