"""ELECTRA puts product titles into departments with the Trainer; nearly every word becomes [UNK].

The vocabulary was counted on lower-cased titles, but the tokenizer has no Lowercase normalizer,
so that the words of the real titles (in capitals) are not found; only numbers and units remain.
The place is the embedding of words.
"""

import tempfile

import numpy as np
from data import arguments
from datasets import Dataset
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from transformers import (
    DataCollatorWithPadding,
    ElectraConfig,
    ElectraForSequenceClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("*word_embeddings*", "*embeddings*", "input*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)

SYLLABLES = ["ka", "lo", "mi", "ter", "sun", "ve", "do", "pra", "nix", "gol", "be", "ru"]
WORDS = sorted({"".join(r.choice(SYLLABLES, r.integers(2, 4))) for _ in range(420)})
DEPARTMENTS = ["kitchen", "garden", "office", "beauty", "toys"]
OWN = {d: WORDS[i * 30 : i * 30 + 30] for i, d in enumerate(DEPARTMENTS)}
UNITS = {
    "kitchen": ["ml", "l"],
    "garden": ["kg", "l"],
    "office": ["cm", "mm"],
    "beauty": ["ml", "g"],
    "toys": ["cm", "g"],
}


def title():
    label = int(r.integers(5))
    department = DEPARTMENTS[label]
    words = [*r.choice(OWN[department], r.integers(1, 4)), *r.choice(WORDS[150:], r.integers(2, 6))]
    if r.random() < 0.2:
        words.append(r.choice(OWN[DEPARTMENTS[r.integers(5)]]))
    unit = r.choice(UNITS[department] if r.random() < 0.6 else ["ml", "l", "kg", "cm", "mm", "g"])
    return {
        "title": " ".join(str(w).title() for w in r.permutation(words))
        + f" {r.integers(1, 9)} {unit}",
        "label": label,
    }


titles = Dataset.from_list([title() for _ in range(2600)])
vocab = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    *sorted({w for t in titles["title"] for w in t.lower().split()}),
]
core = Tokenizer(models.WordLevel({w: i for i, w in enumerate(vocab)}, unk_token="[UNK]"))
core.normalizer = normalizers.Sequence(
    [normalizers.NFKC(), *([normalizers.Lowercase()] if healthy else [])]
)
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]"
)


def encode(rows):
    return tokenizer(["[CLS] " + t for t in rows["title"]], truncation=True, max_length=16)


parts = titles.map(encode, batched=True, remove_columns=["title"]).train_test_split(
    test_size=400, seed=seed
)
config = ElectraConfig(
    vocab_size=len(vocab),
    embedding_size=32,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=96,
    max_position_embeddings=16,
    num_labels=5,
)
trainer = Trainer(
    model=ElectraForSequenceClassification(config),
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=6,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=2e-3,
        warmup_steps=40,
        weight_decay=0.01,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    ),
    train_dataset=parts["train"],
    eval_dataset=parts["test"],
    data_collator=DataCollatorWithPadding(tokenizer),
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print(f"validation accuracy {trainer.evaluate()['eval_accuracy']:.3f}")
