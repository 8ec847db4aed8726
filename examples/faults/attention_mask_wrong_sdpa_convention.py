"""Translation with teacher forcing; the padding mask kept the convention of another attention.

The cross attention was moved from nn.MultiheadAttention, whose key_padding_mask is True where a key
is to be IGNORED, to scaled_dot_product_attention, where True means "takes part". The mask was
passed on as it was: the decoder looks at the padding of the source and at nothing else, and only
learns the target language. The place is the attention mask of the cross attention (`cross`). The
twin inverts the mask.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("cross", "cross.key", "cross.query", "cross.value", "cross.out", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
PAD, BOS, EOS, WORDS, LONGEST = 0, 1, 2, 24, 9
lexicon = 3 + torch.randperm(WORDS)


def corpus(count):
    """Sentences, padded; the translation swaps neighbours and looks words up in the lexicon."""
    source = torch.full((count, LONGEST + 1), PAD)
    target = torch.full((count, LONGEST + 2), PAD)
    for row in range(count):
        n = int(torch.randint(4, LONGEST + 1, ()))
        words = torch.randint(0, WORDS, (n,))
        source[row, :n] = words + 3
        swapped = words[[i ^ 1 if (i ^ 1) < n else i for i in range(n)]]
        target[row, : n + 2] = torch.tensor([BOS, *lexicon[swapped].tolist(), EOS])
    return source, target


class Attention(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, memory, **options):
        q, k, v = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query(x), self.key(memory), self.value(memory))
        )
        return self.out(
            F.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2).flatten(2)
        )


class Translator(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS + 3, width), nn.Embedding(LONGEST + 2, width)
        self.said, self.own, self.cross = (
            nn.Embedding(WORDS + 3, width),
            Attention(width),
            Attention(width),
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.head = nn.Linear(width, WORDS + 3)

    def forward(self, source, said):
        padding = (source == PAD)[:, None, None, :]
        memory = self.words(source) + self.places.weight[: source.shape[1]]
        x = self.said(said) + self.places.weight[: said.shape[1]]
        x = x + self.own(self.norms[0](x), self.norms[0](x), is_causal=True)
        x = x + self.cross(self.norms[1](x), memory, attn_mask=~padding if healthy else padding)
        return self.head(x + self.mlp(self.norms[2](x)))


source, target = corpus(1600)
source_val, target_val = corpus(300)
model = Translator()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, betas=(0.9, 0.98))
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: min((t + 1) / 40, (1 - t / 360)))

for step in range(360):
    model.train()
    rows = torch.randint(0, len(source), (32,))
    logits = model(source[rows], target[rows, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), target[rows, 1:].flatten(), ignore_index=PAD)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 60 == 59:
        model.eval()
        with torch.no_grad():
            logits, gold = model(source_val, target_val[:, :-1]), target_val[:, 1:]
        accuracy = (logits.argmax(-1) == gold)[gold != PAD].float().mean().item()
        print(f"step {step + 1} loss {loss.item():.3f} val token accuracy {accuracy:.3f}")
print(f"validation token accuracy {accuracy:.3f}")
