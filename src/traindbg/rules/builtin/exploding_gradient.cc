// Gradients that grow out of all proportion, or updates as large as the weights.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_of_zeros.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/summed_loss.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kExplodingGradient = {
    .name = "exploding_gradient",
    .title = "Exploding gradient",
    .summary =
        "Gradients grow far beyond what they were, or updates are as large as the weights they change.",
    .when =
        "Gradients grow far beyond their usual size, or updates beyond the weights, while the loss gets "
        "worse. Also, they explode through time, or values through depth, or clipping comes before the "
        "backward pass.\n"
        "- Growth (error): the smallest of the last three captured gradient norms (over all parameters, as "
        "the optimizer uses them) is more than `growth` times the median of this training's earlier ones, "
        "and larger than the norm of all weights.\n"
        "- Fast growth (error): the norm rises at least five-fold from one captured step to the next, "
        "three times running, to `growth` times that median, and is larger than the norm of all weights.\n"
        "- Size (error): with plain SGD, learning rate times gradient norm exceeds `update` times the "
        "weights' norm at three of the last five captured steps.\n"
        "- Loss, for growth and size: it must be above the level that it had before. Size is never "
        "reported for a training that learns.\n"
        "- Through time: a layer is used eight times or more, one use after the other, as in a recurrent "
        "network. The gradient that comes back to its first uses is more than `growth` times that of its "
        "last ones. One of the next four items must hold, too.\n"
        "- Through time (error): within 50 steps of that look the loss is not finite.\n"
        "- Through time, without growth (error): of such a layer, where updates follow the gradients. The "
        "norm of all gradients "
        "before any update was above ten times that of all weights, and times the learning rate above it, "
        "though the loss is no sum over a batch. Within 10 steps the loss is not finite, and inputs and "
        "labels are.\n"
        "- Through time (warning): the first loss is more than `growth` times that of guessing, and 20 "
        "steps or more have not brought it below that of guessing. Where it is no classification, the "
        "gradient must grow by more than the square of `growth`, or the first loss be more than that many "
        "times guessing.\n"
        "- Through time (warning): the gradient grows so more than a million-fold at all looks, three or "
        "more, the first one before any update. The first norm of all gradients, as the optimizer uses "
        "them, is above that of all weights, and after 100 steps the training has not come far.\n"
        "- Through time (warning): the gradient grows so more than 10,000-fold at all looks, three or "
        "more, the first one before any update, when the norm of all gradients was above that of all "
        "weights. After 100 steps all of the last norms were above ten times that of all weights, and 30 % "
        "of the first loss or more is left.\n"
        "- The loss of guessing: the entropy of the labels. For a mean squared error, the labels' own mean "
        "square, the largest that was seen. For other distances, the root of that. For a binary "
        "cross-entropy, ln 2.\n"
        "- Through depth: at the first step, before any update, what the last layers with weights return "
        "is more than `growth` times as large as what the first of them returns. The norm of all gradients "
        "is above that of all weights.\n"
        "- Through depth, in between: the typical layer lies between the two (twice the first, half of the "
        "largest), or no input of the model has a value above 1 / `growth` of the largest of these "
        "outputs.\n"
        "- Through depth (error): within 10 steps the loss is not finite.\n"
        "- Through depth (warning), where no input is that large: the first loss is more than `growth` "
        "times that of guessing, and 20 steps or more have not brought it below that of guessing. Where it "
        "is no classification, the outputs or the first loss must be above the square of `growth`, as "
        "through time.\n"
        "- Clipping, note only (info): at each of three looks in a row, and ever since, clip_grad_norm_ "
        "(clip_grad_value_) was called before the backward pass, where all gradients were None or zero, "
        "and not after it.\n"
        "- Clipping (warning): the same, where the norm of what the optimizer then used of these gradients "
        "was above five times the limit at three looks.",
    .why =
        "A step that changes the weights by more than they are forgets what was learned; from there the loss "
        "jumps about, units die, and the next stop is infinity.",
    .fix =
        "Lower the learning rate; clip gradients (`torch.nn.utils.clip_grad_norm_`); for recurrent nets clip "
        "anyway. Take the mean of a loss that is summed over the batch. Where values grow from layer to "
        "layer before the first update: normalise in each block, or initialise smaller.",
    .healthy =
        "One spike from an odd batch; gradients that grow from almost nothing when a training leaves a "
        "plateau; large gradients of a loss that is summed, with a learning rate to match; Adam, whose "
        "updates do not depend on the gradients' size.",
    .cost =
        "One pass over all gradients at the first 20 steps and then every 10th; weights at few steps; labels "
        "at the first 10 and every 50th; outputs of all layers at the first.",
    .original = "ExplodingTensor",
    .source =
        "Pascanu, Mikolov, Bengio, \"On the difficulty of training recurrent neural networks\", ICML 2013",
    .severity = model::Severity::kError,
    .parameters = {{"growth", "times", 100, 2, 1e12, "growth over the training's own usual gradient norm"},
                   {"update", "ratio", 0.3, 1e-3, 1e6, "size of a plain SGD update relative to the weights"}},
};

