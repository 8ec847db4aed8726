"""`watch(settings=...)`: the settings file of `traindbg run`, in a script that attaches by hand."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import traindbg as td
from traindbg import _core, _plan
from traindbg.errors import InvalidArgument, NotFound


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """The plan of a recording with this settings file and these arguments of `watch`."""
    monkeypatch.chdir(tmp_path)
    made = 0

    def make(text: str, **arguments):
        nonlocal made
        made += 1
        (tmp_path / "traindbg.toml").write_text(text, encoding="utf-8")
        arguments = {"settings": "traindbg.toml"} | arguments
        run_dir = tmp_path / f"run{made}"
        td.watch(nn.Linear(4, 3), run_dir=run_dir, supervise=False, **arguments).detach()
        return json.loads((run_dir / "plan.json").read_text())

    return make


def wishes(plan) -> list[tuple]:
    return [
        (each["collection"], each["mode"], each["what"], each["schedule"])
        for each in plan["requirements"]
        if each["for"] == "user"
    ]


def asked_by(plan) -> set[str]:
    return {name for each in plan["requirements"] for name in each["for"].split(", ")}


STATISTICS = ["statistics"]
FILE = """
collect = ["weights", "gradients"]
raw = "losses"
every = 20
first-step = 5
compiled = "skip"
micro_batches = "all"
probe = true
budget = "2%"
flight-recorder = 12
flight-collect = "gradients,heads"
overflow = "block_for"
block-for = "0.2s"
quota = "1GiB"
keep-last = 100
thin = 10
rules = ["vanishing_gradient", "overfit"]
no-rule = "overfit"

[rule.vanishing_gradient]
ratio = 1e-5

[collection]
heads = "^weight"

