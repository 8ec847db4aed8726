// TreeDepth: trees that are too deep.

#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleTreeDepth = {
    .name = "TreeDepth",
    .title = "Tree depth",
    .summary = "A tree is deeper than is usual.",
    .when =
        "At a step, the logarithm to base 2 of the largest number of a node of the tree is more than "
        "`depth`.",
    .why = "Deep trees learn their data by heart.",
    .fix = "Lower max_depth, raise min_child_weight or gamma, or stop earlier.",
    .healthy = "Boosting of very many features may need them.",
    .cost = "What an XGBoost run of the original recorded: `trees/Node`.",
    .original = "TreeDepth",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"depth", "levels", 4, 0, 64, "depth above which it fires"}},
    .readings =
        "The formula is the documented one. Numbers of nodes begin at 0, so that it is a little less than "
        "the depth.",
};

class TreeDepth final : public CompatibleRule {
  public:
    explicit TreeDepth(const Parameters& parameters)
        : CompatibleRule("no tree was recorded"), depth_(parameters.at("depth")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        for (const model::TensorSample& sample : step.record->tensors) {
            if (step.info(sample.tensor).name != "trees/Node" || sample.statistics.count == 0) continue;
            const double largest = sample.statistics.max;
            const double depth = largest >= 1 ? std::log2(largest) : 0;
            if (!(depth > depth_)) return pass(sink);
            model::Finding finding = finding_at(step, {{sample.tensor, depth}});
            finding.message = base::format("The tree of step {} has a node of number {}: {:.2f} levels.",
                                           step.step(), largest, depth);
            finding.fix = kCompatibleTreeDepth.fix;
            finding.evidence.push_back({"depth", depth, "limit", depth_});
            finding.plots = {{finding.tensor, "max"}};
            return fire(sink, std::move(finding));
        }
    }

  private:
    double depth_;
};

std::vector<model::Requirement> compatible_tree_depth_needs(const Parameters&) { return {}; }

}  // namespace

RuleEntry tree_depth() {
    return {&kCompatibleTreeDepth, &compatible_tree_depth_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<TreeDepth>(p); }};
}

}  // namespace traindbg::rules::compatible
