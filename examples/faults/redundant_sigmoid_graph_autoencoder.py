"""A graph auto-encoder (GCN by hand) predicts links; its decoder returns sigmoid(z z^T + b), and
the loss applies the sigmoid once more.

The decoder was taken from a paper's code whose loss was plain binary cross entropy; here it meets
binary_cross_entropy_with_logits. Logits in [0, 1] can never say "no link" with confidence. The
place is the decoder / the loss.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ("output_activation_range",)
PLACE = ("decoder*", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

# ---------------------------------------------------------------- a citation-like graph
rng = np.random.default_rng(40 + seed)
N, K, D = 420, 6, 40
topic = rng.integers(0, K, N)
fame = rng.gamma(2.0, 0.5, N)
same = topic[:, None] == topic[None, :]
near = (topic[:, None] + 1) % K == topic[None, :]
prob = np.clip((0.10 * same + 0.012 * near + 0.002) * fame[:, None] * fame[None, :], 0, 0.9)
upper = np.triu(rng.random((N, N)) < prob, 1)
edges = np.argwhere(upper)
rng.shuffle(edges)
words = rng.normal(0, 1, (K, D))
feats = torch.tensor(0.35 * words[topic] + rng.normal(0, 1, (N, D)), dtype=torch.float32)
feats = (feats - feats.mean(0)) / feats.std(0)

n_val = len(edges) // 8
val_pos, train_pos = edges[:n_val], edges[n_val:]
non_edges = np.argwhere(np.triu(~upper, 1))
val_neg = non_edges[rng.choice(len(non_edges), 5 * n_val, replace=False)]

train_neg = np.argwhere(np.triu(~upper, 1))
kept = set(map(tuple, val_neg))
train_neg = np.array([p for p in map(tuple, train_neg) if p not in kept])


def normalised(pairs):
    a = torch.eye(N)
    i, j = torch.as_tensor(pairs).T
    a[i, j] = a[j, i] = 1.0
    d = a.sum(1).rsqrt()
    return d[:, None] * a * d[None, :]


class GCNLayer(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.lin = nn.Linear(i, o)

    def forward(self, x, a):
        return a @ self.lin(x)


class InnerProductDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(()))
        self.fame = nn.Linear(16, 1)

    def forward(self, z):
        f = self.fame(z)
        s = z @ z.T + f + f.T + self.bias
        return s if healthy else torch.sigmoid(s)


class GAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.gc1, self.gc2 = GCNLayer(D, 32), GCNLayer(32, 16)
        self.drop = nn.Dropout(0.3)
        self.decoder = InnerProductDecoder()

    def forward(self, x, a):
        h = F.relu(self.gc1(self.drop(x), a))
        return self.decoder(self.gc2(self.drop(h), a))


model = GAE()
opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-4)
labels = np.r_[np.ones(n_val), np.zeros(5 * n_val)]
pairs = np.concatenate([val_pos, val_neg])
a_full = normalised(train_pos)
truth = torch.tensor(labels, dtype=torch.float32)
best, best_at, patience = 0.0, 0, 100
for epoch in range(1, 501):
    # hide 30 % of the links from the messages and ask for them, with five absent links for each
    perm = rng.permutation(len(train_pos))
    hidden = train_pos[perm[: int(0.3 * len(perm))]]
    seen = train_pos[perm[int(0.3 * len(perm)) :]]
    absent = train_neg[rng.choice(len(train_neg), 5 * len(hidden), replace=False)]
    ask = np.concatenate([hidden, absent])
    wanted = torch.cat([torch.ones(len(hidden)), torch.zeros(len(absent))])
    model.train()
    scores = model(feats, normalised(seen))[ask[:, 0], ask[:, 1]]
    loss = F.binary_cross_entropy_with_logits(scores, wanted)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 10 == 0:
        model.eval()
        with torch.no_grad():
            s = model(feats, a_full)[pairs[:, 0], pairs[:, 1]]
            v = F.binary_cross_entropy_with_logits(s, truth).item()
        auc, ap = roc_auc_score(labels, s.numpy()), average_precision_score(labels, s.numpy())
        if ap > best:
            best, best_at, best_auc, best_v = ap, epoch, auc, v
        if epoch % 50 == 0:
            print(f"epoch {epoch:3d} loss {loss.item():.4f} val {v:.4f} auc {auc:.4f} ap {ap:.4f}")
        if epoch - best_at > patience:
            print(f"no better for {patience} epochs")
            break
print(f"best epoch {best_at}: val {best_v:.4f} auc {best_auc:.4f} ap {best:.4f}")
