"""A denoising autoencoder is trained on all digits; then its encoder is frozen and a linear head
learns from few labels.

Odd: most parameters get no gradient in the second half, the encoder is in eval mode while the
head trains, and its output is detached. Sound: the encoder was trained before, in the same run,
and only the head is meant to learn.
"""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = (
    "A denoising autoencoder is trained on all digits; then its encoder is frozen and a "
    "linear head learns from few labels"
)
_, seed = arguments(__doc__)


def make_parts():
    encoder = nn.Sequential(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 32))
    decoder = nn.Sequential(nn.ReLU(), nn.Linear(32, 128), nn.ReLU(), nn.Linear(128, 64))
    return encoder, decoder


def pretrain(encoder, decoder, x, x_val, steps):
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=2e-3)
    for step, (xb,) in enumerate(batches(x, size=64, steps=steps, seed=seed), 1):
        noisy = xb + 0.4 * torch.randn_like(xb)
        loss = nn.functional.mse_loss(decoder(encoder(noisy)), xb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            encoder.eval()
            with torch.no_grad():
                val = nn.functional.mse_loss(decoder(encoder(x_val)), x_val).item()
            encoder.train()
            print(f"pretraining {step}: loss {loss.item():.3f}, validation {val:.3f}")


def probe(encoder, x, y, x_val, y_val, steps):
    encoder.eval().requires_grad_(False)
    head = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    for step, (xb, yb) in enumerate(batches(x, y, size=50, steps=steps, seed=seed), 1):
        with torch.no_grad():
            features = encoder(xb)
        loss = nn.functional.cross_entropy(head(features), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            with torch.no_grad():
                out = head(encoder(x_val))
            accuracy = (out.argmax(1) == y_val).float().mean().item()
            val = nn.functional.cross_entropy(out, y_val).item()
            print(
                f"head {step}: loss {loss.item():.3f}, val loss {val:.3f}, val accuracy {accuracy:.3f}"  # noqa: E501
            )


x, y, x_val, y_val = digits(seed)
encoder, decoder = make_parts()
pretrain(encoder, decoder, x, x_val, steps=1000)
probe(encoder, x[:500], y[:500], x_val, y_val, steps=300)
