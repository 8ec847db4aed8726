"""Makes the runs beside this file with the original client library, and writes what it reads.

    python tests/data/smdebug/make_golden.py [DIRECTORY]
    python tests/data/smdebug/make_golden.py --read RUN     what the library reads from RUN, as JSON

Needs an environment with the packages of benchmarks/python/requirements.txt (reading: of
requirements/original.txt). Every run gets a folder with the files of the original and, beside it,
`<run>.json`: what the library's own reader gives for it (modes, steps, names, workers, values,
reductions, shapes, collections), which is what traindbg has to give. Values are stored as element
type, shape and the hex digits of their little-endian bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "off")
os.environ.setdefault("SM_DEBUG_LOG_LEVEL", "off")

import numpy as np

HERE = Path(__file__).resolve().parent
MODES = ("TRAIN", "EVAL", "PREDICT", "GLOBAL")
REDUCTIONS = {
    "reductions": ["min", "max", "mean", "std", "variance", "sum", "prod"],
    "norms": ["l1", "l2"],
    "abs_reductions": ["mean", "max"],
    "abs_norms": ["l1"],
}


# ---- runs made by the library's hook, in a training


def _train(directory: Path, *, epochs: int = 2, rate: float = 0.1, **hook_options: Any) -> Any:
    """A training of two epochs of two batches with an evaluation and a prediction, under a hook."""
    import smdebug.pytorch as smd
    import torch
    from torch import nn

    torch.manual_seed(7)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.relu = nn.ReLU()
            self.second = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.relu(self.first(x)))

    smd.del_hook()
    hook = smd.Hook(out_dir=str(directory), **hook_options)
    net, loss_function = Net(), nn.CrossEntropyLoss()
    hook.register_module(net)
    hook.register_loss(loss_function)
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    inputs, labels = torch.randn(4, 5, 3), torch.randint(0, 2, (4, 5))
    for epoch in range(epochs):
        hook.set_mode(smd.modes.TRAIN)
        for batch in range(2):
            optimizer.zero_grad()
            loss_function(net(inputs[batch]), labels[batch]).backward()
            optimizer.step()
            hook.save_scalar("rate", rate / (1 + epoch))
        hook.set_mode(smd.modes.EVAL)
        with torch.no_grad():
            loss_function(net(inputs[2]), labels[2])
    hook.set_mode(smd.modes.PREDICT)
    with torch.no_grad():
        net(inputs[3])
    return hook


def torch_raw(directory: Path) -> None:
    """Everything, whole."""
    _train(directory, save_all=True, save_config=_every(1)).close()


def torch_reductions(directory: Path) -> None:
    """Weights, gradients and losses, the first two as reductions alone."""
    import smdebug.pytorch as smd

    hook = _train(
        directory,
        epochs=1,
        include_collections=["weights", "biases", "gradients", "losses"],
        reduction_config=smd.ReductionConfig(**REDUCTIONS),
        save_config=_every(1),
    )
    hook.close()


def torch_shapes(directory: Path) -> None:
    """Shapes of outputs, and nothing else of them."""
    import smdebug.pytorch as smd

    hook = _train(
        directory,
        epochs=1,
        include_regex="relu_output|Net_output",
        reduction_config=smd.ReductionConfig(save_shape=True),
        save_config=_every(2),
    )
    hook.close()


def torch_diverging(directory: Path) -> None:
    """A learning rate beyond all bounds: the loss becomes NaN."""
    hook = _train(
        directory,
        epochs=4,
        rate=1e25,
        include_collections=["weights", "biases", "gradients", "losses"],
        save_config=_every(1),
    )
    hook.close()


def torch_crash(directory: Path) -> None:
    """A training that dies in its last step: no end marker, a step that was not finished."""
    subprocess.run(
        [sys.executable, __file__, "--crash", str(directory)], check=True, stdout=subprocess.DEVNULL
    )


def _crash(directory: Path) -> None:
    hook = _train(directory, save_all=True, save_config=_every(1))
    hook.writer.flush()
    os._exit(0)


def _every(steps: int) -> Any:
    from smdebug import SaveConfig

    return SaveConfig(save_interval=steps)


# ---- runs made by the library's writer, for what no training gives


def _collections(directory: Path, worker: str, workers: int, names: dict[str, str]) -> None:
    from smdebug.core.collection_manager import CollectionManager

    manager = CollectionManager()
    for name, regex in names.items():
        manager.get(name).include(regex)
    manager.set_num_workers(workers)
    manager.export(str(directory), f"{worker}_collections.json")


def _end(directory: Path) -> None:
    from smdebug.core.access_layer import training_has_ended

    training_has_ended(str(directory))


def _write(directory: Path, worker: str, step: int, mode: str, mode_step: int) -> Any:
    from smdebug.core.modes import ModeKeys
    from smdebug.core.writer import FileWriter

    writer = FileWriter(str(directory), worker=worker, step=step, mode=ModeKeys[mode])
    return writer, lambda name, value: writer.write_tensor(
        tdata=value, tname=name, mode=ModeKeys[mode], mode_step=mode_step
    )


def dtypes(directory: Path) -> None:
    """One tensor of every element type that the library writes, of up to four dimensions."""
    _collections(directory, "worker_0", 1, {"all": ".*"})
    writer, write = _write(directory, "worker_0", 0, "GLOBAL", 0)
    for name in ("float16", "float32", "float64", "int32", "int64", "uint8", "int8", "bool"):
        write(f"two/{name}", np.array([[0, 1, 2], [1, 0, 100]]).astype(name))
    for name in ("int16", "uint16", "uint32", "uint64", "complex64", "complex128"):
        write(f"wide/{name}", np.array([0, 1, 2, 100]).astype(name))
    write("special", np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45], dtype=np.float32))
    write("scalar", np.float64(2.5))
    write("four", np.arange(24, dtype=np.float32).reshape(2, 3, 1, 4))
    write("text", np.array(["x", "yz", "\u00e9\u4e2d"]))
    write('name/with:0/colon "quoted" \u00e9', np.float32(1))
    writer.close()
    _end(directory)


def two_workers(directory: Path) -> None:
    """Two workers; the second never writes step 2, and its step 3 comes from another mode."""
    for worker in ("worker_0", "worker_1"):
        _collections(directory, worker, 2, {"weights": "weight$", "losses": "^loss$"})
        for step in range(4):
            if worker == "worker_1" and step == 2:
                continue
            mode = "EVAL" if step == 3 else "TRAIN"
            writer, write = _write(directory, worker, step, mode, 0 if step == 3 else step)
            write("fc.weight", np.full((2, 2), step + 10 * int(worker[-1]), dtype=np.float32))
            write("loss", np.float32(1 / (1 + step)))
            writer.close()
    _end(directory)


def devices(directory: Path) -> None:
    """Workers that are named by their device, as TensorFlow's mirrored strategy has them."""
    from smdebug.core.utils import serialize_tf_device

    for index in range(2):
        worker = serialize_tf_device(f"/job:worker/replica:0/task:0/device:GPU:{index}")
        _collections(directory, worker, 2, {"weights": "kernel"})
        writer, write = _write(directory, worker, 1000, "TRAIN", 1000)
        write("dense/kernel:0", np.full(3, index, dtype=np.float32))
        writer.close()
    _end(directory)