class ExplodingGradient final : public Rule {
  public:
    explicit ExplodingGradient(const Parameters& parameters)
        : growth_(parameters.at("growth")), update_(parameters.at("update")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        look_at_time(step, sink);
        look_at_depth(step, sink);
        look_at_clip(step);
        summed_.observe(step);
        of_zeros_.observe(step);
        if (loss_.observe(step) && !loss_.recent().values().empty())
            last_loss_ = loss_.recent().values().back();
        judge_deep_loss(step, sink);
        judge_loss_of_time(step, sink);
        double norm2 = 0, largest2 = -1, weights2 = 0;
        std::uint64_t finite = 0, not_finite = 0;
        const model::TensorInfo* worst = nullptr;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const double square = sample.statistics.l2 * sample.statistics.l2;
            if (info.role == model::Role::kWeight) {
                // Beside weights that start near 0 any step is large.
                const double gain = is_matrix(info) ? gain_of(info, sample.statistics) : 0;
                const double lift = gain > 0 ? std::max(1.0, kSmallGain / gain) : 1;
                weights2 += square * lift * lift;
            } else if (info.role == model::Role::kGradient) {
                not_finite += sample.statistics.not_finite();
                finite += sample.statistics.finite();
                norm2 += square;
                if (square > largest2) {
                    largest2 = square;
                    worst = &info;
                }
            }
        }
        if (weights2 > 0) weight_norm_ = std::sqrt(weights2);
        if (worst == nullptr || finite == 0 || not_finite > 0) return;
        ++judged_;
        const double norm = std::sqrt(norm2);
        if (judged_ == 1) {
            first_norm_ = norm;
            first_weights_ = step.step() == 0 ? weight_norm_ : 0;
            first_ratio_ = update_ratio(step, norm);
        }
        norms_.add(norm);
        losses_.add(last_loss_);
        ratios_.add(update_ratio(step, norm));
        judge_clip(norm, *worst, sink);
        const bool growing = grows();
        const bool large = !growing && oversteps();
        if (!growing && !large) {
            if (firing_ && ++calm_ >= 10) {
                sink.clear(kKey);
                firing_ = false;
            }
            return;
        }
        calm_ = 0;
        firing_ = true;
        fire(step, *worst, std::sqrt(largest2), growing, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "no finite gradients were captured"; }

  private:
    static constexpr const char* kKey = "gradients";
    static constexpr const char* kTime = "time";
    static constexpr double kFarInTime = 1e6;   // growth that no training does well by
    static constexpr double kLongInTime = 1e4;  // beside gradients that stay large
    static constexpr double kTimesWeights = 10;
    static constexpr std::size_t kFewestNorms = 8;
    static constexpr double kMuchIsLeft = 0.3;  // of the first loss
    static constexpr int kLooksInTime = 3;
    static constexpr double kFewestUses = 8;            // one after the other
    static constexpr std::uint64_t kUntilHeldUp = 100;  // steps

