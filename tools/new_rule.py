"""Write the skeleton of a new built-in rule: `python tools/new_rule.py stale_batch_norm`.

Makes `src/traindbg/rules/builtin/NAME.cc` and a scenario, and adds the rule to the table
(`builtin.h`, `registry.cc`), sorted. Exit code 2 when the name is not usable or taken.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

SOURCE = """// @TITLE@: what is wrong when it fires, in one sentence.

#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo k@CLASS@ = {
    .name = "@NAME@",
    .title = "@TITLE@",
    .summary = "One sentence: what is wrong when it fires.",
    .when = "The exact condition, with the parameters by name: a loss above `limit`.",
    .why = "Why it matters to the training.",
    .fix = "What a user changes, most likely remedy first.",
    .healthy = "What looks alike and does not make it fire.",
    .cost = "What it needs captured, in words.",
    .original = "",
    .source = "",
    .severity = model::Severity::kWarning,
    .parameters = {{"limit", "loss", 1e6, 0, 1e30, "loss above which it fires"}},
};

class @CLASS@ final : public Rule {
  public:
    explicit @CLASS@(const Parameters& parameters) : limit_(parameters.at("limit")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (!loss_.observe(step)) return;
        if (loss_.level() <= limit_) return sink.clear("loss");
        model::Finding finding;
        finding.key = "loss";
        finding.tensor = loss_.tensor();
        finding.message =
            base::format("The loss is {:.3g} at step {}.", loss_.level(), step.step());
        finding.fix = "Say what to change.";
        finding.evidence.push_back({"loss", loss_.level(), "limit", limit_});
        finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return loss_.count(); }
    [[nodiscard]] std::string why_not_judged() const override { return "no loss was seen"; }

  private:
    double limit_;
    TrainingLoss loss_;
};

std::vector<model::Requirement> @NAME@_needs(const Parameters&) {
    return loss_requirements(k@CLASS@.name);
}

}  // namespace

RuleEntry builtin::@NAME@() {
    return {&k@CLASS@, &@NAME@_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<@CLASS@>(p);
            }};
}

}  // namespace traindbg::rules
"""

SCENARIO = """scenario: a training whose loss is far too large
rules @NAME@

series loss value train 0..29: 1e7

expect @NAME@ severity=warning key=loss
"""

DECLARATION = "[[nodiscard]] RuleEntry {}();"
ENTRY = "        builtin::{}(),"


def add_sorted(path: Path, pattern: str, line: str) -> None:
    """Insert `line` into the block of lines that match `pattern` (one group: the rule's name)."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = re.search(pattern, line)
    if found is None:
        raise ValueError(f"{line!r} does not match {pattern!r}")
    rows = [(i, m.group(1)) for i, text in enumerate(lines) if (m := re.search(pattern, text))]
    after = [i for i, name in rows if name < found.group(1)]
    lines.insert(after[-1] + 1 if after else rows[0][0], line)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Write the files; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="snake_case, named after the fault")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    options = parser.parse_args(arguments)
    name: str = options.name
    root: Path = options.root
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        print(f"{name}: use snake_case, named after the fault, e.g. dead_relu", file=sys.stderr)
        return 2
    rules = root / "src/traindbg/rules"
    source = rules / f"builtin/{name}.cc"
    if source.exists():
        print(f"{source}: is there already", file=sys.stderr)
        return 2
    words = name.split("_")
    fields = {
        "@NAME@": name,
        "@CLASS@": "".join(word.capitalize() for word in words),
        "@TITLE@": " ".join(words).capitalize(),
    }

    def filled(template: str) -> str:
        for field, value in fields.items():
            template = template.replace(field, value)
        return template

    source.write_text(filled(SOURCE), encoding="utf-8")
    scenario = root / f"tests/scenarios/{name}/fires.txt"
    scenario.parent.mkdir(parents=True, exist_ok=True)
    scenario.write_text(filled(SCENARIO), encoding="utf-8")
    add_sorted(rules / "builtin/builtin.h", r"RuleEntry (\w+)\(\);", DECLARATION.format(name))
    add_sorted(rules / "registry.cc", r"builtin::(\w+)\(\),", ENTRY.format(name))
    print(f"wrote {source} and {scenario}")
    print("next: fill in what it says about itself, add scenarios, run engine_test and rules_test,")
    print("then TRAINDBG_WRITE_RULE_PAGES=1 rules_test to write its page in docs/rules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
