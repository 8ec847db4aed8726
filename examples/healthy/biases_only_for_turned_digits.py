"""Adapts a small vision transformer to turned digits by training its biases and its head alone."""

import torch
from data import arguments, batches, images
from torch import nn

ODD = (
    "in the second stage every matrix inside is frozen and only some hundreds of biases and "
    "norms learn, at a large rate: BitFit; the head starts from zero so its input has no "
    "gradient at first"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

WIDTH = 32
x, y, x_val, y_val = images(seed)
half = len(x) // 2
upright, upright_labels = x[:half], y[:half]
turned, turned_labels = x[half:].transpose(2, 3).flip(2), y[half:]
turned_val = x_val.transpose(2, 3).flip(2)


class RowTransformer(nn.Module):
    """Each row of pixels is a token."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(8, WIDTH)
        self.position = nn.Parameter(0.1 * torch.randn(1, 8, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, pictures):
        tokens = self.embed(pictures.squeeze(1)) + self.position
        return self.head(self.norm(self.body(tokens).mean(1)))


net = RowTransformer()
criterion = nn.CrossEntropyLoss()


@torch.no_grad()
def accuracy(pictures, labels):
    net.eval()
    return (net(pictures).argmax(1) == labels).float().mean().item()


def train(pictures, labels, optimizer, steps, name):
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step, (rows, wanted) in enumerate(batches(pictures, labels, size=64, steps=steps)):
        net.train()
        loss = criterion(net(rows), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"{name}: step {step + 1}  loss {loss.item():.3f}")


train(upright, upright_labels, torch.optim.AdamW(net.parameters(), lr=3e-3), 400, "upright")
print(f"upright: validation {accuracy(x_val, y_val):.3f}")
before = accuracy(turned_val, y_val)

small = [p for name, p in net.named_parameters() if "bias" in name or "norm" in name]
net.requires_grad_(False)
for parameter in (*small, net.head.weight):
    parameter.requires_grad_(True)
pretrained = {name: value.clone() for name, value in net.state_dict().items()}
results = {}
for name, chosen in (("head", list(net.head.parameters())), ("biases and head", None)):
    net.load_state_dict(pretrained)
    nn.init.zeros_(net.head.weight)
    nn.init.zeros_(net.head.bias)
    trained = chosen or [p for p in net.parameters() if p.requires_grad]
    train(turned, turned_labels, torch.optim.Adam(trained, lr=1e-2), 300, name)
    results[name] = accuracy(turned_val, y_val)
print(
    f"turned digits: untouched {before:.3f}, "
    + ", ".join(f"{n} {a:.3f}" for n, a in results.items())
)
