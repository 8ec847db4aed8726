"""Two rings of points and an MLP whose weights all start at 0.3.

`nn.init.constant_` was used "to have it reproducible". All units of a layer compute the same and
get the same gradient for ever, the net has in effect one unit per layer and cannot draw a ring.
The place is the weights of each layer. The twin uses xavier_uniform_.
"""

import torch
from data import arguments
from sklearn.datasets import make_circles
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("fc1.weight", "fc2.weight", "fc1", "fc2")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
points, rings = make_circles(800, noise=0.08, factor=0.5, random_state=seed)
X = torch.tensor(points, dtype=torch.float32)
Y = torch.tensor(rings, dtype=torch.float32)
X_train, Y_train, X_test, Y_test = X[:600], Y[:600], X[600:], Y[600:]


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 16)
        self.fc2 = nn.Linear(16, 16)
        self.fc3 = nn.Linear(16, 1)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                if healthy:
                    nn.init.xavier_uniform_(m.weight)
                else:
                    nn.init.constant_(m.weight, 0.3)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = torch.tanh(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return self.fc3(x).squeeze(1)


model = MLP()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

# all the points at once
for epoch in range(400):
    model.train()
    optimizer.zero_grad()
    loss = criterion(model(X_train), Y_train)
    loss.backward()
    optimizer.step()
    if epoch % 80 == 79:
        model.eval()
        with torch.no_grad():
            logits = model(X_test)
            test_loss = criterion(logits, Y_test).item()
            acc = ((logits > 0).float() == Y_test).float().mean().item()
        print(f"Epoch {epoch + 1} | Loss {loss:.5f} | Test loss {test_loss:.5f}, acc {acc:.3f}")
