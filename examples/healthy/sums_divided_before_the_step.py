"""Preferences among hotel offers, a choice model with lists of unequal length: sums over
micro-batches.

Sessions have three to thirty offers and are gathered by length. Each micro-batch adds the SUM of
its losses, with no division before `backward`; the gradients are divided once, before the step, by
the number of sessions in all four micro-batches. Averaging each micro-batch would weigh sessions
unequally.
"""

import torch
from data import arguments
from torch import nn

ODD = (
    "four backwards a step of undivided sums, gradients large before they are divided by the count"
)

_, seed = arguments(__doc__)
FEATURES, GATHER = 8, 4
LENGTHS = (3, 6, 12, 30)


def sessions(per_length: int, g, taste):
    """For each length: offers (n, length, features) and the one that was booked."""
    out = {}
    for length in LENGTHS:
        n = per_length if length != 6 else 2 * per_length
        offers = torch.randn(n, length, FEATURES, generator=g)
        traveller = torch.randint(0, 2, (n, 1), generator=g).float()
        offers[..., -1] = traveller
        worth = (
            offers[..., :5] @ taste[0] * (1 - traveller) + offers[..., :5] @ taste[1] * traveller
        )
        worth = worth + 0.8 * (offers[..., 5] * offers[..., 0] > 0) - 0.4 * offers[..., 6] ** 2
        gumbel = -torch.log(-torch.log(torch.rand(n, length, generator=g).clamp(1e-6, 1 - 1e-6)))
        out[length] = (offers, (1.5 * worth + gumbel).argmax(1))
    return out


def micro_batches(data, size: int = 24):
    """Of one length each, all lengths mixed in time."""
    parts = [
        (k, rows)
        for k, (offers, _) in data.items()
        for rows in torch.randperm(len(offers)).split(size)
    ]
    for at in torch.randperm(len(parts)).tolist():
        k, rows = parts[at]
        yield data[k][0][rows], data[k][1][rows]


def worth_net(width: int = 48):
    return nn.Sequential(
        nn.Linear(FEATURES, width),
        nn.SiLU(),
        nn.Linear(width, width),
        nn.SiLU(),
        nn.Linear(width, 1),
    )


@torch.no_grad()
def evaluate(model, data):
    model.eval()
    loss, right, n = 0.0, 0, 0
    for offers, booked in data.values():
        score = model(offers).squeeze(2)
        loss += nn.functional.cross_entropy(score, booked, reduction="sum").item()
        right += (score.argmax(1) == booked).sum().item()
        n += len(booked)
    return loss / n, right / n


g = torch.Generator().manual_seed(500 + seed)
taste = torch.randn(2, 5, generator=g) * 0.7
train, held = sessions(1000, g, taste), sessions(250, g, taste)
model = worth_net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.15, momentum=0.9)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

for epoch in range(10):
    model.train()
    count, total, everything = 0, 0.0, 0
    for k, (offers, booked) in enumerate(micro_batches(train), 1):
        loss = nn.functional.cross_entropy(model(offers).squeeze(2), booked, reduction="sum")
        loss.backward()
        count, total, everything = (
            count + len(booked),
            total + loss.item(),
            everything + len(booked),
        )
        if k % GATHER == 0:
            for p in model.parameters():
                p.grad /= count
            optimizer.step()
            optimizer.zero_grad()
            count = 0
    optimizer.zero_grad()  # an incomplete last group is dropped
    schedule.step()
    val, right = evaluate(model, held)
    if epoch % 2 == 1:
        print(
            f"epoch {epoch + 1}: train {total / everything:.4f}, "
            f"validation {val:.4f}, booked first {right:.4f}"
        )
print(f"validation loss {val:.4f}, booked offer ranked first {right:.4f}")
