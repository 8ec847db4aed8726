// Settings of an optimizer that cannot be meant: exchanged betas, a momentum of 1, an epsilon that swallows
// the gradient.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kBadOptimizerSettings = {
    .name = "bad_optimizer_settings",
    .title = "Bad optimizer settings",
    .summary =
        "A momentum of 1 or more, betas in the wrong order, squares that are forgotten at once, an epsilon "
        "larger than the gradients, a dampening that takes the momentum back, or a rate that decays to "
        "nothing.",
    .when =
        "A setting of the optimizer is far from what works: its momentum, betas, alpha, epsilon, lr_decay "
        "or dampening.\n"
        "- When: a momentum of 1 or more is judged at once, all others after `patience` steps.\n"
        "- Momentum (error): SGD's is 1 or more.\n"
        "- Long momentum (warning): SGD's is 0.995 or more, and the learning rate that its steps add up "
        "to, over 1 - momentum, is above 0.5.\n"
        "- Betas (warning): the first beta of Adam or its like is 0.99 or more and above the second.\n"
        "- Long mean (warning): the first beta of Adam or its like is 0.995 or more and not above the "
        "second. A step then follows the mean of 200 gradients and more.\n"
        "- Long mean, when it is judged: from as many steps on as the mean has gradients, until the training "
        "is ten times as long, and at the end of a training of at least a quarter of that many steps.\n"
        "- Long mean, note only (info): the loss has fallen below half of its start, and the training did "
        "not end within twice the length of the mean.\n"
        "- Memory (warning): RMSprop's alpha, or the second beta of Adam or its like, is below 0.5. The "
        "newest gradient then outweighs all earlier ones in the mean of squares.\n"
        "- Epsilon (warning): that of Adam or RMSprop is more than `eps` times the typical √v of the "
        "weight matrices (the root of exp_avg_sq or square_avg), and more than `eps` times the usual 1e-8. "
        "RMSprop's must also be 0.1 or more.\n"
        "- Updates, for epsilon: the typical update (‖Δw‖ / ‖w‖) was never above 1e-3 (with RMSprop's "
        "momentum m: 1e-3 over 1 - m).\n"
        "- Updates, for an epsilon of 0.05 or more, at a look after 200 steps: with Adam up to three times "
        "that limit is allowed, where the loss is above nine tenths of its start or of guessing. Up to ten "
        "times is allowed where it is above 60 % of these and does not fall.\n"
        "- Decay (warning): Adagrad's lr_decay is 0.01 or more, and has divided the learning rate by more "
        "than 20.\n"
        "- Dampening, note only (info): SGD's is 0.5 or more beside a momentum of 0.5 or more.\n"
        "- Dampening (warning), after 200 steps or at the end of the run: the loss is above 60 % of what "
        "guessing gives (of its start, where that is not known) and still falls (Mann-Kendall z < -3 over "
        "its second half). The typical update would be below 0.05 without the dampening.\n"
        "- Dampening of 1 or more (warning): it is enough that the loss is above those 60 %.\n"
        "- Note only (info): a long momentum, a short memory, an epsilon or a decay, where the loss is "
        "below a quarter of its start.\n"
        "- Note only (info): a memory of exactly 0, or a short one where the loss is below 60 % of what "
        "guessing gives (of its start, where that is not known).",
    .why =
        "With a momentum of 1 no step is ever forgotten, and the weights run away. With betas exchanged a "
        "step follows the gradients of a thousand steps ago, scaled by those of the last ten. Where the mean "
        "of squares is little but the last gradient's, each step has one length, whatever the gradient: many "
        "small gradients outvote few large ones. With a large epsilon Adam is plain gradient descent at a "
        "tiny rate. A dampening as large as the momentum makes each step a mean of gradients in place of "
        "their sum: with 0.9 it is a tenth as long.",
    .fix = "Use momentum=0.9, dampening=0, betas=(0.9, 0.999), alpha=0.99, eps=1e-8, lr_decay=0.",
    .healthy =
        "Adam with equal betas or without momentum (a first beta of 0), or with betas of 0, a descent by "
        "signs; an epsilon of 1e-3 whose updates are as usual. Gradients so small that the usual epsilon "
        "swallows them, too: that is no setting, and other rules tell where they are lost. A dampening with "
        "a learning rate that makes up for it.",
    .cost = "Optimizer state at steps 20 and 50; a copy of the weights at few steps; the loss.",
    .original = "",
    .source = "Kingma, Ba, \"Adam: a method for stochastic optimization\", ICLR 2015",
    .severity = model::Severity::kError,
    .parameters = {{"eps", "times", 10, 1, 1e9, "eps over the typical root of the second moment"},
                   {"patience", "steps", 50, 10, 1e9, "steps after which it judges"}},
};

