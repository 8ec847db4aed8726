// Rows of the training are among those that are evaluated.

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kTrainValOverlap = {
    .name = "train_val_overlap",
    .title = "Evaluated on training data",
    .summary = "Rows of the model's input that are evaluated were trained on.",
    .when =
        "At least `rows` evaluated rows, and at least the share `share` of all that were looked at, are rows "
        "that the model was trained on, bit for bit. Severity: warning.\n"
        "- Some rows of the model's inputs are recognised by fingerprints: by all inputs with one row for "
        "each, but by the first alone where the others never come again. `share` is measured relative to the "
        "part of the training's rows that were looked at.\n"
        "- Whole evaluation: no evaluated batches in a row are free of the training's rows beyond chance "
        "(0.01 %, by their share in the others).\n"
        "- Another data set beside it: other batches are free of them, but batches that hold some always "
        "hold other rows, too, and at least `rows` of the training's. Two evaluations must show it.\n"
        "- For such a data set, all batches that hold some must have fewer rows than 70 % of the training's, "
        "and all of the training's rows must be remembered.\n"
        "- Free at first: the first evaluations hold none of the training's rows, and the others, three or "
        "more, hold them as above. By then the training had at least 5 % more rows than it has at a time. "
        "Its loss, of whose start less than 80 % was left by the last free evaluation, did not jump back "
        "half of the way.\n"
        "- All evaluated rows are the training's: two evaluations must show it. One is enough if it is "
        "short: fewer than 40 batches, with fewer than half as many of the training's rows as are known.\n"
        "- Rows alike by nature, recognised by pairs that agree in one half only: nine in ten must be among "
        "the training's, and fewer than four in ten expected by chance.\n"
        "- Four in ten or more expected by chance: not reported where a tenth as many pairs agree in one "
        "half only as in both, or a tenth of the evaluated rows that the training did not have is made of "
        "halves that it had.\n"
        "- Batches in evaluation mode of which no loss is computed count where no others do, at two "
        "evaluations, and where not all of them are the training's. Nor do they where an evaluation holds "
        "all of the training's rows once (95 to 105 %), with others: then the whole data is predicted.\n"
        "- Beside the training's own batches: at two evaluations without a loss, all batches hold rows of "
        "the training, some nothing else, and two or more hold others, too. These are judged alone. All rows "
        "of the training must be remembered, and such batches have fewer than 70 % as many. An evaluation "
        "holds more of the training's rows than it has, by `rows` and by 2 %.\n"
        "- Beside evaluations with a loss such batches count where they hold the training's rows and others, "
        "as of another data set beside it: two evaluations, rows of the training that are all remembered and "
        "stay the same, fewer than 70 % as many of them, and two batches or more: a single one may be for a "
        "figure.\n"
        "- If all of these are the training's, they count where the training has equal rows with other "
        "labels, `rows` pairs of them, and an evaluation has more rows than a batch of the training and "
        "fewer than are known of the training.\n"
        "- Called held out, in a classification: the batches without a loss that the program's text calls "
        "validation or test. At two evaluations or more, 95 % of their rows are the training's, all of whose "
        "rows must be remembered. An evaluation has more such rows than a batch of the training, and fewer "
        "than 70 % of the training's.\n"
        "- What is called held out: the loader or tensor, or what it was made of (`valid_loader`, `x_val`, "
        "`test_ds`), followed through parameters of functions and variables with one value. Where one of "
        "these names says training, or the text cannot be read, nothing is called so.",
    .why =
        "The evaluation tells how well the training data is known by heart. Overfitting does not show in it, "
        "and the choice of a model or a checkpoint by it is wrong.",
    .fix =
        "Split before rows are copied, augmented or cut into windows, once, and by what belongs together "
        "(patient, user, day); check that set(train_indices) & set(val_indices) is empty.",
    .healthy =
        "The training data evaluated beside other data, to compare the two, or at the end alone; the loss of "
        "the training batch, computed once more; a training on all data at once, evaluated on them; rows of "
        "few values that are equal by nature; folds, each with a model or first weights of its own.",
    .cost =
        "At the first 100 steps and then at every 50th, at the first 50 evaluated batches and then at every "
        "10th: fingerprints of up to 64 rows of the model's inputs, by up to 256 values of each. At "
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
            if (loss_.observe(step) && after_free_.size() < kStepsAfter)
                after_free_.push_back(loss_.recent().last(1).front());
            if (is_scored_) on_unscored_beside(step, sink);
            else on_unscored(step, sink);
            look_at_held_out(step, sink);
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
        open_.is_mixed =
            open_.is_mixed && of_batch >= share_ && of_batch <= kMostMixed && trained->value >= rows_;
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
        model::StepIndex last = 0;            // batch, of all that were evaluated
        std::uint64_t mixed_evaluations = 0;  // of several: those that have some of the training's
    };

    // Another training begins in the same process: what was remembered is forgotten.
    void begin_anew() {
        open_ = all_ = beside_ = later_ = {};
        later_evaluations_ = free_evaluations_ = 0;
        evaluations_ = beside_evaluations_ = 0;
        is_short_ = is_scored_ = is_one_pass_ = false;
        labelled_otherwise_ = unscored_of_ = 0;
        mixed_ = held_out_ = {};
        mixed_evaluations_ = held_out_evaluations_ = 0;
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
        if (loop_fact(step, "after_last_step")) return;  // what is given then may be for a figure
        const double batches = number(step, "rows_unscored_batches");
        if (batches < 1 || number(step, "rows_known") < 2 * rows_) return;
        ++judged_;
        take_training(step);
        labelled_otherwise_ = number(step, "rows_alike_labelled_otherwise");
        unscored_of_ = std::max(unscored_of_, number(step, "rows_unscored_of"));
        const double trained = of_an_evaluation(step);
        is_one_pass_ =
            is_one_pass_ || (trained >= kFewestOfAll * known_ && trained <= kMostOfAll * known_ &&
                             number(step, "rows_unscored_trained") < number(step, "rows_unscored"));
        open_ = {batches,
                 number(step, "rows_unscored"),
                 number(step, "rows_unscored_trained"),
                 number(step, "rows_unscored_half_alike"),
                 0,
                 number(step, "rows_unscored_longest_without"),
                 false};
        close(sink);
        look_at_mixed(step, sink);
    }

    // Evaluations without a loss that a step tells of: several may have come before it.
    static double evaluations_told(const model::StepView& step) {
        return std::max(1.0, number(step, "rows_unscored_evaluations"));
    }
    // Rows of the training in the largest evaluation without a loss, looked at or not: about as many as in
    // what was looked at.
    static double of_an_evaluation(const model::StepView& step) {
        const double rows = number(step, "rows_unscored");
        if (rows <= 0) return 0;
        return number(step, "rows_unscored_of") * number(step, "rows_unscored_trained") / rows;
    }

    // The training's rows are evaluated to compare, and with them a set that has some of them: together
    // nearly all are the training's. Batches that hold nothing else say nothing, the others do.
    void look_at_mixed(const model::StepView& step, FindingSink& sink) {
        const double mixed = number(step, "rows_unscored_mixed");
        const double of_mixed = number(step, "rows_unscored_mixed_trained");
        const double rows = number(step, "rows_unscored"), trained = number(step, "rows_unscored_trained");
        if (known_ != mixed_known_) {
            mixed_ = {};
            mixed_evaluations_ = 0;
            mixed_known_ = known_;
        }
        mixed_.rows += mixed;
        mixed_.trained += of_mixed;
        mixed_.half += number(step, "rows_unscored_half_alike");
        mixed_.mixed_size = std::max(mixed_.mixed_size, number(step, "rows_unscored_mixed_of"));
        ++mixed_evaluations_;
        const bool is_whole = number(step, "rows_unscored_batches") < kMostUnscored;
        // All that is in no such batch is the training's.
        const bool are_beside = mixed < rows && rows - mixed == trained - of_mixed;
        // All data, predicted once in its order, holds each row of the training once.
        const bool has_more = of_an_evaluation(step) >= known_ + std::max(rows_, kMoreThanAll * known_);
        mixed_.is_mixed = mixed_.is_mixed && is_whole && are_beside && has_more &&
                          of_mixed >= rows_ * evaluations_told(step) && of_mixed >= share_ * mixed &&
                          of_mixed <= kMostMixed * mixed &&
                          number(step, "rows_unscored_mixed_batches") >= kBatchesBeside;
        const bool is_found = !fired_ && mixed_evaluations_ >= 2 && mixed_.is_mixed && are_known() &&
                              mixed_.mixed_size < kPartOfTraining * of_training_ &&
                              !is_by_nature(mixed_, mixed_.trained / mixed_.rows);
        if (is_found)
            fire(sink, kMixed,
                 {mixed_.trained, mixed_.rows, mixed_evaluations_, mixed_.trained / mixed_.rows});
        else if (is_mixed_fired_) sink.clear(kMixed);
        is_mixed_fired_ = is_found;
    }

    // The same where others have a loss. What is the training's as a whole is evaluated to compare the two.
    // A set that has rows of the training in all of its batches, and others, is neither the training's nor
    // free of it.
    void on_unscored_beside(const model::StepView& step, FindingSink& sink) {
        if (loop_fact(step, "after_last_step")) return;  // what is given then may be for a figure
        // So may a single batch beside an evaluation with a loss.
        if (number(step, "rows_unscored_batches_of") < kBatchesBeside) return;
        const double batches = number(step, "rows_unscored_batches");
        if (batches < 1 || number(step, "rows_known") < 2 * rows_) return;
        ++judged_;
        take_training(step);
        // Rows may join the training because of what the model made of them.
        if (known_ != beside_known_) {
            beside_ = {};
            beside_evaluations_ = 0;
            beside_known_ = known_;
        }
        const double rows = number(step, "rows_unscored"), trained = number(step, "rows_unscored_trained");
        const double without = number(step, "rows_unscored_longest_without");
        ++beside_evaluations_;
        beside_.rows += rows;
        beside_.trained += trained;
        beside_.half += number(step, "rows_unscored_half_alike");
        beside_.mixed_size = std::max(beside_.mixed_size, number(step, "rows_unscored_of"));
        const bool is_whole = batches + number(step, "rows_in_train_mode_batches") < kMostUnscored;
        beside_.is_mixed = beside_.is_mixed && is_whole && trained >= rows_ * evaluations_told(step) &&
                           trained >= share_ * rows && trained <= kMostMixed * rows &&
                           is_by_chance(trained / rows, without);
        const bool is_found = beside_evaluations_ >= 2 && beside_.is_mixed && are_known() &&
                              beside_.mixed_size < kPartOfTraining * of_training_ &&
                              !is_by_nature(beside_, beside_.trained / beside_.rows);
        if (is_found)
            fire(sink, kBeside,
                 {beside_.trained, beside_.rows, beside_evaluations_, beside_.trained / beside_.rows});
        else if (is_beside_fired_) sink.clear(kBeside);
        is_beside_fired_ = is_found;
    }

    // What the program itself calls held out, and what is the training's as a whole: no name is needed to see
    // that, but to know that it is not evaluated to be compared with something.
    void look_at_held_out(const model::StepView& step, FindingSink& sink) {
        const double rows = number(step, "rows_held_out"), trained = number(step, "rows_held_out_trained");
        if (rows <= 0 || loop_fact(step, "after_last_step")) return;  // a figure, perhaps
        if (number(step, "rows_known") < 2 * rows_) return;
        take_training(step);
        if (known_ != held_out_known_) {  // what is evaluated may have joined the training because of it
            held_out_ = {};
            held_out_evaluations_ = 0;
            held_out_known_ = known_;
        }
        held_out_.rows += rows;
        held_out_.trained += trained;
        held_out_.half += number(step, "rows_unscored_half_alike");
        held_out_.mixed_size = std::max(held_out_.mixed_size, number(step, "rows_held_out_of"));
        held_out_evaluations_ += static_cast<std::uint64_t>(number(step, "rows_held_out_evaluations"));
        const double part = held_out_.trained / held_out_.rows;
        const bool is_found = !fired_ && held_out_evaluations_ >= 2 && held_out_.trained >= rows_ &&
                              part >= kMostMixed && are_known() && held_out_.mixed_size > batch_ &&
                              held_out_.mixed_size < kPartOfTraining * of_training_ && has_classes(step) &&
                              !is_by_nature(held_out_, part);
        if (is_found) fire(sink, kHeldOut, {held_out_.trained, held_out_.rows, held_out_evaluations_, part});
        else if (is_held_out_fired_) sink.clear(kHeldOut);
        is_held_out_fired_ = is_found;
    }

    // What is trained without labels may be trained on all inputs.
    static bool has_classes(const model::StepView& step) {
        return std::ranges::any_of(
            *step.tensors, [](const model::TensorInfo& info) { return info.role == model::Role::kClasses; });
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
        if (now.mixed_rows > 0) ++all_.mixed_evaluations;
        // Of later ones some batches are passed over; of long ones, too.
        if (evaluations_ == 1 && now.last < kAllLookedAt) all_.mixed_size = now.mixed_size;
        all_.batches += now.batches;
        all_.rows += now.rows;
        all_.trained += now.trained;
        all_.half += now.half;
        // Of evaluations without a loss a part of the rows is looked at only: together they tell.
        all_.longest_without = is_scored_ ? std::max(all_.longest_without, now.longest_without)
                                          : all_.longest_without + now.longest_without;
        take_turn(now);
        if (evaluations_ == 1) is_short_ = now.batches < 40 && now.trained < 0.5 * known_;
        if (is_overlap()) {
            fire(sink, kRows, {all_.trained, judged_rows(), evaluations_, share()});
            fired_ = true;
        } else if (have_joined()) {
            fire(sink, kRows,
                 {later_.trained, later_.rows, later_evaluations_, later_.trained / later_.rows,
                  free_evaluations_});
            fired_ = true;
        } else if (fired_) {
            sink.clear(kRows);
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
    // All rows of the training are remembered. Rows that are more than it has are changed now and then: it
    // knows a part of its own.
    [[nodiscard]] bool are_known() const {
        return of_training_ > 0 && looked_at_ >= 0.98 * of_training_ && known_ >= 0.9 * of_training_ &&
               known_ <= 1.05 * of_training_;
    }
    // A data set of which a part was trained on, evaluated beside another one of which nothing was.
    [[nodiscard]] bool is_beside_another() const {
        return all_.mixed_evaluations >= 2 && is_scored_ && are_known() && all_.is_mixed &&
               all_.mixed_size > 0 && all_.mixed_size < kPartOfTraining * of_training_ &&
               all_.rows > all_.mixed_rows;
    }
    // The first evaluations are free of the training's rows; what comes from the first one on that is not is
    // counted apart.
    void take_turn(const Evaluation& now) {
        if (later_evaluations_ == 0 && now.trained <= 0) {
            ++free_evaluations_;
            is_free_known_ = are_known();
            level_when_free_ = loss_.count() > 0 ? loss_.level() : 0;
            after_free_.clear();
            return;
        }
        ++later_evaluations_;
        later_.rows += now.rows;
        later_.trained += now.trained;
        later_.half += now.half;
        later_.longest_without = std::max(later_.longest_without, now.longest_without);
    }
    // What was evaluated at first was trained on then, and what was trained on is evaluated, as where each
    // fold or epoch splits the data anew and one model goes through all of them.
    [[nodiscard]] bool have_joined() const {
        if (free_evaluations_ == 0 || later_evaluations_ < kLaterEvaluations || !is_scored_) return false;
        if (!is_free_known_ || known_ < kMoreThanItHas * of_training_) return false;
        const double share = later_.trained / later_.rows;
        return later_.trained >= rows_ && share >= share_ && is_by_chance(share, later_.longest_without) &&
               goes_on_learned() && !is_by_nature(later_, share);
    }
    // The weights are not set back to where they began: a fold that has first weights of its own begins with
    // the loss of an untrained model.
    [[nodiscard]] bool goes_on_learned() const {
        if (after_free_.size() < kFewestAfter || level_when_free_ >= kMostLeft * loss_.start()) return false;
        return median(after_free_) < 0.5 * (level_when_free_ + loss_.start());
    }
    // Whether so many rows in a row may have none of the training's where a share of all have.
    static bool is_by_chance(double share, double without) {
        return without <= 0 || std::pow(1 - std::min(share, 1 - 1e-9), without) >= 1e-4;
    }
    [[nodiscard]] double judged_rows() const { return is_beside_another() ? all_.mixed_rows : all_.rows; }
    [[nodiscard]] bool is_overlap() const {
        const double seen = all_.rows > 0 ? all_.trained / all_.rows : 0;
        if (all_.trained < rows_ || share() < share_) return false;
        // Other data is evaluated as well: then the training's may be there to compare.
        const double others = all_.rows - all_.longest_without;
        const double among_others = others > 0 ? std::min(1.0, all_.trained / others) : seen;
        if (!is_beside_another() && !is_by_chance(among_others, all_.longest_without)) return false;
        if (share() > 0.95 && evaluations_ < 2 && !is_short_) return false;
        if (!is_scored_ && is_one_pass_) return false;
        if (!is_scored_ && (evaluations_ < 2 || (share() > 0.95 && !are_other_records()))) return false;
        return !is_by_nature(all_, share());
    }
    // Rows that come again without having been copied.
    [[nodiscard]] bool is_by_nature(const Evaluation& of, double share) const {
        const double by_chance = pairs_ > 0 ? 1 - std::exp(-alike_ / pairs_ * known_) : 1;
        const bool is_likely = by_chance >= kLikely;
        return are_alike_by_nature(of, is_likely) && (share < 0.9 || is_likely);
    }
    // Rows of a small space: what is equal in both halves comes with what is equal in one.
    [[nodiscard]] bool are_alike_by_nature(const Evaluation& of, bool is_likely) const {
        if (half_alike_ > alike_ + 2 || of.half > 0.25 * of.trained) return true;
        // Where a row is to be expected again anyway, fewer of them say it: copies have none.
        return is_likely && (half_alike_ > 0.1 * alike_ + 2 || of.half > 0.1 * (of.rows - of.trained) + 2);
    }
    // What is evaluated are no records of the training, though it had all of their rows: its data has several
    // records with one row, and this is a part of the data that is none of its batches.
    [[nodiscard]] bool are_other_records() const {
        return labelled_otherwise_ >= rows_ && unscored_of_ > batch_ && unscored_of_ < known_;
    }

    struct Found {
        double trained = 0, rows = 0;
        std::uint64_t evaluations = 0;
        double share = 0;
        std::uint64_t free_evaluations = 0;  // before those
    };
    void fire(FindingSink& sink, const char* key, const Found& found) const {
        model::Finding finding;
        finding.key = key;
        finding.mode = model::Mode::kEval;
        finding.severity = model::Severity::kWarning;
        finding.tensor = "input/0";
        finding.message = base::format(
            "{:.0f} of {:.0f} rows that were looked at in {} evaluations up to training step {} are rows "
            "that the model was trained on, bit for bit",
            found.trained, found.rows, found.evaluations, train_step_);
        finding.message += remembered() < 0.98
                               ? base::format(
                                     "; {:.0f} % of the training's rows are remembered, so that about {:.0f} "
                                     "% of what is evaluated was trained on.",
                                     100 * remembered(), 100 * found.share)
                               : std::string(".");
        if (found.free_evaluations > 0)
            finding.message += base::format(
                " {} {} before {} free of such rows: since then the model was trained on what was held out.",
                found.free_evaluations, found.free_evaluations == 1 ? "evaluation" : "evaluations",
                found.free_evaluations == 1 ? "was" : "were");
        if (key == std::string_view(kHeldOut))
            finding.message += " The program's text calls what is evaluated there held out.";
        finding.fix =
            "Split once, before rows are copied, augmented or cut into windows, and give the evaluation the "
            "part that the training does not have.";
        finding.evidence.push_back(
            {"share of evaluated rows that were trained on", found.share, "limit", share_});
        finding.evidence.push_back({"rows found", found.trained, "of", found.rows});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr model::StepIndex kAllLookedAt = 50;  // of evaluated batches, later ones now and then
    // Of unscored batches between two steps fewer than 48 are kept: of more it is not known how many rows
    // they have.
    static constexpr double kMostUnscored = 48;
    static constexpr double kMostMixed = 0.95;      // of a set's rows, that has others than the training's
    static constexpr double kPartOfTraining = 0.7;  // rows of such a set: of more, it may be all data
    // Evaluations with rows of the training, after ones without any; the training's rows by then, of those
    // that it has at a time; of the first loss, what is left at most of a training that has learned; steps
    // that tell whether it begins anew.
    static constexpr std::uint64_t kLaterEvaluations = 3;
    static constexpr double kMoreThanItHas = 1.05, kMostLeft = 0.8;
    static constexpr std::size_t kStepsAfter = 10, kFewestAfter = 3;
    static constexpr const char* kRows = "rows";
    static constexpr const char* kBeside = "rows without a loss";
    static constexpr const char* kMixed = "rows beside the training's";
    static constexpr const char* kHeldOut = "rows called held out";
    // Of the training's rows, how many an evaluation of all data has; and how many more than all has one that
    // has a second set beside them.
    static constexpr double kFewestOfAll = 0.95, kMostOfAll = 1.05, kMoreThanAll = 0.02;
    static constexpr double kBatchesBeside = 2;  // of an evaluation without a loss, at least
    static constexpr double kLikely = 0.4;       // of an evaluated row to be among the training's by chance

    double share_, rows_;
    std::uint64_t judged_ = 0;
    model::StepIndex train_step_ = 0;
    std::uint64_t evaluations_ = 0;
    double known_ = 0, of_training_ = 0, looked_at_ = 0, pairs_ = 0, alike_ = 0, half_alike_ = 0;
    // Pairs of equal rows with two labels, in batches of the training; rows of a batch; rows of the largest
    // evaluation without a loss.
    double labelled_otherwise_ = 0, batch_ = 0, unscored_of_ = 0;
    bool is_short_ = false, fired_ = false, is_beside_fired_ = false;
    bool is_scored_ = false;    // a loss was computed in evaluations
    bool is_one_pass_ = false;  // one without a loss was of all data: the training's and others
    Evaluation open_, all_;
    // Of batches without a loss in trainings that compute one of others, and the rows known meanwhile.
    Evaluation beside_;
    double beside_known_ = 0;
    // Of batches without a loss that hold rows of the training and others.
    Evaluation mixed_;
    double mixed_known_ = 0;  // rows of the training meanwhile
    std::uint64_t mixed_evaluations_ = 0;
    bool is_mixed_fired_ = false;
    // Of batches without a loss that the program calls held out, and the rows known meanwhile.
    Evaluation held_out_;
    double held_out_known_ = 0;
    std::uint64_t held_out_evaluations_ = 0;
    bool is_held_out_fired_ = false;
    // From the first evaluation on that has some of the training's rows, and what was so at the last one
    // before it.
    Evaluation later_;
    std::uint64_t free_evaluations_ = 0, later_evaluations_ = 0;
    bool is_free_known_ = false;  // all of the training's rows are
    double level_when_free_ = 0;  // of the training's loss
    std::vector<double> after_free_;
    TrainingLoss loss_;
    std::uint64_t beside_evaluations_ = 0;
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
