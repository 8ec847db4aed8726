// What the model computes for a sample depends on the other samples of its batch.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kSamplesMixed = {
    .name = "samples_mixed",
    .title = "Samples of a batch see each other",
    .summary =
        "The model works over the samples of a batch as if they were positions of one: what it says of one "
        "depends on the others.",
    .when =
        "The forward pass works across the samples of a batch, as seen at `looks` looks in a row, or a "
        "sample's output changes with the other samples (with --probe).\n"
        "- Mixed (warning): in `looks` looks in a row, the training's forward pass gives a recurrent layer "
        "or an attention its input such that it goes from sample to sample, or takes a softmax over the "
        "samples.\n"
        "- Cut (warning): likewise where a view or reshape, in place of a transpose, cuts the samples "
        "anew, so that each is made of pieces of several. Also where they were taken apart before, as "
        "clips into frames.\n"
        "- How samples are followed: the dimension along which they lie is followed from the model's first "
        "input, in two of the first steps (up to six where something shows). This is done only where a "
        "loss function was given one label for each of them.\n"
        "- Samples for certain: it must be known that they are samples, which any batch may hold, and no "
        "steps of one recording. A DataLoader draws batches of this size at random, or, at later looks, "
        "rows that were in one batch come in several.\n"
        "- Probed (warning), with --probe, in `looks` probes in a row: a copy of the model in evaluation "
        "mode is given the same batch, in which every second sample is replaced by the one before it. For "
        "half or more of the samples that were left as they are, it returns something else.\n"
        "- Something else: a difference of more than a thousandth of what samples differ by (a fiftieth in "
        "16 bits), and of more than ten times what two passes over the same batch differ by.",
    .why =
        "A prediction is worth what the rest of the batch makes it: it changes with the batch size, with the "
        "order of the data, and where one sample comes alone. The loss may fall all the same, by what the "
        "samples tell of each other.",
    .fix =
        "Look for what works over the first dimension: view or reshape where transpose or permute is meant, "
        "softmax, mean, sum or a normalisation with dim=0, attention or a recurrent layer without "
        "batch_first=True that is given batches first.",
    .healthy =
        "Batch normalisation, which keeps its own statistics for evaluation; a softmax over pairs of samples "
        "(contrastive losses) or over both in turn (Sinkhorn); one sequence, graph or set whose items are "
        "labelled. Not probed are models with normalisation that never does, batches that are always dealt "
        "alike (the nodes of a graph, the items of a list, all data at once), graphs that are given as edges "
        "or adjacency, labels that number the samples of the batch (contrastive losses), values that are "
        "rounded to steps of the batch's own range (quantisation), and trainings of several models. Models "
        "whose samples meet on purpose (attention over a batch, experts of which each takes so many samples, "
        "the deviation of a batch as a feature of a discriminator) are not told apart: leave the rule out "
        "(--no-rule samples_mixed).",
    .cost =
        "At up to six steps a look at the sizes of what functions are given. With --probe: at up to six "
        "steps a fork of the process and three forward passes without gradients, or twice as many where "
        "something is found; from the third probe on less than 1 % of the time. Else nothing.",
    .original = "",
    .source =
        "Karpathy, \"A recipe for training neural networks\", 2019 (use backprop to chart dependencies)",
    .severity = model::Severity::kWarning,
    .parameters = {{"looks", "looks", 2, 1, 6, "looks or probes in a row that must show it"}},
};

// What a forward pass does with samples: the fact, in words, and what to do instead.
struct Way {
    std::string_view fact, does, fix;
};
constexpr std::array<Way, 5> kWays = {
    Way{"samples_cut_before",
        "the model is given a batch that a view or reshape has cut anew, so that each sample is made of "
        "pieces of several",
        "Write x.transpose(0, 1) (or permute) where view or reshape is to swap dimensions."},
    Way{"samples_cut_anew",
        "a view or reshape moves the samples of the batch to another dimension: the same values are cut "
        "anew, so that each new sample is made of pieces of several",
        "Write x.transpose(0, 1) (or permute) where view or reshape is to swap dimensions."},
    Way{"recurrent_over_samples",
        "a recurrent layer goes from one sample of the batch to the next, and not along any of them",
        "Make the layer with batch_first=True (or without it, where time comes first), or transpose what it "
        "is given."},
    Way{"attention_over_samples",
        "each position attends to its place in the other samples of the batch, and to nothing else of its "
        "own",
        "Make the attention with batch_first=True, or give it (positions, batch, features)."},
    Way{"softmax_over_samples",
        "a softmax sums to one over the samples of the batch, so that each one's share depends on the others",
        "Name the dimension of classes, positions or experts: softmax(dim=-1), or dim=1."}};

