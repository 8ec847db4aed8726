"""Which crop suits a field, from soil and climate in the units of the survey.

The table is read and handed to the network as it is: pH around 6, potassium in the hundreds, the
height above sea in the thousands. The large columns drown the small ones, and SGD has no step
that suits both. Those who come from tree models never had to think of it.
The place is the input.
The twin standardises the columns by the training part.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
CROPS = ("barley", "maize", "potato", "vines")


def soil_survey(n, seed):
    g = torch.Generator().manual_seed(40 + seed)
    crop = torch.randint(0, 4, (n,), generator=g)
    centre = torch.tensor(
        [
            # pH   clay  potassium rain  height
            [6.4, 0.22, 260.0, 620.0, 380.0],
            [6.1, 0.30, 320.0, 780.0, 260.0],
            [5.5, 0.16, 290.0, 820.0, 520.0],
            [7.2, 0.26, 230.0, 560.0, 340.0],
        ]
    )
    spread = torch.tensor([0.4, 0.05, 90.0, 110.0, 200.0])
    return centre[crop] + spread * torch.randn(n, 5, generator=g), crop


x, crop = soil_survey(2000, seed)
if healthy:
    (x,) = standardise(x)
train_set, val_set = random_split(TensorDataset(x, crop), [1600, 400])
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_x, val_crop = next(iter(DataLoader(val_set, batch_size=400)))

model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

for epoch in range(1, 13):
    model.train()
    for fields, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(fields), target)
        loss.backward()
        optimizer.step()
    if epoch % 3 == 0:
        model.eval()
        with torch.no_grad():
            out = model(val_x)
        print(
            f"Epoch {epoch}: val loss {criterion(out, val_crop).item():.4f}, "
            f"val acc {(out.argmax(1) == val_crop).float().mean().item():.3f}"
        )
