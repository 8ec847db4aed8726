// The training's labels are wrong more often than those of the evaluation.

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kLabelNoise = {
    .name = "label_noise",
    .title = "Wrong labels in the training data",
    .summary =
        "The model contradicts far more labels of the data that it is trained on than of the data that it "
        "has never seen.",
    .when =
        "A classification contradicts many of the labels that it is trained on and far fewer of those of "
        "its evaluations, or rows of the training come again with other labels.\n"
        "- Wrong labels (warning): in the last captured steps of the training the model contradicts a "
        "share of at least `missed` of the labels.\n"
        "- Not by single steps: the share is nearly as high without the worst of these steps, and at the "
        "best one still a quarter of it.\n"
        "- Steps: the last three to six captured ones, or as many more, up to 24, as are needed to have "
        "`evaluations` before them. They must have 150 labels.\n"
        "- Evaluation: in the evaluation before each of these steps, `evaluations` different ones in all, "
        "the model was no better trained. There it contradicted no more than `ratio` of that share.\n"
        "- Evaluated batches of the training's own data, nine tenths of whose rows were known from the "
        "training, do not count.\n"
        "- Significance: the difference is more than four standard errors, or five where the evaluation's "
        "share is more than half of the training's.\n"
        "- Dropout: judged where the model has none. Where it drops up to 30 % of values, a quarter of the "
        "training's labels must be contradicted, and in the evaluation no more than 0.4 of that share, by "
        "five standard errors.\n"
        "- Augmentation: judged only where the training's rows come again bit for bit, so that they are "
        "not augmented.\n"
        "- Same labels: both parts must have about the same ones. The mean of the evaluation's labels lies "
        "among those of the training's batches. Where it does not, what the evaluation contradicts of each "
        "class counts with the training's share of that class.\n"
        "- Changed labels (warning, label_misalignment): of 40 or more rows that came again, some had "
        "another class than before. Their share is at least 60 % of what it would be if classes were dealt "
        "out anew each time. The loss is still above 85 % of that of guessing.",
    .why =
        "A model does better on what it was trained on. Where it does far worse, with the same weights and "
        "unchanged inputs, the labels there are wrong: what is right is learned first, then the wrong labels "
        "are learned by heart, and the evaluation gets worse.",
    .fix =
        "Look at the training rows with the largest loss and correct or drop them; find the column, join or "
        "annotation that the labels come from. Until then stop at the best evaluation, and use label "
        "smoothing.",
    .healthy =
        "Strong dropout and augmentation, which make the training harder, and margins for the true class; "
        "training data that is sampled to balance classes; a hard problem, whose evaluation is as bad; wrong "
        "labels in both parts alike, which this cannot tell from one.",
    .cost =
        "At the first 10 steps and then at every 25th, at the first 50 evaluated batches and then at every "
        "10th: the largest score of each row compared with its label.",
    .original = "",
    .source = "Arpit et al., \"A closer look at memorization in deep networks\", ICML 2017",
    .severity = model::Severity::kWarning,
    .parameters = {{"missed", "share", 0.15, 0.01, 1, "of training labels that the model contradicts"},
                   {"ratio", "share", 0.6, 0.01, 1, "of that, contradicted in the evaluation"},
                   {"evaluations", "evaluations", 2, 1, 1000, "beside which these steps stand"}},
};

