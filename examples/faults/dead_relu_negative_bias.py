"""A network for made-up customers whose hidden layers begin with biases of -6, "for sparsity".

Hardly a unit is ever above zero for any of them: no gradient reaches the hidden layers, and the
last bias learns how frequent the two classes are. The place is the model.
"""

import torch
import torch.nn.functional as F
from data import arguments, standardise
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("features*", "")
SILENT = False
EXACT = False
EARLY = True


def make_model(bias):
    model = nn.Sequential()
    model.add_module(
        "features",
        nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU()),
    )
    model.add_module("output", nn.Linear(16, 1))
    for layer in model.features:
        if isinstance(layer, nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.constant_(layer.bias, bias)
    return model


healthy, seed = arguments(__doc__)
columns, bought = make_classification(
    5000,
    n_features=30,
    n_informative=10,
    n_clusters_per_class=1,
    flip_y=0.02,
    random_state=seed,
)
columns, y = torch.tensor(columns).float(), torch.tensor(bought)
x, x_val = standardise(columns[:4000], columns[4000:])
y, y_val = y[:4000], y[4000:]
loader = DataLoader(TensorDataset(x, y.float()), batch_size=64, shuffle=True)
model = make_model(bias=0.0 if healthy else -6.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
for epoch in range(4):
    for customer, bought in loader:
        optimizer.zero_grad()
        logits = model(customer).squeeze(1)
        loss = F.binary_cross_entropy_with_logits(logits, bought)
        loss.backward()
        optimizer.step()
with torch.no_grad():
    logits = model(x_val).squeeze(1)
    val_loss = F.binary_cross_entropy_with_logits(logits, y_val.float())
    accuracy = ((logits > 0) == (y_val == 1)).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
