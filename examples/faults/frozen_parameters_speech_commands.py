"""Spoken commands in two stages; the second stage still has the encoder of the first one frozen.

The recipe is: train the new head for a while on top of an encoder from another task, then free the
encoder and train both with a smaller rate. The helper that should free it is called for the first
stage only, with its switch off, so that `requires_grad` stays False to the end.
The place is the encoder. The twin frees it before the second stage.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("encoder",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

HPARAMS = {
    "pretrain_epochs": 3,
    "stage1": {"epochs": 1, "lr": 3e-3},
    "stage2": {"epochs": 6, "lr": 1e-3},
    "batch_size": 48,
    "words": 8,
    "mels": 16,
    "frames": 20,
}


def recordings(templates, n, noise):
    label = torch.randint(0, len(templates), (n,))
    delay = torch.randint(0, 5, (n,)).tolist()
    clips = torch.stack([t.roll(d, 1) for t, d in zip(templates[label], delay, strict=False)])
    loud = 0.5 + torch.rand(n, 1, 1)
    return loud * clips + noise * torch.randn(clips.shape), label


def templates(words, band):
    track = torch.randn(words, 2, HPARAMS["frames"]).cumsum(-1) * 0.6 + band
    mel = torch.arange(HPARAMS["mels"]).view(1, 1, -1, 1)
    return torch.exp(-((mel - track.unsqueeze(2)) ** 2) / 3).sum(1)


class Encoder(nn.Module):
    def __init__(self, mels, width=24):
        super().__init__()
        self.conv1 = nn.Conv1d(mels, width, 5, padding=2)
        self.conv2 = nn.Conv1d(width, width, 5, stride=2, padding=2)

    def forward(self, x):
        h = self.conv2(self.conv1(x).relu()).relu()
        return torch.cat([h.mean(-1), h.amax(-1)], dim=1)


class CommandModel(nn.Module):
    def __init__(self, encoder, n_words):
        super().__init__()
        self.encoder = encoder
        self.head = nn.Linear(48, n_words)

    def forward(self, x):
        return self.head(self.encoder(x))


def set_trainable(module, flag):
    for parameter in module.parameters():
        parameter.requires_grad_(flag)


def run_stage(model, train_set, val_set, epochs, lr, tag):
    loader = DataLoader(train_set, batch_size=HPARAMS["batch_size"], shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, epochs + 1):
        model.train()
        losses = []
        for clip, word in loader:
            loss = criterion(model(clip), word)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            clip, word = val_set.tensors
            accuracy = (model(clip).argmax(-1) == word).float().mean().item()
        print(f"{tag} {epoch}: loss {sum(losses) / len(losses):.3f} val_acc {accuracy:.3f}")


# the other task: yes or no, in a lower band
source = templates(2, 4.0)
pretrained = CommandModel(Encoder(HPARAMS["mels"]), 2)
run_stage(
    pretrained,
    TensorDataset(*recordings(source, 600, 0.3)),
    TensorDataset(*recordings(source, 200, 0.3)),
    HPARAMS["pretrain_epochs"],
    1e-3,
    "source",
)

target = templates(HPARAMS["words"], 9.0)
train_set = TensorDataset(*recordings(target, 1600, 0.5))
val_set = TensorDataset(*recordings(target, 500, 0.5))
model = CommandModel(pretrained.encoder, HPARAMS["words"])
set_trainable(model.encoder, False)
run_stage(model, train_set, val_set, **HPARAMS["stage1"], tag="head")
if healthy:
    set_trainable(model.encoder, True)
run_stage(model, train_set, val_set, **HPARAMS["stage2"], tag="both")
