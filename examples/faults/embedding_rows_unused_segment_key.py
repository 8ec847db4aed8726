"""A tiny BERT judges shop listings of six fields with the transformers Trainer; the field numbers
never reach it, so one row of six is used.

The dataset names the field numbers "segment_ids". The Trainer removes every key that the model's
forward does not know before it collates, and the model takes zeros in their place. Nothing warns.
The place is bert.embeddings.token_type_embeddings.
"""

import logging
import tempfile
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("bert.embeddings.token_type_embeddings*", "*token_type_embeddings*", "input")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
logging.getLogger("transformers").setLevel(logging.ERROR)

FIELDS = ("title", "brand", "colour", "material", "shipping", "returns")
EFFECT = np.array([1.6, 0.9, 0.4, -0.4, -0.9, -1.6])
PAD, FIRST_WORD, WORDS = 0, 1, 40


@dataclass
class Listing:
    words: list[int]
    fields: list[int]
    good: int


def make_listings(n: int, generator: np.random.Generator) -> list[Listing]:
    strength = np.random.default_rng(7).normal(0, 1, WORDS)
    listings = []
    for _ in range(n):
        words, fields, score = [], [], 0.0
        for field in generator.permutation(len(FIELDS)):
            for _ in range(generator.integers(1, 4)):
                word = int(generator.integers(WORDS))
                words.append(FIRST_WORD + word)
                fields.append(int(field))
                score += strength[word] * (0.5 + EFFECT[field])
        listings.append(Listing(words, fields, int(score + generator.normal(0, 0.4) > 0)))
    return listings


class ListingDataset(Dataset):
    def __init__(self, listings: list[Listing]):
        self.listings = listings
        self.segment_key = "token_type_ids" if healthy else "segment_ids"

    def __len__(self) -> int:
        return len(self.listings)

    def __getitem__(self, index: int) -> dict:
        row = self.listings[index]
        return {"input_ids": row.words, self.segment_key: row.fields, "label": row.good}


class PadCollator:
    def __call__(self, rows: list[dict]) -> dict[str, torch.Tensor]:
        longest = max(len(row["input_ids"]) for row in rows)
        batch = {"labels": torch.tensor([row["label"] for row in rows])}
        for key in rows[0]:
            if key != "label":
                padded = [row[key] + [PAD] * (longest - len(row[key])) for row in rows]
                batch[key] = torch.tensor(padded)
        batch["attention_mask"] = (batch["input_ids"] != PAD).long()
        return batch


def accuracy(prediction) -> dict[str, float]:
    return {"accuracy": float((prediction.predictions.argmax(1) == prediction.label_ids).mean())}


def main() -> None:
    generator = np.random.default_rng(500 + seed)
    train, val = make_listings(6400, generator), make_listings(600, generator)
    config = BertConfig(
        vocab_size=FIRST_WORD + WORDS,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=18,
        type_vocab_size=len(FIELDS),
        hidden_dropout_prob=0.05,
        attention_probs_dropout_prob=0.0,
        num_labels=2,
    )
    config.initializer_range = 0.1
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        settings = TrainingArguments(
            output_dir=folder,
            num_train_epochs=4,
            per_device_train_batch_size=64,
            per_device_eval_batch_size=200,
            learning_rate=2e-3,
            lr_scheduler_type="cosine",
            warmup_steps=30,
            weight_decay=0.01,
            max_grad_norm=1.0,
            logging_strategy="epoch",
            eval_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            seed=seed,
        )
        trainer = Trainer(
            model=model,
            args=settings,
            train_dataset=ListingDataset(train),
            eval_dataset=ListingDataset(val),
            data_collator=PadCollator(),
            compute_metrics=accuracy,
        )
        trainer.train()


main()
