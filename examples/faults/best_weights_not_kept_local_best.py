"""A gesture GRU saves every epoch as the best, as its helper only updates a local best loss.

The person moved the saving of the checkpoint into a function that gets the best loss so far and
sets it anew inside; the loop never hears of it and goes on with infinity. Every epoch counts as the
best and the last one is what is loaded for the test. The place is the loop.
"""

import io

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "best_weights_not_kept"
ACCEPT = ()
PLACE = ("loop", "model")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

LENGTH = 24
GESTURES = 5


def gestures(n):
    """Accelerations in three directions of a hand that draws one of five figures."""
    rng = np.random.default_rng(620 + seed)
    labels = rng.integers(0, GESTURES, n)
    t = np.linspace(0, 1, LENGTH)
    x = np.zeros((n, LENGTH, 3))
    for i, label in enumerate(labels):
        speed, phase = rng.uniform(0.8, 1.2), rng.uniform(-0.6, 0.6)
        turn = 2 * np.pi * (speed * t) + phase
        x[i, :, 0] = np.sin((1 + label % 2) * turn)
        x[i, :, 1] = np.cos((1 + label // 2) * turn)
        x[i, :, 2] = np.sin(turn) * (1 if label in (1, 4) else -1)
        x[i] *= rng.uniform(0.6, 1.4)
    return x + rng.normal(0, 1.1, x.shape), labels


class GestureGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(3, 48, batch_first=True)
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(48, GESTURES)

    def forward(self, x):
        out, _ = self.gru(x)
        return self.fc(self.dropout(out.mean(1)))


def save_if_better(model, loss, best_loss, checkpoint):
    if loss < best_loss:
        best_loss = loss
        checkpoint.seek(0)
        checkpoint.truncate()
        torch.save(model.state_dict(), checkpoint)
        print("   validation loss decreased, saving model")
    return best_loss


def evaluate(model, x, y):
    model.eval()
    with torch.no_grad():
        output = model(x)
        loss = nn.functional.cross_entropy(output, y).item()
        return loss, (output.argmax(1) == y).float().mean().item()


x, y = gestures(1600)
x = torch.tensor((x - x[:500].mean((0, 1))) / x[:500].std((0, 1)), dtype=torch.float32)
y = torch.tensor(y)
loader = DataLoader(TensorDataset(x[:500], y[:500]), batch_size=25, shuffle=True)
x_val, y_val, x_test, y_test = x[500:1000], y[500:1000], x[1000:], y[1000:]
model = GestureGRU()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
checkpoint = io.BytesIO()
best_loss = float("inf")
lowest = float("inf")

for epoch in range(20):
    model.train()
    running = 0.0
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(batch), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    val_loss, val_acc = evaluate(model, x_val, y_val)
    lowest = min(lowest, val_loss)
    print(
        f"epoch {epoch + 1:2d}  loss {running / len(loader):.3f}"
        f"  val loss {val_loss:.3f}  val acc {val_acc:.3f}"
    )
    if healthy:
        best_loss = save_if_better(model, val_loss, best_loss, checkpoint)
    else:
        save_if_better(model, val_loss, best_loss, checkpoint)

checkpoint.seek(0)
model.load_state_dict(torch.load(checkpoint))
val_loss, _ = evaluate(model, x_val, y_val)
test_loss, test_acc = evaluate(model, x_test, y_test)
print(
    f"lowest val loss {lowest:.3f}, of the loaded model {val_loss:.3f};"
    f" test loss {test_loss:.3f}, accuracy {test_acc:.3f}"
)
