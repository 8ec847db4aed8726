// The evaluation loss rises while the training loss goes on falling.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/neighbours.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kOverfit = {
    .name = "overfit",
    .title = "Overfitting",
    .summary = "The evaluation loss has risen from its best while the training loss went on falling.",
    .when =
        "The evaluation loss gets worse while the training loss falls further, or it never got better, or "
        "stays far above the training loss until the end.\n"
        "- Evaluations: evaluation steps between two training steps are one evaluation, and their mean loss "
        "is its result.\n"
        "- Summed evaluations: where the first result is more than five times the training loss until then, "
        "and half to twice of it when divided by the rows of its batches, eight or more in each, the results "
        "are divided so.\n"
        "- Not counted: those that evaluate the training's own data, where there are others. These are "
        "batches at whose place in an evaluation nine tenths of the rows were known from the training. Where "
        "that changes, results begin anew.\n"
        "- Rise (warning): the results of the last `patience` evaluations all exceed the best one before "
        "them. They do so by more than `give_back` of what had been learned (from the first result, or the "
        "training's start, to the best), by more than 10 %, and by three times the noise between "
        "evaluations.\n"
        "- Steady rise (warning): half of `give_back` is enough, where the results exceed the best by more "
        "than 30 % and eight or more evaluations rise without a turn (each above the one before, or "
        "Mann-Kendall z > 3.5).\n"
        "- Steady rise, of what is known by heart: more than 15 % are enough while the training loss is "
        "below 5 % of the best result.\n"
        "- Training, for a rise: the training loss of the same function is below what it was at the best "
        "evaluation by two standard errors, and both are below where the training began.\n"
        "- No rise is reported while all of these results are below half of the training loss.\n"
        "- Only risen (warning): the loss of five or more evaluations began where the training began and has "
        "only risen since, while the training loss fell by more than 3 %. What is learned holds for the "
        "training data only.\n"
        "- Only risen, when it is told: at once where the training loss fell by half, at the end of the run "
        "where it fell by less, no evaluation got better than 98 % of where it began, and the last is still "
        "above the first, by 0.5 % and by more than the noise. Until then what holds for all data may still "
        "be learned.\n"
        "- Only risen, for inputs that tell nothing: it may begin within a quarter of the training's mean "
        "loss before the first evaluation, where labels of the nearest of 250 or more rows of the inputs "
        "differ by more than 92 % of what those of any two do.\n"
        "- Gap (warning), at the end of five or more evaluations: the training loss is below 5 % of that of "
        "evaluation. The evaluation loss began near the start, was never below 40 % of it, and stands near "
        "its best. Not where other weights are put in its place, unless they are known to be those of an "
        "evaluation with such a gap.\n"
        "- Gap, without standing near its best: it was never below 75 % of the start, the median of the last "
        "`patience` is above 90 % of it, and the training loss below 5 % of that median. No other weights "
        "were put in the model's place.\n"
        "- Note only (info): after a rise, other weights than those of the last step were loaded after it, "
        "as an early stopping does with those of its best evaluation.\n"
        "- Note only (info): after a rise, another model was evaluated in the end, and there is a copy of "
        "the model with other weights, which no optimizer trained.\n"
        "- Still a warning: the loss is one of numbers (mse_loss, l1_loss and the like), and the loaded "
        "weights are known to be those of an evaluation by which half of that rise was there already.",
    .why =
        "From the best evaluation on the model learns its training data by heart: every further step makes "
        "it worse on new data.",
    .fix =
        "Keep the checkpoint of the best evaluation (early stopping). More data or augmentation; weight "
        "decay or dropout; a smaller model. If the evaluation loss only ever rose: check that labels belong "
        "to their inputs.",
    .healthy =
        "An evaluation loss that creeps up a little in a long training whose accuracy holds; noise from a "
        "small evaluation set; an evaluation loss below the training loss (dropout, augmentation); an early "
        "stopping that loads its best weights at the end: load_state_dict() of copies.",
    .cost =
        "One number per training step and per evaluation step; a comparison of some hundred rows of the "
        "first inputs with each other, once.",
    .original = "Overfit, Overtraining",
    .source = "Prechelt, \"Early Stopping - But When?\", 1998",
    .severity = model::Severity::kWarning,
    .parameters = {{"patience", "evaluations", 3, 1, 1000, "evaluations in a row that must be worse"},
                   {"give_back", "share", 0.1, 0, 10, "share of what was learned that must be lost"}},
};

