"""A deep sigmoid MLP with batch norm on the digits; a test before the training calls eval().

The untrained network is tested first, test() calls model.eval(), and nothing ever calls train()
again. Batch norm passes its inputs on as they are (mean 0, variance 1 for ever), so the sigmoid
layers have no help and hardly learn. The place is the loop. The twin calls train() at the start of
each epoch.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)


def block(n_in, n_out):
    return nn.Sequential(nn.Linear(n_in, n_out), nn.BatchNorm1d(n_out), nn.Sigmoid())


model = nn.Sequential(block(64, 64), block(64, 64), block(64, 64), block(64, 64), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def test():
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    return criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


print("before training: val loss {:.3f}, accuracy {:.3f}".format(*test()))
for epoch in range(15):
    if healthy:
        model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    val, accuracy = test()
    print(
        f"epoch {epoch + 1}: train {total / len(loader):.3f}",
        f"val {val:.3f}, accuracy {accuracy:.3f}",
    )
