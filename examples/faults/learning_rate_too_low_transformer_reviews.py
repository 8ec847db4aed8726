"""A small transformer for the mood of reviews by plain SGD with a learning rate of 1e-5.

The rate was copied from a recipe for fine-tuning a large model with Adam; here, from scratch and
with SGD, nothing moves. The place is the optimizer.
"""

import torch
from data import arguments, batches, reviews
from torch import nn

KIND = "learning_rate_too_low"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True


class ReviewTransformer(nn.Module):
    def __init__(self, words, width=32):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.position = nn.Parameter(0.02 * torch.randn(16, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, dim_feedforward=64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, tokens):
        pad = tokens == 0
        h = self.encoder(self.embed(tokens) + self.position, src_key_padding_mask=pad)
        h = h.masked_fill(pad.unsqueeze(-1), 0.0).sum(1) / (~pad).sum(1, keepdim=True)
        return self.head(h)


healthy, seed = arguments(__doc__)
x, y, words = reviews(seed, n=3500)
x, y, x_val, y_val = x[:3000], y[:3000], x[3000:], y[3000:]
model = ReviewTransformer(words)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05 if healthy else 1e-5, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for tokens, mood in batches(x, y, size=60, steps=150, seed=seed):
    optimizer.zero_grad(set_to_none=True)
    loss = criterion(model(tokens), mood)
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    out = model(x_val)
    val_acc = (out.argmax(1) == y_val).float().mean()
print(
    f"final loss {loss.item():.3f}, validation loss {criterion(out, y_val).item():.3f}, "
    f"accuracy {val_acc:.3f}"
)
