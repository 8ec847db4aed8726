"""A small transformer learns to predict the next character, without a causal mask.

The encoder was built as in a classification tutorial, and nobody passed a mask. Each place can
look at the character it is to predict: the loss falls to nearly nothing, yet with only the past
at hand (as in generation) the model is worthless. The place is the encoder. The twin passes the
square subsequent mask.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "future_leak"
ACCEPT = ("attention_mask_wrong",)
PLACE = ("encoder", "encoder.layers.0", "encoder.layers.0.self_attn", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
ids, alphabet = text(seed, 600)
cut = int(0.9 * len(ids))
train_ids, val_ids = ids[:cut], ids[cut:]
T, DIM, BATCH = 24, 48, 24


class CharLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(len(alphabet), DIM)
        self.position = nn.Parameter(torch.randn(T, DIM))
        layer = nn.TransformerEncoderLayer(DIM, 4, 96, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(DIM, len(alphabet))

    def forward(self, tokens):
        n = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n) if healthy else None
        h = self.encoder(self.embed(tokens) + self.position[:n], mask=mask)
        return self.head(h)


def batch(source):
    at = torch.randint(0, len(source) - T - 1, (BATCH,))
    windows = torch.stack([source[i : i + T + 1] for i in at])
    return windows[:, :-1], windows[:, 1:]


model = CharLM()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step in range(1, 401):
    tokens, targets = batch(train_ids)
    loss = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 80 == 0:
        model.eval()
        with torch.no_grad():
            tokens, targets = batch(val_ids)
            val = F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()).item()
        model.train()
        print(f"step {step}: loss {loss.item():.3f}, val loss {val:.3f}")

model.eval()
with torch.no_grad():
    honest = []
    for end in range(8, 24):
        tokens, targets = batch(val_ids)
        honest.append(F.cross_entropy(model(tokens[:, :end])[:, -1], targets[:, end - 1]).item())
print(f"with the past only: loss {sum(honest) / len(honest):.3f}")
