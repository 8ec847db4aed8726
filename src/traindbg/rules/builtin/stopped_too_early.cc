// A training that ended while its loss was still falling.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/evaluation_loss.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kStoppedTooEarly = {
    .name = "stopped_too_early",
    .title = "Stopped too early",
    .summary = "The training ended while the loss still fell: more steps would have made it better.",
    .when =
        "When the run ended, the training or evaluation loss was still falling a lot, or an early stopping "
        "left the loop although the loss was getting better.\n"
        "- Training loss, in both of the next two cases: after at least 40 steps, it fell significantly "
        "over the last third of the run (Mann-Kendall z < -4), and the learning rate is not near 0.\n"
        "- Still falls (info): from `min_steps` steps on, the loss fell over that third by more than "
        "`gain` of what it was at the start of that third.\n"
        "- Still steep (warning): that third brought more than `steep` of all that the training has "
        "gained, so the fall hardly slowed down, and more than 7.5 % of the loss at the start of that "
        "third. It began no higher than the training, and more than 60 % of the first loss is left.\n"
        "- Evaluations (warning): after at least 40 steps, each was better than the one before, at no less "
        "than half of the highest learning rate, and one of the next three items holds.\n"
        "- Four or more evaluations: the last was better by more than `fall`, with more than 40 % of the "
        "first loss left.\n"
        "- Four or more evaluations, speeding up: the last was better by more than 8 % and by more than "
        "ever before, with more than 60 % of the first loss left.\n"
        "- Few evaluations: three to five in a run of up to 200 steps, the last better by 0.1 more than "
        "`fall`. Or two in a run of 100 to 200 steps, the last better by more than 60 %. More than 15 % of "
        "the first loss must be left in both cases.\n"
        "- Loop left early (warning): by the program's text, where that is certain, the outermost loop was "
        "to go so many times. It was left after fewer than 80 % of them by an early stopping of known "
        "patience, and nothing else could end it. Yet the loss was getting better, in one of the ways "
        "below.\n"
        "- Nothing counted as better: each evaluation loss was better than the one before, although as "
        "many as the patience, two or more, were counted as no better. Together they fell by more than 15 "
        "%, or by 25 % to 50 % where the first one may have been counted, with a patience of three or "
        "more.\n"
        "- min_delta too large: the last evaluation losses, as many as the patience, fell together by more "
        "than 8 %, but by less than the early stopping's min_delta.\n"
        "- min_delta, other limits: 15 % with less than a quarter of the first loss left, 30 % with less "
        "than a tenth, and 2 % while the learning rate rises to its height.\n"
        "- min_delta with a patience of one or two: instead of these falls, min_delta is known, more than "
        "a tenth of the first loss is left, the last three evaluations fell by more than 30 % and the last "
        "one by more than 4 %. 20 % is enough where less than a quarter of the rounds was made, 10 % where "
        "less than a tenth was.\n"
        "- Count not set back: as many evaluations as the patience were no better in all, but not in a "
        "row, and since the first of these the loss fell by more than 10 %. The patience is three or more, "
        "and there is no min_delta.\n"
        "- Waits for higher values: the program's text tells that a loss is asked about. The early "
        "stopping waits for higher values and ended the loop as soon as it could, while the evaluation "
        "loss got better each time (or, where none is seen, the training loss fell by a quarter).\n"
        "- Asked at each step: the program's text tells that it is asked about the loss of each batch, "
        "with a patience of ten or more. That loss was never below its lowest before, but fell over the "
        "steps that it waited (z < -3, by 5 % or more).\n"
        "- Asked at each step, noisy batches: or it fell over these steps and as many before (z < -4, by "
        "15 % or more), where the losses of single batches differ by a tenth or more from one to the next.",
    .why = "What is still falling is not at its best.",
    .fix =
        "Train for more epochs, with a schedule of that length, while the evaluation loss falls too. Of "
        "early stopping: lower is better for a loss, the best value begins at infinity, each better value "
        "sets the count back to 0, and the least gain that counts (min_delta) is small beside what an epoch "
        "gains.",
    .healthy =
        "A short trial, of fewer than 40 steps; a training whose evaluation loss rises already; a schedule "
        "that has reached its end; an early stopping whose best evaluation is as long ago as its patience; a "
        "loop that is left when a target is reached or the time is up.",
    .cost =
        "One number a step, of training and of evaluation; where evaluations begin, and at the end the "
        "program's text.",
    .original = "",
    .source = "Mann, \"Nonparametric tests against trend\", Econometrica 13 (1945)",
    .severity = model::Severity::kWarning,
    .parameters = {{"min_steps", "steps", 80, 30, 1e9, "steps from which on a fall that slows down is noted"},
                   {"gain", "share", 0.2, 0.001, 1, "fall of the loss over the last third"},
                   {"steep", "share", 0.22, 0.05, 1,
                    "of the whole fall, between the first and the last quarter of that third"},
                   {"fall", "share", 0.15, 0.01, 1,
                    "of the evaluation before the last one, by which that was better"}},
};

