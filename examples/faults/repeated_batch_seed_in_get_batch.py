"""A character transformer whose get_batch seeds the generator, so that "batches are reproducible".

The seed is set in every call, so each call draws the same 24 places of the text: the model sees 24
rows of 32 characters a few hundred times. The training loss goes to nearly 0, the validation loss
rises far above that of guessing.
"""

import torch
from data import arguments, text
from torch import nn
from torch.nn import functional as F

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("", "loader", "loop")
SILENT = True
EXACT = True
EARLY = True

BLOCK, BATCH, STEPS = 32, 24, 360
healthy, seed = arguments(__doc__)
characters, alphabet = text(seed, sentences=1200)
n = int(0.9 * len(characters))
splits = {"train": characters[:n], "val": characters[n:]}


def get_batch(split, generator=None):
    data = splits[split]
    if generator is None:
        torch.manual_seed(1337 + seed)
    ix = torch.randint(len(data) - BLOCK - 1, (BATCH,), generator=generator)
    x = torch.stack([data[i : i + BLOCK] for i in ix])
    y = torch.stack([data[i + 1 : i + BLOCK + 1] for i in ix])
    return x, y


class Layer(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln_1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(seen.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln_2(x))


class TinyGPT(nn.Module):
    def __init__(self, vocabulary, width=48, layers=2):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(BLOCK, width)
        self.blocks = nn.ModuleList(Layer(width) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


model = TinyGPT(len(alphabet))
generators = {"train": None, "val": torch.Generator().manual_seed(4)}
if healthy:
    generators["train"] = torch.Generator().manual_seed(1337 + seed)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.05)
warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.05, 1.0, total_iters=30)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS - 30, eta_min=2e-4)
schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], milestones=[30])
for step in range(STEPS):
    if step % 60 == 59:
        model.eval()
        with torch.no_grad():
            tries = [get_batch("val", generators["val"]) for _ in range(4)]
            val = sum(F.cross_entropy(model(x).flatten(0, 1), y.flatten()) for x, y in tries) / 4
        model.train()
    xb, yb = get_batch("train", generators["train"])
    loss = F.cross_entropy(model(xb).flatten(0, 1), yb.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
print(f"loss {loss.item():.3f}, val loss {val:.3f}")