[[capture]]
collection = "outputs"
mode = "eval"
seconds = 60
"""


def test_everything_that_a_file_may_say(plan):
    made = plan(FILE)
    every = {"every": 20, "start": 5}
    assert sorted(wishes(made), key=lambda wish: (wish[0], wish[2])) == [
        ("gradients", "train", STATISTICS, every),
        ("heads", "train", STATISTICS, every),
        ("losses", "train", ["statistics", "raw"], every),
        ("outputs", "eval", STATISTICS, {"every": 0, "every_ms": 60000}),
        ("weights", "train", STATISTICS, every),
    ]
    assert asked_by(made) == {"user", "vanishing_gradient"}
    assert (made["compiled"], made["micro_batches"], made["budget"]) == ("skip", "all", 0.02)
    assert made["probe"] is True
    assert made["flight"] == {"steps": 12, "collect": ["gradients", "heads"], "raw": []}
    assert (made["overflow"], made["block_for_ms"]) == ("block_for", 200)
    assert made["retention"] == {
        "quota_bytes": 2**30,
        "keep_last": 100,
        "thin": 10,
        "keep_tensors": 0,
    }
    (heads,) = made["collections"]
    assert (heads["name"], heads["include"]) == ("heads", ["^weight"])


def test_arguments_come_before_the_file(plan):
    made = plan(
        FILE,
        collect="biases",
        every=3,
        compiled="eager",
        budget=0.1,
        store={"quota_bytes": 5 * 2**30},
        collections={"heads": "bias$"},
        flight_recorder=7,
        probe=False,
        rules={"vanishing_gradient": {}, "dead_relu": {}},
    )
    assert ("biases", "train", STATISTICS, {"every": 3, "start": 5}) in wishes(made)
    assert ("losses", "train", ["statistics", "raw"], {"every": 3, "start": 5}) in wishes(made)
    assert not {"weights", "gradients"} & {wish[0] for wish in wishes(made)}
    assert (made["compiled"], made["micro_batches"], made["budget"]) == ("eager", "all", 0.1)
    assert "probe" not in made  # a plan has it only where it is
    assert made["retention"]["quota_bytes"] == 5 * 2**30
    assert made["retention"]["keep_last"] == 100
    assert made["flight"]["steps"] == 7
    assert [entry["include"] for entry in made["collections"]] == [["bias$"]]
    assert asked_by(made) == {"user", "vanishing_gradient", "dead_relu"}


def test_rules_are_left_out(plan):
    rules = ["vanishing_gradient", "overfit"]
    assert asked_by(plan("", rules=rules, no_rule="overfit")) == {"vanishing_gradient"}
    left = asked_by(plan("", no_rule=["overfit", "dead_relu"]))
    assert len(left) > 50
    assert not {"overfit", "dead_relu"} & left
    with pytest.raises(NotFound, match="'overfit'"):
        plan("", no_rule="overfitt")
    file = 'rules = ["overfit", "dead_relu", "plateau"]\nno-rule = ["plateau"]\n'
    assert asked_by(plan(file, no_rule="overfit")) == {"dead_relu"}
    named = {"plateau": {}, "dead_relu": {}}
    assert asked_by(plan(file, rules=named, no_rule="dead_relu")) == {"plateau"}


def test_rules_are_left_out_where_there_is_no_file(run_dir):
    td.watch(
        nn.Linear(1, 1),
        run_dir=run_dir,
        rules=["overfit", "dead_relu"],
        no_rule="dead_relu",
        supervise=False,
    ).detach()
    assert asked_by(json.loads((run_dir / "plan.json").read_text())) == {"overfit"}


@pytest.mark.parametrize(
    ("text", "arguments", "mode", "schedule"),
    [
        ("first-step = 1000", {}, "train", {"every": 1, "start": 1000}),
        ("at-steps = [3, 7]", {}, "train", {"every": 0, "steps": [3, 7]}),
        ("every-seconds = 60", {}, "train", {"every": 0, "every_ms": 60000}),
        ('every = 5\ncapture-in = "eval"', {}, "eval", {"every": 5}),
        ("end-step = 9", {"every": 2}, "train", {"every": 2, "end": 9}),
    ],
)
def test_what_the_call_names_is_captured_when_the_file_says(text, arguments, mode, schedule, plan):
    made = plan(text + "\n", collect="gradients", **arguments)
    asked = [wish for wish in wishes(made) if wish[0] == "gradients" and wish[2] == STATISTICS]
    assert ("gradients", mode, STATISTICS, schedule) in asked


def test_parameters_of_rules_hold_where_the_call_says_nothing_else(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text("[rule.overfit]\npatience = 3\ngive_back = 0.5\n")

    def rules(given):
        return _plan.settings(file, given, None, {}).rules

    (overfit,) = rules([("overfit", {"patience": 9})])
    assert overfit == ("overfit", {"patience": 9, "give_back": 0.5})
    by_default = rules(None)
    assert [name for name, _ in by_default] == _core.default_rules()
    assert dict(by_default)["overfit"] == {"patience": 3, "give_back": 0.5}
    assert rules([]) == []
    file.write_text("every = 3\n")
    assert rules(None) is None


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("every = 7\n", {"collect": "weights"}, [("weights", 7)]),
        ("every = 7\n", {}, []),
        ('collect = "weights"\n', {}, [("weights", 10)]),
        ('collect = "weights"\n', {"every": 2}, [("weights", 2)]),
        ('collect = "weights"\n', {"raw": "losses"}, [("weights", 10), ("losses", 1)]),
        ("[[capture]]\ncollection = 'weights'\n", {}, [("weights", 1)]),
        ('[collection]\nx = "^weight"\n', {}, [("x", 10)]),
        ('histograms = "x"\n[collection]\nx = "^weight"\n', {}, [("x", 10)]),
        ('collect = "weights"\nat-steps = [7, 0]\n', {}, [("weights", 0)]),
    ],
)
def test_intervals(plan, text, arguments, expected):
    found = [(wish[0], wish[3]["every"]) for wish in wishes(plan(text, **arguments))]
    assert sorted(found) == sorted(expected)


def test_the_variable_names_a_file_where_the_call_does_not(plan, tmp_path, monkeypatch):
    (tmp_path / "other.toml").write_text('collect = "biases"\n')
    monkeypatch.setenv("TRAINDBG_CONFIG", "other.toml")
    text = 'collect = "weights"\n'
    assert [wish[0] for wish in wishes(plan(text))] == ["weights"]
    assert [wish[0] for wish in wishes(plan(text, settings=None))] == ["biases"]
    assert wishes(plan(text, settings="none")) == []
    monkeypatch.setenv("TRAINDBG_CONFIG", "none")
    assert wishes(plan(text, settings=None)) == []
    monkeypatch.delenv("TRAINDBG_CONFIG")
    assert wishes(plan(text, settings=None)) == []


def test_a_table_of_a_pyproject(plan, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        "[project]\nname = 'x'\n[tool.traindbg]\ncollect = 'weights'\n"
    )
    assert [wish[0] for wish in wishes(plan("", settings="pyproject.toml"))] == ["weights"]


def test_a_hook_configuration(plan, tmp_path):
    (tmp_path / "hook.json").write_text(
        json.dumps(
            {
                "S3OutputPath": "s3://nowhere",
                "HookParameters": {"save_interval": "50"},
                "CollectionConfigurations": [{"CollectionName": "gradients"}],
            }
        )
    )
    found = wishes(plan('hook-config = "hook.json"\n'))
    assert ("gradients", 50) in {(wish[0], wish[3]["every"]) for wish in found}


def test_a_mistake_in_a_hook_configuration_names_that(plan, tmp_path):
    collection = {"CollectionName": "mine", "CollectionParameters": {"include_regex": "("}}
    (tmp_path / "hook.json").write_text(json.dumps({"CollectionConfigurations": [collection]}))
    with pytest.raises(InvalidArgument, match=r"^hook configuration hook\.json: collection mine"):
        plan('hook-config = "hook.json"\n')


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('\ncolect = "weights"\n', "traindbg.toml:2: unknown key 'colect' .*'collect'"),
        ("every = 0\n", "traindbg.toml:1: every: 0 is less than 1"),
        ("every = 2.5\n", "traindbg.toml:1: every"),
        ("every = [1, 2]\n", "traindbg.toml:1: every: expected one value"),
        ('\n\nquota = "much"\n', "traindbg.toml:3: quota: 'much' is no size"),
        ('block-for = "2 h"\n', "traindbg.toml:1: block-for"),
        ('budget = "200%"\n', "traindbg.toml:1: budget"),
        ('overflow = "block"\n', "traindbg.toml:1: overflow: .*block_for"),
        ('at-steps = [1, "x"]\n', "traindbg.toml:1: at-steps: 'x'"),
        ('every-seconds = "soon"\n', "traindbg.toml:1: every-seconds"),
        ('collect = "weigths"\n', "traindbg.toml:1: collect: no collection 'weigths' .*'weights'"),
        ("collect = []\n", "traindbg.toml:1: collect: expected a value"),
        ("first-step = 9\nend-step = 9\n", "traindbg.toml:2: end-step: 9 is not after"),
        ('flight-raw = "weights"\n', "traindbg.toml:1: flight-raw: needs --flight-recorder"),
        (
            'flight-recorder = 3\nflight-raw = "x"\n',
            "traindbg.toml:2: flight-raw: no collection 'x'",
        ),
        ("thin = 3\n", "traindbg.toml:1: thin: .* older than --keep-last"),
        ('rules = ["overfitt"]\n', "traindbg.toml:1: rules: .*overfit"),
        ("[rule.overfit]\npatienc = 3\n", "traindbg.toml: rule: .*patienc"),
        ("[collection]\nweights = 'x'\n", "traindbg.toml: collection: weights is a built-in"),
        ("[collection]\nmine = '('\n", "traindbg.toml: .*mine"),
        ("[collection]\nmine = '(?<=x)y'\n", "traindbg.toml: .*mine"),
        ('stop-grace = "soon"\n', "traindbg.toml:1: stop-grace: 'soon' is not a number"),
        ("[[capture]]\ncollection = 'x'\n", "traindbg.toml: capture: no collection 'x'"),
        ("[[capture]]\nsteps = [1]\n", "traindbg.toml:1: capture: 'collection' is missing"),
        ("every = \n", "traindbg.toml:[12]"),
        ('hook-config = "gone.json"\n', "traindbg.toml:1: hook-config: gone.json"),
    ],
)
def test_what_is_wrong_names_its_place(plan, text, named):
    with pytest.raises((InvalidArgument, NotFound), match=named) as caught:
        plan(text)
    assert isinstance(caught.value, NotFound) == ("gone.json" in text)


def test_steps_of_which_none_is_due(plan):
    steps = {"collection": "weights", "every": 100, "start": 10}
    with pytest.raises(InvalidArgument, match="no step is due by start=10, end=20, every=100"):
        plan("", capture=[{**steps, "end": 20}])
    with pytest.raises(InvalidArgument, match="every=100: no step is due by start=10, end=20"):
        plan("first-step = 10\nend-step = 20\n", collect="weights", every=100)
    for last in ({"end": 101}, {"steps": [11], "end": 12}, {"seconds": 5, "end": 20}, {}):
        assert len(wishes(plan("", capture=[{**steps, **last}]))) == 1


def test_a_file_that_is_not_there(plan, tmp_path, monkeypatch):
    with pytest.raises(NotFound, match=r"gone\.toml: there is no such file"):
        plan("", settings=tmp_path / "gone.toml")
    monkeypatch.setenv("TRAINDBG_CONFIG", "gone.toml")
    with pytest.raises(NotFound, match=r"TRAINDBG_CONFIG: gone\.toml"):
        plan("", settings=None)
    with pytest.raises(InvalidArgument, match="not a regular file"):
        plan("", settings=tmp_path)


def test_what_only_the_program_can_do_is_said(plan, capfd):
    plan('upload = "s3://bucket/x"\nfail-on = "error"\ncollect = "weights"\n')
    said = capfd.readouterr().err
    assert "fail-on, upload" in said
    assert "traindbg run" in said


def test_the_supervisor_is_told_what_to_do(tmp_path):
    file = tmp_path / "x.toml"
    file.write_text('on-finding = "stop"\nact-at = "error"\n')
    told = _plan.settings(file, None, None, {}).supervisor
    assert told == ["--on-finding", "stop", "--act-at", "error"]


@pytest.mark.parametrize("named", [False, True])
def test_under_the_program_captures_are_added_and_its_choices_hold(tmp_path, monkeypatch, named):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    (run_dir / "plan.json").write_text(_core.plan_for_rules([]))
    (tmp_path / "mine.toml").write_text('collect = "weights"\ncompiled = "skip"\n')
    monkeypatch.setenv("TRAINDBG_RUN_DIR", str(run_dir))
    monkeypatch.setenv("TRAINDBG_CONFIG", str(tmp_path / "gone.toml"))  # the program's affair
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    settings = {"settings": tmp_path / "mine.toml"} if named else {}
    with td.watch(model, optimizer, **settings) as watcher:
        plan = json.loads(watcher._recording.session.plan())
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    assert [wish[0] for wish in wishes(plan)] == (["weights"] if named else [])
    assert plan["compiled"] == "auto"
    step = td.Run(run_dir).step(0)
    assert (step is not None and "weight/weight" in step.tensors) == named