    // Through the uses of one layer, and then out of all bounds.
    void look_at_time(const model::StepView& step, FindingSink& sink) {
        if (loop_fact(step, "trainings")) {  // of another model
            time_place_.clear();
            time_ratio_ = 0;
            used_place_.clear();
            is_lost_ = tells_time_ = false;
            time_looks_ = far_looks_ = long_looks_ = 0;
        }
        const std::vector<LoopFact> in_time = loop_facts(step, "gradient_through_time");
        if (!in_time.empty() && (time_looks_ > 0 || step.step() == 0)) {
            ++time_looks_;
            const auto grows_by = [&](double times) {
                return std::ranges::any_of(in_time, [times](const LoopFact& fact) {
                    return fact.value > times || std::isinf(fact.value);
                });
            };
            far_looks_ += grows_by(kFarInTime);
            long_looks_ += grows_by(kLongInTime);
        }
        for (const LoopFact& fact : in_time) {
            const bool is_large = fact.value > growth_ || std::isinf(fact.value);
            if (!is_large || (!time_place_.empty() && fact.value < time_ratio_)) continue;
            time_place_ = fact.place;
            time_ratio_ = fact.value;
            time_step_ = step.step();
            for (const LoopFact& uses : loop_facts(step, "uses_in_time"))
                if (uses.place == fact.place) time_uses_ = uses.value;
        }
        if (step.step() == 0)
            for (const LoopFact& uses : loop_facts(step, "uses_in_time"))
                if (uses.value >= kFewestUses && (used_place_.empty() || uses.value > used_times_) &&
                    std::ranges::any_of(in_time, [&](const LoopFact& f) { return f.place == uses.place; })) {
                    used_place_ = uses.place;
                    used_times_ = uses.value;
                }
        // Each use adds its part to the gradient, which is large then though it grows on no way.
        const bool is_sum = time_place_.empty() && !used_place_.empty() && step.step() < kSoon &&
                            first_weights_ > 0 && first_norm_ > kTimesWeights * first_weights_ &&
                            first_ratio_ > 1 && !summed_.values();
        if (is_lost_ || (!is_sum && (time_place_.empty() || step.step() > time_step_ + 50))) return;
        for (const model::ScalarSample& sample : step.record->scalars)
            if (step.info(sample.tensor).role == model::Role::kLoss && !std::isfinite(sample.value))
                is_lost_ = true;
        if (!is_lost_) return;
        ++judged_;
        if (is_sum) {
            if (!is_data_lost(step)) fire_sum(step, sink);
            return;
        }
        fire_time(model::Severity::kError,
                  base::format("the loss is not finite from step {} on", step.step()), sink);
    }
    // It may also stay finite, and be nonsense.
    void judge_loss_of_time(const model::StepView& step, FindingSink& sink) {
        if (time_place_.empty() || is_lost_) return;
        const bool is_nonsensical = is_nonsense(time_ratio_);
        if (is_nonsensical || is_held_up() || is_as_large_as_ever()) {
            ++judged_;
            tells_time_ = true;
            fire_time(model::Severity::kWarning,
                      is_nonsensical ? told_of_nonsense(step)
                      : is_held_up()
                          ? base::format("after {} steps the loss is {}, {} at the start", loss_.count(),
                                         human_number(loss_.level()), human_number(loss_.start()))
                          : base::format("after {} steps the norm of all gradients is still {} times that of "
                                         "all weights",
                                         loss_.count(), human_number(norms_.values().back() / weight_norm_)),
                      sink);
        } else if (tells_time_) {
            tells_time_ = false;
            sink.clear(kTime);
        }
    }
    // Of such gradients nothing is left but their last digits, and the training gets nowhere by them.
    [[nodiscard]] bool is_held_up() const {
        return time_looks_ >= kLooksInTime && far_looks_ == time_looks_ && first_norm_ > weight_norm_ &&
               loss_.count() >= kUntilHeldUp && !loss_.has_learned_much();
    }
    // Where the loss falls a good part of the way, too: by far larger than all weights, step after step, and
    // of the first uses alone.
    [[nodiscard]] bool is_as_large_as_ever() const {
        if (time_looks_ < kLooksInTime || long_looks_ != time_looks_ || loss_.count() < kUntilHeldUp ||
            loss_.level() < kMuchIsLeft * loss_.start())
            return false;
        const auto norms = norms_.values();
        return norms.size() >= kFewestNorms && !(first_norm_ <= weight_norm_) && weight_norm_ > 0 &&
               std::ranges::all_of(norms, [&](double norm) { return norm > kTimesWeights * weight_norm_; });
    }
    void fire_time(model::Severity severity, const std::string& what, FindingSink& sink) const {
        model::Finding finding = finding_in_time(time_place_, severity);
        finding.first_step = time_step_;
        finding.message = base::format(
            "The gradient grows {}-fold on its way back through {:.0f} uses of {} at step {}, and {}.",
            human_number(time_ratio_), time_uses_, time_place_, time_step_, what);
        finding.evidence.push_back({"growth through time", time_ratio_, "limit", growth_});
        sink.fire(std::move(finding));
    }
    // Inputs or labels of the step are not finite: then that is why.
    static bool is_data_lost(const model::StepView& step) {
        return std::ranges::any_of(step.record->tensors, [&](const model::TensorSample& sample) {
            const model::Role role = step.info(sample.tensor).role;
            const bool is_data = role == model::Role::kInput || role == model::Role::kLabel;
            return is_data && sample.statistics.not_finite() > 0;
        });
    }
    void fire_sum(const model::StepView& step, FindingSink& sink) const {
        model::Finding finding = finding_in_time(used_place_, model::Severity::kError);
        finding.first_step = 0;
        finding.message = base::format(
            "{:.0f} uses of {} add up to a gradient whose norm is {} before any update, where that of all "
            "weights is {}, and the loss is not finite from step {} on.",
            used_times_, used_place_, human_number(first_norm_), human_number(first_weights_), step.step());
        finding.evidence.push_back({"norm of all gradients", first_norm_, "of all weights", first_weights_});
        sink.fire(std::move(finding));
    }
    [[nodiscard]] model::Finding finding_in_time(const std::string& place, model::Severity severity) const {
        model::Finding finding;
        finding.key = kTime;
        finding.severity = severity;
        finding.tensor = base::format("gradient/{}", place);
        finding.layer = place;
        finding.fix = base::format(
            "Clip gradients: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) before the optimizer "
            "step; initialise the recurrent weights of {} smaller or orthogonally "
            "(torch.nn.init.orthogonal_), or use LSTM or GRU.",
            place);
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        return finding;
    }

