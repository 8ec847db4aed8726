"""A network that guesses the stars a reader gives a book from its data hardly ever says 1 or 5, and
its R2 stops near 0.3.

Stars are noisy: the mean over readers of like books is what squared error asks for, and such means
lie between. The best forecast possible, which the made-up data know, does no better.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "predictions avoid the ends of the scale and R2 stays near 0.3: most of it is noise"
_, seed = arguments(__doc__)

GENRES = ("crime", "fantasy", "memoir", "romance", "poetry")


def readings(n, rng):
    frame = pd.DataFrame(
        {
            "pages": rng.gamma(6, 55, n),
            "reader_age": rng.uniform(12, 80, n),
            "translated": rng.integers(0, 2, n),
            "friend_recommended": rng.integers(0, 2, n),
            "series_number": rng.integers(1, 6, n),
        }
    )
    genre = rng.integers(0, len(GENRES), n)
    expected = (
        3.3 + np.array([0.5, 0.2, 0.0, -0.2, -0.5])[genre] + 0.6 * frame["friend_recommended"]
    )
    expected -= 0.002 * (frame["pages"] - 330) * (frame["reader_age"] < 40)
    expected -= 0.15 * (frame["series_number"] - 1)
    stars = (expected + rng.normal(0, 0.9, n)).round().clip(1, 5)
    for number, name in enumerate(GENRES):
        frame[name] = (genre == number).astype(float)
    return frame, expected.clip(1, 5).to_numpy(), stars.to_numpy()


class StarNet(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, 24), nn.ReLU()
        )
        self.stars = nn.Linear(24, 1)

    def forward(self, x):
        return self.stars(self.layers(x)).squeeze(-1)


def ends(stars):
    return ((stars < 1.5) | (stars > 4.5)).mean()


def r2(guess, truth):
    return 1 - np.square(guess - truth).mean() / truth.var()


frame, expected, stars = readings(4000, np.random.default_rng(seed))
x = torch.tensor(frame.to_numpy(), dtype=torch.float32)
x = (x - x[:3000].mean(0)) / x[:3000].std(0)
star_mean, star_std = stars[:3000].mean(), stars[:3000].std()
y = torch.tensor((stars - star_mean) / star_std, dtype=torch.float32)
loader = DataLoader(TensorDataset(x[:3000], y[:3000]), batch_size=60, shuffle=True)

model = StarNet(x.shape[1])
criterion = nn.MSELoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
for epoch in range(12):
    model.train()
    losses = []
    for features, target in loader:
        optimizer.zero_grad()
        loss = criterion(model(features), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    model.eval()
    with torch.no_grad():
        guess = model(x[3000:]).numpy() * star_std + star_mean
    print(
        f"epoch {epoch + 1:2d}: loss {np.mean(losses):.3f}, val R2 {r2(guess, stars[3000:]):.3f}, "
        f"1 or 5 guessed {ends(guess):.3f}, given {ends(stars[3000:]):.3f}"
    )
print(f"the mean that made the stars: R2 {r2(expected[3000:], stars[3000:]):.3f}")
