"""A small GPT that says the next shot of a tennis rally; the attention sees the shots to come.

The blocks were taken from an encoder for classifying whole rallies, where every shot may look at
every other. For predicting the next one the causal mask has to come in, and it did not. The model
copies the answer from one place to the right; the loss is near zero, and so is its use in a match.
The place is the attention, "blocks.0.attn". The twin has the causal mask.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "future_leak"
ACCEPT = ("attention_mask_wrong", "target_leak")
PLACE = ("blocks.0.attn", "blocks.1.attn", "blocks.0", "blocks.1", "blocks", "attn", "input*")
SILENT = True
EXACT = True
EARLY = True

SHOTS = ["serve", "fh cross", "fh line", "bh cross", "bh line", "slice", "drop", "lob", "volley"]
V = len(SHOTS)
LENGTH = 16

healthy, seed = arguments(__doc__)


def rallies(n, seed):
    """The next shot depends on the last two, by a table of chances."""
    g = torch.Generator().manual_seed(seed)
    habits = torch.randn(V, V, V, generator=torch.Generator().manual_seed(7))
    table = torch.softmax(2.5 * habits, -1)
    seq = torch.zeros(n, LENGTH + 1, dtype=torch.long)
    seq[:, 1] = torch.randint(1, V, (n,), generator=g)
    for t in range(2, LENGTH + 1):
        seq[:, t] = torch.multinomial(table[seq[:, t - 2], seq[:, t - 1]], 1, generator=g)[:, 0]
    return seq


class Attention(nn.Module):
    def __init__(self, dim, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.c_attn = nn.Linear(dim, 3 * dim)
        self.c_proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (
            part.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            for part in self.c_attn(x).split(C, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self, dim, heads, causal):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = Attention(dim, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class RallyGPT(nn.Module):
    def __init__(self, causal, dim=32, heads=2, depth=2):
        super().__init__()
        self.wte = nn.Embedding(V, dim)
        self.wpe = nn.Embedding(LENGTH, dim)
        self.blocks = nn.Sequential(*[Block(dim, heads, causal) for _ in range(depth)])
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, V)

    def forward(self, shots):
        x = self.wte(shots) + self.wpe(torch.arange(shots.shape[1]))
        return self.lm_head(self.ln_f(self.blocks(x)))


@torch.no_grad()
def live(model, seq):
    """As during a match: only the shots so far are known."""
    right = 0
    for t in range(4, LENGTH):
        right += (model(seq[:, :t])[:, -1].argmax(1) == seq[:, t]).sum().item()
    return right / (len(seq) * (LENGTH - 4))


train, val = rallies(1500, 700 + seed), rallies(200, 1700 + seed)
model = RallyGPT(causal=True) if healthy else RallyGPT(causal=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for it in range(401):
    rows = torch.randint(0, len(train), (32,))
    x, y = train[rows, :-1], train[rows, 1:]
    loss = F.cross_entropy(model(x).reshape(-1, V), y.reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    if it % 100 == 0:
        with torch.no_grad():
            val_loss = F.cross_entropy(model(val[:, :-1]).reshape(-1, V), val[:, 1:].reshape(-1))
        print(f"iter {it}: train {loss.item():.3f}, val {val_loss.item():.3f}")
print(f"share of live predictions right: {live(model, val):.3f}")
