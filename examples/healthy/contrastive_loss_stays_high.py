"""Contrastive training on digit pictures whose loss hardly falls after its first epochs.

The person sees a loss that goes from 5.1 to 3.7 and stays there, and fears that nothing is learnt;
but the label of the most similar picture is right far more often than with an untrained net.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

ODD = (
    "the loss stays at 3.7 of the 5.5 of guessing: of 128 pictures a dozen show the same digit; "
    "at temperature 0.3 even a perfect answer has a floor; the neighbours show what is learnt"
)
_, seed = arguments(__doc__)

BATCH, TEMPERATURE = 128, 0.3


def view(pictures):
    """Another look at the same pictures: shifted by a pixel, patchy, noisy, of another strength."""
    n = len(pictures)
    padded = F.pad(pictures, (1, 1, 1, 1), value=pictures.min().item())
    down, right = torch.randint(0, 3, (2, n))
    rows = (torch.arange(8) + down[:, None])[:, :, None]
    columns = (torch.arange(8) + right[:, None])[:, None, :]
    shifted = padded[torch.arange(n)[:, None, None], 0, rows, columns].unsqueeze(1)
    kept = (torch.rand(n, 1, 4, 4) > 0.15).float().repeat_interleave(2, 2).repeat_interleave(2, 3)
    strength = 1 + 0.2 * torch.randn(n, 1, 1, 1)
    return strength * shifted * kept + 0.2 * torch.randn_like(shifted)


class Encoder(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.BatchNorm2d(2 * width),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.project = nn.Sequential(nn.Linear(8 * width, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, pictures):
        return F.normalize(self.project(self.backbone(pictures)), dim=1)


def info_nce(a, b):
    """Each view has to find the other view of its picture among all the rest."""
    both = torch.cat([a, b])
    similar = both @ both.T / TEMPERATURE
    similar = similar - 1e9 * torch.eye(len(both))
    partner = torch.arange(len(both)).roll(len(a))
    log_p = similar - similar.logsumexp(1, keepdim=True)
    return -log_p[torch.arange(len(both)), partner].mean()


@torch.no_grad()
def neighbours(encoder, x, y, x_val, y_val, labelled=60):
    """Accuracy of taking the label of the most similar of a few labelled pictures."""
    encoder.eval()
    nearest = (encoder(x_val) @ encoder(x[:labelled]).T).argmax(1)
    return (y[:labelled][nearest] == y_val).float().mean().item()


def main():
    x, y, x_val, y_val = images(seed)
    encoder = Encoder()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=2e-3, weight_decay=1e-4)
    print(f"before training: nearest neighbour {neighbours(encoder, x, y, x_val, y_val):.4f}")
    for epoch in range(1, 26):
        encoder.train()
        losses = []
        for rows in torch.randperm(len(x)).split(BATCH):
            if len(rows) < BATCH:
                continue
            loss = info_nce(encoder(view(x[rows])), encoder(view(x[rows])))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 3 == 1:
            accuracy = neighbours(encoder, x, y, x_val, y_val)
            print(f"epoch {epoch:2d}  loss {sum(losses) / len(losses):.4f}  nearest {accuracy:.4f}")


if __name__ == "__main__":
    main()
