// Rows of the training are among those that are evaluated.

#include <algorithm>
#include <cmath>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kTrainValOverlap = {
    .name = "train_val_overlap",
    .title = "Evaluated on training data",
    .summary = "Rows of the model's input that are evaluated were trained on.",
    .when =
        "At least `rows` evaluated rows, and at least the share `share` of all that were looked at, are "
        "rows that the model was trained on, bit for bit. Severity: warning.\n"
        "- Some rows of the model's first input are recognised by fingerprints. `share` is measured "
        "relative to the part of the training's rows that were looked at.\n"
        "- Whole evaluation: no evaluated batch is free of the training's rows beyond chance (0.01 %).\n"
        "- Another data set beside it: other batches are free of them, but batches that hold some always "
        "hold other rows, too, and at least `rows` of the training's. Two evaluations must show it.\n"
        "- For such a data set, all batches that hold some must have fewer rows than 70 % of the "
        "training's, and all of the training's rows must be remembered.\n"
        "- All evaluated rows are the training's: two evaluations must show it. One is enough if it is "
        "short: fewer than 40 batches, with fewer than half as many of the training's rows as are known.\n"
        "- Rows alike by nature, recognised by pairs that agree in one half only: nine in ten must be "
        "among the training's, and fewer than four in ten expected by chance.\n"
        "- Four in ten or more expected by chance: not reported where a tenth as many pairs agree in one "
        "half only as in both, or a tenth of the evaluated rows that the training did not have is made of "
        "halves that it had.\n"
        "- Batches in evaluation mode of which no loss is computed count where no others do, at two "
        "evaluations, and where not all of them are the training's. One evaluation is enough after the last "
        "step, if it has fewer rows than are known of the training.\n"
        "- If all of these are the training's, they count where the training has equal rows with other "
        "labels, `rows` pairs of them, and an evaluation has more rows than a batch of the training and "
        "fewer than are known of the training.",
    .why =
        "The evaluation tells how well the training data is known by heart. Overfitting does not show in it, "
        "and the choice of a model or a checkpoint by it is wrong.",
    .fix =
        "Split before rows are copied, augmented or cut into windows, once, and by what belongs together "
        "(patient, user, day); check that set(train_indices) & set(val_indices) is empty.",
    .healthy =
        "The training data evaluated beside other data, to compare the two, or at the end alone; the loss of "
        "the training batch, computed once more; a training on all data at once, evaluated on them; rows of "
        "few values that are equal by nature; folds, each with a model of its own.",
    .cost =
        "At the first 100 steps and then at every 50th, at the first 50 evaluated batches and then at every "
        "10th: fingerprints of up to 64 rows of the model's first input, by up to 256 values of each. At "
        "most 16,384 rows are remembered.",
    .original = "",
    .source =
        "Kapoor, Narayanan, \"Leakage and the reproducibility crisis in machine-learning-based science\", "
        "Patterns 2023",
    .severity = model::Severity::kWarning,
    .parameters = {{"share", "share", 0.25, 0.01, 1, "of the evaluated rows, that the training had"},
                   {"rows", "rows", 10, 2, 1e6, "evaluated rows that the training had"}},
};