class BadOptimizerSettings final : public Rule {
  public:
    explicit BadOptimizerSettings(const Parameters& parameters)
        : eps_(parameters.at("eps")), patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain || step.meta->optimizers.empty()) return;
        ++judged_;
        loss_.observe(step);
        updates_.observe(step);
        look_at_moments(step);
        judge_momentum(step, sink);
        if (loss_.count() < patience_) return;
        judge_long_momentum(step, sink);
        judge_betas(step, sink);
        judge_long_mean(step, sink);
        judge_memory(step, sink);
        judge_eps(step, sink);
        judge_decay(step, sink);
        dampening_ = optimizer_setting(*step.meta, "dampening").value_or(0);
        momentum_ = optimizer_setting(*step.meta, "momentum").value_or(0);
        rate_ = optimizer_setting(*step.meta, "lr").value_or(0);
        // Now and then: of a hundred looks at noise one shows a trend.
        if (loss_.count() >= kLearned && loss_.count() % kLooks == 0) judge_dampening(sink);
    }
    void on_end(FindingSink& sink) override {
        if (loss_.count() < patience_) return;
        judge_dampening(sink);
        if (long_mean_) fire_long_mean(true, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "no optimizer was described"; }

  private:
    // It divides by the root of a mean of squared gradients, to which eps is added.
    [[nodiscard]] static bool divides_by_root(const model::WorkerMeta& meta) {
        const std::string& type = meta.optimizers.front().type;
        return (type.find("Adam") != std::string::npos && type != "Adamax") || type == "RMSprop";
    }

    void look_at_moments(const model::StepView& step) {
        std::vector<double> roots, of_tables;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kOptimizerState || !(sample.statistics.mean > 0)) continue;
            if (!info.name.ends_with(".exp_avg_sq") && !info.name.ends_with(".square_avg")) continue;
            if (is_matrix(info)) roots.push_back(std::sqrt(sample.statistics.mean));
            else if (is_small_table(info)) of_tables.push_back(std::sqrt(sample.statistics.mean));
        }
        if (roots.empty()) roots = std::move(of_tables);
        if (!roots.empty()) root_ = median(std::move(roots));
    }

    void judge_momentum(const model::StepView& step, FindingSink& sink) const {
        const std::optional<double> momentum = optimizer_setting(*step.meta, "momentum");
        if (!momentum || *momentum < 1) return;
        model::Finding finding;
        finding.key = "momentum";
        finding.severity = model::Severity::kError;
        finding.first_step = 0;
        finding.message =
            base::format("{} has a momentum of {}: no step is ever forgotten, and the weights run away.",
                         step.meta->optimizers.front().type, human_number(*momentum));
        finding.fix = "Use a momentum of 0.9.";
        finding.evidence.push_back({"momentum", *momentum, "usual", 0.9});
        sink.fire(std::move(finding));
    }

    // Under `key`, or as a note under another one.
    void fire(model::Finding finding, const std::string& key, bool is_alarm, FindingSink& sink) {
        sink.clear(is_alarm ? key + "_note" : key);
        finding.key = is_alarm ? key : key + "_note";
        finding.severity = is_alarm ? model::Severity::kWarning : model::Severity::kInfo;
        finding.first_step = 0;
        if (loss_.count() > 0) {
            finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
            finding.plots.emplace_back(loss_.tensor(), "value");
        }
        sink.fire(std::move(finding));
    }

    void judge_long_momentum(const model::StepView& step, FindingSink& sink) {
        const std::optional<double> momentum = optimizer_setting(*step.meta, "momentum");
        const std::optional<double> rate = optimizer_setting(*step.meta, "lr");
        if (!momentum || !rate || !updates_follow_gradients(*step.meta)) return;
        if (*momentum < 0.995 || *momentum >= 1 || *rate < 0.5 * (1 - *momentum)) return;
        const double adds_up = *rate / (1 - *momentum);
        model::Finding finding;
        finding.message = base::format(
            "{} has a momentum of {}: each gradient counts in the next {} steps, which adds up to a learning "
            "rate of {}, and what was learned is thrown over again and again.",
            step.meta->optimizers.front().type, human_number(*momentum), human_number(1 / (1 - *momentum)),
            human_number(adds_up));
        finding.fix = "Use a momentum of 0.9.";
        finding.evidence.push_back({"momentum", *momentum, "usual", 0.9});
        finding.evidence.push_back({"learning rate that steps add up to", adds_up, "limit", 0.5});
        fire(std::move(finding), "long_momentum", !has_come_far(), sink);
    }
    // Deep networks get on with poor settings, too, only not far.
    [[nodiscard]] bool has_come_far() const {
        return loss_.has_learned_much() && loss_.level() < 0.25 * loss_.start();
    }
    void judge_betas(const model::StepView& step, FindingSink& sink) {
        const std::optional<double> first = optimizer_setting(*step.meta, "beta1");
        const std::optional<double> second = optimizer_setting(*step.meta, "beta2");
        if (!first || !second || *first < 0.99 || *first <= *second) return;
        model::Finding finding;
        finding.message = base::format(
            "{} has betas ({:g}, {:g}): the first is above the second, as if they were exchanged.",
            step.meta->optimizers.front().type, *first, *second);
        finding.fix = "Use betas=(0.9, 0.999).";
        finding.evidence.push_back({"first beta", *first, "second", *second});
        // No recipe has them like this: it is said also of a training that gets on in spite of it.
        fire(std::move(finding), "betas", true, sink);
    }
    // A mean that reaches over the whole training follows gradients of weights that are long gone. In a very
    // long one it may be meant: recipes that hold it constant in samples have such betas for small batches.
    // And a smooth problem is learned with it all the same.
    void judge_long_mean(const model::StepView& step, FindingSink& sink) {
        const std::optional<double> first = optimizer_setting(*step.meta, "beta1");
        const std::optional<double> second = optimizer_setting(*step.meta, "beta2");
        long_mean_.reset();
        if (!first || *first < kLongBeta || *first >= 1 || !divides_by_root(*step.meta)) return;
        if (second && *first > *second) return;  // as if they were exchanged
        const double reach = 1 / (1 - *first);
        if (static_cast<double>(loss_.count()) >= kManyTimes * reach) {
            sink.clear(kLongMean);
            sink.clear(base::format("{}_note", kLongMean));
            return;
        }
        long_mean_ = LongMean{step.meta->optimizers.front().type, *first};
        if (static_cast<double>(loss_.count()) >= reach) fire_long_mean(false, sink);
    }
    void fire_long_mean(bool is_over, FindingSink& sink) {
        const double reach = 1 / (1 - long_mean_->beta);
        const auto steps = static_cast<double>(loss_.count());
        if (is_over && steps < kFewestOfMean * reach) return;  // a trial, which tells nothing
        const bool is_whole = is_over && steps < kTwice * reach;
        model::Finding finding;
        finding.message = base::format(
            "{} has a first beta of {:g}: each step follows the mean of about {} gradients, most of which "
            "are of weights that are long gone, and the training has had {} steps.",
            long_mean_->type, long_mean_->beta, human_number(std::round(reach)), loss_.count());
        finding.fix =
            "Use betas=(0.9, 0.999). Betas that a recipe scales to the batch size are for trainings "
            "of many times as many steps as they reach over.";
        finding.evidence.push_back({"first beta", long_mean_->beta, "usual", 0.9});
        finding.evidence.push_back({"gradients that a step follows", reach, "steps until now", steps});
        fire(std::move(finding), kLongMean, is_whole || loss_.level() > kHalf * loss_.start(), sink);
    }

    // What is the share of the old value here is that of the new one in other people's moving averages.
    void judge_memory(const model::StepView& step, FindingSink& sink) {
        const bool is_rmsprop = step.meta->optimizers.front().type == "RMSprop";
        const std::optional<double> kept = optimizer_setting(*step.meta, is_rmsprop ? "alpha" : "beta2");
        if (!kept || !divides_by_root(*step.meta) || *kept >= 0.5) return;
        const std::string_view name = is_rmsprop ? "alpha" : "second beta";
        model::Finding finding;
        finding.message = base::format(
            "{} has {} {} of {}: {} its mean of squared gradients is the last gradient's, and each step has "
            "about the same length, whatever the gradient.",
            step.meta->optimizers.front().type, is_rmsprop ? "an" : "a", name, human_number(*kept),
            *kept > 0 ? human_number(1 - *kept) + " of" : std::string("all of"));
        finding.fix = base::format("Raise {} from {} to {}: it is the share of the old value that is kept.",
                                   is_rmsprop ? name : "the second beta", human_number(*kept),
                                   is_rmsprop ? "0.99" : "0.999");
        finding.evidence.push_back({std::string(name), *kept, "usual", is_rmsprop ? 0.99 : 0.999});
        // Nobody gets an exact 0 by exchanging 0.999 for 0.001: it is a descent by signs, and meant.
        fire(std::move(finding), "memory", *kept > 0 && !has_come_far() && !loss_.has_learned_much(), sink);
    }

    void judge_eps(const model::StepView& step, FindingSink& sink) {
        const std::optional<double> eps = optimizer_setting(*step.meta, "eps");
        if (!eps || !divides_by_root(*step.meta) || !(root_ > 0) || updates_.count() == 0) return;
        // Momentum adds up steps.
        const double momentum = optimizer_setting(*step.meta, "momentum").value_or(0);
        const double usual = 1e-3 / (1 - std::clamp(momentum, 0.0, 0.99));
        const double typical = updates_.count() > 1 ? updates_.worst().typical : updates_.highest();
        // Where the training is stuck, steps of the usual size are none of what was asked for.
        if (loss_.count() >= kLearned && loss_.count() % kLooks == 0) look_whether_stuck(*step.meta);
        const double limit = *eps < kLargeEps || loss_.is_game() ? usual : times_usual_ * usual;
        // Where the usual epsilon would swallow the gradients as well, they are at fault, and not it.
        if (*eps <= eps_ * std::max(root_, kUsualEps) || typical > limit) {
            if (std::exchange(is_eps_told_, false)) sink.clear("eps");
            return;
        }
        // Recipes of reinforcement learning have 0.01 on purpose.
        if (step.meta->optimizers.front().type == "RMSprop" && *eps < 0.1) return;
        model::Finding finding;
        finding.message = base::format(
            "{} has an eps of {}, {} times the typical root of its second moment ({}): it divides by eps, "
            "and a typical update is at most {} times the weights' own size{}.",
            step.meta->optimizers.front().type, human_number(*eps), human_number(*eps / root_),
            human_number(root_), human_number(typical),
            typical > usual
                ? base::format("; the loss is {} after {} steps, {} at the start",
                               human_number(loss_.level()), loss_.count(), human_number(loss_.start()))
                : std::string());
        finding.fix = base::format("Lower eps from {} to 1e-8.", human_number(*eps));
        finding.evidence.push_back({"eps", *eps, "root of the second moment", root_});
        finding.evidence.push_back({"update / weight", typical, "limit", limit});
        is_eps_told_ = !has_come_far();
        fire(std::move(finding), "eps", is_eps_told_, sink);
    }

    // How much larger than usual updates may be that are told all the same, since nothing is learned by them.
    void look_whether_stuck(const model::WorkerMeta& meta) {
        const auto means = loss_.blocks().means();
        const double trend = trend_z(means.last(means.size() / 2));
        const bool is_still = !loss_.has_learned_much() && trend > (times_usual_ > kSlow ? -3.0 : -1.0);
        // Recipes with RMSprop have an epsilon of 1 and a rate to match, and begin slowly.
        const bool is_slow = !loss_.has_learned() && meta.optimizers.front().type != "RMSprop";
        times_usual_ = is_still ? kStill : is_slow ? kSlow : 1;
    }

    // Adagrad divides its rate by 1 + lr_decay * steps, beside what it accumulates.
    void judge_decay(const model::StepView& step, FindingSink& sink) {
        const std::optional<double> decay = optimizer_setting(*step.meta, "lr_decay");
        const double divisor = 1 + decay.value_or(0) * static_cast<double>(loss_.count());
        if (!decay || *decay < 0.01 || divisor < 20) return;
        model::Finding finding;
        finding.message = base::format(
            "{} has an lr_decay of {}: after {} steps its learning rate is divided by {}, beside what it "
            "divides by for the sum of squared gradients.",
            step.meta->optimizers.front().type, human_number(*decay), loss_.count(), human_number(divisor));
        finding.fix = base::format("Lower lr_decay from {} to 0, its default.", human_number(*decay));
        finding.evidence.push_back({"learning rate is divided by", divisor, "limit", 20});
        fire(std::move(finding), "lr_decay", !has_come_far(), sink);
    }

    // Steps are a mean of gradients where momentum alone makes a sum of them.
    void judge_dampening(FindingSink& sink) {
        if (dampening_ < 0.5 || momentum_ < 0.5 || momentum_ >= 1) return;
        const double left = 1 - dampening_;
        const bool is_nothing = left <= 0;  // but for the first step
        const double typical = updates_.count() > 1 ? updates_.worst().typical : updates_.highest();
        // Whoever chose the rate for it has steps as long as anybody's.
        const bool is_short = typical > 0 && typical < kLongUpdate * left;
        // More steps of the kind help: it still falls, in the second half as well.
        const auto means = loss_.blocks().means();
        const double trend = trend_z(means.last(means.size() / 2));
        is_slow_ = !loss_.is_game() && !loss_.has_learned_much() && trend < (is_slow_ ? -1 : -3);
        const bool is_alarm = is_nothing ? !loss_.has_learned_much() : is_short && is_slow_;
        model::Finding finding;
        finding.message = base::format(
            "SGD has a dampening of {} beside a momentum of {}: only {} of each gradient is added, so that "
            "steps are as long as with a learning rate of {} and no momentum; a typical update was at most "
            "{} times the weights' own size.",
            human_number(dampening_), human_number(momentum_), human_number(left),
            human_number(rate_ * left / (1 - momentum_)), human_number(typical));
        finding.fix =
            is_nothing ? std::string("Leave dampening at 0, its default.")
                       : base::format(
                             "Leave dampening at 0, its default, or raise the learning rate from {} to about "
                             "{}.",
                             human_number(rate_), human_number(round_for_people(rate_ / left)));
        finding.evidence.push_back({"dampening", dampening_, "usual", 0});
        finding.evidence.push_back({"update / weight", typical, "limit", kLongUpdate * left});
        fire(std::move(finding), "dampening", is_alarm, sink);
    }

    struct LongMean {
        std::string type;
        double beta = 0;
    };
    static constexpr double kLongBeta = 0.995, kManyTimes = 10, kTwice = 2, kFewestOfMean = 0.25;
    static constexpr double kHalf = 0.5;  // of the loss at the start
    static constexpr const char* kLongMean = "long_mean";
    static constexpr std::uint64_t kLearned = 200;  // steps by which something is
    static constexpr std::uint64_t kLooks = 100;    // steps from one to the next
    static constexpr double kLongUpdate = 0.05;     // beside the weights, from which on steps are too long
    static constexpr double kUsualEps = 1e-8, kLargeEps = 0.05;
    static constexpr double kSlow = 3, kStill = 10;
    double eps_;
    std::uint64_t patience_;
    std::uint64_t judged_ = 0;
    double root_ = 0;
    double dampening_ = 0, momentum_ = 0, rate_ = 0;
    bool is_eps_told_ = false;
    double times_usual_ = 1;
    bool is_slow_ = false;
    std::optional<LongMean> long_mean_;
    WeightUpdates updates_;
    TrainingLoss loss_;
};

std::vector<model::Requirement> bad_optimizer_settings_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kBadOptimizerSettings.name);
    all.push_back(update_requirement(kBadOptimizerSettings.name));
    all.push_back({"optimizer_state",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 0},
                   kBadOptimizerSettings.name,
                   {20, 50}});
    return all;
}

}  // namespace

RuleEntry builtin::bad_optimizer_settings() {
    return {&kBadOptimizerSettings, &bad_optimizer_settings_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<BadOptimizerSettings>(p);
            }};
}

}  // namespace traindbg::rules
