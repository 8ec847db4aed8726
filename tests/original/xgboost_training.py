"""A training of XGBoost, recorded by the SageMaker Debugger client, whose environment it runs in.

usage: xgboost_training.py DATA.npz OUT_DIR SETTINGS.json
DATA.npz: x, y, x_val, y_val. SETTINGS.json: `parameters` and `rounds` of xgboost.train; the
`collections` of the record, and the step at which it starts.
"""

import json
import sys

import numpy as np
import xgboost
from smdebug import SaveConfig
from smdebug.xgboost import Hook

data, out, settings = np.load(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
train = xgboost.DMatrix(data["x"], data["y"])
validation = xgboost.DMatrix(data["x_val"], data["y_val"])
hook = Hook(
    out_dir=out,
    include_collections=settings["collections"],
    save_config=SaveConfig(save_interval=1, start_step=settings["start"]),
    train_data=train,
    validation_data=validation,
)
xgboost.train(
    {"nthread": 1, "seed": 0, **settings["parameters"]},
    train,
    num_boost_round=settings["rounds"],
    evals=[(train, "train"), (validation, "validation")],
    callbacks=[hook],
    verbose_eval=False,
)
