// Clipping that leaves next to nothing of every gradient, so that the weights do not move.

#include <algorithm>
#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/summed_loss.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

// Of the weights' own size: by less no loss falls, but for one that says little of what is learned.
constexpr double kLeastWay = 0.01;

const model::RuleInfo kGradientClippedToNothing = {
    .name = "gradient_clipped_to_nothing",
    .title = "Gradient clipped to nothing",
    .summary =
        "Clipping leaves less than a hundredth of the gradient at every step, and the weights stand still.",
    .when =
        "Clipping leaves less than `share` of the gradient at every step, so that the weights hardly move. "
        "Or its limit shrinks until they stop.\n"
        "- Clipped by norm (warning): at all steps looked at, three or more, the norm of all gradients as "
        "the optimizer uses them is less than `share` of what backward left, unscaled.\n"
        "- Small updates: no update of a weight matrix (‖Δw‖ / ‖w‖) was ever above `update`. With "
        "momentum, in a training that has not learned, the limit is ten times `update`.\n"
        "- Judged after `patience` steps or at the end of the run. A note (info) if the training has "
        "learned: the loss has fallen, and the updates may add up to a hundredth of the weights.\n"
        "- Clipped by value, where the clipping itself is not seen (a hook of a parameter): in all "
        "matrices, the smallest and largest value of the gradient are minus and plus one number.\n"
        "- That number must be the same at all looks, and most values must be that far from 0. No update "
        "may ever have been above `update`. Warning, or a note (info) if the training has learned.\n"
        "- Shrinking limit (warning): at two looks or more, over the second half of the training and more, "
        "or at three over the last two fifths, the norm is less than `share` of what backward left and of "
        "what clipping left before.\n"
        "- The shrinking limit also needs that no update of a matrix is above `stopped` times the largest "
        "of this training, at a learning rate of a tenth of its peak or more.",
    .why =
        "Clipping is for the odd step that would do damage. Where it cuts every one, it is the clipping that "
        "sets the length of each step, and one a hundredth as long takes a hundred times the steps.",
    .fix =
        "Raise the limit to what gradients usually are (often 1), or clip no more. Of a loss that is a sum "
        "over the batch, take the mean.",
    .healthy =
        "Clipping that cuts spikes only; large gradients of a loss that is summed, whose rest is as usual; "
        "Adam and its like, which do not depend on the gradient's size: their updates are not small.",
    .cost =
        "A copy of the gradients and one of the weights at the first three steps, a few more below 100, and "
        "then every 100th.",
    .original = "",
    .source =
        "Pascanu, Mikolov, Bengio, \"On the difficulty of training recurrent neural networks\", ICML 2013",
    .severity = model::Severity::kWarning,
    .parameters = {{"share", "share", 0.01, 1e-9, 1, "norm after clipping over the norm before"},
                   {"update", "ratio", 1e-3, 1e-12, 1, "largest update of any matrix beside the matrix"},
                   {"stopped", "share", 1e-3, 1e-12, 1, "updates beside the largest, where a limit shrinks"},
                   {"patience", "steps", 50, 10, 1e9, "steps after which it judges"}},
};

