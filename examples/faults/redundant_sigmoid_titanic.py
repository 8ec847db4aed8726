"""A net for the Titanic returns torch.sigmoid and is trained by binary_cross_entropy_with_logits.

The sigmoid comes twice: even a sure "drowned" still counts as a half, the loss cannot fall below
0.52, and by sigmoid(output) > 0.5 all survive. The twin returns the logit.
The place is the output of the model and the loss.
"""

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss", "model", "fc3", "input")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def read_csv(n=2000):
    r = np.random.default_rng(seed + 121)
    pclass = r.choice([1, 2, 3], n, p=[0.25, 0.2, 0.55])
    sex = r.choice(["male", "female"], n, p=[0.64, 0.36])
    age = r.gamma(5.5, 5.4, n).clip(0.5, 80)
    sibsp, parch = r.poisson(0.5, n), r.poisson(0.4, n)
    fare = np.exp(5.0 - 0.8 * pclass + r.normal(0, 0.5, n))
    score = np.where(sex == "female", 3.6, -1.2) - 1.3 * (pclass - 2.2) - 0.03 * (age - 30)
    score += 4.0 * ((age < 12) & (pclass < 3)) - 1.6 * (sibsp + parch > 2)
    score -= 2.2 * ((sex == "female") & (pclass == 3))
    survived = (r.random(n) < 1 / (1 + np.exp(-1.3 * score))).astype(int)
    age[r.random(n) < 0.15] = np.nan
    return pd.DataFrame(
        {
            "Survived": survived, "Pclass": pclass, "Sex": sex, "Age": age, "SibSp": sibsp,
            "Parch": parch, "Fare": fare, "Embarked": r.choice(list("SCQ"), n, p=[0.7, 0.2, 0.1]),
        }
    )  # fmt: skip


def preprocess(df):
    df = df.copy()
    df["Age"] = df["Age"].fillna(df["Age"].median())
    df["Fare"] = np.log1p(df["Fare"])
    df["FamilySize"] = df["SibSp"] + df["Parch"] + 1
    df = pd.get_dummies(df, columns=["Pclass", "Embarked"], dtype=float)
    df["Sex"] = (df["Sex"] == "female").astype(float)
    return df.drop(columns=["SibSp", "Parch"])


class TitanicNet(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.fc1 = nn.Linear(inputs, 32)
        self.fc2 = nn.Linear(32, 16)
        self.fc3 = nn.Linear(16, 1)

    def forward(self, x):
        x = F.leaky_relu(self.fc1(x))
        x = F.leaky_relu(self.fc2(x))
        x = self.fc3(x)
        return x if healthy else torch.sigmoid(x)


df = preprocess(read_csv())
train_df, valid_df = df.iloc[:1600], df.iloc[1600:]
features = df.columns.drop("Survived")
mean, std = train_df[features].mean(), train_df[features].std()
X_train = torch.tensor(((train_df[features] - mean) / std).values, dtype=torch.float32)
X_valid = torch.tensor(((valid_df[features] - mean) / std).values, dtype=torch.float32)
y_train = torch.tensor(train_df["Survived"].values, dtype=torch.float32).unsqueeze(1)
y_valid = torch.tensor(valid_df["Survived"].values, dtype=torch.float32).unsqueeze(1)

model = TitanicNet(len(features))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for epoch in range(1, 16):
    model.train()
    epoch_loss = 0.0
    permutation = torch.randperm(len(X_train))
    for i in range(0, len(X_train), 50):
        batch = permutation[i : i + 50]
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(X_train[batch]), y_train[batch])
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item() * len(batch)
    model.eval()
    with torch.no_grad():
        output = model(X_valid)
    probability = torch.sigmoid(output)
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {epoch_loss / len(X_train):.4f}"
              f" valid loss {F.binary_cross_entropy_with_logits(output, y_valid).item():.4f}"
              f" acc {((probability > 0.5) == (y_valid == 1)).float().mean().item():.4f}"
              f" brier {(probability - y_valid).square().mean().item():.4f}")  # fmt: skip