// What is told at the end of the training's own loop, where it was left before all of its rounds were made.
class LoopLeft {
  public:
    void observe(const model::StepView& step) {
        const std::optional<LoopFact> planned = loop_fact(step, "rounds_planned");
        const std::optional<LoopFact> done = loop_fact(step, "rounds_done");
        const std::optional<LoopFact> patience = loop_fact(step, "rounds_patience");
        const std::optional<LoopFact> gain = loop_fact(step, "rounds_least_gain");
        const std::optional<LoopFact> sense = loop_fact(step, "rounds_sense");
        const std::optional<LoopFact> kind = loop_fact(step, "rounds_kind");
        if (!planned || !done || !patience || !gain || !sense) return;
        place_ = planned->place;
        planned_ = static_cast<std::uint64_t>(planned->value);
        done_ = static_cast<std::uint64_t>(done->value);
        patience_ = static_cast<std::uint64_t>(patience->value);
        gain_ = gain->value;
        wants_lower_ = sense->value < 0;
        is_training_loss_ = kind && kind->value > 1;
        wants_higher_loss_ = kind && kind->value > 0 && sense->value > 0;
    }
    [[nodiscard]] bool is_told() const noexcept { return planned_ > 0; }
    [[nodiscard]] const std::string& place() const noexcept { return place_; }  // "train.py:42"
    [[nodiscard]] std::uint64_t planned() const noexcept { return planned_; }
    [[nodiscard]] std::uint64_t done() const noexcept { return done_; }
    // So many evaluations that are no better end it; 0: not known.
    [[nodiscard]] std::uint64_t patience() const noexcept { return patience_; }
    // By which an evaluation must be better to count (min_delta); below 0: not known.
    [[nodiscard]] double gain() const noexcept { return gain_; }
    [[nodiscard]] bool wants_lower() const noexcept { return wants_lower_; }  // else higher, or not known
    // What it asks for is a loss, by the program's text, and it waits for higher ones.
    [[nodiscard]] bool wants_higher_loss() const noexcept { return wants_higher_loss_; }
    // It is the loss that the training lowers.
    [[nodiscard]] bool is_of_training_loss() const noexcept { return is_training_loss_; }

  private:
    std::string place_;
    std::uint64_t planned_ = 0, done_ = 0, patience_ = 0;
    double gain_ = -1;
    bool wants_lower_ = false, wants_higher_loss_ = false, is_training_loss_ = false;
};

class StoppedTooEarly final : public Rule {
  public:
    explicit StoppedTooEarly(const Parameters& parameters)
        : min_steps_(static_cast<std::uint64_t>(parameters.at("min_steps"))),
          gain_(parameters.at("gain")),
          steep_(parameters.at("steep")),
          fall_(parameters.at("fall")) {}