class GradientClippedToNothing final : public Rule {
  public:
    explicit GradientClippedToNothing(const Parameters& parameters)
        : share_(parameters.at("share")),
          update_(parameters.at("update")),
          stopped_(parameters.at("stopped")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        rates_.observe(step);
        if (updates_.observe(step)) look_at_stop();
        summed_.observe(step);
        if (clipping_.observe(step)) {
            ++judged_;
            look_at_shrinking(step);
            if (clipping_.share() < share_) {
                if (clipped_++ == 0) first_ = step.step();
            }
        }
        has_momentum_ = updates_follow_gradients(*step.meta) &&
                        optimizer_setting(*step.meta, "momentum").value_or(0) >= 0.5;
        look_at_limits(step);
        loss_.observe(step);
        last_ = step.step();
        if (loss_.count() >= patience_) judge(sink);
    }
    void on_end(FindingSink& sink) override {
        if (loss_.count() >= 20 && loss_.count() < patience_) judge(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return std::max(judged_, looks_); }
    [[nodiscard]] std::string why_not_judged() const override { return "no finite gradients were captured"; }

  private:
    // A limit that shrinks, as where it is annealed with each batch, ends what has been learned well so far:
    // its updates are a matter of the limit alone.
    void look_at_shrinking(const model::StepView& step) {
        most_left_ = std::max(most_left_, clipping_.after());
        if (clipping_.share() >= share_ || clipping_.after() > share_ * most_left_) {
            stop_looks_ = 0;
        } else if (stop_looks_++ == 0) {
            stop_first_ = step.step();
            stop_before_ = clipping_.before();
        }
    }
    void look_at_stop() {
        if (updates_.last().largest > stopped_ * updates_.highest()) stop_looks_ = 0;
    }
    [[nodiscard]] bool has_stopped() const {
        // Looks are far apart: where many show it, it began well before the first of them.
        const bool is_long = 2 * stop_first_ <= last_ ||
                             (stop_looks_ >= kManyLooks && static_cast<double>(last_ - stop_first_) >=
                                                               kLongStop * static_cast<double>(last_));
        return stop_looks_ >= 2 && is_long && rates_.now() >= 0.1 * rates_.peak();
    }

    // Whether the gradients look as if each value had been cut at one limit.
    void look_at_limits(const model::StepView& step) {
        double limit = 0, square = 0, values = 0;
        std::size_t matrices = 0;
        bool is_cut = true;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const model::Statistics& s = sample.statistics;
            if (info.role != model::Role::kGradient || !is_matrix(info) || s.not_finite() > 0) continue;
            ++matrices;
            if (limit == 0) limit = s.max;
            is_cut =
                is_cut && std::abs(s.max - limit) <= 1e-5 * limit && std::abs(s.min + limit) <= 1e-5 * limit;
            square += s.l2 * s.l2;
            values += static_cast<double>(s.count);
        }
        if (matrices == 0) return;
        ++looks_;
        const bool is_most = values > 0 && std::sqrt(square / values) > 0.7 * limit;
        const bool is_same = limit_ == 0 || std::abs(limit - limit_) <= 1e-5 * limit_;
        if (matrices < 2 || !(limit > 0) || !is_cut || !is_most || !is_same) return;
        limit_ = limit;
        if (cut_++ == 0 && clipped_ == 0) first_ = step.step();
    }

    // Whether the weights can have come so far by now that it is they who lowered the loss.
    [[nodiscard]] bool has_moved() const {
        return updates_.highest() * static_cast<double>(last_ + 1) > kLeastWay;
    }

    void judge(FindingSink& sink) {
        const bool is_seen =
            clipping_.count() >= 3 && clipped_ == clipping_.count() && clipping_.highest() < share_;
        by_value_ = !is_seen && looks_ >= 3 && cut_ == looks_;
        // A momentum adds up steps that all are of one length.
        const bool has_learned = loss_.has_learned() && has_moved();
        const double most = is_seen && has_momentum_ && !has_learned ? 10 * update_ : update_;
        const bool nothing = (is_seen || by_value_) && updates_.count() > 0 && updates_.highest() <= most;
        const char* found = !nothing      ? has_stopped() ? kShrinks : nullptr
                            : has_learned ? "clip_note"
                                          : "clip";
        if (found != firing_) {
            if (firing_ != nullptr) sink.clear(firing_);
            firing_ = found;
        }
        if (firing_ != nullptr) fire(sink);
    }

