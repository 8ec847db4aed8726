// The loss rises, collapses, or stays where guessing would be.

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/neighbours.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kLossNotDecreasing = {
    .name = "loss_not_decreasing",
    .title = "Loss not decreasing",
    .summary = "The training loss rises, falls back to its start, or does not get better than guessing.",
    .when =
        "The training loss rises, falls back to where it began after it had learned, or stalls at its "
        "start or at guessing.\n"
        "- Rising (error): the last ten losses all exceed the largest of the first five, and their median "
        "is more than `rise` times the start (four times that, for a sum of several losses). They are not "
        "on their way back.\n"
        "- Rising, not judged: below the loss of guessing, where vectors are compared with each other by a "
        "cross-entropy whose labels are all 0 (InfoNCE).\n"
        "- Rising, after less than a tenth of the start had been left: none of the ten losses before these "
        "is below the start either.\n"
        "- Rising at once (error): the last five losses exceed the largest of the first a hundred-fold, or "
        "the median of the last ten is a billion times the start.\n"
        "- Relapse (warning): for 50 steps the loss is back at more than 60 % of the way from its best "
        "level to its start.\n"
        "- Stalled (warning), from `min_steps` steps on, or at the end of a run from 100 steps on: over "
        "the second half of the run the loss has no downward trend (Mann-Kendall z > -2.5) and gained less "
        "than `tolerance`, allowing three standard errors. The gradients do not grow.\n"
        "- Stalled, where labels are counted: the loss is also not better than guessing (the entropy of "
        "the labels, ln C for C equal classes).\n"
        "- Stalled, where labels are not counted: the loss is also not below the start by `tolerance`, "
        "allowing three standard errors. These are not allowed where each of the last three evaluations is "
        "as far below the start, and no farther below the training loss.\n"
        "- Not a stall: eight or more evaluations of a regression, by whatever loss function, gained half "
        "of `tolerance` with a downward trend.\n"
        "- A regression, note only (info), at the end of a run, from `min_steps` steps on: it is a stall "
        "but for the standard errors. Also, eight or more evaluations gained less than `tolerance` without "
        "a trend, or of 250 or more rows of the inputs the labels of nearest ones are as unlike as those "
        "of any two, within 10 %.\n"
        "- At the end of 100 steps or more (warning): the loss is above 95 % of guessing and above 90 % of "
        "the start, and each of three or more evaluations was above 99 % of guessing. Where the loss began "
        "more than 10 % above guessing, it must also have no trend over the second half.\n"
        "- At the end of `min_steps` steps or more (warning), for three to twenty classes: the loss is "
        "above 90 % of guessing, and evaluations were above 95 %. Of 250 or more rows of the inputs, the "
        "labels of nearest ones are as unlike as those of any two, within 10 %.\n"
        "- The same at the end of a shorter run, from 100 steps on: the loss is above 95 % of guessing, "
        "and has no trend over the second half or rows came four times or more.",
    .why = "A loss that does not fall means that the model does not learn what it is asked to.",
    .fix =
        "Rising: lower the learning rate. Stalled: check that labels belong to their inputs, that the "
        "optimizer has the model's parameters, that the learning rate is neither 0 nor far too large; see "
        "whether the model can learn a single batch by heart.",
    .healthy =
        "A converged training, also a resumed one; warm-up; noise; short runs; a plateau that the training "
        "is about to leave, because its gradients grow; a loss made by hand that need not fall (policy "
        "gradients), and trainings with several optimizers (GANs): those get a note (info), and so does a "
        "loss that rises while evaluations get better by a quarter, because what is trained on became "
        "harder, or while the targets of a regression grow far more than it does, as values do that are "
        "learned from seldom rewards. The same for the regression of a model that is asked without gradients "
        "at nearly all steps, in training mode and for no loss, as an agent is that acts and learns, once "
        "the mean square of its targets has doubled. A note (info) where a program adds up discounted "
        "rewards or its loss is that of a policy, until the loss is a hundred times that of its start.",
    .cost =
        "One number a step; the classes of every 5th batch; gradients at the first 20 steps and then every "
        "10th; a comparison of some hundred rows of the first inputs with each other, once.",
    .original = "LossNotDecreasing",
    .source = "Mann, \"Nonparametric tests against trend\", Econometrica 13 (1945)",
    .severity = model::Severity::kError,
    .parameters = {{"min_steps", "steps", 300, 20, 1e9, "steps with a loss before a stall is judged"},
                   {"tolerance", "share", 0.02, 0, 1, "gain that counts as none"},
                   {"rise", "times", 1.5, 1, 1e6, "level over the start that counts as rising"}},
};

