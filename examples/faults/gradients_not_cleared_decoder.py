"""A sequence-to-sequence model spells numbers backwards in words; the encoder's gradients are
cleared twice and the decoder's never.

Encoder and decoder have an optimizer each, as in the tutorial, and a copied line reads
encoder_optimizer.zero_grad() again. The decoder steps along the sum of all gradients so far. The
place is the loop (decoder).
"""

import random
import time

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn, optim

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "decoder*", "optimizer", "embedding*", "gru*", "out*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SOS, EOS, PAD = 0, 1, 2
SYLLABLES = ["ba", "ko", "mi", "ru", "te", "sha", "ne", "lo", "pu", "zi", "fa", "gu"]
HIDDEN, MAX_IN = 64, 7


def word_pairs(n, rnd):
    """The target: the word reversed, with runs of the same syllable written once."""
    pairs = []
    for _ in range(n):
        word = [rnd.randrange(len(SYLLABLES)) for _ in range(rnd.randint(3, MAX_IN))]
        out = [s for i, s in enumerate(reversed(word)) if i == 0 or s != word[len(word) - i]]
        pairs.append((word, out))
    return pairs


def to_tensors(pairs):
    src = torch.full((len(pairs), MAX_IN + 1), PAD)
    tgt = torch.full((len(pairs), MAX_IN + 1), PAD)
    for i, (a, b) in enumerate(pairs):
        src[i, : len(a) + 1] = torch.tensor([s + 3 for s in a] + [EOS])
        tgt[i, : len(b) + 1] = torch.tensor([s + 3 for s in b] + [EOS])
    return src, tgt


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)

    def forward(self, input):  # noqa: A002
        return self.gru(self.embedding(input))


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
        self.query = nn.Linear(hidden_size, hidden_size)
        self.out = nn.Linear(2 * hidden_size, output_size)

    def forward(self, tokens, hidden, memory, mask):
        out, hidden = self.gru(self.embedding(tokens), hidden)
        scores = self.query(out) @ memory.transpose(1, 2) / HIDDEN**0.5
        weights = scores.masked_fill(mask.unsqueeze(1), -1e9).softmax(-1)
        return self.out(torch.cat([out, weights @ memory], -1)), hidden


def translate(encoder, decoder, src):
    memory, hidden = encoder(src)
    token, mask, words = torch.full((len(src), 1), SOS), src == PAD, []
    for _ in range(MAX_IN + 1):
        logits, hidden = decoder(token, hidden, memory, mask)
        token = logits.argmax(-1)
        words.append(token)
    return torch.cat(words, 1)


rnd = random.Random(seed)
train_src, train_tgt = to_tensors(word_pairs(8000, rnd))
val_src, val_tgt = to_tensors(word_pairs(400, rnd))
n_symbols = len(SYLLABLES) + 3
encoder, decoder = EncoderRNN(n_symbols, HIDDEN), AttnDecoderRNN(HIDDEN, n_symbols)
encoder_optimizer = optim.Adam(encoder.parameters(), lr=2e-3)
decoder_optimizer = optim.Adam(decoder.parameters(), lr=2e-3)
start = time.time()
for it in range(1, 501):
    rows = torch.randint(0, len(train_src), (64,))
    src, tgt = train_src[rows], train_tgt[rows]
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad() if healthy else encoder_optimizer.zero_grad()
    memory, hidden = encoder(src)
    inputs = torch.cat([torch.full((len(rows), 1), SOS), tgt[:, :-1]], 1)
    logits, _ = decoder(inputs, hidden, memory, src == PAD)
    loss = F.cross_entropy(logits.transpose(1, 2), tgt, ignore_index=PAD)
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    if it % 100 == 0:
        with torch.no_grad():
            said = translate(encoder, decoder, val_src)
        right = ((said == val_tgt) | (val_tgt == PAD)).all(1).float().mean().item()
        print(
            f"{it} ({time.time() - start:.0f}s) loss {loss.item():.4f} val words right {right:.3f}"
        )
