"""The examples of docs/frameworks.md work as they stand."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from trainings import ROOT, clean_environment

import traindbg as td

PREPARED = {
    "Lightning": """
import lightning, torch
from torch.utils.data import DataLoader, TensorDataset
class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 3)
    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self.fc(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)
module = Module()
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,))), 8)
""",
    "Hugging Face": """
import torch
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments
config = GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=1, n_head=1)
model = GPT2LMHeadModel(config)
rows = [{"input_ids": row, "labels": row} for row in torch.randint(0, 9, (32, 5))]
arguments = TrainingArguments("out", num_train_epochs=1, report_to="none", use_cpu=True)
""",
    "Accelerate": """
import torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,))), 4)
""",
}


@pytest.mark.parametrize("section", PREPARED)
def test_example_of_the_page(section: str, tmp_path) -> None:
    page = (ROOT / "docs" / "frameworks.md").read_text()
    text = page.split(f"\n## {section}\n")[1].split("\n## ")[0]
    [example] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    script = tmp_path / "script.py"
    script.write_text(PREPARED[section] + example)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=tmp_path,
        env=clean_environment(HF_HUB_OFFLINE="1"),
    )
    assert done.returncode == 0, done.stderr
    [run] = td.runs(tmp_path / "traindbg-runs")
    assert run.is_complete
    assert run.steps().tolist() == list(range(4))
