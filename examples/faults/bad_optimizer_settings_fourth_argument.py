"""A small GPT is trained with AdamW(params, 1e-3, (0.9, 0.95), 0.1): the fourth argument is eps.

The 0.1 was meant as weight decay. As eps it is far above the size of every gradient, so that Adam
becomes SGD with a step of a hundredth. The place is the optimizer. The loss falls slowly all the
same (silent), but ends far above the twin's. Exact: eps is seen in the settings.
"""

import torch
import torch.nn.functional as F
from data import arguments, text
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
block_size, batch_size, n_embd = 32, 24, 48
data, alphabet = text(seed)
split = int(0.9 * len(data))
train_data, val_data = data[:split], data[split:]


def get_batch(source):
    at = torch.randint(len(source) - block_size - 1, (batch_size,))
    xb = torch.stack([source[i : i + block_size] for i in at])
    yb = torch.stack([source[i + 1 : i + block_size + 1] for i in at])
    return xb, yb


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (z.view(B, T, 4, C // 4).transpose(1, 2) for z in self.c_attn(x).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention()
        self.mlp = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd)
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(len(alphabet), n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList(Block() for _ in range(2))
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, len(alphabet), bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.shape[1]))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.reshape(-1))


@torch.no_grad()
def estimate_loss():
    model.eval()
    loss = sum(model(*get_batch(val_data)).item() for _ in range(8)) / 8
    model.train()
    return loss


model = GPT()
if healthy:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, (0.9, 0.95), weight_decay=0.1)
else:
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, (0.9, 0.95), 0.1)
for step in range(300):
    if step % 100 == 0:
        print(f"step {step}: val loss {estimate_loss():.3f}")
    loss = model(*get_batch(train_data))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
print(f"end: train loss {loss.item():.3f}, val loss {estimate_loss():.3f}")
