"""Finds the digits 5 to 9 from some of them and a heap of unlabelled digits (nnPU risk)."""

import torch
from data import arguments, images
from torch import nn

ODD = (
    "four rows of five in a batch count as negative, and some steps climb a part of the "
    "risk: the non-negative estimator does so when the negative risk falls below zero"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

x, y, x_val, y_val = images(seed)
positive, positive_val = y >= 5, y_val >= 5
prior = positive.float().mean().item()
chosen = positive.nonzero().squeeze(1)
chosen = chosen[torch.randperm(len(chosen))[:150]]
labelled, unlabelled = x[chosen], x

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.GroupNorm(4, 16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.GroupNorm(4, 32),
    nn.ReLU(),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(512, 1),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=5e-3)


def sigmoid_loss(score, sign):
    return torch.sigmoid(-sign * score).mean()


ascents = 0
for epoch in range(40):
    model.train()
    for rows in torch.randperm(len(unlabelled)).split(135):
        some = torch.randint(len(labelled), (32,))
        both = model(torch.cat([labelled[some], unlabelled[rows]])).squeeze(1)
        score_p, score_u = both[:32], both[32:]
        positive_risk = prior * sigmoid_loss(score_p, 1)
        negative_risk = sigmoid_loss(score_u, -1) - prior * sigmoid_loss(score_p, -1)
        optimizer.zero_grad()
        if negative_risk.item() < 0:
            ascents += 1
            (-negative_risk).backward()
        else:
            (positive_risk + negative_risk).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = ((model(x_val).squeeze(1) > 0) == positive_val).float().mean()
    if epoch % 10 == 9:
        print(
            f"epoch {epoch + 1}: risk {positive_risk + negative_risk.clamp_min(0):.3f}, "
            f"validation accuracy {accuracy:.3f}"
        )

known = torch.cat([labelled.flatten(1).mean(0, keepdim=True), x.flatten(1).mean(0, keepdim=True)])
nearest = torch.cdist(x_val.flatten(1), known).argmin(1) == 0
print(f"steps against the negative risk: {ascents}")
print(
    f"accuracy {accuracy:.3f}; nearest mean {(nearest == positive_val).float().mean():.3f}; "
    f"always the same {max(prior, 1 - prior):.3f}"
)