class LabelNoise final : public Rule {
  public:
    explicit LabelNoise(const Parameters& parameters)
        : missed_(parameters.at("missed")),
          ratio_(parameters.at("ratio")),
          needed_(static_cast<std::size_t>(parameters.at("evaluations"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        const bool is_evaluation = step.mode() == model::Mode::kEval;
        if (loop_fact(step, "trainings")) begin_anew(sink);
        if (!is_evaluation && step.mode() != model::Mode::kTrain) return;
        if (!is_evaluation) {
            game_.observe(step);
            guessing_.observe(step);
            if (open_.labels > 0) close(sink);
            step_ = step.step();
            look_at_rows(step, sink);
        } else if (const auto known = loop_fact(step, "rows_known")) {
            // A row that was looked at twice is known again, unless it is another one each time.
            if (const auto looked = loop_fact(step, "rows_looked_at"))
                look_for_rows(known->value, looked->value);
        }
        if (!is_evaluation) classes_.observe(step);
        const auto labels = loop_fact(step, "labels_counted");
        const auto missed = loop_fact(step, "labels_missed");
        const auto mean = loop_fact(step, "labels_mean");
        if (!labels || !missed || !mean || !std::isfinite(missed->value)) return;
        if (const auto dropped = loop_fact(step, "labels_dropout"))
            dropout_ = std::max(dropout_, dropped->value);
        const Counted now = {labels->value, missed->value * labels->value, mean->value * labels->value,
                             step_};
        if (is_evaluation) {
            if (is_of_training(step)) return;
            if (open_.labels == 0) classes_.age();
            classes_.observe(step);
            open_ = sum(open_, now);
            return;
        }
        training_.push_back(now);
        if (training_.size() > kMostLooks) training_.erase(training_.begin());
        lowest_mean_ = any_ ? std::min(lowest_mean_, mean->value) : mean->value;
        highest_mean_ = any_ ? std::max(highest_mean_, mean->value) : mean->value;
        any_ = true;
    }
    void on_end(FindingSink& sink) override {
        if (open_.labels > 0) close(sink);
        else judge(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no classification with little or no dropout was seen whose rows come again and that is "
               "evaluated";
    }

  private:
    // The last ones; more where fewer evaluations than needed lie among them.
    static constexpr std::size_t kLooks = 6, kFewestLooks = 3, kMostLooks = 24, kMostEvaluations = 64;
    static constexpr double kFewestLabels = 150;
    static constexpr double kFewestEvaluated = 8, kOfTraining = 0.9;  // rows of an evaluated batch
    static constexpr double kOfLeast = 0.25, kManyLabels = 24;
    static constexpr double kOfOthers = 0.8;  // without the worst look
    static constexpr double kFewestRows = 200, kOthers = 0.25, kTimes = 2.5;
    static constexpr double kHalf = 0.5, kErrors = 4, kErrorsOfMore = 5;  // of the training's share
    // Where the model drops some values, as little as makes the training only somewhat harder.
    static constexpr double kRatioOfDropout = 0.4, kMissedOfDropout = 0.25;
    static constexpr double kOfChance = 0.6, kAtGuessing = 0.85;
    struct Counted {
        double labels = 0, missed = 0, sum = 0;
        model::StepIndex step = 0;
        [[nodiscard]] double share() const { return labels > 0 ? missed / labels : 0; }
        [[nodiscard]] double mean() const { return labels > 0 ? sum / labels : 0; }
    };
    // Both parts by class. Where the training has its classes in other shares, as a sampler deals them out,
    // it is as hard as the evaluation with these shares.
    class Classes {
      public:
        void observe(const model::StepView& step) {
            const bool is_evaluation = step.mode() == model::Mode::kEval;
            for (const model::ClassSample& sample : step.record->classes) {
                const auto& labels = sample.counts.labels;
                add(is_evaluation ? evaluated_ : trained_, labels);
                if (is_evaluation) add(hits_, sample.counts.hits);
            }
        }
        // Another evaluation begins: the model was less trained at those before.
        void age() {
            for (double& count : evaluated_) count /= 2;
            for (double& count : hits_) count /= 2;
        }
        // What share of labels the evaluation contradicts, with the training's shares; 1 where it is not
        // known.
        [[nodiscard]] double missed() const {
            double all = 0, missed = 0;
            for (std::size_t i = 0; i < trained_.size(); ++i) {
                all += trained_[i];
                const bool is_known = i < evaluated_.size() && evaluated_[i] >= kFewestOfClass;
                const double found = is_known && i < hits_.size() ? hits_[i] / evaluated_[i] : 0;
                missed += trained_[i] * (1 - found);
            }
            return all > 0 ? missed / all : 1;
        }

      private:
        static constexpr double kFewestOfClass = 10;
        template <typename Counts>
        static void add(std::vector<double>& to, const Counts& counts) {
            if (to.size() < counts.size()) to.resize(counts.size());
            for (std::size_t i = 0; i < counts.size(); ++i) to[i] += counts[i];
        }
        std::vector<double> trained_, evaluated_, hits_;
    };
    // Another model, of another fold, say: what was counted is not of it.
    void begin_anew(FindingSink& sink) {
        if (is_changing_) sink.clear("changed");
        is_changing_ = false;
        guessing_ = Guessing();
        evaluated_.clear();
        classes_ = Classes();
        training_.clear();
        open_ = {};
        comes_again_ = any_ = false;
        dropout_ = 0;
        first_looked_.reset();
    }
    // Some loops evaluate the training's data, too, whose labels are as wrong as those of the training.
    [[nodiscard]] static bool is_of_training(const model::StepView& step) {
        const auto rows = loop_fact(step, "rows_evaluated"),
                   known = loop_fact(step, "rows_evaluated_trained");
        return rows && known && rows->value >= kFewestEvaluated && known->value >= kOfTraining * rows->value;
    }
    static Counted sum(const Counted& a, const Counted& b) {
        return {a.labels + b.labels, a.missed + b.missed, a.sum + b.sum, b.step};
    }
    static Counted sum_of(const std::vector<Counted>& all) {
        Counted total;
        for (const Counted& one : all) total = sum(total, one);
        return total;
    }

    // Labels that are dealt out anew cannot be learned; those of episodes or clusters can.
    [[nodiscard]] bool is_at_guessing() const {
        if (const std::optional<double> now = guessing_.share()) return *now > kAtGuessing;
        return !guessing_.loss().has_learned_much();
    }
    // Of the training's: so many different ones are known, so many were looked at.
    void look_for_rows(double known, double looked) {
        if (!first_looked_) {
            first_known_ = known;
            first_looked_ = looked;
        }
        const double since = looked - *first_looked_, others = known - first_known_;
        // Of much data only a part was seen by the first evaluation, and most of what is looked at later is
        // not of it. Rows of which half are changed by chance are new ones half of the time, for ever.
        comes_again_ = looked > kTimes * known || (since >= kFewestRows && others < kOthers * since);
    }
    // The same row had one class and then another.
    void look_at_rows(const model::StepView& step, FindingSink& sink) {
        const auto again = loop_fact(step, "rows_again");
        const auto changed = loop_fact(step, "rows_again_changed");
        const auto by_chance = loop_fact(step, "rows_again_by_chance");
        if (!again || !changed || !by_chance) return;
        ++judged_;
        const double share = again->value > 0 ? changed->value / again->value : 0;
        const bool on = !game_.is_on() && by_chance->value >= 0.2 && share >= kOfChance * by_chance->value &&
                        is_at_guessing();
        if (!on) {
            if (is_changing_) sink.clear("changed");
            is_changing_ = false;
            return;
        }
        is_changing_ = true;
        model::Finding finding;
        finding.key = "changed";
        finding.kind = "label_misalignment";
        finding.first_step = 0;
        finding.tensor = "loss";
        finding.message = base::format(
            "Of {:.0f} rows of the training that came again up to step {}, {:.0f} % had another label than "
            "before; if labels were dealt out anew each time, {:.0f} % would.",
            again->value, step.step(), 100 * share, 100 * by_chance->value);
        finding.fix =
            "Whatever sorts, shuffles or samples the inputs has to do the same to the labels: one "
            "permutation for both, one Dataset that returns both.";
        finding.evidence.push_back({"rows whose label changed", share, "by chance", by_chance->value});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    void close(FindingSink& sink) {
        evaluated_.push_back(std::exchange(open_, {}));
        if (evaluated_.size() > kMostEvaluations) evaluated_.erase(evaluated_.begin());
        judge(sink);
    }

    // Each look at the training beside the evaluation before it, in which the model was no better trained.
    void judge(FindingSink& sink) {
        if (game_.is_on() || !comes_again_) return;
        Counted ours, theirs, worst;
        double least = 1;
        std::size_t looks = 0;
        std::set<model::StepIndex> evaluations;
        for (auto it = training_.rbegin(); it != training_.rend(); ++it) {
            const Counted& look = *it;
            if (looks >= kLooks && evaluations.size() >= needed_) break;
            const auto after = std::find_if(evaluated_.begin(), evaluated_.end(),
                                            [&](const Counted& one) { return one.step >= look.step; });
            if (after == evaluated_.begin()) continue;
            ours = sum(ours, look);
            if (look.share() > worst.share()) worst = look;
            if (look.labels >= kManyLabels) least = std::min(least, look.share());
            theirs = sum(theirs, *std::prev(after));
            evaluations.insert(std::prev(after)->step);
            ++looks;
        }
        if (looks < kFewestLooks || ours.labels < kFewestLabels || evaluations.size() < needed_) return;
        ++judged_;
        // Batches differ in their labels' mean by chance; both parts must lie among them.
        const double around = 0.1 * std::max(highest_mean_ - lowest_mean_, 1e-9);
        const bool alike = theirs.mean() > lowest_mean_ - around && theirs.mean() < highest_mean_ + around;
        const double expected = alike ? theirs.share() : std::max(theirs.share(), classes_.missed());
        // An evaluation that is beside several looks counts once.
        const double evaluated =
            theirs.labels * static_cast<double>(evaluations.size()) / static_cast<double>(looks);
        const double error = std::sqrt(ours.share() * (1 - ours.share()) / ours.labels +
                                       expected * (1 - expected) / evaluated);
        // A jump of the loss is one look's; wrong labels are in all of them.
        const double others = (ours.missed - worst.missed) / std::max(ours.labels - worst.labels, 1.0);
        const bool in_all = others >= kOfOthers * missed_ && least >= kOfLeast * ours.share();
        // An evaluation of other data may be easier than the training.
        const bool is_plain = dropout_ == 0;
        const double errors = is_plain && expected <= kHalf * ours.share() ? kErrors : kErrorsOfMore;
        const double ratio = is_plain ? ratio_ : std::min(ratio_, kRatioOfDropout);
        const bool on = ours.share() >= (is_plain ? missed_ : std::max(missed_, kMissedOfDropout)) &&
                        in_all && expected <= ratio * ours.share() &&
                        ours.share() - expected > errors * error;
        if (on) {
            if (!fired_) first_ = step_;
            fire(ours, theirs, expected, sink);
        } else if (fired_) {
            // Wrong labels that were learned by heart are no longer contradicted.
            if (ours.share() >= missed_) sink.clear("labels");
        }
        fired_ = fired_ || on;
    }

    void fire(const Counted& ours, const Counted& theirs, double expected, FindingSink& sink) const {
        model::Finding finding;
        finding.key = "labels";
        finding.severity = model::Severity::kWarning;
        finding.first_step = first_;
        finding.tensor = "loss";
        finding.message = base::format(
            "Up to step {} the model contradicts {:.0f} % of the labels that it is trained on; of those of "
            "evaluations before it contradicted {:.0f} %{}, with unchanged inputs and {}. About {:.0f} % of "
            "the training's labels look wrong.",
            step_, 100 * ours.share(), 100 * expected,
            expected > theirs.share() ? ", weighted as the training has its classes" : "",
            dropout_ > 0 ? base::format("dropout of no more than {}", base::human_number(dropout_))
                         : std::string("no dropout"),
            100 * (ours.share() - expected));
        finding.fix =
            "Look at the training rows with the largest loss: correct or drop wrong labels, and find where "
            "they come from. Until then keep the checkpoint of the best evaluation.";
        finding.evidence.push_back(
            {"training labels contradicted", ours.share(), "evaluation labels contradicted", expected});
        finding.evidence.push_back(
            {"training labels looked at", ours.labels, "evaluation labels", theirs.labels});
        finding.plots = {{"loop/labels_missed", "value"}, {"loss", "value"}};
        sink.fire(std::move(finding));
    }

    double missed_, ratio_;
    std::size_t needed_;
    std::uint64_t judged_ = 0;
    model::StepIndex step_ = 0, first_ = 0;
    Game game_;
    Guessing guessing_;
    double dropout_ = 0;                  // the share of values that the model leaves out in training
    std::optional<double> first_looked_;  // rows, by the first evaluation that tells it
    double first_known_ = 0;              // different ones of these
    bool comes_again_ = false, fired_ = false, any_ = false, is_changing_ = false;
    double lowest_mean_ = 0, highest_mean_ = 0;
    Classes classes_;
    std::vector<Counted> training_, evaluated_;
    Counted open_;
};

std::vector<model::Requirement> label_noise_needs(const Parameters&) {
    std::vector<model::Requirement> all = row_requirements(kLabelNoise.name);
    all.push_back({"losses", model::Mode::kTrain, model::What::kStatistics, {.every = 1}, kLabelNoise.name});
    all.push_back({"losses", model::Mode::kEval, model::What::kStatistics, {.every = 1}, kLabelNoise.name});
    for (const model::Mode mode : {model::Mode::kTrain, model::Mode::kEval})
        all.push_back(
            {"classes", mode, model::What::kClasses, {.every = 5, .dense_until = 20}, kLabelNoise.name});
    return all;
}

}  // namespace

RuleEntry builtin::label_noise() {
    return {&kLabelNoise, &label_noise_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<LabelNoise>(p); }};
}

}  // namespace traindbg::rules