class Overfit final : public Rule {
  public:
    explicit Overfit(const Parameters& parameters)
        : patience_(static_cast<std::size_t>(parameters.at("patience"))),
          give_back_(parameters.at("give_back")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kTrain) {
            if (open_count_ > 0) close(sink);
            is_put_back_ = loop_fact(step, "weights_put_back").has_value();
            const std::optional<LoopFact> since = loop_fact(step, "weights_put_back_since");
            put_back_since_ = since ? std::optional(since->value) : std::nullopt;
            is_copy_evaluated_ = loop_fact(step, "copy_evaluated").has_value();
            if (loop_fact(step, "trainings")) is_of_training_.clear();
            neighbours_.observe(step);
            on_train(step);
        } else if (step.mode() == model::Mode::kEval) {
            on_eval(step);
        }
    }
    void on_end(FindingSink& sink) override {
        if (open_count_ > 0) close(sink);
        if (has_risen_ && !memorising_ && !last_.empty() && has_never_fallen() &&
            is_above_first(last_.back())) {
            memorising_ = true;
            fire_memorising(sink);
        }
        if (!firing_ && !memorising_ && has_gap()) fire_gap(sink);
        if (!is_put_back_ && !is_copy_evaluated_) return;
        const Result* left_with = put_back();
        if (firing_ && left_with != nullptr && has_given_back(left_with->loss)) fire(sink, left_with);
        else take_back(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (evaluations_ == 0)
            return "no evaluation loss was seen: call model.eval() and compute the loss with a function of "
                   "torch.nn.functional";
        return base::format("evaluations seen: {}; it judges from {} on", evaluations_, patience_ + 1);
    }

  private:
    struct Result {
        double loss = 0;
        double train = 0;  // mean training loss since the evaluation before
        double error = 0;  // standard error of that mean, 0 where it is not known
        bool has_train = false;
        model::StepIndex step = 0;  // TRAIN steps done
    };

    void on_train(const model::StepView& step) {
        train_steps_ = step.step() + 1;
        double sum = 0, samples = 0, total = 0, totals = 0;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_first_loss(info) || !std::isfinite(sample.value)) continue;
            const bool is_total = !info.name.starts_with("loss/");
            if (is_total) {
                total += sample.value;
                ++totals;
            } else if (function_.empty() || info.name == function_) {
                sum += sample.value;
                ++samples;
            }
        }
        if (samples > 0) add_train(sum / samples);
        else if (totals > 0 && (function_.empty() || is_written_out())) add_train(total / totals);
    }
    // The evaluation's loss is, like the training's, what the program computes by itself.
    [[nodiscard]] bool is_written_out() const { return !function_.starts_with("loss/"); }
    void add_train(double value) {
        has_start_ = true;
        // One batch is noise; of a training that blows up at once, the first one is the start.
        if (starts_.size() < 5) {
            starts_.push_back(value);
            start_ = std::min(starts_.front(), median(starts_));
        }
        train_sum_ += value;
        train_squares_ += value * value;
        ++train_count_;
    }
    void on_eval(const model::StepView& step) {
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_first_loss(info) || !std::isfinite(sample.value)) continue;
            if (function_.empty()) function_ = info.name;
            if (info.name != function_) continue;
            const double rows = rows_at(step, static_cast<std::size_t>(open_count_));
            open_sum_ += sample.value;
            open_rows_ += rows;
            ++open_count_;
            if (!is_of_training(step)) {
                others_sum_ += sample.value;
                others_rows_ += rows;
                ++others_count_;
            }
        }
    }
    // Rows of a batch by its place in an evaluation, as the first evaluation had them: not all batches are
    // looked at. Of places that it did not have, or where they were not seen, the last ones are taken.
    [[nodiscard]] double rows_at(const model::StepView& step, std::size_t place) {
        if (results_ == 0 && place == rows_at_.size() && place < kMostPlaces) {
            const double rows = rows_of_input(step);
            rows_at_.push_back(rows > 0 || rows_at_.empty() ? rows : rows_at_.back());
        }
        if (rows_at_.empty()) return 0;
        return place < rows_at_.size() ? rows_at_[place] : rows_at_.back();
    }
    // The first evaluation sums its loss up over the rows of a batch, where the training takes the mean:
    // each of its rows has a loss as those of the training have.
    [[nodiscard]] bool is_sum(double mean, double rows, double train) const {
        if (!(train > 0) ||
            !std::all_of(rows_at_.begin(), rows_at_.end(), [](double at) { return at >= kFewestRowsOfSum; }))
            return false;
        const double of_row = mean / rows;
        return mean > kFarAbove * train && of_row > train / kNear && of_row < kNear * train;
    }
    // The batch is of the training's data, as some loops evaluate both after each epoch. Its place is
    // remembered: not all batches are looked at.
    [[nodiscard]] bool is_of_training(const model::StepView& step) {
        const auto place = static_cast<std::size_t>(open_count_) - 1;
        const auto rows = loop_fact(step, "rows_evaluated"),
                   known = loop_fact(step, "rows_evaluated_trained");
        if (place >= kMostPlaces) return false;
        if (rows && known && rows->value >= kFewestRows) {
            if (is_of_training_.size() <= place) is_of_training_.resize(place + 1, false);
            const bool is = known->value >= kOfTraining * rows->value;
            are_others_ = are_others_ || is != is_of_training_[place];
            is_of_training_[place] = is;
        }
        return place < is_of_training_.size() && is_of_training_[place];
    }

    void close(FindingSink& sink) {
        // Results of other batches than before do not compare with those.
        if (std::exchange(are_others_, false)) begin_anew();
        is_parted_ = others_count_ > 0 && others_count_ < open_count_;
        const double train = train_count_ > 0 ? train_sum_ / train_count_ : 0;
        const double sum = is_parted_ ? others_sum_ : open_sum_;
        const double count = is_parted_ ? others_count_ : open_count_;
        const double rows = is_parted_ ? others_rows_ : open_rows_;
        if (results_ == 0) is_summed_ = is_sum(sum / count, rows / count, train_count_ > 0 ? train : start_);
        const Result now = {sum / (is_summed_ ? rows : count), train, train_error(), train_count_ > 0,
                            train_steps_};
        open_sum_ = open_count_ = open_rows_ = others_sum_ = others_count_ = others_rows_ = 0;
        train_sum_ = train_squares_ = train_count_ = 0;
        ++evaluations_;
        ++results_;
        last_.push_back(now);
        if (known_.size() < kMostKnown) known_.push_back(now);
        if (last_.size() > patience_) {
            // What leaves the window of the last ones may be the best so far.
            const Result& old = last_.front();
            if (!has_best_ || old.loss < best_.loss) {
                best_ = old;
                since_best_ = patience_ - 1;
            }
            has_best_ = true;
            ++since_best_;
            last_.erase(last_.begin());
        }
        if (results_ == 1) {
            first_ = now.loss;
            first_train_ = now.train;
        }
        lowest_ = results_ == 1 ? now.loss : std::min(lowest_, now.loss);
        series_.add(now.loss);
        if (!has_best_) return;
        ++judged_;
        if (memorises()) {
            has_risen_ = true;
            // Of a training that has learned little the evaluation may rise at first, and fall far later.
            if (memorising_ || now.train < kMuchLearned * trained_at_start()) {
                fire_memorising(sink);
                memorising_ = true;
            }
        } else if (has_risen_ && lowest_ < 0.9 * start_) {
            if (memorising_) sink.clear(kMemorising);
            has_risen_ = memorising_ = false;
        }
        const bool on = is_overfit();
        if (on) fire(sink);
        else if (firing_) sink.clear(kKey);
        firing_ = on;
    }

    void begin_anew() {
        known_.clear();
        rows_at_.clear();
        results_ = 0;
        last_.clear();
        has_best_ = false;
        series_.clear();
    }

    [[nodiscard]] double train_error() const {
        if (train_count_ < 3) return 0;
        const double mean = train_sum_ / train_count_;
        return std::sqrt(std::max(train_squares_ / train_count_ - mean * mean, 0.0) / (train_count_ - 1));
    }
    [[nodiscard]] bool is_overfit() const {
        if (!last_.back().has_train || !best_.has_train) return false;
        const double size = static_cast<double>(last_.size());
        double least = last_.front().loss, most = least, train = 0, variance = best_.error * best_.error;
        for (const Result& result : last_) {
            least = std::min(least, result.loss);
            most = std::max(most, result.loss);
            train += result.train / size;
            variance += result.error * result.error / (size * size);
        }
        const double learned = std::max(first_, has_start_ ? start_ : first_) - best_.loss;
        const double risen = least - best_.loss;
        const double noise = noise_of(series_.values());
        // Neither loss ever got below where the training began: it did not learn, so it did not overfit.
        if (has_start_ && (best_.loss >= start_ || train >= start_)) return false;
        // What the training adds to its own loss, by smoothed labels say, the evaluation is drawn to as well.
        if (most < kFarBelow * train) return false;
        // Less of all that was learned, where it is much beside the best and is lost without a turn. What is
        // known by heart has no more to learn: such a rise goes on until the training ends.
        const double steady_rise = train < kByHeart * best_.loss ? kSteadyRiseByHeart : kSteadyRise;
        const bool is_steady = risen > 0.5 * give_back_ * std::max(learned, 0.0) &&
                               risen > steady_rise * std::abs(best_.loss) && since_best_ >= kSteadyCount &&
                               rises_without_a_turn();
        const bool is_much =
            risen > give_back_ * std::max(learned, 0.0) && risen > 0.1 * std::abs(best_.loss);
        return (is_much || is_steady) && risen > noise && median_risen() > 3 * noise / std::sqrt(size) &&
               best_.train - train > 2 * std::sqrt(variance);
    }
    // Since the best evaluation. Of so few that each is above the one before the test is not sure yet.
    [[nodiscard]] bool rises_without_a_turn() const {
        const std::span<const double> risen = series_.last(std::min(since_best_, kSeries));
        return trend_z(risen) > kSteadyTrend ||
               std::adjacent_find(risen.begin(), risen.end(), std::greater_equal<>()) == risen.end();
    }
    // The evaluation of the weights that were loaded after the last step. Null where that is not known, and
    // of classes: they may be those that were right most often, though not the most certain.
    [[nodiscard]] const Result* put_back() const {
        constexpr std::array kOfNumbers = {"loss/mse_loss", "loss/l1_loss", "loss/smooth_l1_loss",
                                           "loss/huber_loss"};
        if (!put_back_since_ || known_.empty() || known_.size() == kMostKnown ||
            std::find(kOfNumbers.begin(), kOfNumbers.end(), function_) == kOfNumbers.end())
            return nullptr;
        const double taken = static_cast<double>(train_steps_) - *put_back_since_;
        const auto apart = [taken](const Result& result) {
            return std::abs(static_cast<double>(result.step) - taken);
        };
        return &*std::min_element(known_.begin(), known_.end(),
                                  [&apart](const Result& a, const Result& b) { return apart(a) < apart(b); });
    }
    // Half of what the last evaluations lost of the best one was lost by then.
    [[nodiscard]] bool has_given_back(double loss) const {
        const auto by_loss = [](const Result& a, const Result& b) { return a.loss < b.loss; };
        const double least = std::min_element(last_.begin(), last_.end(), by_loss)->loss;
        return loss - best_.loss > 0.5 * (least - best_.loss);
    }
    // All that is known of the inputs is that they say nothing of the labels.
    [[nodiscard]] bool are_inputs_noise() const {
        const std::optional<double> unlike = neighbours_.unlike();
        return unlike && *unlike > kUnlike && neighbours_.rows() >= kFewestCompared;
    }
    // Few evaluated rows lie closer together, or further apart, than the training's: of inputs that are noise
    // all that counts is that no evaluation got better than the first, which is compared with what the
    // training was before it. Those are many batches; the start is five.
    [[nodiscard]] double trained_at_start() const { return are_inputs_noise() ? first_train_ : start_; }
    // Where it began: of inputs that are noise, with the first evaluation.
    [[nodiscard]] double begin() const { return are_inputs_noise() ? first_ : start_; }
    [[nodiscard]] bool has_never_fallen() const { return lowest_ > 0.98 * begin(); }
    // The training data is learned, and nothing of it holds for any other data.
    [[nodiscard]] bool memorises() const {
        const Result& now = last_.back();
        // It began where the training began, and went up from there.
        const bool is_noise = are_inputs_noise();
        const double trained = trained_at_start();
        return results_ >= 5 && has_start_ && now.has_train && trained > 0 && now.train < 0.97 * trained &&
               std::abs(first_ - trained) < (is_noise ? 0.25 : 0.1) * trained && has_never_fallen() &&
               starts_.front() < 2 * start_ &&  // L-BFGS may be done within five steps
               std::all_of(last_.begin(), last_.end(),
                           [this](const Result& result) { return is_above_first(result); });
    }
    [[nodiscard]] bool is_above_first(const Result& result) const {
        return result.loss > std::max(begin(), 1.005 * first_) &&
               result.loss > first_ + noise_of(series_.values());
    }
    void fire_memorising(FindingSink& sink) const {
        const Result& now = last_.back();
        const double start = trained_at_start();
        model::Finding finding;
        finding.key = kMemorising;
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = function_;
        finding.message = base::format(
            "The training loss fell from {} to {}, the evaluation loss never got below where it began: {} at "
            "best, {} after step {}.",
            human_number(start), human_number(now.train), human_number(lowest_), human_number(now.loss),
            now.step);
        finding.message += parts_in_words();
        finding.fix =
            "Check that labels belong to their inputs (were both shuffled in the same order?), and that "
            "evaluation data is prepared as training data is.";
        finding.evidence.push_back({"evaluation loss", now.loss, "at the start", start});
        finding.evidence.push_back({"training loss", now.train, "at the start", start});
        for (model::Evidence& item : neighbours_.evidence()) finding.evidence.push_back(std::move(item));
        finding.plots = {{function_, "value"}};
        sink.fire(std::move(finding));
    }
    // All of the training data is known by heart, little of any other, and that since long.
    [[nodiscard]] bool has_gap() const {
        if (results_ < 5 || last_.empty() || !has_start_) return false;
        const Result& now = last_.back();
        // Other weights are kept, unless they, too, are those of an evaluation with such a gap.
        const Result* left_with = put_back();
        const bool is_left = !is_put_back_ && !is_copy_evaluated_;
        if (!is_left && (left_with == nullptr || left_with->train >= kByHeart * left_with->loss))
            return false;
        // As bad as what the training began with: the little that had been learned is lost, too. The last one
        // may be of other data.
        std::vector<double> ends;
        for (const Result& result : last_) ends.push_back(result.loss);
        const double end = median(std::move(ends));
        const bool is_as_bad = end > kBackAtStart * start_ && lowest_ > kHardlyLearned * start_ &&
                               now.train < kByHeart * end && is_left;
        // An evaluation that sums up more than its rows where training takes the mean is far above the start.
        return now.has_train && now.train >= 0 && now.train < kByHeart * now.loss &&
               now.loss > 0.4 * start_ && first_ < 2 * start_ && lowest_ > 0.4 * start_ &&
               (lowest_ > 0.9 * now.loss || is_as_bad) && trend_z(series_.values()) > -2;
    }
    void fire_gap(FindingSink& sink) const {
        const Result& now = last_.back();
        model::Finding finding;
        finding.key = "gap";
        finding.severity = model::Severity::kWarning;
        finding.tensor = function_;
        finding.message = base::format(
            "The training loss is {} in the end, of {} at the start, and that of evaluation {}, {} at best: "
            "the training data is known by heart, and little of what was learned holds for other data.",
            human_number(now.train), human_number(start_), human_number(now.loss), human_number(lowest_));
        finding.message += parts_in_words();
        finding.fix =
            "Add data or augmentation, or take a smaller model, weight decay or dropout; check that "
            "evaluation data is like training data.";
        finding.evidence.push_back({"evaluation loss", now.loss, "at the start", start_});
        finding.evidence.push_back({"training loss", now.train, "evaluation loss", now.loss});
        finding.plots = {{function_, "value"}};
        sink.fire(std::move(finding));
    }
    [[nodiscard]] double median_risen() const {
        std::vector<double> losses;
        for (const Result& result : last_) losses.push_back(result.loss);
        return median(std::move(losses)) - best_.loss;
    }

    [[nodiscard]] std::string parts_in_words() const {
        return base::format(
            "{}{}", is_parted_ ? " Evaluated batches of the training's own data are not counted." : "",
            is_summed_ ? " Evaluations are summed up, and divided here by the rows of their batches." : "");
    }

    void fire(FindingSink& sink, const Result* left_with = nullptr) const {
        const Result& now = last_.back();
        model::Finding finding;
        finding.key = kKey;
        finding.severity = model::Severity::kWarning;
        finding.first_step = best_.step;
        finding.tensor = function_;
        finding.message = base::format(
            "The evaluation loss was best after step {} ({}) and is {} after step {}, {:.0f} % higher, while "
            "the training loss fell from {} to {}.",
            best_.step, human_number(best_.loss), human_number(now.loss), now.step,
            100 * (now.loss - best_.loss) / std::abs(best_.loss), human_number(best_.train),
            human_number(now.train));
        finding.message += parts_in_words();
        if (left_with != nullptr) {
            finding.message += base::format(
                " After the last step the weights of about step {} were loaded, with which it was {}: not "
                "the best ones.",
                left_with->step, human_number(left_with->loss));
            finding.evidence.push_back(
                {"evaluation loss of the weights that were loaded", left_with->loss, "best", best_.loss});
        }
        finding.fix = base::format(
            "Use the checkpoint of step {}; stop there (early stopping), or add data, augmentation, weight "
            "decay or dropout.",
            best_.step);
        finding.evidence.push_back({"evaluation loss", now.loss, "best", best_.loss});
        finding.evidence.push_back({"training loss", now.train, "then", best_.train});
        finding.evidence.push_back(
            {"best step", static_cast<double>(best_.step), "now", static_cast<double>(now.step)});
        finding.plots = {{function_, "value"}};
        sink.fire(std::move(finding));
    }

    // The rise is over: the model is left with the weights of before.
    void take_back(FindingSink& sink) const {
        model::Finding note;
        note.key = kKey;
        note.message = base::format(
            "The evaluation loss rose from its best after step {} ({}), and {}.", best_.step,
            human_number(best_.loss),
            is_put_back_ ? "after the last step other weights were loaded than those that it had left: the "
                           "model is not left with the weights that overfit"
                         : "after the last step another model was evaluated: there is a copy of it with "
                           "other weights, which no optimizer trained");
        note.fix = "Nothing, if these are the weights of the best evaluation.";
        sink.take_back(std::move(note));
    }

    static constexpr const char* kKey = "evaluation";
    static constexpr const char* kMemorising = "memorising";
    static constexpr double kUnlike = 0.92, kFewestCompared = 250;  // neighbours
    static constexpr double kFewestRows = 8, kOfTraining = 0.9;
    static constexpr std::size_t kMostPlaces = 4096, kMostKnown = 4096;
    // Of the evaluation loss, or of the training's start.
    static constexpr double kByHeart = 0.05, kBackAtStart = 0.9, kHardlyLearned = 0.75;
    // Of an evaluation that is summed up: rows of a batch; how many times the training loss it is; and how
    // near to it the loss of a row is.
    static constexpr double kFewestRowsOfSum = 8, kFarAbove = 5, kNear = 2;
    static constexpr std::size_t kSeries = 32, kSteadyCount = 8;  // evaluations
    static constexpr double kFarBelow = 0.5;                      // of the training loss
    static constexpr double kMuchLearned = 0.5;                   // of what the training began with
    static constexpr double kSteadyRise = 0.3, kSteadyRiseByHeart = 0.15, kSteadyTrend = 3.5;
    std::size_t patience_;
    double give_back_;
    std::string function_;
    std::size_t evaluations_ = 0, judged_ = 0;
    std::size_t results_ = 0;  // of the same batches
    double open_sum_ = 0, open_count_ = 0, open_rows_ = 0, others_sum_ = 0, others_count_ = 0,
           others_rows_ = 0, train_sum_ = 0, train_squares_ = 0, train_count_ = 0;
    double start_ = 0, first_ = 0, first_train_ = 0, lowest_ = 0;
    bool has_start_ = false, has_best_ = false, firing_ = false;
    bool has_risen_ = false, memorising_ = false;  // only risen, and that was told
    model::StepIndex train_steps_ = 0;
    std::vector<double> starts_;  // the first training losses
    Result best_;
    Neighbours neighbours_;
    std::vector<Result> last_;
    std::vector<double> rows_at_;           // of batches, by their place in an evaluation
    bool is_summed_ = false;                // over the rows of a batch
    std::vector<bool> is_of_training_;      // by the place of a batch in an evaluation
    bool are_others_ = false;               // than in the evaluation before
    bool is_parted_ = false;                // the last evaluation was of both
    bool is_copy_evaluated_ = false;        // of the model, with other weights than the last ones
    bool is_put_back_ = false;              // other weights were loaded after the last step
    std::optional<double> put_back_since_;  // steps before it, when those were taken
    std::vector<Result> known_;             // all of the same batches
    std::size_t since_best_ = 0;            // results
    Recent series_{kSeries};
};

std::vector<model::Requirement> overfit_needs(const Parameters&) {
    using enum model::Mode;
    std::vector<model::Requirement> all = neighbour_requirements(kOverfit.name);
    all.push_back({"losses", kTrain, model::What::kStatistics, {.every = 1}, kOverfit.name});
    all.push_back({"losses", kEval, model::What::kStatistics, {.every = 1}, kOverfit.name});
    for (model::Requirement& more : row_requirements(kOverfit.name)) all.push_back(std::move(more));
    return all;
}

}  // namespace

RuleEntry builtin::overfit() {
    return {&kOverfit, &overfit_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<Overfit>(p); }};
}

}  // namespace traindbg::rules
