// The evaluation never gets better than guessing, while the training's early batches are told right.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/evaluation_loss.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kEvaluationAtChance = {
    .name = "evaluation_at_chance",
    .title = "Evaluation no better than guessing",
    .summary = "What the training learned in its first passes over its rows does not show in any evaluation.",
    .when =
        "In its first passes over the data a classification's training loss falls far below that of "
        "guessing, but no evaluation is better than guessing.\n"
        "- Judged: classifications by cross-entropy whose labels are equally mixed in training and "
        "evaluation (their entropies within 20 %).\n"
        "- The training has learned: at an evaluation, after 20 steps or more and within the training's "
        "first `passes` over its rows, the mean of the last ten training losses is below `learned` of the "
        "loss of guessing. The last batches are predicted far better than by guessing.\n"
        "- The evaluations have not (warning): of `evaluations` results from then on (two are enough at "
        "the end of the training), and 60 or more steps into the training, all are above `chance` of the "
        "loss of guessing.\n"
        "- No progress: the last two results were not each better than the one before.\n"
        "- Predictions of evaluations: classes are predicted right no more often than by guessing, up to "
        "`told` of what can be gained.\n"
        "- How it is measured: the loss of guessing comes from the labels of the evaluation. How often "
        "classes are predicted right is the mean over the classes.\n"
        "- It ends when an evaluation is better.",
    .why =
        "In its first pass a training is told the loss of rows that are new to it, as an evaluation is, and "
        "in a few passes little is learned by heart. Where the first is good and the second is not, the two "
        "are of different data, or prepared in different ways, and the evaluation says nothing of the model.",
    .fix =
        "Compare a batch of each as the model is given it: which number stands for which class, word or "
        "category (a LabelEncoder or a vocabulary made for each part by itself numbers them differently), "
        "the order of channels and columns, scales and units. Make all of these once, of the training part, "
        "and use them for both.",
    .healthy =
        "Overfitting, which takes more passes than that; batch norms whose running statistics, and averages "
        "of weights, that are not there yet; evaluations that have other classes, or more of them, as of "
        "contrastive losses; several optimizers that play against each other; batches of few classes each. "
        "Models that are given their own words back in evaluation alone, and evaluations of data that the "
        "training comes to later, look the same until something of them is told right.",
    .cost = "One number per training step and per evaluated batch; the classes of some of them.",
    .original = "",
    .source = "Islam et al., \"A comprehensive study on deep learning bug characteristics\", FSE 2019",
    .severity = model::Severity::kWarning,
    .parameters = {{"learned", "share", 0.5, 0.01, 1, "of the loss of guessing, that the training is below"},
                   {"chance", "share", 0.9, 0.1, 1, "of the loss of guessing, that no evaluation is below"},
                   {"told", "share", 0.15, 0, 1, "of what guessing gets wrong, that evaluations get right"},
                   {"evaluations", "evaluations", 3, 2, 1000, "that must be so"},
                   {"passes", "passes", 3, 1, 1000,
                    "over the training's rows, in which few are learned by heart"}},
};

// How often classes were labels, and how often these were told right.
struct ToldRight {
    std::vector<double> labels, hits;

    void add(const model::ClassCounts& counts) {
        if (labels.size() < counts.labels.size()) {
            labels.resize(counts.labels.size());
            hits.resize(counts.labels.size());
        }
        for (std::size_t i = 0; i < counts.labels.size(); ++i) {
            labels[i] += counts.labels[i];
            hits[i] += i < counts.hits.size() ? counts.hits[i] : 0;
        }
    }
    [[nodiscard]] double count() const {
        double all = 0;
        for (const double each : labels) all += each;
        return all;
    }
    // Of what guessing gets wrong, the share that is told right, as the mean over the classes: 0 where one
    // class is said of all, 1 where all are right. Nothing of a single class.
    [[nodiscard]] std::optional<double> gain() const {
        double classes = 0, recall = 0;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            if (!(labels[i] > 0)) continue;
            ++classes;
            recall += hits[i] / labels[i];
        }
        if (classes < 2) return std::nullopt;
        return (recall / classes - 1 / classes) / (1 - 1 / classes);
    }
};

