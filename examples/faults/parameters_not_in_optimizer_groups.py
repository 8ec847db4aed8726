"""Groups with and without weight decay are made by name, and those of no group are left out.

Embeddings and norms are never trained (silent). The place are these layers.
"""

import torch
import torch.nn.functional as F
from data import arguments, reviews
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ()
PLACE = ("embed*", "norm*", "optimizer")
SILENT = True
EXACT = True
EARLY = True


class TransformerClassifier(nn.Module):
    def __init__(self, vocab, length, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.embed_position = nn.Embedding(length, dim)
        self.linear_q = nn.Linear(dim, dim)
        self.linear_k = nn.Linear(dim, dim)
        self.linear_v = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.linear_out = nn.Linear(dim, 2)

    def forward(self, ids):
        x = self.embed(ids) + self.embed_position(torch.arange(ids.shape[1]))
        q, k, v = self.linear_q(x), self.linear_k(x), self.linear_v(x)
        x = self.norm(x + F.scaled_dot_product_attention(q, k, v))
        return self.linear_out(x.mean(1))


healthy, seed = arguments(__doc__)
ids, labels, vocab = reviews(seed)
model = TransformerClassifier(vocab, ids.shape[1])
decay, no_decay = [], []
for name, p in model.named_parameters():
    if name.endswith("bias") or (healthy and not name.startswith("linear")):
        no_decay.append(p)
    elif name.startswith("linear"):
        decay.append(p)
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=3e-3
)
for step in range(250):
    rows = torch.randint(len(ids), (48,))
    loss = F.cross_entropy(model(ids[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
