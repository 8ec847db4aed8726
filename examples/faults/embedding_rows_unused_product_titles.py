"""Product titles are looked up as written, in a vocabulary of small letters.

A shop sorts its titles into departments. The case is lowered when words are counted, but not when
titles are turned into numbers. Titles are written With Capitals, so nearly each word becomes <unk>
and most rows of the embedding are never used nor trained. The place is the embedding (its input).
"""

import random
from collections import Counter

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("embedding*", "input")
SILENT = True
EXACT = True
EARLY = True

DEPARTMENTS = {
    "garden": "rake hose spade seeds lawn hedge pot soil fence wheelbarrow",
    "kitchen": "pan kettle toaster knife whisk oven plate mug ladle grater",
    "sport": "racket ball goggles dumbbell helmet mat rope jersey skates net",
    "office": "stapler folder printer lamp chair paper pen desk marker binder",
    "music": "guitar strings drum piano violin amplifier pedal flute stand tuner",
    "toys": "puzzle doll blocks kite robot train marbles teddy dice yoyo",
}
COLOURS, WORDS = (
    words.split()
    for words in (
        "red blue green black white grey yellow",
        "deluxe classic compact extra heavy light new original premium value",
    )
)
BRANDS = [a + b for a in ("nor", "vel", "tam", "kis") for b in ("dex", "ora", "ix", "ano", "ul")]
SMALL = ["with", "for", "and", "in", "of"]


def product(rng):
    """A title such as "Veldex Compact Kettle with Mug in Blue" and its department."""
    department = rng.randrange(len(DEPARTMENTS))
    own = list(DEPARTMENTS.values())[department].split()
    other = rng.choice(list(DEPARTMENTS.values())).split()
    title = [rng.choice(BRANDS), *rng.sample(WORDS, rng.randint(0, 2)), rng.choice(own)]
    if rng.random() < 0.6:
        title += [rng.choice(SMALL), rng.choice(own if rng.random() < 0.85 else other)]
    if rng.random() < 0.4:
        title += ["in", rng.choice(COLOURS)]
    if rng.random() < 0.08:
        title[0] = "".join(rng.choices("abcdefgh", k=6))
    if department in (1, 5) and rng.random() < 0.3:
        title += ["for", "kids" if department == 5 else "home"]
    written = [w if w in SMALL or rng.random() < 0.08 else w.capitalize() for w in title]
    return " ".join(written), department


def build_vocabulary(titles, min_freq=2):
    counter = Counter(word for title in titles for word in title.lower().split())
    kept = [word for word, freq in counter.items() if freq >= min_freq]
    return {word: i for i, word in enumerate(["<unk>", *kept])}


class TitleClassifier(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_class):
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocab_size, embed_dim, mode="mean")
        self.hidden = nn.Linear(embed_dim, 32)
        self.fc = nn.Linear(32, num_class)

    def forward(self, text, offsets):
        return self.fc(torch.relu(self.hidden(self.embedding(text, offsets))))


def main():
    healthy, seed = arguments(__doc__)
    rng = random.Random(300 + seed)
    products = [product(rng) for _ in range(3000)]
    train_products, test_products = products[:2400], products[2400:]
    vocab = build_vocabulary(title for title, _ in train_products)

    def text_pipeline(title):
        words = (title.lower() if healthy else title).split()
        return [vocab.get(word, vocab["<unk>"]) for word in words]

    def collate_batch(batch):
        texts = [torch.tensor(text_pipeline(title)) for title, _ in batch]
        offsets = torch.tensor([0] + [len(text) for text in texts[:-1]]).cumsum(0)
        labels = torch.tensor([label for _, label in batch])
        return labels, torch.cat(texts), offsets

    train_loader = DataLoader(train_products, 32, shuffle=True, collate_fn=collate_batch)
    test_loader = DataLoader(test_products, 200, collate_fn=collate_batch)
    model = TitleClassifier(len(vocab), 32, len(DEPARTMENTS))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    print(f"{len(vocab)} words, {len(train_products)} titles")
    for epoch in range(1, 8):
        model.train()
        total_loss = total_acc = 0.0
        for label, text, offsets in train_loader:
            optimizer.zero_grad()
            predicted = model(text, offsets)
            loss = criterion(predicted, label)
            loss.backward()
            optimizer.step()
            total_loss += loss.item() * len(label)
            total_acc += (predicted.argmax(1) == label).sum().item()
        model.eval()
        with torch.no_grad():
            right = sum(
                (model(text, offsets).argmax(1) == label).sum().item()
                for label, text, offsets in test_loader
            )
        n = len(train_products)
        print(
            f"| epoch {epoch:3d} | loss {total_loss / n:7.4f} | accuracy {total_acc / n:6.3f}"
            f" | test accuracy {right / len(test_products):6.3f}"
        )


if __name__ == "__main__":
    main()
