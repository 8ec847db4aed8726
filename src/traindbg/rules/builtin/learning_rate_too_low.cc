// Updates so small that the training hardly moves, by its learning rate.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/evaluation_loss.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kLearningRateTooLow = {
    .name = "learning_rate_too_low",
    .title = "Learning rate too low",
    .summary = "The learning rate is 0, or so low that the weights hardly move and the loss hardly falls.",
    .when =
        "The learning rate is 0, or so low that the weights hardly move and the loss hardly falls.\n"
        "- Zero (error): the learning rate was 0 at each of the first `zero_steps` steps.\n"
        "- Low (warning): judged after `patience` steps, each time that updates are looked at. No update "
        "of a weight matrix (‖Δw‖ / ‖w‖) was ever above `update`, and the loss has come down by less than "
        "a quarter. One of these holds, too: guessing is known, the loss still falls, or no update was "
        "above 0.03 times `update`.\n"
        "- Low, still falling (warning): no update was above five times `update`, and the loss has come "
        "down by less than a tenth and still falls (Mann-Kendall z < -3, over all steps where a schedule "
        "lowers the rate), or guessing is known and no update was above twice `update`.\n"
        "- These two cases need a loss that is not well below guessing: the entropy of the labels, or for "
        "a regression their variance. The rate that would make usual updates (1e-3) must be one that "
        "people use.\n"
        "- Weights drawn at random (warning): the rate is lower than people use for such (5e-3 of SGD, "
        "5e-5 of Adam and its like). No update above five times `update` and a loss that has changed by "
        "less than a twentieth are enough, whoever computes the loss.\n"
        "- At the end of the run (warning): one optimizer, Adam or its like, at no more than 5e-5 with "
        "weights drawn at random, after 200 steps or more, and no update above ten times `update`.\n"
        "- That case also needs the loss of a classification that has come down by less than a quarter, is "
        "above 60 % of guessing, and still fell over the last third (z < -3).\n"
        "- Not judged: while the rate rises (it is judged when the training is over), and where clipping "
        "or weights in 16 bits make the updates small.\n"
        "- No training loss is seen, as inside of torch.func (warning): three evaluations or more tell. "
        "The last loss is above 95 % of guessing and within 5 % of the first, and no update was above five "
        "times `update`.\n"
        "- Warm-up that never ended (warning): at the end of 200 steps or more, the rate rose to the end, "
        "but only to less than a tenth of what the schedule multiplies.\n"
        "- The warm-up case also needs a loss above 30 % of guessing (of its start, where guessing is not "
        "known) that still falls (Mann-Kendall z < -2.5 over the last third).",
    .why =
        "A training that moves a thousandth as far as it could at each step takes a thousand times longer.",
    .fix = "Raise the learning rate until updates are about a thousandth of the weights; check the schedule.",
    .healthy =
        "Fine-tuning that is at a good level already; warm-up; a schedule that decays at its end; a gradient "
        "that vanishes, with a learning rate that is as usual; frozen layers.",
    .cost =
        "A copy of the weights at the first three steps, a few more below 100, and then every 100th; the "
        "loss and the learning rate.",
    .original = "WeightUpdateRatio",
    .source = "Ben Braiek, Khomh, \"Testing feedforward neural networks training programs\", TOSEM 32 (2023)",
    .severity = model::Severity::kError,
    .parameters = {{"update", "ratio", 1e-4, 1e-12, 1, "largest update of any matrix beside the matrix"},
                   {"patience", "steps", 70, 20, 1e9, "steps after which it judges"},
                   {"zero_steps", "steps", 20, 3, 1e9, "steps with a learning rate of 0"}},
};

