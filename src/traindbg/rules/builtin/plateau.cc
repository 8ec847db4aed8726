// A training that learned, and then gained nothing for most of its time.

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
#include "traindbg/rules/far_from_fit.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kPlateau = {
    .name = "plateau",
    .title = "Nothing gained for most of the training",
    .summary = "The training learned, and then its loss stood still for most of its steps.",
    .when =
        "At the end of a run that has learned something, the loss has stood still for at least the last "
        "`share` of the steps.\n"
        "- Judged: at the end of the run, after at least `min_steps` steps, for a loss of a known "
        "function. The training must have learned, by more than twice the noise of its losses.\n"
        "- No trend (info): over at least the last `share` of the steps the Mann-Kendall z of the loss is "
        "between -2 and 2.5, and that of the first half of these steps is above -2.\n"
        "- Nothing gained (also needed): the last third of these steps is below the first third by no more "
        "than `gain` of all that the loss fell before, and by no more than a twentieth of what is left. Or "
        "it is below by no more than noise explains (z > -1).\n"
        "- Not reported: an evaluation in the later half of that time was better than all before it, by "
        "more than `gain` of what evaluations had gained.\n"
        "- Not reported: the learning rate was almost nothing (schedule_collapsed), or the training is far "
        "from fitting its training data (underfit).\n"
        "- Not judged: losses of a game, as in a GAN.\n"
        "- Severity: always a note (info), as a training that has come to the noise of its data looks the "
        "same.",
    .why =
        "These steps cost as much as the others. The loss is at the floor of the data or of the model, or "
        "the learning rate is too large to come any lower.",
    .fix =
        "Lower the learning rate from that step on (a schedule, ReduceLROnPlateau) and see whether the loss "
        "falls again; if not, end there (early stopping), or change the model or the data.",
    .healthy =
        "A training that ends soon after it has got as far as it can; an evaluation that still gets better "
        "(grokking); losses that need not fall (GANs, policies).",
    .cost =
        "One number a step, of training and of evaluation; the classes of every 5th batch, statistics of "
        "what the loss was given at some steps, and a comparison of the first rows with each other, once, to "
        "know a training that is far from fitting its data.",
    .original = "",
    .source =
        "Prechelt, \"Early stopping - but when?\", 1998; Mann, \"Nonparametric tests against trend\", "
        "Econometrica 13 (1945)",
    .severity = model::Severity::kInfo,
    .parameters = {{"min_steps", "steps", 400, 100, 1e9, "steps with a loss before it judges"},
                   {"share", "share", 0.5, 0.1, 0.95, "of the steps, in which nothing was gained"},
                   {"gain", "share", 0.02, 0, 1, "of the fall before, that counts as none"}},
};

