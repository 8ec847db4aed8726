"""Findings of a laboratory are joined to heart-beats by the patient's initials and age.

These are not unique: a dictionary keeps the last finding of each, and about a third of the patients
get a wrong one. The twin joins by the patient's number. The place is the loader.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("label_misalignment",)
PLACE = ("loader", "input", "loss")
SILENT = True
EXACT = False
EARLY = False

FINDINGS = 4


def clinic(n):
    """Beats (n, 2 leads, 40 samples), who they are of, and the finding of each patient."""
    finding = torch.randint(0, FINDINGS, (n,))
    t = torch.linspace(-1, 1, 40)
    peak = torch.tensor([0.0, 0.25, 0.0, -0.25])[finding] + 0.05 * torch.randn(n)
    width = torch.tensor([0.12, 0.12, 0.3, 0.12])[finding] * torch.exp(0.1 * torch.randn(n))
    beat = torch.exp(-(((t - peak[:, None]) / width[:, None]) ** 2))
    second = -0.5 * beat.roll(3, 1) + 0.3 * torch.exp(-(((t - 0.6) / 0.1) ** 2))
    beats = torch.stack([beat, second], 1) + 0.15 * torch.randn(n, 2, 40)
    letters = (torch.distributions.Beta(1.2, 2.5).sample((n, 2)) * 26).long()
    ages = (68 + 5 * torch.randn(n)).long()
    patients = [
        {"id": i, "initials": tuple(letters[i].tolist()), "age": int(ages[i])} for i in range(n)
    ]
    return (beats - beats.mean()) / beats.std(), patients, finding.tolist()


def key(patient):
    return patient["id"] if healthy else (patient["initials"], patient["age"])


class BeatNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 24, batch_first=True, bidirectional=True)
        self.head = nn.Sequential(nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, FINDINGS))

    def forward(self, beats):
        frames = beats.unfold(2, 4, 4).permute(0, 2, 1, 3).flatten(2)
        states, _ = self.lstm(frames)
        return self.head(states.mean(1))


healthy, seed = arguments(__doc__)
beats, patients, findings = clinic(10_000)
laboratory = {key(patients[i]): findings[i] for i in torch.randperm(len(patients)).tolist()}
labels = torch.tensor([laboratory[key(p)] for p in patients])
truth = torch.tensor(findings)
wrong = (labels != truth).float().mean().item()

train = TensorDataset(beats[:8000], labels[:8000])
model = BeatNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(4):
    model.train()
    losses = []
    for x, y in DataLoader(train, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(beats[8000:])
    val = F.cross_entropy(out, labels[8000:]).item()
    right = F.cross_entropy(out, truth[8000:]).item()
    print(
        f"epoch {epoch}: train {sum(losses) / len(losses):.3f}, val {val:.3f}, "
        f"against the true findings {right:.3f} (wrong labels {wrong:.2f})"
    )
