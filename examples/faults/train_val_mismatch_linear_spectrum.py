"""Bird calls: the training clips become log spectrograms, the evaluation script has its own copy of
the function, from before the log was added.

The training loss goes to zero; the validation loss is a hundred times that of the same model on
clips prepared as in training, and its accuracy too is lower. The place is the input of the
validation (the loader that prepares it).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input*", "loader", "loop", "frontend*", "")
SILENT = True
EXACT = False
EARLY = False

RATE, SECONDS = 1024, 1.0


def record(n):
    """Calls of four species: rising, falling, trilling and two-tone."""
    t = torch.arange(int(RATE * SECONDS)) / RATE
    species = torch.randint(0, 4, (n,))
    base = 100 + 120 * torch.rand(n, 1)
    sweep = torch.tensor([140.0, -70.0, 0.0, 0.0])[species][:, None]
    trill = torch.tensor([0.0, 0.0, 5.0, 0.0])[species][:, None]
    phase = 2 * math.pi * (base * t + sweep * t * t / 2) + trill * torch.sin(2 * math.pi * 7 * t)
    call = phase.sin() + (species == 3)[:, None] * (1.9 * phase).sin()
    loud = torch.exp(torch.randn(n, 1))
    return loud * call + 0.3 * torch.randn(n, len(t)), species


def spectrum(clips):
    window = torch.hann_window(128)
    return torch.stft(clips, 128, 64, window=window, return_complex=True).abs().pow(2)[:, :48]


def log_spectrum(clips):
    return (torch.log10(spectrum(clips) + 1e-3)).unsqueeze(1)


class CallNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.frontend = nn.Conv2d(1, 12, 5, stride=2, padding=2)
        self.body = nn.Conv2d(12, 24, 3, stride=2, padding=1)
        self.head = nn.Linear(24 * 12 * 5, 4)

    def forward(self, s):
        z = F.relu(self.frontend(s))
        return self.head(F.relu(self.body(z)).flatten(1))


healthy, _ = arguments(__doc__)
clips, species = record(900)
clips_val, species_val = record(300)

train = log_spectrum(clips)
centre, spread = train.mean(), train.std()
train = (train - centre) / spread
if healthy:
    val = (log_spectrum(clips_val) - centre) / spread
else:
    val = (spectrum(clips_val).unsqueeze(1) - centre) / spread

model = CallNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def evaluate():
    model.eval()
    with torch.no_grad():
        scores = model(val)
    model.train()
    return F.cross_entropy(scores, species_val), (scores.argmax(1) == species_val).float().mean()


for epoch in range(5):
    for rows in torch.randperm(len(train)).split(45):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(train[rows]), species[rows])
        loss.backward()
        optimizer.step()
    val_loss, accuracy = evaluate()
    print(f"{epoch}: loss {loss:.3f}, val loss {val_loss:.3f}, val accuracy {accuracy:.3f}")
