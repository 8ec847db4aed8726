"""A tiny DistilBERT's vocabulary keeps words seen 300 times only, so most of its table is idle.

The threshold for rare words was copied from a corpus a hundred times larger: nearly every
telling word becomes [UNK], while the embedding has a row for each word of the corpus. The place is
distilbert.embeddings.word_embeddings, and the input, which is mostly [UNK].
"""

import random
from collections import Counter

import torch
from data import arguments
from torch.utils.data import Dataset
from transformers import (
    DistilBertConfig,
    DistilBertForSequenceClassification,
    Trainer,
    TrainingArguments,
)

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("*word_embeddings*", "input")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

TOPICS, TOKENS = 6, 14
PAD, UNK = 0, 1


def tickets(count: int, r: random.Random) -> list[tuple[list[str], int]]:
    """Tickets of six queues: common words, and two or three words of the queue's own."""
    written = []
    for _ in range(count):
        topic = r.randrange(TOPICS)
        words = [f"common{int(r.paretovariate(1.0)) % 40}" for _ in range(r.randint(6, 10))]
        for _ in range(r.randint(2, 3)):
            owner = topic if r.random() < 0.92 else r.randrange(TOPICS)
            rank = int(r.paretovariate(0.7)) % 25
            words.insert(r.randrange(len(words)), f"queue{owner}word{rank}")
        written.append((words, topic))
    return written


class Vocabulary:
    def __init__(self, corpus: list[tuple[list[str], int]], min_count: int) -> None:
        counts = Counter(word for words, _ in corpus for word in words)
        kept = sorted(word for word, seen in counts.items() if seen >= min_count)
        self.size = len(counts) + 2
        self.number = {word: i + 2 for i, word in enumerate(kept)}

    def encode(self, words: list[str]) -> list[int]:
        ids = [self.number.get(word, UNK) for word in words[:TOKENS]]
        return ids + [PAD] * (TOKENS - len(ids))


class TicketData(Dataset):
    def __init__(self, corpus: list[tuple[list[str], int]], vocabulary: Vocabulary) -> None:
        self.rows = torch.tensor([vocabulary.encode(words) for words, _ in corpus])
        self.topics = torch.tensor([topic for _, topic in corpus])

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        ids = self.rows[i]
        return {"input_ids": ids, "attention_mask": (ids != PAD).long(), "labels": self.topics[i]}


def accuracy(prediction) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions.argmax(1) == prediction.label_ids).mean())}


def main() -> None:
    r = random.Random(seed)
    corpus, held_out = tickets(2400, r), tickets(400, r)
    vocabulary = Vocabulary(corpus, min_count=2 if healthy else 300)
    config = DistilBertConfig(
        vocab_size=vocabulary.size, max_position_embeddings=TOKENS, dim=32, n_heads=2, n_layers=1,
        hidden_dim=64, num_labels=TOPICS, pad_token_id=PAD, initializer_range=0.1,
    )  # fmt: skip
    settings = TrainingArguments(
        output_dir="/tmp/service_desk", num_train_epochs=6, per_device_train_batch_size=48,
        per_device_eval_batch_size=200, learning_rate=3e-3, warmup_steps=20, seed=seed,
        lr_scheduler_type="cosine", eval_strategy="epoch", save_strategy="no", report_to="none",
        logging_steps=50, use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = Trainer(
        model=DistilBertForSequenceClassification(config),
        args=settings,
        train_dataset=TicketData(corpus, vocabulary),
        eval_dataset=TicketData(held_out, vocabulary),
        compute_metrics=accuracy,
    )
    trainer.train()


main()