RUNS = (
    torch_raw,
    torch_reductions,
    torch_shapes,
    torch_diverging,
    torch_crash,
    dtypes,
    two_workers,
    devices,
)


# ---- what the library reads


def _value(value: Any) -> dict[str, Any]:
    array = np.asarray(value)
    if array.dtype.kind in "USO":
        texts = [item.decode() if isinstance(item, bytes) else str(item) for item in array.ravel()]
        return {"dtype": "str", "shape": list(array.shape), "text": texts}
    return {"dtype": str(array.dtype), "shape": list(array.shape), "hex": array.tobytes().hex()}


def _attempt(call: Any) -> Any:
    try:
        return call()
    except Exception as error:  # the library's refusals are part of what it gives
        return {"error": type(error).__name__}


def _sample(tensor: Any, name: str, step: int, worker: str) -> dict[str, Any]:
    """What there is of one tensor at one step of one worker."""
    reductions = _attempt(lambda: tensor.reduction_values(step, worker=worker))
    entry = {
        "name": name,
        "step": step,
        "worker": worker,
        "shape": _attempt(lambda: list(tensor.shape(step, worker=worker))),
        "value": _attempt(lambda: _value(tensor.value(step, worker=worker))),
    }
    if isinstance(reductions, dict) and "error" not in reductions:
        entry["reductions"] = {
            ("abs_" if is_abs else "") + reduction: _value(number)
            for (reduction, is_abs), number in sorted(reductions.items())
        }
    return entry


def read_with_the_original(directory: Path) -> dict[str, Any]:
    """All that the original's reader gives for the run in `directory`."""
    from smdebug.core.modes import ModeKeys
    from smdebug.trials import create_trial

    trial = create_trial(str(directory))
    names = trial.tensor_names()
    # Of a run that did not end, the last step may still be growing: the library hides it.
    out: dict[str, Any] = {
        "ended": trial.loaded_all_steps,
        "names": names,
        "modes": sorted(mode.name for mode in trial.modes()),
        "workers": trial.workers(),
        "steps": {
            mode: trial.steps(mode=ModeKeys[mode], show_incomplete_steps=True) for mode in MODES
        },
        "global": {
            str(step): [trial.mode(step).name, trial.mode_step(step)]
            for step in trial.steps(show_incomplete_steps=True)
        },
        "collections": {
            name: {
                "include_regex": list(collection.include_regex),
                "tensor_names": sorted(collection.tensor_names),
                "matches": trial.tensor_names(collection=name),
            }
            for name, collection in sorted(trial.collections().items())
        },
        "tensors": [],
    }
    for name in names:
        tensor = trial.tensor(name)
        for step in tensor.steps(show_incomplete_steps=True):
            for worker in tensor.workers(step):
                out["tensors"].append(_sample(tensor, name, step, worker))
    return out


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--crash"]:
        _crash(Path(arguments[1]))
    if arguments[:1] == ["--read"]:
        json.dump(read_with_the_original(Path(arguments[1])), sys.stdout)
        return 0
    target = Path(arguments[0]) if arguments else HERE
    for make in RUNS:
        directory = target / make.__name__
        shutil.rmtree(directory, ignore_errors=True)
        make(directory)
        for claim in directory.glob("claim.smd"):
            claim.unlink()
        text = json.dumps(read_with_the_original(directory), indent=None, separators=(",", ":"))
        (target / f"{make.__name__}.json").write_text(text + "\n")
        size = sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())
        print(f"{make.__name__}: {size} bytes, {len(text)} of JSON")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
