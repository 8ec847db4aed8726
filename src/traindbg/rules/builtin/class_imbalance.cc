// Labels of one class only, classes that the model never predicts, batches that are not mixed.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/rules/batch_mixing.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/class_tally.h"
#include "traindbg/rules/class_weights.h"
#include "traindbg/rules/firing.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/missed_classes.h"
#include "traindbg/rules/rare_answer.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/weighted_drawing.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kClassImbalance = {
    .name = "class_imbalance",
    .title = "Class imbalance",
    .summary = "The labels are of one class only, or so unequal that the model ignores the rare classes.",
    .when =
        "All labels are of one class, the model ignores a class that is at least `ratio` times rarer than "
        "the most frequent one, weights favour frequent classes, or batches are sorted by class.\n"
        "- One class (error): after `min_labels` labels and ten batches, all labels are of one class. Not "
        "where all are 0 and the scores are no values that a model returned, as where vectors are compared "
        "and the first score is that of the pair (InfoNCE).\n"
        "- Imbalance (warning): judged after 200 steps, or at the end of a run of 50 steps or more. Among "
        "about the last 2000 labels, the most frequent class is at least `ratio` times as frequent as a rare "
        "one, also when the weights of the loss are included.\n"
        "- The model then finds less than 5 % of the rare class's samples, at three looks in a row (one at "
        "the end of the run). It must find more than 70 % of the most frequent class's or tell classes apart "
        "(Cohen's kappa of a third or more, where chance has 0).\n"
        "- Not yet: while the loss falls fast (its mean over about 100 steps is below 88 % of that over the "
        "100 before), a rare class may be learned last. Nothing is said of it before the end of the run.\n"
        "- Up to 20 classes, any class counts. With more classes, it is judged only if the model predicts "
        "practically one class.\n"
        "- Next values: where the targets are the model's input one position on, classes are what a "
        "vocabulary is, and are judged as more than 20 are.\n"
        "- In evaluations (warning): they have at least ten samples of such a class, of which the model "
        "finds less than a quarter, and more than 70 % of those of the most frequent class.\n"
        "- Not counted: evaluations of the first quarter of the training, and a class of which the latest "
        "evaluation found a quarter, or 5 percentage points more than the one before.\n"
        "- Where no evaluation tells of classes (warning): a training is judged likewise at the end of the "
        "run, by 30 rare samples or more among the last labels and 90 % of the most frequent class's, unless "
        "the share that is found has grown.\n"
        "- Yes or no, never said (warning): with one output, judged at the same times. One answer is at most "
        "one in 1 + `ratio` labels, and five or more such labels were in batches since step 40.\n"
        "- No output of these batches was ever on that answer's side. More such labels are needed where one "
        "was before.\n"
        "- Yes or no, ignored (warning): the rare answer is ignored in the way of rare classes above, "
        "counted at every 5th step. A map of one channel is counted by its pixels, and where `pos_weight` is "
        "given, by all labels of a sample.\n"
        "- This is reported also where `pos_weight` makes a rare yes count less.\n"
        "- Weights (warning): the classes' weights in the loss are their counts, or a power of these "
        "(between 0.4 and 1.3, such as the root), where one divided by it is meant.\n"
        "- Weights of three classes or more need three different weights, all within a tenth of that law, "
        "beside what a hundred labels or more tell of the counts. With two classes, only the counts "
        "themselves are meant, as 500 labels tell them.\n"
        "- Weights where each pixel or position has a label, as in segmentation: likewise, by three steps or "
        "more. Labels next to each other are alike, so that counts are taken to be less certain.\n"
        "- Weights also need the most frequent class to be at least three times as frequent as the rarest, "
        "with a weight half as large again.\n"
        "- Weights of other classes (warning): of four or more classes, each in 20 labels or more, the "
        "weights from large to small are one divided by the counts from small to large; of five or more, by "
        "their roots, too. They are so but for a factor, within 5 % and what the counts are known by.\n"
        "- Weights of other classes, where they are not: in the classes' own order, one weight is more than "
        "twice what its count asks for beside the class in the middle, and another less than half.\n"
        "- Weights of other classes also need 1,000 labels and four weights that differ. Whole numbers up "
        "to 20, or such times one factor, are costs; and frequent classes that count more are told above.\n"
        "- Drawing (warning): a WeightedRandomSampler draws rows of frequent classes with the larger "
        "weights. These are the counts of rows with equal weights, or a power of them, as above, but within "
        "2 % and half a standard error of each count.\n"
        "- Drawing, by classes: among 500 labels or more, they must be as frequent as these weights make "
        "them, within four standard errors. Rows may be weighed by other traits.\n"
        "- Order (warning): batches of eight or more labels are nearly all of a single class each, although "
        "the data has several. Or they are of few classes each, and those of one step are mostly those of "
        "the step before.",
    .why =
        "With one class the loss falls to zero and nothing is learned. With rare classes the cheapest model "
        "is one that never predicts them; accuracy looks good all the same. Batches of one class pull the "
        "model from one class to the next.",
    .fix =
        "One class: check how labels are made and loaded. Imbalance: class weights in the loss, or a "
        "WeightedRandomSampler; judge by recall per class. Weights: one divided by the counts. Order: "
        "DataLoader(..., shuffle=True).",
    .healthy =
        "Unequal classes that the model finds all the same; vocabularies, whose rare words are rare; classes "
        "that never occur; weights by what a mistake costs, also of a rare class that is to count less; "
        "trainings with several optimizers, as in a GAN (info). A calibrated model of rare events that gives "
        "the rare answer now and then, whose loss is below nine tenths of what their frequency alone gives "
        "(info); a program that names measures of an order or of probabilities alone, such as AUC, "
        "concordance or log loss (info).",
    .cost =
        "Counts of labels, predictions and hits of the first 20 batches and then every 5th, of training and "
        "of evaluation: one pass over the logits. At the first six steps, a comparison of the targets with "
        "the inputs of layers over a sequence.",
    .original = "ClassImbalance",
    .source =
        "Buda, Maki, Mazurowski, \"A systematic study of the class imbalance problem in convolutional neural "
        "networks\", Neural Networks 106 (2018)",
    .severity = model::Severity::kError,
    .parameters = {{"ratio", "times", 8, 2, 1e6, "labels of the most frequent class per label of a rare one"},
                   {"min_labels", "labels", 256, 10, 1e9, "labels before one class alone counts"}},
};