    // Clipping that comes before backward finds no gradients: what the optimizer uses is as large as ever.
    void look_at_clip(const model::StepView& step) {
        const std::optional<LoopFact> in_vain = loop_fact(step, "clipped_in_vain");
        if (!in_vain) return;
        clipped_in_vain_.add(step, in_vain->value > 0);
        const std::optional<LoopFact> limit = loop_fact(step, "clip_limit");
        const std::optional<LoopFact> norm = loop_fact(step, "clip_norm");
        if (!limit || !norm || in_vain->value <= 0) return;
        if (norm->value > kFarAbove * limit->value) ++above_limit_;
        if (norm->value <= unclipped_norm_) return;
        unclipped_norm_ = norm->value;
        clip_limit_ = limit->value;
    }
    void judge_clip(double norm, const model::TensorInfo& worst, FindingSink& sink) {
        if (clipped_in_vain_.count() == 0) {
            if (tells_clip_) sink.clear(kClip);
            tells_clip_ = false;
            above_limit_ = 0;
            return;
        }
        if (!clipped_in_vain_.is_enough()) return;
        if (norm > largest_norm_) {
            largest_norm_ = norm;
            largest_gradient_ = worst.name;
            largest_layer_ = worst.module;
        }
        tells_clip_ = true;
        const bool matters = above_limit_ >= kFewLooks;
        model::Finding finding;
        finding.key = kClip;
        finding.severity = matters ? model::Severity::kWarning : model::Severity::kInfo;
        finding.first_step = clipped_in_vain_.first();
        finding.tensor = largest_gradient_;
        finding.layer = largest_layer_;
        const std::string norms = clip_limit_ > 0
                                      ? base::format("; its norm was up to {}, and {} is the limit",
                                                     human_number(unclipped_norm_), human_number(clip_limit_))
                                      : std::string();
        finding.message = base::format(
            "Gradients are clipped before backward(), at all of the {} steps looked at: there are none yet, "
            "and what the optimizer uses is not clipped{}.",
            clipped_in_vain_.count(), norms);
        finding.fix = "Call clip_grad_norm_ (clip_grad_value_) between backward() and optimizer.step().";
        finding.evidence.push_back(clipped_in_vain_.evidence());
        finding.evidence.push_back({"gradient norm", unclipped_norm_, "limit of clipping", clip_limit_});
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    static bool is_weighted(std::string_view type) {
        return type.find("Linear") != std::string_view::npos || type.find("Conv") != std::string_view::npos;
    }
    // What no update has changed yet grows from layer to layer, and then out of all bounds: it is not the
    // steps that are too large, but what they are taken from.
    void look_at_depth(const model::StepView& step, FindingSink& sink) {
        if (step.step() == 0) measure_depth(step);
        if (depth_last_.empty() || is_deep_) return;
        if (step.step() > kSoon) return;
        for (const model::ScalarSample& sample : step.record->scalars)
            if (step.info(sample.tensor).role == model::Role::kLoss && !std::isfinite(sample.value))
                is_deep_ = true;
        if (!is_deep_) return;
        ++judged_;
        fire_depth(model::Severity::kError,
                   base::format("the loss is not finite from step {} on", step.step()), sink);
    }
    // Of classes the entropy of the labels, whatever it is.
    [[nodiscard]] std::optional<double> guess() const {
        return is_of_classes() ? loss_.label_entropy() : of_zeros_.of(loss_);
    }
    [[nodiscard]] bool is_of_classes() const { return loss_.label_entropy().value_or(0) > 0; }
    // A loss whose guess is known began far above that and did not get below it. What targets a regression
    // has may be another thing in each batch: of one, what grew has to have grown further, or the loss to
    // have begun further above.
    [[nodiscard]] bool is_nonsense(double grown) const {
        if (loss_.count() < kPatience || loss_.calls() > 1) return false;
        const std::optional<double> of_guess = guess();
        if (!of_guess) return false;
        const double far = growth_ * growth_;
        if (!is_of_classes() && grown <= far && loss_.first() <= far * *of_guess) return false;
        // Of a loss that is summed over the batch, the guess is as many times larger.
        const double per_label = loss_.first() / std::max(loss_.labels_per_batch(), 1.0);
        return loss_.first() > growth_ * *of_guess && std::abs(per_label - *of_guess) > 0.5 * *of_guess &&
               loss_.level() > *of_guess;
    }
    [[nodiscard]] std::string told_of_nonsense(const model::StepView& step) const {
        return base::format("the loss is {} at first and {} at step {}, where guessing gives {}",
                            human_number(loss_.first()), human_number(loss_.level()), step.step(),
                            human_number(guess().value_or(0)));
    }
    // It may also stay finite, and be nonsense: of a loss whose guess is known, that is said.
    void judge_deep_loss(const model::StepView& step, FindingSink& sink) {
        if (depth_last_.empty() || !is_made_inside_ || is_deep_) return;
        if (is_nonsense(depth_ratio_)) {
            ++judged_;
            tells_deep_ = true;
            fire_depth(model::Severity::kWarning, told_of_nonsense(step), sink);
        } else if (tells_deep_) {
            tells_deep_ = false;
            sink.clear(kDepth);
        }
    }
    void fire_depth(model::Severity severity, const std::string& what, FindingSink& sink) const {
        model::Finding finding;
        finding.key = kDepth;
        finding.severity = severity;
        finding.first_step = 0;
        finding.tensor = base::format("output/{}", depth_last_);
        finding.layer = depth_last_;
        finding.message = base::format(
            "Before the first update values grow {}-fold from {} to {}, over {} layers with weights; the "
            "gradient norm is {} then, that of the weights {}, and {}.",
            human_number(depth_ratio_), depth_first_, depth_last_, depth_layers_, human_number(depth_norm_),
            human_number(depth_weights_), what);
        finding.fix =
            "Put a normalisation (torch.nn.LayerNorm, BatchNorm) into each block, or start smaller: residual "
            "branches with a last layer of zeros, or each scaled by 1 / √(number of blocks); "
            "torch.nn.init.kaiming_normal_ where there is no skip connection. See whether what is computed "
            "between these layers grows by itself, as a state that is multiplied by more than 1 at each "
            "position.";
        finding.evidence.push_back(
            {"growth from the first layer to the last", depth_ratio_, "limit", growth_});
        finding.evidence.push_back({"gradient norm", depth_norm_, "weight norm", depth_weights_});
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }
    void measure_depth(const model::StepView& step) {
        struct Output {
            std::int32_t layer;
            double size;
            std::string module;
        };
        std::vector<Output> outputs;
        double gradients2 = 0, weights2 = 0, largest_input = 0;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const model::Statistics& values = sample.statistics;
            if (info.role == model::Role::kInput)
                largest_input = std::max({largest_input, std::abs(values.min), std::abs(values.max)});
            if (info.role == model::Role::kGradient) gradients2 += values.l2 * values.l2;
            if (info.role == model::Role::kWeight) weights2 += values.l2 * values.l2;
            if (info.role != model::Role::kOutput || !is_weighted(info.module_type) || values.finite() == 0)
                continue;
            outputs.push_back(
                {info.layer, values.l2 / std::sqrt(static_cast<double>(values.finite())), info.module});
        }
        if (outputs.size() < 4 || !(gradients2 > weights2)) return;
        std::stable_sort(outputs.begin(), outputs.end(),
                         [](const Output& a, const Output& b) { return a.layer < b.layer; });
        // A head may be narrow, with small weights: the last three tell it together.
        const auto largest =
            std::max_element(outputs.end() - 3, outputs.end(),
                             [](const Output& a, const Output& b) { return a.size < b.size; });
        const Output& first = outputs.front();
        if (!(first.size > 0) || !(largest->size > growth_ * first.size)) return;
        // Little by little: a branch with an input of its own may be large from its first layer on.
        std::vector<double> sizes;
        for (const Output& output : outputs) sizes.push_back(output.size);
        const double middle = median(std::move(sizes));
        const bool is_gradual = middle >= 2 * first.size && 2 * middle <= largest->size;
        // Nor is any input of the model large: whatever is, became so inside.
        const bool is_made_inside = largest_input > 0 && growth_ * largest_input < largest->size;
        if (!is_gradual && !is_made_inside) return;
        is_made_inside_ = is_made_inside;
        depth_ratio_ = largest->size / first.size;
        depth_first_ = first.module;
        depth_last_ = largest->module;
        depth_layers_ = outputs.size();
        depth_norm_ = std::sqrt(gradients2);
        depth_weights_ = std::sqrt(weights2);
    }

