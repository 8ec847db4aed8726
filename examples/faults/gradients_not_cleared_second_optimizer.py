"""Review scores from words: word vectors and network have an optimizer each, and only the vectors'
clears its gradients.

The network moves by the sum of all gradients so far: it runs on long after it should turn, and the
loss swings about far above the twin's. The place is the loop (the network's layers).
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "grams*", "output*", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class ScoreCNN(nn.Module):
    def __init__(self, words, width=20):
        super().__init__()
        self.word_vectors = nn.Embedding(words, width, padding_idx=0)
        self.grams = nn.ModuleList([nn.Conv1d(width, 12, k, padding=k // 2) for k in (1, 3)])
        self.dropout = nn.Dropout(0.05)
        self.output = nn.Linear(24, 1)

    def forward(self, rows):
        e = self.word_vectors(rows).transpose(1, 2)
        h = torch.cat([torch.relu(conv(e)).mean(2) for conv in self.grams], 1)
        return self.output(self.dropout(h)).squeeze(1)


rows, _, words = reviews(seed, n=2400)
worth = torch.randn(words, generator=torch.Generator().manual_seed(seed))
worth[0] = 0
score = worth[rows].sum(1)
score = (score - score[:2000].mean()) / score[:2000].std() + 0.1 * torch.randn(len(score))
train = DataLoader(TensorDataset(rows[:2000], score[:2000]), batch_size=40, shuffle=True)
model = ScoreCNN(words)
vector_optimizer = torch.optim.SGD([model.word_vectors.weight], lr=2.0)
network_optimizer = torch.optim.Adam(
    [*model.grams.parameters(), *model.output.parameters()], lr=3e-3
)
criterion = nn.MSELoss()
for epoch in range(12):
    model.train()
    losses = []
    for batch, target in train:
        vector_optimizer.zero_grad()
        if healthy:
            network_optimizer.zero_grad()
        loss = criterion(model(batch), target)
        loss.backward()
        vector_optimizer.step()
        network_optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        val = criterion(model(rows[2000:]), score[2000:]).item()
print(
    f"loss {sum(losses) / len(losses):.3f}, validation "
    f"loss {val:.3f}, R2 {1 - val / score[2000:].var():.3f}"
)
