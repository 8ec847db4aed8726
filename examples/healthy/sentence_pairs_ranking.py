"""A sentence encoder learns from pairs of questions and answers with MultipleNegativesRankingLoss.

There are no labels: every other answer of the batch is a negative. The loss begins near the
logarithm of the batch size, and the cosines are multiplied by 20. The encoder is a little BERT
with mean pooling. It is sound.
"""

import os
import tempfile
from itertools import chain

import numpy as np
import torch
from data import arguments
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
    models,
)
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as token_models
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

ODD = "no labels; the other answers of a batch are the negatives"

_, seed = arguments(__doc__)
r = np.random.default_rng(seed)

TOPICS = [
    [f"{stem}{i}" for i in range(6)]
    for stem in [
        "rail",
        "sea",
        "cook",
        "wine",
        "code",
        "bird",
        "tax",
        "yoga",
        "film",
        "moon",
        "soil",
        "bank",
    ]
]
ASPECTS = [
    [f"{stem}{i}" for i in range(4)]
    for stem in ["price", "place", "time", "tool", "risk", "origin"]
]
FILLER = [f"f{i}" for i in range(60)]


def pair():
    topic, aspect = TOPICS[r.integers(len(TOPICS))], ASPECTS[r.integers(len(ASPECTS))]

    def sentence(words):
        said = [*r.choice(topic, 2), *r.choice(aspect, 1), *r.choice(FILLER, words)]
        if r.random() < 0.2:
            said.append(r.choice(TOPICS[r.integers(len(TOPICS))]))
        return " ".join(r.permutation(said))

    return {"anchor": sentence(r.integers(1, 5)), "positive": sentence(r.integers(4, 9))}


tokens = ["[PAD]", "[UNK]", *FILLER, *chain.from_iterable(TOPICS), *chain.from_iterable(ASPECTS)]
core = Tokenizer(token_models.WordLevel({t: i for i, t in enumerate(tokens)}, unk_token="[UNK]"))
core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
folder = os.path.join(tempfile.mkdtemp(), "encoder")
PreTrainedTokenizerFast(
    tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]", model_max_length=24
).save_pretrained(folder)
BertModel(
    BertConfig(
        vocab_size=len(tokens),
        hidden_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=24,
    )
).save_pretrained(folder)
encoder = models.Transformer(folder, max_seq_length=24)
model = SentenceTransformer(
    modules=[encoder, models.Pooling(48, pooling_mode="mean")], device="cpu"
)

parts = Dataset.from_list([pair() for _ in range(4000)]).train_test_split(test_size=320, seed=seed)
trainer = SentenceTransformerTrainer(
    model=model,
    args=SentenceTransformerTrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=3,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=32,
        learning_rate=2e-3,
        warmup_steps=0.1,
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
    loss=losses.MultipleNegativesRankingLoss(model),
)
trainer.train()
a = model.encode(parts["test"]["anchor"][:32], convert_to_tensor=True, show_progress_bar=False)
b = model.encode(parts["test"]["positive"][:32], convert_to_tensor=True, show_progress_bar=False)
hits = (
    (torch.nn.functional.cosine_similarity(a[:, None], b[None], -1).argmax(1) == torch.arange(32))
    .float()
    .mean()
)
print(f"validation loss {trainer.evaluate()['eval_loss']:.3f}, first hit {hits:.3f}")
