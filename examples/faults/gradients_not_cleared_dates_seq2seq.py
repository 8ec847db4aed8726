"""An encoder and a decoder with an optimizer each translate dates, and one is cleared twice.

As in the well-known tutorial there are two optimizers. Their `zero_grad` lines were copied, and
the second copy was not changed: the decoder's gradients are cleared twice, the encoder's never, so
the encoder walks along the sum of all gradients since the start. The place is the loop (the
encoder's parameters). The twin clears both.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "encoder", "encoder.embed.weight", "embed.weight", "gru.weight_hh_l0")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WORDS = ["<pad>", "<go>", "of", ",", "-", *"0123456789", *MONTHS, *map(str, range(10, 32))]
NUMBER = {w: i for i, w in enumerate(WORDS)}


class Dates(Dataset):
    """Dates as people write them, and as the archive does: `14 of mar 1 7` to `1 7 - 0 3 - 1 4`."""

    def __init__(self, days, g):
        self.rows = []
        for day in days:
            y, m, d = 2010 + day // 372, day // 31 % 12, day % 31 + 1
            style = int(torch.randint(0, 3, (1,), generator=g))
            year, dd = list(str(y)[2:]), [str(d)]
            source = (
                [*dd, "of", MONTHS[m], *year],
                [MONTHS[m], *dd, ",", *year],
                [*year, MONTHS[m], *dd],
            )[style]
            target = [*year, "-", *f"{m + 1:02d}", "-", *f"{d:02d}"]
            source = ["<pad>"] * (5 - len(source)) + source
            self.rows.append(
                [torch.tensor([NUMBER[w] for w in s]) for s in (source, ["<go>", *target])]
            )

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), 32, padding_idx=0)
        self.gru = nn.GRU(32, hidden, batch_first=True)

    def forward(self, source):
        return self.gru(self.embed(source))[1]


class Decoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS), 32)
        self.gru = nn.GRU(32, hidden, batch_first=True)
        self.out = nn.Linear(hidden, len(WORDS))

    def forward(self, target, state):
        states, state = self.gru(self.embed(target), state)
        return self.out(states), state


g = torch.Generator().manual_seed(seed)
days = torch.randperm(372 * 10, generator=g)[:3500].tolist()
train = DataLoader(Dates(days[:3000], g), batch_size=32, shuffle=True)
val = DataLoader(Dates(days[3000:], g), batch_size=250)
encoder, decoder = Encoder(80), Decoder(80)
enc_optimizer = torch.optim.Adam(encoder.parameters(), lr=5e-3)
dec_optimizer = torch.optim.Adam(decoder.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(8):
    encoder.train(), decoder.train()
    for source, target in train:
        (enc_optimizer if healthy else dec_optimizer).zero_grad()
        dec_optimizer.zero_grad()
        scores, _ = decoder(target[:, :-1], encoder(source))
        loss = criterion(scores.flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        enc_optimizer.step()
        dec_optimizer.step()
    encoder.eval(), decoder.eval()
    right = 0
    with torch.no_grad():
        for source, target in val:
            state, word, said = encoder(source), target[:, :1], []
            for _ in range(target.shape[1] - 1):
                scores, state = decoder(word, state)
                word = scores.argmax(-1)
                said.append(word)
            right += (torch.cat(said, 1) == target[:, 1:]).all(1).sum().item()
    print(f"epoch {epoch} train loss {loss.item():.3f} whole dates right {right / 500:.3f}")
