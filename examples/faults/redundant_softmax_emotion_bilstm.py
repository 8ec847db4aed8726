"""A BiLSTM names the emotion of a message, returns F.softmax and is trained by F.cross_entropy.

Softmax is applied twice: the loss of six emotions falls but cannot get below 1.04, and the net
learns more slowly than it could. The twin returns the scores of its last layer.
The place is the output of the model and the loss.
"""

import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss", "model", "fc", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

WORDS = {
    "joy": "happy glad delighted cheerful smiling great sunny laughing",
    "sadness": "sad crying lonely miserable grief tears gloomy lost",
    "anger": "angry furious mad annoyed hate rage shouting unfair",
    "fear": "afraid scared nervous terrified panic worried dark danger",
    "love": "love dear sweet kiss caring adore tender hug",
    "surprise": "wow amazed sudden unexpected shocked strange curious stunned",
}
EMOTIONS = {emotion: words.split() for emotion, words in WORDS.items()}
FILLER = [f"word{i}" for i in range(100)]
VOCAB = ["<pad>", *FILLER, *(word for words in EMOTIONS.values() for word in words)]
INDEX = {word: i for i, word in enumerate(VOCAB)}
MAX_LEN = 14


def write_messages(n, r):
    texts, labels = [], []
    for _ in range(n):
        label = r.randrange(len(EMOTIONS))
        words = r.choices(FILLER, k=r.randint(5, 10))
        words += r.choices(list(EMOTIONS.values())[label], k=r.randint(1, 3))
        if r.random() < 0.3:
            words.append(r.choice(EMOTIONS[r.choice(list(EMOTIONS))]))
        r.shuffle(words)
        row = [INDEX[word] for word in words]
        texts.append(row + [0] * (MAX_LEN - len(row)))
        labels.append(label)
    return torch.tensor(texts), torch.tensor(labels)


class EmotionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCAB), 32, padding_idx=0)
        self.lstm = nn.LSTM(32, 24, batch_first=True, bidirectional=True)
        self.attention = nn.Linear(48, 1)
        self.fc = nn.Linear(48, len(EMOTIONS))

    def forward(self, texts):
        states, _ = self.lstm(self.embedding(texts))
        scores = self.attention(states).squeeze(-1).masked_fill(texts == 0, -1e9)
        context = (F.softmax(scores, dim=1).unsqueeze(-1) * states).sum(1)
        out = self.fc(context)
        return out if healthy else F.softmax(out, dim=1)


def main():
    r = random.Random(seed + 101)
    x_train, y_train = write_messages(2000, r)
    x_val, y_val = write_messages(500, r)
    model = EmotionNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
    for epoch in range(6):
        model.train()
        train_loss, train_correct = 0.0, 0
        for idx in torch.randperm(len(x_train)).split(50):
            preds = model(x_train[idx])
            loss = F.cross_entropy(preds, y_train[idx])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            train_loss += loss.item() * len(idx)
            train_correct += (preds.argmax(1) == y_train[idx]).sum().item()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            preds = model(x_val)
        val_acc = (preds.argmax(1) == y_val).float().mean().item()
        print(f"Epoch: {epoch + 1:02} | Train Loss: {train_loss / len(x_train):.3f}"
              f" | Train Acc: {train_correct / len(x_train):.3f} | Val. Acc: {val_acc:.3f}"
              f" | Val. Loss: {F.cross_entropy(preds, y_val).item():.3f}")  # fmt: skip


main()
