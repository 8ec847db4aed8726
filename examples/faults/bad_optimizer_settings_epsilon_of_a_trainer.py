"""GPT-2 finds a binding site in DNA, in words of four letters (Trainer); Adam's epsilon is far too
large.

The user set adam_epsilon to 0.1, as an old tutorial for large image models advises, which is far
above the size of these gradients, so that the steps are small and no longer adapted. The place is
the optimizer.
"""

import itertools
import tempfile

import numpy as np
from data import arguments
from datasets import Dataset
from transformers import GPT2Config, GPT2ForSequenceClassification, Trainer, TrainingArguments

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
r = np.random.default_rng(seed)

LENGTH = 24
WORDS = {
    "".join(w): i + 2 for i, w in enumerate(itertools.product("ACGT", repeat=4))
}  # 0 is padding, 1 the end
SITES = ["TATAAT", "GGCCAA", "TTGACA"]


def strand():
    """With one of three sites (one letter in a few wrong), or with none."""
    label = int(r.integers(4))
    letters = list(r.choice(list("ACGT"), LENGTH))
    if label:
        site = list(SITES[label - 1])
        if r.random() < 0.2:
            site[r.integers(6)] = r.choice(list("ACGT"))
        start = r.integers(0, LENGTH - 6)
        letters[start : start + 6] = site
    text = "".join(letters)
    return {"input_ids": [WORDS[text[i : i + 4]] for i in range(LENGTH - 3)] + [1], "labels": label}


strands = Dataset.from_list([strand() for _ in range(3600)]).train_test_split(
    test_size=400, seed=seed
)
model = GPT2ForSequenceClassification(
    GPT2Config(
        vocab_size=len(WORDS) + 2,
        n_positions=LENGTH,
        n_embd=48,
        n_layer=2,
        n_head=4,
        num_labels=4,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=1,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
)
trainer = Trainer(
    model=model,
    args=TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        num_train_epochs=5,
        per_device_train_batch_size=32,
        per_device_eval_batch_size=100,
        learning_rate=1e-3,
        warmup_steps=40,
        weight_decay=0.01,
        adam_epsilon=1e-8 if healthy else 0.1,
        eval_strategy="epoch",
        logging_strategy="epoch",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    ),
    train_dataset=strands["train"],
    eval_dataset=strands["test"],
    compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())},
)
trainer.train()
print(f"validation accuracy {trainer.evaluate()['eval_accuracy']:.3f}")