class TrainValOverlap final : public Rule {
  public:
    explicit TrainValOverlap(const Parameters& parameters)
        : share_(parameters.at("share")), rows_(parameters.at("rows")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kTrain) {
            if (loop_fact(step, "trainings")) begin_anew();
            train_step_ = step.step();
            batch_ = std::max(batch_, rows_of_input(step));
            if (open_.batches > 0) close(sink);
            else on_unscored(step, sink);
            return;
        }
        if (step.mode() != model::Mode::kEval) return;
        const auto evaluated = loop_fact(step, "rows_evaluated");
        const auto trained = loop_fact(step, "rows_evaluated_trained");
        const auto known = loop_fact(step, "rows_known");
        if (!evaluated || !trained || !known) return;
        // Before much of the training was looked at nothing can be known again.
        if (known->value < 2 * rows_) return;
        ++judged_;
        is_scored_ = true;
        take_training(step);
        ++open_.batches;
        open_.last = step.step();
        open_.rows += evaluated->value;
        open_.trained += trained->value;
        open_.half += number(step, "rows_evaluated_half_alike");
        open_.is_as_in_training = open_.is_as_in_training && number(step, "rows_as_in_training") > 0;
        open_.without = trained->value > 0 ? 0 : open_.without + evaluated->value;
        open_.longest_without = std::max(open_.longest_without, open_.without);
        if (trained->value <= 0) return;
        const double of_batch = trained->value / evaluated->value;
        open_.is_mixed = open_.is_mixed && of_batch >= share_ && of_batch <= 0.95 && trained->value >= rows_;
        open_.mixed_rows += evaluated->value;
        open_.mixed_size += rows_of_input(step);
    }
    void on_end(FindingSink& sink) override {
        if (open_.batches > 0) close(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no evaluation was seen, without gradients, of rows that can be known again";
    }

  private:
    // Evaluated batches between two training steps, or sums over all of them.
    struct Evaluation {
        double batches = 0, rows = 0, trained = 0, half = 0;
        double without = 0,
               longest_without = 0;     // rows in a row, of batches that have none of the training's
        bool is_as_in_training = true;  // each batch has as many rows as the training's
        // Of batches that have some of the training's: each has others, too; the rows that were looked at;
        // all of their rows, looked at or not.
        bool is_mixed = true;
        double mixed_rows = 0, mixed_size = 0;
        model::StepIndex last = 0;  // batch, of all that were evaluated
    };

    // Another training begins in the same process: what was remembered is forgotten.
    void begin_anew() {
        open_ = all_ = {};
        evaluations_ = 0;
        is_short_ = is_scored_ = is_last_ = false;
        labelled_otherwise_ = unscored_of_ = 0;
    }

    void take_training(const model::StepView& step) {
        known_ = number(step, "rows_known");
        of_training_ = number(step, "rows_of_training");
        looked_at_ = number(step, "rows_looked_at");
        pairs_ = number(step, "rows_pairs");
        alike_ = number(step, "rows_alike");
        half_alike_ = number(step, "rows_half_alike");
    }

    // Batches in evaluation mode of which no loss was computed, but an accuracy perhaps. All of them may be
    // the training's, whose accuracy is asked for.
    void on_unscored(const model::StepView& step, FindingSink& sink) {
        const double batches = number(step, "rows_unscored_batches");
        if (is_scored_ || batches < 1 || number(step, "rows_known") < 2 * rows_) return;
        ++judged_;
        take_training(step);
        labelled_otherwise_ = number(step, "rows_alike_labelled_otherwise");
        unscored_of_ = std::max(unscored_of_, number(step, "rows_unscored_of"));
        is_last_ = loop_fact(step, "after_last_step").has_value();
        open_ = {batches,
                 number(step, "rows_unscored"),
                 number(step, "rows_unscored_trained"),
                 number(step, "rows_unscored_half_alike"),
                 0,
                 number(step, "rows_unscored_longest_without"),
                 false};
        close(sink);
    }

    static double number(const model::StepView& step, std::string_view fact) {
        const auto found = loop_fact(step, fact);
        return found ? found->value : 0;
    }

    void close(FindingSink& sink) {
        const Evaluation now = std::exchange(open_, {});
        // One batch of as many rows as the training's may be the training's batch.
        if (now.batches == 1 && now.is_as_in_training) return;
        ++evaluations_;
        all_.is_mixed = all_.is_mixed && now.is_mixed;
        all_.mixed_rows += now.mixed_rows;
        // Of later ones some batches are passed over; of long ones, too.
        if (evaluations_ == 1 && now.last < kAllLookedAt) all_.mixed_size = now.mixed_size;
        all_.batches += now.batches;
        all_.rows += now.rows;
        all_.trained += now.trained;
        all_.half += now.half;
        // Of evaluations without a loss a part of the rows is looked at only: together they tell.
        all_.longest_without = is_scored_ ? std::max(all_.longest_without, now.longest_without)
                                          : all_.longest_without + now.longest_without;
        if (evaluations_ == 1) is_short_ = now.batches < 40 && now.trained < 0.5 * known_;
        if (is_overlap()) {
            fire(sink);
            fired_ = true;
        } else if (fired_) {
            sink.clear("rows");
            fired_ = false;
        }
    }

    // The part of the training's rows that is remembered; 1 where it is not known how many there are.
    [[nodiscard]] double remembered() const {
        return of_training_ > looked_at_ ? std::max(looked_at_ / of_training_, 0.02) : 1;
    }
    [[nodiscard]] double share() const {
        return all_.rows > 0 ? std::min(1.0, all_.trained / judged_rows() / remembered()) : 0;
    }
    // A data set of which a part was trained on, evaluated beside another one of which nothing was.
    [[nodiscard]] bool is_beside_another() const {
        // Rows of a training that are more than it has are changed now and then: it knows a part of its own.
        const bool are_known = known_ >= 0.9 * of_training_ && known_ <= 1.05 * of_training_;
        return evaluations_ >= 2 && is_scored_ && are_known && all_.is_mixed && all_.mixed_size > 0 &&
               of_training_ > 0 && looked_at_ >= 0.98 * of_training_ &&
               all_.mixed_size < 0.7 * of_training_ && all_.rows > all_.mixed_rows;
    }
    [[nodiscard]] double judged_rows() const { return is_beside_another() ? all_.mixed_rows : all_.rows; }
    [[nodiscard]] bool is_overlap() const {
        const double seen = all_.rows > 0 ? all_.trained / all_.rows : 0;
        if (all_.trained < rows_ || share() < share_) return false;
        // Other data is evaluated as well: then the training's may be there to compare.
        if (!is_beside_another() && std::pow(1 - std::min(seen, 1 - 1e-9), all_.longest_without) < 1e-4 &&
            all_.longest_without > 0)
            return false;
        if (share() > 0.95 && evaluations_ < 2 && !is_short_) return false;
        if (!is_scored_ && evaluations_ < 2 && !is_test_at_end()) return false;
        if (!is_scored_ && share() > 0.95 && !are_other_records()) return false;
        const double by_chance = pairs_ > 0 ? 1 - std::exp(-alike_ / pairs_ * known_) : 1;
        const bool is_likely = by_chance >= kLikely;
        if (!are_alike_by_nature(is_likely)) return true;
        return share() >= 0.9 && !is_likely;
    }
    // Rows of a small space: what is equal in both halves comes with what is equal in one.
    [[nodiscard]] bool are_alike_by_nature(bool is_likely) const {
        if (half_alike_ > alike_ + 2 || all_.half > 0.25 * all_.trained) return true;
        // Where a row is to be expected again anyway, fewer of them say it: copies have none.
        return is_likely &&
               (half_alike_ > 0.1 * alike_ + 2 || all_.half > 0.1 * (all_.rows - all_.trained) + 2);
    }
    // One evaluation after the last step, of fewer rows than the training had: not of all data, for a plot.
    [[nodiscard]] bool is_test_at_end() const { return is_last_ && unscored_of_ < known_; }
    // What is evaluated are no records of the training, though it had all of their rows: its data has several
    // records with one row, and this is a part of the data that is none of its batches.
    [[nodiscard]] bool are_other_records() const {
        return labelled_otherwise_ >= rows_ && unscored_of_ > batch_ && unscored_of_ < known_;
    }

    void fire(FindingSink& sink) const {
        model::Finding finding;
        finding.key = "rows";
        finding.mode = model::Mode::kEval;
        finding.severity = model::Severity::kWarning;
        finding.tensor = "input/0";
        finding.message = base::format(
            "{:.0f} of {:.0f} rows that were looked at in {} evaluations up to training step {} are rows "
            "that the model was trained on, bit for bit",
            all_.trained, judged_rows(), evaluations_, train_step_);
        finding.message += remembered() < 0.98
                               ? base::format(
                                     "; {:.0f} % of the training's rows are remembered, so that about {:.0f} "
                                     "% of what is evaluated was trained on.",
                                     100 * remembered(), 100 * share())
                               : std::string(".");
        finding.fix =
            "Split once, before rows are copied, augmented or cut into windows, and give the evaluation the "
            "part that the training does not have.";
        finding.evidence.push_back(
            {"share of evaluated rows that were trained on", share(), "limit", share_});
        finding.evidence.push_back({"rows found", all_.trained, "of", judged_rows()});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr model::StepIndex kAllLookedAt = 50;  // of evaluated batches, later ones now and then
    static constexpr double kLikely = 0.4;  // of an evaluated row to be among the training's by chance

    double share_, rows_;
    std::uint64_t judged_ = 0;
    model::StepIndex train_step_ = 0;
    std::uint64_t evaluations_ = 0;
    double known_ = 0, of_training_ = 0, looked_at_ = 0, pairs_ = 0, alike_ = 0, half_alike_ = 0;
    // Pairs of equal rows with two labels, in batches of the training; rows of a batch; rows of the largest
    // evaluation without a loss.
    double labelled_otherwise_ = 0, batch_ = 0, unscored_of_ = 0;
    bool is_short_ = false, fired_ = false;
    bool is_scored_ = false;  // a loss was computed in evaluations
    bool is_last_ = false;    // what is evaluated comes after the last step
    Evaluation open_, all_;
};

std::vector<model::Requirement> train_val_overlap_needs(const Parameters&) {
    std::vector<model::Requirement> all = row_requirements(kTrainValOverlap.name);
    all.push_back(
        {"losses", model::Mode::kTrain, model::What::kStatistics, {.every = 1}, kTrainValOverlap.name});
    all.push_back(
        {"losses", model::Mode::kEval, model::What::kStatistics, {.every = 1}, kTrainValOverlap.name});
    return all;
}

}  // namespace

RuleEntry builtin::train_val_overlap() {
    return {&kTrainValOverlap, &train_val_overlap_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<TrainValOverlap>(p);
            }};
}

}  // namespace traindbg::rules
