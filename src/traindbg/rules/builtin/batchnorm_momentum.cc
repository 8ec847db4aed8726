// Running statistics of batch norm that are not those of the batches.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kBatchnormMomentum = {
    .name = "batchnorm_momentum",
    .title = "Running statistics of batch norm are off",
    .summary =
        "Batch norm computes something else in evaluation: its running statistics are not those of the "
        "batches.",
    .when =
        "In training, batches are far from the running statistics of a batch norm, because of its momentum "
        "or because batches are too small, and this does harm.\n"
        "- Off, needed for a small or large momentum, or none: at more than half of the last four looks "
        "after step 30, in the typical channel of some batch norm, a batch's mean differs from the running "
        "one by more than `gap` deviations, or its deviation by more than that share.\n"
        "- Small momentum (warning): more than `left` of the running values is still what they started "
        "with, because momentum is small for so few batches. The evaluation loss is more than 1.3 times "
        "the training loss at the last two evaluations.\n"
        "- Small momentum, at the end of a run without any evaluation: the gap is more than 2.5 times "
        "`gap`.\n"
        "- Large momentum (warning): momentum is 0.9 or more, so that the running values are those of the "
        "last batch alone. Half of `gap` is enough. As single batches may be lucky ones, the evaluation "
        "loss must be more than 1.3 times the training loss at two of the last four evaluations.\n"
        "- Large momentum, off by all of `gap`: evaluation results of any size are enough, as each is of "
        "another draw. Where the loss is given 8 samples or fewer at a time, a quarter of `gap` is.\n"
        "- Large momentum, and none, are judged only where the model is never called in training mode "
        "without gradients, by which the statistics may be made anew.\n"
        "- No momentum (warning): momentum is None, so that the running values are the mean of all batches, "
        "those of the first steps with other weights among them. They are off by `gap` and by more than one "
        "and a half times the noise of a mean over the batch's samples.\n"
        "- No momentum, when it is judged: after 300 steps, or at the end of 100 or more. The evaluation "
        "loss is more than 1.3 times the training loss at the last two evaluations and at three of the last "
        "four.\n"
        "- Momentum of 0 (warning): the running statistics are still mean 0 and variance 1 after a batch "
        "was counted. There is no threshold.\n"
        "- Small batches (warning): the loss is given `samples` samples or fewer at a time, and batches "
        "are off by a quarter of `gap`. Or it is given up to twice as many, and batches are off by all of "
        "`gap`. In either case, after 300 steps, or at the end, the training loss is above 30 % of its "
        "start (of guessing, where that is known).",
    .why =
        "In training a batch is normalised by itself, in evaluation by the running statistics. Where these "
        "are others, the network that is evaluated is not the one that was trained.",
    .fix =
        "Leave momentum at 0.1 (PyTorch counts the share of the new value: what other libraries call 0.99 is "
        "0.01 here). For small batches use GroupNorm or LayerNorm, or larger batches.",
    .healthy =
        "Small momentum in a training of many thousand batches; batch norm that is frozen in evaluation "
        "mode; momentum=None, the average of all batches, in a training whose evaluations are none the worse "
        "for it. Batches that are each of one domain or kind of data are far from any mean, whatever the "
        "momentum: this cannot be told apart here from statistics that are late.",
    .cost =
        "A copy of the running statistics of up to 4 norms, three of the first and the last one, at every "
        "25th step of the first 800 and every 100th after that.",
    .original = "",
    .source =
        "Ioffe, \"Batch renormalization: Towards reducing minibatch dependence in batch-normalized models\", "
        "NeurIPS 2017; Wu, He, \"Group normalization\", ECCV 2018",
    .severity = model::Severity::kWarning,
    .parameters = {{"gap", "deviations", 0.2, 1e-3, 1e6, "of a batch from the running statistics"},
                   {"left", "share", 0.1, 1e-6, 1, "of the running values that is not of any batch"},
                   {"samples", "samples", 2, 1, 64, "of a batch that is too small"}},
};

