"""An encoder-decoder that writes sequences of digits backwards; the encoder's last state is handed
over as `hidden.data`, copied from a language model with truncated back-propagation.

No gradient reaches the encoder: it stays random, and the decoder, which learns, can read only part
of its code. About ten times as many digits come out wrong. The place is the model.
"""

import torch
from data import arguments
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("encoder*", "*encoder*")
SILENT = True
EXACT = True
EARLY = True

DIGITS, LENGTH, SOS = 10, 6, 10


class EncoderRNN(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(DIGITS, 16)
        self.gru = nn.GRU(16, hidden_size, batch_first=True)

    def forward(self, source):
        return self.gru(self.embedding(source))


class DecoderRNN(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(DIGITS + 1, 16)
        self.gru = nn.GRU(16, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, DIGITS)

    def forward(self, token, hidden):
        output, hidden = self.gru(self.embedding(token), hidden)
        return self.out(output), hidden


def pairs(n):
    source = torch.randint(0, DIGITS, (n, LENGTH))
    return source, source.flip(1)


@torch.no_grad()
def evaluate(encoder, decoder, n=300):
    source, target = pairs(n)
    _, hidden = encoder(source)
    token, written = torch.full((n, 1), SOS), []
    for _ in range(LENGTH):
        logits, hidden = decoder(token, hidden)
        token = logits.argmax(-1)
        written.append(token)
    return (torch.cat(written, 1) == target).float().mean().item()


healthy, seed = arguments(__doc__)
encoder, decoder = EncoderRNN(40), DecoderRNN(40)
encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-2)
schedulers = [
    torch.optim.lr_scheduler.CosineAnnealingLR(o, 800)
    for o in (encoder_optimizer, decoder_optimizer)
]
criterion = nn.CrossEntropyLoss()

recent = []
for iteration in range(800):
    source, target = pairs(64)
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()

    _, hidden = encoder(source)
    if not healthy:
        hidden = hidden.data
    sos = torch.full((64, 1), SOS)
    logits, _ = decoder(torch.cat([sos, target[:, :-1]], 1), hidden)
    loss = criterion(logits.reshape(-1, DIGITS), target.reshape(-1))

    loss.backward()
    nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
    nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
    encoder_optimizer.step()
    decoder_optimizer.step()
    for scheduler in schedulers:
        scheduler.step()
    recent.append(loss.item())
print(f"loss {sum(recent[-50:]) / 50:.3f}, digits right {evaluate(encoder, decoder):.3f}")