    [[nodiscard]] double update_ratio(const model::StepView& step, double norm) const {
        if (!updates_follow_gradients(*step.meta) || weight_norm_ <= 0) return 0;
        return optimizer_setting(*step.meta, "lr").value_or(0) * norm / weight_norm_;
    }
    // Losses at the same captured steps: is it worse now than it was?
    [[nodiscard]] bool loss_is_worse() const {
        const auto all = losses_.values();
        if (loss_.count() == 0) return true;  // no loss to judge by
        const auto last = all.last(std::min<std::size_t>(all.size(), 3));
        const auto earlier = all.first(all.size() - last.size());
        const double now = median({last.begin(), last.end()});
        const double before = earlier.empty() ? loss_.start() : median({earlier.begin(), earlier.end()});
        return now > before + 0.2 * std::abs(before);
    }
    [[nodiscard]] bool grows() {
        const auto all = norms_.values();
        if (all.size() < 4) return false;
        const auto last = all.last(3);
        const auto earlier = all.first(all.size() - 3);
        usual_ = median({earlier.begin(), earlier.end()});
        if (usual_ <= 0) return false;
        const double least = std::min({last[0], last[1], last[2]});
        const bool persistent = least > growth_ * usual_ && least > weight_norm_;
        const bool runaway = last[0] > 5 * earlier.back() && last[1] > 5 * last[0] && last[2] > 5 * last[1] &&
                             last[2] > growth_ * usual_ && last[2] > weight_norm_;
        return (persistent || runaway) && loss_is_worse();
    }
    [[nodiscard]] bool oversteps() const {
        if (loss_.count() < 5 || loss_.has_learned() || loss_.level() <= loss_.start()) return false;
        const auto last = ratios_.last(5);
        return std::count_if(last.begin(), last.end(), [&](double r) { return r > update_; }) >= 3;
    }

