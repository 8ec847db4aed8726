// A loss function that makes its own softmax, sigmoid or none is given values made for another one.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/settings.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kLossInputRange = {
    .name = "loss_input_range",
    .title = "Probabilities where logits are due, or the reverse",
    .summary =
        "A loss function is given values that went through a softmax or sigmoid which it computes itself, or "
        "values that lack the log_softmax which it expects.",
    .when =
        "A loss function gets probabilities where it expects logits (a softmax or sigmoid too many), or no "
        "log-probabilities where it expects these (a softmax too few).\n"
        "- Judged: from the statistics of what a loss of torch.nn.functional is given. They must show it at "
        "every step at which they are captured, and at least `looks` of them.\n"
        "- redundant_softmax, by the values (warning): cross_entropy or a loss with logits gets values in "
        "[0, 1] whose mean is one over the number of classes, so that each row sums to one. Or one over the "
        "number of rows: a softmax over the batch.\n"
        "- redundant_softmax, in the graph (warning): in the graphs of two steps, the logarithm of a softmax "
        "is taken of what a softmax along the same dimension gave. A distribution that is given "
        "probabilities as logits does so.\n"
        "- redundant_sigmoid (warning): cross_entropy or a loss with logits gets exactly what a sigmoid in "
        "the model returned, or the sigmoid of what a module returned. Or, in the graphs of two steps, it is "
        "given what a sigmoid gave, wherever that was computed.\n"
        "- redundant_sigmoid, written out (warning): in the graphs of two steps, the loss takes the "
        "logarithm of a sigmoid, or of one less it, of what another sigmoid gave, with no layer or factor "
        "between. Or binary_cross_entropy is given such a sigmoid.\n"
        "- redundant_sigmoid, by the values (warning): nothing of that can be seen, but the values given to "
        "a loss with logits reach from below 0.1 to above 0.9 and never leave [0, 1] in 30 looks and 50 "
        "steps.\n"
        "- missing_softmax (error): nll_loss, kl_div or ctc_loss gets values above zero, which no "
        "log-probability is.\n"
        "- missing_softmax, mean too large (warning): nll_loss or ctc_loss gets values whose mean is above "
        "ln(1/C). Log-probabilities of C classes never have such a mean.\n"
        "- missing_softmax, logarithm forgotten (warning): nll_loss, kl_div or ctc_loss gets probabilities "
        "without their logarithm.\n"
        "- missing_softmax, written out (error): a loss that is written out is, in the graphs of two steps, "
        "nothing but a weighted sum of what a last layer gave. The weights are rows of labels that sum to "
        "one, or one score is picked of each row.\n"
        "- missing_softmax, cut off (error): in the graphs of two steps, the loss takes the logarithm of "
        "what a last layer gave, cut off near 0 and 1 as probabilities are. A tenth of these scores or more "
        "lie outside of 0 to 1, where probabilities never are.\n"
        "- Cut off, which: three scores or more a row, of a layer with weights. One of each row is picked, "
        "or the logarithms are multiplied with labels of their shape. No other term of the loss leads to "
        "these scores.",
    .why =
        "A softmax or sigmoid twice over cannot be sure of anything: with C classes the loss stays above "
        "ln(1 + (C-1)/e), gradients are small, and training looks slow but plausible. Without log_softmax "
        "the loss has no lower bound, and one large value pays for all wrong ones.",
    .fix =
        "Give cross_entropy, binary_cross_entropy_with_logits and distributions by their logits the last "
        "layer's output as it is, and apply softmax or sigmoid only where probabilities are reported. Give "
        "nll_loss, kl_div and ctc_loss log_softmax(x, dim=1), or use cross_entropy instead of nll_loss.",
    .healthy =
        "Logits that happen to lie in [0, 1] for a while; logits behind a ReLU; log_softmax in front of "
        "cross_entropy, which changes nothing; probabilities in mse_loss or binary_cross_entropy, or given "
        "to a distribution as probs. A barrier: the logarithm of what another term fits. One score a row, "
        "cut off, as a linear model of probabilities has it. Cosines of pairs, cut off.",
    .cost =
        "One pass over what the loss functions are given at the first 10 steps and then at every 50th, and "
        "over what the modules return at the first 5 and every 50th. Three times the last operations of a "
        "loss are looked at.",
    .original = "",
    .source = "Ben Braiek, Khomh, \"Testing Feedforward Neural Networks Training Programs\", TOSEM 2022",
    .severity = model::Severity::kError,
    .parameters = {{"looks", "captures", 3, 2, 1000, "captured steps that must all show it"}},
};

