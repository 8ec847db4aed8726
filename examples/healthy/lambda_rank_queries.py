"""Ranks the documents of each query by LambdaRank, whose gradients are written by hand."""

import torch
from data import arguments
from torch import nn

ODD = (
    "there is no loss at all: backward() is called on the scores with hand-made lambdas that sum "
    "to zero in each query, so the head's bias never moves"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)
generator = torch.Generator().manual_seed(seed)
DOCUMENTS = 20


def queries(n: int):
    x = torch.randn(n, DOCUMENTS, 10, generator=generator)
    x[..., 8:] = torch.randn(n, 1, 2, generator=generator)
    relevance = 1.5 * x[..., 0] + x[..., 1] * x[..., 8] + torch.sin(2 * x[..., 2])
    relevance = relevance + 0.5 * torch.randn(n, DOCUMENTS, generator=generator)
    grade = sum((relevance > bound).long() for bound in (0.5, 2.0, 3.5))
    return x, grade


def discounts():
    return 1 / torch.log2(torch.arange(2, DOCUMENTS + 2).float())


def ideal(grade):
    return ((2.0**grade - 1).sort(descending=True).values * discounts()).sum(1)


def ndcg(score, grade, top: int = 10):
    gain = 2.0**grade - 1
    ranked = gain.gather(1, score.argsort(descending=True))
    best = gain.sort(descending=True).values
    cut = discounts()[:top]
    return ((ranked[:, :top] * cut).sum(1) / (best[:, :top] * cut).sum(1).clamp_min(1e-9)).mean()


def lambdas(score, grade):
    rank = score.argsort(descending=True).argsort()
    discount = discounts()[rank]
    gain = 2.0**grade - 1
    better = (grade.unsqueeze(2) > grade.unsqueeze(1)).float()
    swap = (gain.unsqueeze(2) - gain.unsqueeze(1)).abs()
    swap = swap * (discount.unsqueeze(2) - discount.unsqueeze(1)).abs()
    swap = swap / ideal(grade).clamp_min(1e-9)[:, None, None]
    push = better * swap * torch.sigmoid(score.unsqueeze(1) - score.unsqueeze(2))
    return push.sum(1) - push.sum(2)


x, grade = queries(1000)
x_val, grade_val = queries(300)
model = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(20):
    model.train()
    for rows in torch.randperm(len(x)).split(20):
        score = model(x[rows]).squeeze(2)
        optimizer.zero_grad()
        score.backward(lambdas(score.detach(), grade[rows]) / len(rows))
        optimizer.step()
    model.eval()
    with torch.no_grad():
        train, val = ndcg(model(x).squeeze(2), grade), ndcg(model(x_val).squeeze(2), grade_val)
    if epoch % 5 == 4:
        print(f"epoch {epoch + 1}: NDCG@10 train {train:.4f}, validation {val:.4f}")

print(
    f"NDCG@10 {val:.4f}; by the best column {ndcg(x_val[..., 0], grade_val):.4f}; "
    f"by chance {ndcg(torch.rand(300, DOCUMENTS), grade_val):.4f}"
)
