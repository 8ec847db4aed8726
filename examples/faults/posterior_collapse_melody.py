"""A recurrent VAE of short melodies whose decoder is always shown the true last notes, with the
divergence at full weight from the first step.

With the notes before it the decoder needs no code: the divergence goes to zero within a few dozen
steps, and melodies decoded from a code have nothing of the melody it was made from. The twin drops
most of the shown notes and warms the weight up. The place is the decoder's input and the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "posterior_collapse"
ACCEPT = ()
PLACE = ("loss", "model", "decoder*", "encoder*", "to_code*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

NOTES, LENGTH, LATENT, BLANK = 12, 8, 6, 12
NOTES_DROPPED = 0.75 if healthy else 0.0
WARM_UP = 250 if healthy else 1
STEPS = 600


def melodies(count):
    start = torch.randint(0, NOTES, (count, 1))
    stride = torch.randint(1, 4, (count, 1)) * (torch.randint(0, 2, (count, 1)) * 2 - 1)
    melody = (start + stride * torch.arange(LENGTH)) % NOTES
    slip = torch.rand(count, LENGTH) < 0.08
    return torch.where(slip, torch.randint(0, NOTES, melody.shape), melody)


class MelodyVAE(nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.note = nn.Embedding(NOTES + 1, 16)
        self.encoder = nn.GRU(16, width, batch_first=True)
        self.to_code = nn.Linear(width, 2 * LATENT)
        self.decoder = nn.GRU(16 + LATENT, width, batch_first=True)
        self.head = nn.Linear(width, NOTES)

    def encode(self, melody):
        return self.to_code(self.encoder(self.note(melody))[1][0]).chunk(2, 1)

    def decode(self, shown, z):
        steps = torch.cat([self.note(shown), z.unsqueeze(1).expand(-1, shown.shape[1], -1)], 2)
        return self.head(self.decoder(steps)[0])


def terms(model, melody, dropped):
    mean, log_var = model.encode(melody)
    z = mean + torch.randn_like(mean) * (log_var / 2).exp()
    shown = F.pad(melody[:, :-1], (1, 0), value=BLANK)
    shown = torch.where(torch.rand(shown.shape) < dropped, BLANK, shown)
    score = model.decode(shown, z)
    reconstruction = F.cross_entropy(score.flatten(0, 1), melody.flatten(), reduction="sum")
    divergence = 0.5 * (mean**2 + log_var.exp() - 1 - log_var).sum()
    return reconstruction / len(melody), divergence / len(melody)


def notes_from_code(model, melody):
    mean, _ = model.encode(melody)
    score = model.decode(torch.full_like(melody, BLANK), mean)
    return (score.argmax(2) == melody).float().mean()


def main():
    data = melodies(3000)
    train, val = data[:2500], data[2500:]
    model = MelodyVAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for step in range(1, STEPS + 1):
        batch = train[torch.randint(0, len(train), (48,))]
        weight = min(1.0, step / WARM_UP)
        reconstruction, divergence = terms(model, batch, NOTES_DROPPED)
        loss = reconstruction + weight * divergence
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        if step % 100 == 0:
            with torch.no_grad():
                error, kl = terms(model, val, NOTES_DROPPED)
                right = notes_from_code(model, val)
            print(
                f"step {step:3d} weight {weight:.2f} loss {loss.item():.2f} validation: notes "
                f"{error:.2f} divergence {kl:.3f} notes right from the code {right:.3f}"
            )


main()