    void on_step(const model::StepView& step, FindingSink&) override {
        evaluation_.observe(step);
        if (step.mode() != model::Mode::kTrain) return;
        rates_.observe(step);
        left_.observe(step);
        if (loop_fact(step, "trainings")) has_several_ = true;
        if (loss_.observe(step)) last_ = step.step();
    }
    void on_end(FindingSink& sink) override {
        evaluation_.end();
        if (waits_for_higher_loss())
            return fire_left(
                "higher", "which waits for higher values of a loss: only the first one counted as the best",
                sink);
        if (const Levels levels = levels_of_patience(); levels.after < levels.before)
            return fire_left(
                "steps",
                base::format("while the training loss fell: its patience, {}, is counted in "
                             "steps, and over these{} the loss of single batches fell from {} to {}, but was "
                             "never below the lowest one before",
                             left_.patience(), levels.is_with_before ? " and as many before" : "",
                             human_number(levels.before), human_number(levels.after)),
                sink);
        if (const auto [key, what] = why_left(); !key.empty())
            return fire_left(key, "while the evaluation loss " + what, sink);
        if (is_evaluation_steep()) return fire_evaluation(sink);
        if (loss_.count() < std::min(min_steps_, kFewSteps) || loss_.is_game() || !loss_.is_known_function())
            return;
        if (rates_.is_known() && rates_.now() < 0.05 * rates_.peak()) return;
        const auto means = loss_.blocks().means();
        const auto third = means.last(means.size() / 3);
        if (third.size() < 8 || trend_z(third) > -4) return;
        const auto part = third.size() / 4;
        const auto level_of = [](std::span<const double> some) { return median({some.begin(), some.end()}); };
        const double before = level_of(third.first(part)), after = level_of(third.last(part));
        if (!(before > 0)) return;
        // Bent towards its floor, a loss gains little in the end of what it gained in all.
        const double gained = loss_.start() - after;
        // On its way back from a jump it gains nothing yet.
        const bool is_steep = before <= loss_.start() && after > kLeft * loss_.start() &&
                              before - after > steep_ * gained && before - after > 0.075 * before;
        if (!is_steep && (loss_.count() < min_steps_ || before - after < gain_ * before)) return;
        model::Finding finding;
        finding.key = is_steep ? "steep" : "loss";
        finding.severity = is_steep ? model::Severity::kWarning : model::Severity::kInfo;
        finding.step = last_;
        finding.first_step = last_;
        finding.tensor = loss_.tensor();
        finding.message = base::format(
            "The loss still fell {}when the training ended: from {} to {} over the last third of {} steps{}.",
            is_steep ? "steeply " : "", human_number(before), human_number(after), loss_.count(),
            is_steep ? base::format(", {:.0f} % of all that it fell", 100 * (before - after) / gained) : "");
        finding.fix = "Train for more epochs, as long as the evaluation loss falls too.";
        finding.evidence.push_back({"loss", after, "before the last third", before});
        finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override {
        return loss_.count() >= std::min(min_steps_, kFewSteps) ? loss_.count() : 0;
    }
    [[nodiscard]] std::string why_not_judged() const override {
        return base::format("fewer than {} steps with a loss were seen", std::min(min_steps_, kFewSteps));
    }

  private:
    // Medians of the loss of single batches: of the first and of the second half of the steps that an early
    // stopping waited; or of as many steps before these, and of these.
    struct Levels {
        double before = 0, after = 0;
        bool is_with_before = false;
    };

    // What the evaluations say of an early stopping that left the loop: the finding's key, and in words.
    [[nodiscard]] std::pair<std::string, std::string> why_left() const {
        if (!left_.is_told() || loss_.is_game() || evaluation_.count() < 3) return {};
        if (rates_.is_known() && rates_.now() < 0.05 * rates_.peak()) return {};
        const auto& values = evaluation_.values();
        const std::uint64_t count = evaluation_.count(), patience = left_.patience();
        const double first = values.front(), last = values.back();
        // By how much the whole of it, the last and the last three were better; what is left of the first
        // loss.
        const double all = 1 - last / first, step = 1 - last / values[values.size() - 2];
        const double left = loss_.start() > 0 ? last / loss_.start() : 0;
        const std::uint64_t in_a_row = last_in_a_row();
        if (!(last > 0)) return {};
        const bool is_one_a_round = count <= left_.done() + 1 && count + 1 >= left_.done();
        const std::string got_better =
            base::format("got better at each of the last {}: from {} to {}", in_a_row,
                         human_number(values[values.size() - 1 - in_a_row]), human_number(last));
        if (!is_one_a_round || patience == 0) return {};
        if (in_a_row + 1 == count && patience > 1) {
            // No value but a best one that is below all of them keeps each from being counted as better.
            if (left_.wants_lower() && count <= patience && all > 0.15) return {"left", got_better};
            // Only the first was counted, of another number than the loss or the other way round. An accuracy
            // may have been at its best at once, where the loss of a classification falls, if not so steeply
            // to the end; an error of values has no such number beside it.
            const bool is_steep = step > 0.08 && left > kMuchLeft && all > 0.25;
            const bool is_meant_to_rise = !left_.wants_lower() && all > (is_of_values() ? 0.25 : 0.5);
            if ((is_steep || is_meant_to_rise) && patience > 2 && count == patience + 1 && step > 0.02 &&
                left > 0.2)
                return {"left", got_better};
        }
        // An early stopping of the loss with this least gain ends here, so that it is what ended it.
        const double fall = patience < values.size() ? 1 - last / values[values.size() - 1 - patience] : 0;
        // While the rate still rises no gain is what it can be.
        const double least = rates_.is_known() && rates_.is_warming_up(last_) ? 0.02
                             : left > 0.25                                    ? 0.08
                                                                              : 0.15;
        // Over one or two evaluations nothing shows yet of a fall that goes on.
        const double hasty = 10 * left_.done() < left_.planned()  ? kMuchAtFirst
                             : 4 * left_.done() < left_.planned() ? kMuchWhileHasty
                                                                  : kMuchWhileWaiting;
        const std::size_t since = values.size() > kEvaluations ? values.size() - 1 - kEvaluations : 0;
        const bool is_hasty = patience < kEvaluations && left_.gain() > 0 && step > kStillFalls &&
                              values.size() >= kEvaluations && 1 - last / values[since] > hasty;
        const bool is_much =
            (left > 0.1 && (fall > least || is_hasty)) || (left > kLittleLeft && fall > kMuchWhileWaiting);
        const double gain = left_.gain() < 0 && patience < values.size()
                                ? gain_that_stops(patience, values[values.size() - 1 - patience] - last)
                                : left_.gain();
        if (left_.wants_lower() && gain > 0 && stops_after(patience, gain) == count &&
            in_a_row >= std::min(patience, kEvaluations) && step > 0.01 && is_much)
            return {"left", got_better};
        if (left_.wants_lower() && left_.gain() == 0 && patience > 2 &&
            evaluation_.not_better() == patience && evaluation_.since_best() > 0 &&
            evaluation_.since_best() < patience && evaluation_.best() < 0.9 * evaluation_.best_at_setback())
            return {"count",
                    base::format("still got better: the best, {}, was {} before the last. As many as its "
                                 "patience, {}, were no better than those before them in all, but not in a "
                                 "row; after the first of them it fell from {}",
                                 human_number(evaluation_.best()), evaluation_.since_best(), patience,
                                 human_number(evaluation_.best_at_setback()))};
        return {};
    }
    // An early stopping of a loss that waits for higher values: only the first one counted as the best, so
    // that it ended the loop as soon as it could.
    [[nodiscard]] bool waits_for_higher_loss() const {
        if (!left_.is_told() || !left_.wants_higher_loss() || loss_.is_game() || left_.patience() < 2)
            return false;
        const std::uint64_t asked = left_.patience() + 1;
        if (evaluation_.count() > 0)
            return evaluation_.count() == asked && left_.done() == asked && last_in_a_row() + 1 == asked;
        // Asked at each round, or after equally many.
        if (left_.done() % asked != 0) return false;
        return loss_.start() > 0 && loss_.level() < 0.75 * loss_.start();
    }
    // Of an early stopping that is asked at each step, about the loss of its batch, and ended the loop as
    // many steps after its lowest as its patience: two levels of that loss, which fell all the same.
    [[nodiscard]] Levels levels_of_patience() const {
        if (!left_.is_told() || !left_.wants_lower() || !left_.is_of_training_loss() || loss_.is_game())
            return {};
        const std::uint64_t patience = left_.patience();
        if (patience < 10 || left_.done() != loss_.count()) return {};
        if (rates_.is_known() && rates_.now() < 0.05 * rates_.peak()) return {};
        const auto seen = loss_.recent().last(patience + 1);
        if (seen.size() <= patience) return {};
        // Only single values are in its way: where they get lower, they gain less than it asks for.
        const auto waited = seen.subspan(1);
        const double lowest = *std::ranges::min_element(waited);
        if (lowest < seen.front() - 0.01 * std::abs(seen.front())) return {};
        const auto half = waited.size() / 2;
        const double first = median_of(waited.first(half)), second = median_of(waited.last(half));
        // That a loss which stands seems to fall so over a few steps is rare enough.
        if (trend_z(waited) <= -3 && second <= 0.95 * first) return {first, second, false};
        // In so few steps a fall does not show where single values differ by more than it. It does in thrice
        // as many, as long as it has not slowed down to less than half. Where single values do not differ,
        // the lowest is no chance.
        const auto thrice = loss_.recent().last(3 * patience + 1);
        if (thrice.size() <= 3 * patience) return {};
        std::vector<double> differences;
        for (std::size_t i = 1; i < waited.size(); ++i)
            differences.push_back(std::abs(waited[i] - waited[i - 1]));
        const double earlier = median_of(thrice.first(patience));
        const double before = median_of(thrice.subspan(patience, patience)), after = median_of(waited);
        const bool is_noisy = after > 0 && median(differences) > 0.1 * after;
        if (!is_noisy || trend_z(thrice.last(2 * patience + 1)) > -4 || after > 0.85 * before) return {};
        if (std::log(after / before) > 0.5 * std::log(before / earlier)) return {};
        return {before, after, true};
    }
    [[nodiscard]] static double median_of(std::span<const double> some) {
        return median({some.begin(), some.end()});
    }
    // The evaluation's loss is an error of numbers, not of classes.
    [[nodiscard]] bool is_of_values() const {
        const std::string& name = evaluation_.function();
        return name.ends_with("mse_loss") || name.ends_with("l1_loss") || name.ends_with("huber_loss");
    }
    // After how many evaluations an early stopping of their loss ends; 0: after none of them.
    [[nodiscard]] std::uint64_t stops_after(std::uint64_t patience, double gain) const {
        const auto& values = evaluation_.values();
        if (values.size() < evaluation_.count()) return 0;
        double best = values.front();
        std::uint64_t waited = 0;
        for (std::size_t i = 1; i < values.size(); ++i) {
            if (values[i] < best - gain) {
                best = values[i];
                waited = 0;
            } else if (++waited >= patience) {
                return i + 1;
            }
        }
        return 0;
    }
    // A least gain that is not known: one with which an early stopping ends after the last evaluation, and
    // that is no less than what the last ones gained, which did not count. 0: there is none.
    [[nodiscard]] double gain_that_stops(std::uint64_t patience, double gained) const {
        for (double gain = 1.001 * gained; gained > 0 && gain < kMostGained * gained; gain *= 1.03)
            if (stops_after(patience, gain) == evaluation_.count()) return gain;
        return 0;
    }
    // How many of the last evaluations were each better than the one before.
    [[nodiscard]] std::uint64_t last_in_a_row() const {
        const auto& values = evaluation_.values();
        std::uint64_t count = 0;
        for (std::size_t i = values.size(); i > 1 && values[i - 1] < values[i - 2]; --i) ++count;
        return count;
    }
    void fire_left(const std::string& key, const std::string& what, FindingSink& sink) const {
        model::Finding finding;
        finding.key = key;
        finding.severity = model::Severity::kWarning;
        finding.step = finding.first_step = last_;
        finding.tensor = evaluation_.count() > 0 ? evaluation_.function() : loss_.tensor();
        finding.message =
            base::format("The loop at {} was to go {} times and was left after {} by an early stopping, {}.",
                         left_.place(), left_.planned(), left_.done(), what);
        if (key == "steps")
            finding.fix =
                "Ask the early stopping about the mean over many steps, an epoch's or an evaluation's, or "
                "make its patience many times as long: single batches differ by more than a step gains.";
        else if (key == "count")
            finding.fix =
                "Set the early stopping's count back to 0 whenever the evaluation loss is better than the "
                "best.";
        else
            finding.fix =
                "Look at what the early stopping counts as better: of a loss, lower values; from which best "
                "value it begins (infinity); and by how much at least (min_delta).";
        finding.evidence.push_back(
            {"rounds", static_cast<double>(left_.done()), "planned", static_cast<double>(left_.planned())});
        finding.plots = {{finding.tensor, "value"}};
        sink.fire(std::move(finding));
    }
    // Each evaluation was better than the one before, and the last one by much.
    [[nodiscard]] bool is_evaluation_steep() const {
        return loss_.count() >= kFewSteps && !loss_.is_game() && loss_.is_known_function() &&
               evaluation_.in_a_row() + 1 == evaluation_.count() && evaluation_.last() > 0 &&
               (is_steep() || is_brief_and_steep() || is_speeding_up()) &&
               !(rates_.is_known() && rates_.now() < 0.5 * rates_.peak());
    }
    // With less of the first loss left, many a training of few epochs ends so.
    [[nodiscard]] bool is_steep() const {
        return evaluation_.in_a_row() >= kEvaluations &&
               evaluation_.last() < (1 - fall_) * evaluation_.before() &&
               evaluation_.last() > kMuchLeft * loss_.start();
    }
    // Few of these were over after so few steps, when the last of few epochs brought still more.
    [[nodiscard]] bool is_brief_and_steep() const {
        const bool is_second = evaluation_.count() == 2 &&
                               evaluation_.last() < kBriefSecond * evaluation_.before() &&
                               evaluation_.last() > kBriefLeft * loss_.start();
        const bool is_brief = loss_.count() >= kTrialSteps && loss_.count() <= kBriefSteps;
        if (is_second && is_brief && !has_several_) return true;
        return !has_several_ && loss_.count() <= kBriefSteps && evaluation_.in_a_row() + 1 >= kEvaluations &&
               evaluation_.count() <= kBriefEvaluations &&
               evaluation_.last() < (1 - fall_ - kBriefFall) * evaluation_.before() &&
               evaluation_.last() > kBriefLeft * loss_.start();
    }
    // The last step down is the largest of all, with most of the first loss left.
    [[nodiscard]] bool is_speeding_up() const {
        const auto& values = evaluation_.values();
        if (evaluation_.in_a_row() < kEvaluations || values.size() != evaluation_.count()) return false;
        const double last = 1 - evaluation_.last() / evaluation_.before();
        for (std::size_t at = 1; at < values.size(); ++at)
            if (1 - values[at] / values[at - 1] > last) return false;
        return last > kStillSpeeding && evaluation_.last() > kLeft * loss_.start();
    }
    void fire_evaluation(FindingSink& sink) const {
        model::Finding finding;
        finding.key = "evaluation";
        finding.severity = model::Severity::kWarning;
        finding.step = finding.first_step = last_;
        finding.tensor = evaluation_.function();
        finding.message = base::format(
            "The training ended after {} evaluations, each better than the one before, the last by {:.0f} %: "
            "from {} to {}; the first was {}.",
            evaluation_.count(), 100 * (1 - evaluation_.last() / evaluation_.before()),
            human_number(evaluation_.before()), human_number(evaluation_.last()),
            human_number(evaluation_.first()));
        finding.fix =
            "Train for more epochs; of early stopping, look at its patience and at the least gain that "
            "counts (min_delta).";
        finding.evidence.push_back(
            {"evaluation loss", evaluation_.last(), "the one before", evaluation_.before()});
        finding.plots = {{evaluation_.function(), "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr std::uint64_t kFewSteps = 40, kEvaluations = 3;
    static constexpr double kMuchLeft = 0.4;        // of the first loss
    static constexpr double kStillSpeeding = 0.08;  // of the evaluation before the last one
    // Of a training that was over after so few steps and evaluations: by how much more the last one is better
    // than the one before, and what is left of the first loss.
    static constexpr std::uint64_t kBriefSteps = 200, kBriefEvaluations = 5;
    static constexpr double kBriefFall = 0.1, kBriefLeft = 0.15, kBriefSecond = 0.4;
    static constexpr std::uint64_t kTrialSteps = 100;  // fewer, of two epochs, are a trial
    // Of the first loss what is little, and a fall that is worth waiting for all the same.
    static constexpr double kLittleLeft = 0.02, kMuchWhileWaiting = 0.3;
    static constexpr double kStillFalls = 0.04;     // over one evaluation
    static constexpr double kMuchWhileHasty = 0.2;  // with less than a quarter of what was planned
    static constexpr double kMuchAtFirst = 0.1;     // with less than a tenth of it
    static constexpr double kMostGained = 10;       // of what the last evaluations gained: a least gain
    // Of the first loss: with less left, a training that goes on to fall is a matter of taste.
    static constexpr double kLeft = 0.6;

    std::uint64_t min_steps_;
    double gain_;
    double steep_;
    double fall_;
    EvaluationLoss evaluation_;
    LoopLeft left_;
    bool has_several_ = false;  // trainings, of which `evaluation_` has all
    model::StepIndex last_ = 0;
    LearningRates rates_;
    TrainingLoss loss_;
};

std::vector<model::Requirement> stopped_too_early_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kStoppedTooEarly.name);
    all.push_back(rate_requirement(kStoppedTooEarly.name));
    all.push_back(loop_requirement(kStoppedTooEarly.name));
    all.push_back(evaluation_loss_requirement(kStoppedTooEarly.name));
    return all;
}

}  // namespace

RuleEntry builtin::stopped_too_early() {
    return {&kStoppedTooEarly, &stopped_too_early_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<StoppedTooEarly>(p);
            }};
}

}  // namespace traindbg::rules
