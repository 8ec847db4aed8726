// The output's activation function cannot reach the targets.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/histogram.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/settings.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kOutputActivationRange = {
    .name = "output_activation_range",
    .title = "Targets out of the output's reach",
    .summary = "The model ends in an activation function whose values cannot be what the loss asks for.",
    .when =
        "The model's output went through a sigmoid, tanh, ReLU or the like, so that it cannot reach the "
        "targets, logits or logarithms that the loss asks for.\n"
        "- Judged where three captured steps agree that what the loss is given was returned by such a "
        "function. Equal extremes and means tell that.\n"
        "- Targets out of range: with mse, l1, smooth_l1 or huber, at least `share` of the targets lie "
        "outside of that function's range. An error from a fifth of the targets on, below that a warning.\n"
        "- No such function is seen (warning): over 12 looks and 50 steps, predictions press against an "
        "end of [0, 1] or [-1, 1], or hold exact zeros and nothing below, and a fifth of the targets lies "
        "beyond.\n"
        "- Predictions that press against an end of [0, 1] or [-1, 1] do not count where they are what a "
        "layer without an activation function returned.\n"
        "- binary_cross_entropy_with_logits behind a ReLU (warning): no probability can be below one "
        "half.\n"
        "- poisson_nll_loss of logarithms (warning): its value at three captured steps is what "
        "log_input=True gives, and cannot be what log_input=False gives. What it takes for logarithms went "
        "through an exp, as rates do; or through a softplus or a ReLU, while at least `share` of the counts "
        "are 0.\n"
        "- cross_entropy behind a tanh (warning): no logit can be beyond 1.\n"
        "- cross_entropy behind a ReLU, judged after 100 steps: a warning if the loss is not clearly below "
        "that of guessing, else a note (info).",
    .why =
        "What cannot be reached is never learned: the output sits at the end of its range, where sigmoid, "
        "tanh and ReLU pass no gradient.",
    .fix =
        "End the model in a plain Linear layer; or scale the targets into the range of the activation "
        "function.",
    .healthy =
        "Targets within the range: images in [-1, 1] behind a tanh, shares in [0, 1] behind a sigmoid, "
        "counts behind a ReLU, a few outliers of them; rates behind a softplus in a poisson_nll_loss with "
        "log_input=False.",
    .cost =
        "One pass over what the loss functions are given at the first 10 steps and then at every 50th, with "
        "a histogram of the targets at the first 5, and over what the modules return at the first 5 and "
        "every 50th.",
    .original = "",
    .source = "PyTorch documentation, torch.nn.CrossEntropyLoss: unnormalized logits",
    .severity = model::Severity::kError,
    .parameters = {{"share", "share", 0.05, 0.001, 1, "targets outside of the range"}},
};

constexpr std::uint64_t kAgreeing = 3;
constexpr const char* kPoisson = "poisson_nll_loss";
constexpr double kErrorOfLoss = 1e-3;  // of its terms: it is computed in single precision or less

class OutputActivationRange final : public Rule {
  public:
    explicit OutputActivationRange(const Parameters& parameters) : share_(parameters.at("share")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        guessing_.observe(step);
        bool any = false;
        for (const LossCall& call : loss_calls(step)) {
            if (!is_regression(call.function) && call.function != "cross_entropy" &&
                call.function != "binary_cross_entropy_with_logits" && call.function != kPoisson)
                continue;
            any = true;
            Seen& seen = seen_[call.prediction->id];
            look(seen, step, call);
            if (call.function == kPoisson && takes_logarithms(step, call)) ++seen.of_logarithms;
            judge(seen, step, call, sink);
        }
        if (any) ++judged_;
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no loss function of torch.nn.functional that compares with targets was seen";
    }

  private:
    struct Seen {
        std::uint64_t looks = 0;
        model::StepIndex first = 0;
        std::uint64_t with_maker = 0;
        std::uint64_t squashed = 0;  // in agreement with `maker`
        std::uint64_t of_logarithms = 0;
        Maker maker;
        bool is_plain = false;      // a layer without a function returned the very values
        std::uint64_t at_zero = 0;  // looks with exact zeros and nothing below
        double lowest = 0, highest = 0;
        model::Histogram targets;
        model::Statistics target_values;
        std::string firing;
    };

