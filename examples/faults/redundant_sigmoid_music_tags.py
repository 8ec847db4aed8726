"""Tags of songs (several each) from audio features; the shared MLP block ends in a sigmoid of its
own.

The tagger's head is the company's `mlp` helper, whose `final` activation is a sigmoid unless told
otherwise. The configuration picks the loss by name, "bce_logits", which applies another one.
Scores lie between 0 and 1, so probabilities between 0.5 and 0.73: "not this tag" cannot be said.
The place is the loss (and the head). The twin asks for `final=None`.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss*", "head", "head.3")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

TAGS, FEATURES = 10, 30
LOSSES = {"bce_logits": nn.BCEWithLogitsLoss, "mse": nn.MSELoss}
CONFIG = {
    "loss": "bce_logits",
    "width": 64,
    "lr": 2e-3,
    "epochs": 12,
    **({"final": None} if healthy else {}),
}


def mlp(inside, width, outside, dropout=0.1, final=nn.Sigmoid):
    layers = [nn.Linear(inside, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, outside)]
    return nn.Sequential(*layers, *([final()] if final else []))


def songs(n, directions):
    """Features made of the tags' directions; each tag is on about one song in five."""
    y = (torch.rand(n, TAGS) < 0.2).float()
    loud = 0.7 + 0.6 * torch.rand(n, TAGS)
    return (y * loud) @ directions + 0.7 * torch.randn(n, FEATURES), y


class SongTagger(nn.Module):
    def __init__(self, config):
        super().__init__()
        options = {"final": config["final"]} if "final" in config else {}
        self.trunk = nn.Sequential(
            nn.Linear(FEATURES, config["width"]), nn.LayerNorm(config["width"]), nn.GELU()
        )
        self.head = mlp(config["width"], config["width"], TAGS, **options)

    def forward(self, x):
        return self.head(self.trunk(x))

    @torch.no_grad()
    def tags(self, x):
        """Tags with a probability above one half."""
        return self(x).sigmoid() > 0.5


def micro_f1(said, true):
    both = (said & (true > 0.5)).sum().item()
    return 2 * both / max(said.sum().item() + true.sum().item(), 1)


directions = 0.7 * torch.randn(TAGS, FEATURES)
loader = DataLoader(TensorDataset(*songs(3000, directions)), batch_size=64, shuffle=True)
x_val, y_val = songs(800, directions)
model = SongTagger(CONFIG)
criterion = LOSSES[CONFIG["loss"]]()
optimizer = torch.optim.AdamW(model.parameters(), lr=CONFIG["lr"], weight_decay=0.01)
for epoch in range(CONFIG["epochs"]):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val = criterion(model(x_val), y_val).item()
    f1 = micro_f1(model.tags(x_val), y_val)
    print(f"epoch {epoch:2d} train {total / len(loader):.4f} val {val:.4f} F1 {f1:.3f}")
