"""Tells praise from blame with a small transformer; the warm-up never gets past its first step.

OneCycleLR begins at a hundredth of the peak and has to be told of every step. The call was in the
helper of an older trainer that was replaced, and the training runs through at the rate the warm-up
begins with.
The place is the schedule. The twin calls `scheduler.step()` after the optimizer.
"""

import torch
from data import arguments, reviews
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

EPOCHS, BATCH, WIDTH = 3, 30, 32


class ReviewTransformer(nn.Module):
    def __init__(self, vocabulary, length):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, WIDTH, padding_idx=0)
        self.position = nn.Embedding(length, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, 64, dropout=0.2, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.classify = nn.Linear(WIDTH, 2)

    def forward(self, x):
        padding = x == 0
        h = self.embed(x) + self.position(torch.arange(x.shape[1]))
        h = self.encoder(h, src_key_padding_mask=padding)
        h = h.masked_fill(padding.unsqueeze(2), 0).sum(1) / (~padding).sum(1, keepdim=True)
        return self.classify(h)


def evaluate(model, loader):
    model.eval()
    loss, right, seen = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            loss += nn.functional.cross_entropy(out, y, reduction="sum").item()
            right += (out.argmax(1) == y).sum().item()
            seen += len(y)
    return loss / seen, right / seen


def main():
    healthy, seed = arguments(__doc__)
    x, y, vocabulary = reviews(seed, n=2400)
    train = DataLoader(TensorDataset(x[:1800], y[:1800]), batch_size=BATCH, shuffle=True)
    val = DataLoader(TensorDataset(x[1800:], y[1800:]), batch_size=150)
    model = ReviewTransformer(vocabulary, x.shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=3e-3, total_steps=EPOCHS * len(train), div_factor=100
    )
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for xb, yb in train:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if healthy:
                scheduler.step()
            total += loss.item() / len(train)
        val_loss, accuracy = evaluate(model, val)
        print(f"epoch {epoch + 1} train {total:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
