"""A small GPT ties its output layer to the token embedding, which keeps nn.Embedding's default
N(0, 1) in place of the 0.02 that the tying was made for.

The first logits have a spread of about ten: the loss starts near 65 where ln C is 3.2, and the
steps are spent on undoing the start; at the end the loss is still about twice the twin's.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("*wte*", "*lm_head*", "*head*", "*emb*")
SILENT = True
EXACT = False
EARLY = True

BLOCK, DIM, HEADS = 32, 96, 4


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(DIM, 3 * DIM)
        self.c_proj = nn.Linear(DIM, DIM)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            part.view(b, t, HEADS, c // HEADS).transpose(1, 2)
            for part in self.c_attn(x).split(DIM, dim=2)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = CausalSelfAttention()
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab, init_embedding):
        super().__init__()
        self.wte = nn.Embedding(vocab, DIM)
        self.wpe = nn.Embedding(BLOCK, DIM)
        self.h = nn.ModuleList(Block() for _ in range(2))
        self.ln_f = nn.LayerNorm(DIM)
        self.lm_head = nn.Linear(DIM, vocab, bias=False)
        self.lm_head.weight = self.wte.weight
        if init_embedding:
            nn.init.normal_(self.wte.weight, std=0.02)
            nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def get_batch(data, size):
    ix = torch.randint(len(data) - BLOCK - 1, (size,)).tolist()
    rows = torch.stack([data[i : i + BLOCK + 1] for i in ix])
    return rows[:, :-1], rows[:, 1:]


def loss_of(model, data, size=24):
    x, y = get_batch(data, size)
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


healthy, seed = arguments(__doc__)
corpus, alphabet = text(seed)
n = int(0.9 * len(corpus))
train_data, val_data = corpus[:n], corpus[n:]
model = GPT(len(alphabet), init_embedding=healthy)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.95), weight_decay=0.1)
steps, warm = 300, 20
schedule = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda i: (i + 1) / warm if i < warm else max(0.05, 1 - (i - warm) / (steps - warm))
)
first = ema = None
for it in range(steps):
    if it % 100 == 0:
        model.eval()
        with torch.no_grad():
            val_loss = loss_of(model, val_data, 64).item()
        model.train()
    loss = loss_of(model, train_data)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    first = loss.item() if first is None else first
    ema = loss.item() if ema is None else 0.95 * ema + 0.05 * loss.item()
with torch.no_grad():
    val_loss = loss_of(model, val_data, 64).item()
print(f"first loss {first:.2f}, loss {ema:.3f}, val loss {val_loss:.3f}")
