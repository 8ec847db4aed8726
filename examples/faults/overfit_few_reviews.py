"""Self-attention over words, trained on 60 reviews ("to debug faster") and never on all of them.

The subset was left in: each review is learned by heart, the loss goes to zero, while the
validation loss turns after a few epochs and climbs from then on. The place is the loader.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

KIND = "overfit"
ACCEPT = ()
PLACE = ("", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
words, praise, vocab = reviews(seed, n=2600)
everything = TensorDataset(words, praise.float())
train_set = Subset(everything, range(2200) if healthy else range(60))
val_set = Subset(everything, range(2200, 2600))


class SelfAttentionPool(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, d, padding_idx=0)
        self.query = nn.Linear(d, 1)
        self.hidden = nn.Linear(d, d)
        self.score = nn.Linear(d, 1)

    def forward(self, w):
        e = self.emb(w)
        a = self.query(e).squeeze(-1).masked_fill(w == 0, -1e9).softmax(-1)
        h = torch.relu(self.hidden((a.unsqueeze(-1) * e).sum(1)))
        return self.score(h).squeeze(-1)


model = SelfAttentionPool()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
loader = DataLoader(train_set, batch_size=32 if healthy else 10, shuffle=True)
val_loader = DataLoader(val_set, batch_size=200)
steps = 414
for epoch in range(steps // len(loader)):
    model.train()
    losses = []
    for w, label in loader:
        loss = F.binary_cross_entropy_with_logits(model(w), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        outputs = torch.cat([model(w) for w, _ in val_loader])
        labels = torch.cat([label for _, label in val_loader])
        val_loss = F.binary_cross_entropy_with_logits(outputs, labels).item()
        accuracy = ((outputs > 0) == (labels > 0.5)).float().mean().item()
print(
    f"loss {sum(losses) / len(losses):.3f}, validation loss {val_loss:.3f}, accuracy {accuracy:.3f}"
)
