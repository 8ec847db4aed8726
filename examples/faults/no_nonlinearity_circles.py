"""A three-layer network for two rings of points, without activations.

Three linear layers in a row are one linear layer, and no line parts the inner ring from the outer
one: accuracy stays near one half. The place is the model ("layer1", "layer2"). The twin has ReLU in
between.
"""

import torch
from data import arguments
from sklearn.datasets import make_circles
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ()
PLACE = ("layer1", "layer2", "layer3")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

points, ring = make_circles(1000, noise=0.08, factor=0.5, random_state=seed)
points, ring = torch.tensor(points, dtype=torch.float32), torch.tensor(ring, dtype=torch.float32)
x_train, x_test, y_train, y_test = points[:800], points[800:], ring[:800], ring[800:]


class CircleModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Linear(2, 16)
        self.layer2 = nn.Linear(16, 16)
        self.layer3 = nn.Linear(16, 1)

    def forward(self, x):
        if healthy:
            return self.layer3(torch.relu(self.layer2(torch.relu(self.layer1(x)))))
        return self.layer3(self.layer2(self.layer1(x)))


model = CircleModel()
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)

for epoch in range(801):
    model.train()
    logits = model(x_train).squeeze()
    loss = loss_fn(logits, y_train)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if epoch % 100 == 0:
        model.eval()
        with torch.inference_mode():
            test_logits = model(x_test).squeeze()
            test_loss = loss_fn(test_logits, y_test)
            acc = ((test_logits > 0).float() == y_test).float().mean()
        print(
            f"Epoch: {epoch} | Loss: {loss:.4f} | Test loss: {test_loss:.4f} | Test acc: "
            f"{100 * acc:.1f}%"
        )
