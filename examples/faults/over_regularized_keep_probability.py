"""Sepsis risk from a table of vital signs, ported from TensorFlow 1: the dropout keeps what it
should drop.

The old graph had `tf.nn.dropout(h, keep_prob=0.9)`. The port hands the same 0.9 to `nn.Dropout`,
which takes it as the share to drop: three layers in a row lose nine units of ten, and little gets
through to learn from. The place is the dropout layers. The twin has `1 - keep_prob`.
"""

import torch
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("drop1", "drop2", "drop3")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
FLAGS = {"hidden": 48, "keep_prob": 0.9, "learning_rate": 1.5e-3, "batch": 64, "max_steps": 700}


def ward(count, g):
    """Heart rate, pressure, temperature and so on; the risk rises on both sides of normal."""
    sick = torch.randn(count, 3, generator=g)
    mix = torch.randn(3, 14, generator=torch.Generator().manual_seed(99))
    vitals = sick @ mix * 0.5 + 0.6 * torch.randn(count, 14, generator=g)
    risk = (
        1.2 * (vitals[:, 0].abs() - 0.8)
        + 1.2 * vitals[:, 1] * vitals[:, 2]
        + (vitals[:, 3] > 0.5).float()
    )
    risk = risk + 0.8 * (vitals[:, 4].pow(2) - 1) - 0.9 * vitals[:, 5]
    septic = torch.rand(count, generator=g) < torch.sigmoid(1.6 * risk)
    return vitals * torch.linspace(1, 20, 14) + 37, septic.float()


class Risk(nn.Module):
    def __init__(self, hidden, keep_prob):
        super().__init__()
        rate = 1 - keep_prob if healthy else keep_prob
        self.fc1, self.drop1 = nn.Linear(14, hidden), nn.Dropout(rate)
        self.fc2, self.drop2 = nn.Linear(hidden, hidden), nn.Dropout(rate)
        self.fc3, self.drop3 = nn.Linear(hidden, hidden), nn.Dropout(rate)
        self.logit = nn.Linear(hidden, 1)

    def forward(self, x):
        x = self.drop1(torch.relu(self.fc1(x)))
        x = self.drop2(torch.relu(self.fc2(x)))
        x = self.drop3(torch.relu(self.fc3(x)))
        return self.logit(x)[:, 0]


g = torch.Generator().manual_seed(seed)
(x, y), (x_val, y_val) = ward(5000, g), ward(1500, g)
x, x_val = standardise(x, x_val)
model = Risk(FLAGS["hidden"], FLAGS["keep_prob"])
train_op = torch.optim.Adam(model.parameters(), lr=FLAGS["learning_rate"])
cross_entropy = nn.BCEWithLogitsLoss()
step, running = 0, None
while step < FLAGS["max_steps"]:
    rows = torch.randint(0, len(x), (FLAGS["batch"],), generator=g)
    model.train()
    loss = cross_entropy(model(x[rows]), y[rows])
    train_op.zero_grad()
    loss.backward()
    train_op.step()
    step += 1
    running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            logits = model(x_val)
            val = cross_entropy(logits, y_val)
        print(
            f"step {step} loss {running:.4f} val loss {val:.4f} "
            f"validation AUC {roc_auc_score(y_val, logits):.3f}"
        )
