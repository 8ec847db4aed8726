"""A rare illness from 120 patients with 80 blood values: a big network is trained far too long.

There are few patients, and the network has two hundred thousand weights. It trains 100 epochs
because that number was in the script; from about the fifth on it only learns the patients by heart.
The place is the loop (or the network, the loader). The twin has the same data, a small network with
dropout and decay, and keeps to a few epochs.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop", ", ")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
CONFIG = (
    {"width": 16, "dropout": 0.5, "decay": 0.3, "epochs": 20}
    if healthy
    else {"width": 384, "dropout": 0.0, "decay": 0.0, "epochs": 100}
)

direction = torch.zeros(80)
direction[:8] = 0.7
ill = torch.randint(0, 2, (720,))
blood = torch.randn(720, 80) + (ill.float().unsqueeze(1) - 0.5) * direction
train = TensorDataset(blood[:120], ill[:120])
val = TensorDataset(blood[120:], ill[120:])
loaders = {
    "train": DataLoader(train, batch_size=20, shuffle=True),
    "val": DataLoader(val, batch_size=300),
}

width = CONFIG["width"]
model = nn.Sequential(
    nn.Linear(80, width),
    nn.ReLU(),
    nn.Dropout(CONFIG["dropout"]),
    nn.Linear(width, width),
    nn.ReLU(),
    nn.Dropout(CONFIG["dropout"]),
    nn.Linear(width, 2),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=CONFIG["decay"])
criterion = nn.CrossEntropyLoss()

for epoch in range(1, CONFIG["epochs"] + 1):
    results = {}
    for phase in ("train", "val"):
        model.train(phase == "train")
        loss_sum = right = 0.0
        for x, y in loaders[phase]:
            with torch.set_grad_enabled(phase == "train"):
                out = model(x)
                loss = criterion(out, y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(y)
            right += (out.argmax(1) == y).sum().item()
        n = len(loaders[phase].dataset)
        results[phase] = f"{phase} loss {loss_sum / n:.3f} acc {right / n:.3f}"
    if epoch % 10 == 0:
        print(f"epoch {epoch:3d} ", "  ".join(results.values()))
