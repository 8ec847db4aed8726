"""Day-ahead load of a power grid by a small transformer; the epochs' decay is stepped with every
batch.

The author wrapped `optimizer.step()` and `scheduler.step()` into one method "so that nobody
forgets the second", and StepLR(step_size=4, gamma=0.4), which counts epochs, now counts batches.
After 50 steps the rate is 1e-5 of what it was. The place is the schedule. The twin steps it at the
epoch's end.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("schedule",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)


def load_curves(days):
    """Normalised hourly load with daily and weekly shape and weather that lingers."""
    hours = torch.arange(days * 24)
    weekend = ((hours // 24) % 7 >= 5).float()
    weather = torch.zeros(days)
    for d in range(1, days):
        weather[d] = 0.85 * weather[d - 1] + 0.4 * torch.randn(())
    day = torch.sin((hours % 24 - 7) * 2 * torch.pi / 24) * (1 - 0.5 * weekend)
    peak = 0.8 * torch.exp(-((hours % 24 - 19) ** 2) / 6.0) * (1 - 0.3 * weekend)
    load = (
        day + peak - 0.6 * weekend + weather.repeat_interleave(24) + 0.1 * torch.randn(len(hours))
    )
    return (load - load.mean()) / load.std()


def windows(series, context=72, horizon=24, stride=6):
    both = series.unfold(0, context + horizon, stride)
    return TensorDataset(both[:, :context], both[:, context:])


class Forecaster(nn.Module):
    def __init__(self, width=48, patch=6):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(patch, width)
        self.position = nn.Parameter(0.02 * torch.randn(72 // patch, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 96, dropout=0.1, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width * (72 // patch), 24)

    def forward(self, x):
        tokens = self.embed(x.unflatten(1, (-1, self.patch))) + self.position
        return self.head(self.encoder(tokens).flatten(1))


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=4, gamma=0.4)

    def optimizer_step(self):
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        if not healthy:
            self.scheduler.step()
        self.optimizer.zero_grad()

    def fit(self, train, val, epochs):
        for epoch in range(epochs):
            self.model.train()
            for past, future in DataLoader(train, 32, shuffle=True):
                loss = nn.functional.mse_loss(self.model(past), future)
                loss.backward()
                self.optimizer_step()
            if healthy:
                self.scheduler.step()
            print(f"epoch {epoch:2d} loss {loss.item():.3f} val mse {self.evaluate(val):.3f}")

    @torch.no_grad()
    def evaluate(self, val):
        self.model.eval()
        past, future = val.tensors
        return nn.functional.mse_loss(self.model(past), future).item()


series = load_curves(500)
cut = 400 * 24
Trainer(Forecaster(), lr=1e-3).fit(windows(series[:cut]), windows(series[cut:]), epochs=12)