class ClassImbalance final : public Rule {
  public:
    explicit ClassImbalance(const Parameters& parameters)
        : min_labels_(parameters.at("min_labels")),
          missed_(parameters.at("ratio")),
          answers_(parameters.at("ratio")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kEval) return missed_.observe_evaluation(step, tensor_, last_);
        if (step.mode() != model::Mode::kTrain) return;
        last_ = step.step();
        game_.observe(step);
        contrast_.observe(step);
        missed_.observe(step);
        drawing_.observe(step);
        answers_.observe(step);
        look_at_answers(step, sink);
        if (tensor_.empty() && weights_.judge_places(step, sink)) ++judged_;
        if (step.record->classes.empty()) return count_answers(step, sink);
        look_at_classes(step, step.record->classes.front(), sink);
    }
    // A short training is judged when it is over.
    void on_end(FindingSink& sink) override {
        if (last_ + 1 < kStepsOfShortTraining) return;
        if (answers_.are_counted()) {
            if (are_answers_ignored()) answers_.set_ignored(true);
            return answers_.judge(tally_, last_, game_.is_on(), sink);
        }
        if (tally_.seen() > 1) {
            missed_.judge_end(tally_, context(), sink);
            if (!game_.is_on() && !is_firing() && !missed_.are_evaluated())
                missed_.judge_whole(tally_, context(), sink);
        }
        if (last_ < kStepsToSettle) answers_.judge(tally_, last_, game_.is_on(), sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no labels were seen: they are counted where a classification loss of torch.nn.functional is "
               "used, or a cross-entropy is written out and nothing else";
    }

  private:
    static constexpr const char* kOneClass = "one_class";
    static constexpr std::uint64_t kFewestBatches = 10;  // before one class alone counts

    [[nodiscard]] bool is_firing() const {
        return !firing_.is_empty() || mixing_.is_firing() || answer_mixing_.is_firing() ||
               missed_.is_firing() || answers_.is_firing() || weights_.is_firing() || drawing_.is_firing();
    }
    [[nodiscard]] MissedClasses::Context context() const {
        return {.tensor = tensor_, .weights = weights_.of_classes(), .last = last_, .is_game = game_.is_on()};
    }

    // Labels yes or no and what one output said of them, as far as their extremes tell it.
    void look_at_answers(const model::StepView& step, FindingSink& sink) {
        for (const LossCall& call : loss_calls(step)) {
            const std::optional<AnswerBatch> batch = answers_.add(call, last_);
            if (!batch) continue;
            ++judged_;
            const double labels = answers_.given().labels(), yes = answers_.given().yes();
            answer_mixing_.judge(*batch, yes / labels, last_, game_.is_on(), sink);
            look_at_drawing({labels - yes, yes}, tensor_.empty() ? answers_.loss() : tensor_, sink);
            if (last_ >= kStepsToSettle) answers_.judge(tally_, last_, game_.is_on(), sink);
        }
    }
    // Answers are counted at more steps than their extremes are captured at, each as one of two classes.
    void count_answers(const model::StepView& step, FindingSink& sink) {
        if (!tensor_.empty() && !answers_.are_counted()) return;
        if (!answers_.count(step, tally_)) return;
        ++judged_;
        if (last_ < kStepsToSettle) return;
        answers_.set_ignored(missed_.look(are_answers_ignored()) >= kLooksToMiss);
        answers_.judge(tally_, last_, game_.is_on(), sink);
    }
    [[nodiscard]] bool are_answers_ignored() const {
        return missed_.are_ignored(tally_, weights_.of_classes()) && answers_.may_be_ignored(tally_);
    }

    void look_at_classes(const model::StepView& step, const model::ClassSample& sample, FindingSink& sink) {
        if (tensor_.empty()) {
            tensor_ = step.info(sample.tensor).name;
            id_ = sample.tensor;
        }
        if (sample.tensor != id_) return;
        missed_.observe_losses(step);
        // A model of NaN has no favourite.
        if (!are_losses_finite(step)) return;
        double in_batch = 0;
        for (const std::uint32_t label : sample.counts.labels) in_batch += label;
        if (in_batch <= 0) return;
        ++judged_;
        mixing_.add(sample.counts, in_batch, last_);
        tally_.add(sample.counts, in_batch);
        weights_.judge(step, tensor_, tally_, sink);
        look_at_drawing(tally_.labels(), tensor_, sink);
        missed_.remember(tally_, last_);
        if (judge_one_class(sink)) return;
        mixing_.judge(tally_, tensor_, game_.is_on(), sink);
        if (last_ >= kStepsToSettle) missed_.judge(tally_, context(), sink);
    }
    [[nodiscard]] static bool are_losses_finite(const model::StepView& step) {
        const auto& scalars = step.record->scalars;
        return std::all_of(scalars.begin(), scalars.end(), [&](const model::ScalarSample& one) {
            return step.info(one.tensor).role != model::Role::kLoss || std::isfinite(one.value);
        });
    }
    // `labels`: drawn so far, of each class.
    void look_at_drawing(const std::vector<double>& labels, std::string_view tensor, FindingSink& sink) {
        if (!game_.is_on()) drawing_.judge(labels, tensor, sink);
    }

    // Whether all labels are of one class, which it says unless they tell only that vectors are compared.
    bool judge_one_class(FindingSink& sink) {
        const bool is_one = tally_.seen() == 1 && tally_.total() >= min_labels_ && judged_ >= kFewestBatches;
        if (is_one && !contrast_.is_on()) say_one_class(sink);
        else firing_.clear(kOneClass, sink);
        return is_one;
    }
    void say_one_class(FindingSink& sink) {
        const std::size_t outputs = tally_.labels().size();
        model::Finding finding;
        finding.key = kOneClass;
        finding.tensor = tensor_;
        finding.plots = {{"loss", "value"}};
        finding.severity = game_.is_on() ? model::Severity::kInfo : model::Severity::kError;
        finding.first_step = 0;
        finding.message = base::format(
            "All {:.0f} labels of the {} batches looked at up to step {} are of class {}; the model has {} "
            "outputs.",
            tally_.total(), judged_, last_, most_frequent(tally_.labels()), outputs);
        finding.fix =
            "Check how the labels are made and loaded: print them for one batch. If the data is sorted by "
            "class, use DataLoader(..., shuffle=True).";
        finding.evidence = {{"classes with a label", 1, "model outputs", static_cast<double>(outputs)},
                            {"labels", tally_.total(), "", 0}};
        firing_.fire(std::move(finding), sink);
    }

    double min_labels_;
    std::uint64_t judged_ = 0;
    model::StepIndex last_ = 0;
    Game game_;
    Contrast contrast_;
    std::string tensor_;  // whose classes are counted; empty where none are
    model::TensorId id_ = 0;
    ClassTally tally_;
    ClassMixing mixing_;
    AnswerMixing answer_mixing_;
    MissedClasses missed_;
    RareAnswer answers_;
    ClassWeights weights_;
    WeightedDrawing drawing_;
    Firing firing_;
};

std::vector<model::Requirement> class_imbalance_needs(const Parameters&) {
    std::vector<model::Requirement> all = argument_requirements(kClassImbalance.name);
    for (model::Requirement& one : loss_requirements(kClassImbalance.name))
        if (one.collection == "losses") all.push_back(std::move(one));
    all.push_back({"classes",
                   model::Mode::kTrain,
                   model::What::kClasses,
                   {.every = 5, .dense_until = 20},
                   kClassImbalance.name});
    all.push_back({"classes",
                   model::Mode::kEval,
                   model::What::kClasses,
                   {.every = 5, .dense_until = 20},
                   kClassImbalance.name});
    for (model::Requirement& more : sequence_requirements(kClassImbalance.name))
        all.push_back(std::move(more));
    return all;
}

}  // namespace

RuleEntry builtin::class_imbalance() {
    return {&kClassImbalance, &class_imbalance_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<ClassImbalance>(p); }};
}

}  // namespace traindbg::rules
