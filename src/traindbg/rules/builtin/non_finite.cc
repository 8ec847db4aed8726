// NaN or infinity: where it began.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/summed_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;
using model::Role;

const model::RuleInfo kNonFinite = {
    .name = "non_finite",
    .title = "NaN or infinity",
    .summary = "A loss, a gradient or a weight is NaN or infinite.",
    .when =
        "A loss, a gradient or a weight holds a NaN or an infinity at a training step, or a loss does in an "
        "evaluation.\n"
        "- Training (error): reported at the first step at which a loss, a gradient or a weight is not "
        "finite.\n"
        "- Evaluation (warning): a loss is not finite in an evaluation.\n"
        "- Batch left out: a loss function's value is not finite while what `backward()` is called on is "
        "finite, so the loop leaves that batch out. An error from the third such step on if they are 5 % of "
        "all, else a note (info).\n"
        "- Gradients thrown away (error): at three of a dozen steps looked at or more, and 5 %, the "
        "input is not finite while loss and gradients of the step are. Each of these steps had several "
        "backward passes, of which the first was cleared, and not all had equally many. No such input came "
        "in a step of one pass, and one in ten steps had one pass.\n"
        "- Origin: it names where the step's data flow first shows it. The order is the weights that the "
        "step began with, the input, the modules in forward order, the loss, and the gradients from the last "
        "layer back.\n"
        "- Over: after `patience` finite steps.\n"
        "- Note only (info): a NaN in an input or in a module's output while loss and gradients stay finite. "
        "An infinity there is not reported, because masks are made of it.\n"
        "- Causes are named only where values had not grown before.\n"
        "- `division_by_zero_norm`: the model or its loss divides by a norm, a deviation or a sum to which "
        "nothing is added, or takes the root of one of these or of what is cut off at 0.\n"
        "- `division_by_zero_norm`, too: all losses of a step are exactly 0, and with it a gradient, or the "
        "weights after its update, become NaN as a whole. The gradient was 0, and was divided by its norm.\n"
        "- `unstable_log_softmax`: the model or its loss takes the logarithm of a softmax or sigmoid.\n"
        "- `unstable_log_softmax`, too: a loss or an output is the first, nothing of the above was seen, and "
        "the logarithm of a sum of exponentials is taken.",
    .why =
        "NaN spreads: after one optimizer step every weight that it touches is NaN, and nothing that follows "
        "can be used. Checkpoints written after that step are lost, too.",
    .fix =
        "Input: drop or impute what is not finite before it reaches the model. Values that grew before: "
        "lower the learning rate and clip the gradients. Neither: look for log, division, square root or exp "
        "of unbounded values at the place named; `torch.autograd.set_detect_anomaly(True)` names the line.",
    .healthy =
        "A batch that is left out now and then; -inf in attention masks and masked scores; missing values "
        "that the model handles; steps that a gradient scaler skips, because their optimizer step never "
        "runs.",
    .cost =
        "Losses at every step. Statistics of inputs, gradients, weights and module outputs at few steps; "
        "when a loss is not finite, capture takes everything for the rest of that step and some steps after.",
    .original = "ExplodingTensor",
    .source = "PyTorch documentation, torch.autograd.detect_anomaly",
    .severity = model::Severity::kError,
    .parameters = {{"patience", "steps", 20, 1, 1e6, "finite steps after which the finding is over"}},
};

enum class Pass { kState, kInput, kForward, kLoss, kBackward, kNone };

Pass pass_of(Role role) {
    switch (role) {
        case Role::kWeight:
        case Role::kBias: return Pass::kState;
        case Role::kInput:
        case Role::kLabel: return Pass::kInput;
        case Role::kOutput:
        case Role::kActivation:
        case Role::kPrediction:
        case Role::kAttention: return Pass::kForward;
        case Role::kLoss: return Pass::kLoss;
        case Role::kGradient: return Pass::kBackward;
        case Role::kOther:
        case Role::kMetric:
        case Role::kClasses:
        case Role::kLoop:
        case Role::kOptimizerState:
        case Role::kWeightUpdate:
        case Role::kBlockOutput:                         // outputs of the modules inside say where
        case Role::kBuffer:                              // an attention mask is made of infinities
        case Role::kGradientBefore: return Pass::kNone;  // a loss scale may take them out of range
    }
    return Pass::kNone;
}

