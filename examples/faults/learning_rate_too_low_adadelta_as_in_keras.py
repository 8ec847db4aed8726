"""What a phone's owner does, by its accelerometer: a net ported from Keras with its Adadelta.

The rate of Adadelta is 1.0 by default in PyTorch, as in the paper, and 0.001 in Keras, and the port
wrote the latter out. Nothing moves. The place is the optimizer. The twin uses 1.0.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_low"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

ACTIVITIES = ("lying", "standing", "walking", "running", "stairs", "cycling")
#                       rhythm (Hz), strength of x, y, z, tilt
HABITS = torch.tensor(
    [
        [0.3, 0.03, 0.03, 0.03, 1.4],
        [0.4, 0.06, 0.06, 0.05, 0.0],
        [1.8, 0.35, 0.25, 0.55, 0.1],
        [2.7, 0.80, 0.45, 1.30, 0.2],
        [1.5, 0.45, 0.30, 0.50, 0.3],
        [1.2, 0.25, 0.50, 0.20, 0.7],
    ]
)


def recordings(n, hz=20, seconds=3):
    label = torch.randint(0, len(ACTIVITIES), (n,))
    habit = HABITS[label]
    t = torch.arange(hz * seconds) / hz
    rhythm = habit[:, 0] * (1 + 0.12 * torch.randn(n))
    phase = 6.283 * torch.rand(n, 3, 1)
    swing = torch.sin(6.283 * rhythm[:, None, None] * t + phase)
    swing = swing + 0.4 * torch.sin(12.566 * rhythm[:, None, None] * t + 2 * phase)
    strength = habit[:, 1:4] * (1 + 0.25 * torch.randn(n, 3))
    tilt = habit[:, 4] + 0.25 * torch.randn(n)
    gravity = torch.stack([tilt.sin(), torch.zeros(n), tilt.cos()], 1)
    x = gravity.unsqueeze(-1) + strength.unsqueeze(-1) * swing
    return x + 0.08 * torch.randn_like(x), label


class Sequential1D(nn.Module):
    """Conv1D(32, 5) - Conv1D(32, 5) - MaxPooling1D - Dropout(0.25) - Dense(64) - Dense(6)"""

    def __init__(self):
        super().__init__()
        self.conv_1 = nn.Conv1d(3, 32, 5)
        self.conv_2 = nn.Conv1d(32, 32, 5)
        self.pool = nn.MaxPool1d(4)
        self.dropout = nn.Dropout(0.25)
        self.dense_1 = nn.Linear(32 * 13, 64)
        self.dense_2 = nn.Linear(64, len(ACTIVITIES))

    def forward(self, x):
        x = torch.relu(self.conv_1(x))
        x = self.dropout(self.pool(torch.relu(self.conv_2(x))))
        return self.dense_2(torch.relu(self.dense_1(x.flatten(1))))


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
    loss = nn.functional.cross_entropy(logits, y)
    return loss.item(), (logits.argmax(1) == y).float().mean().item()


healthy, seed = arguments(__doc__)
x_train, y_train = recordings(1600)
x_test, y_test = recordings(400)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
model = Sequential1D()
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0 if healthy else 0.001, rho=0.95)
for epoch in range(5):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    test_loss, accuracy = evaluate(model, x_test, y_test)
    print(f"epoch {epoch}: loss {loss.item():.3f}, test {test_loss:.3f}, accuracy {accuracy:.3f}")
