"""By which measures programs say that they judge, and random features' phases."""

from __future__ import annotations

import ast
import math

import pytest

torch = pytest.importorskip("torch")

from torch import nn

import traindbg as td
from traindbg.hooks.torch.text.measures import judges_order
from traindbg.hooks.torch.updates.fresh import are_phases, phases_of

PROGRAM = """
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(1)
model = nn.Linear(4, {outputs})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, y = torch.randn(64, 4), (torch.rand(64) < 0.1).float()
for _ in range(3):
    scores = model(x)[:, 0]
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"validation AUC {{float(scores.detach().argsort()[0])}}")
"""


@pytest.mark.parametrize(
    ("text", "is_order"),
    [
        ("roc_auc_score(y, p)", True),
        ("from sklearn.metrics import average_precision_score", True),
        ("print(f'AUC {value:.3f}')", True),
        ("best_val_auc = 0", True),
        ("metrics.logloss(p, y)", True),
        ("from sklearn.metrics import log_loss", True),
        ("torchmetrics.classification.BinaryAUROC()", True),
        ("val_rocAUC = ROCAUC()", True),
        ("precision_recall_curve(y, p); auc(r, q)", True),
        ("torch.set_float32_matmul_precision('high'); roc_auc_score(y, p)", True),
        ("Trainer(precision='16-mixed'); AveragePrecision()", True),
        ("print(f'concordance {c:.3f}')", True),
        ("from lifelines.utils import concordance_index", True),
        ("def c_index(risk, time): ...", True),
        ("print('C-index', c)", True),
        ("expected_calibration_error(p, y)", True),
        ("from sklearn.calibration import calibration_curve", True),
        ("concordance(risk, time); recall = hits / all", False),
        ("index = 1", False),
        ("def log_loss(step, loss): ...", False),
        ("calibration_loader = 1", False),
        ("roc_auc_score(y, p); acc = (p > 0).mean()", False),
        ("roc_auc_score(y, p); print('hit rate', h)", False),
        ("AUROC(); BinaryF1Score()", False),
        ("AUROC(); Precision()", False),
        ("torchmetrics.AUROC()", True),
        ("roc_auc_score(y, p); accuracy = (p > 0).mean()", False),
        ("print('AUC', a, 'F1', b)", False),
        ("average_precision_score(y, p); precision_score(y, p)", False),
        ("'''Judged by its AUC.'''\nx = 1", False),
        ("recall = hits / all", False),
        ("process(rocks); laucher()", False),
        ("x = y", False),
    ],
)
def test_what_a_text_names(text: str, is_order: bool) -> None:
    assert judges_order(ast.parse(text)) == is_order


@pytest.mark.parametrize(
    ("outputs", "loss", "told"),
    [
        (1, "F.binary_cross_entropy_with_logits(scores, y)", {1.0}),
        (1, "F.binary_cross_entropy_with_logits(scores, y, reduction='none').mean()", {1.0}),
        (2, "F.cross_entropy(model(x), y.long())", set()),
    ],
)
def test_it_is_told_where_a_loss_is_of_yes_and_no(forked, run_dir, outputs, loss, told) -> None:
    done = forked(PROGRAM.format(outputs=outputs, loss=loss), recorded=run_dir)
    assert done.returncode == 0, done.stderr
    run = td.Run(run_dir)
    name = "loop/judges_order"
    assert (set(run.scalars(name).values.tolist()) if name in run else set()) == told


def test_phases_of_random_features_are_known() -> None:
    def holds_phases(layer: nn.Linear) -> bool:
        return are_phases(phases_of(layer).tolist())

    layer = nn.Linear(5, 200)
    assert not holds_phases(layer)
    with torch.no_grad():
        layer.bias.uniform_(0, 2 * math.pi)
        assert holds_phases(layer)
        layer.bias.uniform_(-math.pi, math.pi)
        assert holds_phases(layer)
        for other in (layer.bias.uniform_(0, 1), layer.bias.uniform_(0, 20), layer.bias.normal_()):
            assert not holds_phases(layer), other
    assert phases_of(nn.Linear(5, 8, bias=False)) is None
    assert phases_of(nn.Linear(5, 8)) is None  # too few


def test_the_size_of_what_a_recurrent_layer_is_given(run_dir) -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 1)

        def forward(self, x):
            return self.head(self.rnn(x)[0][:, -1])

    model = Counts()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loop = [{"collection": "loop", "mode": "every"}]
    with td.watch(model, run_dir=run_dir, capture=loop, supervise=False):
        model(500 * torch.ones(16, 5, 3)).mean().backward()
        optimizer.step()
    values = td.Run(run_dir).scalars("loop/input_given_size").values.tolist()
    assert values == pytest.approx([500.0], rel=1e-4)


@pytest.mark.parametrize("scale", [1.0, 0.05])
def test_the_size_of_what_the_first_layer_is_given(scale: float, run_dir) -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))

        def forward(self, x):
            return self.net(scale * x)

    torch.manual_seed(0)
    model = Scaled()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    x = 20 * torch.ones(16, 4) + torch.randn(16, 4)
    with td.watch(
        model, run_dir=run_dir, capture=[{"collection": "loop", "mode": "every"}], supervise=False
    ):
        model(x).mean().backward()
        optimizer.step()
    value = td.Run(run_dir).scalars("loop/input_given_size").values.tolist()[0]
    assert value == pytest.approx(scale * float(x.square().mean().sqrt()), rel=1e-4)