enum class Expects : std::uint8_t { kOther, kLogits, kBinaryLogits, kLogProbabilities };

Expects expected_by(std::string_view function) {
    if (function == "cross_entropy") return Expects::kLogits;
    if (function == "binary_cross_entropy_with_logits" || function == "multilabel_soft_margin_loss")
        return Expects::kBinaryLogits;
    if (function == "nll_loss" || function == "kl_div" || function == "ctc_loss")
        return Expects::kLogProbabilities;
    return Expects::kOther;
}

// A loss before which graphs show a sigmoid.
struct Squashed {
    const char *fact, *key, *loss, *tensor, *computes, *range, *fix;
};

constexpr std::array<Squashed, 3> kSquashed = {{
    {"sigmoid_twice", "binary_cross_entropy_with_logits", "binary_cross_entropy_with_logits",
     "loss/binary_cross_entropy_with_logits", "a sigmoid", "0.5 to 0.73",
     "Return the values before the sigmoid where the loss is computed, and apply it only where "
     "probabilities are reported; or use binary_cross_entropy with it."},
    {"sigmoid_before_softmax", "cross_entropy", "cross_entropy", "loss/cross_entropy", "a softmax",
     "1/(1 + (C-1)e) to e/(e + C-1)",
     "Remove the sigmoid in front of cross_entropy; for several labels per sample use "
     "binary_cross_entropy_with_logits without it."},
    {"sigmoid_before_logarithm", "in the loss", "The loss", "loss", "a sigmoid", "0.5 to 0.73",
     "Keep one of the two sigmoids: return the values before it from the model, or take probabilities as "
     "they are in the loss."},
}};

