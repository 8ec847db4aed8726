// Steps that overshoot more and more: the loss is about to leave what was learned.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kDivergenceAhead = {
    .name = "divergence_ahead",
    .title = "Divergence ahead",
    .summary =
        "Steps overshoot more and more while the loss is still below where it began: it is about to diverge.",
    .when =
        "With plain SGD, steps overshoot so far that the loss is about to diverge: learning rate times "
        "squared gradient norm comes up to the loss itself or more.\n"
        "- Judged: plain SGD, with or without momentum, and a loss that cannot fall below 0.\n"
        "- Overshoot: a step down a gradient of norm g at the learning rate lr would lower the loss by lr "
        "· g², were the loss as steep all the way. This is compared with the loss itself (the median of "
        "four looks).\n"
        "- Losses rise (warning): the step would lower the loss by `overshoot` times the loss or more, and "
        "the losses of the last 64 steps (20 at least) rise (Mann-Kendall z > 4).\n"
        "- Gradients grow (warning): the step would lower the loss by twice `overshoot` times the loss or "
        "more, the gradient norms of the last twelve looks rise (z > 3), and the losses do not fall (z > "
        "-1).\n"
        "- Also needed for both: the loss is not a fifth above its start (the last one now, the median of "
        "five at no time so far). It is still above half of its start, or above three times its lowest "
        "level (median of ten) and 2 % of the start.\n"
        "- At once (warning): one step, also the first one, would lower the loss by 100 times `overshoot` "
        "of it or more. The loss is again not a fifth above its start, and above 2 % of it.\n"
        "- Taken back: after 50 steps and five looks without a step that overshoots, with a loss that did "
        "not stay above its start (median of five). A note (info) stays.",
    .why =
        "A loss of curvature c diverges along it where lr · c is above 2 (2 · (1 + momentum)), and lr · g² / "
        "(2 · loss) is the least that lr · c can be: each step multiplies what the one before overshot by. "
        "That starts small, beside a loss that is as usual, and so can be told before weights are damaged; a "
        "single bad batch cannot. Of one small batch the step goes too far often, so that a trend is asked "
        "for as well.",
    .fix =
        "Lower the learning rate now (traindbg run --on-finding lower-lr does), let its warm-up end lower, "
        "or clip gradients (torch.nn.utils.clip_grad_norm_). Write a checkpoint (--on-finding "
        "checkpoint-stop).",
    .healthy =
        "A first gradient that is far too large, and smaller at each look; gradients that grow when a "
        "training leaves a plateau, by steps that are short of the loss; steps that overshoot beside a loss "
        "that does not rise, as of small batches, or where hardly any loss is left. A rate at the very edge, "
        "just below what diverges, is told and taken back. Not judged: optimizers that divide by the "
        "gradients' size (Adam), several of them, losses made by hand or below 0, a gradient scaler, "
        "parameters with gradients that the optimizer does not have, and micro-batches whose losses were not "
        "all seen. Of parameter groups the lowest rate counts.",
    .cost =
        "Gradients at the first 20 steps and then every 10th, which other rules look at as well; the loss.",
    .original = "",
    .source =
        "Cohen et al., \"Gradient descent on neural networks typically occurs at the edge of stability\", "
        "ICLR 2021 (the limit); Loizou et al., \"Stochastic Polyak step-size for SGD\", AISTATS 2021 (the "
        "step that the loss bears: loss / g²)",
    .severity = model::Severity::kWarning,
    .parameters = {{"overshoot", "times", 1, 0.1, 1e6,
                    "learning rate times the gradient's squared norm, in units of the loss"}},
};

