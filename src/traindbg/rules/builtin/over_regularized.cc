// Regularisation that outweighs the loss: weight decay, a penalty in the loss, dropout.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/added_loss.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/far_from_fit.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kOverRegularized = {
    .name = "over_regularized",
    .title = "Regularisation too strong",
    .summary =
        "A penalty on the weights outweighs the loss and takes them away, or dropout takes nearly all units.",
    .when =
        "Weight decay, a penalty in the loss or dropout is so strong that the weights shrink or the "
        "training cannot come far. Severity: warning.\n"
        "- Measured: the norm of all weight matrices. Where there are none, the norm of all embeddings of "
        "more than one column.\n"
        "- Shrinking weights, after `patience` steps: at each of the last looks the norm fell, to less "
        "than `shrink` of what it was at the start, and the loss has not come far.\n"
        "- Not far means that the loss is no lower than at the start. Or it is more than half of it (or of "
        "guessing, the entropy of the labels) and has no downward trend over the second half (Mann-Kendall "
        "z > -2.5).\n"
        "- Or an `mse_loss` has come to what the mean of the targets gives (above four fifths of it), and "
        "falls no more: at three looks in a row what the model returns differs between samples less than a "
        "fifth as much as the targets, and the norm is below half of `shrink`.\n"
        "- With a `weight_decay`: it must pull harder than half as much as the loss. Compared are decay · "
        "‖w‖ and the norm of the gradient, or for AdamW and its like, decay and a usual update of 1e-3 / "
        "learning rate.\n"
        "- Without a `weight_decay`: the norm must have fallen at four looks in a row, to half of "
        "`shrink`.\n"
        "- Loss that rises again, however far it had come: a `weight_decay` has pulled that hard at some "
        "look, the norm is below half of `shrink`, and the loss rises over the second half (z > 2.5).\n"
        "- That loss must be half as much again as in the eighth of the training where it was lowest, and "
        "more than 30 % of its start.\n"
        "- Penalty in the loss: what `backward()` is called on exceeds the one loss function's value by "
        "more than that value at the start. The excess and the norm of the weights fall to less than "
        "`shrink`, and the total falls.\n"
        "- Of that fall, less than a fifth is the loss function's own. Its value is no better than four "
        "fifths of the best constant answer (three fifths, where the whole loss falls no more), or the "
        "norm is below a twentieth of what it was.\n"
        "- Penalty on the weights, at the end of the run: at five looks or more, the excess is the same "
        "multiple (within 5 %) of the sum of all weights' (or matrices') squares, magnitudes or norms, and "
        "is more than half of the function's value.\n"
        "- Over these looks that sum fell to a third (magnitudes and norms to the root of a third), so "
        "that a penalty on the weights alone is added. The weights' norm must be below four fifths of what "
        "it was.\n"
        "- The whole loss has no trend over its last third, and a classification stands still far from "
        "fitting data that tell more for certain, as for a warning of `underfit`. Its loss is more than a "
        "fifth of the best constant answer's, and less than 95 % of the labels are predicted.\n"
        "- Dropout: a module drops more than `dropout` of its values. Judged after three times `patience` "
        "steps, or at the end of the run, in one of the following cases.\n"
        "- Dropout, slow: the training loss is above half of its start (or of guessing).\n"
        "- Dropout, no better than guessing: the training loss is above nine tenths of the best constant "
        "answer's, and evaluations, if any, are above four fifths of the latter. The start is no measure "
        "there, because what is dropped may lift it far above that answer's loss.\n"
        "- Dropout, far from the evaluation: the training loss is above three times the evaluation loss.",
    .why =
        "The penalty is there to choose among models that fit. Where it is stronger than the loss, the best "
        "model is the one whose weights are 0, and that is where the training goes.",
    .fix =
        "Lower weight_decay to about 1e-4 (AdamW: 1e-2), or the factor of a penalty added to the loss. "
        "Dropout of 0.1 to 0.5: p is the share that is dropped, not the share that is kept.",
    .healthy =
        "Weights that shrink while the loss falls, as those before norm layers do; decay that a gradient "
        "holds in balance; pruning; a loss that is a sum of several, of which the others are no penalty on "
        "weights; strong dropout of a training that learns; weights that shrink where nothing pulls at them: "
        "no decay is set, and the loss is what one function returned.",
    .cost =
        "Norms of weights and gradients at the first two steps and every 20th below 200, then every 50th.",
    .original = "",
    .source = "Ben Braiek, Khomh, \"Testing feedforward neural networks training programs\", TOSEM 32 (2023)",
    .severity = model::Severity::kWarning,
    .parameters = {{"shrink", "share", 0.6, 0.01, 0.99, "norm of the weights now over that at the start"},
                   {"dropout", "share", 0.75, 0.5, 1, "of values dropped above which it is too strong"},
                   {"patience", "steps", 50, 10, 1e9, "steps after which it judges"}},
};

