"""Answers of a survey: five yes-no questions and a group of age make 128 different rows, which
6,000 people share.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

ODD = (
    "nearly every row is there many times, in training and validation, with either label; the loss "
    "stops early and high, at the entropy of the answer: there is no more to know"
)

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
n = 6000
answers = (torch.rand(n, 5, generator=g) < torch.tensor([0.5, 0.3, 0.6, 0.4, 0.5])).float()
age = torch.randint(0, 4, (n,), generator=g)
log_odds = 2.2 * (answers[:, 0] * 2 - 1) * (answers[:, 1] * 2 - 1) + 0.8 * (age - 1.5)
log_odds = log_odds + 1.2 * (answers[:, 2] - 0.5) - 1.5 * answers[:, 3] * answers[:, 4] + 0.3
chance = torch.sigmoid(log_odds)
votes = torch.bernoulli(chance, generator=g)
floor = nn.functional.binary_cross_entropy(chance, votes).item()


class Voter(nn.Module):
    def __init__(self):
        super().__init__()
        self.age = nn.Embedding(4, 4)
        self.net = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, answers, age):
        return self.net(torch.cat([answers * 2 - 1, self.age(age)], 1)).squeeze(1)


train, val = random_split(TensorDataset(answers, age, votes, chance), [4500, 1500], generator=g)
model = Voter()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(6):
    model.train()
    total = 0.0
    for a, years, vote, _ in DataLoader(train, batch_size=64, shuffle=True):
        loss = criterion(model(a, years), vote)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(a) / len(train)
    model.eval()
    with torch.no_grad():
        a, years, vote, truth = next(iter(DataLoader(val, batch_size=1500)))
        logits = model(a, years)
        held_out = criterion(logits, vote).item()
        off = (logits.sigmoid() - truth).abs().mean().item()
    print(
        f"epoch {epoch}: loss {total:.4f}, held-out {held_out:.4f}, floor {floor:.4f}, "
        f"chance off by {off:.3f}"
    )
