"""A denoising auto-encoder whose rate is "scaled linearly" with the reference batch of another
recipe.

base_lr was given for batches of 256; the formula divides by 16, as a detection recipe does. SGD
with Nesterov momentum throws the weights about, units die and the reconstruction stays at the mean
image. The place is the optimizer.
"""

import torch
from data import arguments, digits
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
config = {"base_lr": 0.4, "batch_size": 64, "epochs": 16, "noise": 0.3, "width": 96, "code": 24}


class Denoiser(nn.Module):
    def __init__(self, width, code):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(64, width), nn.ReLU(), nn.Linear(width, code), nn.ReLU()
        )
        self.decoder = nn.Sequential(nn.Linear(code, width), nn.ReLU(), nn.Linear(width, 64))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def scaled_lr():
    if healthy:
        return config["base_lr"] * config["batch_size"] / 256
    return config["base_lr"] * config["batch_size"] / 16


clean, _, clean_val, _ = digits(seed)
model = Denoiser(config["width"], config["code"])
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=scaled_lr(), momentum=0.9, nesterov=True)
g = torch.Generator().manual_seed(seed)
noise_val = config["noise"] * torch.randn(clean_val.shape, generator=g)

for epoch in range(config["epochs"]):
    model.train()
    running = []
    for rows in torch.randperm(len(clean), generator=g).split(config["batch_size"]):
        target = clean[rows]
        noisy = target + config["noise"] * torch.randn(target.shape, generator=g)
        loss = criterion(model(noisy), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running.append(loss.item())
    model.eval()
    with torch.no_grad():
        val_loss = criterion(model(clean_val + noise_val), clean_val).item()
print(f"loss {sum(running) / len(running):.4f}, validation loss {val_loss:.4f}")
