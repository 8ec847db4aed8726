"""A seq2seq network that writes words backwards has an optimizer for the encoder and one for the
decoder, and only the decoder's is ever stepped.

Both are zeroed and the clipped gradients are there, but `encoder_optimizer.step()` is missing, so
the encoder stays as it was drawn. The loss falls all the same, since the decoder makes the best of
random codes. The place is the optimizer of the encoder, in the loop.
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "optimizer_never_steps"
ACCEPT = ("frozen_parameters", "parameters_not_in_optimizer")
PLACE = ("optimizer", "loop", "encoder", "encoder.*", "*embedding*", "*gru*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

LETTERS = "aeioubdgklmnprst"
START, LENGTH = len(LETTERS), 5


def made_up_words(n):
    """Syllables of a consonant and a vowel, with an odd letter at the front or the end."""
    words = []
    for _ in range(n):
        word = "".join(random.choice(LETTERS[5:]) + random.choice(LETTERS[:5]) for _ in "ab")
        odd = random.choice(LETTERS)
        words.append(word + odd if random.random() < 0.5 else odd + word)
    return torch.tensor([[LETTERS.index(letter) for letter in word] for word in words])


class EncoderRNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 16)
        self.gru = nn.GRU(16, hidden, batch_first=True)

    def forward(self, words):
        return self.gru(self.embedding(words))[1]


class DecoderRNN(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS) + 1, 16)
        self.gru = nn.GRU(16, hidden, batch_first=True)
        self.out = nn.Linear(hidden, len(LETTERS))

    def forward(self, inputs, hidden):
        states, hidden = self.gru(self.embedding(inputs), hidden)
        return self.out(states), hidden


def shifted(targets):
    return torch.cat([torch.full((len(targets), 1), START), targets[:, :-1]], 1)


@torch.no_grad()
def letters_right(encoder, decoder, words):
    encoder.eval(), decoder.eval()
    hidden, letter, written = encoder(words), torch.full((len(words), 1), START), []
    for _ in range(LENGTH):
        scores, hidden = decoder(letter, hidden)
        letter = scores.argmax(-1)
        written.append(letter)
    return (torch.cat(written, 1) == words.flip(1)).float().mean().item()


def main():
    words = torch.unique(made_up_words(5000), dim=0)
    words = words[torch.randperm(len(words))]
    train, val = words[:2600], words[2600:3100]
    encoder, decoder = EncoderRNN(64), DecoderRNN(64)
    encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
    decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-2)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, 9):
        encoder.train(), decoder.train()
        total, steps = 0.0, 0
        for rows in torch.randperm(len(train)).split(65):
            targets = train[rows].flip(1)
            encoder_optimizer.zero_grad()
            decoder_optimizer.zero_grad()
            scores, _ = decoder(shifted(targets), encoder(train[rows]))
            loss = criterion(scores.flatten(0, 1), targets.flatten())
            loss.backward()
            nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
            nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
            if healthy:
                encoder_optimizer.step()
            decoder_optimizer.step()
            total, steps = total + loss.item(), steps + 1
        print(
            f"epoch {epoch:2d}  loss {total / steps:.3f}  "
            f"letters right {letters_right(encoder, decoder, val):.3f}"
        )


main()
