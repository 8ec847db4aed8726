"""House prices by an MLP that subtracts a sparsity threshold of 8 before its second ReLU.

No pre-activation of the layer comes near 8, so all of its 32 units are silent on every house and
the prediction is a constant. The place is the model.
"""

import torch
import torch.nn.functional as F
from data import arguments, houses
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ()
PLACE = ("fc2*", "relu2*", "")
SILENT = False
EXACT = False
EARLY = True


class SparseMLP(nn.Module):
    def __init__(self, threshold):
        super().__init__()
        self.threshold = threshold
        self.fc1 = nn.Linear(6, 64)
        self.relu1 = nn.ReLU()
        self.fc2 = nn.Linear(64, 32)
        self.relu2 = nn.ReLU()
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        h = self.relu1(self.fc1(x))
        h = self.relu2(self.fc2(h) - self.threshold)
        return self.out(h).squeeze(-1)


healthy, seed = arguments(__doc__)
X, Y, X_val, Y_val = houses(seed, n=1600)
loader = DataLoader(TensorDataset(X, Y), batch_size=100, shuffle=True)
model = SparseMLP(threshold=0.0 if healthy else 8.0)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=15, gamma=0.3)
for epoch in range(25):
    model.train()
    for xb, yb in loader:
        loss = F.smooth_l1_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        val = F.smooth_l1_loss(model(X_val), Y_val)
print(f"huber: train {loss.item():.3f} val {val.item():.3f}")
