"""The mood of chat messages by a small transformer; its padding mask is True for the words.

The mask is tokens != PAD, as the attention_mask of other libraries is, but src_key_padding_mask
marks what to leave out. Attention then looks at padding only, and which word a "not" belongs to
cannot be learned. The place is the attention (encoder).
"""

import random

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("encoder*", "input", "model")
SILENT = True
EXACT = True
EARLY = True

PAD = "<pad>"
GOOD = ["nice", "sunny", "tasty", "funny"]
BAD = ["rude", "cold", "stale", "slow"]
OTHER = ["we", "the", "food", "crew", "day", "room", "was"]
VOCAB = [PAD, "not", *GOOD, *BAD, *OTHER]
INDEX = {word: i for i, word in enumerate(VOCAB)}
LONGEST = 14


def message(rng):
    """One or three mood words among others, half of them after "not"; the mood is the majority."""
    words, mood = [], 0
    for _ in range(rng.choice([1, 3])):
        words += rng.choices(OTHER, k=rng.randint(1, 2))
        kind = rng.choice([1, -1])
        if rng.random() < 0.5:
            words.append("not")
            mood -= kind
        else:
            mood += kind
        words.append(rng.choice(GOOD if kind == 1 else BAD))
    words += rng.choices(OTHER, k=rng.randint(0, 1))
    return [INDEX[w] for w in words], int(mood > 0)


def collate(batch):
    tokens = torch.full((len(batch), LONGEST), INDEX[PAD])
    for row, (words, _) in zip(tokens, batch, strict=True):
        row[: len(words)] = torch.tensor(words)
    return tokens, torch.tensor([float(mood) for _, mood in batch])


class MoodReader(nn.Module):
    def __init__(self, width=32, inverted=False):
        super().__init__()
        self.words = nn.Embedding(len(VOCAB), width)
        self.places = nn.Parameter(0.3 * torch.randn(LONGEST, width))
        layer = nn.TransformerEncoderLayer(
            width, nhead=2, dim_feedforward=48, dropout=0.0, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.out = nn.Linear(width, 1)
        self.inverted = inverted

    def forward(self, tokens):
        is_word = tokens != INDEX[PAD]
        mask = is_word if self.inverted else ~is_word
        x = self.encoder(self.words(tokens) + self.places, src_key_padding_mask=mask)
        weight = is_word.unsqueeze(-1).float()
        return self.out((x * weight).sum(1) / weight.sum(1)).squeeze(-1)


def epoch_over(model, loader, loss_fn, optimizer=None):
    model.train(optimizer is not None)
    loss_sum = hits = n = 0
    for tokens, mood in loader:
        with torch.set_grad_enabled(optimizer is not None):
            logit = model(tokens)
            loss = loss_fn(logit, mood)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        loss_sum += loss.item() * len(mood)
        hits += ((logit > 0) == (mood > 0.5)).sum().item()
        n += len(mood)
    return loss_sum / n, hits / n


def main():
    healthy, seed = arguments(__doc__)
    rng = random.Random(40 + seed)
    messages = [message(rng) for _ in range(4500)]
    train_loader = DataLoader(messages[:4000], batch_size=64, shuffle=True, collate_fn=collate)
    val_loader = DataLoader(messages[4000:], batch_size=250, collate_fn=collate)
    model = MoodReader(inverted=not healthy)
    loss_fn = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 13):
        train_loss, train_acc = epoch_over(model, train_loader, loss_fn, optimizer)
        val_loss, val_acc = epoch_over(model, val_loader, loss_fn)
        print(
            f"epoch {epoch:2d} | train {train_loss:.3f} {train_acc:.3f}"
            f" | val {val_loss:.3f} {val_acc:.3f}"
        )


if __name__ == "__main__":
    main()
