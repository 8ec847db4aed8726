"""Digits: an encoder is trained on unlabelled pictures first; then it is frozen and a probe is
fitted.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "the whole encoder is frozen and absent from the second optimizer: it was pretrained in the "
    "same program"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)

encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 32))
decoder = nn.Sequential(nn.ReLU(), nn.Linear(32, 96), nn.ReLU(), nn.Linear(96, 64))

# 1. a denoising autoencoder on the pictures alone
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
for epoch in range(15):
    encoder.train(), decoder.train()
    total = 0.0
    loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
    for (clean,) in loader:
        noisy = clean + 0.3 * torch.randn_like(clean)
        loss = nn.functional.mse_loss(decoder(encoder(noisy)), clean)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    encoder.eval(), decoder.eval()
    with torch.no_grad():
        val_loss = nn.functional.mse_loss(decoder(encoder(x_val)), x_val).item()
    if epoch % 5 == 4:
        print(f"autoencoder {epoch + 1:2d}: loss {total:.3f} val {val_loss:.3f}")

# 2. a linear probe on the frozen code
encoder.requires_grad_(False)
probe = nn.Sequential(encoder, nn.Linear(32, 10))
optimizer = torch.optim.Adam(probe[1].parameters(), lr=1e-2)
for epoch in range(12):
    probe[1].train()
    total = 0.0
    loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
    for xb, yb in loader:
        loss = nn.functional.cross_entropy(probe(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    probe.eval()
    with torch.no_grad():
        logits = probe(x_val)
    accuracy = (logits.argmax(1) == y_val).float().mean()
    val_loss = nn.functional.cross_entropy(logits, y_val)
    print(f"probe {epoch + 1:2d}: loss {total:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