class LossInputRange final : public Rule {
  public:
    explicit LossInputRange(const Parameters& parameters)
        : looks_(static_cast<std::uint64_t>(parameters.at("looks"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        bool any = false;
        if (const auto raw = loop_fact(step, "loss_is_raw_scores"); raw && raw->value > 0) {
            any = true;
            if (++raw_graphs_ == 1) first_raw_ = step.step();
            if (raw_graphs_ >= 2) fire_written_out(step, sink);
        }
        if (const auto cut = loop_fact(step, "loss_cuts_off_raw_scores"); cut && cut->value > 0) {
            any = true;
            if (++cut_graphs_ == 1) first_cut_ = step.step();
            if (cut_graphs_ >= kGraphs) fire_cut_off(step, sink);
        }
        if (const auto twice = loop_fact(step, "softmax_twice"); twice && twice->value > 0) {
            any = true;
            if (++twice_graphs_ == 1) first_twice_ = step.step();
            if (twice_graphs_ >= 2) fire_twice_in_graph(step, twice->place, sink);
        }
        for (const LossCall& call : loss_calls(step)) {
            if (expected_by(call.function) == Expects::kOther) continue;
            any = true;
            Seen& seen = seen_[call.prediction->id];
            look(seen, step, call);
            judge(seen, step, call, sink);
        }
        for (const Squashed& before : kSquashed) {
            const auto fact = loop_fact(step, before.fact);
            if (!fact || !(fact->value > 0)) continue;
            any = true;
            if (++sigmoid_graphs_ == 1) first_sigmoid_ = step.step();
            if (sigmoid_graphs_ >= 2 && !is_sigmoid_told_)
                fire_sigmoid_in_graph(step, fact->place, before, sink);
        }
        if (any) ++judged_;
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no loss function of torch.nn.functional that expects logits or log-probabilities was seen, "
               "and no loss that is a sum of scores or has two softmaxes in its graph";
    }

  private:
    // Of one loss function, over all looks.
    struct Seen {
        std::uint64_t looks = 0;
        model::StepIndex first = 0;
        std::uint64_t in_unit = 0;               // looks whose values all lie in [0, 1]
        std::array<std::uint64_t, 2> sums = {};  // and whose rows, or columns, sum to one
        std::uint64_t positive = 0;              // looks with a value above zero
        std::uint64_t above_guessing = 0;        // looks at log-probabilities that sum to more than one
        std::uint64_t with_maker = 0, from_sigmoid = 0;
        double lowest = 0, highest = 0;
        Maker maker;
        bool has_both_labels = false;
    };

    // Whether the values along a dimension of this size sum to one.
    static bool sums_to_one(const model::Statistics& values, std::int64_t size,
                            const model::TensorInfo& info) {
        if (size < 2) return false;
        using tensor::DType;
        const bool is_coarse = info.dtype == DType::kFloat16 || info.dtype == DType::kBFloat16;
        return std::abs(values.mean * static_cast<double>(size) - 1) < (is_coarse ? 5e-3 : 2e-5);
    }

    static std::size_t dimension_of_classes(const LossCall& call) {
        const std::size_t last = call.prediction->shape.empty() ? 0 : call.prediction->shape.size() - 1;
        return call.function == "ctc_loss" || call.function == "kl_div" ? last
                                                                        : std::min<std::size_t>(1, last);
    }

    // The mean of the logarithms of C probabilities that sum to one is ln(1 / C) at most.
    static bool is_above_guessing(const LossCall& call) {
        constexpr double kRounding = 0.97;
        const std::vector<std::int64_t>& shape = call.prediction->shape;
        if ((call.function != "nll_loss" && call.function != "ctc_loss") || shape.empty()) return false;
        const std::int64_t classes = shape[dimension_of_classes(call)];
        const model::Statistics& values = *call.predicted;
        return classes >= 2 && values.count > 0 && values.not_finite() == 0 &&
               values.mean > -kRounding * std::log(static_cast<double>(classes));
    }

    static void look(Seen& seen, const model::StepView& step, const LossCall& call) {
        const model::Statistics& values = *call.predicted;
        const std::vector<std::int64_t>& shape = call.prediction->shape;
        if (seen.looks++ == 0) {
            seen.first = step.step();
            seen.lowest = values.min;
            seen.highest = values.max;
        }
        seen.lowest = std::min(seen.lowest, values.min);
        seen.highest = std::max(seen.highest, values.max);
        if (values.max > 1e-4) ++seen.positive;
        if (call.labelled != nullptr && call.labelled->min < 0.5 && call.labelled->max > 0.5)
            seen.has_both_labels = true;
        if (is_above_guessing(call)) ++seen.above_guessing;
        if (values.min < 0 || values.max > 1 + 1e-6) return;
        ++seen.in_unit;
        const std::size_t classes = dimension_of_classes(call);
        if (!shape.empty() && sums_to_one(values, shape[classes], *call.prediction)) ++seen.sums[0];
        // The batch's size is that of the first one; a smaller one is told by its number of values.
        if (shape.size() == 2 && shape[1] > 0 && shape[0] != shape[1] &&
            sums_to_one(values, static_cast<std::int64_t>(values.count) / shape[1], *call.prediction))
            ++seen.sums[1];
        const Maker maker = maker_of(step, call);
        if (maker.tensor == nullptr) return;
        ++seen.with_maker;
        if (maker.squash == Squash::kSigmoid) {
            ++seen.from_sigmoid;
            seen.maker = maker;
        }
    }

    void judge(const Seen& seen, const model::StepView& step, const LossCall& call, FindingSink& sink) {
        if (seen.looks < looks_) return;
        const Expects expects = expected_by(call.function);
        const bool rows = seen.sums[0] == seen.looks, columns = seen.sums[1] == seen.looks;
        if (expects == Expects::kLogProbabilities) {
            if (rows || columns) return fire_probabilities(seen, step, call, sink);
            if (seen.positive == seen.looks) fire_raw(seen, step, call, sink);
            else if (seen.above_guessing == seen.looks) fire_above_guessing(seen, step, call, sink);
            return;
        }
        if (rows || columns) return fire_softmax(seen, step, call, !rows, sink);
        if (seen.in_unit < seen.looks) return;
        const bool is_known = seen.from_sigmoid >= 2 && seen.from_sigmoid == seen.with_maker;
        const bool is_likely = expects == Expects::kBinaryLogits && seen.with_maker == 0 &&
                               seen.looks >= 30 && step.step() >= seen.first + 50 && seen.has_both_labels &&
                               seen.lowest < 0.1 && seen.highest > 0.9;
        if (!is_known && (!is_likely || sigmoid_graphs_ >= 2)) return;
        is_sigmoid_told_ = true;
        fire_sigmoid(seen, step, call, is_known, sink);
    }

    static model::Finding about(const Seen& seen, const LossCall& call, const char* kind) {
        model::Finding finding;
        finding.key = base::format("{} {}", kind, call.function);
        finding.kind = kind;
        finding.first_step = seen.first;
        finding.tensor = base::format("loss/{}", call.function);
        finding.evidence.push_back({"smallest value given", seen.lowest, "", 0});
        finding.evidence.push_back({"largest value given", seen.highest, "", 0});
        finding.plots = {{call.prediction->name, "min"}, {call.prediction->name, "max"}};
        return finding;
    }

    void fire_softmax(const Seen& seen, const model::StepView& step, const LossCall& call, bool over_batch,
                      FindingSink& sink) const {
        const std::vector<std::int64_t>& shape = call.prediction->shape;
        const auto classes = static_cast<double>(shape[std::min<std::size_t>(1, shape.size() - 1)]);
        model::Finding finding = about(seen, call, "redundant_softmax");
        finding.message = base::format(
            "{} is given probabilities: in each of {} captured steps up to step {} all values lie in [0, 1] "
            "and each {} sums to one. It computes a softmax itself",
            call.function, seen.looks, step.step(), over_batch ? "column of the batch" : "row");
        if (expected_by(call.function) == Expects::kLogits && !over_batch) {
            const double floor = std::log(1 + (classes - 1) / std::exp(1.0));
            finding.message += base::format(", so with {:.0f} classes the loss cannot fall below {}", classes,
                                            base::human_number(floor));
            finding.evidence.push_back({"lowest loss possible", floor, "", 0});
        }
        finding.message += '.';
        finding.evidence.push_back(
            {"mean of the values", call.predicted->mean, "one over their number in a sum",
             over_batch ? classes / static_cast<double>(call.predicted->count) : 1 / classes});
        finding.fix = base::format(
            "Remove the softmax in front of {}: give it the last layer's output as it is, and apply softmax "
            "only where probabilities are reported.",
            call.function);
        sink.fire(std::move(finding));
    }

    // Whether a loss function is given a softmax, by the values: that is said of it.
    [[nodiscard]] bool is_of_a_function() const {
        return std::ranges::any_of(seen_, [](const auto& each) {
            const Seen& seen = each.second;
            return seen.sums[0] == seen.looks || seen.sums[1] == seen.looks;
        });
    }

    void fire_twice_in_graph(const model::StepView& step, std::string_view place, FindingSink& sink) const {
        if (is_of_a_function()) return;
        model::Finding finding;
        finding.key = "redundant_softmax in the graph";
        finding.kind = "redundant_softmax";
        finding.first_step = first_twice_;
        finding.tensor = "loss";
        finding.layer = place;
        finding.message = base::format(
            "The loss takes the logarithm of a softmax of what a softmax{} gave, in {} graphs up to step {}: "
            "probabilities stand where logits are due. They differ by 1 at most, so no class can become "
            "nearly certain or nearly impossible.",
            place.empty() ? std::string() : base::format(" after {}", place_in_words(place)), twice_graphs_,
            step.step());
        finding.fix =
            "Remove the first softmax, so that the last layer's output is what the loss or the distribution "
            "is given as logits; or give a distribution the probabilities as such: Categorical(probs=...) in "
            "place of Categorical(logits=...).";
        finding.evidence.push_back({"graphs looked at", static_cast<double>(twice_graphs_), "limit", 2});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    void fire_sigmoid(const Seen& seen, const model::StepView& step, const LossCall& call, bool is_known,
                      FindingSink& sink) const {
        model::Finding finding = about(seen, call, "redundant_sigmoid");
        if (is_known && seen.maker.tensor != nullptr) {
            finding.layer = seen.maker.tensor->module;
            finding.message = base::format(
                "{} is given what a sigmoid returned (that {} {}) and computes {} itself: with values in [0, "
                "1] no probability can leave the range from {}.",
                call.function,
                seen.maker.tensor->activation == model::ActivationKind::kSigmoid ? "of" : "after",
                place_in_words(seen.maker.tensor->name),
                call.function == "cross_entropy" ? "a softmax" : "a sigmoid",
                call.function == "cross_entropy" ? "1/(1 + (C-1)e) to e/(e + C-1)" : "0.5 to 0.73");
        } else {
            finding.message = base::format(
                "{} is given values that in each of {} captured steps up to step {} lie in [0, 1] and reach "
                "from {} to {}: probabilities, not logits. It computes a sigmoid itself, so no probability "
                "can leave the range from 0.5 to 0.73.",
                call.function, seen.looks, step.step(), base::human_number(seen.lowest),
                base::human_number(seen.highest));
        }
        finding.fix =
            call.function == "cross_entropy"
                ? "Remove the sigmoid in front of cross_entropy; for several labels per sample use "
                  "binary_cross_entropy_with_logits without it."
                : base::format("Remove the sigmoid in front of {}, or use binary_cross_entropy with it.",
                               call.function);
        sink.fire(std::move(finding));
    }

    void fire_sigmoid_in_graph(const model::StepView& step, std::string_view place, const Squashed& before,
                               FindingSink& sink) const {
        model::Finding finding;
        finding.key = base::format("redundant_sigmoid {}", before.key);
        finding.kind = "redundant_sigmoid";
        finding.first_step = first_sigmoid_;
        finding.tensor = before.tensor;
        finding.layer = place;
        finding.message = base::format(
            "{} is given what a sigmoid{} gave, in {} graphs up to step {}, and computes {} itself: with "
            "values in [0, 1] no probability can leave the range from {}.",
            before.loss, place.empty() ? std::string() : base::format(" after {}", place_in_words(place)),
            sigmoid_graphs_, step.step(), before.computes, before.range);
        finding.fix = before.fix;
        finding.evidence.push_back({"graphs looked at", static_cast<double>(sigmoid_graphs_), "limit", 2});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    void fire_raw(const Seen& seen, const model::StepView& step, const LossCall& call,
                  FindingSink& sink) const {
        model::Finding finding = about(seen, call, "missing_softmax");
        finding.severity = model::Severity::kError;
        finding.message = base::format(
            "{} is given values up to {} at step {}, and above zero in each of {} captured steps; it expects "
            "log-probabilities, which never are. The loss has no lower bound like this.",
            call.function, base::human_number(call.predicted->max), step.step(), seen.looks);
        finding.fix = call.function == "nll_loss"
                          ? "Use cross_entropy instead of nll_loss, or give it log_softmax(output, dim=1)."
                          : base::format("Give {} log_softmax(output, dim=-1).", call.function);
        finding.evidence.push_back({"largest value given now", call.predicted->max, "limit", 0});
        sink.fire(std::move(finding));
    }

    void fire_above_guessing(const Seen& seen, const model::StepView& step, const LossCall& call,
                             FindingSink& sink) const {
        model::Finding finding = about(seen, call, "missing_softmax");
        const std::int64_t classes = call.prediction->shape[dimension_of_classes(call)];
        const double most = -std::log(static_cast<double>(classes));
        finding.message = base::format(
            "{} is given values whose mean is {} at step {}, where that of log-probabilities of {} classes "
            "is {} at most, and so it was in each of {} captured steps: they are no log-probabilities, and "
            "the loss is lowered by values near 0 of all classes.",
            call.function, base::human_number(call.predicted->mean), step.step(), classes,
            base::human_number(most), seen.looks);
        finding.fix = call.function == "nll_loss"
                          ? "Use cross_entropy instead of nll_loss, or give it log_softmax(output, dim=1)."
                          : base::format("Give {} log_softmax(output, dim=-1).", call.function);
        finding.evidence.push_back({"mean of the values now", call.predicted->mean, "limit", most});
        sink.fire(std::move(finding));
    }

    void fire_probabilities(const Seen& seen, const model::StepView& step, const LossCall& call,
                            FindingSink& sink) const {
        model::Finding finding = about(seen, call, "missing_softmax");
        finding.message = base::format(
            "{} is given probabilities (values in [0, 1] that sum to one, in each of {} captured steps up to "
            "step {}) where it expects their logarithms; gradients do not grow for what is wrong.",
            call.function, seen.looks, step.step());
        finding.fix =
            call.function == "nll_loss"
                ? "Use log_softmax in place of softmax in front of nll_loss, or cross_entropy with neither."
                : base::format("Use log_softmax in place of softmax in front of {}.", call.function);
        finding.evidence.push_back({"mean of the values", call.predicted->mean, "", 0});
        sink.fire(std::move(finding));
    }

    void fire_written_out(const model::StepView& step, FindingSink& sink) const {
        model::Finding finding;
        finding.key = "missing_softmax written out";
        finding.kind = "missing_softmax";
        finding.severity = model::Severity::kError;
        finding.first_step = first_raw_;
        finding.tensor = "loss";
        finding.message = base::format(
            "The loss is a weighted sum of the last layer's scores and of nothing else, in {} graphs up to "
            "step {}: the scores are multiplied with labels whose rows sum to one, or the label's score is "
            "picked, without a log_softmax. It has no lower bound: larger scores pay whether they are right "
            "or not.",
            raw_graphs_, step.step());
        finding.fix =
            "Take log_softmax(output, dim=1) of the scores before they are multiplied with the labels, or "
            "use cross_entropy, which also takes a row of probabilities for each sample.";
        finding.evidence.push_back({"graphs looked at", static_cast<double>(raw_graphs_), "limit", 2});
        sink.fire(std::move(finding));
    }

    void fire_cut_off(const model::StepView& step, FindingSink& sink) const {
        model::Finding finding;
        finding.key = "missing_softmax cut off";
        finding.kind = "missing_softmax";
        finding.severity = model::Severity::kError;
        finding.first_step = first_cut_;
        finding.tensor = "loss";
        finding.message = base::format(
            "The loss takes the logarithm of the last layer's scores, cut off near 0 and 1, in {} graphs up "
            "to step {}, and many of these scores lie outside: no softmax or sigmoid made probabilities of "
            "them. What is cut off gets no gradient, and a score of 1 costs nothing, however high the others "
            "are.",
            cut_graphs_, step.step());
        finding.fix =
            "Apply softmax(output, dim=1), or a sigmoid, before the logarithm; better, give the scores as "
            "they are to cross_entropy or binary_cross_entropy_with_logits.";
        finding.evidence.push_back({"graphs looked at", static_cast<double>(cut_graphs_), "limit", kGraphs});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr std::uint64_t kGraphs = 2;  // that must show that scores are cut off

    std::uint64_t looks_;
    std::uint64_t judged_ = 0;
    std::uint64_t cut_graphs_ = 0;      // in which it takes the logarithm of scores that are cut off
    std::uint64_t raw_graphs_ = 0;      // in which the loss is a sum of scores
    std::uint64_t twice_graphs_ = 0;    // in which it is made of a softmax of a softmax
    std::uint64_t sigmoid_graphs_ = 0;  // in which it computes one of what a sigmoid gave
    bool is_sigmoid_told_ = false;      // by the values
    model::StepIndex first_raw_ = 0, first_cut_ = 0, first_twice_ = 0, first_sigmoid_ = 0;
    std::map<model::TensorId, Seen> seen_;
};

std::vector<model::Requirement> loss_input_range_needs(const Parameters&) {
    std::vector<model::Requirement> all = argument_requirements(kLossInputRange.name);
    for (model::Requirement& more : maker_requirements(kLossInputRange.name)) all.push_back(std::move(more));
    all.push_back(loop_requirement(kLossInputRange.name));
    return all;
}

}  // namespace

RuleEntry builtin::loss_input_range() {
    return {&kLossInputRange, &loss_input_range_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<LossInputRange>(p); }};
}

}  // namespace traindbg::rules