    static void look(Seen& seen, const model::StepView& step, const LossCall& call) {
        const model::Statistics& values = *call.predicted;
        if (seen.looks++ == 0) {
            seen.first = step.step();
            seen.lowest = values.min;
            seen.highest = values.max;
        }
        seen.lowest = std::min(seen.lowest, values.min);
        seen.highest = std::max(seen.highest, values.max);
        if (values.zero > 0 && values.min == 0 && values.max > 0) ++seen.at_zero;
        if (call.labelled != nullptr) model::merge(seen.target_values, *call.labelled);
        if (call.label_bins != nullptr) model::merge(seen.targets, *call.label_bins);
        const Maker maker = maker_of(step, call);
        if (maker.tensor == nullptr) return;
        if (maker.squash == Squash::kNone) seen.is_plain = true;
        // A ReLU changes nothing of what is not negative.
        if (maker.squash == Squash::kNone && values.min >= 0) return;
        ++seen.with_maker;
        if (maker.squash == Squash::kNone) return;
        if (seen.squashed == 0) seen.maker = maker;
        if (maker.squash == seen.maker.squash) ++seen.squashed;
    }

    // Share of the targets that lie outside. Of a bin that an end lies in, none is counted.
    static double outside(const model::Histogram& targets, Range range) {
        std::uint64_t all = 0, beyond = 0;
        for (const model::HistogramBin& bin : targets) {
            if (bin.bin == model::kNanBin) continue;
            all += bin.count;
            const model::BinEdges edge = model::edges(bin.bin);
            if (edge.lower > range.high || edge.upper < range.low) beyond += bin.count;
        }
        return all == 0 ? 0 : static_cast<double>(beyond) / static_cast<double>(all);
    }

    void judge(Seen& seen, const model::StepView& step, const LossCall& call, FindingSink& sink) {
        const bool is_known = seen.squashed >= kAgreeing && seen.squashed == seen.with_maker;
        if (is_regression(call.function)) {
            if (element_count(seen.targets) < 8) return;
            if (is_known) {
                const double share = outside(seen.targets, range_of(seen.maker.squash));
                if (share >= share_) fire(seen, step, call, seen.maker.squash, share, true, sink);
            } else if (seen.with_maker == 0 && seen.looks >= 12 && step.step() >= seen.first + 50) {
                const Squash pressed = pressed_against(seen);
                if (pressed == Squash::kNone || (seen.is_plain && pressed != Squash::kRelu)) return;
                const double share = outside(seen.targets, range_of(pressed));
                if (share >= std::max(share_, 0.2)) fire(seen, step, call, pressed, share, false, sink);
            }
            return;
        }
        if (!is_known) return;
        if (call.function == kPoisson) {
            if (seen.of_logarithms >= kAgreeing) judge_rates(seen, call, sink);
        } else if (call.function == "cross_entropy") {
            if (seen.maker.squash == Squash::kTanh) fire_logits(seen, step, call, "bounded", sink);
            if (seen.maker.squash != Squash::kRelu || guessing_.loss().count() < 100) return;
            fire_logits(seen, step, call, guessing_.learns_well() ? "relu_learning" : "relu", sink);
        } else if (seen.maker.squash == Squash::kRelu && call.labelled != nullptr &&
                   seen.target_values.min < 0.5) {
            fire_logits(seen, step, call, "half", sink);
        }
    }

