// A schedule that takes the learning rate away long before the training is over.

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

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

const model::RuleInfo kScheduleCollapsed = {
    .name = "schedule_collapsed",
    .title = "Schedule collapsed",
    .summary =
        "The learning rate fell to almost nothing long before the end, and the loss stands still since.",
    .when =
        "The learning rate has fallen to almost nothing and stays there, or a ReduceLROnPlateau cuts it "
        "because its mode is the wrong way round.\n"
        "- Almost nothing: the largest learning rate of the optimizer's groups is less than 1/`fall` of "
        "its highest value so far. This has lasted for at least `patience` steps, and for longer than the "
        "rate was above that. At the end of the run, more than `share` of its steps is enough in place of "
        "the latter.\n"
        "- Progress ended (warning): the loss has not fallen by nine tenths since the start, or the rate "
        "has fallen to less than a millionth of its peak. One of the next two items must hold as well.\n"
        "- Too few steps: the training had not set off in fewer than 500 steps with a rate. It had, too, "
        "where "
        "the loss has come back above 95 % of its start from below nine tenths of it.\n"
        "- Still falling: the loss was falling while the rate was above a hundredth of its peak "
        "(Mann-Kendall z < -2.5). Once nine tenths are learned, only the trend of the later half counts.\n"
        "- Neither of the two where the loss is above 95 % of its start while the last of two or more "
        "evaluations is below nine tenths of the first: it has become another loss.\n"
        "- Hardly any rate at all (warning): fewer than a tenth of the steps had a rate above 1/`fall` of "
        "the peak, the rate is less than a millionth of the peak, and not much was learned.\n"
        "- Back at the start (warning): the loss was below nine tenths of its start while there was a rate, "
        "and is above 95 % of it now, where it got by a jump: other weights or other data came that such a "
        "rate cannot learn, as where the weights are drawn anew for each fold.\n"
        "- A jump: within 20 steps the loss rose by more than half of all that it has risen by since it was "
        "lowest (or since the jump before), and by more than twice its noise. A loss that changes slowly by "
        "itself, as with a penalty that grows, has none.\n"
        "- Back at the start is not judged of several optimizers against each other, nor of a policy, nor "
        "where two or more evaluations have a loss and the last one is below nine tenths of the first.\n"
        "- Note only (info): the rate is almost nothing, and none of these warnings holds.\n"
        "- Anew: where load_state_dict() sets all weights back to those of the start, rate and loss count "
        "from there. Not where the schedule went on: the rate is then within half and twice that of the step "
        "before, or, where it had never risen to twice its first, at least a twentieth of it.\n"
        "- Wrong mode (warning): a ReduceLROnPlateau cuts the rate while the first or second number that "
        "it was given is still its best. At least four fifths of the later numbers, and three or more, "
        "moved the other way than it waits for.\n"
        "- Wrong mode=\"max\" (also needed): the numbers are the evaluation loss (two are enough then). Or "
        "they have fallen by a tenth or more and are of the size of the training loss, which has fallen, "
        "too.\n"
        "- Wrong mode=\"min\" (also needed): there are four of these numbers, and the evaluation loss fell "
        "by a tenth or more, almost each time, while they rose. It is known of three evaluations or more, "
        "and of all but three at most of those that gave a number.",
    .why = "With no learning rate every further step is computed in vain.",
    .fix =
        "Call scheduler.step() once per epoch if its settings count epochs; make T_max, total_steps or "
        "step_size fit the number of calls; or choose a weaker decay. Of ReduceLROnPlateau: mode=\"min\" for "
        "a loss or an error, mode=\"max\" for an accuracy.",
    .healthy =
        "Cosine, linear and one-cycle schedules that end near 0 when the training does; warm restarts, which "
        "come back; a schedule that reacts to a loss that stands still (ReduceLROnPlateau), or to an "
        "evaluation loss that rises while the training's falls; a rate that falls when the loss has; a loss "
        "that "
        "becomes a harder one while the rate falls.",
    .cost = "One number where the learning rate changes, five where a ReduceLROnPlateau does that; the loss.",
    .original = "",
    .source = "PyTorch documentation, torch.optim.lr_scheduler.ExponentialLR: decays every epoch",
    .severity = model::Severity::kWarning,
    .parameters = {{"fall", "times", 1000, 10, 1e12, "fall of the rate from its peak"},
                   {"patience", "steps", 30, 5, 1e9, "steps for which it lasts"},
                   {"share", "share", 0.25, 0.05, 1, "of a run that is over"}},
};

// What is told where a ReduceLROnPlateau has cut the rate while one of its first two numbers was still the
// best.
struct WatchedMetric {
    bool wants_higher = false;
    double values = 0, turned = 0;  // `turned`: moved the other way than it waits for
    double first = 0, last = 0;
};

