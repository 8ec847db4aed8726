"""Learns the pitch of noisy tones; the early stopper adds up bad epochs and never starts anew.

It counts epochs without improvement but does not set the count back when the loss improves. The
validation loss wobbles on its way down, so that the fifth wobble in all ends the training, long
before the loss has come to rest. The place is the loop, its early stopping.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

POINTS = 128
config = {"epochs": 90, "patience": 5, "lr": 6e-3, "batch_size": 32, "min_delta": 0.0}


def tones(count):
    t = torch.arange(POINTS) / POINTS
    pitch = 4 + 12 * torch.rand(count, 1)
    phase, colour = 6.28 * torch.rand(count, 1), torch.rand(count, 1)
    wave = torch.sin(6.28 * pitch * t + phase) + colour * torch.sin(12.57 * pitch * t + 2 * phase)
    return wave + 0.35 * torch.randn(count, POINTS), (pitch - 10) / 3.46


class PitchNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.filters = nn.Sequential(
            nn.Conv1d(1, width, 33, stride=2, padding=16),
            nn.SiLU(),
            nn.Conv1d(width, width, 9, stride=2, padding=4),
            nn.SiLU(),
        )
        self.read = nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, wave):
        return self.read(self.filters(wave.unsqueeze(1)).pow(2).mean(-1))


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.best = float("inf")
        self.waited = 0
        self.weights = None

    def should_stop(self, loss, model):
        if loss < self.best - self.min_delta:
            self.best = loss
            self.weights = {name: value.clone() for name, value in model.state_dict().items()}
            if healthy:
                self.waited = 0
        else:
            self.waited += 1
        return self.waited >= self.patience


@torch.no_grad()
def mean_loss(model, x, y):
    model.eval()
    return nn.functional.mse_loss(model(x), y).item()


def main():
    x, y = tones(1600)
    x = (x - x[:800].mean()) / x[:800].std()
    train = DataLoader(
        TensorDataset(x[:800], y[:800]), batch_size=config["batch_size"], shuffle=True
    )
    x_val, y_val, x_test, y_test = x[800:1100], y[800:1100], x[1100:], y[1100:]

    model = PitchNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=0.9)
    stopper = EarlyStopping(config["patience"], config["min_delta"])
    for epoch in range(config["epochs"]):
        model.train()
        total = 0.0
        for wave, pitch in train:
            loss = nn.functional.mse_loss(model(wave), pitch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(train)
        val_loss = mean_loss(model, x_val, y_val)
        print(f"epoch {epoch:3d} train {total:.4f} val {val_loss:.4f} waited {stopper.waited}")
        if stopper.should_stop(val_loss, model):
            print(f"early stopping after epoch {epoch}")
            break
    model.load_state_dict(stopper.weights)
    print(f"best val {stopper.best:.4f}, test {mean_loss(model, x_test, y_test):.4f}")


main()
