"""An MLP on the tumours: sigmoid in the model and again in BCEWithLogitsLoss.

The loss sees numbers from 0 to 1 as logits, so it says 0.5 at least for every negative: the loss
stays above 0.4 and the probabilities it means are all between 0.5 and 0.73. The place is the
sigmoid ("5"). The twin hands the logits to the loss.
"""

import torch
from data import arguments, cancer
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("5", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

x, y, x_val, y_val = cancer(seed)
y, y_val = y.float().unsqueeze(1), y_val.float().unsqueeze(1)

layers = [nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 1)]
if not healthy:
    layers.append(nn.Sigmoid())
model = nn.Sequential(*layers)

criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)

n, batch_size = len(x), 32
for epoch in range(20):
    model.train()
    perm = torch.randperm(n)
    for start in range(0, n, batch_size):
        rows = perm[start : start + batch_size]
        optimizer.zero_grad()
        out = model(x[rows])
        loss = criterion(out, y[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = criterion(out, y_val)
        predicted = torch.round(torch.sigmoid(out))
        accuracy = (predicted == y_val).float().mean()
    print(f"epoch {epoch} loss {loss.item():.4f} val {val_loss:.4f} accuracy {accuracy:.3f}")
