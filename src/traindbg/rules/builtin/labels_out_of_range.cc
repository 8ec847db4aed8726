// Labels that the loss function has no meaning for.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kLabelsOutOfRange = {
    .name = "labels_out_of_range",
    .title = "Labels out of the loss function's range",
    .summary = "The labels are not of the kind that the loss function is made for.",
    .when =
        "The labels given to a loss function, looked at over `looks` captured steps, lie outside the range "
        "that the function is made for.\n"
        "- Binary cross-entropy (error): binary_cross_entropy or its form with logits gets a label below 0 "
        "or above 1.\n"
        "- Binary cross-entropy, note only (info): such labels all lie between -0.3 and 1.3, as some GANs "
        "have them.\n"
        "- Binary cross-entropy, note only (info): reduction is \"none\", and the loss is neither the mean "
        "nor the sum of its values, as with weights of 0 for missing labels.\n"
        "- Margin losses (warning): soft_margin_loss, hinge_embedding_loss, cosine_embedding_loss or "
        "margin_ranking_loss gets labels of 0 and 1 instead of -1 and 1.\n"
        "- Counts (error): poisson_nll_loss gets negative counts.\n"
        "- Soft targets (warning, reported as wrong_loss): cross_entropy gets floating-point targets that "
        "are negative, or rows that sum to more than 1.05 on average, as rows with several labels per "
        "sample do.",
    .why =
        "The loss is computed all the same. With labels beyond 1 a cross-entropy has no lower bound; with 0 "
        "for -1 a margin loss ignores these samples; with rows that sum to more than one a softmax is asked "
        "for what it cannot give.",
    .fix =
        "Map the labels: {0, 1} for binary_cross_entropy, {-1, 1} for margin losses. For several labels per "
        "sample use binary_cross_entropy_with_logits, for class indexes cross_entropy.",
    .healthy =
        "Soft labels, label smoothing, mixed samples, soft targets with masked rows; labels of any value in "
        "regressions.",
    .cost = "One pass over what the loss functions are given at the first 10 steps and then at every 50th.",
    .original = "",
    .source = "PyTorch documentation, torch.nn.CrossEntropyLoss and torch.nn.BCELoss: targets",
    .severity = model::Severity::kError,
    .parameters = {{"looks", "captures", 3, 1, 1000, "captured steps that must show it"}},
};

bool is_binary(std::string_view function) {
    return function == "binary_cross_entropy" || function == "binary_cross_entropy_with_logits";
}
bool wants_signs(std::string_view function) {
    return function == "soft_margin_loss" || function == "hinge_embedding_loss" ||
           function == "cosine_embedding_loss" || function == "margin_ranking_loss";
}
bool is_float(tensor::DType dtype) {
    using tensor::DType;
    return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
           dtype == DType::kFloat64;
}

class LabelsOutOfRange final : public Rule {
  public:
    explicit LabelsOutOfRange(const Parameters& parameters)
        : looks_(static_cast<std::uint64_t>(parameters.at("looks"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        if (const std::optional<LoopFact> whole = loop_fact(step, "loss_is_of_all"); whole)
            is_of_some_ = is_of_some_ || whole->value == 0;
        bool any = false;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kLabel || sample.statistics.count == 0 ||
                sample.statistics.not_finite() > 0)
                continue;
            const std::string_view name = info.name;
            const std::string_view function = name.substr(name.find('/') + 1);
            const bool is_soft =
                function == "cross_entropy" && is_float(info.dtype) && info.shape.size() >= 2;
            if (!is_binary(function) && !wants_signs(function) && function != "poisson_nll_loss" && !is_soft)
                continue;
            any = true;
            Seen& seen = seen_[info.id];
            if (seen.looks++ == 0) seen.first = step.step();
            model::merge(seen.labels, sample.statistics);
            if (seen.looks >= looks_) judge(seen, info, function, sink);
        }
        if (any) ++judged_;
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no loss function of torch.nn.functional whose labels have a range was seen";
    }

  private:
    struct Seen {
        std::uint64_t looks = 0;
        model::StepIndex first = 0;
        model::Statistics labels;
    };