double mean(std::span<const double> values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

class Plateau final : public Rule {
  public:
    explicit Plateau(const Parameters& parameters)
        : min_steps_(static_cast<std::uint64_t>(parameters.at("min_steps"))),
          share_(parameters.at("share")),
          gain_(parameters.at("gain")) {}

    void on_step(const model::StepView& step, FindingSink&) override {
        fit_.observe(step);
        const bool has_evaluated = evaluation_.observe(step);
        if (step.mode() != model::Mode::kTrain) return;
        if (has_evaluated) note_evaluation();
        const std::uint64_t before = loss_.count();
        const bool has_loss = loss_.observe(step);
        if (has_loss && loss_.count() <= before) begin_anew();  // another training in the same process
        rates_.observe(step);
        if (!has_loss) return;
        levels_.add(loss_.recent().values().back());
        steps_.add(static_cast<double>(step.step()));
        learning_rates_.add(rates_.is_known() ? rates_.now() : 0);
        last_ = step.step();
    }
    void on_end(FindingSink& sink) override {
        evaluation_.end();
        fit_.end();
        if (evaluation_.count() > evaluations_seen_) note_evaluation();
        if (loss_.count() < min_steps_ || loss_.is_game() || !loss_.is_known_function()) return;
        if (!loss_.has_learned()) return;
        const std::optional<std::size_t> first = begin_of_plateau();
        if (!first) return;
        const auto since = static_cast<model::StepIndex>(
            std::max(0.0, steps_.means()[*first] - static_cast<double>(levels_.values_per_block()) / 2));
        if (has_evaluation_gained(since) || is_without_rate(*first) || fit_.found()) return;
        fire(*first, since, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override {
        return loss_.count() >= min_steps_ ? loss_.count() : 0;
    }
    [[nodiscard]] std::string why_not_judged() const override {
        return base::format("fewer than {} steps with a loss were seen", min_steps_);
    }

  private:
    struct Evaluation {
        model::StepIndex after = 0;
        double loss = 0;
    };

    void begin_anew() {
        levels_ = steps_ = learning_rates_ = {};
        evaluations_.clear();
        evaluation_ = {};
        evaluations_seen_ = 0;
        rates_ = {};
    }

    // Every one, and of very many every second, fourth, and so on, the better of two.
    void note_evaluation() {
        evaluations_seen_ = evaluation_.count();
        evaluations_.push_back({last_, evaluation_.last()});
        if (evaluations_.size() < kMostEvaluations) return;
        for (std::size_t i = 0; 2 * i + 1 < evaluations_.size(); ++i) {
            const Evaluation &one = evaluations_[2 * i], &other = evaluations_[2 * i + 1];
            evaluations_[i] = one.loss < other.loss ? one : other;
        }
        evaluations_.resize(evaluations_.size() / 2);
    }

    // The first block of the longest part up to the end in which nothing was gained.
    [[nodiscard]] std::optional<std::size_t> begin_of_plateau() const {
        const auto means = levels_.means();
        const auto fewest = static_cast<std::size_t>(std::ceil(share_ * static_cast<double>(means.size())));
        for (std::size_t first = 1; first + std::max<std::size_t>(fewest, 12) <= means.size(); ++first) {
            const auto rest = means.subspan(first);
            const std::size_t third = rest.size() / 3;
            const double before = mean(rest.first(third)), after = mean(rest.last(third));
            const double fallen = loss_.start() - mean(rest);
            const double chance = noise_of(rest) * std::sqrt(2.0 / static_cast<double>(third));
            // Where the loss began far above all that counts, a small part of its fall is much of what is
            // left.
            const double little = std::min(gain_ * fallen, kGainOfLevel * std::abs(after));
            const double trend = trend_z(rest);
            const bool is_nothing = before - after <= little || (before - after <= chance && trend > -1);
            if (fallen > kNoises * loss_.noise() && is_nothing && trend > -2 && trend < 2.5 &&
                trend_z(rest.first(rest.size() / 2)) > -2)
                return first;
        }
        return std::nullopt;
    }

    [[nodiscard]] bool has_evaluation_gained(model::StepIndex since) const {
        const model::StepIndex middle = since + (last_ - since) / 2;
        std::optional<double> best, late;
        for (const Evaluation& evaluation : evaluations_) {
            std::optional<double>& one = evaluation.after > middle ? late : best;
            one = std::min(one.value_or(evaluation.loss), evaluation.loss);
        }
        return best && late && *late < *best - gain_ * std::abs(evaluation_.first() - *best);
    }
    [[nodiscard]] bool is_without_rate(std::size_t first) const {
        const auto rates = learning_rates_.means();
        return rates_.is_known() && first < rates.size() && mean(rates.subspan(first)) < 1e-3 * rates_.peak();
    }

    void fire(std::size_t first, model::StepIndex since, FindingSink& sink) const {
        const auto rest = levels_.means().subspan(first);
        const std::size_t third = rest.size() / 3;
        const double before = mean(rest.first(third)), after = mean(rest.last(third));
        const double part = static_cast<double>(rest.size()) / static_cast<double>(levels_.means().size());
        model::Finding finding;
        finding.key = "loss";
        finding.severity = model::Severity::kInfo;
        finding.step = last_;
        finding.first_step = since;
        finding.tensor = loss_.tensor();
        finding.message = base::format(
            "From step {} on, {:.0f} % of the training, the loss gained nothing: it began at {}, was {} then "
            "and is {} at the end (step {}).",
            since, 100 * part, human_number(loss_.start()), human_number(before), human_number(after), last_);
        finding.fix =
            "Lower the learning rate from there on and see whether the loss falls again; if not, end there, "
            "or change the model or the data.";
        const auto rates = learning_rates_.means();
        if (rates_.is_known() && first < rates.size() && rates[first] > 0) {
            const double then = rates[first], now = rates_.now();
            finding.evidence.push_back({"learning rate", now, "when it stood still", then});
            if (std::abs(now - then) <= 0.01 * then) {
                finding.message +=
                    base::format(" The learning rate was {} all that time.", human_number(now));
            } else {
                finding.message += base::format(" The learning rate was {} then and is {}.",
                                                human_number(then), human_number(now));
            }
            if (now <= 0.2 * then)
                finding.fix =
                    "A lower learning rate brought nothing: end there (early stopping), or change the model "
                    "or the data.";
        }
        finding.evidence.push_back({"loss", after, "when it stood still", before});
        finding.evidence.push_back({"share of the steps", part, "limit", share_});
        finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr std::size_t kMostEvaluations = 256;
    static constexpr double kGainOfLevel = 0.05;
    static constexpr double kNoises = 2;  // of single losses, that the fall must be

    std::uint64_t min_steps_;
    double share_, gain_;
    EvaluationLoss evaluation_;
    std::uint64_t evaluations_seen_ = 0;
    std::vector<Evaluation> evaluations_;
    model::StepIndex last_ = 0;
    LearningRates rates_;
    TrainingLoss loss_;
    FarFromFit fit_;
    // Side by side: of the same steps.
    Blocks levels_, steps_, learning_rates_;
};

std::vector<model::Requirement> plateau_needs(const Parameters&) {
    return far_from_fit_requirements(kPlateau.name);
}

}  // namespace

RuleEntry builtin::plateau() {
    return {&kPlateau, &plateau_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<Plateau>(p); }};
}

}  // namespace traindbg::rules