class LearningRateTooLow final : public Rule {
  public:
    explicit LearningRateTooLow(const Parameters& parameters)
        : update_(parameters.at("update")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))),
          zero_steps_(static_cast<std::uint64_t>(parameters.at("zero_steps"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        const bool is_evaluated = evaluation_.observe(step);
        if (step.mode() != model::Mode::kTrain) return;
        rates_.observe(step);
        clipping_.observe(step);
        const bool looked = updates_.observe(step);
        if (const std::optional<LoopFact> fact = loop_fact(step, "trained_are_fresh"))
            fresh_ = fact->value > 0;
        const bool has_loss = loss_.observe(step);
        guessing_.observe(step);
        judge_zero(step, sink);
        if (!has_loss && loss_.count() > 0) return;
        last_ = step.step();
        rate_setting_ = *step.meta;
        if (!has_loss) {
            if (is_evaluated) judge_unseen(sink);
            return;
        }
        if (updates_.count() < 3) return;
        ++judged_;
        if (loss_.count() < patience_ || (!looked && loss_.count() != patience_ && !firing_)) return;
        judge_low(sink);
    }
    void on_end(FindingSink& sink) override {
        evaluation_.end();
        judge_unseen(sink);
        // A short training is judged when it is over.
        const bool is_short = loss_.count() >= 30 && loss_.count() < patience_;
        // It is over, and the rate was rising to its end.
        is_over_ = loss_.count() >= patience_ && rates_.is_warming_up(last_);
        if (updates_.count() >= 3 && (is_short || is_over_)) judge_low(sink);
        if (firing_ || judge_warm_up(sink)) return;
        if (is_slow_to_the_end()) fire_slow(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return loss_.count() == 0 ? "no training loss was seen, nor three evaluations of a classification"
                                  : "updates of fewer than three steps were seen";
    }

  private:
    void judge_zero(const model::StepView& step, FindingSink& sink) {
        if (!rates_.is_known() || rates_.peak() != 0) {
            if (zero_fires_) sink.clear("zero");
            zero_fires_ = false;
            return;
        }
        if (++zeros_ < zero_steps_) return;
        zero_fires_ = true;
        model::Finding finding;
        finding.key = "zero";
        finding.severity = model::Severity::kError;
        finding.first_step = 0;
        finding.tensor = "loop/learning_rate";
        finding.message = base::format(
            "The learning rate is 0, and was at all of the {} steps up to step {}: no weight has moved.",
            zeros_, step.step());
        finding.fix =
            "Give the optimizer a learning rate above 0, or check the schedule: what it multiplies the rate "
            "with is 0.";
        finding.evidence.push_back({"learning rate", 0, "steps", static_cast<double>(zeros_)});
        finding.plots = {{"loop/learning_rate", "value"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
    }

    // Updates are small, and by the rate.
    [[nodiscard]] bool are_small() {
        if (loss_.is_game() || !rates_.is_known() || !(rates_.peak() > 0)) return false;
        if (rates_.is_warming_up(last_) && !is_over_) return false;
        const double ratio = updates_.highest();
        if (!(ratio > 0) || ratio > 5 * update_) return false;
        if (updates_.are_rounded()) return false;
        if (clipping_.count() > 0 && clipping_.highest() < 0.1) return false;
        // What would make usual updates. Beyond what anybody uses the gradient is at fault, not the rate.
        wanted_ = rates_.peak() * 1e-3 / ratio;
        return wanted_ <= highest_usual_rate();
    }
    [[nodiscard]] double highest_usual_rate() const {
        return updates_follow_gradients(rate_setting_) ? 2 : 0.05;
    }
    // For weights that were drawn at random. With one that people use it may be a plateau.
    [[nodiscard]] double lowest_usual_rate() const {
        return updates_follow_gradients(rate_setting_) ? 5e-3 : 5e-5;
    }
    // Weights that were drawn at random, at a rate for others, and a loss that came down all the time, but
    // not far. Of steps that do not grow with the gradient alone: those of SGD grow with a loss that is
    // summed.
    [[nodiscard]] bool is_slow_to_the_end() const {
        static constexpr std::array<std::string_view, 6> kAdams = {"Adam",   "AdamW", "NAdam",
                                                                   "Adamax", "RAdam", "RMSprop"};
        const auto& optimizers = rate_setting_.optimizers;
        if (!fresh_ || optimizers.size() != 1 ||
            std::find(kAdams.begin(), kAdams.end(), optimizers.front().type) == kAdams.end())
            return false;
        if (loss_.is_game() || !rates_.is_known() || !(rates_.peak() > 0) || updates_.count() < 3)
            return false;
        if (rates_.peak() > lowest_usual_rate() || !(updates_.highest() < 10 * update_)) return false;
        if (rates_.is_warming_up(last_) || updates_.are_rounded()) return false;
        if (clipping_.count() > 0 && clipping_.highest() < 0.1) return false;
        const std::optional<double> base = loss_.base_rate();
        const double start = loss_.start();
        if (!loss_.is_known_function() || !base || loss_.level() < 0.6 * *base) return false;
        if (!(start > 0) || start - loss_.level() > 0.25 * start || loss_.count() < kFewestSlow) return false;
        const auto means = loss_.blocks().means();
        return trend_z(means.last(means.size() / 3)) < -3;
    }
    [[nodiscard]] bool is_low() {
        if (!are_small()) return false;
        const double ratio = updates_.highest();
        // Weights that were drawn at random and hardly moved are no fine-tuning, and good by chance only.
        const double start = loss_.start();
        if (fresh_ && rates_.peak() < lowest_usual_rate() && start > 0) {
            // The start is one of few noisy losses. Once told, a lucky batch does not take it back.
            const double hardly = firing_ ? 0.25 : std::max(kHardly, 2 * loss_.noise() / start);
            if (std::abs(start - loss_.level()) < hardly * start) return true;
        }
        if (!loss_.is_known_function()) return false;
        const std::optional<double> base = loss_.base_rate();
        if (base && loss_.level() < 0.6 * *base) return false;
        if (!(start > 0)) return false;
        const double gain = (start - loss_.level()) / start;
        // Once told, a lucky batch does not take it back.
        if (firing_ && ratio < 2 * update_) return gain < 0.25;
        const auto means = loss_.blocks().means();
        // While a schedule lets the rate fall, the loss slows down with it.
        const std::size_t recent = rates_.now() < 0.5 * rates_.peak() ? means.size() : 100;
        const double trend = trend_z(means.last(std::min(means.size(), recent)));
        // Of a regression, too, it may be known what the labels' mean alone gives.
        const std::optional<double> share = guessing_.share();
        const bool is_guess = base || (share && *share > 0.9);
        const bool is_barely_above = is_guess && ratio < 2 * update_;
        if (ratio > update_) return gain < 0.1 && (is_over_ || trend < -3 || is_barely_above);
        // Without a base rate a model may be good already: then only what still falls can fall faster.
        // Three millionths and less are no fine-tuning either.
        return gain < 0.25 && (is_guess || is_over_ || trend < -3 || ratio < 0.03 * update_);
    }

    // The rate rose to the end and never came near what the schedule multiplies: most of the training is
    // still to come.
    [[nodiscard]] bool judge_warm_up(FindingSink& sink) const {
        const double base = rates_.base(), now = rates_.now();
        if (loss_.is_game() || !loss_.is_known_function() || !rates_.is_warming_up(last_)) return false;
        // A base of 1 stands for nothing: the schedule gives the rate itself.
        if (!(now > 0) || now < rates_.peak() || now > kOfBase * base) return false;
        if (base >= 1 || base > highest_usual_rate()) return false;
        const auto means = loss_.blocks().means();
        const double guess = loss_.base_rate().value_or(loss_.start());
        if (loss_.count() < kFewestWarm || means.size() < 12 || loss_.level() < kFarFrom * guess)
            return false;
        const auto late = means.last(means.size() / 3);
        if (trend_z(late) > -2.5) return false;
        model::Finding finding;
        finding.key = "warm_up";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.step = last_;
        finding.tensor = "loop/learning_rate";
        finding.message = base::format(
            "The warm-up never ended: the learning rate rose until the training ended, to {}, {:.1f} % of "
            "{}, which the schedule multiplies. The loss still fell: it is {} after {} steps, {} at the "
            "start.",
            human_number(now), 100 * now / base, human_number(base), human_number(loss_.level()),
            loss_.count(), human_number(loss_.start()));
        finding.fix = base::format(
            "Make the warm-up a small part of the {} steps, or train for longer: at this pace it takes about "
            "{:.0f}.",
            loss_.count(), round_for_people(static_cast<double>(loss_.count()) * base / now));
        finding.evidence.push_back({"learning rate", now, "that the schedule multiplies", base});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.plots = {{"loop/learning_rate", "value"}, {loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
        return true;
    }

    // No loss of the training is seen: what evaluations say of guessing has to do.
    void judge_unseen(FindingSink& sink) {
        if (loss_.count() > 0 || updates_.count() < 3 || evaluation_.count() < kEvaluations) return;
        const std::optional<double> guessing = evaluation_.label_entropy();
        if (!guessing || last_ + 1 < patience_) return;
        ++judged_;
        const double first = evaluation_.first(), last = evaluation_.last();
        const bool is_guess = last > 0.95 * *guessing && std::abs(first - last) < 0.05 * first;
        if (!is_guess || !are_small()) {
            if (firing_) sink.clear("low");
            firing_ = false;
            return;
        }
        firing_ = true;
        model::Finding finding = low(evaluation_.function());
        finding.message = base::format(
            "With a learning rate of {} no update was ever above {} times the weights' own size (usual is "
            "0.001), and the loss of {} evaluations went from {} to {}, where guessing gives {}; that of the "
            "training was not seen.",
            human_number(rates_.peak()), human_number(updates_.highest()), evaluation_.count(),
            human_number(first), human_number(last), human_number(*guessing));
        finding.fix = base::format(
            "Raise the learning rate from {} to about {}, or the limit that gradients are cut at, where the "
            "loop does that by hand.",
            human_number(rates_.peak()), raised_rate());
        finding.evidence.push_back({"evaluation loss", last, "of guessing", *guessing});
        sink.fire(std::move(finding));
    }

    [[nodiscard]] std::string raised_rate() const {
        return human_number(round_for_people(std::max(wanted_, 10 * rates_.peak())));
    }
    // What is said of updates, wherever the loss is from.
    [[nodiscard]] model::Finding low(const std::string& loss) const {
        const WeightUpdates::Look& look = updates_.last();
        model::Finding finding;
        finding.key = "low";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.step = last_;
        finding.tensor = "update_ratio/" + look.place;
        finding.layer = look.place.substr(0, look.place.rfind('.'));
        finding.evidence.push_back({"update / weight", updates_.highest(), "limit", update_});
        finding.evidence.push_back({"learning rate", rates_.peak(), "would give usual updates", wanted_});
        finding.plots = {{finding.tensor, "value"}, {loss, "value"}};
        return finding;
    }

    void judge_low(FindingSink& sink) {
        if (!is_low()) {
            if (firing_) sink.clear("low");
            firing_ = false;
            return;
        }
        firing_ = true;
        model::Finding finding = low(loss_.tensor());
        finding.message = base::format(
            "With a learning rate of {} no update was ever above {} times the weights' own size (usual is "
            "0.001), and after {} steps the loss is {}, {} at the start.",
            human_number(rates_.peak()), human_number(updates_.highest()), loss_.count(),
            human_number(loss_.level()), human_number(loss_.start()));
        finding.fix = is_over_
                          ? base::format(
                                "Shorten the warm-up: the rate was still rising when the training ended, at "
                                "{}.",
                                human_number(rates_.peak()))
                          : base::format("Raise the learning rate from {} to about {}.",
                                         human_number(rates_.peak()), raised_rate());
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        sink.fire(std::move(finding));
    }

    void fire_slow(FindingSink& sink) {
        firing_ = true;
        model::Finding finding;
        finding.key = "low";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.step = last_;
        finding.tensor = "loop/learning_rate";
        finding.message = base::format(
            "The weights began as they were drawn, and are trained at a learning rate of {}, as those of a "
            "model that has been trained before: after {} steps the loss is {}, {} at the start, and it "
            "still fell when the training ended. No update was above {} times the weights' own size.",
            human_number(rates_.peak()), loss_.count(), human_number(loss_.level()),
            human_number(loss_.start()), human_number(updates_.highest()));
        finding.fix =
            base::format("Raise the learning rate from {} to about {}, or train for longer.",
                         human_number(rates_.peak()), human_number(round_for_people(10 * rates_.peak())));
        finding.evidence.push_back(
            {"learning rate", rates_.peak(), "usual for new weights: above", lowest_usual_rate()});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.plots = {{finding.tensor, "value"}, {loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr std::uint64_t kEvaluations = 3;
    // Fewer steps are a trial.
    static constexpr std::uint64_t kFewestWarm = 200, kFewestSlow = 200;
    static constexpr double kHardly = 0.05;  // of its start: what a loss has changed by
    static constexpr double kOfBase = 0.1;   // the rate, where a warm-up has hardly begun
    static constexpr double kFarFrom = 0.3;  // of guessing or the start: much is left to learn

    double update_;
    std::uint64_t patience_, zero_steps_;
    std::uint64_t judged_ = 0, zeros_ = 0;
    model::StepIndex last_ = 0;
    double wanted_ = 0;
    bool firing_ = false, zero_fires_ = false, is_over_ = false;
    bool fresh_ = false;  // the weights are as they were drawn
    model::WorkerMeta rate_setting_;
    LearningRates rates_;
    WeightUpdates updates_;
    Clipping clipping_;
    TrainingLoss loss_;
    Guessing guessing_;
    EvaluationLoss evaluation_;
};

std::vector<model::Requirement> learning_rate_too_low_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kLearningRateTooLow.name);
    all.push_back(update_requirement(kLearningRateTooLow.name));
    all.push_back(rate_requirement(kLearningRateTooLow.name));
    all.push_back(loop_requirement(kLearningRateTooLow.name));
    all.push_back(evaluation_loss_requirement(kLearningRateTooLow.name));
    all.push_back(evaluation_classes_requirement(kLearningRateTooLow.name));
    for (model::Requirement& more : argument_requirements(kLearningRateTooLow.name))
        all.push_back(std::move(more));
    return all;
}

}  // namespace

RuleEntry builtin::learning_rate_too_low() {
    return {
        &kLearningRateTooLow, &learning_rate_too_low_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<LearningRateTooLow>(p); }};
}

}  // namespace traindbg::rules
