"""A text classifier whose linear warm-up never advances.

The rate is multiplied by min(1, (t + 1) / 100), where t counts the schedule's steps; the loop
calls get_last_lr() for its log and never step(). The rate stays at a hundredth. The place is the
schedule. The twin steps it after the optimizer.
"""

import torch
from data import arguments, batches, reviews
from torch import nn

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("schedule", "learning_rate*", "optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, words = reviews(seed, n=1600)
x, y, x_val, y_val = x[:1200], y[:1200], x[1200:], y[1200:]


class TextCNN(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.conv = nn.Conv1d(width, 32, 3, padding=1)
        self.drop = nn.Dropout(0.4)
        self.out = nn.Linear(32, 2)

    def forward(self, tokens):
        h = torch.relu(self.conv(self.embed(tokens).transpose(1, 2)))
        return self.out(self.drop(h.amax(2)))


model = TextCNN()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
warm_up = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda t: min(1.0, (t + 1) / 100))
criterion = nn.CrossEntropyLoss()
for step, (xb, yb) in enumerate(batches(x, y, size=40, steps=360, seed=seed), 1):
    loss = criterion(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if healthy:
        warm_up.step()
    if step % 30 == 0:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
            val, accuracy = criterion(out, y_val), (out.argmax(1) == y_val).float().mean()
        model.train()
        print(
            f"step {step}: lr {warm_up.get_last_lr()[0]:.1e}  train {loss.item():.3f}"
            f"  val {val.item():.3f}  accuracy {accuracy.item():.3f}"
        )
