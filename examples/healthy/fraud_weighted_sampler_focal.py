"""Rare frauds (2 %): a weighted sampler repeats them, focal loss, judged by ROC AUC."""

import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

ODD = (
    "the same rows come many times an epoch; the training and validation shares differ; a "
    "tiny loss value"
)

_, seed = arguments(__doc__)
n = 9000
fraud = (torch.rand(n) < 0.02).long()
x = torch.randn(n, 12)
x[fraud == 1, :4] += torch.tensor([1.2, -1.0, 1.3, 0.9])
train, val = slice(0, 7000), slice(7000, None)
weight = torch.where(fraud[train] == 1, 0.3 / 0.02, 0.7 / 0.98)
sampler = WeightedRandomSampler(weight, num_samples=4000)
loader = DataLoader(TensorDataset(x[train], fraud[train]), batch_size=100, sampler=sampler)
model = nn.Sequential(
    nn.Linear(12, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 2)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
for epoch in range(8):
    model.train()
    for row, label in loader:
        log_p = model(row).log_softmax(1).gather(1, label[:, None]).squeeze(1)
        loss = -((1 - log_p.exp()) ** 2 * log_p).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        score = model(x[val])[:, 1] - model(x[val])[:, 0]
    auc = roc_auc_score(fraud[val], score)
print(f"loss {loss.item():.4f}, validation AUC {auc:.3f}")
