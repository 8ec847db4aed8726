"""A wide MLP on the tumours learned from forty rows, with no regularisation at all.

Only a small labelled part was loaded, ten per cent of the rows, with the labels as a quick
annotator gave them; the network learns it by heart at once. The validation loss rises for the rest
of the training. The place is the data. The twin takes all rows, dropout and weight decay.
"""

import torch
from data import arguments, cancer
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("loader", "input*", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
wrong = torch.rand(len(y)) < 0.05
y = torch.where(wrong, 1 - y, y)
if not healthy:
    x, y = x[:40], y[:40]

drop, decay = (0.5, 0.1) if healthy else (0.0, 0.0)
model = nn.Sequential(
    nn.Linear(30, 256),
    nn.ReLU(),
    nn.Dropout(drop),
    nn.Linear(256, 256),
    nn.ReLU(),
    nn.Dropout(drop),
    nn.Linear(256, 2),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=decay)
step = 0
while step < 200:
    for rows in torch.randperm(len(x)).split(20):
        model.train()
        loss = criterion(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 20 == 0:
            model.eval()
            with torch.no_grad():
                out, seen = model(x_val), model(x)
                val, train = criterion(out, y_val).item(), criterion(seen, y).item()
                accuracy = (out.argmax(1) == y_val).float().mean().item()
            print(f"step {step}: train {train:.4f}  val {val:.3f}  val accuracy {accuracy:.3f}")
