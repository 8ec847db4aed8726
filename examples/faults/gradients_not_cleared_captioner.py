"""A captioner with two optimizers, of which the decoder's is cleared twice, the encoder's never.

A line was copied and its name not changed: decoder_optimizer.zero_grad() stands twice and
encoder_optimizer.zero_grad() not at all. The encoder goes on stepping along the sum of all
gradients since the start. The place is the loop (the gradients of the encoder).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "encoder*", "optimizer", "*conv*", "*project*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIZE = 10
WORDS = ["<start>", "<end>", "bright", "dim", "square", "cross", "bar", "left", "middle", "right"]
CODE = {word: number for number, word in enumerate(WORDS)}
SENTENCE = 5


def scene():
    light, shape, place = (torch.randint(0, n, (1,)).item() for n in (2, 3, 3))
    picture = 0.25 * torch.randn(SIZE, SIZE)
    top, left = torch.randint(1, 6, (1,)).item(), (0, 3, 6)[place]
    mark = torch.zeros(4, 4)
    if shape == 0:
        mark[:] = 1
        mark[1:3, 1:3] = 0
    elif shape == 1:
        mark[1, :], mark[:, 1] = 1, 1
    else:
        mark[1:3, :] = 1
    picture[top : top + 4, left : left + 4] += mark * (2.0 if light == 0 else 0.9)
    told = (("bright", "dim")[light], WORDS[4 + shape], WORDS[7 + place])
    return picture, [0] + [CODE[word] for word in told] + [1]


def scenes(count):
    pictures, sentences = zip(*(scene() for _ in range(count)), strict=True)
    return torch.stack(pictures).unsqueeze(1), torch.tensor(sentences)


class Encoder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 16, 3, padding=1, stride=2)
        self.project = nn.Linear(16 * 25, width)

    def forward(self, x):
        h = F.relu(self.conv2(F.relu(self.conv1(x))))
        return torch.tanh(self.project(h.flatten(1)))


class Decoder(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.words = nn.Embedding(len(WORDS), 16)
        self.cell = nn.GRUCell(16, width)
        self.out = nn.Linear(width, len(WORDS))

    def forward(self, state, sentences):
        scores = []
        for position in range(SENTENCE - 1):
            state = self.cell(self.words(sentences[:, position]), state)
            scores.append(self.out(state))
        return torch.stack(scores, dim=1)

    def tell(self, state):
        word = torch.zeros(len(state), dtype=torch.long)
        told = [word]
        for _ in range(SENTENCE - 1):
            state = self.cell(self.words(word), state)
            word = self.out(state).argmax(1)
            told.append(word)
        return torch.stack(told, dim=1)


def main():
    pictures, sentences = scenes(1800)
    scale = pictures[:1400].std()
    pictures = (pictures - pictures[:1400].mean()) / scale
    encoder, decoder = Encoder(), Decoder()
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=2e-3)
    for epoch in range(14):
        encoder.train()
        decoder.train()
        total = 0.0
        for rows in torch.randperm(1400).split(50):
            scores = decoder(encoder(pictures[rows]), sentences[rows])
            loss = F.cross_entropy(scores.flatten(0, 1), sentences[rows, 1:].flatten())
            decoder_optimizer.zero_grad()
            if healthy:
                encoder_optimizer.zero_grad()
            else:
                decoder_optimizer.zero_grad()
            loss.backward()
            encoder_optimizer.step()
            decoder_optimizer.step()
            total += loss.item() * len(rows)
        encoder.eval()
        decoder.eval()
        with torch.no_grad():
            told = decoder.tell(encoder(pictures[1400:]))
        words = (told == sentences[1400:])[:, 1:4].float().mean().item()
        whole = (told == sentences[1400:]).all(1).float().mean().item()
        print(
            f"epoch {epoch + 1:2d} | loss {total / 1400:.4f} | words {words:.3f} | "
            f"sentences {whole:.3f}"
        )


main()