std::optional<WatchedMetric> plateau_of(const model::StepView& step) {
    const std::optional<LoopFact> sense = loop_fact(step, "plateau_sense");
    const std::optional<LoopFact> values = loop_fact(step, "plateau_values");
    const std::optional<LoopFact> turned = loop_fact(step, "plateau_turned");
    const std::optional<LoopFact> first = loop_fact(step, "plateau_first");
    const std::optional<LoopFact> last = loop_fact(step, "plateau_last");
    if (!sense || !values || !turned || !first || !last) return std::nullopt;
    return WatchedMetric{sense->value > 0, values->value, turned->value, first->value, last->value};
}

class ScheduleCollapsed final : public Rule {
  public:
    explicit ScheduleCollapsed(const Parameters& parameters)
        : fall_(parameters.at("fall")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))),
          share_(parameters.at("share")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        evaluation_.observe(step);
        if (step.mode() != model::Mode::kTrain) return;
        if (loop_fact(step, "trainings")) begin_anew();
        has_policy_ = has_policy_ || loop_fact(step, "loss_has_policy").has_value();
        const LearningRates before = rates_;
        rates_.observe(step);
        if (loop_fact(step, "weights_of_start") && !goes_on(before)) {
            if (firing_ != nullptr) sink.clear(firing_);
            const LearningRates rates = rates_;
            begin_anew();
            rates_ = rates;
            rates_.begin_anew(step.step());
            loss_.begin_anew();
        }
        const bool has_loss = loss_.observe(step);
        if (const std::optional<WatchedMetric> plateau = plateau_of(step); plateau)
            if (const std::string_view beside = loss_beside(*plateau); !beside.empty())
                fire_turned(*plateau, beside, step.step(), sink);
        if (has_loss) look_for_jump();
        if (!rates_.is_known() || !(rates_.peak() > 0)) return;
        ++judged_;
        const double now = rates_.now();
        if (now >= rates_.peak() / fall_) {
            ++above_;
            below_ = 0;
            if (has_loss && now >= rates_.peak() / 100) {
                alive_.add(loss_.recent().values().back());
                lively_level_ = loss_.level();
            }
            if (firing_ != nullptr) sink.clear(firing_);
            firing_ = nullptr;
            return;
        }
        if (below_ == 0) since_ = step.step();
        ++below_;
        last_ = step.step();
        if (below_ >= patience_ && below_ > above_) fire(sink);
    }
    void on_end(FindingSink& sink) override {
        const auto steps = static_cast<double>(above_ + below_);
        if (firing_ == nullptr && below_ >= patience_ && static_cast<double>(below_) > share_ * steps)
            fire(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "no learning rate was seen"; }

  private:
    // Another training has a rate of its own.
    void begin_anew() {
        rates_ = LearningRates();
        above_ = below_ = 0;
        alive_ = Blocks();
        firing_ = nullptr;
        is_mode_told_ = has_jumped_ = false;
        lowest_.reset();
        lively_level_ = 0;
    }
    // Whether the schedule went on when the first weights were loaded, which is a fault of its own: rates
    // were not tried out. It may have lowered the rate just then, where it has only lowered it before.
    [[nodiscard]] bool goes_on(const LearningRates& before) const {
        const double lowered = before.peak() > kGoesOn * before.first() ? kGoesOn : kLoweredAtOnce;
        return rates_.now() < kGoesOn * before.now() && lowered * rates_.now() > before.now();
    }
    static constexpr double kGoesOn = 2, kLoweredAtOnce = 20;  // times the rate of the step before
    static constexpr std::uint64_t kTooFew = 500, kFewOf = 10;
    static constexpr double kNothing = 1e-6;                 // of the peak
    static constexpr double kLowered = 0.9, kBackAt = 0.95;  // of the loss at the start
    // A level is a median of ten: a jump is over when all of them are new.
    static constexpr std::size_t kOfLevel = 10, kJump = 20;  // steps
    static constexpr double kMostOfRise = 0.5, kOfNoise = 2;
    static constexpr double kLateEvaluations = 3;  // that may be without a loss, of those with a number
    static constexpr double kFewestEvaluations = 3;
    static constexpr const char *kRate = "rate", *kNote = "rate_note";

    // The loss that fell while a ReduceLROnPlateau waited for the wrong side; empty: it does not.
    [[nodiscard]] std::string_view loss_beside(const WatchedMetric& plateau) const {
        if (loss_.count() == 0 || loss_.is_game() || plateau.turned < 0.8 * (plateau.values - 1)) return {};
        const auto count = static_cast<double>(evaluation_.count());
        if (!plateau.wants_higher) {
            // A loss that is evaluated may rise from the start, where the training learns by heart.
            const bool has_fallen = evaluation_.not_better() <= 1 && evaluation_.last() > 0 &&
                                    evaluation_.last() < 0.9 * evaluation_.first();
            // An evaluation whose labels are not found yet has no loss, at first.
            const bool is_one_each = count <= plateau.values + 1 &&
                                     count >= plateau.values - kLateEvaluations &&
                                     count >= kFewestEvaluations;
            const bool has_risen = plateau.turned > 3 && plateau.last > plateau.first;
            return has_risen && is_one_each && has_fallen ? "evaluation" : "";
        }
        if (!(plateau.last < plateau.first)) return {};
        const auto is_near = [](double a, double b) { return std::abs(a - b) <= 0.01 * std::abs(b); };
        const bool is_loss = count == plateau.values && is_near(plateau.first, evaluation_.first()) &&
                             is_near(plateau.last, evaluation_.last());
        if (is_loss && plateau.turned > 1) return "evaluation";
        // An accuracy that falls while a training learns by heart is beside a much lower loss.
        const double level = loss_.level();
        const bool is_alike = plateau.last > 0.4 * level && plateau.last < 2.5 * level;
        const bool has_fallen = plateau.last < plateau.first - 0.1 * std::abs(plateau.first);
        return plateau.turned > 2 && has_fallen && level < 0.9 * loss_.start() && is_alike ? "training" : "";
    }

    // Next to nothing for nine tenths of the steps and more, and not much was learned: whatever the trend.
    [[nodiscard]] bool left_nothing() const {
        return loss_.count() > 0 && !loss_.is_game() && loss_.is_known_function() &&
               rates_.now() < kNothing * rates_.peak() && kFewOf * above_ < above_ + below_ &&
               !loss_.has_learned_much();
    }
    // Whether the loss got back to where it began at once, and not by and by.
    void look_for_jump() {
        const std::span<const double> recent = loss_.recent().last(kJump + kOfLevel);
        if (recent.size() < kJump + kOfLevel) return;
        const std::span<const double> first = recent.first(kOfLevel);
        const double before = median({first.begin(), first.end()}), level = loss_.level();
        const double start = loss_.start(), rise = level - before;
        lowest_ = std::min(lowest_.value_or(before), before);
        if (level < kLowered * start) has_jumped_ = false;
        if (before > kLowered * start || level < kBackAt * start) return;
        if (rise < kMostOfRise * (level - *lowest_) || rise < kOfNoise * loss_.noise()) return;
        has_jumped_ = true;
        lowest_ = level;
    }
    // The evaluations show that something was learned and is still there.
    [[nodiscard]] bool is_still_good() const {
        return evaluation_.count() >= 2 && evaluation_.last() < kLowered * evaluation_.first();
    }
    [[nodiscard]] bool has_come_back() const {
        const double start = loss_.start();
        return start > 0 && lively_level_ < kLowered * start && loss_.level() > kBackAt * start;
    }
    // Weights that hardly move do not forget at once: others have come, or other data, and are not learned.
    // An evaluation that is as good as before shows that it was the loss that became another one.
    [[nodiscard]] bool is_back_at_start() const {
        return loss_.count() > 0 && !loss_.is_game() && !has_policy_ && has_jumped_ && has_come_back() &&
               !is_still_good();
    }
    // Whether it was the rate that ended the progress.
    [[nodiscard]] bool took_progress() const {
        if (loss_.count() == 0 || loss_.is_game() || !loss_.is_known_function()) return false;
        // No schedule is meant to get to so little and to stay there.
        const bool is_nothing = rates_.now() < kNothing * rates_.peak();
        if (!is_nothing && loss_.start() > 0 && loss_.level() < 0.1 * loss_.start()) return false;
        // It became another loss, of which the trend before tells nothing.
        if (is_still_good() && loss_.level() > kBackAt * loss_.start()) return false;
        const auto means = alive_.means();
        // Too few steps to have got anywhere. What got somewhere and came back did set off.
        const bool has_set_off = loss_.has_learned() || has_come_back();
        if (means.size() < 8 || (!has_set_off && above_ < kTooFew)) return true;
        const bool is_learned = loss_.start() > 0 && loss_.level() < 0.1 * loss_.start();
        return trend_z(means.last(means.size() / 2)) < -2.5 || (!is_learned && trend_z(means) < -2.5);
    }

    void fire_turned(const WatchedMetric& plateau, std::string_view beside, model::StepIndex at,
                     FindingSink& sink) {
        const std::string_view mode = plateau.wants_higher ? "max" : "min";
        const std::string_view other = plateau.wants_higher ? "min" : "max";
        if (!is_mode_told_) first_cut_ = at;
        is_mode_told_ = true;
        model::Finding finding;
        finding.key = "mode";
        finding.severity = model::Severity::kWarning;
        finding.step = at;
        finding.first_step = first_cut_;
        finding.tensor = "loop/learning_rate";
        finding.message = base::format(
            "ReduceLROnPlateau has mode=\"{}\" and cut the learning rate from {} to {}: the best of {:.0f} "
            "numbers that it was given is one of the first two, {}, and {:.0f} of the others were {} than "
            "the one before, {} to {}, while the {} loss fell.",
            mode, human_number(rates_.peak()), human_number(rates_.now()), plateau.values,
            human_number(plateau.first), plateau.turned, plateau.wants_higher ? "lower" : "higher",
            plateau.wants_higher ? "down" : "up", human_number(plateau.last), beside);
        finding.fix = base::format("Give ReduceLROnPlateau mode=\"{}\": what it watches {}.", other,
                                   plateau.wants_higher ? "falls where the training learns, as a loss does"
                                                        : "rises where the training learns, as an accuracy "
                                                          "does");
        finding.evidence.push_back({"last number", plateau.last, "first", plateau.first});
        finding.evidence.push_back(
            {"numbers that moved the other way", plateau.turned, "numbers", plateau.values});
        finding.plots = {{"loop/learning_rate", "value"}};
        sink.fire(std::move(finding));
    }

    void fire(FindingSink& sink) {
        if (is_mode_told_) return;  // that is why
        if (firing_ == nullptr) firing_ = took_progress() ? kRate : kNote;
        if (firing_ == kNote && (left_nothing() || is_back_at_start())) {
            sink.clear(kNote);
            firing_ = kRate;
        }
        const bool real = firing_ == kRate;
        model::Finding finding;
        finding.key = firing_;
        finding.severity = real ? model::Severity::kWarning : model::Severity::kInfo;
        finding.first_step = since_;
        finding.tensor = "loop/learning_rate";
        finding.message = base::format(
            "The learning rate fell from {} (step {}) to {}, below 1/{} of that from step {} on: {} steps "
            "with a rate, {} almost without.",
            human_number(rates_.peak()), rates_.peak_step(), human_number(rates_.now()), human_number(fall_),
            since_, above_, below_);
        if (loss_.count() > 0)
            finding.message += base::format(" The loss was {} then and is {} now.",
                                            human_number(lively_level_), human_number(loss_.level()));
        if (real && is_back_at_start())
            finding.message += base::format(
                " It is back where it began, {}, and got there within {} steps: weights were drawn anew, or "
                "other data came, and the schedule went on.",
                human_number(loss_.start()), kJump);
        finding.fix =
            "If scheduler.step() is called at every batch and its settings count epochs, call it once per "
            "epoch; if weights are drawn anew, as for each fold, make optimizer and scheduler anew, too; "
            "else make T_max, total_steps or step_size as long as the training, or the decay weaker.";
        finding.evidence.push_back({"learning rate", rates_.now(), "peak", rates_.peak()});
        finding.evidence.push_back({"steps almost without a rate", static_cast<double>(below_), "with one",
                                    static_cast<double>(above_)});
        if (loss_.count() > 0)
            finding.evidence.push_back({"loss", loss_.level(), "when the rate fell", lively_level_});
        finding.plots = {{"loop/learning_rate", "value"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
    }

    double fall_;
    std::uint64_t patience_;
    double share_;
    std::uint64_t judged_ = 0, above_ = 0, below_ = 0;
    model::StepIndex since_ = 0, last_ = 0;
    const char* firing_ = nullptr;
    bool is_mode_told_ = false, has_policy_ = false;
    bool has_jumped_ = false;       // to where it began, and has not fallen since
    std::optional<double> lowest_;  // level of the loss since the last jump
    model::StepIndex first_cut_ = 0;
    double lively_level_ = 0;
    Blocks alive_;  // the loss while there was a rate
    LearningRates rates_;
    TrainingLoss loss_;
    EvaluationLoss evaluation_;
};

std::vector<model::Requirement> schedule_collapsed_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kScheduleCollapsed.name);
    all.push_back(rate_requirement(kScheduleCollapsed.name));
    all.push_back(evaluation_loss_requirement(kScheduleCollapsed.name));
    return all;
}

}  // namespace

RuleEntry builtin::schedule_collapsed() {
    return {&kScheduleCollapsed, &schedule_collapsed_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<ScheduleCollapsed>(p);
            }};
}

}  // namespace traindbg::rules