class BatchNormMomentum final : public Rule {
  public:
    explicit BatchNormMomentum(const Parameters& parameters)
        : gap_(parameters.at("gap")), left_(parameters.at("left")), samples_(parameters.at("samples")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kEval) return note_evaluation(step, sink);
        if (step.mode() != model::Mode::kTrain) return;
        if (evaluated_ > 0) end_evaluation();
        loss_.observe(step);
        for (const model::ScalarSample& sample : step.record->scalars)
            if (is_first_loss(step.info(sample.tensor)) && std::isfinite(sample.value) &&
                step.info(sample.tensor).name != "loss")
                training_.add(sample.value);
        if (loop_fact(step, "modules_called_in_train")) has_other_statistics_ = true;
        if (const std::optional<LoopFact> samples = loop_fact(step, "samples_of_loss"))
            batch_ = samples->value;
        if (const std::optional<LoopFact> standing = loop_fact(step, "norm_standing")) {
            ++judged_;
            return fire_standing(*standing, sink);
        }
        std::optional<LoopFact> gap = loop_fact(step, "norm_gap");
        if (gap || loop_fact(step, "norm_noise")) is_noise_ = !gap;
        if (!gap) gap = loop_fact(step, "norm_noise");  // of a step of several batches
        if (!gap || !std::isfinite(gap->value)) return;
        sink.clear("zero");
        ++judged_;
        if (const std::optional<LoopFact> momentum = loop_fact(step, "norm_momentum"))
            momentum_ = momentum->value;
        is_of_all_ = loop_fact(step, "norm_of_all_batches").has_value();
        if (const std::optional<LoopFact> left = loop_fact(step, "norm_start_left")) left_now_ = left->value;
        if (step.step() < 30) return;
        gaps_.add(gap->value);
        place_ = gap->place;
        tensor_ = gap->tensor;
        judge(step, sink);
    }
    void on_end(FindingSink& sink) override {
        if (evaluated_ > 0) end_evaluation();
        if (firing_ == nullptr) fire_new(why(loss_.count() >= 100, loss_.count() >= 50), sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no batch norm was seen that counts running statistics, on the CPU";
    }

  private:
    static constexpr const char* kLast = "last";
    static constexpr const char* kAll = "all";
    static constexpr double kFewSamples = 8;  // of a batch
    // How far a batch is off by chance, at most, is one deviation over the root of its samples.
    static constexpr double kOfNoise = 1.5;

    // The loss of an evaluation of several batches is their mean.
    void note_evaluation(const model::StepView& step, FindingSink& sink) {
        static_cast<void>(sink);
        const std::optional<LoopFact> on = loop_fact(step, "modules_in_train");
        if (on && on->value > 0) has_other_statistics_ = true;
        for (const model::ScalarSample& sample : step.record->scalars) {
            if (!is_first_loss(step.info(sample.tensor)) || !std::isfinite(sample.value)) continue;
            evaluation_ += sample.value;
            ++evaluated_;
        }
    }
    void end_evaluation() {
        const double value = evaluation_ / static_cast<double>(evaluated_);
        evaluation_ = 0;
        evaluated_ = 0;
        const auto last = training_.last(20);
        if (last.empty()) return;
        double sum = 0;
        for (const double one : last) sum += one;
        const double trained = sum / static_cast<double>(last.size());
        if (trained > 0) harm_.add(value / trained);
    }

    // Which of the reasons holds; null for none.
    [[nodiscard]] const char* why(bool is_late, bool is_over = false) const {
        if (is_late && is_tiny()) return "batch";
        if (gaps_.values().size() < 2 || is_noise_) return nullptr;
        const auto looks = gaps_.last(4);
        const auto are_mostly_off = [&](double limit) {
            const auto off =
                std::count_if(looks.begin(), looks.end(), [&](double gap) { return gap > limit; });
            return 2 * static_cast<std::size_t>(off) > looks.size();
        };
        const auto worse_of = [&](std::size_t last) {
            const auto harm = harm_.last(last);
            return std::count_if(harm.begin(), harm.end(), [](double h) { return h > 1.3; });
        };
        if (is_of_all_) {
            const bool is_worse = is_late && worse_of(2) == 2 && worse_of(4) >= 3;
            return is_worse && !has_other_statistics_ && are_mostly_off(limit_of(kAll)) ? kAll : nullptr;
        }
        // What one batch happens to be decides: some evaluations are lucky.
        if (momentum_ >= 0.9 && !has_other_statistics_ && are_mostly_off(gap_ / 2) && worse_of(4) >= 2)
            return kLast;
        // Of so few samples it is nothing to normalise by, even where the loss does not show it yet.
        if (is_of_few() && !harm_.values().empty() && are_mostly_off(gap_ / 4)) return kLast;
        if (!are_mostly_off(gap_)) return nullptr;
        // So far off, each evaluation is of another draw, the lucky ones, too.
        if (momentum_ >= 0.9 && !has_other_statistics_ && !harm_.values().empty()) return kLast;
        if (worse_of(2) == 2 && left_now_ > left_) return "start";
        // Nothing was evaluated yet, and what will be is another network.
        const double gap = median({looks.begin(), looks.end()});
        if (is_over && harm_.values().empty() && left_now_ > left_ && gap > 2.5 * gap_) return "start";
        return nullptr;
    }
    // The running statistics are those of a few samples.
    [[nodiscard]] bool is_of_few() const {
        return momentum_ >= 0.9 && !has_other_statistics_ && batch_ >= 1 && batch_ <= kFewSamples;
    }
    [[nodiscard]] double limit_of(std::string_view reason) const {
        if (reason == kLast) return is_of_few() ? gap_ / 4 : gap_ / 2;
        if (reason == kAll) return std::max(gap_, batch_ > 0 ? kOfNoise / std::sqrt(batch_) : 0);
        if (reason == "batch" && batch_ <= samples_) return gap_ / 4;
        return reason == "start" && harm_.values().empty() ? 2.5 * gap_ : gap_;
    }
    // Two samples are noise even where their many pixels hide it; of four it has to show.
    [[nodiscard]] bool is_tiny() const {
        if (batch_ < 1 || batch_ > 2 * samples_ || gaps_.values().size() < 2) return false;
        const auto looks = gaps_.last(4);
        const double gap = median({looks.begin(), looks.end()});
        if (gap < (batch_ > samples_ ? gap_ : gap_ / 4)) return false;
        const double start = loss_.base_rate().value_or(loss_.start());
        const auto recent = loss_.recent().values();
        if (loss_.is_game() || recent.empty() || !(start > 0)) return false;
        double sum = 0;
        for (const double one : recent) sum += one;
        return sum / static_cast<double>(recent.size()) > 0.3 * start;
    }
    void judge(const model::StepView& step, FindingSink& sink) {
        last_ = step.step();
        const char* reason = why(loss_.count() >= 300);
        const bool is_unknown = firing_ != nullptr && firing_ == kLast && has_other_statistics_;
        if (reason == nullptr && firing_ != nullptr && (is_unknown || loss_.has_learned_much())) {
            sink.clear(firing_);
            firing_ = nullptr;
        }
        if (firing_ != nullptr) fire(sink);
        else fire_new(reason, sink);
    }
    void fire_new(const char* reason, FindingSink& sink) {
        if (reason == nullptr) return;
        firing_ = reason;
        fire(sink);
    }

    void fire_standing(const LoopFact& standing, FindingSink& sink) {
        model::Finding finding;
        finding.key = "zero";
        finding.tensor = standing.tensor;
        finding.layer = standing.place;
        finding.message = base::format(
            "The running statistics of {} are still mean 0 and variance 1: its momentum is 0, so no batch "
            "moves them. Evaluation normalises by nothing.",
            standing.place);
        finding.fix = "Leave momentum at 0.1: it is the share of the new value, and no optimizer's momentum.";
        finding.evidence.push_back({"momentum", 0, "usual", 0.1});
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    void fire(FindingSink& sink) {
        const std::string_view reason(firing_);
        const auto looks = gaps_.last(4);
        const double gap = median({looks.begin(), looks.end()});
        model::Finding finding;
        finding.key = firing_;
        finding.tensor = tensor_;
        finding.layer = place_;
        const std::string by =
            base::format("Batches are off the running statistics of {} by {} deviations at step {}: ", place_,
                         human_number(gap), last_);
        if (reason == "start") {
            finding.message =
                by + base::format("with momentum {} they still hold {:.0f} % of what they started with.",
                                  human_number(momentum_), 100 * left_now_);
            finding.fix = base::format("Raise momentum from {} to 0.1, or train for many more batches.",
                                       human_number(momentum_));
        } else if (reason == kAll) {
            finding.message = by +
                              "with momentum None they are the mean of all batches since the start, most of "
                              "which went through other weights.";
            finding.fix =
                "Leave momentum at 0.1: None is no default, it stands for the mean of all batches since the "
                "start.";
        } else if (reason == kLast) {
            finding.message = by + base::format("with momentum {} they are those of the last batch alone.",
                                                human_number(momentum_));
            finding.fix =
                base::format("Lower momentum from {} to 0.1: in PyTorch it is the share of the new value.",
                             human_number(momentum_));
        } else {
            finding.message = by + base::format("a batch has {} samples, and its statistics are noise.",
                                                human_number(batch_));
            finding.fix = "Use torch.nn.GroupNorm (or LayerNorm) instead of batch norm, or larger batches.";
        }
        const auto harm = harm_.last(4);
        if (!harm.empty()) {
            const double worst = *std::max_element(harm.begin(), harm.end());
            finding.message +=
                harm.size() == 1
                    ? base::format(" The evaluation loss is {} times the training loss.", human_number(worst))
                    : base::format(
                          " At the worst of the last {} evaluations their loss was {} times the training "
                          "loss.",
                          harm.size(), human_number(worst));
            finding.evidence.push_back({"evaluation loss / training loss", worst, "limit", 1.3});
        }
        finding.evidence.push_back({"deviations off", gap, "limit", limit_of(reason)});
        if (!is_noise_) finding.evidence.push_back({"momentum", momentum_, "usual", 0.1});
        if (batch_ > 0) finding.evidence.push_back({"samples of a batch", batch_, "limit", samples_});
        finding.plots = {{tensor_, "value"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
    }

    double gap_, left_, samples_;
    // The model is called in training mode without gradients, in evaluations or between steps: running
    // statistics are those of these calls, or are not used.
    bool has_other_statistics_ = false;
    bool is_of_all_ = false;  // the running statistics are the mean of all batches
    bool is_noise_ = false;   // the gaps are those of batches whose gradients are summed: of their noise
    std::uint64_t judged_ = 0, evaluated_ = 0;
    double evaluation_ = 0, batch_ = 0, momentum_ = 0, left_now_ = 0;
    model::StepIndex last_ = 0;
    std::string place_, tensor_;
    const char* firing_ = nullptr;
    Recent gaps_{8}, harm_{8}, training_{32};
    TrainingLoss loss_;
};

std::vector<model::Requirement> batchnorm_momentum_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kBatchnormMomentum.name);
    all.push_back(loop_requirement(kBatchnormMomentum.name));
    all.push_back(loop_requirement(kBatchnormMomentum.name, model::Mode::kEval));
    all.push_back(
        {"losses", model::Mode::kEval, model::What::kStatistics, {.every = 1}, kBatchnormMomentum.name});
    return all;
}

}  // namespace

RuleEntry builtin::batchnorm_momentum() {
    return {&kBatchnormMomentum, &batchnorm_momentum_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<BatchNormMomentum>(p);
            }};
}

}  // namespace traindbg::rules
