"""bfloat16 autocast, accumulation over 3 micro-batches of unequal size, divided by their rows."""

import torch
from data import arguments, images
from torch import nn

ODD = (
    "zero_grad every third backward, the gradient grows between steps, activations in half "
    "precision"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.SiLU(), nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1), nn.GroupNorm(4, 24), nn.SiLU(), nn.AdaptiveAvgPool2d(2),
    nn.Flatten(), nn.Linear(96, 10),
)  # fmt: skip
criterion = nn.CrossEntropyLoss(reduction="sum")
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, total_iters=252)
for epoch in range(12):
    for rows in torch.randperm(len(x)).split(64)[:21]:
        step_loss = 0.0
        for micro in rows.split([30, 24, 10]):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                out = model(x[micro])
            loss = criterion(out.float(), y[micro]) / len(rows)
            loss.backward()
            step_loss += loss.item()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
model.eval()
with torch.no_grad():
    accuracy = (model(x_val).argmax(1) == y_val).float().mean()
print(f"loss {step_loss:.3f}, accuracy {accuracy:.3f}")