    void fire(FindingSink& sink) const {
        model::Finding finding;
        finding.key = firing_;
        finding.severity =
            std::string_view(firing_) == "clip_note" ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = first_;
        if (firing_ == kShrinks) return fire_shrinks(std::move(finding), sink);
        if (by_value_) return fire_by_value(std::move(finding), sink);
        finding.tensor = "gradient_before/total_norm";
        finding.message = base::format(
            "Clipping leaves {} of a gradient norm of {} at all {} steps looked at (at most {:.2g} of it), "
            "and no update is above {} times the weights' own size; the loss is {}, {} at the start.",
            human_number(clipping_.after()), human_number(clipping_.before()), clipping_.count(),
            clipping_.highest(), human_number(updates_.highest()), human_number(loss_.level()),
            human_number(loss_.start()));
        finding.fix = base::format(
            "Raise the limit of clip_grad_norm_ (or clip_grad_value_) to about {}: the norm that backward "
            "leaves is {}.",
            human_number(round_for_people(clipping_.before())), human_number(clipping_.before()));
        finding.evidence.push_back(
            {"gradient norm", clipping_.after(), "before clipping", clipping_.before()});
        finding.evidence.push_back({"update / weight", updates_.highest(), "usual", 1e-3});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        summed_.explain_clipping(finding, clipping_.highest());
        finding.plots = {{"gradient_before/total_norm", "value"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
    }

    void fire_shrinks(model::Finding finding, FindingSink& sink) const {
        finding.first_step = stop_first_;
        finding.tensor = "gradient_before/total_norm";
        finding.message = base::format(
            "Clipping leaves ever less: {} of a gradient norm of {} by now, less than {} of it since step "
            "{}, and updates have come down from {} to {} times the weights' own size, at an unchanged "
            "learning rate. The training stands still, with a loss of {}.",
            human_number(clipping_.after()), human_number(clipping_.before()), human_number(share_),
            stop_first_, human_number(updates_.highest()), human_number(updates_.last().largest),
            human_number(loss_.level()));
        finding.fix = base::format(
            "See where the limit of clipping is lowered, with each step in place of each epoch perhaps; keep "
            "it at about {}, the norm that gradients had at step {}.",
            human_number(round_for_people(stop_before_)), stop_first_);
        finding.evidence.push_back(
            {"gradient norm", clipping_.after(), "before clipping", clipping_.before()});
        finding.evidence.push_back(
            {"update / weight", updates_.last().largest, "largest before", updates_.highest()});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.plots = {{"gradient_before/total_norm", "value"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
    }

    void fire_by_value(model::Finding finding, FindingSink& sink) const {
        finding.message = base::format(
            "Most values of all gradients are exactly {} or minus that, at all {} steps looked at: they are "
            "cut there, and no update is above {} times the weights' own size; the loss is {}, {} at the "
            "start.",
            human_number(limit_), looks_, human_number(updates_.highest()), human_number(loss_.level()),
            human_number(loss_.start()));
        finding.fix =
            base::format("Raise the limit of {} to about 1, or clip no more.", human_number(limit_));
        finding.evidence.push_back({"largest value of a gradient", limit_, "", 0});
        finding.evidence.push_back({"update / weight", updates_.highest(), "usual", 1e-3});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr const char* kShrinks = "shrinks";
    static constexpr std::uint64_t kManyLooks = 3;
    static constexpr double kLongStop = 0.4;  // of the training, where many looks show it
    double share_, update_, stopped_;
    std::uint64_t stop_looks_ = 0;  // in a row, at which clipping leaves nothing that moves a weight
    model::StepIndex stop_first_ = 0;
    double stop_before_ = 0, most_left_ = 0;
    LearningRates rates_;
    bool has_momentum_ = false;
    std::uint64_t patience_;
    std::uint64_t judged_ = 0, clipped_ = 0, looks_ = 0, cut_ = 0;
    double limit_ = 0;
    bool by_value_ = false;
    model::StepIndex first_ = 0, last_ = 0;
    const char* firing_ = nullptr;
    Clipping clipping_;
    WeightUpdates updates_;
    SummedLoss summed_;
    TrainingLoss loss_;
};

std::vector<model::Requirement> gradient_clipped_to_nothing_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kGradientClippedToNothing.name);
    model::Requirement unclipped = unclipped_requirement(kGradientClippedToNothing.name);
    all.push_back(unclipped);
    unclipped.collection = "gradients";
    all.push_back(std::move(unclipped));
    all.push_back(update_requirement(kGradientClippedToNothing.name));
    all.push_back(rate_requirement(kGradientClippedToNothing.name));
    all.push_back(loop_requirement(kGradientClippedToNothing.name));
    return all;
}

}  // namespace

RuleEntry builtin::gradient_clipped_to_nothing() {
    return {&kGradientClippedToNothing, &gradient_clipped_to_nothing_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<GradientClippedToNothing>(p);
            }};
}

}  // namespace traindbg::rules
