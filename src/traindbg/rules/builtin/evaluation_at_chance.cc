// The evaluation never gets below guessing, while rows that were new to the training were told right.

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "traindbg/base/format.h"
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
        "Of a classification whose labels are as mixed in training and evaluation, or a binary "
        "cross-entropy: "
        "at an evaluation after 20 steps or more and within the training's first `passes` over its rows, the "
        "median of the last ten training losses is below `learned` of the loss of guessing, and "
        "`evaluations` results from then on, 60 steps or more into the training, are all above `chance` of "
        "it (two of them at the end of the training). It is over when one is below. Guessing is told by the "
        "labels of the evaluation, of a binary cross-entropy by the largest of the training's first five "
        "losses. Not where batches of the training are of few classes each, nor where the evaluation's loss "
        "is a sum (`reduction=\"sum\"`) of a binary cross-entropy.",
    .why =
        "In its first pass a training is told the loss of rows that are new to it, as an evaluation is, and "
        "in a few passes little is learned by heart. Where the first is good and the second is not, the two "
        "are of different data, or prepared in different ways, and the evaluation says nothing of the model.",
    .fix =
        "Compare a batch of each as the model is given it: the order of channels and columns, vocabularies, "
        "the numbers of categories and classes, scales and units. Make these once, of the training part, and "
        "use them for both.",
    .healthy =
        "Overfitting, which takes more passes than that; batch norms whose running statistics are not there "
        "yet; "
        "evaluations that have other classes, or more of them, as of contrastive losses; several optimizers "
        "that play against each other; batches of one class.",
    .cost = "One number per training step and per evaluated batch; the classes of some of them.",
    .original = "",
    .source = "Islam et al., \"A comprehensive study on deep learning bug characteristics\", FSE 2019",
    .severity = model::Severity::kWarning,
    .parameters = {{"learned", "share", 0.5, 0.01, 1, "of the loss of guessing, that the training is below"},
                   {"chance", "share", 0.9, 0.1, 10, "of the loss of guessing, that no evaluation is below"},
                   {"evaluations", "evaluations", 3, 2, 1000, "that must be so"},
                   {"passes", "passes", 3, 1, 1000,
                    "over the training's rows, in which few are learned by heart"}},
};

