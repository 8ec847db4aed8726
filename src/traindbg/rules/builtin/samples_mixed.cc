// What the model computes for a sample depends on the other samples of its batch.

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kSamplesMixed = {
    .name = "samples_mixed",
    .title = "Samples of a batch see each other",
    .summary = "In evaluation mode, too, the model's output for a sample depends on the rest of the batch.",
    .when =
        "With --probe. In `looks` probes in a row a copy of the model in evaluation mode, given the same "
        "batch "
        "in which each second sample was replaced by the one before it, returned something else for half or "
        "more of the samples that were left as they are: by more than a thousandth of what samples differ by "
        "(a fiftieth in 16 bits), and ten times what two passes over the same batch differ by.",
    .why =
        "A prediction is worth what the rest of the batch makes it: it changes with the batch size, with the "
        "order of the data, and where one sample comes alone. The loss may fall all the same, by what the "
        "samples tell of each other.",
    .fix =
        "Look for what works over the first dimension: view or reshape where transpose or permute is meant, "
        "softmax, mean, sum or a normalisation with dim=0, attention or a recurrent layer without "
        "batch_first=True that is given batches first.",
    .healthy =
        "Batch normalisation, which keeps its own statistics for evaluation. Not probed are models with "
        "normalisation that never does, batches that are always dealt alike (the nodes of a graph, the items "
        "of a list, all data at once), graphs that are given as edges or adjacency, labels that number the "
        "samples of the batch (contrastive losses), values that are rounded to steps of the batch's own "
        "range "
        "(quantisation), and trainings of several models. Models whose samples meet on "
        "purpose (attention over a batch, experts of which each takes so many samples, the deviation of a "
        "batch as a feature of a discriminator) are not told apart: leave the rule out (--no-rule "
        "samples_mixed).",
    .cost =
        "With --probe: at up to six steps a fork of the process and three forward passes without gradients, "
        "or twice as many where something is found; from the third probe on less than 1 % of the time. Else "
        "nothing.",
    .original = "",
    .source =
        "Karpathy, \"A recipe for training neural networks\", 2019 (use backprop to chart dependencies)",
    .severity = model::Severity::kWarning,
    .parameters = {{"looks", "probes", 2, 1, 6, "probes in a row that must show it"}},
};

class SamplesMixed final : public Rule {
  public:
    explicit SamplesMixed(const Parameters& parameters) : seen_(parameters.at("looks")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        const std::optional<LoopFact> changed = loop_fact(step, "samples_mixed");
        if (!changed) return;
        seen_.add(step, changed->value > 0);
        if (!seen_.is_enough()) return;
        model::Finding finding = loop_finding("samples", model::Severity::kWarning, seen_, *changed);
        const std::string where = changed->place.empty() ? std::string("what the model computes itself")
                                                         : base::format("{}", changed->place);
        finding.message = base::format(
            "When half of a batch is replaced, the output changes for {:.3g} % of the samples that were left "
            "as they are: samples see each other. It shows first in {}.",
            100 * changed->value, where);
        finding.fix = base::format(
            "Look in and before {} for what works over the first dimension: view or reshape where transpose "
            "is "
            "meant, softmax or mean with dim=0, a layer without batch_first=True.",
            where);
        finding.evidence.push_back(
            {"share of the samples left alone that changed", changed->value, "expected", 0});
        if (const auto size = loop_fact(step, "samples_mixed_change"))
            finding.evidence.push_back({"change / what samples differ by", size->value, "rounding", 1e-3});
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no probe told; --probe makes them, where a batch's samples are known";
    }

  private:
    InARow seen_;
};

std::vector<model::Requirement> samples_mixed_needs(const Parameters&) {
    std::vector<model::Requirement> needs = row_requirements(kSamplesMixed.name);
    std::erase_if(needs, [](const model::Requirement& each) { return each.mode != model::Mode::kTrain; });
    return needs;
}

}  // namespace

RuleEntry builtin::samples_mixed() {
    return {&kSamplesMixed, &samples_mixed_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<SamplesMixed>(p); }};
}

}  // namespace traindbg::rules
