"""A recogniser of digit strips trained by CTC that reads nothing but blanks in its first epochs.

The person sees a loss that drops fast to about 2 and then creeps, with an empty text for each strip
and not one strip read whole; some epochs later all are read. So it is with CTC.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = (
    "for the first epochs every output is the blank and no strip is right: with unknown places the "
    "blank is the best guess everywhere, until the first symbols find their places"
)
_, seed = arguments(__doc__)

SYMBOLS = 6
HEIGHT, LENGTH = 10, 40


class MeterStrips(Dataset):
    """Strips of 3 to 5 glyphs of changing width on a noisy ground."""

    def __init__(self, n, generator):
        glyphs = torch.rand(SYMBOLS, HEIGHT, 5, generator=torch.Generator().manual_seed(77)) > 0.5
        self.items = []
        for _ in range(n):
            count = int(torch.randint(3, 6, (1,), generator=generator))
            text = torch.randint(0, SYMBOLS, (count,), generator=generator)
            strip = torch.zeros(HEIGHT, LENGTH)
            at = int(torch.randint(0, 4, (1,), generator=generator))
            for symbol in text:
                strip[:, at : at + 5] = glyphs[symbol].float()
                at += 5 + int(torch.randint(1, 4, (1,), generator=generator))
            strip += 0.25 * torch.randn(HEIGHT, LENGTH, generator=generator)
            self.items.append(((strip - 0.33) / 0.52, text + 1))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def collate(items):
    return {
        "strips": torch.stack([strip for strip, _ in items]),
        "texts": torch.cat([text for _, text in items]),
        "text_lengths": torch.tensor([len(text) for _, text in items]),
    }


class Reader(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.columns = nn.Sequential(
            nn.Conv1d(HEIGHT, width, 5, padding=2),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.context = nn.GRU(width, 32, bidirectional=True)
        self.head = nn.Linear(64, SYMBOLS + 1)

    def forward(self, strips):
        seen, _ = self.context(self.columns(strips).permute(2, 0, 1))
        return self.head(seen).log_softmax(-1)


def ctc(log_p, batch):
    frames, n, _ = log_p.shape
    lengths = torch.full((n,), frames)
    return F.ctc_loss(log_p, batch["texts"], lengths, batch["text_lengths"])


def read(log_p):
    """The best path: repeated symbols joined, blanks left out."""
    texts = []
    for path in log_p.argmax(-1).T.tolist():
        texts.append(
            [s for s, before in zip(path, [0, *path[:-1]], strict=True) if s and s != before]
        )
    return texts


@torch.no_grad()
def validate(model, loader):
    model.eval()
    total, right, blank, seen = 0.0, 0, 0.0, 0
    for batch in loader:
        log_p = model(batch["strips"])
        n = len(batch["text_lengths"])
        total += ctc(log_p, batch).item() * n
        wanted = [part.tolist() for part in batch["texts"].split(batch["text_lengths"].tolist())]
        right += sum(a == b for a, b in zip(read(log_p), wanted, strict=True))
        blank += (log_p.argmax(-1) == 0).float().mean().item() * n
        seen += n
    return total / seen, right / seen, blank / seen


def main():
    generator = torch.Generator().manual_seed(400 + seed)
    train = DataLoader(MeterStrips(900, generator), 32, shuffle=True, collate_fn=collate)
    val = DataLoader(MeterStrips(300, generator), 100, collate_fn=collate)
    model = Reader()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.5e-3)
    for epoch in range(1, 17):
        model.train()
        running = 0.0
        for batch in train:
            loss = ctc(model(batch["strips"]), batch)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            running += loss.item()
        val_loss, whole, blank = validate(model, val)
        print(
            f"epoch {epoch:2d}  ctc {running / len(train):.3f}  val ctc {val_loss:.3f}  "
            f"whole strips {whole:.3f}  blank frames {blank:.3f}"
        )


if __name__ == "__main__":
    main()
