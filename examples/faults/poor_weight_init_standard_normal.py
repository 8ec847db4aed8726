"""A character model of feed-forward layers starts with weights drawn from the standard normal
distribution.

`nn.init.normal_(p)` has the standard deviation 1, whatever the width, so that each layer enlarges
its input about tenfold and the logits are in the hundreds: the first loss is far above ln of the
alphabet, and the run is spent on taking it down. The twin divides by the square root of the width.
The place is `layers`, `layers.0`, `layers.2`, `layers.4`, `layers.0.weight`, `layers.2.weight` or
`layers.4.weight`.
"""

import torch
from data import arguments, text
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = (
    "layers",
    "layers.0",
    "layers.2",
    "layers.4",
    "layers.0.weight",
    "layers.2.weight",
    "layers.4.weight",
)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
CONTEXT, WIDTH = 10, 128


class CharMLP(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 12)
        self.layers = nn.Sequential(
            nn.Linear(12 * CONTEXT, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, WIDTH),
            nn.ReLU(),
            nn.Linear(WIDTH, vocabulary),
        )
        for layer in self.layers:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5 if healthy else 1.0)
                nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.layers(self.embed(x).flatten(1))


corpus, alphabet = text(seed, sentences=1500)
cut = int(0.85 * len(corpus))


def examples(part):
    windows = part.unfold(0, CONTEXT + 1, 1)
    return windows[:, :-1], windows[:, -1]


x_train, y_train = examples(corpus[:cut])
x_val, y_val = examples(corpus[cut:])
model = CharMLP(len(alphabet))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
running = []
for step in range(900):
    rows = torch.randint(0, len(x_train), (64,))
    loss = nn.functional.cross_entropy(model(x_train[rows]), y_train[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    running.append(loss.item())
    if step == 0:
        print(f"first loss {loss.item():.3f}")
    if step % 150 == 149:
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        model.train()
        val = nn.functional.cross_entropy(out, y_val).item()
        acc = (out.argmax(1) == y_val).float().mean().item()
        print(f"step {step + 1}: train {sum(running[-150:]) / 150:.3f} val {val:.3f} acc {acc:.3f}")