    // Whether the value of a Poisson loss is what it has of logarithms x of rates, the mean of exp(x) - y x,
    // and below what it can have of rates r, the mean of r - y log(r): told by the bounds of both that follow
    // from what is known of x and y. With the term of Stirling (`full`) both are larger.
    static bool takes_logarithms(const model::StepView& step, const LossCall& call) {
        const std::optional<double> loss = value_of(step, call.function);
        const model::Statistics& x = *call.predicted;
        if (!loss || call.labelled == nullptr || !(x.min >= 0) || !(x.max > x.min)) return false;
        const model::Statistics& y = *call.labelled;
        // A convex function lies above its value at the mean and below its chord.
        const double low = std::exp(x.mean);
        const double slope = (std::exp(x.max) - std::exp(x.min)) / (x.max - x.min);
        const double high = std::exp(x.min) + slope * (x.mean - x.min);
        const double product = y.mean * x.mean, spread = y.std * x.std;
        const double error = kErrorOfLoss * (high + std::abs(product));
        const bool may_be_of_logarithms =
            *loss >= low - product - spread - error && *loss <= high - product + spread + error;
        return may_be_of_logarithms && *loss < x.mean - y.mean * std::log(x.max) - error;
    }
    static std::optional<double> value_of(const model::StepView& step, std::string_view function) {
        for (const model::ScalarSample& sample : step.record->scalars)
            if (function_of_loss(step.info(sample.tensor).name) == function) return sample.value;
        return std::nullopt;
    }

    // A logarithm that is never below 0 is that of a rate of 1 and more.
    void judge_rates(const Seen& seen, const LossCall& call, FindingSink& sink) const {
        const Squash squash = seen.maker.squash;
        if (squash != Squash::kSoftplus && squash != Squash::kExp && squash != Squash::kRelu) return;
        const double zero = seen.target_values.count == 0 ? 0
                                                          : static_cast<double>(seen.target_values.zero) /
                                                                static_cast<double>(seen.target_values.count);
        // Behind a ReLU or a softplus may be the logarithms of large rates.
        if (squash != Squash::kExp && zero < share_) return;
        model::Finding finding;
        finding.key = kPoisson;
        finding.severity = model::Severity::kWarning;
        finding.first_step = seen.first;
        finding.tensor = base::format("loss/{}", call.function);
        finding.layer = seen.maker.tensor->module;
        finding.message = base::format(
            "{} takes what it is given for logarithms of rates (log_input=True, its default), and that went "
            "through a {} ({}): none is below 0, so no rate below 1 can be learned, and what the model "
            "returns is no rate. Of the counts {:.0f} % are 0.",
            call.function, to_string(squash), place_in_words(seen.maker.tensor->name), 100 * zero);
        finding.fix = base::format(
            "Pass log_input=False where the model returns rates; or remove the {} behind the last layer and "
            "take exp() of the output for a rate.",
            to_string(squash));
        finding.evidence.push_back({"captured steps at which the loss is that of logarithms",
                                    static_cast<double>(seen.of_logarithms), "limit",
                                    static_cast<double>(kAgreeing)});
        finding.evidence.push_back({"smallest prediction", seen.lowest, "largest", seen.highest});
        finding.plots = {{call.prediction->name, "mean"}, {call.prediction->name, "min"}};
        sink.fire(std::move(finding));
    }

    // The range that predictions keep to while they press against an end of it.
    static Squash pressed_against(const Seen& seen) {
        if (seen.at_zero == seen.looks) return Squash::kRelu;
        // What says next to the same for every sample presses against nothing.
        if (seen.highest - seen.lowest < 0.25) return Squash::kNone;
        if (seen.lowest >= 0 && seen.highest <= 1 && (seen.highest > 0.98 || seen.lowest < 0.02))
            return Squash::kSigmoid;
        if (seen.lowest >= -1 && seen.highest <= 1 && (seen.highest > 0.98 && seen.lowest < -0.5))
            return Squash::kTanh;
        if (seen.lowest >= -1 && seen.highest <= 1 && (seen.lowest < -0.98 && seen.highest > 0.5))
            return Squash::kTanh;
        return Squash::kNone;
    }

    static std::string range_in_words(Squash squash) {
        switch (squash) {
            case Squash::kSigmoid: return "from 0 to 1";
            case Squash::kTanh: return "from -1 to 1";
            default: return "of zero and above";
        }
    }