// Within a pass: modules forward, what a loss is given after them, gradients back. Labels come after the
// inputs of the model: where both hold NaN, they are of the same rows.
std::int32_t order_of(const model::TensorInfo& info, Pass pass) {
    if (info.role == Role::kPrediction || info.role == Role::kLabel)
        return std::numeric_limits<std::int32_t>::max();
    return pass == Pass::kBackward ? -info.layer : info.layer;
}

const char* family_of(Role role) {
    switch (role) {
        case Role::kWeight: return "weight";
        case Role::kBias: return "bias";
        case Role::kInput: return "input";
        case Role::kLabel: return "label";
        case Role::kPrediction: return "prediction of";
        case Role::kGradient: return "gradient of";
        case Role::kLoss: return "loss";
        default: return "output of";
    }
}

// An operation of the model or its loss that is not finite at a value that it may be given.
struct Hazard {
    bool is_division = false;  // by a measure that may be 0; else the logarithm of a probability
    std::string place;         // the module that calls it; empty: the model or its loss
    double line = 0;           // of its code; 0: not known
    bool is_of_sum = false;    // the logarithm is of a sum of exponentials

    bool operator==(const Hazard&) const = default;
};

// A value that is not finite, and how it stands in the order of the step's data flow.
struct Bad {
    model::TensorId tensor = 0;
    Pass pass = Pass::kNone;
    std::int32_t order = 0;
    std::uint64_t nan = 0, infinite = 0, count = 1;

    [[nodiscard]] auto rank() const { return std::tuple(pass, order, tensor); }
};

constexpr const char* kThrownAway = "thrown away";
constexpr std::uint64_t kFewestUnused = 3;
constexpr double kLeastUnused = 0.05;  // of the steps
constexpr std::uint64_t kFewestLooksAtPasses = 12;

