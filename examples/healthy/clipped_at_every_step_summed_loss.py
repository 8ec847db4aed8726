"""Trains an LSTM language model with the loss summed over the batch and gradients clipped from
about a hundred to 0.25.

The norm of the summed gradient is always above the limit; the rate of plain SGD is chosen for steps
of that length and falls along a cosine. The direction is that of the gradient, and the model learns
well.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

ODD = "the gradient is clipped at every single step, to a hundredth and less of its norm"

_, seed = arguments(__doc__)
LENGTH, BATCH, CLIP = 60, 16, 0.25

ids, alphabet = text(seed, 1700)
rows = ids[: len(ids) // (LENGTH + 1) * (LENGTH + 1)].view(-1, LENGTH + 1)
cut = int(0.9 * len(rows))
train_rows, val_rows = rows[:cut], rows[cut:]


class LanguageModel(nn.Module):
    def __init__(self, vocab, dim=32, hidden=64):
        super().__init__()
        self.encoder = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, hidden, batch_first=True)
        self.decoder = nn.Linear(hidden, vocab)

    def forward(self, x):
        h, _ = self.lstm(self.encoder(x))
        return self.decoder(h)


def summed_loss(model, batch):
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten(), reduction="sum")


model = LanguageModel(len(alphabet))
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10, eta_min=0.05)

for epoch in range(10):
    model.train()
    total, tokens, norms = 0.0, 0, []
    for idx in torch.randperm(len(train_rows)).split(BATCH):
        batch = train_rows[idx]
        optimizer.zero_grad()
        loss = summed_loss(model, batch)
        loss.backward()
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        optimizer.step()
        total += loss.item()
        tokens += batch[:, 1:].numel()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        val = summed_loss(model, val_rows).item() / val_rows[:, 1:].numel()
    print(
        f"epoch {epoch} train {total / tokens:.4f} "
        f"val {val:.4f} norm {min(norms):.0f} to {max(norms):.0f}"
    )