    void judge(const Seen& seen, const model::TensorInfo& info, std::string_view function,
               FindingSink& sink) const {
        const model::Statistics& labels = seen.labels;
        model::Finding finding;
        finding.key = function;
        finding.first_step = seen.first;
        finding.tensor = info.name;
        finding.severity = model::Severity::kError;
        const std::string from_to =
            base::format("from {} to {}", base::human_number(labels.min), base::human_number(labels.max));
        if (is_binary(function)) {
            if (labels.min >= -1e-6 && labels.max <= 1 + 1e-6) return;
            const bool is_near = labels.min >= -0.3 && labels.max <= 1.3;
            if (is_near || is_of_some_) finding.severity = model::Severity::kInfo;
            finding.message = base::format(
                "Labels of {} reach {}; they are probabilities, from 0 to 1. Beyond that the loss has no "
                "lower bound.",
                function, from_to);
            finding.fix = is_of_some_ ? "Nothing, if the weights of these labels are 0, as of missing ones."
                          : is_near   ? "Nothing, if it is meant; else clamp the labels to [0, 1]."
                          : labels.min < 0 ? "Map the labels to {0, 1}, e.g. (y + 1) / 2 for -1 and 1, or "
                                             "use mse_loss for real numbers."
                                           : "Map the labels to {0, 1}; for class indexes use cross_entropy "
                                             "with one output per class, for real numbers mse_loss.";
        } else if (wants_signs(function)) {
            if (labels.min < 0 || labels.zero == 0) return;
            finding.severity = model::Severity::kWarning;
            finding.message = base::format(
                "Labels of {} reach {}, and {:.0f} % are 0; it is made for -1 and 1, and a label of 0 has no "
                "effect.",
                function, from_to,
                100 * static_cast<double>(labels.zero) / static_cast<double>(labels.count));
            finding.fix = "Map the labels: y = 2 * y - 1.";
        } else if (function == "poisson_nll_loss") {
            if (labels.min >= 0) return;
            finding.message = base::format("Targets of {} reach {}; they are counts, and none is negative.",
                                           function, from_to);
            finding.fix = "Give it the counts as they are, not standardised; or use mse_loss.";
        } else {
            const auto classes = static_cast<double>(info.shape[1]);
            const double sum = labels.mean * classes;
            if (labels.min >= -1e-6 && sum <= 1.05) return;
            finding.kind = "wrong_loss";
            finding.severity = model::Severity::kWarning;
            finding.message =
                labels.min < -1e-6
                    ? base::format("Targets of cross_entropy reach {}; as probabilities none is negative.",
                                   from_to)
                    : base::format(
                          "Targets of cross_entropy sum to {:.3g} per sample; as probabilities of classes "
                          "that exclude each other they sum to 1.",
                          sum);
            finding.fix =
                "For several labels per sample use binary_cross_entropy_with_logits; for one give "
                "cross_entropy the class index.";
            finding.evidence.push_back({"sum of a sample's targets", sum, "limit", 1});
        }
        finding.evidence.push_back({"smallest label", labels.min, "", 0});
        finding.evidence.push_back({"largest label", labels.max, "", 0});
        finding.plots = {{info.name, "min"}, {info.name, "max"}};
        sink.fire(std::move(finding));
    }

    std::uint64_t looks_;
    std::uint64_t judged_ = 0;
    bool is_of_some_ = false;  // the loss is neither the mean nor the sum of what the function gave
    std::map<model::TensorId, Seen> seen_;
};

std::vector<model::Requirement> labels_out_of_range_needs(const Parameters&) {
    std::vector<model::Requirement> all = argument_requirements(kLabelsOutOfRange.name);
    std::erase_if(all, [](const model::Requirement& each) { return each.collection != "labels"; });
    all.push_back(loop_requirement(kLabelsOutOfRange.name));
    return all;
}

}  // namespace

RuleEntry builtin::labels_out_of_range() {
    return {&kLabelsOutOfRange, &labels_out_of_range_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<LabelsOutOfRange>(p);
            }};
}

}  // namespace traindbg::rules
