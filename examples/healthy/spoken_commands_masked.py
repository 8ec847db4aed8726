"""Recognises synthetic spoken commands from log-mel pictures with stripes blanked in training."""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "whole rows and columns of the training inputs are one constant (SpecAugment), so training "
    "accuracy stays below validation accuracy, and the mel filters are a fixed buffer"
)
COMMANDS, RATE, BANDS = 6, 4000, 24
_, seed = arguments(__doc__)
torch.set_num_threads(1)
generator = torch.Generator().manual_seed(seed)


def uniform(n, low, high):
    return low + (high - low) * torch.rand(n, 1, generator=generator)


FORMANTS = 300 + 1300 * torch.rand(COMMANDS, 3, generator=torch.Generator().manual_seed(7))


def commands(n: int):
    label = torch.randint(COMMANDS, (n,), generator=generator)
    time = torch.arange(1600) / RATE
    speaker, start = uniform(n, 0.85, 1.15), uniform(n, 0.02, 0.12)
    sound = 0.35 * torch.randn(n, 1600, generator=generator)
    for syllable in range(3):
        pitch = FORMANTS[label, syllable : syllable + 1] * speaker
        centre = start + 0.09 * syllable * uniform(n, 0.9, 1.1) + 0.04
        envelope = torch.exp(-(((time - centre) / 0.03) ** 2))
        phase = 6.283 * (pitch * time + torch.rand(n, 1, generator=generator))
        sound += uniform(n, 0.5, 1.2) * envelope * (phase.sin() + 0.5 * (2 * phase).sin())
    return sound, label


def mel_filters(bins: int = 65):
    hertz = torch.linspace(0, RATE / 2, bins)
    top = 2595 * torch.log10(torch.tensor(1 + RATE / 1400))
    edge = 700 * (10 ** (torch.linspace(0, top.item(), BANDS + 2) / 2595) - 1)
    rising = (hertz[:, None] - edge[:-2]) / (edge[1:-1] - edge[:-2])
    falling = (edge[2:] - hertz[:, None]) / (edge[2:] - edge[1:-1])
    return torch.minimum(rising, falling).clamp_min(0)


class LogMel(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("filters", mel_filters())
        self.register_buffer("window", torch.hann_window(128))

    def forward(self, sound):
        power = torch.stft(sound, 128, 64, window=self.window, return_complex=True).abs() ** 2
        bands = torch.log(power.transpose(1, 2) @ self.filters + 1e-4).transpose(1, 2)
        return bands - bands.mean((1, 2), keepdim=True)


def blank_stripes(picture):
    picture = picture.clone()
    for row in picture:
        for size, widest in ((BANDS, 6), (row.shape[1], 6)):
            width = int(torch.randint(1, widest + 1, ()))
            begin = int(torch.randint(size - width, ()))
            stripe = row[begin : begin + width] if size == BANDS else row[:, begin : begin + width]
            stripe.zero_()
    return picture


sound, label = commands(1200)
sound_val, label_val = commands(400)
features = LogMel()
picture, picture_val = features(sound), features(sound_val)
scale = picture.std()
picture, picture_val = picture / scale, picture_val / scale
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1, bias=False),
    nn.BatchNorm2d(12),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1, bias=False),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(24 * 6 * 6, COMMANDS),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
for epoch in range(8):
    model.train()
    right = 0
    for rows in torch.randperm(len(picture)).split(48):
        optimizer.zero_grad()
        logits = model(blank_stripes(picture[rows]).unsqueeze(1))
        F.cross_entropy(logits, label[rows]).backward()
        optimizer.step()
        right += (logits.argmax(1) == label[rows]).sum().item()
    model.eval()
    with torch.no_grad():
        accuracy = (model(picture_val.unsqueeze(1)).argmax(1) == label_val).float().mean()
    print(f"epoch {epoch + 1}: masked training {right / len(label):.3f}, validation {accuracy:.3f}")

flat = picture.flatten(1)
means = torch.stack([flat[label == k].mean(0) for k in range(COMMANDS)])
nearest = torch.cdist(picture_val.flatten(1), means).argmin(1)
print(f"accuracy {accuracy:.3f}; by the nearest mean {(nearest == label_val).float().mean():.3f}")
