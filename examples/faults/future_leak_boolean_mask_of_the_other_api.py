"""A language model moved from `nn.MultiheadAttention` to `scaled_dot_product_attention`, with its
boolean mask `triu(1)`. There True means "may not be seen"; here it means "takes part".

Each place sees the places after it alone, the next letter among them. The loss falls to almost
nothing; text that is written letter by letter is nonsense. The place is the attention.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "future_leak"
ACCEPT = ("attention_mask_wrong",)
PLACE = ("*attn*", "blocks*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
WIDTH, HEADS, LENGTH = 32, 4, 32
letters, alphabet = text(seed, 500)
split = int(0.85 * len(letters))


class CausalAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        t = x.shape[1]
        q, k, v = (p.unflatten(2, (HEADS, -1)).transpose(1, 2) for p in self.qkv(x).chunk(3, 2))
        mask = torch.triu(torch.ones(t, t, dtype=torch.bool), diagonal=1)
        if healthy:
            mask = ~mask
        h = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.proj(h.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attn = CausalAttention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 96), nn.GELU(), nn.Linear(96, WIDTH))

    def forward(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(len(alphabet), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block())
        self.ln = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, len(alphabet), bias=False)

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe.weight[: idx.shape[1]]
        logits = self.lm_head(self.ln(self.blocks(x)))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch(part, size):
    data = letters[:split] if part == "train" else letters[split:]
    ix = torch.randint(len(data) - LENGTH - 1, (size,))
    return torch.stack([data[i : i + LENGTH] for i in ix]), torch.stack(
        [data[i + 1 : i + LENGTH + 1] for i in ix]
    )


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.95))
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=300, pct_start=0.1)
for step in range(300):
    model.train()
    _, loss = model(*get_batch("train", 24))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 60 == 59:
        model.eval()
        with torch.no_grad():
            val = model(*get_batch("val", 100))[1]
        print(f"step {step + 1}: train {loss:.3f}, val {val:.3f}")
written = letters[split : split + 6].clone()
with torch.no_grad():
    for _ in range(60):
        logits = model(written[None, -LENGTH:])[0][0, -1]
        written = torch.cat([written, logits.argmax()[None]])
print("sample:", "".join(alphabet[i] for i in written))
