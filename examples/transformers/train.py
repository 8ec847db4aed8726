"""Train a tiny GPT-2 to count, with the Trainer of Hugging Face.

    traindbg run -- python examples/transformers/train.py
    python examples/transformers/train.py --callback

Model and data are made here; nothing is downloaded. The last line is a hash of all weights: the
same in every way of starting it.
"""

from __future__ import annotations

import argparse
import hashlib

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

WORDS = 32


class Counting(torch.utils.data.Dataset):
    """Sequences of twelve that count up by one, two or three from a random word."""

    def __init__(self, size: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        start = torch.randint(0, WORDS, (size, 1), generator=generator)
        by = torch.randint(1, 4, (size, 1), generator=generator)
        self.rows = (start + by * torch.arange(12)) % WORDS

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self.rows[index], "labels": self.rows[index]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--optimizer", default="adamw_torch", help="as TrainingArguments.optim")
    parser.add_argument("--accumulate", type=int, default=1, help="batches per step")
    parser.add_argument(
        "--clip", type=float, default=1.0, help="norm that gradients are clipped to"
    )
    parser.add_argument("--smoothing", type=float, default=0.0, help="of the labels")
    parser.add_argument("--out", default="transformers-out", help="where Trainer may write")
    parser.add_argument("--callback", action="store_true", help="record without traindbg run")
    arguments = parser.parse_args()
    set_seed(0)
    torch.set_num_threads(1)

    callbacks = []
    if arguments.callback:
        from traindbg.integrations.transformers import Callback

        callbacks.append(Callback(collect="gradients", every=10))
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=WORDS,
            n_positions=16,
            n_embd=32,
            n_layer=2,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    trainer = Trainer(
        model,
        TrainingArguments(
            arguments.out,
            num_train_epochs=arguments.epochs,
            learning_rate=arguments.learning_rate,
            optim=arguments.optimizer,
            per_device_train_batch_size=16,
            gradient_accumulation_steps=arguments.accumulate,
            max_grad_norm=arguments.clip,
            label_smoothing_factor=arguments.smoothing,
            eval_strategy="epoch",
            logging_steps=10,
            save_strategy="no",
            report_to="none",
            use_cpu=True,
            disable_tqdm=True,
        ),
        train_dataset=Counting(320, 1),
        eval_dataset=Counting(64, 2),
        callbacks=callbacks,
    )
    try:
        trainer.train()
    finally:
        print(f"steps {trainer.state.global_step}", flush=True)
    weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    print(f"weights {hashlib.sha256(weights).hexdigest()}")


if __name__ == "__main__":
    main()