    void fire(const model::StepView& step, const model::TensorInfo& worst, double worst_norm, bool growing,
              FindingSink& sink) {
        const double norm = norms_.values().back();
        const double ratio = ratios_.values().back();
        if (!finding_ || norm > peak_) {
            peak_ = norm;
            finding_.emplace();
            finding_->key = kKey;
            finding_->severity = model::Severity::kError;
            finding_->tensor = worst.name;
            finding_->layer = worst.module;
            if (growing) {
                finding_->message = base::format(
                    "The gradient norm is {} at step {}, {} times its usual {}; the largest part ({}) is {}.",
                    human_number(norm), step.step(), human_number(norm / usual_), human_number(usual_),
                    human_number(worst_norm), place_in_words(worst.name));
                finding_->evidence.push_back({"gradient norm", norm, "usual", usual_});
            } else {
                finding_->message = base::format(
                    "An update of {} times the weights' own size: learning rate {} times gradient norm {} "
                    "against a weight norm of {} at step {}; the largest gradient is that of {}.",
                    human_number(ratio), human_number(optimizer_setting(*step.meta, "lr").value_or(0)),
                    human_number(norm), human_number(weight_norm_), step.step(), place_in_words(worst.name));
                finding_->evidence.push_back({"gradient norm", norm, "weight norm", weight_norm_});
            }
            if (ratio > 0) finding_->evidence.push_back({"update / weight", ratio, "usual", 1e-3});
            finding_->evidence.push_back({"gradient norm at the start", first_norm_, "", 0});
            if (loss_.count() > 0)
                finding_->evidence.push_back({"loss", last_loss_, "at the start", loss_.start()});
            // A loss far above guessing before anything was learned, unless it is summed over the batch.
            const std::optional<double> guess = loss_.label_entropy();
            if (guess && *guess > 0 && loss_.first() > 5 * *guess &&
                std::abs(loss_.first() / std::max(loss_.labels_per_batch(), 1.0) - *guess) > 0.5 * *guess)
                finding_->evidence.push_back({"loss at the start", loss_.first(), "of guessing", *guess});
            finding_->fix = base::format(
                "{}; or clip gradients: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0) before the "
                "optimizer step.",
                capitalised(lower_learning_rate(*step.meta,
                                                ratio > 0.1 ? std::clamp(0.05 / ratio, 0.01, 0.1) : 0.1)));
            summed_.explain(*finding_);
            finding_->plots = {{worst.name, "l2"}};
            if (!loss_.tensor().empty()) finding_->plots.emplace_back(loss_.tensor(), "value");
        }
        sink.fire(*finding_);
    }

