// Updates out of all proportion to the weights, and a loss that does not fall.

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/evaluation_loss.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/summed_loss.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kLearningRateTooHigh = {
    .name = "learning_rate_too_high",
    .title = "Learning rate too high",
    .summary = "Each step changes the weights by a large part of what they are, and the loss does not fall.",
    .when =
        "Single updates change a large part of the weights, and the loss rises, jumps or does not fall "
        "below its start.\n"
        "- Measured: the typical update (‖Δw‖ / ‖w‖, the median over the weight matrices).\n"
        "- Large updates: the typical update is above `update` at most of the last steps that were looked "
        "at, three or more, without the first one.\n"
        "- Above its start (error): with large updates, the loss is above where it started, from 12 steps "
        "on.\n"
        "- Stalled (warning): with large updates, the loss is not below its start after `patience` steps, "
        "or after four times as many where the last update is below `update` and the loss never jumped.\n"
        "- Jumped (warning): after twice `patience` steps, the loss once jumped to more than `jump` times "
        "its start or guessing, and now stands still over the second half of the run (Mann-Kendall z > -2) "
        "without having come far.\n"
        "- What counts as a jump: the median of ten losses in a row is that high, by four times the noise, "
        "or one loss is ten times that high or 15 times the noise away. Of the first ten losses, one is "
        "enough that is twice that high and 8 times the noise above the start; the noise counts as larger by "
        "as much as the loss has fallen.\n"
        "- Updates of a jump: a typical update was above `update`, and they still are above a fifth of it. "
        "Where nothing was learned, it is enough that one was above a third of `update`.\n"
        "- In that last case, if a tenth of the last losses are above their median by `jump`, the update "
        "must also have been above that third when last looked at before the highest loss.\n"
        "- Wrecked (warning): a typical update of steps 1 to 10 was above half of the weights. The loss "
        "was highest within the first 12 steps, 10 % above its start, and after three times `patience` "
        "steps it is above 30 % of its start.\n"
        "- Replaced (warning): the typical updates of the first three steps add up to more than half of "
        "the weights. The median loss of the three steps after the first is above the first loss and "
        "guessing.\n"
        "- For replaced weights, the highest loss is among the first 12 and 10 % above these. Where the "
        "labels do not tell what guessing gives, it is `jump` times the first loss and four times the "
        "noise above it.\n"
        "- For replaced weights, the loss after three times `patience` steps is above 60 % of guessing, or "
        "of its start.\n"
        "- Schedule (warning): a schedule made the rate ten times or more of what it multiplies, and a "
        "typical update was above a third of `update`.\n"
        "- For a schedule, the loss had fallen a fifth below its start and has lost more than 60 % of that "
        "again for `patience` steps. Where it had only fallen a tenth, this must last for twice as many "
        "steps.\n"
        "- Rising again (warning): the loss had fallen below 30 % of its start. For four times `patience` "
        "steps it has been above four times its lowest, by a tenth of what it had fallen and five times the "
        "noise. It rises over the second half of the run (Mann-Kendall z > 3).\n"
        "- For a loss that rises again, every typical update since its lowest was above a tenth of "
        "`update`, at two looks or more, and the learning rate is not below half of its peak. Not where the "
        "loss is the sum of several. The last of four or more evaluations is above twice the best of them: "
        "data that gets harder raises the loss of the training alone.\n"
        "- Weights set back: where load_state_dict() sets all weights back to those of the start, loss and "
        "updates count from there. What was told before is taken back only where rates were tried out: the "
        "rate rose above 1.2 times its first, or the highest of another such trial is another one, by that.\n"
        "- Rates that are tried out: nothing is said while the rate is multiplied by one number at "
        "every step, for 20 steps or more and to 100 times what it was.",
    .why =
        "An update that is a tenth of the weights forgets what was learned before. The loss jumps about or "
        "settles where guessing would be; units die on the way.",
    .fix = "Lower the learning rate to where updates are about a thousandth of the weights; warm it up.",
    .healthy =
        "L-BFGS, which looks for the size of its steps by itself. Large updates while a training learns, as "
        "Adam's first ones or those of small batches are; weights that start at zero; warm-up; several "
        "optimizers that work against each other (a GAN); a loss made by hand, which need not fall; a test "
        "of many rates, if the weights are set back after it. A note (info) for an agent, whose loss says "
        "little: where the program adds up discounted rewards or the loss is that of a policy.",
    .cost =
        "A copy of the weights at the first three steps, a few more below 100, and then every 100th; the "
        "loss.",
    .original = "WeightUpdateRatio",
    .source = "Ben Braiek, Khomh, \"Testing feedforward neural networks training programs\", TOSEM 32 (2023)",
    .severity = model::Severity::kError,
    .parameters = {{"update", "ratio", 0.1, 1e-3, 10, "typical update of a matrix beside the matrix"},
                   {"jump", "times", 1.5, 1, 1e6, "loss over its start or guessing that counts as a jump"},
                   {"patience", "steps", 30, 12, 1e9, "steps after which a training should have set off"}},
};

