"""Teaches a frozen class-conditional digit painter a new word from twenty pictures of a style."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = (
    "the second stage trains one row of 16 numbers and nothing else, on twenty pictures again "
    "and again, at a large rate; its loss keeps a high rest, since the painter's hand is frozen"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

WORD, NOISE, NEW = 16, 8, 9
x, y, x_val, y_val = digits(seed)
known, known_val = y != NEW, y_val != NEW


class Painter(nn.Module):
    """A conditional VAE: the word says which digit, eight numbers say how it is drawn."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(NEW, WORD)
        self.eye = nn.Sequential(nn.Linear(64 + WORD, 96), nn.SiLU(), nn.Linear(96, 2 * NOISE))
        self.hand = nn.Sequential(
            nn.Linear(NOISE + WORD, 96), nn.SiLU(), nn.Linear(96, 96), nn.SiLU(), nn.Linear(96, 64)
        )

    def forward(self, pictures, word):
        mean, log_width = self.eye(torch.cat([pictures, word], 1)).chunk(2, 1)
        drawn = mean + log_width.exp() * torch.randn_like(mean)
        kl = 0.5 * (mean**2 + (2 * log_width).exp() - 1 - 2 * log_width).sum(1)
        wrong = (self.paint(drawn, word) - pictures).square().sum(1)
        return (wrong / (2 * 0.4**2) + kl).mean()

    def paint(self, drawn, word):
        return self.hand(torch.cat([drawn, word], 1))


painter = Painter()
optimizer = torch.optim.Adam(painter.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 800)
pairs = batches(x[known], y[known], size=64, steps=800, seed=seed)
for step, (pictures, labels) in enumerate(pairs):
    painter.train()
    loss = painter(pictures, painter.words(labels))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 200 == 199:
        painter.eval()
        with torch.no_grad():
            val_loss = painter(x_val[known_val], painter.words(y_val[known_val])).item()
        print(f"painter: step {step + 1}  loss {loss.item():.1f}  validation {val_loss:.1f}")

painter.requires_grad_(False).eval()
examples, held = x[~known][:20], x_val[~known_val]
new_word = nn.Parameter(painter.words.weight.mean(0, keepdim=True).clone())
optimizer = torch.optim.Adam([new_word], lr=3e-2)


def loss_with(word, pictures, times=20):
    with torch.no_grad():
        return (
            sum(painter(pictures, word.expand(len(pictures), -1)).item() for _ in range(times))
            / times
        )


for step in range(300):
    loss = painter(examples, new_word.expand(len(examples), -1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 75 == 74:
        held_loss = loss_with(new_word, held)
        print(f"word: step {step + 1}  loss {loss.item():.1f}  held out {held_loss:.1f}")

old_words = [loss_with(word[None], held) for word in painter.words.weight]
mean_word = loss_with(painter.words.weight.mean(0, keepdim=True), held)
print(
    f"nats (up to a constant) on unseen nines: mean word {mean_word:.1f}, best old word "
    f"{min(old_words):.1f}, new word {loss_with(new_word, held):.1f}"
)