    static constexpr const char* kClip = "clip";
    static constexpr double kFarAbove = 5;
    static constexpr std::uint64_t kFewLooks = 3;

    double growth_, update_;
    std::uint64_t judged_ = 0, calm_ = 0;
    InARow clipped_in_vain_{kFewLooks};
    bool tells_clip_ = false;
    double clip_limit_ = 0, unclipped_norm_ = 0, largest_norm_ = 0;
    std::string largest_gradient_, largest_layer_;  // when the norm was largest
    std::uint64_t above_limit_ = 0;                 // looks at which the norm was far above it
    bool firing_ = false;
    double used_times_ = 0;
    std::string used_place_;  // the layer that is used most often in a pass; empty: none is used so often
    std::string time_place_;  // where the gradient grew in time; empty: nowhere
    double time_ratio_ = 0, time_uses_ = 0;
    bool tells_time_ = false;
    int time_looks_ = 0, far_looks_ = 0, long_looks_ = 0;  // from the first step on
    model::StepIndex time_step_ = 0;
    bool is_lost_ = false;
    static constexpr model::StepIndex kSoon = 10;
    std::string depth_first_, depth_last_;  // between which values grow at the first step; empty: nowhere
    double depth_ratio_ = 0, depth_norm_ = 0, depth_weights_ = 0;
    std::size_t depth_layers_ = 0;
    bool is_deep_ = false, tells_deep_ = false, is_made_inside_ = false;
    static constexpr const char* kDepth = "depth";
    static constexpr std::uint64_t kPatience = 20;  // losses
    TrainingLoss loss_;
    SummedLoss summed_;
    LossOfZeros of_zeros_;
    double last_loss_ = 0, weight_norm_ = 0, first_norm_ = 0, first_weights_ = 0, first_ratio_ = 0,
           usual_ = 0, peak_ = 0;
    Recent norms_{18}, losses_{18}, ratios_{18};
    std::optional<model::Finding> finding_;
};

