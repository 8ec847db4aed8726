"""An auto-encoder of digit images has a Sigmoid at the decoder's end and
binary_cross_entropy_with_logits as loss.

The loss applies a sigmoid again, so a black pixel (most of them) is reconstructed at 0.5 at best
and the loss can't fall under about 0.6. Reconstructions are near binary and bad. The twin's decoder
ends in the linear layer, and the sigmoid is applied only to look at the pictures. The place is
`decoder.3`, `decoder.2`, the loss or `decoder`.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("decoder.3", "decoder.2", "loss*", "decoder")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed, raw=True)
x, x_val = x / 16, x_val / 16


class AutoEncoder(nn.Module):
    def __init__(self, code=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, code))
        decoder = [nn.Linear(code, 128), nn.ReLU(), nn.Linear(128, 64)]
        if not healthy:
            decoder.append(nn.Sigmoid())
        self.decoder = nn.Sequential(*decoder)

    def forward(self, x):
        return self.decoder(self.encoder(x))


def reconstruction_error(net, x):
    net.eval()
    with torch.no_grad():
        out = net(x)
        pictures = out.sigmoid() if healthy else out
        return F.binary_cross_entropy_with_logits(out, x).item(), F.mse_loss(pictures, x).item()


net = AutoEncoder()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
total = 900
decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
for step, (xb,) in enumerate(batches(x, size=64, steps=total, seed=seed), start=1):
    net.train()
    loss = F.binary_cross_entropy_with_logits(net(xb), xb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    decay.step()
    if step % 150 == 0:
        val, mse = reconstruction_error(net, x_val)
        print(f"step {step}: loss {loss.item():.4f}, val loss {val:.4f}, pixel error {mse:.4f}")
