"""Power spectra by a 1-D convolutional net; the logarithm stands inside `if self.training_set:`.

The log compression was added next to the gain jitter, in the branch that only the training set
takes: validation gets raw powers over five decades. Training goes well, the validation loss is
many times the training loss from the first epoch, and one suspects overfitting. The place is the
loader.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("", "loader")
SILENT = True
EXACT = False
EARLY = True

MEAN, STD = 0.8, 1.9


class Spectra(Dataset):
    def __init__(self, signal, shape, training_set, log_for_both):
        power = torch.fft.rfft(signal * torch.hann_window(signal.shape[1]), dim=1).abs() ** 2
        self.power, self.shape = power, shape
        self.training_set, self.log_for_both = training_set, log_for_both

    def __len__(self):
        return len(self.shape)

    def __getitem__(self, i):
        spectrum = self.power[i]
        if self.training_set:
            spectrum = spectrum * torch.empty(1).uniform_(0.8, 1.25)
            spectrum = (torch.log(spectrum + 1e-3) - MEAN) / STD
        elif self.log_for_both:
            spectrum = (torch.log(spectrum + 1e-3) - MEAN) / STD
        return spectrum[None], self.shape[i]


healthy, seed = arguments(__doc__)
signal, shape = waves(seed, n=1600, length=64)
signal = signal.squeeze(-1)
train_set = Spectra(signal[:1200], shape[:1200], True, healthy)
val_set = Spectra(signal[1200:], shape[1200:], False, healthy)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=200)

net = nn.Sequential(
    nn.Conv1d(1, 16, 5, padding=2),
    nn.GELU(),
    nn.AvgPool1d(2),
    nn.Conv1d(16, 24, 3, padding=1),
    nn.GELU(),
    nn.AvgPool1d(2),
    nn.Flatten(),
    nn.Dropout(0.2),
    nn.Linear(24 * 8, 3),
)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.01)
criterion = nn.CrossEntropyLoss()
for epoch in range(16):
    net.train()
    for spectrum, target in train_loader:
        loss = criterion(net(spectrum), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    val_loss = hits = 0
    with torch.no_grad():
        for spectrum, target in val_loader:
            out = net(spectrum)
            val_loss += criterion(out, target).item() / len(val_loader)
            hits += (out.argmax(1) == target).sum().item()
print(f"loss {loss.item():.3f}, val loss {val_loss:.3f}, val accuracy {hits / len(val_set):.3f}")
