"""A transformer encoder rates short reviews; its src_key_padding_mask is True at the words instead
of at the padding.

In nn.TransformerEncoder True means "do not look here", so the CLS token sees only padding and the
words never reach the classifier. The loss stays at ln 2. The twin masks the padding. The place is
`encoder`, `encoder.layers.0.self_attn`, `encoder.layers.1.self_attn`, `encoder.layers.0`,
`encoder.layers.1` or `encoder.layers`.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = (
    "encoder",
    "encoder.layers.0.self_attn",
    "encoder.layers.1.self_attn",
    "encoder.layers.0",
    "encoder.layers.1",
    "encoder.layers",
)
SILENT = False
EXACT = True
EARLY = True

PAD, LENGTH = 0, 20
healthy, seed = arguments(__doc__)


class ReviewModel(nn.Module):
    def __init__(self, words, dim=32):
        super().__init__()
        self.embed = nn.Embedding(words, dim, padding_idx=PAD)
        self.position = nn.Parameter(0.02 * torch.randn(1, LENGTH + 1, dim))
        self.cls = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        layer = nn.TransformerEncoderLayer(
            dim, 4, 64, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(dim, 2)

    def forward(self, x):
        mask = x == PAD if healthy else x != PAD
        mask = F.pad(mask, (1, 0), value=False)  # the CLS token is always seen
        h = torch.cat([self.cls.expand(len(x), -1, -1), self.embed(x)], 1) + self.position
        h = self.encoder(h, src_key_padding_mask=mask)
        return self.head(h[:, 0])


x, y, words = reviews(seed, n=5000)
x = F.pad(x, (0, LENGTH - x.shape[1]), value=PAD)
train_loader = DataLoader(TensorDataset(x[:4000], y[:4000]), batch_size=64, shuffle=True)
x_val, y_val = x[4000:], y[4000:]

model = ReviewModel(words)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
epochs = 6
total_steps = epochs * len(train_loader)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=total_steps)

for epoch in range(epochs):
    model.train()
    total = 0.0
    for xb, yb in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean()
    print(
        f"epoch {epoch + 1}: loss {total / len(train_loader):.4f}, "
        f"val {F.cross_entropy(out, y_val):.4f}, acc {acc:.3f}"
    )