// It finds the size of its steps by itself.
bool searches_along_lines(const model::WorkerMeta& meta) {
    return !meta.optimizers.empty() && meta.optimizers.front().type == "LBFGS";
}

// What so large a part of the losses is below. Where a few samples decide, as with a seldom reward, most
// losses are small and some are not: neither their median nor their noise tells much.
double part_of(std::vector<double> losses, double part) {
    if (losses.empty()) return 0;
    const auto place =
        losses.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(losses.size() - 1) * part);
    std::nth_element(losses.begin(), place, losses.end());
    return *place;
}

class LearningRateTooHigh final : public Rule {
  public:
    explicit LearningRateTooHigh(const Parameters& parameters)
        : update_(parameters.at("update")),
          jump_(parameters.at("jump")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        evaluation_.observe(step);
        if (step.mode() != model::Mode::kTrain) return;
        if (loop_fact(step, "trainings")) {  // another one: its first updates are not seen
            moved_ = 0;
            after_moves_.clear();
            start_before_ = std::max(start_before_, loss_.start());
        }
        const LearningRates rates = rates_;
        rates_.observe(step);
        agent_.observe(step);
        if (loop_fact(step, "weights_of_start")) begin_anew(rates, step.step());
        if (are_rates_tried_out() && is_of_before_) take_back(sink);
        if (updates_.observe(step) && step.step() < kFirstMoves) moved_ += updates_.last().typical;
        summed_.observe(step);
        const double highest = loss_.highest();
        const double usual = loss_.count() >= 10 ? loss_.level() : 0, noise = loss_.noise();
        const std::vector<double> before(loss_.recent().values().begin(), loss_.recent().values().end());
        if (!loss_.observe(step)) return;
        if (loss_.count() > 1 && after_moves_.size() < kFirstMoves)
            after_moves_.push_back(loss_.recent().last(1).front());
        if (loss_.count() > 10 && loss_.highest() > highest) {
            const double strays = std::max(noise, (part_of(before, 0.95) - usual) / 2);
            surprise_ = strays > 0 ? (loss_.highest() - usual) / strays : kSurprise;
        }
        if (loss_.count() >= 10) {
            const double level = loss_.level();
            peak_ = std::max(peak_, level);
            if (loss_.count() == 10 || level < best_) {
                best_ = level;
                best_step_ = step.step();
            }
            fallen_back_ = has_fallen_back(level) ? fallen_back_ + 1 : 0;
            risen_ = has_risen(level) ? risen_ + 1 : 0;
        }
        if (updates_.count() < 3 || updates_.are_of_tables() || loss_.count() < kFirst) return;
        ++judged_;
        if (loss_.is_game() || !loss_.is_known_function() || searches_along_lines(*step.meta)) return;
        if (rates_.is_tried_out()) return;  // what becomes of it shows when that is over
        const char* found = judge(step);
        if (found == nullptr) {
            if (firing_ != nullptr && (loss_.has_learned_much() || has_set_off())) {
                sink.clear(firing_);
                firing_ = nullptr;
                is_of_before_ = false;
            }
            return;
        }
        // One fault: what a loss that stands still was at first is not told twice.
        if (firing_ == nullptr || std::string_view(found) == "above_start") {
            if (firing_ != nullptr && std::string_view(firing_) != found) sink.clear(firing_);
            firing_ = found;
        }
        is_of_before_ = false;
        fire(step, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return loss_.count() == 0 ? "no training loss was seen"
                                  : "fewer than 12 steps, or updates of fewer than three, were seen";
    }

  private:
    static constexpr std::uint64_t kFirst = 12;
    static constexpr double kSurprise = 15;
    static constexpr double kSurpriseAtOnce = 8;
    static constexpr double kReplaced = 0.5;
    static constexpr double kMultiplied = 10;
    static constexpr double kLearnedMost = 0.3;  // of the start, below which the loss fell
    static constexpr double kTimesLowest = 4;    // the loss now, of one that rises again
    static constexpr double kLostAgain = 0.1;    // of what it had fallen
    static constexpr std::uint64_t kFewestEvaluations = 4;
    static constexpr double kTimesBest = 2;  // an evaluation's loss, of one that gets worse
    static constexpr double kRises = 3;      // Mann-Kendall z
    static constexpr model::StepIndex kFirstMoves = 3;

    static constexpr double kOther = 1.2;  // times a rate, that is another one

    // A rate that is the same in all trials, as in those of a cross-validation, was not tried out.
    [[nodiscard]] bool are_rates_tried_out() const {
        if (trials_ == 0) return false;
        const double now = rates_.peak();
        return did_rate_rise_ || std::max(highest_rate_, now) > kOther * std::min(lowest_rate_, now);
    }
    // What was tried with other rates is thrown away: no weight keeps anything of it.
    void take_back(FindingSink& sink) {
        model::Finding note;
        note.key = firing_;
        note.message =
            "The loss rose, or did not fall, with large updates, and then all weights were set back to "
            "those that the training had begun with.";
        note.fix = "Nothing, if rates were only tried out.";
        sink.take_back(std::move(note));
        firing_ = nullptr;
        is_of_before_ = false;
    }
    // The weights are those of the start. `rates`: of what was before.
    void begin_anew(const LearningRates& rates, model::StepIndex step) {
        did_rate_rise_ = did_rate_rise_ || rates.peak() > kOther * rates.first();
        lowest_rate_ = trials_ == 0 ? rates.peak() : std::min(lowest_rate_, rates.peak());
        highest_rate_ = std::max(highest_rate_, rates.peak());
        ++trials_;
        rates_.begin_anew(step);
        is_of_before_ = firing_ != nullptr;
        moved_ = 0;
        after_moves_.assign(kFirstMoves, 0);  // of the first steps no updates are known any more
        peak_ = best_ = surprise_ = 0;
        best_step_ = 0;
        fallen_back_ = risen_ = 0;
        evaluation_ = EvaluationLoss();
        updates_ = WeightUpdates();
        loss_.begin_anew();
    }

    // Updates become smaller by themselves, as Adagrad's do: less than half of what the first ones were.
    [[nodiscard]] bool is_settling() const {
        const double first = updates_.looks().front().typical, last = updates_.last().typical;
        return last < first / 2;
    }
    // A training that stood still at first, with updates that have become small since, learns after all.
    [[nodiscard]] bool has_set_off() const {
        return std::string_view(firing_) == "stalled" && updates_.last().typical <= update_ / 3 &&
               loss_.has_learned();
    }
    // Of the worst look of the first steps, where the finding is about that.
    [[nodiscard]] bool is_about_worst() const {
        const std::string_view key = firing_;
        return key == "wrecked" || key == "replaced" || key == "schedule" ||
               updates_.last().typical <= update_;
    }
    // Most of the last looks but the first one, whose weights may be anything.
    [[nodiscard]] bool mostly_above(double limit) const {
        std::size_t above = 0, all = 0;
        const auto& looks = updates_.looks();
        for (std::size_t i = looks.size() > 6 ? looks.size() - 6 : 0; i < looks.size(); ++i) {
            if (looks[i].step == 0) continue;
            ++all;
            if (looks[i].typical > limit) ++above;
        }
        return all >= 2 && 2 * above > all;
    }
    [[nodiscard]] double worst_start() const {
        return std::max(loss_.start(), loss_.base_rate().value_or(0));
    }

    // The loss rose by the first updates, not by chance: of a fresh classifier, which guesses, it hardly
    // strays.
    [[nodiscard]] bool did_moves_harm() const {
        if (after_moves_.size() < kFirstMoves || loss_.steps_to_highest() > 12 || loss_.has_vague_start())
            return false;
        const double before = std::max(worst_start(), loss_.first()), highest = loss_.highest();
        if (median(after_moves_) <= before) return false;
        return loss_.base_rate() ? highest > 1.1 * before
                                 : highest > jump_ * before && highest - before > 4 * loss_.noise();
    }

    [[nodiscard]] bool has_fallen_back(double level) const {
        const double learned = loss_.start() - best_;
        return learned > 0.1 * loss_.start() && level > best_ + 0.6 * learned &&
               level - best_ > 5 * loss_.noise() / std::sqrt(10.0);
    }
    // A schedule made the rate many times what the optimizer was given, and what was learned is lost.
    [[nodiscard]] bool is_by_schedule() const {
        // Of little that was learned, it is less sure that it was.
        const bool was_much = loss_.start() - best_ > 0.2 * loss_.start();
        return rates_.base() > 0 && rates_.peak() >= kMultiplied * rates_.base() &&
               fallen_back_ >= (was_much ? 1 : 2) * patience_ && updates_.worst().typical > update_ / 3;
    }

    // Most of it had been learned, and some of that is lost.
    [[nodiscard]] bool has_risen(double level) const {
        const double learned = loss_.start() - best_;
        return best_ < kLearnedMost * loss_.start() && level > kTimesLowest * best_ &&
               level > best_ + kLostAgain * learned && level - best_ > 5 * loss_.noise() / std::sqrt(10.0);
    }
    // It becomes worse bit by bit, with updates that stay large, and so do evaluations. Other data would
    // raise it at once, and it would be learned then.
    [[nodiscard]] bool rises_again() const {
        if (evaluation_.count() < kFewestEvaluations || evaluation_.last() <= kTimesBest * evaluation_.best())
            return false;
        if (risen_ < 4 * patience_ || loss_.is_sum_of_several() || rates_.now() < 0.5 * rates_.peak())
            return false;
        std::size_t looks = 0;
        for (const WeightUpdates::Look& look : updates_.looks()) {
            if (look.step < best_step_) continue;
            if (look.typical <= update_ / 10) return false;
            ++looks;
        }
        const auto means = loss_.blocks().means();
        return looks >= 2 && means.size() >= 20 && trend_z(means.last(means.size() / 2)) > kRises;
    }

    // The key of what is seen.
    [[nodiscard]] const char* judge(const model::StepView&) const {
        const double start = loss_.start(), level = loss_.level();
        if (start <= 0) return nullptr;
        const auto last = loss_.recent().last(10);
        const double least = *std::min_element(last.begin(), last.end());
        if (mostly_above(update_)) {
            const bool above = level > 1.2 * std::max(start, loss_.base_rate().value_or(0)) && least > start;
            if (above && level - start > 3 * loss_.noise() / std::sqrt(10.0)) return "above_start";
            // The first updates of Adam and RMSprop are large in any training: one whose updates have become
            // small, or become small, is given more time.
            const bool did_harm = (updates_.last().typical > update_ && !is_settling()) ||
                                  loss_.highest() > jump_ * worst_start();
            if (loss_.count() >= (did_harm ? 1 : 4) * patience_ && !loss_.has_learned()) return "stalled";
        }
        // A step that replaced half of each matrix made another network of it, which may learn what is left
        // to learn. Judged once it should have come far.
        const auto& looks = updates_.looks();
        const bool was_replaced = std::any_of(looks.begin(), looks.end(), [](const auto& look) {
            return look.step >= 1 && look.step <= 10 && look.typical > kReplaced;
        });
        if (was_replaced && loss_.count() >= 3 * patience_ && loss_.steps_to_highest() <= 12 &&
            loss_.highest() > 1.1 * loss_.start() && level > 0.3 * start)
            return "wrecked";
        // Adam's first updates are of one size, the rate's, and go one way: a few of them replace as much.
        // What they broke may be learned anew, slowly.
        if (moved_ > kReplaced && loss_.count() >= 3 * patience_ && did_moves_harm() &&
            !loss_.has_learned_much())
            return "replaced";
        if (has_jumped()) return "jumped";
        if (is_by_schedule()) return "schedule";
        return rises_again() ? "rises_again" : nullptr;
    }

    // Nothing moves any more, once units have died of the first steps.
    [[nodiscard]] bool has_jumped() const {
        // One loss alone says little where batches are small and any loss is far from the one before.
        const double far = jump_ * worst_start(), highest = loss_.highest();
        // A first loss may be low by chance.
        const bool was_high = peak_ > far && peak_ - worst_start() > 4 * loss_.noise();
        const bool jumped =
            highest > far && (was_high || highest > 10 * far || surprise_ >= kSurprise || jumped_at_once());
        if (!jumped || loss_.count() < 2 * patience_ || loss_.has_vague_start()) return false;
        // Where nothing at all was learned, less will do.
        const double limit = loss_.has_learned() ? update_ : update_ / 3;
        if (updates_.worst().typical <= limit || loss_.has_learned_much()) return false;
        // One that goes on with what another one has learned has little left to learn.
        if (loss_.level() < 0.5 * start_before_) return false;
        // Where losses jump all the time, those that jump when updates have long been small have another
        // reason, such as other data.
        if (updates_.worst().typical <= update_ && jumps_by_itself() && !was_large_before_jump(update_ / 3))
            return false;
        const auto means = loss_.blocks().means();
        if (means.size() < 20) return false;
        const bool stands = trend_z(means.last(means.size() / 2)) > -2;
        return stands && (mostly_above(update_ / 5) || !loss_.has_learned());
    }

    // One of the first ten losses is far above the start, and above what losses stray by. Before them no
    // noise is known: it is that of now, which was larger in proportion where the loss was. Of a few samples
    // each, the first loss may be low by chance and a later one high.
    [[nodiscard]] bool jumped_at_once() const {
        const double from = worst_start(), highest = loss_.highest(), level = loss_.level();
        if (loss_.steps_to_highest() >= 10 || highest <= 2 * jump_ * from) return false;
        const double grown = level > 0 ? std::max(1.0, from / level) : 1;
        return highest - from > kSurpriseAtOnce * loss_.noise() * grown;
    }

    // A tenth of the last losses is as far above their median as a jump is above the start.
    [[nodiscard]] bool jumps_by_itself() const {
        const auto recent = loss_.recent().values();
        std::vector<double> sorted(recent.begin(), recent.end());
        std::sort(sorted.begin(), sorted.end());
        return sorted.size() >= 10 && sorted[sorted.size() - 1 - sorted.size() / 10] > jump_ * median(sorted);
    }
    // The last look up to the highest loss saw updates above `limit`, or there is none.
    [[nodiscard]] bool was_large_before_jump(double limit) const {
        const auto& looks = updates_.looks();
        const auto last = std::find_if(looks.rbegin(), looks.rend(),
                                       [&](const auto& look) { return look.step <= loss_.highest_step(); });
        return last == looks.rend() || last->typical > limit;
    }

    void fire(const model::StepView& step, FindingSink& sink) const {
        // What it is now, where it is still too large.
        const WeightUpdates::Look& look = is_about_worst() ? updates_.worst() : updates_.last();
        const std::string_view key = firing_;
        const double ratio = look.typical;
        model::Finding finding;
        finding.key = key;
        finding.severity = key == "above_start" ? model::Severity::kError
                           : agent_.is_taught() ? model::Severity::kInfo
                                                : model::Severity::kWarning;
        finding.first_step = key == "rises_again" ? best_step_ : 0;
        finding.tensor = "update_ratio/" + look.place;
        finding.layer = look.place.substr(0, look.place.rfind('.'));
        const std::string what = base::format(
            "A typical update was {} times the weights' own size at step {} (the largest, of {}, {} times)",
            human_number(ratio), look.step, place_in_words(finding.tensor), human_number(look.largest));
        if (key == "above_start")
            finding.message =
                base::format("{}, and the loss has risen from {} to {} by step {}.", what,
                             human_number(loss_.start()), human_number(loss_.level()), step.step());
        else if (key == "stalled")
            finding.message =
                base::format("{}, and after {} steps the loss is {}, {} at the start.", what, loss_.count(),
                             human_number(loss_.level()), human_number(loss_.start()));
        else if (key == "wrecked")
            finding.message = base::format(
                "{}: half of each matrix was replaced in one step. The loss jumped from {} to {} at step {}; "
                "after {} steps it is {}.",
                what, human_number(loss_.start()), human_number(loss_.highest()), loss_.highest_step(),
                loss_.count(), human_number(loss_.level()));
        else if (key == "replaced")
            finding.message = base::format(
                "Typical updates of the first three steps add up to {} times the weights' own size: most of "
                "what was drawn is gone. The loss jumped from {} to {} at step {}; after {} steps it is {}.",
                human_number(moved_), human_number(loss_.start()), human_number(loss_.highest()),
                loss_.highest_step(), loss_.count(), human_number(loss_.level()));
        else if (key == "schedule")
            finding.message = base::format(
                "{}. The schedule made the rate {} times the {} that it multiplies, {} at step {}, and the "
                "loss fell back: it was {} around step {}, and is {}; it started at {}.",
                what, human_number(rates_.peak() / rates_.base()), human_number(rates_.base()),
                human_number(rates_.peak()), rates_.peak_step(), human_number(best_), best_step_,
                human_number(loss_.level()), human_number(loss_.start()));
        else if (key == "rises_again")
            finding.message = base::format(
                "{}. The loss had fallen from {} to {} around step {} and rises since, bit by bit, to {} at "
                "step {}, with a learning rate of {}.",
                what, human_number(loss_.start()), human_number(best_), best_step_,
                human_number(loss_.level()), step.step(), human_number(rates_.now()));
        else
            finding.message =
                base::format("{}; the loss jumped from {} to {} at step {} and stands still at {} since.",
                             what, human_number(loss_.start()), human_number(loss_.highest()),
                             loss_.highest_step(), human_number(loss_.level()));
        finding.fix = capitalised(lower_learning_rate(*step.meta, std::clamp(0.01 / ratio, 1e-3, 0.1))) +
                      ", until updates are about a thousandth of the weights.";
        if (key == "schedule")
            finding.fix =
                "What the schedule's function returns multiplies the optimizer's rate: let a warm-up end at "
                "1 (divide by the number of its steps).";
        finding.evidence.push_back({"update / weight", ratio, "limit", update_});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.evidence.push_back(
            {"highest loss", loss_.highest(), "at step", static_cast<double>(loss_.highest_step())});
        summed_.explain(finding);
        finding.plots = {{finding.tensor, "value"}, {loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    double update_, jump_;
    std::uint64_t patience_;
    std::uint64_t judged_ = 0;
    const char* firing_ = nullptr;
    bool is_of_before_ = false;  // `firing_` was told of a trial that is over
    std::uint64_t trials_ = 0;   // that are over
    bool did_rate_rise_ = false;
    double lowest_rate_ = 0, highest_rate_ = 0;  // at their peaks
    double start_before_ = 0;                    // of trainings before this one in the same process
    double peak_ = 0;                            // largest median of ten losses in a row
    double best_ = 0;                            // lowest one
    model::StepIndex best_step_ = 0;
    std::uint64_t fallen_back_ = 0;  // steps in a row
    EvaluationLoss evaluation_;
    std::uint64_t risen_ = 0;          // steps in a row above a multiple of the lowest one
    double moved_ = 0;                 // typical updates of the first steps, added up
    std::vector<double> after_moves_;  // losses after each of these steps
    double surprise_ = 0;  // of the highest loss: its distance from the level, in units of the noise
    WeightUpdates updates_;
    LearningRates rates_;
    TrainingLoss loss_;
    Agent agent_;
    SummedLoss summed_;
};

std::vector<model::Requirement> learning_rate_too_high_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kLearningRateTooHigh.name);
    all.push_back(update_requirement(kLearningRateTooHigh.name));
    all.push_back(rate_requirement(kLearningRateTooHigh.name));
    all.push_back(evaluation_loss_requirement(kLearningRateTooHigh.name));
    all.push_back(loop_requirement(kLearningRateTooHigh.name));
    return all;
}

}  // namespace

RuleEntry builtin::learning_rate_too_high() {
    return {&kLearningRateTooHigh, &learning_rate_too_high_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<LearningRateTooHigh>(p);
            }};
}

}  // namespace traindbg::rules
