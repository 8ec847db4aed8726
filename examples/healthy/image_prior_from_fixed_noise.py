"""Denoises one picture by fitting an untrained convolutional net to it (deep image prior)."""

import torch
from data import arguments
from torch import nn

ODD = (
    "the input is random noise, the target is one noisy picture, and the run ends while the loss "
    "falls: at the variance of the noise, which is known, since below that the net copies noise"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

SIZE, SIGMA, LONGEST = 32, 0.15, 1500


def scene():
    """Three discs, a bar and a soft gradient of light."""
    rows, columns = torch.meshgrid(
        torch.linspace(0, 1, SIZE), torch.linspace(0, 1, SIZE), indexing="ij"
    )
    picture = 0.2 + 0.2 * columns
    for _ in range(3):
        middle, radius, light = torch.rand(2), 0.1 + 0.15 * torch.rand(1), 0.2 + 0.5 * torch.rand(1)
        inside = (rows - middle[0]) ** 2 + (columns - middle[1]) ** 2 < radius**2
        picture = torch.where(inside, light, picture)
    picture[:, SIZE // 2 : SIZE // 2 + 3] = 0.9
    return picture.view(1, 1, SIZE, SIZE)


def psnr(guess, truth):
    return -10 * torch.log10((guess - truth).square().mean()).item()


def block(inputs, outputs):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, padding_mode="reflect"),
        nn.BatchNorm2d(outputs),
        nn.LeakyReLU(0.1),
    )


class Hourglass(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.outer, self.inner = block(8, width), block(width, width)
        self.back, self.last = block(width, width), nn.Conv2d(width, 1, 1)
        self.pool, self.up = nn.AvgPool2d(2), nn.Upsample(scale_factor=2, mode="bilinear")

    def forward(self, z):
        hidden = self.inner(self.pool(self.outer(z)))
        hidden = self.inner(self.pool(hidden))
        return self.last(self.up(self.back(self.up(hidden)))).sigmoid()


clean = scene()
noisy = clean + SIGMA * torch.randn_like(clean)
noise_input = 0.3 * torch.rand(1, 8, SIZE, SIZE)
net = Hourglass()
optimizer = torch.optim.Adam(net.parameters(), lr=1.5e-3)
average = None

for step in range(LONGEST):
    jittered = noise_input + 0.02 * torch.randn_like(noise_input)
    restored = net(jittered)
    loss = nn.functional.mse_loss(restored, noisy)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    picture = restored.detach()
    average = picture if average is None else 0.95 * average + 0.05 * picture
    if step % 100 == 0:
        print(f"step {step:4d}  loss {loss.item():.4f}  (variance of the noise {SIGMA**2:.4f})")
    if loss.item() <= SIGMA**2:
        break

smooth = nn.functional.avg_pool2d(nn.functional.pad(noisy, (1, 1, 1, 1), mode="reflect"), 3, 1)
print(f"ended after {step + 1} steps with loss {loss.item():.4f}")
print(
    f"PSNR: noisy {psnr(noisy, clean):.1f} dB, 3x3 mean {psnr(smooth, clean):.1f} dB, "
    f"prior {psnr(average, clean):.1f} dB"
)
