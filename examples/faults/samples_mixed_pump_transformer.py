"""A transformer judges pump recordings; without batch_first the recordings attend to each other.

The batches are (recording, time, sensor) while nn.TransformerEncoderLayer by default takes the
first axis for time: attention runs over the recordings of the batch and no one sees its own past.
The place is the encoder (its layers' self_attn).
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("encoder", "encoder.*", "model", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LENGTH, STATES = 24, ["slow", "normal", "fast"]


def recordings(n):
    """Two noisy sensors that swing in step, slowly or fast."""
    state = torch.randint(0, 3, (n,))
    time = torch.arange(LENGTH) / LENGTH
    speed = torch.tensor([8.0, 13.0, 18.0])[state][:, None] + 1.2 * torch.randn(n, 1)
    angle = speed * time + 2 * math.pi * torch.rand(n, 1)
    clean = torch.stack([angle.sin(), angle.cos()], 2)
    return clean * (0.8 + 0.4 * torch.rand(n, 1, 1)) + 0.15 * torch.randn(n, LENGTH, 2), state


class PumpTransformer(nn.Module):
    def __init__(self, width=32, heads=4, layers=2):
        super().__init__()
        self.embed = nn.Linear(2, width)
        self.position = nn.Parameter(torch.randn(1, LENGTH, width))
        layer = nn.TransformerEncoderLayer(
            width, heads, 64, dropout=0.0, norm_first=True, batch_first=healthy
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.classify = nn.Linear(width, len(STATES))

    def forward(self, x):
        x = self.encoder(self.embed(x) + self.position)
        return self.classify(x.mean(dim=1))


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    loss_sum, right = 0.0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            output = model(x)
            loss = criterion(output, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(y)
            right += (output.argmax(1) == y).sum().item()
    return loss_sum / len(loader.dataset), right / len(loader.dataset)


if __name__ == "__main__":
    train_set, valid_set = random_split(TensorDataset(*recordings(1200)), [900, 300])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    valid_loader = DataLoader(valid_set, batch_size=32)
    model = PumpTransformer()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(10):
        train_loss, train_acc = run_epoch(model, train_loader, criterion, optimizer)
        valid_loss, valid_acc = run_epoch(model, valid_loader, criterion)
        print(
            f"Epoch {epoch + 1}: train loss {train_loss:.3f} acc {train_acc:.3f} | "
            f"valid loss {valid_loss:.3f} acc {valid_acc:.3f}"
        )
