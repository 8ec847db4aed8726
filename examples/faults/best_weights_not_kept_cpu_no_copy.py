"""A network on a small cohort predicts readmission with early stopping; the "best" weights are
kept with .detach().cpu(), which copies nothing on a CPU.

On a GPU the line made a copy. On a CPU the kept tensors share their memory with the parameters
and go on changing, so the weights restored at the end are the last, overfitted ones. The place is
the loop (best_state).
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "best_weights_not_kept"
ACCEPT = ("overfit",)
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


def cohort(n, rng, w):
    numeric = rng.normal(size=(n, 40))
    ward = rng.integers(0, 12, n)
    code = rng.integers(0, 80, n)
    risk = (
        numeric[:, :8] @ w[:8] * 0.5
        + 0.8 * numeric[:, 0] * numeric[:, 1]
        + w[10:22][ward]
        + 0.3 * w[30:110][code]
    )
    y = rng.random(n) < 1 / (1 + np.exp(-0.8 * risk))
    return [
        torch.tensor(numeric, dtype=torch.float32),
        torch.tensor(ward),
        torch.tensor(code),
        torch.tensor(y, dtype=torch.float32),
    ]


class TabNet(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.ward, self.code = nn.Embedding(12, 6), nn.Embedding(80, 8)
        self.net = nn.Sequential(
            nn.Linear(54, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, 1),
        )

    def forward(self, numeric, ward, code):
        return self.net(torch.cat([numeric, self.ward(ward), self.code(code)], 1)).squeeze(-1)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.best_state, self.epoch = (
            patience,
            float("inf"),
            0,
            None,
            0,
        )

    def __call__(self, loss, model, epoch):
        if loss < self.best - 1e-4:
            self.best, self.bad, self.epoch = loss, 0, epoch
            self.best_state = {
                k: (v.detach().cpu().clone() if healthy else v.detach().cpu())
                for k, v in model.state_dict().items()
            }
        else:
            self.bad += 1
        return self.bad >= self.patience


def evaluate(model, part):
    model.eval()
    with torch.no_grad():
        logits = model(*part[:3])
    return nn.functional.binary_cross_entropy_with_logits(logits, part[3]).item(), roc_auc_score(
        part[3], logits
    )


rng = np.random.default_rng(seed)
w = rng.normal(size=120)
train, val, test = cohort(900, rng, w), cohort(500, rng, w), cohort(1500, rng, w)
model = TabNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
stopper = EarlyStopping(patience=25)
for epoch in range(1, 71):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(train[3])).split(48):
        loss = nn.functional.binary_cross_entropy_with_logits(
            model(*(p[rows] for p in train[:3])), train[3][rows]
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    val_loss, val_auc = evaluate(model, val)
    if epoch % 4 == 0:
        print(
            f"epoch {epoch} train {total / len(train[3]):.4f} val {val_loss:.4f} auc {val_auc:.3f}"
        )
    if stopper(val_loss, model, epoch):
        print(f"stopped at epoch {epoch}; best was {stopper.best:.4f} at epoch {stopper.epoch}")
        break
model.load_state_dict(stopper.best_state)
print("restored: val {:.4f} auc {:.3f}".format(*evaluate(model, val)))
print("restored: test {:.4f} auc {:.3f}".format(*evaluate(model, test)))
