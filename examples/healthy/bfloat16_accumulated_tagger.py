"""Parts of speech by a transformer encoder, under autocast to bfloat16 and with four small batches
to a step; the loss of each is divided by the number of tokens in all four.

What looks odd: losses of a quarter of the usual size that are not those printed, backward() four
times before a step, gradients that are cleared only every fourth time, activations of eight bits'
precision, and padding of -100 among the labels.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

ODD = "bfloat16; four backward passes to a step; a loss divided by the tokens of four batches"


@dataclass
class Config:
    words: int = 300
    tags: int = 8
    width: int = 32
    depth: int = 2
    micro: int = 16
    accumulate: int = 4
    epochs: int = 6
    rate: float = 6e-3
    warm_up: int = 15


def corpus(n, c, g):
    """Tags follow each other by a grammar; one word in three may stand for two tags."""
    language = torch.Generator().manual_seed(8)
    follows = torch.softmax(2.5 * torch.randn(c.tags, c.tags, generator=language), 1)
    first = torch.randint(0, c.tags, (c.words,), generator=language)
    second = torch.where(
        torch.rand(c.words, generator=language) < 0.33,
        torch.randint(0, c.tags, (c.words,), generator=language),
        first,
    )
    fits = F.one_hot(first, c.tags) + F.one_hot(second, c.tags)
    rows = []
    for _ in range(n):
        tag, tags = int(torch.randint(0, c.tags, (1,), generator=g)), []
        for _ in range(int(torch.randint(4, 15, (1,), generator=g))):
            tags.append(tag)
            tag = int(torch.multinomial(follows[tag], 1, generator=g))
        tags = torch.tensor(tags)
        words = torch.multinomial(fits[:, tags].T.float(), 1, generator=g).squeeze(1)
        rows.append((words + 1, tags))
    return rows


def collate(rows):
    words, tags = zip(*rows, strict=True)
    return pad_sequence(words, True), pad_sequence(tags, True, -100)


class Tagger(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.word = nn.Embedding(c.words + 1, c.width, padding_idx=0)
        self.place = nn.Embedding(16, c.width)
        layer = nn.TransformerEncoderLayer(
            c.width, 4, 2 * c.width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, c.depth, enable_nested_tensor=False)
        self.tag = nn.Linear(c.width, c.tags)

    def forward(self, words):
        h = self.word(words) + self.place(torch.arange(words.shape[1]))
        return self.tag(self.encoder(h, src_key_padding_mask=words == 0))


def groups(loader, k):
    """k batches at a time."""
    held = []
    for batch in loader:
        held.append(batch)
        if len(held) == k:
            yield held
            held = []


def main():
    _, seed = arguments(__doc__)
    c = Config()
    g = torch.Generator().manual_seed(seed)
    train, val = corpus(1536, c, g), corpus(200, c, g)
    loader = DataLoader(train, batch_size=c.micro, shuffle=True, collate_fn=collate)
    words_val, tags_val = collate(val)
    known = tags_val != -100
    model = Tagger(c)
    optimizer = torch.optim.AdamW(model.parameters(), lr=c.rate, weight_decay=0.01)
    steps = c.epochs * len(loader) // c.accumulate
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1.0, (s + 1) / c.warm_up) * (1 - s / (steps + 1))
    )
    for epoch in range(c.epochs):
        model.train()
        for held in groups(loader, c.accumulate):
            tokens = sum((tags != -100).sum() for _, tags in held)
            mean = 0.0
            for words, tags in held:
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    out = model(words)
                    each = F.cross_entropy(out.flatten(0, 1), tags.flatten(), reduction="sum")
                loss = each / tokens
                loss.backward()
                mean += loss.item()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            schedule.step()
        model.eval()
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            right = (model(words_val).argmax(2) == tags_val)[known].float().mean().item()
        print(f"epoch {epoch} loss {mean:.4f} tags right {right:.3f}")


if __name__ == "__main__":
    main()
