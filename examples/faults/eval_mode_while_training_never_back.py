"""A noisy regression by an MLP with dropout, which stays in eval mode after the first validation.

train() is called once, before the loop, and eval() at each validation. From the second epoch on
the dropout is off, and the network, which needs it with so few noisy rows, learns them by heart.
The place is the loop. The twin calls train() in each epoch.
"""

import torch
from data import arguments, diabetes
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ("overfit",)
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)

net = nn.Sequential(
    nn.Linear(10, 256),
    nn.ReLU(),
    nn.Dropout(0.6),
    nn.Linear(256, 256),
    nn.ReLU(),
    nn.Dropout(0.6),
    nn.Linear(256, 1),
    nn.Flatten(0),
)
loss_fn = nn.MSELoss()
optimizer = torch.optim.AdamW(net.parameters(), lr=5e-4, weight_decay=0.05)
net.train()
for epoch in range(1, 33):
    if healthy:
        net.train()
    for rows in torch.randperm(len(x)).split(16):
        optimizer.zero_grad()
        loss = loss_fn(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        train_loss, val_loss = loss_fn(net(x), y).item(), loss_fn(net(x_val), y_val).item()
    print(f"epoch {epoch}: train {train_loss:.3f}  val {val_loss:.3f}")