class DivergenceAhead final : public Rule {
  public:
    explicit DivergenceAhead(const Parameters& parameters) : overshoot_(parameters.at("overshoot")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        const std::uint64_t before = loss_.count();
        const bool has_loss = loss_.observe(step);
        if (loss_.count() < before) begin_anew(sink);
        rates_.observe(step);
        note_groups(step);
        if (const std::optional<LoopFact> passes = loop_fact(step, "backward_passes"))
            passes_ = passes->value;
        if (const std::optional<LoopFact> scaled = loop_fact(step, "scaled_passes"))
            is_scaled_ = is_scaled_ || scaled->value > 0;
        for (const char* outside : {"not_in_optimizer", "outside_optimizer"})
            if (const std::optional<LoopFact> of = loop_fact(step, outside))
                has_others_ = has_others_ || of->value > 0;
        is_sgd_ = updates_follow_gradients(*step.meta) && step.meta->optimizers.size() == 1 &&
                  !is_to_rise(*step.meta);
        if (!has_loss) return;
        const std::optional<double> total = total_of(step);
        if (!total) return;
        look_below_zero(step, *total, sink);
        follow_level();
        if (can_judge()) look(step, *total, sink);
    }
    void on_end(FindingSink& sink) override {
        if (is_told_ && is_back() && calm_ >= kCalm) take_back(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (loss_.count() == 0) return "no training loss was seen";
        if (!is_sgd_) return "the optimizer is not plain SGD, or not the only one";
        if (!loss_.is_known_function()) return "the loss is made by hand";
        if (is_below_zero_) return "the loss falls below 0";
        if (is_scaled_) return "the loss is scaled";
        if (has_others_) return "parameters get gradients that the optimizer does not have";
        return "no gradients of a step whose whole loss is known were captured";
    }

  private:
    static constexpr const char* kKey = "overshoot";
    static constexpr std::size_t kLooks = 4;            // whose median counts
    static constexpr std::size_t kRise = 64;            // losses that are looked at for a trend ...
    static constexpr std::size_t kFewest = 20;          // ... and the least of them
    static constexpr double kSignificant = 4;           // Mann-Kendall's z
    static constexpr double kNormsSignificant = 3;      // of the looks' norms
    static constexpr double kFalls = -1;                // z of losses below which they fall
    static constexpr double kHigh = 0.5;                // of the start: little is learned yet
    static constexpr double kLost = 3;                  // times the lowest level: what was learned goes
    static constexpr double kWorth = 0.02;              // of the start: below it losses are next to nothing
    static constexpr double kCertain = 100;             // times `overshoot`: one look is enough
    static constexpr double kArrived = 1.2;             // times the start
    static constexpr std::uint64_t kCalm = 5;           // looks ...
    static constexpr model::StepIndex kCalmSteps = 50;  // ... and steps
    static constexpr std::size_t kTrend = 12;           // looks that are kept, by which it is told when
    static constexpr double kFarAhead = 100'000;        // steps that nobody waits for

    struct Look {
        model::StepIndex step = 0;
        double norm = 0, ratio = 0, loss = 0;
    };

    void begin_anew(FindingSink& sink) {
        if (is_told_) sink.clear(kKey);
        is_told_ = has_arrived_ = is_scaled_ = is_below_zero_ = has_others_ = false;
        calm_ = 0;
        passes_ = lowest_share_ = 1;
        lowest_ = std::numeric_limits<double>::infinity();
        looks_.clear();
        rates_ = LearningRates();
    }

    // The lowest rate of the groups, as a share of the highest.
    void note_groups(const model::StepView& step) {
        constexpr std::string_view kRate = "optimizer_state/lr.";
        double least = std::numeric_limits<double>::infinity(), most = 0;
        for (const model::ScalarSample& sample : step.record->scalars) {
            if (!step.info(sample.tensor).name.starts_with(kRate) || !std::isfinite(sample.value)) continue;
            least = std::min(least, sample.value);
            most = std::max(most, sample.value);
        }
        if (most > 0) lowest_share_ = std::max(least, 0.0) / most;
    }
    // The sum of what backward() was called on, or of what the one loss function returned.
    [[nodiscard]] std::optional<double> total_of(const model::StepView& step) const {
        double total = 0, of_function = 0;
        double passes = 0, calls = 0;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_first_loss(info)) continue;
            const bool is_function = info.name.starts_with("loss/");
            (is_function ? of_function : total) += sample.value;
            ++(is_function ? calls : passes);
        }
        if (passes == 0) {
            total = of_function;
            passes = calls;
        }
        if (passes == 0 || passes < passes_ || !std::isfinite(total)) return std::nullopt;
        return total;
    }
    void follow_level() {
        const auto last = loss_.recent().last(5);
        now_ = median({last.begin(), last.end()});
        has_arrived_ = has_arrived_ || (loss_.count() >= 5 && now_ > kArrived * loss_.start());
        if (loss_.count() >= 10) lowest_ = std::min(lowest_, loss_.level());
    }
    // A likelihood of a density has no least value, or another one than 0.
    void look_below_zero(const model::StepView& step, double total, FindingSink& sink) {
        if (is_below_zero_) return;
        is_below_zero_ = total < 0 || std::any_of(step.record->scalars.begin(), step.record->scalars.end(),
                                                  [&](const model::ScalarSample& sample) {
                                                      const std::string& name = step.info(sample.tensor).name;
                                                      return name.starts_with("loss/gaussian_nll") ||
                                                             name.starts_with("loss/poisson_nll");
                                                  });
        if (!is_below_zero_ || !is_told_) return;
        model::Finding note;
        note.key = kKey;
        note.message = base::format(
            "The loss fell below 0 at step {}: how far a step overshoots cannot be told.", step.step());
        note.fix = "Nothing.";
        sink.take_back(std::move(note));
        is_told_ = false;
    }
    [[nodiscard]] bool can_judge() const {
        return is_sgd_ && loss_.is_known_function() && !loss_.is_game() && !is_below_zero_ && !is_scaled_ &&
               !has_others_ && rates_.now() > 0 && loss_.start() > 0;
    }

    void look(const model::StepView& step, double total, FindingSink& sink) {
        double square = 0;
        std::uint64_t not_finite = 0;
        const model::TensorInfo* largest = nullptr;
        double largest_norm = -1;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kGradient) continue;
            not_finite += sample.statistics.not_finite();
            square += sample.statistics.l2 * sample.statistics.l2;
            if (sample.statistics.l2 <= largest_norm) continue;
            largest_norm = sample.statistics.l2;
            largest = &info;
        }
        if (largest == nullptr || not_finite > 0 || !(total > 0) || !std::isfinite(square)) return;
        ++judged_;
        const double rate =
            rates_.now() * lowest_share_ *
            (1 - std::clamp(optimizer_setting(*step.meta, "dampening").value_or(0), 0.0, 1.0));
        if (looks_.size() == kTrend) looks_.erase(looks_.begin());
        looks_.push_back({step.step(), std::sqrt(square), rate * square / total, total});
        if (overshoots()) {
            calm_ = 0;
            is_told_ = true;
            return fire(step, *largest, rate, sink);
        }
        if (is_told_) calm_down(step, sink);
    }

    [[nodiscard]] bool overshoots() const {
        // What has jumped already may come back as fast: at the edge of stability a loss does.
        if (has_arrived_ || loss_.recent().values().back() > kArrived * loss_.start()) return false;
        // So far that the next loss is out of all bounds, whatever follows.
        if (looks_.back().ratio >= kCertain * overshoot_ && now_ > kWorth * loss_.start()) return true;
        // The step of a small batch overshoots its own loss often, and that of the data not at all.
        if (looks_.size() < kLooks || !(usual_ratio() >= overshoot_)) return false;
        const double rise = trend_z(loss_.recent().last(kRise));
        const bool is_rising = loss_.count() >= kFewest && rise > kSignificant;
        const bool grows = usual_ratio() >= 2 * overshoot_ && are_norms_rising() && rise > kFalls;
        if (!is_rising && !grows) return false;
        return now_ > kHigh * loss_.start() || (now_ > kLost * lowest_ && now_ > kWorth * loss_.start());
    }
    [[nodiscard]] double usual_ratio() const {
        std::vector<double> ratios;
        for (auto look = looks_.end() - kLooks; look != looks_.end(); ++look) ratios.push_back(look->ratio);
        return median(std::move(ratios));
    }
    [[nodiscard]] bool are_norms_rising() const {
        std::vector<double> norms;
        for (const Look& look : looks_) norms.push_back(look.norm);
        return trend_z(norms) > kNormsSignificant;  // of fewer than eight it cannot be
    }

    [[nodiscard]] bool is_back() const { return !has_arrived_ && now_ <= loss_.start(); }
    void calm_down(const model::StepView& step, FindingSink& sink) {
        if (looks_.back().ratio >= overshoot_) {
            calm_ = 0;
            return;
        }
        if (calm_++ == 0) calm_since_ = step.step();
        if (calm_ < kCalm || step.step() < calm_since_ + kCalmSteps) return;
        if (is_back()) return take_back(sink);
        if (!loss_.has_learned_much()) return;
        sink.clear(kKey);
        is_told_ = false;
    }
    void take_back(FindingSink& sink) {
        model::Finding note;
        note.key = kKey;
        note.message = base::format(
            "The loss did not diverge: it did not stay above its start ({}), and is {} at step {}; the last "
            "step that was looked at would have lowered it by {} of itself.",
            human_number(loss_.start()), human_number(now_), looks_.back().step,
            human_number(looks_.back().ratio));
        note.fix = "Nothing now. The learning rate was near the largest that this training bears.";
        sink.take_back(std::move(note));
        is_told_ = false;
    }

    // By how much the gradient's norm is multiplied in a step; nothing where it does not grow.
    [[nodiscard]] std::optional<double> growth() const {
        if (!are_norms_rising()) return std::nullopt;
        const auto middle_of = [&](std::size_t first) {
            return median({looks_[first].norm, looks_[first + 1].norm, looks_[first + 2].norm});
        };
        const std::size_t last = looks_.size() - 3;
        const double from = middle_of(0), to = middle_of(last);
        const auto steps = static_cast<double>(looks_[last + 1].step - looks_[1].step);
        if (!(steps > 0) || !(from > 0) || !(to > from)) return std::nullopt;
        return std::pow(to / from, 1 / steps);
    }

    void fire(const model::StepView& step, const model::TensorInfo& largest, double rate,
              FindingSink& sink) const {
        const Look& last = looks_.back();
        model::Finding finding;
        finding.key = kKey;
        finding.kind = "learning_rate_too_high";
        finding.severity = model::Severity::kWarning;
        finding.tensor = largest.name;
        finding.layer = largest.module;
        const Look* before = looks_.size() > 1 ? &looks_[looks_.size() - 2] : nullptr;
        finding.message = base::format(
            "Steps overshoot: at a gradient norm of {} and a learning rate of {} the step would lower the "
            "loss of {} by {}, {} times what there is of it",
            human_number(last.norm), human_number(rate), human_number(last.loss),
            human_number(last.ratio * last.loss), human_number(last.ratio));
        finding.message += before == nullptr ? std::string(".")
                                             : base::format(" (at step {}, {} times).", before->step,
                                                            human_number(before->ratio));
        const double far = last.ratio / 2 - 1;
        if (far * far * last.loss > kArrived * loss_.start()) {
            finding.message +=
                base::format(" If the way curves evenly, the next loss is {} or more; it began at {}.",
                             human_number(far * far * last.loss), human_number(loss_.start()));
        } else if (const std::optional<double> by = growth()) {
            // The loss that such steps leave goes with the square of the gradient.
            const double start = kArrived * loss_.start();
            const double steps = now_ < start ? std::log(start / now_) / (2 * std::log(*by)) : 1;
            finding.message += base::format(" The norm grows by {:.1f} % a step", 100 * (*by - 1));
            if (steps < kFarAhead)
                finding.message += base::format(
                    ": at that rate the loss may be above its start ({}) from about step {:.0f} on",
                    human_number(loss_.start()),
                    static_cast<double>(step.step()) + std::max(1.0, std::ceil(steps)));
            finding.message += '.';
            finding.evidence.push_back({"growth of the gradient norm per step", *by, "", 0});
        }
        finding.fix = base::format(
            "Lower the learning rate from {} to about {} or less; or clip gradients: "
            "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) before the optimizer step.",
            human_number(rate),
            human_number(round_for_people(rate * std::clamp(0.5 / last.ratio, 1e-3, 0.2))));
        finding.evidence.push_back({"learning rate · gradient² / loss", last.ratio, "limit", overshoot_});
        if (before != nullptr)
            finding.evidence.push_back({"gradient norm", last.norm, "at the look before", before->norm});
        finding.evidence.push_back({"loss", now_, "at the start", loss_.start()});
        finding.plots = {{largest.name, "l2"}, {loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    double overshoot_;
    std::uint64_t judged_ = 0, calm_ = 0;  // looks: all of them; since the last step that overshot
    model::StepIndex calm_since_ = 0;
    bool is_sgd_ = false, is_scaled_ = false, is_below_zero_ = false;
    bool has_others_ = false;  // parameters with a gradient that the optimizer does not have
    bool is_told_ = false, has_arrived_ = false;
    double passes_ = 1;                                        // backward passes of a step
    double lowest_share_ = 1;                                  // of the rates
    double now_ = 0;                                           // the loss, median of five
    double lowest_ = std::numeric_limits<double>::infinity();  // median of ten
    std::vector<Look> looks_;                                  // the last ones
    TrainingLoss loss_;
    LearningRates rates_;
};

std::vector<model::Requirement> divergence_ahead_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kDivergenceAhead.name);
    all.push_back({"gradients",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 10, .dense_until = 20},
                   kDivergenceAhead.name});
    all.push_back(rate_requirement(kDivergenceAhead.name));
    all.push_back(loop_requirement(kDivergenceAhead.name));
    return all;
}

}  // namespace

RuleEntry builtin::divergence_ahead() {
    return {&kDivergenceAhead, &divergence_ahead_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<DivergenceAhead>(p);
            }};
}

}  // namespace traindbg::rules