class OverRegularized final : public Rule {
  public:
    explicit OverRegularized(const Parameters& parameters)
        : shrink_(parameters.at("shrink")),
          dropout_(parameters.at("dropout")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))),
          far_({.min_steps = 3 * patience_, .share_told = kHeld, .accuracy = kAccurate}) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        far_.observe(step);
        if (loop_fact(step, "trainings")) is_penalty_told_ = false;  // of another one in the same process
        if (step.mode() == model::Mode::kEval) return note_evaluation(step);
        if (step.mode() != model::Mode::kTrain) return;
        loss_.observe(step);
        added_.observe(step);
        last_ = step.step();
        note_answers(step);
        note_dropout(step, sink);
        look_for_a_penalty(step);
        double weights2 = 0, gradients2 = 0, tables2 = 0, table_gradients2 = 0;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (sample.statistics.not_finite() > 0) continue;
            const double square = sample.statistics.l2 * sample.statistics.l2;
            const bool is_weight = info.role == model::Role::kWeight;
            if (!is_weight && info.role != model::Role::kGradient) continue;
            if (is_matrix(info)) (is_weight ? weights2 : gradients2) += square;
            else if (is_table(info)) (is_weight ? tables2 : table_gradients2) += square;
        }
        has_matrices_ = has_matrices_ || weights2 > 0;
        // A factorisation has tables alone: they are what it is made of.
        if (!has_matrices_) {
            weights2 = tables2;
            gradients2 = table_gradients2;
        }
        if (gradients2 > 0) gradient_norm_ = std::sqrt(gradients2);
        if (weights2 > 0) {
            const double norm = std::sqrt(weights2);
            if (norms_ == 0) first_norm_ = norm;
            falls_ = norms_ > 0 && norm < norm_ ? falls_ + 1 : 0;
            norm_ = norm;
            ++norms_;
        }
        if (loss_.count() < patience_ || norms_ < 3) return;
        ++judged_;
        judge_penalty(step, sink);
        if (weights2 == 0 && firing_) return fire(step, sink);
        const bool is_turn = loss_.count() % 10 == 0;
        if (weights2 == 0 && !is_turn) return;
        if (const std::optional<double> by = pull(*step.meta); by && *by < kNoGradient && weights2 > 0)
            strongest_pull_ = std::max(strongest_pull_, *by);
        const bool is_alike = alike_.is_enough();
        const bool is_seen =
            has_turned() || (weights2 > 0 && shrinks(*step.meta) && (has_learned_the_mean() || !learns()));
        // Weights that the loss holds by now fall no more, and a mean that is learned still is no more.
        if (firing_ && !is_seen && !is_alike && loss_.has_learned_much()) {
            sink.clear(kKey);
            firing_ = false;
        }
        if (is_seen) {
            firing_ = true;
            fire(step, sink);
        }
    }
    void on_end(FindingSink& sink) override {
        if (loss_.count() >= patience_ && loss_.count() < 3 * patience_) judge_dropped(sink);
        far_.end();
        judge_held(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return base::format("fewer than {} steps with a loss, or weights of fewer than three, were seen",
                            patience_);
    }

  private:
    static constexpr const char* kKey = "weights";
    static constexpr double kGone = 0.05;       // of the norm at the start: nothing is left to predict by
    static constexpr double kHard = 0.5;        // pull beside the loss
    static constexpr double kNoGradient = 1e9;  // pull beside nothing
    static constexpr double kRisen = 1.5;       // over the lowest level of the loss
    static constexpr double kFarFromFit = 0.3;  // of the loss at the start
    static constexpr std::size_t kParts = 8;    // of the training, whose levels are compared
    // Of the loss of the best constant answer: what is left, and what is where it falls no more.
    static constexpr double kPoor = 0.8, kFlat = 0.6;
    static constexpr int kStillLooks = 5;
    static constexpr double kAlike = 0.2;  // of the targets' differences: hardly one sample is told apart
    static constexpr double kLooksAlike = 3;
    static constexpr double kGuess = 0.9;  // of the loss of the best constant answer
    // A penalty that holds the training: beside the loss function's value; that value as a share of the best
    // constant answer's; and the share of labels that are predicted.
    static constexpr double kMuchAdded = 0.5, kHeld = 0.2, kAccurate = 0.95;

    // Of an embedding that gives more than a number for each row.
    [[nodiscard]] static bool is_table(const model::TensorInfo& info) {
        return info.shape.size() == 2 && info.shape[1] > 1 &&
               info.module_type.find("Embedding") != std::string::npos;
    }

    // How far the model tells samples apart, beside how far it should.
    void note_answers(const model::StepView& step) {
        if (loop_fact(step, "trainings")) alike_ = InARow(kLooksAlike);
        const std::optional<LoopFact> target = loop_fact(step, "target_deviation");
        const std::vector<LoopFact> outputs = loop_facts(step, "output_deviation");
        // Of several models, which of them gave the answers is not told.
        if (!target || !(target->value > 0) || outputs.size() != 1) return;
        answers_apart_ = outputs.front().value / target->value;
        // The loop may scale what the model returns: the loss must be that of the mean, too.
        const Guessing& loss = far_.guessing();
        const bool is_of_mean =
            loss.function() == "mse_loss" && loss.level() > kPoor * target->value * target->value;
        alike_.add(step, is_of_mean && answers_apart_ < kAlike);
    }
    // A regression that answers every sample nearly alike, and by now falls no more: it may have come far
    // from where it started, and has learned the mean of the targets, for which no weight is needed.
    [[nodiscard]] bool has_learned_the_mean() const {
        return alike_.is_enough() && !loss_.is_game() && norm_ <= shrink_ / 2 * first_norm_ && stands_still();
    }

    void note_evaluation(const model::StepView& step) {
        for (const model::ScalarSample& sample : step.record->scalars)
            if (step.info(sample.tensor).role == model::Role::kLoss && std::isfinite(sample.value) &&
                step.info(sample.tensor).name == loss_.tensor())
                evaluation_.add(sample.value);
    }

    void judge_penalty(const model::StepView& step, FindingSink& sink) {
        const std::optional<AddedLoss::Level> start = added_.at_start();
        if (!start || norms_ < 3 || loss_.is_game()) return;
        const double before = start->added, value_before = start->value;
        const auto [now, value] = added_.now();
        const double fall = before - now;
        const std::optional<double> share = far_.guessing().share();
        // The whole loss, penalty included, at a few looks in a row: of many looks at noise one shows no
        // trend.
        if (loss_.count() % 10 == 0) still_ = stands_still() ? still_ + 1 : 0;
        const double limit = still_ >= kStillLooks ? kFlat : kPoor;
        const bool is_poor =
            norm_ < kGone * first_norm_ || (share ? *share > limit : !(value < kPoor * value_before));
        const bool shows = before > value_before && value_before > 0 && now < shrink_ * before &&
                           norm_ < shrink_ * first_norm_ &&
                           value_before - value < 0.2 * (fall + value_before - value) && is_poor;
        if (!shows) {
            // What was told by the looser limit alone is taken back where the training learns after all.
            if (is_penalty_told_ && share && *share < kFlat) {
                is_penalty_told_ = false;
                sink.clear("penalty");
            }
            return;
        }
        is_penalty_told_ = true;
        model::Finding finding;
        finding.key = "penalty";
        finding.first_step = 0;
        finding.tensor = "loss";
        finding.message = base::format(
            "What is added to {} is {} times its value at the start, and the training lowers that instead: "
            "it fell from {} to {} by step {}, the norm of all weights from {} to {}, and {} only from {} to "
            "{}.",
            added_.function(), human_number(before / value_before), human_number(before), human_number(now),
            step.step(), human_number(first_norm_), human_number(norm_), added_.function(),
            human_number(value_before), human_number(value));
        finding.fix =
            "Lower the factor of the penalty that is added to the loss, a hundred-fold to begin with: it "
            "should be a small share of the loss.";
        finding.evidence.push_back({"added to the loss", before, "loss function", value_before});
        finding.evidence.push_back({"norm of all weights", norm_, "at the start", first_norm_});
        if (share)
            finding.evidence.push_back({"loss, as a share of a constant answer's", *share, "limit", limit});
        finding.plots = {{"loss", "value"}, {base::format("loss/{}", added_.function()), "value"}};
        sink.fire(std::move(finding));
    }

    // A penalty that lets the model learn, and holds it far from what it could.
    void judge_held(FindingSink& sink) const {
        if (is_penalty_told_ || firing_ || loss_.is_game()) return;
        const std::optional<AddedLoss::Penalty> penalty = added_.penalty();
        const auto [added, value] = added_.now();
        if (!penalty || !(added > kMuchAdded * value) || !added_.stands_still()) return;
        const std::optional<FarFromFit::Found> far = far_.found();
        if (!far || !far->is_certain) return;
        model::Finding finding;
        finding.key = "penalty";
        finding.first_step = far->since;
        finding.step = last_;
        finding.tensor = "loss";
        finding.message = base::format(
            "To {} a penalty is added, {} times the sum of the weights' {}, and the whole loss stands still: "
            "at step {} {} is {}, {:.0f} % of what one answer to all inputs gives, and the penalty {}. The "
            "norm of all weights was {} at the start and is {}. The inputs tell more: labels of nearest ones "
            "differ {:.0f} % as much as those of any two.",
            added_.function(), human_number(penalty->factor), penalty->sum, last_, added_.function(),
            human_number(value), 100 * far->share, human_number(added), human_number(penalty->first_norm),
            human_number(penalty->norm), 100 * *far->unlike);
        finding.fix = base::format(
            "Lower the factor of the penalty that is added to the loss from {}, a hundred-fold to begin "
            "with.",
            human_number(penalty->factor));
        finding.evidence.push_back({"penalty", added, "of the loss function's value", value});
        finding.evidence.push_back({"share of the constant answer's loss", far->share, "limit", kHeld});
        finding.evidence.push_back(
            {"norm of all weights", penalty->norm, "at the start", penalty->first_norm});
        finding.plots = {{"loss", "value"}, {base::format("loss/{}", added_.function()), "value"}};
        sink.fire(std::move(finding));
    }

    // The loss falls no more.
    [[nodiscard]] bool stands_still() const {
        const auto means = loss_.blocks().means();
        return loss_.count() >= 3 * patience_ && means.size() >= 12 &&
               trend_z(means.last(means.size() / 2)) > -2.5;
    }

    void note_dropout(const model::StepView& step, FindingSink& sink) {
        if (const std::optional<LoopFact> fact = loop_fact(step, "dropout")) {
            dropped_ = fact->value;
            dropout_place_ = fact->place;
        }
        if (dropped_ > 0) ++judged_;
        if (loss_.count() >= 3 * patience_ && loss_.count() % 10 == 0) judge_dropped(sink);
    }
    void judge_dropped(FindingSink& sink) {
        if (!(dropped_ > dropout_) || loss_.is_game() || !loss_.is_known_function()) return;
        const double start = std::max(loss_.start(), loss_.base_rate().value_or(0));
        const auto last = evaluation_.last(5);
        const double evaluated = last.empty() ? 0 : median({last.begin(), last.end()});
        const bool is_slow = start > 0 && loss_.level() > 0.5 * start;
        // What is left is scaled up, so that the first losses may lie far above guessing.
        const std::optional<double> share = far_.guessing().share(),
                                    constant = far_.guessing().constant_loss();
        const bool is_guess =
            share && constant && *share > kGuess && !(evaluated > 0 && evaluated < 0.8 * *constant);
        const bool is_apart = evaluated > 0 && loss_.level() > 3 * evaluated;
        if (!is_slow && !is_guess && !is_apart) {
            if (is_dropping_) sink.clear("dropout");
            is_dropping_ = false;
            return;
        }
        is_dropping_ = true;
        model::Finding finding;
        finding.key = "dropout";
        finding.first_step = 0;
        finding.layer = dropout_place_;
        finding.tensor = base::format("loop/dropout/{}", dropout_place_);
        finding.message = base::format(
            "{} drops {:.0f} % of its values, and after {} steps the training loss is {}, {} at the "
            "start{}{}.",
            dropout_place_, 100 * dropped_, loss_.count(), human_number(loss_.level()),
            human_number(loss_.start()),
            is_guess ? base::format(", and a constant answer's {}", human_number(*constant)) : std::string(),
            evaluated > 0
                ? base::format("; the evaluation loss, without dropout, is {}", human_number(evaluated))
                : std::string());
        finding.fix = base::format(
            "Lower p of {} from {} to {}: it is the share that is dropped, not the share that is kept.",
            dropout_place_, human_number(dropped_),
            dropped_ > 0.8 ? human_number(1 - dropped_) : std::string("0.2"));
        finding.evidence.push_back({"share dropped", dropped_, "limit", dropout_});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        if (is_guess)
            finding.evidence.push_back({"loss, as a share of a constant answer's", *share, "limit", kGuess});
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    // The loss that backward() is called on is what one function of the framework returned, at every step so
    // far: nothing was added to it.
    void look_for_a_penalty(const model::StepView& step) {
        double total = 0, function = 0;
        int totals = 0, functions = 0;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_first_loss(info)) continue;
            const bool is_function = info.name.starts_with("loss/");
            (is_function ? function : total) = sample.value;
            ++(is_function ? functions : totals);
        }
        if (totals == 0) return;
        const bool is_bare =
            totals == 1 && functions == 1 && std::abs(total - function) <= 1e-5 * std::abs(total) + 1e-9;
        (is_bare ? bare_ : with_more_) += 1;
    }
    [[nodiscard]] static bool is_decoupled(const model::WorkerMeta& meta) {
        if (meta.optimizers.empty()) return false;
        const std::string& type = meta.optimizers.front().type;
        return type == "AdamW" || type == "Lion" || type == "Adafactor" || type == "Muon";
    }
    // How hard the optimizer's decay pulls beside the loss; nothing where it has none.
    [[nodiscard]] std::optional<double> pull(const model::WorkerMeta& meta) const {
        const std::optional<double> decay = optimizer_setting(meta, "weight_decay");
        if (!decay || !(*decay > 0)) return std::nullopt;
        if (is_decoupled(meta)) return *decay * optimizer_setting(meta, "lr").value_or(0) / 1e-3;
        return gradient_norm_ > 0 ? *decay * norm_ / gradient_norm_ : kNoGradient;
    }
    [[nodiscard]] bool shrinks(const model::WorkerMeta& meta) const {
        if (falls_ < 2 || norm_ > shrink_ * first_norm_) return false;
        const std::optional<double> by = pull(meta);
        // Nothing pulls: weights that start larger than they need to be shrink by themselves.
        if (!by && bare_ > 0 && with_more_ == 0) return false;
        // A penalty that is part of the loss is seen by what it does alone.
        return by ? *by > kHard : falls_ >= 4 && norm_ < shrink_ / 2 * first_norm_;
    }
    // The decay has outweighed the loss and the weights still shrink; and the training loss had come far and
    // rises again, which learning does not do. By then a batch's gradient, most of it noise, may be larger.
    [[nodiscard]] bool has_turned() const {
        if (loss_.is_game() || !loss_.is_known_function() || !(strongest_pull_ > kHard)) return false;
        if (falls_ < 2 || norm_ > shrink_ / 2 * first_norm_) return false;
        const double start = std::max(loss_.start(), loss_.base_rate().value_or(0));
        const auto means = loss_.blocks().means();
        const std::size_t part = means.size() / kParts;
        if (part == 0 || !(loss_.level() > kFarFromFit * start)) return false;
        double lowest = start;
        for (std::size_t i = 0; i < kParts; ++i) {
            const auto some = means.subspan(i * part, part);
            lowest = std::min(lowest, median({some.begin(), some.end()}));
        }
        return loss_.level() > kRisen * lowest && trend_z(means.last(means.size() / 2)) > 2.5;
    }
    [[nodiscard]] bool learns() const {
        if (loss_.is_game() || !loss_.is_known_function()) return true;
        const double start = std::max(loss_.start(), loss_.base_rate().value_or(0));
        if (!(start > 0)) return true;
        if (!loss_.has_learned()) return false;
        if (loss_.level() < 0.5 * start) return true;
        const auto means = loss_.blocks().means();
        return trend_z(means.last(means.size() / 2)) < -2.5;
    }

    void fire(const model::StepView& step, FindingSink& sink) const {
        const std::optional<double> decay = optimizer_setting(*step.meta, "weight_decay");
        const bool is_decay = decay && *decay > 0;
        model::Finding finding;
        finding.key = kKey;
        finding.first_step = 0;
        finding.message = base::format(
            "The norm of all weights fell from {} to {} by step {}, and still falls; the loss is {}, {} at "
            "the start.",
            human_number(first_norm_), human_number(norm_), step.step(), human_number(loss_.level()),
            human_number(loss_.start()));
        if (const std::optional<double> by = pull(*step.meta); by && *by < kNoGradient)
            finding.message += base::format(" weight_decay {} {} at them {} times as hard as the loss.",
                                            human_number(*decay), *by > kHard ? "pulls" : "pulled",
                                            human_number(*by > kHard ? *by : strongest_pull_));
        if (alike_.is_enough())
            finding.message += base::format(
                " What the model returns differs between samples {:.0f} % as much as the targets: it answers "
                "all nearly alike.",
                100 * answers_apart_);
        finding.fix =
            is_decay
                ? base::format("Lower weight_decay from {} to about {}{}.", human_number(*decay),
                               is_decoupled(*step.meta) ? "0.01" : "1e-4",
                               step.meta->optimizers.front().type == "Adam"
                                   ? ", or use AdamW, which does not scale it up with the gradient"
                                   : "")
                : "Lower the factor of the penalty that is added to the loss, a thousand-fold to begin with.";
        finding.evidence.push_back({"norm of all weights", norm_, "at the start", first_norm_});
        if (is_decay)
            finding.evidence.push_back(
                {"weight_decay", *decay, "usual", is_decoupled(*step.meta) ? 0.01 : 1e-4});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    double shrink_, dropout_;
    std::uint64_t patience_;
    std::uint64_t judged_ = 0, norms_ = 0, falls_ = 0;
    std::uint64_t bare_ = 0, with_more_ = 0;  // steps whose loss is a function's alone, and others
    double first_norm_ = 0, norm_ = 0, gradient_norm_ = 0, strongest_pull_ = 0;
    bool firing_ = false, is_dropping_ = false, has_matrices_ = false;
    InARow alike_{kLooksAlike};
    double answers_apart_ = 1;  // at the last look: differences between outputs over those of targets
    double dropped_ = 0;
    std::string dropout_place_;
    int still_ = 0;  // looks in a row at which the loss fell no more
    bool is_penalty_told_ = false;
    Recent evaluation_{16};
    TrainingLoss loss_;
    AddedLoss added_;
    FarFromFit far_;
    model::StepIndex last_ = 0;
};

std::vector<model::Requirement> over_regularized_needs(const Parameters&) {
    constexpr auto kStatistics = model::What::kStatistics;
    std::vector<model::Requirement> all = loss_requirements(kOverRegularized.name);
    for (const char* name : {"weights", "gradients"}) {
        all.push_back(
            {name, model::Mode::kTrain, kStatistics, {.every = 50, .dense_until = 2}, kOverRegularized.name});
        all.push_back(
            {name, model::Mode::kTrain, kStatistics, {.every = 20, .end = 200}, kOverRegularized.name});
    }
    all.push_back({"losses", model::Mode::kEval, kStatistics, {.every = 1}, kOverRegularized.name});
    all.push_back(loop_requirement(kOverRegularized.name));
    for (model::Requirement& each : far_from_fit_requirements(kOverRegularized.name))
        all.push_back(std::move(each));
    return all;
}

}  // namespace

RuleEntry builtin::over_regularized() {
    return {&kOverRegularized, &over_regularized_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<OverRegularized>(p);
            }};
}

}  // namespace traindbg::rules
