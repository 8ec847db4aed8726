// Labels of one class only, classes that the model never predicts, batches that are not mixed.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"

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
        "(info); a program that names measures of an order or of probabilities alone, such as AUC or log "
        "loss (info).",
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
        : ratio_(parameters.at("ratio")), min_labels_(parameters.at("min_labels")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kEval) return look_at_evaluation(step);
        if (step.mode() != model::Mode::kTrain) return;
        game_.observe(step);
        contrast_.observe(step);
        last_ = step.step();
        if (const auto order = loop_fact(step, "judges_order")) judges_order_ = order->value > 0;
        are_next_ = are_next_ || loop_fact(step, "later_seen").has_value();
        read_drawing(step);
        if (counts_answers_) add_answer_losses(step);
        look_at_yes_and_no(step, sink);
        look_at_dense_weights(step, sink);
        if (step.record->classes.empty()) return count_answers(step, sink);
        const model::ClassSample& sample = step.record->classes.front();
        if (tensor_.empty()) {
            tensor_ = step.info(sample.tensor).name;
            id_ = sample.tensor;
        }
        if (sample.tensor != id_) return;
        // A model of NaN has no favourite.
        const auto& scalars = step.record->scalars;
        for (const model::ScalarSample& one : scalars)
            if (is_first_loss(step.info(one.tensor)) && step.info(one.tensor).name != "loss")
                losses_.add(one.value);
        const bool is_finite = std::all_of(scalars.begin(), scalars.end(), [&](const auto& one) {
            return step.info(one.tensor).role != model::Role::kLoss || std::isfinite(one.value);
        });
        if (!is_finite) return;
        const model::ClassCounts& counts = sample.counts;
        double in_batch = 0;
        for (const std::uint32_t label : counts.labels) in_batch += label;
        if (in_batch <= 0) return;
        ++judged_;
        compare_with_last(counts, in_batch, step.step());
        add(counts, in_batch);
        look_at_weights(step, sink);
        look_at_drawing(labels_, sink);
        if (last_ >= std::max<model::StepIndex>(kShort, 2 * now_.step)) {
            before_ = std::move(now_);
            now_ = {last_, shares_found()};
        }
        const bool single = seen() == 1 && total_ >= min_labels_ && judged_ >= 10;
        set("one_class", single && !contrast_.is_on(), sink);
        if (single) return;
        set("order", is_unmixed(), sink);
        if (last_ >= kSettled) set_imbalance(sink, kLooks);
    }
    // A short training is judged when it is over.
    void on_end(FindingSink& sink) override {
        if (last_ + 1 < kShort) return;
        if (counts_answers_) {
            are_answers_missed_ = are_answers_missed_ || (is_imbalanced() && is_no_chance());
            set_yes_or_no(sink);
            return;
        }
        if (seen() > 1) set_imbalance(sink, 1, true);
        if (seen() > 1 && !game_.is_on() && firing_.empty() && evaluated_.empty())
            set(kImbalance, is_missed_to_the_end(), sink);
        if (last_ < kSettled) set_yes_or_no(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no labels were seen: they are counted where a classification loss of torch.nn.functional is "
               "used, or a cross-entropy is written out and nothing else";
    }

  private:
    // Binary cross-entropy of one output: labels and predictions are not counted there, but their extremes
    // tell that one answer was never given.
    void look_at_yes_and_no(const model::StepView& step, FindingSink& sink) {
        for (const LossCall& call : loss_calls(step)) {
            const bool is_logits = call.function == "binary_cross_entropy_with_logits";
            if ((!is_logits && call.function != "binary_cross_entropy") || call.labelled == nullptr) continue;
            binary_function_ = call.function;
            const std::vector<std::int64_t>& shape = call.prediction->shape;
            const model::Statistics& labels = *call.labelled;
            const double mean = labels.mean;
            const bool is_hard = labels.min >= 0 && labels.max <= 1 &&
                                 std::abs(labels.std * labels.std - mean * (1 - mean)) < 1e-4;
            if (!is_hard || !(shape.size() == 1 || (shape.size() == 2 && shape[1] == 1))) continue;
            ++judged_;
            const auto count = static_cast<double>(labels.count);
            binary_labels_ += count;
            binary_yes_ += mean * count;
            const bool is_yes_rare = 2 * binary_yes_ < binary_labels_;
            const double border = is_logits ? 0 : 0.5;
            look_at_order(mean, count, call.function, step.step(), sink);
            look_at_drawing({binary_labels_ - binary_yes_, binary_yes_}, sink);
            const bool is_given = is_yes_rare ? call.predicted->max > border : call.predicted->min < border;
            if (is_given) {
                ++given_;
                if (2 * last_ >= kSettled) ++given_in_all_;
                missed_yes_or_no_ = 0;
                missed_since_ = last_ + 1;
            } else if (last_ >= kFirstSteps) {
                given_ = 0;
                missed_yes_or_no_ += (is_yes_rare ? mean : 1 - mean) * count;
            }
            is_answer_missed_ = !is_given;
            if (last_ >= kSettled) set_yes_or_no(sink);
        }
    }
    // Answers are counted at more steps than their extremes are captured at, each as one of two classes.
    // Their batches may well be of one class: some losses are called for what is and for what is not.
    void count_answers(const model::StepView& step, FindingSink& sink) {
        const auto all = loop_fact(step, "answers"), yes = loop_fact(step, "answers_yes"),
                   said = loop_fact(step, "answers_said_yes"), right = loop_fact(step, "answers_right_yes");
        if (!all || !yes || !said || !right || !(all->value > 0) || (!tensor_.empty() && !counts_answers_))
            return;
        counts_answers_ = true;
        ++judged_;
        if (const auto weight = loop_fact(step, "answers_weight")) weight_ = weight->value;
        const auto whole = [](double value) { return static_cast<std::uint32_t>(std::max(value, 0.0)); };
        const double right_no = all->value - yes->value - said->value + right->value;
        add({.labels = {whole(all->value - yes->value), whole(yes->value)},
             .predictions = {whole(all->value - said->value), whole(said->value)},
             .hits = {whole(right_no), whole(right->value)}},
            all->value);
        if (last_ < kSettled) return;
        // To begin with, it must not be a matter of a few samples.
        imbalanced_ = is_imbalanced() && (are_answers_missed_ || is_no_chance()) ? imbalanced_ + 1 : 0;
        are_answers_missed_ = imbalanced_ >= kLooks;
        set_yes_or_no(sink);
    }
    void add_answer_losses(const model::StepView& step) {
        for (const model::ScalarSample& sample : step.record->scalars)
            if (step.info(sample.tensor).name.starts_with("loss/binary_cross_entropy") &&
                std::isfinite(sample.value))
                answer_losses_.add(sample.value);
    }
    // Of a rare answer that is given to a fifth of its samples, so few would be found once in a hundred
    // times. Calibrated models of rare events find no more than that, and are sound.
    [[nodiscard]] bool is_no_chance() const {
        const std::size_t rare = recent_[1] <= recent_[0] ? 1 : 0;
        const double mean = 0.2 * recent_[rare];
        double term = std::exp(-mean), sum = term;  // of a Poisson distribution
        for (double k = 1; k <= hits_[rare]; ++k) sum += term *= mean / k;
        return sum < 0.01;
    }
    // Rare samples without the answer, from which on it is never given: one that was now and then will be
    // again.
    [[nodiscard]] double most_missed() const { return 5 * (1 + static_cast<double>(given_in_all_)); }
    void set_yes_or_no(FindingSink& sink) {
        const double rare = std::min(binary_yes_, binary_labels_ - binary_yes_);
        const bool never = is_answer_missed_ && binary_labels_ >= 500 &&
                           binary_labels_ - rare >= ratio_ * rare && missed_yes_or_no_ >= most_missed();
        if (!game_.is_on() && never) fire_yes_or_no(rare, 2 * binary_yes_ < binary_labels_, sink);
        else if (!game_.is_on() && are_answers_missed_) fire_answers(sink);
        else if ((!is_never_told_ || given_ >= kLooks) && firing_.erase(kYesOrNo) > 0) {
            is_never_told_ = false;
            sink.clear(kYesOrNo);
        }
    }
    // The same answer for batch after batch, then the other one. Two losses of a step, for what is and what
    // is not, have one answer each, too, but no order.
    void look_at_order(double mean, double count, std::string_view function, model::StepIndex step,
                       FindingSink& sink) {
        if (count < 8) return;
        ++yes_or_no_batches_;
        yes_or_no_entropy_ += entropy_of(mean);
        const int side = mean > 0.9 ? 1 : mean < 0.1 ? 0 : -1;
        if (side >= 0 && last_side_ >= 0 && step == last_yes_or_no_ + 1)
            ++(side == last_side_ ? kept_ : switched_);
        last_side_ = side;
        last_yes_or_no_ = step;
        const double in_data = entropy_of(binary_yes_ / binary_labels_);
        const double in_batch = yes_or_no_entropy_ / static_cast<double>(yes_or_no_batches_);
        const bool on = yes_or_no_batches_ >= 10 && in_data > 0.3 && in_batch < 0.2 * in_data && kept_ >= 5 &&
                        kept_ >= 4 * switched_ && !game_.is_on();
        if (on) {
            model::Finding finding;
            finding.tensor = base::format("loss/{}", function);
            say_order(std::exp(in_batch), 2, std::exp(in_data), finding);
            firing_.insert(kYesOrNoOrder);
            finding.key = kYesOrNoOrder;
            sink.fire(std::move(finding));
        } else if (firing_.erase(kYesOrNoOrder) > 0) {
            sink.clear(kYesOrNoOrder);
        }
    }
    [[nodiscard]] static double entropy_of(double yes) {
        if (!(yes > 0) || !(yes < 1)) return 0;
        return -yes * std::log(yes) - (1 - yes) * std::log(1 - yes);
    }
    // `in_batch`, `in_data`: as many equal classes as would be as mixed.
    void say_order(double in_batch, std::size_t classes, double in_data, model::Finding& finding) const {
        finding.kind = "unshuffled_data";
        finding.severity = game_.is_on() ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = 0;
        finding.message = base::format(
            "Batches are not mixed: each is of about {:.1f} classes, the data so far is of {} (as if of "
            "{:.1f} equal ones).",
            in_batch, classes, in_data);
        finding.fix =
            "Shuffle: DataLoader(..., shuffle=True), from a buffer as large as the data where it streams.";
        finding.evidence.push_back({"classes per batch", in_batch, "in the data", in_data});
        finding.plots = {{"loss", "value"}};
    }
    void fire_yes_or_no(double rare, bool is_yes_rare, FindingSink& sink) {
        firing_.insert(kYesOrNo);
        is_never_told_ = true;
        model::Finding finding;
        finding.key = kYesOrNo;
        set_severity(binary_yes_ / binary_labels_, false, finding);
        finding.tensor = base::format("loss/{}", binary_function_);
        finding.message = base::format(
            "{:.1f} % of the labels are {}, and the model never says so: not for one of the {:.0f} such "
            "samples in the batches looked at from step {} to {}.",
            100 * rare / binary_labels_, is_yes_rare ? 1 : 0, missed_yes_or_no_,
            std::max(missed_since_, kFirstSteps), last_);
        finding.message += about_weight(is_yes_rare);
        finding.fix = advice_for((binary_labels_ - rare) / rare, is_yes_rare);
        finding.evidence.push_back({"labels of the frequent answer / of the rare one",
                                    (binary_labels_ - rare) / rare, "limit", ratio_});
        finding.evidence.push_back(
            {"samples of the rare answer missed", missed_yes_or_no_, "limit", most_missed()});
        finding.plots = {{finding.tensor, "value"}};
        sink.fire(std::move(finding));
    }

    void fire_answers(FindingSink& sink) {
        firing_.insert(kYesOrNo);
        const std::size_t rare = recent_[1] <= recent_[0] ? 1 : 0;
        model::Finding finding;
        finding.key = kYesOrNo;
        set_severity(recent_[1] / (recent_[0] + recent_[1]), true, finding);
        finding.tensor = base::format("loss/{}", binary_function_);
        finding.message = base::format(
            "{:.1f} % of the labels are {}, and the model says so for {:.0f} % of these: for {:.0f} of about "
            "the last {:.0f} up to step {}.",
            100 * recent_[rare] / (recent_[0] + recent_[1]), rare, 100 * hits_[rare] / recent_[rare],
            hits_[rare], recent_[rare], last_);
        finding.message += about_weight(rare == 1);
        finding.fix = advice_for(recent_[1 - rare] / recent_[rare], rare == 1);
        finding.evidence.push_back({"labels of the frequent answer / of the rare one",
                                    recent_[1 - rare] / recent_[rare], "limit", ratio_});
        finding.evidence.push_back(
            {"recall of the rare answer", hits_[rare] / recent_[rare], "limit", kIgnored});
        finding.plots = {{finding.tensor, "value"}};
        sink.fire(std::move(finding));
    }
    // `pos_weight` makes samples of a rare yes count less still.
    [[nodiscard]] bool is_weight_turned(bool is_yes_rare) const { return is_yes_rare && weight_ < 0.5; }
    [[nodiscard]] std::string about_weight(bool is_yes_rare) const {
        if (!is_weight_turned(is_yes_rare)) return {};
        return base::format(" pos_weight is {:.2g}, which makes them count less, not more.", weight_);
    }
    // One that gives the rare answer now and then and has a loss below that of its frequency alone may be
    // calibrated: few samples are likelier than not. So may any that is judged by its order. The mean of
    // losses, as most batches have no rare sample, and a low one. `yes`: their share of the labels.
    void set_severity(double yes, bool now_and_then, model::Finding& finding) const {
        const auto& losses = answer_losses_.values();
        const double mean = std::accumulate(losses.begin(), losses.end(), 0.0) /
                            static_cast<double>(std::max<std::size_t>(losses.size(), 1));
        const double said = yes * weight_ / (yes * weight_ + 1 - yes);  // the best of constant answers
        const double weighed = yes * weight_;
        const double base = (weighed > 0 ? -weighed * std::log(said) : 0) - (1 - yes) * std::log(1 - said);
        const bool tells = now_and_then && !losses.empty() && mean < kTelling * base;
        const bool is_sound = (tells || judges_order_) && !is_weight_turned(yes < 0.5);
        finding.severity = is_sound ? model::Severity::kInfo : model::Severity::kWarning;
        if (!losses.empty()) finding.evidence.push_back({"loss", mean, "of the best constant answer", base});
    }
    // `ratio`: of the frequent answer's labels to those of the rare one.
    [[nodiscard]] static std::string advice_for(double ratio, bool is_yes_rare) {
        return base::format(
            "Weight the rare answer in the loss (pos_weight={:.2g} in binary_cross_entropy_with_logits), or "
            "draw samples evenly with torch.utils.data.WeightedRandomSampler; judge by recall, not by "
            "accuracy.",
            is_yes_rare ? ratio : 1 / ratio);
    }

    // How much of a batch's labels the batch of the step before had, too.
    void compare_with_last(const model::ClassCounts& counts, double in_batch, model::StepIndex step) {
        if (in_batch >= 8 && last_labels_.size() == counts.labels.size() && step == last_step_ + 1) {
            std::vector<double> shares(counts.labels.begin(), counts.labels.end());
            for (double& share : shares) share /= in_batch;
            if (batches_in_a_row_.size() < kMostPairs && shares.size() <= kMostClasses) {
                overlap_ += overlap(last_labels_, shares);
                batches_in_a_row_.push_back(std::move(shares));
            }
        }
        last_labels_.assign(counts.labels.begin(), counts.labels.end());
        for (double& share : last_labels_) share /= in_batch;
        last_step_ = step;
    }

    void add(const model::ClassCounts& counts, double in_batch) {
        const std::size_t classes = counts.labels.size();
        if (labels_.size() < classes) {
            labels_.resize(classes);
            recent_.resize(classes);
            predicted_.resize(classes);
            hits_.resize(classes);
        }
        // An exponential window of about kWindow labels.
        const double keep = std::max(0.0, 1 - in_batch / kWindow);
        double entropy = 0;
        for (std::size_t i = 0; i < classes; ++i) {
            const double label = counts.labels[i];
            labels_[i] += label;
            recent_[i] = recent_[i] * keep + label;
            predicted_[i] = predicted_[i] * keep + counts.predictions[i];
            hits_[i] = hits_[i] * keep + counts.hits[i];
            if (label > 0) entropy -= label / in_batch * std::log(label / in_batch);
        }
        total_ += in_batch;
        if (in_batch >= 8) {
            ++batches_;
            batch_entropy_ += entropy;
        }
    }
    [[nodiscard]] std::size_t seen() const {
        return static_cast<std::size_t>(
            std::count_if(labels_.begin(), labels_.end(), [](double n) { return n > 0; }));
    }
    // Many classes, or what comes next in a sequence: chance decides where a rare one comes, as a word that
    // opens a sentence, and none of its places is likelier to have it than a frequent one.
    [[nodiscard]] bool is_vocabulary() const { return are_next_ || seen() > kManyClasses; }
    [[nodiscard]] double entropy() const {
        double sum = 0;
        for (const double n : labels_)
            if (n > 0) sum -= n / total_ * std::log(n / total_);
        return sum;
    }
    // What a class tells of itself in one batch is what it tells of itself in all.
    [[nodiscard]] bool is_unmixed() const {
        if (batches_ < 10 || seen() < 2 || entropy() <= 0.3) return false;
        const double share = batch_entropy_ / static_cast<double>(batches_) / entropy();
        return share < 0.2 || (share < 0.5 && is_slow());
    }
    [[nodiscard]] static double overlap(const std::vector<double>& a, const std::vector<double>& b) {
        double sum = 0;
        for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += std::min(a[i], b[i]);
        return sum;
    }
    // Batches are much more like the one before than like all data. A frequent class alone makes both alike.
    [[nodiscard]] bool is_slow() const {
        if (batches_in_a_row_.size() < 10) return false;
        std::vector<double> all = labels_;
        for (double& count : all) count /= total_;
        double with_all = 0;
        for (const std::vector<double>& shares : batches_in_a_row_) with_all += overlap(shares, all);
        const auto pairs = static_cast<double>(batches_in_a_row_.size());
        return overlap_ > 0.6 * pairs && overlap_ - with_all > 0.25 * pairs;
    }
    // What the model finds of each class in evaluations, the recent ones more than those long ago.
    void look_at_evaluation(const model::StepView& step) {
        // What it did not know then it may know by now.
        if (last_ > 2 * evaluated_since_ + kShort) {
            evaluated_.clear();
            found_.clear();
            evaluated_since_ = last_;
        }
        if (const model::StepIndex done = last_ + 1; done != latest_.after) {
            evaluated_before_ = std::exchange(latest_, {});
            latest_.after = done;
        }
        for (const model::ClassSample& sample : step.record->classes) {
            if (step.info(sample.tensor).name != tensor_) continue;
            const std::size_t classes = sample.counts.labels.size();
            latest_.add(sample.counts);
            if (evaluated_.size() < classes) {
                evaluated_.resize(classes);
                found_.resize(classes);
            }
            double in_batch = 0;
            for (const std::uint32_t label : sample.counts.labels) in_batch += label;
            const double keep = std::max(0.0, 1 - in_batch / kWindow);
            for (std::size_t i = 0; i < classes; ++i) {
                evaluated_[i] = evaluated_[i] * keep + sample.counts.labels[i];
                found_[i] = found_[i] * keep + sample.counts.hits[i];
            }
        }
    }
    // In the latest evaluation, against the one before: rare classes are learned after the others.
    [[nodiscard]] bool is_found_more_and_more(std::size_t i) const {
        const std::optional<double> now = latest_.share(i), then = evaluated_before_.share(i);
        const bool is_firing = firing_.contains(kInEvaluation);
        return now && (*now >= kMissed || (!is_firing && then && *now > *then + kMore));
    }
    // Rare classes that are known by heart alone.
    // Whether a class is rare in the loss: by its labels, and what they are weighted with.
    [[nodiscard]] bool counts_less(const std::vector<double>& labels, std::size_t rare,
                                   std::size_t common) const {
        const auto weighted = [&](std::size_t i) {
            const bool has_weight = weights_.size() == labels.size() && weights_[i] > 0;
            return labels[i] * (has_weight ? weights_[i] : 1);
        };
        return labels[common] >= ratio_ * labels[rare] && weighted(common) >= ratio_ * weighted(rare);
    }
    [[nodiscard]] bool is_missed_in_evaluation() {
        if (total_ < 500 || is_vocabulary()) return false;
        const auto common = static_cast<std::size_t>(
            std::distance(labels_.begin(), std::max_element(labels_.begin(), labels_.end())));
        if (common >= evaluated_.size() || evaluated_[common] < 10 ||
            found_[common] < kFound * evaluated_[common])
            return false;
        missed_.clear();
        for (std::size_t i = 0; i < std::min(labels_.size(), evaluated_.size()); ++i)
            if (labels_[i] > 0 && counts_less(labels_, i, common) && evaluated_[i] >= 10 &&
                found_[i] < kMissed * evaluated_[i] && !is_found_more_and_more(i))
                missed_.push_back(i);
        return !missed_.empty();
    }
    // `looks`: in a row that must show it in training, where some samples decide.
    void set_imbalance(FindingSink& sink, std::uint64_t looks, bool is_over = false) {
        imbalanced_ = is_imbalanced() ? imbalanced_ + 1 : 0;
        const bool may_come = !is_over && falls_fast();  // a rare class is learned last
        const bool in_training = imbalanced_ >= looks && !may_come;
        const bool in_evaluation = !in_training && !may_come && !game_.is_on() &&
                                   4 * evaluated_since_ >= last_ && is_missed_in_evaluation();
        set(kImbalance, in_training, sink);
        set(kInEvaluation, in_evaluation, sink);
    }
    // The loss is well below what it was so many steps ago.
    [[nodiscard]] bool falls_fast() const {
        if (!losses_.full()) return false;
        const auto values = losses_.values();
        const auto half = static_cast<std::ptrdiff_t>(values.size() / 2);
        const double before = std::accumulate(values.begin(), values.begin() + half, 0.0);
        const double now = std::accumulate(values.begin() + half, values.end(), 0.0);
        return now < kFallsFast * before;
    }
    [[nodiscard]] bool is_imbalanced() {
        const double most = *std::max_element(recent_.begin(), recent_.end());
        const double all = std::accumulate(recent_.begin(), recent_.end(), 0.0);
        const double predicted = std::accumulate(predicted_.begin(), predicted_.end(), 0.0);
        if (all < 500 || predicted <= 0) return false;
        const double favourite = *std::max_element(predicted_.begin(), predicted_.end()) / predicted;
        const bool collapsed = favourite >= 0.98 && most / all >= 0.3;
        if (is_vocabulary() && !collapsed) return false;
        // Where chance decides, as of the next letter, frequent classes are missed, too.
        const auto common = static_cast<std::size_t>(
            std::distance(recent_.begin(), std::max_element(recent_.begin(), recent_.end())));
        if (hits_[common] < kFound * recent_[common] && agreement() < kTellsApart) return false;
        missed_.clear();
        for (std::size_t i = 0; i < recent_.size(); ++i)
            if (recent_[i] >= 20 && counts_less(recent_, i, common) && hits_[i] < kIgnored * recent_[i])
                missed_.push_back(i);
        return !missed_.empty();
    }

    // Of each class, the share of its recent samples that the model finds.
    [[nodiscard]] std::vector<double> shares_found() const {
        std::vector<double> shares(recent_.size(), 0);
        for (std::size_t i = 0; i < recent_.size(); ++i)
            if (recent_[i] > 0) shares[i] = hits_[i] / recent_[i];
        return shares;
    }
    // What is missed of the rows that it is trained on is missed of others, too. No evaluation tells.
    [[nodiscard]] bool is_missed_to_the_end() {
        const auto common = static_cast<std::size_t>(
            std::distance(recent_.begin(), std::max_element(recent_.begin(), recent_.end())));
        if (total_ < 2 * kWindow || is_vocabulary() || hits_[common] < 0.9 * recent_[common]) return false;
        // Of a time that is long enough ago to tell whether it learns to find them.
        const Found& then = 4 * now_.step <= 3 * last_ ? now_ : before_;
        missed_.clear();
        for (std::size_t i = 0; i < recent_.size(); ++i) {
            if (recent_[i] < 30 || !counts_less(recent_, i, common) || i >= then.shares.size()) continue;
            const double share = hits_[i] / recent_[i];
            if (share < 0.25 && share <= then.shares[i]) missed_.push_back(i);
        }
        return !missed_.empty();
    }

    // Of predictions with labels, from 0, as often as by chance with these shares, to 1: Cohen's kappa.
    // Source: Cohen, "A coefficient of agreement for nominal scales", 1960.
    [[nodiscard]] double agreement() const {
        const double all = std::accumulate(recent_.begin(), recent_.end(), 0.0);
        const double predicted = std::accumulate(predicted_.begin(), predicted_.end(), 0.0);
        const double hits = std::accumulate(hits_.begin(), hits_.end(), 0.0);
        double by_chance = 0;
        for (std::size_t i = 0; i < recent_.size(); ++i)
            by_chance += recent_[i] / all * predicted_[i] / predicted;
        return by_chance < 1 ? (hits / all - by_chance) / (1 - by_chance) : 0;
    }

    // The number at the end of a place, of which there are no more than weights may be of.
    [[nodiscard]] static std::optional<std::size_t> number_in(std::string_view digits) {
        std::size_t number = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (error != std::errc() || end != digits.data() + digits.size() || number >= kMostWeighed)
            return std::nullopt;
        return number;
    }
    static void put(double value, std::size_t number, std::vector<double>& values) {
        if (values.size() <= number) values.resize(number + 1, 0);
        values[number] = value;
    }
    // What each class counts in the loss, told of the first batches.
    void look_at_weights(const model::StepView& step, FindingSink& sink) {
        for (const LoopFact& fact : loop_facts(step, "class_weight")) {
            const std::size_t slash = fact.place.rfind('/');
            if (slash == std::string_view::npos ||
                tensor_ != base::format("classes/{}", fact.place.substr(0, slash)))
                continue;
            if (const auto number = number_in(fact.place.substr(slash + 1)))
                put(fact.value, *number, weights_);
        }
        const double enough = weights_.size() == 2 ? kWeighedLabelsOfTwo : kWeighedLabels;
        if (weights_.size() != labels_.size() || batches_ < kWeighedBatches || total_ < enough) return;
        const bool are_wrong_way = are_turned(weights_, labels_, kNearLaw, kLawErrors);
        set(kWeights, are_wrong_way, sink);
        set(kWeightsOfOthers,
            !are_wrong_way && total_ >= kLabelsOfOthers && !are_costs(weights_) &&
                are_of_others(weights_, labels_),
            sink);
    }
    // Small whole numbers, or such times one factor, are what somebody thought of, not what was counted.
    [[nodiscard]] static bool are_costs(const std::vector<double>& weights) {
        const double least = *std::min_element(weights.begin(), weights.end());
        const double most = *std::max_element(weights.begin(), weights.end());
        if (!(least > 0)) return false;
        for (double times = 1; times * most <= (kMostCost + kNearWhole) * least; ++times)
            if (std::all_of(weights.begin(), weights.end(), [&](double weight) {
                    const double cost = times * weight / least;
                    return std::abs(cost - std::round(cost)) <= kNearWhole;
                }))
                return true;
        return false;
    }
    // By how much the weight of each class is off from one divided by its count, or that to the power of
    // `law`, as a logarithm and but for a factor that all have.
    [[nodiscard]] static std::vector<double> off_by(const std::vector<double>& weights,
                                                    const std::vector<double>& counts, double law) {
        std::vector<double> off(counts.size());
        for (std::size_t i = 0; i < counts.size(); ++i)
            off[i] = std::log(weights[i]) + law * std::log(counts[i]);
        std::vector<double> ordered = off;
        std::sort(ordered.begin(), ordered.end());
        const std::size_t half = ordered.size() / 2;
        const double middle =
            ordered.size() % 2 == 1 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2;
        for (double& one : off) one -= middle;
        return off;
    }
    // They are one divided by the counts, or by their roots, but of the classes in another order: so they
    // fit when both are sorted, and not as they are.
    [[nodiscard]] static bool are_of_others(const std::vector<double>& weights,
                                            const std::vector<double>& counts) {
        if (counts.size() < kFewestOfOthers) return false;
        for (std::size_t i = 0; i < counts.size(); ++i)
            if (counts[i] < kFewestOfEach || !(weights[i] > 0) || !std::isfinite(weights[i])) return false;
        std::vector<double> rarest_first = counts, largest_first = weights;
        std::sort(rarest_first.begin(), rarest_first.end());
        std::sort(largest_first.begin(), largest_first.end(), std::greater<>());
        if (std::set<double>(weights.begin(), weights.end()).size() < kFewestOfOthers) return false;
        for (const double law : {1.0, 0.5}) {
            if (law < 1 && counts.size() < kFewestOfRoots) break;
            const std::vector<double> sorted = off_by(largest_first, rarest_first, law);
            bool fits = true;
            for (std::size_t i = 0; i < sorted.size(); ++i)
                fits = fits &&
                       std::abs(sorted[i]) <= kNearOthers + law * kLawErrors / std::sqrt(rarest_first[i]);
            if (!fits) continue;
            const std::vector<double> own = off_by(weights, counts, law);
            const auto [least, most] = std::minmax_element(own.begin(), own.end());
            return *least < -std::log(kOffOthers) && *most > std::log(kOffOthers);
        }
        return false;
    }
    // The same of a label for each pixel or position, which are counted at the first steps for this alone.
    void look_at_dense_weights(const model::StepView& step, FindingSink& sink) {
        const std::vector<LoopFact> counted = loop_facts(step, "dense_labels");
        if (counted.empty() || !tensor_.empty()) return;
        for (const LoopFact& fact : loop_facts(step, "dense_weight"))
            if (const auto number = number_in(fact.place)) put(fact.value, *number, weights_of_places_);
        labels_of_places_.resize(std::max(labels_of_places_.size(), counted.size()));
        for (const LoopFact& fact : counted)
            if (const auto number = number_in(fact.place); number && *number < labels_of_places_.size())
                labels_of_places_[*number] += fact.value;
        ++judged_;
        ++dense_looks_;
        const double all = std::accumulate(labels_of_places_.begin(), labels_of_places_.end(), 0.0);
        const bool are_known = weights_of_places_.size() == labels_of_places_.size();
        if (!are_known || dense_looks_ < kWeighedBatches || all < kWeighedLabelsOfTwo) return;
        set(kWeights, are_turned(weights_of_places_, labels_of_places_, kNearLaw, kDenseLawErrors), sink);
    }
    // They are the counts, or a power of them such as the root: of all classes by the same law, within `near`
    // and so many standard errors of the counts. Two weights follow some law always; theirs must be the
    // counts themselves.
    [[nodiscard]] static bool are_turned(const std::vector<double>& weights,
                                         const std::vector<double>& counts, double near, double errors) {
        std::size_t most = 0, least = 0, present = 0;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] <= 0) continue;
            if (!(weights[i] > 0) || !std::isfinite(weights[i])) return false;
            if (present++ == 0) most = least = i;
            if (counts[i] > counts[most]) most = i;
            if (counts[i] < counts[least]) least = i;
        }
        if (present < 2 || counts[most] < 3 * counts[least] || weights[most] < 1.5 * weights[least])
            return false;
        const double power =
            std::log(weights[most] / weights[least]) / std::log(counts[most] / counts[least]);
        if (power < kLeastPower || power > kMostPower) return false;
        std::set<double> distinct;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            if (counts[i] <= 0) continue;
            const double law = present == 2 ? 1 : power;
            const double ours = std::log(weights[i] / weights[least]);
            const double theirs = std::log(counts[i] / counts[least]);
            const double known = errors / std::sqrt(counts[i]) + errors / std::sqrt(counts[least]);
            if (std::abs(ours - law * theirs) > near + law * known) return false;
            distinct.insert(weights[i]);
        }
        return distinct.size() >= std::min<std::size_t>(present, 3);
    }
    // The weights with which a sampler draws rows, and how many rows have each, told at the first steps.
    void read_drawing(const model::StepView& step) {
        for (const LoopFact& fact : loop_facts(step, "drawn_weight"))
            if (const auto number = number_in(fact.place)) put(fact.value, *number, drawn_weights_);
        for (const LoopFact& fact : loop_facts(step, "drawn_weight_rows"))
            if (const auto number = number_in(fact.place)) put(fact.value, *number, drawn_rows_);
    }
    // Frequent classes are drawn more often still. `labels`: drawn so far, of each class.
    void look_at_drawing(const std::vector<double>& labels, FindingSink& sink) {
        if (drawn_weights_.size() < 2 || drawn_weights_.size() != drawn_rows_.size()) return;
        const double drawn = std::accumulate(labels.begin(), labels.end(), 0.0);
        if (drawn < kWeighedLabelsOfTwo || game_.is_on()) return;
        const bool on = are_turned(drawn_weights_, drawn_rows_, kNearDrawn, kDrawnLawErrors) &&
                        are_drawn_by_weight(labels, drawn);
        if (on || firing_.contains(kDrawing)) set(kDrawing, on, sink);
    }
    // The weights are of classes: these are as frequent as it makes them, the first as the first, and so on.
    // Rows may be weighed by anything else, as by where they are from.
    [[nodiscard]] bool are_drawn_by_weight(std::vector<double> labels, double drawn) const {
        std::vector<double> expected;
        for (std::size_t i = 0; i < drawn_rows_.size(); ++i)
            expected.push_back(drawn_weights_[i] * drawn_rows_[i]);
        const double all = std::accumulate(expected.begin(), expected.end(), 0.0);
        std::sort(expected.rbegin(), expected.rend());
        std::sort(labels.rbegin(), labels.rend());
        const std::size_t classes = std::max(labels.size(), expected.size());
        labels.resize(classes, 0);
        expected.resize(classes, 0);
        for (std::size_t i = 0; i < classes; ++i) {
            const double share = expected[i] / all;
            const double error = std::sqrt(drawn * share * (1 - share));
            if (std::abs(labels[i] - drawn * share) > kDrawnErrors * std::max(error, share > 0 ? 1.0 : 0.0))
                return false;
        }
        return true;
    }
    void say_drawing(model::Finding& finding) const {
        const auto at = [](const std::vector<double>& values, bool of_most) {
            return static_cast<std::size_t>(
                std::distance(values.begin(), of_most ? std::max_element(values.begin(), values.end())
                                                      : std::min_element(values.begin(), values.end())));
        };
        const std::size_t most = at(drawn_rows_, true), least = at(drawn_rows_, false);
        double all = 0;
        for (std::size_t i = 0; i < drawn_rows_.size(); ++i) all += drawn_weights_[i] * drawn_rows_[i];
        const double rows = std::accumulate(drawn_rows_.begin(), drawn_rows_.end(), 0.0);
        if (tensor_.empty()) finding.tensor = base::format("loss/{}", binary_function_);
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.message = base::format(
            "The sampler draws frequent classes more often still: rows of the most frequent one, {:.1f} % of "
            "the data, have a weight of {}, those of the rarest, {:.2g} %, one of {}. They are {:.1f} and "
            "{:.2g} % of what is drawn.",
            100 * drawn_rows_[most] / rows, base::human_number(drawn_weights_[most]),
            100 * drawn_rows_[least] / rows, base::human_number(drawn_weights_[least]),
            100 * drawn_weights_[most] * drawn_rows_[most] / all,
            100 * drawn_weights_[least] * drawn_rows_[least] / all);
        finding.fix =
            "WeightedRandomSampler takes a weight for each row, which is to make up for the counts: "
            "(1 / counts)[labels], not the counts or shares themselves.";
        finding.evidence.push_back({"weight of the most frequent class / of the rarest one",
                                    drawn_weights_[most] / drawn_weights_[least], "limit", 1.5});
        finding.evidence.push_back(
            {"rows of the one / of the other", drawn_rows_[most] / drawn_rows_[least], "", 0});
    }
    void say_weights(model::Finding& finding) const {
        const bool are_dense = tensor_.empty();
        const std::vector<double>& labels = are_dense ? labels_of_places_ : labels_;
        const std::vector<double>& weights = are_dense ? weights_of_places_ : weights_;
        const auto most = static_cast<std::size_t>(
            std::distance(labels.begin(), std::max_element(labels.begin(), labels.end())));
        std::size_t least = most;
        for (std::size_t i = 0; i < labels.size(); ++i)
            if (labels[i] > 0 && labels[i] < labels[least]) least = i;
        if (are_dense) finding.tensor = "loss";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.message = base::format(
            "The loss makes frequent classes count more: class {} has {:.2g} times the labels of class {}, "
            "and a weight of {} beside {}.",
            most, labels[most] / labels[least], least, base::human_number(weights[most]),
            base::human_number(weights[least]));
        finding.fix =
            "Weights are to make up for the counts: weight = counts.sum() / (len(counts) * counts), not the "
            "counts or shares themselves.";
        finding.evidence.push_back({"weight of the most frequent class / of the rarest one",
                                    weights[most] / weights[least], "limit", 1.5});
        finding.evidence.push_back({"labels of the one / of the other", labels[most] / labels[least], "", 0});
    }

    void say_weights_of_others(model::Finding& finding) const {
        // In both laws those that are off most are the same classes, or ones that are off as much.
        const std::vector<double> own = off_by(weights_, labels_, 1);
        const auto place = [&](auto found) { return static_cast<std::size_t>(found - own.begin()); };
        const std::size_t least = place(std::min_element(own.begin(), own.end()));
        const std::size_t most = place(std::max_element(own.begin(), own.end()));
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.message = base::format(
            "The loss gives classes the weights of other ones: sorted, they are one divided by the counts or "
            "their roots, but class {}, with {:.2g} times the labels of class {}, has a weight of {} beside "
            "{}.",
            most, labels_[most] / labels_[least], least, base::human_number(weights_[most]),
            base::human_number(weights_[least]));
        finding.fix =
            "Compute the weights from the labels that the loss is given, as by numpy.bincount(labels): names "
            "of classes may be sorted in another order than their numbers are.";
        finding.evidence.push_back(
            {"weight of the one class / of the other", weights_[most] / weights_[least], "", 0});
        finding.evidence.push_back(
            {"labels of the one / of the other", labels_[most] / labels_[least], "", 0});
    }

    void set(const char* key, bool on, FindingSink& sink) {
        if (on) {
            fire(key, sink);
            firing_.insert(key);
        } else if (firing_.erase(key) > 0) {
            sink.clear(key);
        }
    }

    void fire(std::string_view key, FindingSink& sink) const {
        model::Finding finding;
        finding.key = key;
        finding.tensor = tensor_;
        finding.plots = {{"loss", "value"}};
        if (key == "one_class") {
            const auto only =
                std::distance(labels_.begin(), std::max_element(labels_.begin(), labels_.end()));
            finding.severity = game_.is_on() ? model::Severity::kInfo : model::Severity::kError;
            finding.first_step = 0;
            finding.message = base::format(
                "All {:.0f} labels of the {} batches looked at up to step {} are of class {}; the model has "
                "{} outputs.",
                total_, judged_, last_, only, labels_.size());
            finding.fix =
                "Check how the labels are made and loaded: print them for one batch. If the data is sorted "
                "by class, use DataLoader(..., shuffle=True).";
            finding.evidence.push_back(
                {"classes with a label", 1, "model outputs", static_cast<double>(labels_.size())});
            finding.evidence.push_back({"labels", total_, "", 0});
        } else if (key == kWeights) {
            say_weights(finding);
        } else if (key == kWeightsOfOthers) {
            say_weights_of_others(finding);
        } else if (key == kDrawing) {
            say_drawing(finding);
        } else if (key == "order") {
            say_order(std::exp(batch_entropy_ / static_cast<double>(batches_)), seen(), std::exp(entropy()),
                      finding);
        } else {
            const bool is_evaluation = key == kInEvaluation;
            const std::vector<double>& labels = is_evaluation ? labels_ : recent_;
            const std::size_t rare = *std::min_element(missed_.begin(), missed_.end(),
                                                       [&](auto a, auto b) { return labels[a] < labels[b]; });
            const double most = *std::max_element(labels.begin(), labels.end());
            const auto common = std::distance(labels.begin(), std::max_element(labels.begin(), labels.end()));
            const double recall =
                is_evaluation ? found_[rare] / evaluated_[rare] : hits_[rare] / recent_[rare];
            finding.severity = model::Severity::kWarning;
            finding.places = missed_.size();
            finding.message = base::format(
                "Class {} has {:.0f} times the labels of class {}, and the model finds {:.0f} % of the "
                "samples of class {}{}{}.",
                common, most / labels[rare], rare, 100 * recall, rare, is_evaluation ? " in evaluation" : "",
                missed_.size() > 1 ? base::format("; {} classes are missed like this", missed_.size()) : "");
            finding.fix =
                "Weight the classes in the loss, e.g. cross_entropy(..., weight=1/counts), or draw them "
                "evenly with torch.utils.data.WeightedRandomSampler; judge by recall per class, not by "
                "accuracy.";
            finding.evidence.push_back({"labels of the most frequent class / of the rare one",
                                        most / labels[rare], "limit", ratio_});
            finding.evidence.push_back(
                {"recall of the rare class", recall, "limit", is_evaluation ? 0.25 : kIgnored});
        }
        sink.fire(std::move(finding));
    }

    struct Found {
        model::StepIndex step = 0;
        std::vector<double> shares;  // of each class's samples
    };
    static constexpr double kWindow = 2000;
    static constexpr double kFound = 0.7;           // of the most frequent class, where rare ones are ignored
    static constexpr double kIgnored = 0.05;        // of a rare class, below which it is
    static constexpr double kTellsApart = 1.0 / 3;  // agreement beyond chance, where they are, too
    static constexpr std::uint64_t kLooks = 3;
    static constexpr std::size_t kManyClasses = 20;  // above which they are a vocabulary
    static constexpr double kFallsFast = 0.88;       // of the losses before, where a class may yet be learned
    static constexpr model::StepIndex kSettled = 200;  // steps from which a training is judged as it goes on
    static constexpr model::StepIndex kShort = 50;     // fewest steps of one that is judged at its end
    static constexpr model::StepIndex kFirstSteps = 40;  // of which no answer is expected yet
    static constexpr const char* kImbalance = "imbalance";
    static constexpr const char* kInEvaluation = "evaluation";
    static constexpr const char* kWeights = "weights";
    static constexpr const char* kWeightsOfOthers = "weights_of_others";
    // Fewer weights, or nearly equal ones, fit some order by chance.
    static constexpr std::size_t kFewestOfOthers = 4;
    static constexpr std::size_t kFewestOfRoots = 5;  // which are nearer to each other
    static constexpr double kLabelsOfOthers = 1000;
    static constexpr double kMostCost = 20, kNearWhole = 1e-4;
    static constexpr double kFewestOfEach = 20;  // labels
    static constexpr double kNearOthers = 0.05;  // logarithm of a weight
    static constexpr double kOffOthers = 2;      // times
    static constexpr const char* kDrawing = "drawing";
    static constexpr double kDrawnErrors = 4;        // standard errors of what is drawn of a class
    static constexpr std::size_t kMostWeighed = 64;  // classes
    static constexpr std::uint64_t kWeighedBatches = 3;
    static constexpr double kWeighedLabels = 100, kWeighedLabelsOfTwo = 500;
    static constexpr double kLeastPower = 0.4, kMostPower = 1.3;  // of the counts
    static constexpr double kLawErrors = 1.5;
    // Of labels that come in patches: what is counted of a few dozen tells no more than one.
    static constexpr double kDenseLawErrors = 8;
    // Rows are counted all; but the weights may be the counts of a larger part, before the data was split.
    static constexpr double kNearDrawn = 0.02, kDrawnLawErrors = 0.5;
    static constexpr double kNearLaw = 0.1;  // logarithm of a weight
    static constexpr const char* kYesOrNo = "yes_or_no";
    static constexpr const char* kYesOrNoOrder = "order_of_yes_and_no";
    std::uint64_t yes_or_no_batches_ = 0, kept_ = 0, switched_ = 0;
    static constexpr std::size_t kMostPairs = 64, kMostClasses = 1000;
    double yes_or_no_entropy_ = 0, overlap_ = 0;
    int last_side_ = -1;
    model::StepIndex last_yes_or_no_ = 0;
    std::vector<double> last_labels_;                    // shares of the batch before
    std::vector<std::vector<double>> batches_in_a_row_;  // those of batches that came right after another
    model::StepIndex last_step_ = 0, last_ = 0;
    // One evaluation.
    struct Evaluated {
        model::StepIndex after = 0;  // so many training steps, at least
        std::vector<double> labels, hits;

        void add(const model::ClassCounts& counts) {
            labels.resize(std::max(labels.size(), counts.labels.size()));
            hits.resize(labels.size());
            for (std::size_t i = 0; i < counts.labels.size(); ++i) {
                labels[i] += counts.labels[i];
                hits[i] += counts.hits[i];
            }
        }
        [[nodiscard]] std::optional<double> share(std::size_t i) const {
            if (i >= labels.size() || labels[i] == 0) return std::nullopt;
            return hits[i] / labels[i];
        }
    };
    Evaluated latest_, evaluated_before_;
    static constexpr double kMissed = 0.25, kMore = 0.05;  // of a class
    std::vector<double> evaluated_, found_;                // in evaluations, per class
    model::StepIndex evaluated_since_ = 0;                 // training steps done at the first of these
    model::StepIndex missed_since_ = 0;  // step after the last one at which the rare answer was given
    std::uint64_t imbalanced_ = 0;       // looks in a row
    std::uint64_t given_ = 0;            // looks in a row at which the rare answer was given
    std::uint64_t given_in_all_ = 0;     // of those from half of kSettled on
    bool is_answer_missed_ = false;
    bool is_never_told_ = false;   // firing; taken back when the rare answer is given several times in a row
    bool counts_answers_ = false;  // what is counted are answers to yes or no
    bool are_answers_missed_ = false;  // by these counts
    std::string binary_function_;
    double binary_labels_ = 0, binary_yes_ = 0, missed_yes_or_no_ = 0;
    double ratio_, min_labels_;
    std::uint64_t judged_ = 0, batches_ = 0;
    Game game_;
    Contrast contrast_;
    Recent losses_{40};  // at steps whose classes were counted
    std::string tensor_;
    model::TensorId id_ = 0;
    double total_ = 0, batch_entropy_ = 0;
    std::vector<double> labels_, recent_, predicted_, hits_;
    static constexpr double kTelling = 0.9;  // of the loss by frequency alone: less tells samples apart
    Recent answer_losses_{64};
    double weight_ = 1;                                         // pos_weight
    std::vector<double> weights_;                               // of classes, in the loss
    std::vector<double> labels_of_places_, weights_of_places_;  // where each pixel or position has a label
    std::uint64_t dense_looks_ = 0;
    std::vector<double> drawn_weights_, drawn_rows_;  // of a sampler: each weight, and rows that have it
    bool judges_order_ = false;
    bool are_next_ = false;  // targets are an input of the model one position on
    Found before_, now_;     // at a step, and at twice that step or later
    std::vector<std::size_t> missed_;
    std::set<std::string, std::less<>> firing_;
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