class LossNotDecreasing final : public Rule {
  public:
    explicit LossNotDecreasing(const Parameters& parameters)
        : min_steps_(static_cast<std::uint64_t>(parameters.at("min_steps"))),
          tolerance_(parameters.at("tolerance")),
          rise_(parameters.at("rise")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (is_to_rise(*step.meta)) return;
        if (step.mode() == model::Mode::kTrain && loop_fact(step, "trainings")) {
            seen_ = Seen();  // another one begins, as the loss does
            rows_ = RowsChange();
            neighbours_ = Neighbours();
        }
        rows_.observe(step);
        agent_.observe(step);
        if (step.mode() == model::Mode::kEval) return note_evaluation(step);
        note_gradients(step);
        neighbours_.observe(step);
        contrast_.observe(step);
        if (!loss_.observe(step)) return;
        evaluated_as_ = name_in_evaluations(step);
        if (const auto written = loop_fact(step, "loss_is_written_out"))
            seen_.is_written_out = written->value != 0;
        note_targets(step);
        if (seen_.evaluated > 0) {
            const double evaluation = seen_.sum / static_cast<double>(seen_.evaluated);
            seen_.best_evaluation = std::min(seen_.best_evaluation, evaluation);
            seen_.last_evaluation = evaluation;
            // Lower than what the model is trained with it may be by dropout alone.
            const double gain = tolerance_ * std::abs(loss_.start());
            const bool agrees = evaluation < loss_.start() - gain && evaluation > loss_.level() - gain;
            seen_.agreed_in_a_row = agrees ? seen_.agreed_in_a_row + 1 : 0;
            ++seen_.evaluations;
            seen_.sum = 0;
            seen_.evaluated = 0;
        }
        seen_.evaluation_of_any_ends();
        const std::uint64_t n = loss_.count();
        if (n >= kFirst) ++judged_;
        if (n >= 10) {
            const double level = loss_.level();
            if (n == 10 || level < seen_.best) {
                seen_.best = level;
                seen_.best_step = step.step();
                seen_.evaluation_at_best = seen_.last_evaluation;
            }
            if (level <= (seen_.best + loss_.start()) / 2) seen_.evaluations_before_rise = seen_.evaluations;
            seen_.relapsed = has_relapsed(level) ? seen_.relapsed + 1 : 0;
        }
        last_ = step.step();
        if (n % 50 == 1) meta_ = *step.meta;
        const bool rising = is_rising();
        set("rising", rising, sink);
        if (n % 10 == 0 || n < 100) set("relapse", !rising && seen_.relapsed >= 50, sink);
        if (n >= min_steps_ && n % 10 == 0)
            set("stalled", !rising && (firing_.contains("stalled") ? !has_set_off() : is_stalled()), sink);
    }
    // There is nothing more to wait for.
    void on_end(FindingSink& sink) override {
        seen_.evaluation_of_any_ends();
        if (loss_.count() < kShort || !firing_.empty()) return;
        stands_still_ = loss_.count() < min_steps_ && is_stalled();
        if (stands_still_ || has_learned_nothing() || are_labels_without_signal()) set("stalled", true, sink);
        else if (loss_.count() >= min_steps_ && is_stalled(Doubt::kAgainst) && is_flat_by_all_that_is_known())
            fire_without_signal(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return loss_.count() == 0 ? "no training loss was seen: is backward() called on it?"
                                  : base::format("training steps with a loss: {}; it judges from {} on",
                                                 loss_.count(), kFirst);
    }

  private:
    static constexpr std::uint64_t kFirst = 12;
    static constexpr std::uint64_t kShort = 100;  // fewest steps of a run that is judged at its end
    static constexpr std::uint64_t kGradientsEvery = 10;
    static constexpr std::uint64_t kFewEvaluations = 3;
    static constexpr double kMuchBetter = 0.75;  // a gain that is no evaluation's noise
    static constexpr double kRunaway = 100;      // times the start
    static constexpr double kNearlyAll = 0.1;    // of the start, that is left
    static constexpr double kGrownSquare = 2;    // mean square of an agent's targets
    static constexpr double kLarger = 4,
                            kOutOfProportion = 1000;  // times the mean square of the first targets

    // Of one training.
    struct Seen {
        double targets_at_first = 0, targets_now = 0;  // mean squares of a regression's
        double best = 0;
        model::StepIndex best_step = 0;
        std::uint64_t relapsed = 0;
        double best_evaluation = std::numeric_limits<double>::infinity();
        double sum = 0;  // of the evaluation that goes on, of `evaluated` steps
        std::uint64_t evaluated = 0, evaluations = 0;
        std::string any;  // the first loss function of evaluations, whichever it is
        double sum_of_any = 0;
        std::uint64_t of_any = 0;
        Blocks evaluations_by_any;
        bool is_written_out = false;  // the loss is a mean of squared or absolute differences
        double last_evaluation = 0, evaluation_at_best = 0;
        std::uint64_t evaluations_before_rise = 0;  // until the loss had risen half the way to its start
        std::uint64_t agreed_in_a_row = 0;          // evaluations below the first losses, as training was
        Blocks gradients;

        void evaluation_of_any_ends() {
            if (of_any > 0) evaluations_by_any.add(sum_of_any / static_cast<double>(of_any));
            sum_of_any = 0;
            of_any = 0;
        }
    };

    // The typical size of a weight matrix's gradient, each matrix counting the same, as a logarithm. On a
    // plateau that a training is about to leave it grows long before the loss falls.
    void note_gradients(const model::StepView& step) {
        if (step.mode() != model::Mode::kTrain || step.step_of_run() % kGradientsEvery != 0) return;
        double sum = 0;
        std::size_t matrices = 0;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kGradient || info.shape.size() < 2 || sample.statistics.l2 <= 0)
                continue;
            sum += std::log(sample.statistics.l2);
            ++matrices;
        }
        if (matrices > 0) seen_.gradients.add(sum / static_cast<double>(matrices));
    }
    [[nodiscard]] bool gathers_way() const {
        const auto means = seen_.gradients.means();
        return trend_z(means.last(means.size() - means.size() / 2)) > 2;
    }

    // What backward() is called on has no name in an evaluation; that of the one function has, if it is that.
    [[nodiscard]] std::string name_in_evaluations(const model::StepView& step) const {
        std::optional<double> total;
        const model::TensorInfo* function = nullptr;
        double value = 0;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_first_loss(info)) continue;
            if (info.name == loss_.tensor()) total = sample.value;
            if (!info.name.starts_with("loss/")) continue;
            if (function != nullptr && function != &info) return loss_.tensor();
            function = &info;
            value = sample.value;
        }
        return total && function != nullptr && std::abs(value - *total) <= 1e-6 * std::abs(*total)
                   ? function->name
                   : loss_.tensor();
    }
    void note_evaluation(const model::StepView& step) {
        for (const model::ScalarSample& sample : step.record->scalars) {
            const std::string& name = step.info(sample.tensor).name;
            if (!std::isfinite(sample.value)) continue;
            if (seen_.any.empty() && name.starts_with("loss/")) seen_.any = name;
            if (name == seen_.any) {
                seen_.sum_of_any += sample.value;
                ++seen_.of_any;
            }
            if (name != evaluated_as_) continue;
            seen_.sum += sample.value;
            ++seen_.evaluated;
        }
    }
    // Neither what it trains with nor other data is told better than by guessing, though a few samples may be
    // known by heart.
    [[nodiscard]] bool has_learned_nothing() const {
        const std::optional<double> base = loss_.base_rate();
        if (!base || loss_.level() <= 0.95 * *base || seen_.evaluations < kFewEvaluations ||
            seen_.best_evaluation <= 0.99 * *base ||
            loss_.level() <= 0.9 * loss_.start())  // of a loss with weights, guessing is not known
            return false;
        // From far above guessing, as in a warm-up, the way down to it is learning, too.
        const auto means = loss_.blocks().means();
        return loss_.start() <= 1.1 * *base || trend_z(means.last(means.size() / 2)) > -2.5;
    }
    // It is above 90 % of guessing after so many steps, and by all that a distance tells, inputs have nothing
    // to do with their labels: what it still learns is known by heart. With many classes hardly any row has
    // one of its own class beside it.
    [[nodiscard]] bool are_labels_without_signal() const {
        const std::optional<double> base = loss_.base_rate();
        constexpr std::size_t kMostClasses = 20;
        constexpr double kOften = 4;
        // Of fewer steps, it must be no better than guessing, and not on its way; unless its rows came so
        // often that they may be known by heart.
        const bool is_short = loss_.count() < min_steps_;
        const auto means = loss_.blocks().means();
        if (is_short &&
            (means.size() < 20 || (trend_z(means.last(means.size() / 2)) < -2.5 && rows_.times() < kOften)))
            return false;
        return base && loss_.classes() > 2 && loss_.classes() <= kMostClasses && are_neighbours_unlike() &&
               loss_.level() > (is_short ? 0.95 : 0.9) * *base &&
               (seen_.evaluations == 0 || seen_.best_evaluation > 0.95 * *base);
    }

    // By all that a distance tells, inputs have nothing to do with their labels.
    [[nodiscard]] bool are_neighbours_unlike() const {
        constexpr double kFewestRows = 250, kNear = 0.1;
        const std::optional<double> unlike = neighbours_.unlike();
        return unlike && neighbours_.rows() >= kFewestRows && std::abs(*unlike - 1) < kNear;
    }
    [[nodiscard]] bool is_of_numbers() const {
        return !loss_.is_game() && (seen_.is_written_out || is_regression(function_of_loss(evaluated_as_)));
    }
    // Of a regression's evaluations, by whatever function: they are of many rows, and so know better than the
    // loss of single batches. Nothing where they are few.
    struct Evaluations {
        double first, late;
        bool falls;
    };
    [[nodiscard]] std::optional<Evaluations> evaluations() const {
        constexpr std::size_t kMany = 8;
        const auto means = seen_.evaluations_by_any.means();
        if (!is_of_numbers() || means.size() < kMany) return std::nullopt;
        const auto late = means.last(means.size() / 2);
        return Evaluations{means.front(), median({late.begin(), late.end()}), trend_z(means) < -2.5};
    }
    [[nodiscard]] bool are_evaluations_flat() const {
        const auto seen = evaluations();
        return seen && !seen->falls && seen->first - seen->late <= tolerance_ * std::abs(seen->first);
    }
    // Evaluations of a regression stand still as well, or its inputs have nothing to do with their labels, by
    // all that a distance tells.
    [[nodiscard]] bool is_flat_by_all_that_is_known() const {
        return is_of_numbers() && (are_evaluations_flat() || are_neighbours_unlike());
    }

    // Evaluations, one of them since the loss rose, are much better than when the training's loss was at its
    // best: what is trained on became harder, as it does where a model is given more and more of its own
    // outputs. That makes no loss a hundred times as large.
    [[nodiscard]] bool is_harder() const {
        return is_of_larger_targets() || makes_targets() ||
               (seen_.evaluations >= kFewEvaluations && seen_.evaluations > seen_.evaluations_before_rise &&
                seen_.evaluation_at_best > 0 &&
                seen_.last_evaluation < kMuchBetter * seen_.evaluation_at_best &&
                loss_.level() <= kRunaway * loss_.start());
    }
    // The targets of a regression are values that the model itself, or a copy of it, is asked for.
    [[nodiscard]] bool makes_targets() const {
        return agent_.is_on() && seen_.targets_at_first > 0 && loss_.classes() == 0 &&
               seen_.targets_now > kGrownSquare * seen_.targets_at_first;
    }
    // What is predicted has grown from next to nothing, as values do that are learned from seldom rewards:
    // the loss is as small a part of it as before. Beyond bounds it may have grown with the predictions.
    [[nodiscard]] bool is_of_larger_targets() const {
        const double growth = seen_.targets_now / std::max(seen_.targets_at_first, 1e-12);
        return seen_.targets_at_first > 0 && growth > kLarger && growth < kOutOfProportion &&
               loss_.level() < seen_.targets_now && loss_.level() < 2 * growth * loss_.start();
    }
    void note_targets(const model::StepView& step) {
        for (const LossCall& call : loss_calls(step)) {
            if (!is_regression(call.function) || call.labelled == nullptr) continue;
            const double square =
                call.labelled->std * call.labelled->std + call.labelled->mean * call.labelled->mean;
            if (loss_.count() <= kFirst) seen_.targets_at_first = std::max(seen_.targets_at_first, square);
            seen_.targets_now = square;
            return;
        }
    }

    [[nodiscard]] bool is_rising() const {
        const double start = loss_.start();
        if (start <= 0) return false;
        // Vectors that were drawn are replaced by those of samples, which are harder to tell apart.
        if (contrast_.is_on() && loss_.level() < contrast_.guessing()) return false;
        const auto five = loss_.recent().last(5);
        if (loss_.count() >= 8) {
            // A runaway: no need to wait for more of it.
            const bool far = std::all_of(five.begin(), five.end(),
                                         [&](double value) { return value > kRunaway * loss_.start_top(); });
            if (far && five.back() >= five.front()) return true;
        }
        // Beyond all bounds from its first steps on: the largest of these is no measure then.
        constexpr double kOutOfBounds = 1e9;
        if (loss_.count() >= kFirst && loss_.level() > kOutOfBounds * std::max(start, 1e-3)) return true;
        if (loss_.count() < 25) return false;
        const auto last = loss_.recent().last(10);
        const double least = *std::min_element(last.begin(), last.end());
        const double level = loss_.level();
        if (least <= std::max(loss_.start_top(), 1.2 * loss_.base_rate().value_or(0))) return false;
        const double rise = (loss_.is_sum_of_several() ? 4 : 1) * rise_;
        if (level <= rise * start || level - start < 5 * loss_.noise() / std::sqrt(10.0)) return false;
        const auto twenty = loss_.recent().last(20);
        const auto before = twenty.first(twenty.size() - 10);
        const double earlier = median({before.begin(), before.end()});
        // It had learned nearly all, and has only just jumped, as where what is trained on became harder:
        // which way it goes shows in ten more steps.
        if (seen_.best < kNearlyAll * start && *std::min_element(before.begin(), before.end()) < start)
            return false;
        return level >= 0.9 * earlier;
    }

    [[nodiscard]] bool has_relapsed(double level) const {
        const double learned = loss_.start() - seen_.best;
        return loss_.start() > 0 && learned > 0.3 * loss_.start() && level > seen_.best + 0.6 * learned &&
               level - seen_.best > 5 * loss_.noise() / std::sqrt(10.0);
    }

    // In whose favour what single batches leave open counts.
    enum class Doubt { kFor, kAgainst };
    [[nodiscard]] bool is_stalled(Doubt doubt = Doubt::kFor) const {
        const auto means = loss_.blocks().means();
        if (means.size() < 20) return false;
        const auto late = means.last(means.size() / 2);
        const auto third = late.size() / 3;
        const auto level_of = [](std::span<const double> part) { return median({part.begin(), part.end()}); };
        const double begin = level_of(late.first(third)), end = level_of(late.last(third));
        const double noise = noise_of(late);
        const double error = 1.25 * noise * std::sqrt(2.0 / static_cast<double>(third));
        const double level = level_of(late);
        if (const auto seen = evaluations();
            seen && seen->falls && seen->first - seen->late > tolerance_ / 2 * std::abs(seen->first))
            return false;
        const double allowed_gain = doubt == Doubt::kFor ? 3 * error : -2 * error;
        if (begin - end + allowed_gain > std::max(tolerance_ * std::abs(loss_.start()), 0.0)) return false;
        if (trend_z(late) < -2.5 || gathers_way()) return false;
        if (const std::optional<double> base = loss_.base_rate()) return level > 0.95 * *base;
        // Of a signal that is weak, evaluations of many samples know: with them a small gain is no chance.
        const double allowed = seen_.agreed_in_a_row >= kFewEvaluations ? 0 : 3 * error;
        return level > loss_.start() - tolerance_ * std::abs(loss_.start()) - allowed;
    }

    // As at the noise of what cannot be told, and as where labels do not belong to their inputs.
    void fire_without_signal(FindingSink& sink) const {
        model::Finding finding;
        finding.key = "without_signal";
        finding.severity = model::Severity::kInfo;
        finding.tensor = loss_.tensor();
        finding.plots = {{loss_.tensor(), "value"}};
        finding.message = base::format(
            "The loss is where it began, {} after {} steps and {} at the start, as far as single batches "
            "tell: the inputs may say next to nothing about the numbers that are to be told, as returns of a "
            "market do, or the labels belong to other inputs.",
            human_number(loss_.level()), loss_.count(), human_number(loss_.start()));
        finding.fix =
            "Nothing, if so little is to be expected. Else look at a dozen samples of a batch with their "
            "labels, and try whether the model can learn one batch by heart.";
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        for (model::Evidence& item : neighbours_.evidence()) finding.evidence.push_back(std::move(item));
        if (are_evaluations_flat())
            finding.evidence.push_back(
                {"loss of evaluations", evaluations()->late, "at first", evaluations()->first});
        sink.fire(std::move(finding));
    }

    // Out of a stall: not one lucky test, but a clear trend or a clear gain.
    [[nodiscard]] bool has_set_off() const {
        const auto means = loss_.blocks().means();
        return loss_.has_learned() || trend_z(means.last(means.size() / 2)) < -4;
    }

    void set(const char* key, bool on, FindingSink& sink) {
        const bool was = firing_.contains(key);
        if (on) {
            fire(key, sink);
            firing_.insert(key);
        } else if (was) {
            sink.clear(key);
            firing_.erase(key);
        }
    }

    void fire(std::string_view key, FindingSink& sink) const {
        const std::optional<double> base = loss_.base_rate();
        const double level = loss_.level();
        // A sum that begins and stays below zero has terms that a loss function does not give, as the
        // objective of a policy, which need not fall.
        const bool is_below_zero =
            key == "stalled" && loss_.tensor() == "loss" && loss_.start() < 0 && level < 0;
        const bool is_agents = agent_.is_taught() && level <= kRunaway * loss_.start();
        const bool note_only = loss_.is_game() || !loss_.is_known_function() || is_below_zero || is_agents;
        model::Finding finding;
        finding.key = key;
        finding.tensor = loss_.tensor();
        finding.plots = {{loss_.tensor(), "value"}};
        finding.evidence.push_back({"loss", level, "at the start", loss_.start()});
        if (base) finding.evidence.push_back({"loss", level, "of guessing", *base});
        finding.evidence.push_back(
            {"highest loss", loss_.highest(), "at step", static_cast<double>(loss_.highest_step())});
        const std::string guess =
            base ? base::format("; guessing gives {}", human_number(*base)) : std::string();
        const std::string rate = capitalised(lower_learning_rate(meta_, 0.1));
        if (key == "rising") {
            finding.severity = note_only || is_harder() ? model::Severity::kInfo : model::Severity::kError;
            if (!loss_.is_known_function() && !loss_.is_game() && level > kRunaway * loss_.start())
                finding.severity = model::Severity::kWarning;
            finding.message =
                base::format("The loss rises: {} over the last ten steps up to step {}, {} at the start{}.",
                             human_number(level), last_, human_number(loss_.start()), guess);
            finding.fix = rate + ".";
        } else if (key == "relapse") {
            finding.severity = note_only || is_harder() ? model::Severity::kInfo : model::Severity::kWarning;
            finding.message = base::format(
                "The loss fell back: it was {} around step {}, and has been around {} for {} steps; it "
                "started at {}{}.",
                human_number(seen_.best), seen_.best_step, human_number(level), seen_.relapsed,
                human_number(loss_.start()), guess);
            finding.fix = rate + ", or let it decay; clip gradients if single batches throw it off.";
            finding.evidence.push_back(
                {"best loss", seen_.best, "at step", static_cast<double>(seen_.best_step)});
        } else {
            finding.severity = note_only || is_harder() ? model::Severity::kInfo : model::Severity::kWarning;
            const bool jumped =
                loss_.start() > 0 && loss_.highest() > 2 * loss_.start() && loss_.highest() > 2 * level;
            finding.message =
                base
                    ? base::format(
                          "The loss {} {} after {} steps, no better than guessing ({}, from the labels of {} "
                          "classes).",
                          stands_still_ ? "stands still at" : "is", human_number(level), loss_.count(),
                          human_number(*base), loss_.classes())
                    : base::format("The loss stands still at {} after {} steps; it started at {}.",
                                   human_number(level), loss_.count(), human_number(loss_.start()));
            if (jumped)
                finding.message += base::format(" It jumped to {} at step {}.", human_number(loss_.highest()),
                                                loss_.highest_step());
            for (model::Evidence& item : neighbours_.evidence()) finding.evidence.push_back(std::move(item));
            for (model::Evidence& item : rows_.evidence()) finding.evidence.push_back(std::move(item));
            finding.fix =
                jumped
                    ? rate + "."
                    : "Check that labels belong to their inputs, that the optimizer was given "
                      "model.parameters(), and the learning rate; try whether the model can learn one batch "
                      "by heart.";
        }
        if (!loss_.is_game() && (is_of_larger_targets() || makes_targets())) {
            finding.fix =
                "Nothing, if values are learned that grow, as of seldom rewards. Else: " + finding.fix;
            finding.evidence.push_back(
                {"mean square of the targets", seen_.targets_now, "of the first", seen_.targets_at_first});
        } else if (!loss_.is_game() && is_harder())
            finding.fix = base::format(
                "Nothing, if what is trained on became harder: evaluations gave {} when the loss was at its "
                "best, and give {} now. Else: {}",
                human_number(seen_.evaluation_at_best), human_number(seen_.last_evaluation), finding.fix);
        if (loss_.is_game())
            finding.fix =
                "Nothing, if the optimizers work against each other, as in a GAN: such losses need not "
                "fall. If they share one goal: " +
                finding.fix;
        sink.fire(std::move(finding));
    }

    std::uint64_t min_steps_;
    double tolerance_, rise_;
    std::uint64_t judged_ = 0;
    bool stands_still_ = true;  // what is stalled does; else it is only no better than guessing
    std::string evaluated_as_;  // the name of the loss in evaluations
    model::StepIndex last_ = 0;
    model::WorkerMeta meta_;
    std::set<std::string, std::less<>> firing_;
    TrainingLoss loss_;
    Contrast contrast_;
    Agent agent_;
    Neighbours neighbours_;
    RowsChange rows_;
    Seen seen_;
};

std::vector<model::Requirement> loss_not_decreasing_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kLossNotDecreasing.name);
    all.push_back({"gradients",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 10, .dense_until = 20},
                   kLossNotDecreasing.name});
    all.push_back(
        {"losses", model::Mode::kEval, model::What::kStatistics, {.every = 1}, kLossNotDecreasing.name});
    for (model::Requirement& more : neighbour_requirements(kLossNotDecreasing.name))
        all.push_back(std::move(more));
    for (model::Requirement& more : row_requirements(kLossNotDecreasing.name)) all.push_back(std::move(more));
    for (model::Requirement& more : argument_requirements(kLossNotDecreasing.name))
        all.push_back(std::move(more));
    return all;
}

}  // namespace

RuleEntry builtin::loss_not_decreasing() {
    return {
        &kLossNotDecreasing, &loss_not_decreasing_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<LossNotDecreasing>(p); }};
}

}  // namespace traindbg::rules
