"""An embedding of seal calls looks for hard negatives at the start of each epoch, in evaluation
mode, and trains on in it.

The person sets the encoder to training mode and then mines the negatives, for which the miner
switches dropout off and batch norm to its running statistics and does not switch back. All epochs
are trained without dropout and with the batch norm statistics of the initialisation, which never
move. The place is the encoder.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("encoder*", "loop", "model", "*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SEALS, BANDS, FRAMES = 12, 16, 20


def seal_calls(per_seal, generator):
    """Small spectrograms: each seal has its own sweep, harmonics and rhythm."""
    table = torch.Generator().manual_seed(2)
    start, sweep = (torch.randperm(SEALS, generator=table) / SEALS for _ in range(2))
    rhythm = 0.3 + 1.5 * torch.rand(SEALS, generator=table)
    seal = torch.arange(SEALS).repeat_interleave(per_seal)
    band, frame = torch.arange(BANDS)[:, None], torch.arange(FRAMES) / FRAMES
    count = len(seal)
    shift = torch.randn(count, 1, 1, generator=generator) * 0.5
    bend = 8 * (sweep[seal][:, None, None] - 0.5) * frame
    pitch = 3 + 8 * start[seal][:, None, None] + bend + shift
    voice = torch.exp(-(((band - pitch) / 1.2) ** 2))
    voice = voice + 0.5 * torch.exp(-(((band - 1.5 * pitch) / 1.2) ** 2))
    phase = 2 * math.pi * torch.rand(count, 1, 1, generator=generator)
    beat = 1 + 0.8 * (rhythm[seal][:, None, None] * 10 * frame + phase).sin()
    calls = voice * beat + 0.35 * torch.randn(count, BANDS, FRAMES, generator=generator)
    return calls, seal


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layers, width = [], BANDS
        for stride in (1, 1, 2, 1, 1, 2, 1, 1):
            convolution = nn.Conv1d(width, 32, 3, padding=1, stride=stride)
            layers += [convolution, nn.BatchNorm1d(32), nn.ReLU()]
            width = 32
        self.layers = nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.2), nn.Linear(160, 24))

    def forward(self, calls):
        return nn.functional.normalize(self.layers(calls), dim=1)


class Mining:
    """For each call the most similar calls of other seals, found anew in each epoch."""

    def __init__(self, encoder, count=200):
        self.encoder, self.count = encoder, count

    @torch.no_grad()
    def negatives(self, calls, seal):
        self.encoder.eval()
        codes = self.encoder(calls)
        alike = codes @ codes.T
        alike[seal[:, None] == seal] = -2
        return alike.topk(self.count, dim=1).indices


def triplet_loss(anchor, positive, negative, margin=0.4):
    near, far = (anchor - positive).square().sum(1), (anchor - negative).square().sum(1)
    return (near - far + margin).clamp(min=0).mean()


@torch.no_grad()
def recall(encoder, gallery, gallery_seal, calls, seal):
    encoder.eval()
    nearest = (encoder(calls) @ encoder(gallery).T).argmax(1)
    return (gallery_seal[nearest] == seal).float().mean().item()


class Identification:
    def __init__(self, calls, seal):
        self.calls, self.seal = calls, seal
        self.encoder = Encoder()
        self.mining = Mining(self.encoder)
        self.optimizer = torch.optim.AdamW(self.encoder.parameters(), lr=2e-3, weight_decay=1e-3)

    def epoch(self):
        if healthy:
            candidates = self.mining.negatives(self.calls, self.seal)
            self.encoder.train()
        else:
            self.encoder.train()
            candidates = self.mining.negatives(self.calls, self.seal)
        losses = []
        for rows in torch.randperm(len(self.seal)).split(40):
            same = self.seal[rows][:, None] == self.seal
            positive = torch.multinomial(same.float(), 1)[:, 0]
            drawn = torch.randint(candidates.shape[1], (len(rows), 1))
            negative = candidates[rows].gather(1, drawn)[:, 0]
            codes = self.encoder(self.calls[torch.cat([rows, positive, negative])])
            loss = triplet_loss(*codes.chunk(3))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)


def main():
    generator = torch.Generator().manual_seed(91 + seed)
    calls, seal = seal_calls(30, generator)
    others, other_seal = seal_calls(15, generator)
    calls, others = ((part - calls.mean()) / calls.std() for part in (calls, others))
    study = Identification(calls, seal)
    for epoch in range(1, 22):
        loss = study.epoch()
        if epoch % 4 == 1:
            own = recall(study.encoder, others[::2], other_seal[::2], calls, seal)
            found = recall(study.encoder, calls, seal, others, other_seal)
            print(
                f"epoch {epoch:2d}  loss {loss:.4f}  known calls {own:.3f}  new calls {found:.3f}"
            )


main()