    static void fire(const Seen& seen, const model::StepView&, const LossCall& call, Squash squash,
                     double share, bool is_known, FindingSink& sink) {
        model::Finding finding;
        finding.key = call.function;
        finding.severity = share >= 0.2 && is_known ? model::Severity::kError : model::Severity::kWarning;
        finding.first_step = seen.first;
        finding.tensor = base::format("loss/{}", call.function);
        if (is_known && seen.maker.tensor != nullptr) finding.layer = seen.maker.tensor->module;
        const std::string made = is_known
                                     ? base::format("went through a {} ({})", to_string(squash),
                                                    place_in_words(seen.maker.tensor->name))
                                     : base::format("never left [{}, {}]", base::human_number(seen.lowest),
                                                    base::human_number(seen.highest));
        finding.message = base::format(
            "{:.0f} % of the targets of {} lie where the model's output cannot get: it {}, so its values are "
            "{}; the targets reach from {} to {}.",
            100 * share, call.function, made, range_in_words(squash),
            base::human_number(seen.target_values.min), base::human_number(seen.target_values.max));
        finding.fix =
            base::format("Remove the {} behind the last layer, or scale the targets into its range ({}).",
                         is_known ? std::string(to_string(squash)) : "activation function or clamp",
                         range_in_words(squash));
        finding.evidence.push_back({"targets out of reach", share, "limit", 0.05});
        finding.evidence.push_back(
            {"largest target", seen.target_values.max, "largest prediction", seen.highest});
        finding.evidence.push_back(
            {"smallest target", seen.target_values.min, "smallest prediction", seen.lowest});
        finding.plots = {{call.prediction->name, "min"}, {call.prediction->name, "max"}};
        sink.fire(std::move(finding));
    }

    static void fire_logits(Seen& seen, const model::StepView& step, const LossCall& call, const char* key,
                            FindingSink& sink) {
        if (!seen.firing.empty() && seen.firing != key) sink.clear(seen.firing);
        seen.firing = key;
        const std::string_view word = key;
        model::Finding finding;
        finding.key = key;
        finding.severity = word == "relu_learning" ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = seen.first;
        finding.tensor = base::format("loss/{}", call.function);
        finding.layer = seen.maker.tensor->module;
        const std::string place = place_in_words(seen.maker.tensor->name);
        if (word == "bounded") {
            const std::vector<std::int64_t>& shape = call.prediction->shape;
            const auto classes = static_cast<double>(shape[std::min<std::size_t>(1, shape.size() - 1)]);
            const double floor = std::log(1 + (classes - 1) * std::exp(-2.0));
            finding.message = base::format(
                "The logits of {} went through a tanh ({}): none gets beyond 1, so with {:.0f} classes the "
                "loss cannot fall below {}.",
                call.function, place, classes, base::human_number(floor));
            finding.evidence.push_back({"lowest loss possible", floor, "", 0});
        } else if (word == "half") {
            finding.message = base::format(
                "The logits of {} went through a ReLU ({}): none is below zero, so no probability gets below "
                "one half, and {:.0f} % of the labels ask for that.",
                call.function, place, 100 * (1 - seen.target_values.mean));
            finding.evidence.push_back({"smallest logit", seen.lowest, "", 0});
        } else {
            finding.message = base::format(
                "The logits of {} went through a ReLU ({}): those that are zero get no gradient{} at step "
                "{}.",
                call.function, place,
                word == "relu" ? ", and the loss is not clearly below that of guessing"
                               : "; it learns all the same",
                step.step());
            finding.evidence.push_back({"logits that are zero", static_cast<double>(call.predicted->zero),
                                        "of", static_cast<double>(call.predicted->count)});
        }
        finding.fix = base::format("Remove the {} behind the last layer: {} takes logits of any size.",
                                   to_string(seen.maker.squash), call.function);
        finding.plots = {{call.prediction->name, "min"}, {call.prediction->name, "max"}};
        sink.fire(std::move(finding));
    }

    double share_;
    std::uint64_t judged_ = 0;
    std::map<model::TensorId, Seen> seen_;
    Guessing guessing_;
};

std::vector<model::Requirement> output_activation_range_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kOutputActivationRange.name);
    for (model::Requirement& more : argument_requirements(kOutputActivationRange.name))
        all.push_back(std::move(more));
    for (model::Requirement& more : maker_requirements(kOutputActivationRange.name))
        all.push_back(std::move(more));
    all.push_back(label_histogram_requirement(kOutputActivationRange.name));
    return all;
}

}  // namespace

RuleEntry builtin::output_activation_range() {
    return {&kOutputActivationRange, &output_activation_range_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<OutputActivationRange>(p);
            }};
}

}  // namespace traindbg::rules
