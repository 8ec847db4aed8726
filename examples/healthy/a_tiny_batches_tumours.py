"""Tells benign from malignant tumours with batches of two patients, as if the images were too large
for more; the losses of eight batches are averaged before a step.
"""

import torch
from data import arguments, cancer
from torch import nn

ODD = "batches of two with a very noisy loss; layer norm instead of batch norm, averaged gradients"

_, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
PATIENTS, GATHER = 2, 8

net = nn.Sequential(
    nn.Linear(30, 32), nn.LayerNorm(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2)
)
optimizer = torch.optim.AdamW(net.parameters(), lr=1.5e-3, weight_decay=0.02)
criterion = nn.CrossEntropyLoss(label_smoothing=0.02)

for epoch in range(1, 17):
    net.train()
    optimizer.zero_grad()
    losses = []
    groups = torch.randperm(len(x))[: len(x) // 16 * 16].split(PATIENTS)
    for number, rows in enumerate(groups, 1):
        loss = criterion(net(x[rows]), y[rows])
        (loss / GATHER).backward()
        losses.append(loss.item())
        if number % GATHER == 0:
            optimizer.step()
            optimizer.zero_grad()
    if epoch % 4 == 0:
        net.eval()
        with torch.no_grad():
            said = net(x_val)
        accuracy = (said.argmax(1) == y_val).float().mean()
        print(
            f"epoch {epoch}: loss {sum(losses) / len(losses):.4f} (last {losses[-1]:.3f}) "
            f"val loss {criterion(said, y_val):.4f} accuracy {accuracy:.3f}"
        )
