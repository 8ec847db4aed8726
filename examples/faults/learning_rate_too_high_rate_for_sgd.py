"""A small transformer for reviews trained by AdamW with a rate of 1.0 (a rate for SGD).

Every weight moves by 1 in the first step, many times its own size. The loss jumps to many times
its start and then swings about ln 2. The place is the optimizer.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer", "")
SILENT = False
EXACT = False
EARLY = True


class ReviewTransformer(nn.Module):
    def __init__(self, vocabulary, length, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, dim, padding_idx=0)
        self.position = nn.Parameter(0.02 * torch.randn(length, dim))
        self.block = nn.TransformerEncoderLayer(
            dim, nhead=4, dim_feedforward=64, dropout=0.1, batch_first=True, norm_first=True
        )
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, 2)

    def forward(self, words):
        padding = words == 0
        h = self.block(self.embed(words) + self.position, src_key_padding_mask=padding)
        h = self.norm(h).masked_fill(padding.unsqueeze(-1), 0)
        return self.head(h.sum(1) / (~padding).sum(1, keepdim=True))


healthy, seed = arguments(__doc__)
x, y, vocabulary = reviews(seed, n=2000)
x, x_val, y, y_val = x[:1600], x[1600:], y[:1600], y[1600:]
train_loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = ReviewTransformer(vocabulary, x.shape[1])
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3 if healthy else 1.0)
for epoch in range(7):
    model.train()
    for words, label in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(words), label)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss = criterion(out, y_val)
        accuracy = (out.argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, accuracy {accuracy:.3f}")