// Whether batches are of all classes, by how often two labels of one batch are equal.
class Mixture {
  public:
    void add(const std::vector<std::uint32_t>& labels) {
        if (all_.size() < labels.size()) all_.resize(labels.size());
        double total = 0;
        for (std::size_t i = 0; i < labels.size(); ++i) {
            const double count = labels[i];
            all_[i] += count;
            total += count;
            equal_ += count * (count - 1);
        }
        pairs_ += total * (total - 1);
    }
    [[nodiscard]] bool is_mixed() const {
        double total = 0, by_chance = 0;
        for (const double count : all_) total += count;
        for (const double count : all_) by_chance += count * count / (total * total);
        return pairs_ > 0 && equal_ / pairs_ < by_chance + kMost * (1 - by_chance);
    }

  private:
    static constexpr double kMost = 0.3;  // of the way from chance to batches of one class
    std::vector<double> all_;
    double equal_ = 0, pairs_ = 0;
};

class EvaluationAtChance final : public Rule {
  public:
    explicit EvaluationAtChance(const Parameters& parameters)
        : learned_(parameters.at("learned")),
          chance_(parameters.at("chance")),
          told_(parameters.at("told")),
          evaluations_(static_cast<std::uint64_t>(parameters.at("evaluations"))),
          passes_(parameters.at("passes")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kTrain && loop_fact(step, "trainings")) {
            end(sink);
            seen_ = {};
            seen_.began = step.step();
            is_firing_ = false;  // what was found of the one before stays
        }
        if (seen_.evaluation.observe(step)) judge(sink, false);
        take_rows(step);
        if (step.mode() == model::Mode::kEval) take_evaluated(step);
        else if (step.mode() == model::Mode::kTrain) take_trained(step);
    }
    void on_end(FindingSink& sink) override { end(sink); }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (seen_.evaluation.count() == 0)
            return "no evaluation loss was seen: call model.eval() and compute the loss with a function of "
                   "torch.nn.functional";
        if (!seen_.loss.label_entropy() || !seen_.evaluation.label_entropy())
            return "the loss is no cross-entropy of classes in training and evaluation both";
        if (!(rows() > 0)) return "it is not known how many rows the training has";
        if (!seen_.mixture.is_mixed()) return "the training's batches are of few classes each";
        return "at no evaluation within the training's first passes over its rows was much learned";
    }

  private:
    static constexpr std::uint64_t kFewestAtTheEnd = 2;
    static constexpr std::uint64_t kFewestSteps = 20, kStepsOfNorms = 60;
    static constexpr std::size_t kBatches = 10;
    static constexpr double kFewestLabels = 50, kMuch = 0.4;  // `kMuch`: a gain of the training
    static constexpr double kAgain = 1.5;   // times that rows were looked at, where they come again
    static constexpr double kAlike = 0.2;   // how far the two entropies of the labels may lie apart
    static constexpr double kNoneOf = 0.1;  // of an evaluation's batches

    void take_trained(const model::StepView& step) {
        ++seen_.steps;
        seen_.loss.observe(step);
        if (const auto passes = loop_fact(step, "backward_passes"))
            seen_.micro_batches = std::max(seen_.micro_batches, passes->value);
        if (const auto calls = loop_fact(step, "calls_of_one_loss"))
            seen_.has_several_heads = seen_.has_several_heads || calls->value > 1;
        for (const model::ScalarSample& sample : step.record->scalars)
            if (step.info(sample.tensor).name == seen_.loss.tensor() && std::isfinite(sample.value))
                seen_.recent.add(sample.value);
        for (const model::ClassSample& sample : step.record->classes) {
            seen_.mixture.add(sample.counts.labels);
            seen_.batches.push_back(sample.counts);
            if (seen_.batches.size() > kBatches) seen_.batches.erase(seen_.batches.begin());
        }
        take_batch(step);
    }
    void take_evaluated(const model::StepView& step) {
        for (const model::ClassSample& sample : step.record->classes) seen_.evaluated.add(sample.counts);
        const std::optional<double> loss = guessing();
        for (const model::ScalarSample& sample : step.record->scalars) {
            if (step.info(sample.tensor).name != seen_.evaluation.function()) continue;
            ++seen_.of_evaluation;
            if (loss && sample.value < chance_ * *loss) ++seen_.below;
        }
    }
    void take_rows(const model::StepView& step) {
        if (const auto all = loop_fact(step, "rows_of_training")) seen_.rows_told = all->value;
        if (const auto known = loop_fact(step, "rows_known")) seen_.rows_known = known->value;
        if (const auto looked = loop_fact(step, "rows_looked_at")) seen_.rows_looked_at = looked->value;
    }
    // How many rows the training has: no more than the different ones that were seen, where they come again.
    [[nodiscard]] double rows() const {
        const bool come_again = seen_.rows_known > 0 && seen_.rows_looked_at >= kAgain * seen_.rows_known;
        if (!come_again) return seen_.rows_told;
        return seen_.rows_told > 0 ? std::min(seen_.rows_told, seen_.rows_known) : seen_.rows_known;
    }
    // Rows of a step, no fewer than there are: of sequences it is not known which dimension is the batch.
    void take_batch(const model::StepView& step) {
        const double first = rows_of_input(step), labels = seen_.loss.labels_per_batch();
        if (first == 0) return;
        const bool is_sequence = labels > first && std::fmod(labels, first) == 0;
        seen_.batch = std::max({seen_.batch, first, is_sequence ? labels / first : labels});
    }
    [[nodiscard]] double passes() const {
        const double rows_seen = static_cast<double>(seen_.steps) * seen_.batch * seen_.micro_batches;
        return rows() > 0 && rows_seen > 0 ? rows_seen / rows() : std::numeric_limits<double>::infinity();
    }

    // The loss of guessing, where it is the same for both.
    [[nodiscard]] std::optional<double> guessing() const {
        const auto theirs = seen_.evaluation.label_entropy(), ours = seen_.loss.label_entropy();
        if (!theirs || !ours || std::abs(*theirs - *ours) > kAlike * *ours) return std::nullopt;
        return theirs;
    }
    // By the last batches before this evaluation.
    [[nodiscard]] bool has_learned(double guessing) const {
        ToldRight told;
        for (const model::ClassCounts& counts : seen_.batches) told.add(counts);
        const std::optional<double> gain = told.gain();
        return seen_.recent.full() && mean_loss() < learned_ * guessing && told.count() >= kFewestLabels &&
               gain && *gain > kMuch;
    }
    [[nodiscard]] double mean_loss() const {
        double sum = 0;
        for (const double value : seen_.recent.values()) sum += value;
        return sum / static_cast<double>(kBatches);
    }

    // An evaluation is over.
    void judge(FindingSink& sink, bool is_end) {
        const double below = seen_.of_evaluation > 0 ? seen_.below / seen_.of_evaluation : 1;
        seen_.of_evaluation = seen_.below = 0;
        const std::optional<double> loss = guessing();
        const bool is_judged = loss && seen_.evaluation.function() == seen_.loss.tensor() &&
                               seen_.steps >= kFewestSteps && seen_.mixture.is_mixed() &&
                               !seen_.loss.is_game() && !seen_.has_several_heads;
        if (is_judged && seen_.since == 0 && passes() <= passes_ + kLastBatch && has_learned(*loss)) {
            seen_.level = mean_loss();
            seen_.level_steps = seen_.steps;
            seen_.level_passes = passes();
        }
        if (!is_judged || seen_.level_steps == 0) {
            seen_.evaluated = {};  // before anything was learned
            return;
        }
        ++judged_;
        ++seen_.since;
        seen_.lowest =
            seen_.since == 1 ? seen_.evaluation.last() : std::min(seen_.lowest, seen_.evaluation.last());
        seen_.is_partly_told = seen_.is_partly_told || below > kNoneOf;
        const bool on = is_at_chance(*loss, is_end);
        if (on) fire(sink, *loss);
        else if (is_firing_) sink.clear(kKey);
        is_firing_ = on;
    }
    void end(FindingSink& sink) {
        const std::uint64_t before = seen_.evaluation.count();
        seen_.evaluation.end();
        const std::optional<double> loss = guessing();
        if (seen_.evaluation.count() > before) judge(sink, true);
        else if (loss && !is_firing_ && is_at_chance(*loss, true)) fire(sink, *loss);
    }
    [[nodiscard]] bool is_at_chance(double guessing, bool is_end) const {
        const std::uint64_t enough = is_end ? std::min(evaluations_, kFewestAtTheEnd) : evaluations_;
        if (seen_.since < enough || seen_.steps < kStepsOfNorms || seen_.is_partly_told) return false;
        // Running statistics and averages of the weights may come yet.
        if (!is_end && !is_firing_ && seen_.evaluation.in_a_row() >= 2) return false;
        const std::optional<double> gain = seen_.evaluated.gain();
        return seen_.lowest > chance_ * guessing && seen_.evaluated.count() >= kFewestLabels && gain &&
               *gain < told_;
    }

    void fire(FindingSink& sink, double guessing) const {
        const double gain = seen_.evaluated.gain().value_or(0);
        model::Finding finding;
        finding.key = kKey;
        finding.kind = "train_val_mismatch";
        finding.mode = model::Mode::kEval;
        finding.severity = model::Severity::kWarning;
        finding.first_step = seen_.began;
        finding.tensor = seen_.evaluation.function();
        finding.message = base::format(
            "After {} steps, {:.1f} passes over its rows, the training loss was {} (guessing gives {}); none "
            "of {} evaluations was below {}, the last, after {} steps, is {}, and classes are told right "
            "hardly more often than by guessing.",
            seen_.level_steps, seen_.level_passes, human_number(seen_.level), human_number(guessing),
            seen_.since, human_number(seen_.lowest), seen_.steps, human_number(seen_.evaluation.last()));
        finding.fix = kEvaluationAtChance.fix;
        finding.evidence.push_back({"training loss in the first passes", seen_.level, "guessing", guessing});
        finding.evidence.push_back({"lowest evaluation loss", seen_.lowest, "guessing", guessing});
        finding.evidence.push_back({"told right beyond guessing in evaluations", gain, "limit", told_});
        finding.plots = {{seen_.evaluation.function(), "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr const char* kKey = "evaluation";
    static constexpr double kLastBatch = 0.1;  // of a pass

    // Of one training; another one in the same process begins anew.
    struct Seen {
        model::StepIndex began = 0;
        TrainingLoss loss;
        EvaluationLoss evaluation;
        Recent recent{kBatches};                  // training losses
        std::vector<model::ClassCounts> batches;  // of the training, the last ones
        Mixture mixture;
        ToldRight evaluated;  // since something was learned
        std::uint64_t steps = 0;
        double of_evaluation = 0, below = 0;  // batches of the evaluation under way; those with less loss
        bool has_several_heads = false, is_partly_told = false;
        double rows_told = 0, rows_known = 0, rows_looked_at = 0, batch = 0, micro_batches = 1;
        double level = 0, level_passes = 0, lowest = 0;
        std::uint64_t level_steps = 0, since = 0;  // `since`: evaluations from the level on
    };
    double learned_, chance_, told_;
    std::uint64_t evaluations_;
    double passes_;
    Seen seen_;
    std::uint64_t judged_ = 0;
    bool is_firing_ = false;
};

std::vector<model::Requirement> evaluation_at_chance_needs(const Parameters&) {
    constexpr std::string_view kName = "evaluation_at_chance";
    std::vector<model::Requirement> all = row_requirements(kName);
    for (model::Requirement& each : loss_requirements(kName)) all.push_back(std::move(each));
    all.push_back(evaluation_loss_requirement(kName));
    all.push_back(evaluation_classes_requirement(kName));
    return all;
}

}  // namespace

RuleEntry builtin::evaluation_at_chance() {
    return {
        &kEvaluationAtChance, &evaluation_at_chance_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<EvaluationAtChance>(p); }};
}

}  // namespace traindbg::rules
