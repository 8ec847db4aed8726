"""An MLP for land-cover classes is trained with nn.NLLLoss on the raw outputs of its last linear
layer.

NLLLoss only picks minus the entry of the right class, it expects log-probabilities. On raw scores
the loss falls below zero without end while the scores of all classes grow, and accuracy stays poor.
The twin puts nn.LogSoftmax after the last layer. The place is `5`, `4` or the loss.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("5", "4", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

features, cover = make_classification(
    n_samples=6000,
    n_features=16,
    n_informative=10,
    n_redundant=0,
    n_classes=6,
    n_clusters_per_class=1,
    class_sep=1.5,
    random_state=seed,
)
x, x_val, y, y_val = train_test_split(features, cover, test_size=0.25, random_state=seed)
x, x_val = torch.tensor(x, dtype=torch.float32), torch.tensor(x_val, dtype=torch.float32)
x, x_val = standardise(x, x_val)
y, y_val = torch.tensor(y), torch.tensor(y_val)

layers = [nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 6)]
if healthy:
    layers.append(nn.LogSoftmax(dim=1))
model = nn.Sequential(*layers)

loader = DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True)
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=6, gamma=0.3)


def accuracy():
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    return criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()


for epoch in range(16):
    model.train()
    running = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        running += loss.item()
    scheduler.step()
    if epoch % 3 == 0:
        val_loss, acc = accuracy()
        print(f"epoch {epoch}: loss {running / len(loader):.4g}, val {val_loss:.4g}, acc {acc:.3f}")
val_loss, acc = accuracy()
print(f"final: val loss {val_loss:.4g}, accuracy {acc:.3f}")