class SamplesMixed final : public Rule {
  public:
    explicit SamplesMixed(const Parameters& parameters)
        : seen_(parameters.at("looks")), followed_(parameters.at("looks")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        follow(step, sink);
        probed(step, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged() + followed_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no loss function was given one label for each sample of the model's first input, and no "
               "probe told; --probe makes them, where a batch's samples are known";
    }

  private:
    // What the forward pass does over the samples, by the sizes of what functions are given.
    void follow(const model::StepView& step, FindingSink& sink) {
        are_dealt_ = are_dealt_ || loop_fact(step, "samples_dealt").has_value();
        if (const std::optional<LoopFact> samples = loop_fact(step, "samples_followed")) {
            const auto way = std::find_if(kWays.begin(), kWays.end(), [&](const Way& each) {
                return loop_fact(step, each.fact).has_value();
            });
            followed_.add(step, way != kWays.end());
            if (way != kWays.end()) shown_ = say(*way, *loop_fact(step, way->fact), samples->value);
        }
        if (!is_followed() || has_fired_) return;
        has_fired_ = true;
        shown_.first_step = followed_.first();
        shown_.evidence.push_back(followed_.evidence());
        sink.fire(shown_);
    }
    [[nodiscard]] bool is_followed() const { return followed_.is_enough() && are_dealt_; }
    [[nodiscard]] static model::Finding say(const Way& way, const LoopFact& told, double samples) {
        model::Finding finding;
        finding.key = "samples";
        finding.severity = model::Severity::kWarning;
        finding.tensor = std::string(told.tensor);
        finding.layer = std::string(told.place);
        const std::string where = told.place.empty() ? "the model" : finding.layer;
        const std::string line = told.value > 0 ? base::format("line {:.0f}", told.value) : std::string();
        if (way.fact == "samples_cut_before")
            finding.message = base::format("{}{}.", line.empty() ? "Here " : "In " + line + " ", way.does);
        else
            finding.message =
                base::format("In {}{} {}.", where, line.empty() ? "" : " (" + line + ")", way.does);
        finding.fix = std::string(way.fix);
        finding.evidence.push_back({"samples of the batch", samples, "that should see each other", 0});
        return finding;
    }

    void probed(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> changed = loop_fact(step, "samples_mixed");
        if (!changed) return;
        seen_.add(step, changed->value > 0);
        if (!seen_.is_enough() || is_followed()) return;  // what it does says more than that it shows
        model::Finding finding = loop_finding("samples", model::Severity::kWarning, seen_, *changed);
        const std::string where = changed->place.empty() ? std::string("what the model computes itself")
                                                         : base::format("{}", changed->place);
        finding.message = base::format(
            "When half of a batch is replaced, the output changes for {:.3g} % of the samples that were left "
            "as they are: samples see each other. It shows first in {}.",
            100 * changed->value, where);
        finding.fix = base::format(
            "Look in and before {} for what works over the first dimension: view or reshape where transpose "
            "is meant, softmax or mean with dim=0, a layer without batch_first=True.",
            where);
        finding.evidence.push_back(
            {"share of the samples left alone that changed", changed->value, "expected", 0});
        if (const auto size = loop_fact(step, "samples_mixed_change"))
            finding.evidence.push_back({"change / what samples differ by", size->value, "rounding", 1e-3});
        sink.fire(std::move(finding));
    }

    InARow seen_, followed_;
    bool are_dealt_ = false, has_fired_ = false;
    model::Finding shown_;
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
