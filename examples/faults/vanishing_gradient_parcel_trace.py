"""A plain tanh RNN reads 40 scans of a parcel and should still know the service booked at the
first one, but its gradient is gone by then.

Two heads read the last state: the zone comes from the last scan, the service from the first. A
plain recurrence loses its gradient within some ten steps, so the zone is learnt and the service
stays at chance, while the total loss falls. The place is the recurrent layer, encoder.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = ("encoder", "encoder.*", "embed", "embed.weight", "model")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SERVICES, ZONES, SCANS = 4, 6, 40


@dataclass
class TraceConfig:
    embedding: int = 16
    hidden: int = 48
    lr: float = 6e-3
    clip: float = 1.0
    epochs: int = 12
    batch_size: int = 64
    forget_bias: float = 4.0


def traces(n: int) -> TensorDataset:
    """Codes 0-3 are booked services, 4-9 the zones of depots, 10-29 events on the way."""
    service = torch.randint(SERVICES, (n,))
    zone = torch.randint(ZONES, (n,))
    codes = torch.randint(10, 30, (n, SCANS))
    codes[:, 0] = service
    codes[:, -1] = 4 + zone
    return TensorDataset(codes, service, zone)


class TraceReader(nn.Module):
    def __init__(self, config: TraceConfig) -> None:
        super().__init__()
        self.embed = nn.Embedding(30, config.embedding)
        if healthy:
            self.encoder = nn.LSTM(config.embedding, config.hidden, batch_first=True)
            with torch.no_grad():
                self.encoder.bias_ih_l0[config.hidden : 2 * config.hidden] = config.forget_bias
        else:
            self.encoder = nn.RNN(config.embedding, config.hidden, batch_first=True)
        self.service = nn.Linear(config.hidden, SERVICES)
        self.zone = nn.Linear(config.hidden, ZONES)

    def forward(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.encoder(self.embed(codes))
        return self.service(states[:, -1]), self.zone(states[:, -1])


@torch.no_grad()
def evaluate(model: TraceReader, loader: DataLoader) -> tuple[float, float]:
    model.eval()
    hits = torch.zeros(2)
    rows = 0
    for codes, service, zone in loader:
        by_service, by_zone = model(codes)
        hits[0] += (by_service.argmax(1) == service).sum()
        hits[1] += (by_zone.argmax(1) == zone).sum()
        rows += len(codes)
    model.train()
    return tuple((hits / rows).tolist())


def main() -> None:
    config = TraceConfig()
    train, valid = random_split(traces(2600), [2000, 600])
    loader = DataLoader(train, config.batch_size, shuffle=True, drop_last=True)
    val_loader = DataLoader(valid, 300)
    model = TraceReader(config)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(config.epochs):
        total = 0.0
        for codes, service, zone in loader:
            by_service, by_zone = model(codes)
            loss = criterion(by_service, service) + criterion(by_zone, zone)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            optimizer.step()
            total += loss.item()
        of_service, of_zone = evaluate(model, val_loader)
        mean = total / len(loader)
        print(
            f"epoch {epoch + 1:2d}  loss {mean:.4f}  service {of_service:.3f}  zone {of_zone:.3f}"
        )


main()