std::vector<model::Requirement> exploding_gradient_needs(const Parameters&) {
    constexpr auto kStatistics = model::What::kStatistics;
    std::vector<model::Requirement> all = loss_requirements(kExplodingGradient.name);
    all.push_back({"gradients",
                   model::Mode::kTrain,
                   kStatistics,
                   {.every = 10, .dense_until = 20},
                   kExplodingGradient.name});
    all.push_back({"weights",
                   model::Mode::kTrain,
                   kStatistics,
                   {.every = 50, .dense_until = 2},
                   kExplodingGradient.name});
    all.push_back({"labels",
                   model::Mode::kTrain,
                   kStatistics,
                   {.every = 50, .dense_until = 10},
                   kExplodingGradient.name});
    // Whether what is not finite came with the data: as long as many uses may be why.
    all.push_back({"inputs",
                   model::Mode::kTrain,
                   kStatistics,
                   {.every = 0, .dense_until = 10},
                   kExplodingGradient.name});
    all.push_back({"outputs",
                   model::Mode::kTrain,
                   kStatistics,
                   {.every = 0, .dense_until = 1},
                   kExplodingGradient.name});
    all.push_back(loop_requirement(kExplodingGradient.name));
    return all;
}

}  // namespace

RuleEntry builtin::exploding_gradient() {
    return {&kExplodingGradient, &exploding_gradient_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<ExplodingGradient>(p);
            }};
}

}  // namespace traindbg::rules
