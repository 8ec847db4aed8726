"""A sequence-to-sequence transformer that brings written dates into ISO form; the decoder's input
isn't shifted.

`decode(tgt[:, 1:])` is scored against `tgt[:, 1:]`: the token to be predicted stands at its own
place in the input, and the causal mask lets a position see itself. The teacher-forced loss goes
to zero, in validation also; free-running decoding, which starts with <bos>, knows nothing. The
place is the loop, the decoder's input.
"""

import math
import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "target_leak"
ACCEPT = ("future_leak",)
PLACE = ("loop", "input*", "tgt_embed*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
PAD, BOS, EOS = 0, 1, 2
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789 ,./-'"
ID = {c: i + 3 for i, c in enumerate(LETTERS)}


def spell(r):
    y, m, d = r.randint(1950, 2049), r.randint(1, 12), r.randint(1, 28)
    style = r.randrange(5)
    name = MONTHS[m - 1] if r.random() < 0.5 else MONTHS[m - 1][:3]
    source = (
        f"{d} {name} {y}",
        f"{name} {d}, {y}",
        f"{d}/{m}/{y}",
        f"{d}. {name} '{y % 100:02d}",
        f"{name} {d:02d} {y}",
    )[style]
    return source, f"{y}-{m:02d}-{d:02d}"


class Dates(Dataset):
    def __init__(self, n, r):
        self.rows = [spell(r) for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        s, t = self.rows[i]
        return [ID[c] for c in s], [BOS] + [ID[c] for c in t] + [EOS]


def collate(rows):
    def pad(seqs):
        return nn.utils.rnn.pad_sequence(
            [torch.tensor(s) for s in seqs], batch_first=True, padding_value=PAD
        )

    return pad([a for a, _ in rows]), pad([b for _, b in rows])


class Translator(nn.Module):
    def __init__(self, vocab, d=64, heads=4, layers=1):
        super().__init__()
        self.src_embed, self.tgt_embed = (
            nn.Embedding(vocab, d, padding_idx=PAD),
            nn.Embedding(vocab, d, padding_idx=PAD),
        )
        self.register_buffer("position", self.sinusoids(40, d), persistent=False)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(d, heads, 2 * d, 0.0, batch_first=True, norm_first=True),
            layers,
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(d, heads, 2 * d, 0.0, batch_first=True, norm_first=True),
            layers,
        )
        self.norm, self.generator = nn.LayerNorm(d), nn.Linear(d, vocab)

    @staticmethod
    def sinusoids(length, d):
        t = torch.arange(length)[:, None] * torch.exp(
            torch.arange(0, d, 2) * (-math.log(100.0) / d)
        )
        return torch.stack([t.sin(), t.cos()], -1).flatten(1)

    def encode(self, src):
        return self.encoder(
            self.src_embed(src) + self.position[: src.shape[1]], src_key_padding_mask=src == PAD
        )

    def decode(self, tgt, memory, src):
        causal = torch.triu(torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool), 1)
        h = self.decoder(
            self.tgt_embed(tgt) + self.position[: tgt.shape[1]],
            memory,
            tgt_mask=causal,
            memory_key_padding_mask=src == PAD,
        )
        return self.generator(self.norm(h))


def run_batch(model, criterion, src, tgt):
    decoder_input = tgt[:, :-1] if healthy else tgt[:, 1:]
    logits = model.decode(decoder_input, model.encode(src), src)
    return criterion(logits.flatten(0, 1), tgt[:, 1:].flatten())


@torch.no_grad()
def greedy_exact_match(model, loader):
    hits = n = 0
    for src, tgt in loader:
        memory, out = model.encode(src), torch.full((len(src), 1), BOS)
        for _ in range(tgt.shape[1] - 1):
            out = torch.cat(
                [out, model.decode(out, memory, src)[:, -1].argmax(-1, keepdim=True)], 1
            )
        hits += (out == tgt).all(1).sum().item()
        n += len(src)
    return hits / n


def main():
    r = random.Random(seed)
    train_loader = DataLoader(
        Dates(5000, r), batch_size=64, shuffle=True, drop_last=True, collate_fn=collate
    )
    val_loader = DataLoader(Dates(400, r), batch_size=200, collate_fn=collate)
    model = Translator(len(LETTERS) + 3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01, betas=(0.9, 0.98))
    epochs = 7
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 3e-3, total_steps=epochs * len(train_loader), pct_start=0.15
    )
    for epoch in range(epochs):
        model.train()
        total = 0.0
        for src, tgt in train_loader:
            loss = run_batch(model, criterion, src, tgt)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            val = sum(run_batch(model, criterion, *b).item() for b in val_loader) / len(val_loader)
        line = f"epoch {epoch}: train {total / len(train_loader):.4f}, val {val:.4f}"
        if epoch == epochs - 1:
            line += f", exact match of greedy decoding {greedy_exact_match(model, val_loader):.3f}"
        print(line)


main()