class EvaluationAtChance final : public Rule {
  public:
    explicit EvaluationAtChance(const Parameters& parameters)
        : learned_(parameters.at("learned")),
          chance_(parameters.at("chance")),
          evaluations_(static_cast<std::uint64_t>(parameters.at("evaluations"))),
          passes_(parameters.at("passes")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (evaluation_.observe(step)) judge(sink, evaluations_);
        take_rows(step);
        if (step.mode() == model::Mode::kEval && loop_fact(step, "loss_is_summed")) is_summed_ = true;
        if (step.mode() != model::Mode::kTrain) return;
        loss_.observe(step);
        take_losses(step);
        take_labels(step);
        take_batch(step);
        if (const auto passes = loop_fact(step, "backward_passes"))
            micro_batches_ = std::max(micro_batches_, passes->value);
    }
    void on_end(FindingSink& sink) override {
        const std::uint64_t before = evaluation_.count();
        evaluation_.end();
        if (evaluation_.count() > before) judge(sink, std::min<std::uint64_t>(evaluations_, kFewestAtTheEnd));
        else if (is_at_chance(kFewestAtTheEnd)) fire(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (evaluation_.count() == 0)
            return "no evaluation loss was seen: call model.eval() and compute the loss with a function of "
                   "torch.nn.functional";
        if (!(rows_of_training_ > 0)) return "it is not known how many rows the training has";
        return "no evaluation was within the training's first passes over its rows";
    }

  private:
    static constexpr std::uint64_t kFewestAtTheEnd = 2;
    static constexpr std::uint64_t kFewestSteps = 20, kStepsOfNorms = 60;

    static constexpr double kMixed = 0.7;  // entropy of a batch's labels, of that of all
    static constexpr double kAlike = 0.2;  // how far the two entropies of the labels may lie apart

    struct Trained {
        Recent recent{10};
        std::uint64_t count = 0;
        double top = 0;  // of the first five
    };

    void take_losses(const model::StepView& step) {
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_first_loss(info) || !std::isfinite(sample.value)) continue;
            Trained& trained = trained_[info.name];
            trained.recent.add(sample.value);
            if (trained.count++ < 5) trained.top = std::max(trained.top, sample.value);
        }
    }
    // Labels of batches by themselves, and together.
    struct Labels {
        std::vector<double> all;
        double entropies = 0, batches = 0;

        static double entropy(const std::vector<double>& counts) {
            double total = 0, sum = 0, kinds = 0;
            for (const double count : counts) total += count;
            for (const double count : counts)
                if (count > 0) {
                    sum -= count / total * std::log(count / total);
                    ++kinds;
                }
            return total > 0 ? sum + (kinds - 1) / (2 * total) : 0;  // Miller and Madow: few are too alike
        }
        void add(const std::vector<double>& counts) {
            if (all.size() < counts.size()) all.resize(counts.size());
            for (std::size_t i = 0; i < counts.size(); ++i) all[i] += counts[i];
            entropies += entropy(counts);
            ++batches;
        }
        // The loss of batches of one class says nothing of what is known of the others.
        [[nodiscard]] bool are_mixed() const {
            return batches == 0 || entropies / batches > kMixed * entropy(all);
        }
    };

    void take_labels(const model::StepView& step) {
        for (const model::ClassSample& sample : step.record->classes)
            labels_.add({sample.counts.labels.begin(), sample.counts.labels.end()});
        const auto answers = loop_fact(step, "answers"), yes = loop_fact(step, "answers_yes");
        if (answers && yes && answers->value > 0) labels_.add({yes->value, answers->value - yes->value});
    }
    // How many the training has; where nobody tells, no more than the different ones that were seen.
    void take_rows(const model::StepView& step) {
        const auto all = loop_fact(step, "rows_of_training"), known = loop_fact(step, "rows_known");
        if (all && all->value > 0) rows_of_training_ = all->value;
        else if (known) rows_of_training_ = std::max(rows_of_training_, known->value);
    }
    // Rows of a step, no fewer than there are: of sequences it is not known which dimension is the batch.
    void take_batch(const model::StepView& step) {
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.name != "input/0" || info.shape.empty()) continue;
            double values = 1;  // of a row; an evaluation that comes first may have other numbers of rows
            for (std::size_t i = 1; i < info.shape.size(); ++i) values *= static_cast<double>(info.shape[i]);
            const double first = static_cast<double>(sample.statistics.count) / std::max(values, 1.0);
            const double labels = loss_.labels_per_batch();
            const bool is_sequence = first > 0 && labels > first && std::fmod(labels, first) == 0;
            batch_ = std::max({batch_, first, is_sequence ? labels / first : labels});
        }
    }
    [[nodiscard]] bool is_early() const {
        return batch_ > 0 && static_cast<double>(loss_.count()) * batch_ * micro_batches_ <=
                                 (passes_ + 0.1) * rows_of_training_;
    }

    void judge(FindingSink& sink, std::uint64_t enough) {
        const auto found = trained_.find(evaluation_.function());
        if (found == trained_.end() || found->second.count < kFewestSteps || loss_.is_game()) return;
        if (!labels_.are_mixed()) return;
        const std::optional<double> loss = guessing();
        const bool has_learned = level_steps_ > 0 && loss && level_ < learned_ * *loss;
        if (is_early() && !has_learned) {
            const auto recent = found->second.recent.values();
            level_ = median({recent.begin(), recent.end()});
            level_steps_ = loss_.count();
        }
        if (level_steps_ == 0) return;
        ++judged_;
        lowest_ = since_ == 0 ? evaluation_.last() : std::min(lowest_, evaluation_.last());
        ++since_;
        const bool on = is_at_chance(enough);
        if (on) fire(sink);
        else if (is_firing_) sink.clear(kKey);
        is_firing_ = on;
    }
    [[nodiscard]] bool is_at_chance(std::uint64_t enough) const {
        if (since_ < enough || loss_.count() < kStepsOfNorms) return false;
        const std::optional<double> loss = guessing();
        return loss && level_ < learned_ * *loss && lowest_ > chance_ * *loss;
    }
    // The loss of guessing, of functions whose values are means of one scale whatever they are given.
    [[nodiscard]] std::optional<double> guessing() const {
        const std::string_view function = evaluation_.function();
        if (function == "loss/cross_entropy" || function == "loss/nll_loss") {
            const auto theirs = evaluation_.label_entropy(), ours = loss_.label_entropy();
            if (!theirs || !ours || std::abs(*theirs - *ours) > kAlike * *ours) return std::nullopt;
            return theirs;
        }
        const bool is_binary =
            function == "loss/binary_cross_entropy" || function == "loss/binary_cross_entropy_with_logits";
        if (!is_binary || is_summed_) return std::nullopt;
        return trained_.at(evaluation_.function()).top;
    }
    void fire(FindingSink& sink) const {
        const double loss = guessing().value_or(0);
        model::Finding finding;
        finding.key = kKey;
        finding.kind = "train_val_mismatch";
        finding.mode = model::Mode::kEval;
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = evaluation_.function();
        const double passes = static_cast<double>(level_steps_) * batch_ * micro_batches_ / rows_of_training_;
        finding.message = base::format(
            "After {} steps, in which it went over its rows {}, the training's loss was {} where guessing "
            "has "
            "{}; that of {} evaluations has not been below {}, and is {} after {} steps.",
            level_steps_, passes <= 1.1 ? std::string("once at most") : base::format("{:.1f} times", passes),
            human_number(level_), human_number(loss), since_, human_number(lowest_),
            human_number(evaluation_.last()), loss_.count());
        finding.fix = kEvaluationAtChance.fix;
        finding.evidence.push_back({"training loss in the first passes", level_, "of guessing", loss});
        finding.evidence.push_back({"lowest evaluation loss", lowest_, "of guessing", loss});
        finding.plots = {{evaluation_.function(), "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr const char* kKey = "evaluation";
    double learned_, chance_;
    std::uint64_t evaluations_;
    double passes_;
    TrainingLoss loss_;
    EvaluationLoss evaluation_;
    Labels labels_;
    std::map<std::string, Trained, std::less<>> trained_;  // by the function
    bool is_summed_ = false;
    double rows_of_training_ = 0, batch_ = 0, micro_batches_ = 1;
    double level_ = 0, lowest_ = 0;  // of the first passes; of the evaluations from then on
    std::uint64_t level_steps_ = 0, since_ = 0, judged_ = 0;
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