class NonFinite final : public Rule {
  public:
    explicit NonFinite(const Parameters& parameters)
        : patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kTrain) on_train(step, sink);
        else if (step.mode() == model::Mode::kEval) on_eval(step, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no loss, gradient, weight or output was captured";
    }

  private:
    struct Before {
        double l2 = 0;
        model::StepIndex step = 0;
        bool seen = false;
    };

    void on_train(const model::StepView& step, FindingSink& sink) {
        const model::StepRecord& record = *step.record;
        if (record.tensors.empty() && record.scalars.empty()) return;
        ++judged_;
        take_hazards(step);
        summed_.observe(step);
        std::optional<Bad> first, first_quiet;
        std::uint64_t places = 0, quiet_places = 0;
        double norm2 = 0, weights2 = 0;
        bool gradients = false;
        const auto note = [](std::optional<Bad>& slot, const Bad& bad) {
            if (!slot || bad.rank() < slot->rank()) slot = bad;
        };
        bool harm = false, is_unused = false;
        std::optional<double> loss;
        bool are_losses_zero = true;  // those that were seen
        const bool trains_on_another = has_finite_root(step);
        for (const model::ScalarSample& sample : record.scalars) {
            if (step.info(sample.tensor).role != Role::kLoss) continue;
            are_losses_zero = are_losses_zero && sample.value == 0;
            if (std::isfinite(sample.value)) {
                if (!loss) loss = sample.value;
                continue;
            }
            if (trains_on_another) {
                if (!std::exchange(is_unused, true)) ++unused_;
                if (!are_many_unused()) continue;
            }
            harm = true;
            ++places;
            const bool nan = std::isnan(sample.value);
            note(first, {sample.tensor, Pass::kLoss, 0, nan ? 1U : 0U, nan ? 0U : 1U, 1});
        }
        for (const model::TensorSample& sample : record.tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const model::Statistics& s = sample.statistics;
            if (info.role == Role::kGradient) {
                gradients = true;
                norm2 += s.l2 * s.l2;
            }
            if (info.role == Role::kWeight) weights2 += s.l2 * s.l2;
            const Pass pass = pass_of(info.role);
            if (s.not_finite() == 0 || pass == Pass::kNone) continue;
            if (info.role == Role::kLabel && is_made_of_prediction(step, info, s)) continue;
            const Bad bad = {sample.tensor, pass, order_of(info, pass), s.nan, s.infinite(), s.count};
            if (pass == Pass::kInput || pass == Pass::kForward) {
                // An infinity alone is how masks are written: beside it there are zeros only.
                const bool is_mask = info.role != Role::kInput || (s.min == 0 && s.max == 0);
                if (s.nan == 0 && s.positive_infinite == 0 && is_mask) continue;
                note(first_quiet, bad);
                ++quiet_places;
                continue;
            }
            harm = true;
            ++places;
            note(first, bad);
        }
        if (harm) {
            if (first_quiet) note(first, *first_quiet);
            if (!origin_) describe(step, *first, places + quiet_places, loss, loss && are_losses_zero);
            else if (first_quiet && first_quiet->pass == Pass::kInput && !origin_is_input_ &&
                     origin_->pass != Pass::kState && step.step() <= origin_step_ + patience_ &&
                     !is_made_of_outputs(step.info(first_quiet->tensor)))
                blame_input(step, *first_quiet);
            finite_steps_ = 0;
            sink.fire(finding_);
            return;
        }
        if (origin_ && ++finite_steps_ >= patience_) {
            sink.clear(finding_.key);
            origin_.reset();
            origin_is_input_ = false;
        }
        if (is_unused) fire_unused(step, sink);
        if (look_for_thrown_away(step, first_quiet, sink)) fire_thrown_away(step, *first_quiet, sink);
        else if (first_quiet && first_quiet->nan > 0 && loss)
            fire_quiet(step, *first_quiet, quiet_places, sink);
        // All is finite: what a later finding compares with.
        if (loss) {
            if (!start_loss_) start_loss_ = *loss;
            loss_before_ = *loss;
            were_losses_zero_ = are_losses_zero;
            loss_step_ = step.step();
        }
        if (weights2 > 0) weight_norm_ = std::sqrt(weights2);
        if (gradients) {
            if (!start_norm_) start_norm_ = std::sqrt(norm2);
            norm_before_ = std::sqrt(norm2);
            norm_step_ = step.step();
        }
        if (before_.size() < step.tensors->size()) before_.resize(step.tensors->size());
        for (const model::TensorSample& sample : record.tensors)
            before_[sample.tensor] = {sample.statistics.l2, step.step(), true};
    }

    // What backward() was called on is finite: a loss function's value that is not belongs to a batch that
    // the loop left out.
    static bool has_finite_root(const model::StepView& step) {
        return std::any_of(step.record->scalars.begin(), step.record->scalars.end(), [&](const auto& sample) {
            return step.info(sample.tensor).name == "loss" && std::isfinite(sample.value);
        });
    }
    [[nodiscard]] bool are_many_unused() const {
        return unused_ >= kFewestUnused &&
               static_cast<double>(unused_) >= kLeastUnused * static_cast<double>(judged_);
    }
    void fire_unused(const model::StepView& step, FindingSink& sink) const {
        model::Finding finding;
        finding.key = "left out";
        finding.severity = model::Severity::kInfo;
        finding.first_step = step.step();
        finding.message = base::format(
            "At {} of {} steps looked at the loss of a batch was not finite; the loop left it out, and "
            "trained on another.",
            unused_, judged_);
        finding.fix =
            "Nothing, if it stays with few. Else look for the first such batch: a value that is not finite "
            "in it, a mean of nothing (0/0), or log(0).";
        finding.evidence.push_back(
            {"steps with such a batch", static_cast<double>(unused_), "of", static_cast<double>(judged_)});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    // A loop may leave out a batch after backward(), where the norm of the gradients is not finite, and goes
    // on with the next one. The input that is seen is that of the first pass of a step.
    bool look_for_thrown_away(const model::StepView& step, const std::optional<Bad>& quiet,
                              FindingSink& sink) {
        const std::optional<LoopFact> passes = loop_fact(step, "backward_passes");
        if (!passes) return false;
        ++looks_at_passes_;
        steps_of_one_pass_ += passes->value <= 1 ? 1 : 0;
        const bool is_input =
            quiet && quiet->pass == Pass::kInput && step.info(quiet->tensor).role == Role::kInput;
        if (!is_input) return false;
        if (passes->value <= 1 || !loop_fact(step, "cleared_between_passes")) {
            if (!std::exchange(takes_what_is_not_finite_, true)) sink.clear(kThrownAway);
            return false;
        }
        fewest_passes_ = thrown_away_ == 0 ? passes->value : std::min(fewest_passes_, passes->value);
        most_passes_ = std::max(most_passes_, passes->value);
        ++thrown_away_;
        // Else several passes are what a step is made of, as of several tasks.
        const bool is_usual =
            looks_at_passes_ >= kFewestLooksAtPasses && 10 * steps_of_one_pass_ >= looks_at_passes_;
        return is_usual && !takes_what_is_not_finite_ && most_passes_ > fewest_passes_ &&
               thrown_away_ >= kFewestUnused &&
               static_cast<double>(thrown_away_) >= kLeastUnused * static_cast<double>(looks_at_passes_);
    }
    void fire_thrown_away(const model::StepView& step, const Bad& bad, FindingSink& sink) const {
        const model::TensorInfo& info = step.info(bad.tensor);
        model::Finding finding;
        finding.key = kThrownAway;
        finding.kind = "nan_input";
        finding.severity = model::Severity::kError;
        finding.tensor = info.name;
        finding.layer = info.module;
        finding.message = base::format(
            "At {} of {} steps looked at the input of the model holds {} ({} of {} values at step {}), and "
            "the gradients of that batch were thrown away: such a step has {:.0f} to {:.0f} backward passes, "
            "cleared in between, until one came whose gradients could be used. Most of the data may be lost "
            "so.",
            thrown_away_, looks_at_passes_, bad.nan > 0 ? "NaN" : "infinities", bad.nan + bad.infinite,
            bad.count, step.step(), fewest_passes_, most_passes_);
        finding.fix =
            "Drop or impute what is not finite, column by column: check the data set with "
            "torch.isfinite(x).all() before training. dropna() keeps infinities, as a relative change from 0 "
            "gives them. Count the batches that the loop leaves out.";
        finding.evidence.push_back({"steps with such a batch", static_cast<double>(thrown_away_), "of",
                                    static_cast<double>(looks_at_passes_)});
        finding.evidence.push_back({"backward passes of such a step, at most", most_passes_, "expected", 1});
        finding.plots = {{info.name, "nan"}, {info.name, "inf"}};
        sink.fire(std::move(finding));
    }

    // The labels of a loss that is written out are its predictions less their differences: not finite where
    // these are not, which says nothing of the data.
    static bool is_made_of_prediction(const model::StepView& step, const model::TensorInfo& label,
                                      const model::Statistics& values) {
        if (!loop_fact(step, "loss_is_written_out")) return false;
        const std::string prediction = "prediction/" + std::string(place_of(label.name));
        return std::any_of(step.record->tensors.begin(), step.record->tensors.end(),
                           [&](const model::TensorSample& other) {
                               return step.info(other.tensor).name == prediction &&
                                      other.statistics.not_finite() >= values.not_finite();
                           });
    }
    // The same where that fact is not told of the step.
    [[nodiscard]] bool is_made_of_outputs(const model::TensorInfo& info) const {
        return info.role == Role::kLabel && grew_;
    }

    void take_hazards(const model::StepView& step) {
        constexpr std::size_t kMost = 32;
        const auto take = [&](std::string_view fact, bool is_division, bool is_of_sum) {
            for (const LoopFact& told : loop_facts(step, fact)) {
                const Hazard hazard = {is_division, std::string(told.place), told.value, is_of_sum};
                if (hazards_.size() < kMost &&
                    std::find(hazards_.begin(), hazards_.end(), hazard) == hazards_.end())
                    hazards_.push_back(hazard);
            }
        };
        take("divides_by_measure", true, false);
        take("logs_probability", false, false);
        take("logs_sum_of_exponentials", false, true);
        for (const LoopFact& sign : loop_facts(step, "loss_sign"))
            is_loss_a_logarithm_ = is_loss_a_logarithm_ || sign.place == "log_of_probability";
    }

    // The operation that made the first value that is not finite, as far as it can be told.
    [[nodiscard]] const Hazard* hazard_of(const model::TensorInfo& info, Pass pass) const {
        const Hazard* found = nullptr;
        const Hazard* overflow = nullptr;
        bool is_alone = true;
        for (const Hazard& hazard : hazards_) {
            if (hazard.is_of_sum) {  // needs values that few models have: the last to be blamed
                if (overflow == nullptr || (overflow->place.empty() && !hazard.place.empty()))
                    overflow = &hazard;
                continue;
            }
            if (pass == Pass::kForward && !hazard.place.empty() && hazard.place == info.module)
                return &hazard;
            if (found != nullptr && found->is_division != hazard.is_division) is_alone = false;
            // One whose place is known tells more.
            if (found == nullptr || (found->place.empty() && !hazard.place.empty())) found = &hazard;
        }
        // An infinite sum shows in what is computed of it, not in gradients alone.
        if (found == nullptr) return pass == Pass::kForward || pass == Pass::kLoss ? overflow : nullptr;
        if (is_alone) return found;
        // Of both kinds: the loss and what comes back from it are next to its own logarithm.
        const auto log = std::find_if(hazards_.begin(), hazards_.end(), [](const Hazard& hazard) {
            return !hazard.is_division && !hazard.is_of_sum;
        });
        return pass == Pass::kLoss || pass == Pass::kBackward ? &*log : nullptr;
    }

    void blame(const Hazard& hazard) {
        finding_.kind = hazard.is_division ? "division_by_zero_norm" : "unstable_log_softmax";
        const std::string line =
            hazard.line > 0 ? base::format(" (line {:.0f} of its code)", hazard.line) : std::string();
        // The loss is the mean of such logarithms, and no module takes one.
        const bool is_of_loss = !hazard.is_division && hazard.place.empty() && line.empty() &&
                                is_loss_a_logarithm_ && origin_->pass != Pass::kForward;
        const std::string where = is_of_loss              ? "The loss"
                                  : !hazard.place.empty() ? hazard.place + line
                                  : line.empty()          ? "The model or its loss"
                                                          : "The model" + line;
        // Where a gradient is the first, its layer is not where it went wrong.
        if (!hazard.place.empty() || origin_->pass != Pass::kForward) finding_.layer = hazard.place;
        if (is_of_loss) finding_.tensor = "loss";
        if (hazard.is_division) {
            finding_.message += base::format(
                " {} divides by a norm, a deviation or a sum to which nothing is added, or takes its root, "
                "or that of what is cut off at 0: where that is 0, the quotient is NaN, or the derivative.",
                where);
            finding_.fix =
                "Keep the divisor from 0: torch.nn.functional.normalize(x, dim=-1), x / (norm + 1e-8), "
                "(x.square().sum(-1) + 1e-8).sqrt(), squares.clamp(min=1e-8).sqrt(), or total / "
                "count.clamp(min=1).";
        } else if (hazard.is_of_sum) {
            finding_.message += base::format(
                "{} takes the logarithm of a sum of exponentials, which is infinite in float32 where a value "
                "is above 88, and 0 where all are below -104.",
                where);
            finding_.fix =
                "Use the form that cannot overflow: torch.logsumexp(scores, dim=-1) in place of "
                "scores.exp().sum(-1).log(), torch.logcumsumexp in place of a running sum, or log_softmax.";
        } else {
            finding_.message += base::format(
                " {} takes the logarithm of a softmax or sigmoid, which is 0 in floating point where scores "
                "lie far apart: its logarithm is -inf, its derivative NaN.",
                where);
            finding_.fix =
                "Use the form that cannot overflow: torch.log_softmax(scores, dim=-1) in place of "
                "log(softmax(scores)), cross_entropy(scores, labels), "
                "binary_cross_entropy_with_logits(scores, labels), torch.logsumexp.";
        }
        finding_.evidence.push_back({hazard.is_division ? "divides without an epsilon"
                                     : hazard.is_of_sum ? "logarithm of a sum of exponentials"
                                                        : "logarithm of a probability",
                                     1, "", 0});
    }

    // A loss of exactly 0, as of a margin that is kept everywhere, has a gradient of 0; so that what turned
    // all of it into NaN divided by its size. `are_losses_zero`: those of this step.
    [[nodiscard]] bool is_of_no_gradient(const model::StepView& step, const Bad& bad,
                                         bool are_losses_zero) const {
        if (bad.nan < bad.count) return false;
        if (bad.pass == Pass::kBackward) return are_losses_zero;
        return bad.pass == Pass::kState && step.step() > 0 && were_losses_zero_ &&
               loss_step_ + 1 == step.step();
    }
    void blame_no_gradient() {
        finding_.kind = "division_by_zero_norm";
        finding_.message +=
            " A loss of exactly 0 has a gradient of 0, and what divides that by its norm computes 0/0.";
        finding_.fix =
            "Keep the divisor from 0 where a gradient is scaled: grad / (norm + 1e-12). Sharpness-aware "
            "steps, normalised and clipped gradients by hand are written so; an optimizer needs its eps "
            "above 0.";
        finding_.evidence.push_back({"loss without a gradient", 0, "", 0});
    }

    void describe(const model::StepView& step, const Bad& bad, std::uint64_t places,
                  std::optional<double> loss, bool are_losses_zero) {
        origin_ = bad;
        origin_step_ = step.step();
        const model::TensorInfo& info = step.info(bad.tensor);
        origin_is_input_ = bad.pass == Pass::kInput;
        finding_ = {};
        finding_.key = "train";
        finding_.severity = model::Severity::kError;
        finding_.tensor = info.name;
        finding_.layer = info.module;
        finding_.places = places;
        finding_.first_step = step.step();
        finding_.plots = {{info.name, info.role == Role::kLoss ? "value" : "l2"}};
        if (info.role != Role::kLoss) finding_.plots.emplace_back("loss", "value");
        finding_.evidence.push_back(
            {"nan values", static_cast<double>(bad.nan), "of", static_cast<double>(bad.count)});
        finding_.evidence.push_back(
            {"infinite values", static_cast<double>(bad.infinite), "of", static_cast<double>(bad.count)});

        std::string history;
        bool grew = false;
        if (norm_before_ && start_norm_) {
            finding_.evidence.push_back(
                {"gradient norm before", *norm_before_, "at the start", *start_norm_});
            if (*norm_before_ > 100 * *start_norm_) {
                grew = true;
                history += base::format("; the gradient norm was {} at step {} and {} at the start",
                                        human_number(*norm_before_), norm_step_, human_number(*start_norm_));
            } else if (weight_norm_ > 0 && *norm_before_ > 1000 * weight_norm_) {
                // It was out of all proportion from the first step on.
                grew = true;
                history += base::format("; the gradient norm was {} at step {}, that of the weights {}",
                                        human_number(*norm_before_), norm_step_, human_number(weight_norm_));
            }
        }
        if (loss_before_ && start_loss_) {
            finding_.evidence.push_back({"loss before", *loss_before_, "at the start", *start_loss_});
            if (*loss_before_ > 10 * std::abs(*start_loss_) + 1) {
                grew = true;
                history += base::format("; the loss was {} at step {} and {} at the start",
                                        human_number(*loss_before_), loss_step_, human_number(*start_loss_));
            } else {
                history +=
                    base::format("; the loss was {} at step {}", human_number(*loss_before_), loss_step_);
            }
        }
        if (!grew && bad.tensor < before_.size() && before_[bad.tensor].seen)
            history += base::format("; its norm was {} at step {}", human_number(before_[bad.tensor].l2),
                                    before_[bad.tensor].step);
        if (grew) finding_.evidence.push_back({"grew before", 1, "", 0});
        // Labels may be made of the model's own outputs, or of those of another.
        const bool is_of_the_data = info.role == Role::kInput || (info.role == Role::kLabel && !grew);
        if (is_of_the_data) finding_.kind = "nan_input";

        const std::string what = bad.nan > 0 ? "NaN" : "infinite";
        const std::string share =
            bad.count > 1 ? base::format("{} of {} values", bad.nan + bad.infinite, bad.count) : "";
        const std::string place(place_of(info.name));
        const std::string rate = lower_learning_rate(*step.meta, 0.1);
        switch (bad.pass) {
            case Pass::kState:
                finding_.message =
                    step.step() == 0
                        ? base::format("The {} {} is {} before the first step: {}", family_of(info.role),
                                       place, what, share)
                        : base::format("The update after step {} made the {} {} {}: {}{}", step.step() - 1,
                                       family_of(info.role), place, what, share, history);
                finding_.fix = step.step() == 0
                                   ? "Initialise this parameter: it is used as torch.empty left it, or the "
                                     "checkpoint that it came from is damaged."
                                   : base::format(
                                         "To begin with, {}; clip gradients with "
                                         "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) before the "
                                         "optimizer step.",
                                         rate);
                break;
            case Pass::kInput:
                finding_.message =
                    base::format("The {} {} at step {}: {}",
                                 info.role == Role::kLabel ? "labels that the loss is given hold"
                                                           : "input of the model holds",
                                 what, step.step(), share);
                finding_.fix =
                    info.role == Role::kLabel
                        ? "Drop these samples, or leave them out of the loss by a mask; check the data set "
                          "with torch.isfinite(y).all() before training. A number filled in is a wrong label."
                        : "Drop or impute the samples that are not finite, e.g. x = torch.nan_to_num(x), and "
                          "check the data set with torch.isfinite(x).all() before training.";
                break;
            case Pass::kForward:
                finding_.message = base::format("The forward pass became {} in {} at step {}: {}{}", what,
                                                place, step.step(), share, history);
                finding_.fix =
                    grew ? base::format("Values grew before this: {}.", rate)
                         : "Look for log, division, square root or exp in this module; add a small "
                           "epsilon or use the stable form (log_softmax, logsumexp, *_with_logits).";
                break;
            case Pass::kLoss:
                finding_.message = base::format("The loss became {} at step {}, in the forward pass{}", what,
                                                step.step(), history);
                finding_.fix =
                    grew ? base::format("Values grew before this: {}, and clip the gradients.", rate)
                         : "Check the batch for values that are not finite, and the loss for log(0), 0/0 or "
                           "an empty mean; use the stable form (log_softmax, *_with_logits).";
                break;
            case Pass::kBackward:
                finding_.message =
                    base::format("The backward pass became {} in the gradient of {} at step {}: {}{}", what,
                                 place, step.step(), share, history);
                if (loss)
                    finding_.message +=
                        base::format("; the loss of this step is still finite ({})", human_number(*loss));
                finding_.fix =
                    grew ? base::format("Values grew before this: {}, and clip the gradients.", rate)
                         : "Look for an operation whose derivative is unbounded at this point: sqrt or norm "
                           "at 0, log near 0, division by a small number, torch.where with a NaN in the "
                           "branch that is not taken. In half precision use torch.amp.GradScaler.";
                break;
            case Pass::kNone: break;
        }
        finding_.message += '.';
        if (grew) summed_.explain(finding_);
        grew_ = grew;
        const bool may_be_hazard = bad.pass != Pass::kInput && (bad.pass != Pass::kState || step.step() > 0);
        const Hazard* hazard = may_be_hazard ? hazard_of(info, bad.pass) : nullptr;
        // What grows without limit becomes infinite in any form.
        if (hazard != nullptr && !grew) blame(*hazard);
        else if (!grew && is_of_no_gradient(step, bad, are_losses_zero)) blame_no_gradient();
    }

    // The place that fired could not see the input of that step; a later one shows what it is like.
    void blame_input(const model::StepView& step, const Bad& bad) {
        origin_is_input_ = true;
        const model::TensorInfo& info = step.info(bad.tensor);
        finding_.kind = "nan_input";
        finding_.tensor = info.name;
        finding_.layer = info.module;
        finding_.evidence.push_back(
            {"nan values in the input", static_cast<double>(bad.nan), "of", static_cast<double>(bad.count)});
        finding_.message += base::format(" Inputs hold NaN, too: {} of {} values at step {}.",
                                         bad.nan + bad.infinite, bad.count, step.step());
        finding_.fix =
            "Drop or impute the samples that are not finite, e.g. x = torch.nan_to_num(x), and check the "
            "data set with torch.isfinite(x).all() before training.";
    }

    void fire_quiet(const model::StepView& step, const Bad& bad, std::uint64_t places, FindingSink& sink) {
        const model::TensorInfo& info = step.info(bad.tensor);
        model::Finding finding;
        finding.key = "forward";
        finding.severity = model::Severity::kInfo;
        finding.tensor = info.name;
        finding.layer = info.module;
        finding.places = places;
        finding.message =
            base::format("The {} {} holds {} NaN of {} values; the loss is finite all the same.",
                         family_of(info.role), place_of(info.name), bad.nan, bad.count);
        finding.fix = "Nothing, if the model handles missing values; otherwise drop or impute them.";
        finding.evidence.push_back(
            {"nan values", static_cast<double>(bad.nan), "of", static_cast<double>(bad.count)});
        finding.plots = {{info.name, "nan"}};
        sink.fire(std::move(finding));
    }

    void on_eval(const model::StepView& step, FindingSink& sink) {
        bool any = false;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != Role::kLoss) continue;
            any = true;
            if (std::isfinite(sample.value) || origin_) continue;
            model::Finding finding;
            finding.key = "eval";
            finding.severity = model::Severity::kWarning;
            finding.tensor = info.name;
            finding.message = base::format(
                "The evaluation loss is {} at evaluation step {} while the training loss is finite.",
                human_number(sample.value), step.step());
            finding.fix =
                "Check the evaluation data for values that are not finite and for empty batches (the mean of "
                "nothing is NaN).";
            finding.plots = {{info.name, "value"}};
            sink.fire(std::move(finding));
        }
        if (any) ++judged_;
    }

    std::uint64_t patience_;
    std::uint64_t judged_ = 0, finite_steps_ = 0;
    std::uint64_t unused_ = 0;  // steps in which a loss that is not finite was left out
    std::uint64_t thrown_away_ = 0, looks_at_passes_ = 0, steps_of_one_pass_ = 0;
    double fewest_passes_ = 0, most_passes_ = 0;  // of steps with a batch that was thrown away
    bool takes_what_is_not_finite_ = false;       // in one pass, and trains on it
    std::vector<Before> before_;                  // by tensor id
    std::optional<double> start_loss_, loss_before_, start_norm_, norm_before_;
    model::StepIndex loss_step_ = 0, norm_step_ = 0, origin_step_ = 0;
    double weight_norm_ = 0;
    std::optional<Bad> origin_;
    std::vector<Hazard> hazards_;
    bool were_losses_zero_ = false;     // exactly, at the last step that had any
    bool is_loss_a_logarithm_ = false;  // the mean of logarithms of a softmax or sigmoid
    SummedLoss summed_;
    bool origin_is_input_ = false;
    bool grew_ = false;  // values, before the first one that was not finite
    model::Finding finding_;
};

std::vector<model::Requirement> non_finite_needs(const Parameters&) {
    using enum model::Mode;
    constexpr auto kStatistics = model::What::kStatistics;
    return {{"losses", kTrain, kStatistics, {.every = 1}, kNonFinite.name},
            {"losses", kEval, kStatistics, {.every = 1}, kNonFinite.name},
            {"inputs", kTrain, kStatistics, {.every = 10, .dense_until = 20}, kNonFinite.name},
            {"gradients", kTrain, kStatistics, {.every = 10, .dense_until = 20}, kNonFinite.name},
            {"weights", kTrain, kStatistics, {.every = 50, .dense_until = 2}, kNonFinite.name},
            {"biases", kTrain, kStatistics, {.every = 50, .dense_until = 2}, kNonFinite.name},
            {"outputs", kTrain, kStatistics, {.every = 50, .dense_until = 2}, kNonFinite.name},
            {"activations", kTrain, kStatistics, {.every = 50, .dense_until = 5}, kNonFinite.name},
            loop_requirement(kNonFinite.name)};
}

}  // namespace

RuleEntry builtin::non_finite() {
    return {&kNonFinite, &non_finite_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<NonFinite>(p); }};
}

}  // namespace traindbg::rules
