// Evaluation inputs that were prepared otherwise than those of the training.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kTrainValMismatch = {
    .name = "train_val_mismatch",
    .title = "Training and evaluation inputs differ",
    .summary = "The inputs of evaluations are of another size or level than those of the training.",
    .when =
        "Inputs of evaluations are distributed in another way than those of the training, were standardised "
        "by themselves, or the training's inputs drift away or are augmented beyond recognition.\n"
        "- Different inputs: of a floating-point input, five training batches and two evaluation batches "
        "were captured. The means differ by more than `shift` standard deviations of the values, or the "
        "standard deviations by more than `scale` times. In either case it is more than six times what "
        "training batches differ among themselves.\n"
        "- Different inputs (warning): the evaluation's loss is more than 1.3 times that of the training, or "
        "not known.\n"
        "- Different inputs, note only (info): the evaluation's loss is known and not more than 1.3 times "
        "that of the training.\n"
        "- Different inputs, note only (info): each sample has one value, spread evenly in training, and the "
        "evaluation's values go on where those end, as in data that are split by time.\n"
        "- Renumbered, not judged: inputs but for the first one where not every pass that was captured, of "
        "training and of evaluation, was given equally many. A list of a tensor per sample, of batches of "
        "another size, gives those that come after it other numbers.\n"
        "- Padding, not reported: both have exact zeros in a hundredth of their values or more, and the "
        "values that are not zero have the same mean and spread.\n"
        "- One evaluation batch is enough where no loss of evaluations is seen. It has 5000 values, and no "
        "fewer than a batch of the training, and its rows have four values or more. Three evaluations have "
        "the same rows. It is half of an evaluation, or its values reach `scale` times as far as the "
        "training's.\n"
        "- One evaluation batch is not enough where the evaluation's inputs are only narrower, or only have "
        "fewer zeros.\n"
        "- Standardised by itself: two or more columns of an evaluation (of a table, or channels of images), "
        "of 32 values or more, have a mean of 0 and a standard deviation of 1, within 3e-5. A warning if its "
        "loss is more than 1.3 times that of the training, else a note (info).\n"
        "- Standardised by itself, not reported: the evaluation has rows of the training, or the remembered "
        "rows are too few to tell. Neither where samples or batches are each standardised by themselves, nor "
        "for columns of two values.\n"
        "- Channels exchanged (warning): how far the first channel of images lies above the last one, in "
        "mean and in spread, differs between training and evaluation by a squared distance above 40 (in "
        "standard errors). With the evaluation's channels exchanged it is below 9, and below a tenth of "
        "that.\n"
        "- Channels exchanged, of which images: of floating point, with three channels before height and "
        "width of 8 pixels or more. 64 or more of the training and of an evaluation were looked at.\n"
        "- Channels exchanged: two evaluations in a row show it, and the evaluation's loss is more than 1.3 "
        "times that of the training.\n"
        "- Inputs exchanged: of two inputs of floating point and of one shape, how far the first one's mean "
        "and spread lie above those of the second differs between training and evaluation by a squared "
        "distance above 40 (in standard errors). With the evaluation's inputs exchanged it is below 9, and "
        "below a tenth of that.\n"
        "- Inputs exchanged, when: ten training batches or more and 64 evaluated rows were captured, in two "
        "batches or in one that comes at every evaluation. A warning if the evaluation's loss is more than "
        "1.3 times that of the training or not known, else a note (info).\n"
        "- Drift (warning): the training's first five batches were like the first one that was evaluated "
        "(means within 0.3 standard deviations, these within 1.3 times). Each of the last five, of fifteen "
        "or more, differs from the first five by `shift` or `scale`, and by six times the deviation that "
        "their changes from one to the next tell.\n"
        "- Drift is not reported of inputs that are computed by other models which are trained, nor of what "
        "the model returned itself and is given again (the state of a recurrent network), nor anew while one "
        "batch comes twice in a row in the last five.\n"
        "- destructive_augmentation (warning): the training's inputs are other ones each time, except for "
        "those of which nothing is left. They spread more than `noise` times as wide as the evaluation's, or "
        "hold exact zeros in a fifth more of their values. Either is by more than six times what batches "
        "differ among themselves. After `steps` steps the training's loss is still above `high` of that of "
        "guessing.\n"
        "- destructive_augmentation by colours (warning): the training's images are other ones each time, "
        "and the mean of their first channel lies as often above that of the last one as below: on average "
        "by less than a quarter of what it does in evaluation. The squared distance between both is above 40 "
        "(in standard errors), with channels exchanged, too.\n"
        "- For colours, the training's loss after `steps` steps is above two thirds of `high` of that of "
        "guessing.\n"
        "- destructive_augmentation, not reported: the evaluation's loss is below `high` of that of "
        "guessing, or below 85 % of the training's (what is left of the data teaches enough there), or the "
        "zeros are those of whole samples. These exceptions do not hold for zeros in four fifths more of the "
        "values.\n"
        "- destructive_augmentation, where no loss of evaluations is seen: one batch of 5000 values is "
        "enough, for zeros in four fifths more of the values or a spread four times as wide.\n"
        "- destructive_augmentation by the model (warning): it puts the zeros on itself in training mode. At "
        "three looks or more, four fifths more of what its first layer with weights is given are zeros than "
        "in evaluations, with no dropout in front of it. After `steps` steps the training's loss is above "
        "`high` of that of guessing.\n"
        "- destructive_augmentation by the model, not reported where it is no classification and the "
        "evaluation's loss is lower than the training's.",
    .why =
        "A model is judged on data that it never was prepared for: the evaluation says nothing of the "
        "training, and early stopping and the choice of a checkpoint go wrong with it.",
    .fix =
        "Use the same transform for both: fit mean and standard deviation on the training part and apply "
        "them to both; leave out of the evaluation only what is random. Inputs that drift: x = (x - mean) / "
        "std, which makes a new array, in place of x -= mean, which changes the data that the next epoch "
        "reads.",
    .healthy =
        "Augmentation; inputs that some samples of the training go without; parts of data that differ a "
        "little; noise that is added in training only; batches that are padded with more zeros in one part "
        "than in the other; numbers of tokens and categories, which are not looked at.",
    .cost =
        "One pass over the model's inputs at the first 10 steps and then at every 50th, of the training and "
        "of evaluations each.",
    .original = "",
    .source = "Islam et al., \"A comprehensive study on deep learning bug characteristics\", FSE 2019",
    .severity = model::Severity::kWarning,
    .parameters = {{"shift", "standard deviations", 0.7, 0.1, 100, "difference of the means"},
                   {"scale", "times", 1.8, 1.1, 1e6, "ratio of the standard deviations"},
                   {"noise", "times", 1.25, 1.01, 1e6, "ratio of them that random augmentation adds"},
                   {"high", "share", 0.6, 0.01, 10, "of the loss of guessing, at which little is learned"},
                   {"steps", "steps", 100, 20, 1e9, "steps that a training has to learn something"}},
};

class TrainValMismatch final : public Rule {
  public:
    explicit TrainValMismatch(const Parameters& parameters)
        : shift_(parameters.at("shift")),
          scale_(parameters.at("scale")),
          noise_(parameters.at("noise")),
          high_(parameters.at("high")),
          steps_(static_cast<std::uint64_t>(parameters.at("steps"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        const bool is_evaluation = step.mode() == model::Mode::kEval;
        if (!is_evaluation && step.mode() != model::Mode::kTrain) return;
        guessing_.observe(step);
        note_rows(step);
        if (!is_evaluation) look_inside(step, sink);
        const bool has_own = note_own(step);
        if (const auto again = loop_fact(step, "rows_unscored_again"))
            evaluated_again_ = std::max(evaluated_again_, again->value);
        if (const auto rows = loop_fact(step, "rows_unscored_of"))
            rows_evaluated_ = std::max(rows_evaluated_, rows->value);
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_first_loss(info) || !std::isfinite(sample.value)) continue;
            if (is_evaluation) {
                auto [place, _] = evaluation_loss_.try_emplace(sample.tensor, 20);
                place->second.add(sample.value);
            } else {
                auto [place, _] = training_loss_.try_emplace(sample.tensor, 20);
                place->second.add(sample.value);
            }
        }
        if (has_own || is_evaluation) judge_own(sink);
        if (loop_fact(step, "trainings")) channels_ = {};
        const bool has_channels = note_channels(step);
        if (has_channels || is_evaluation) judge_channels(sink);
        bool any = false;
        count_inputs(step);
        compare_pairs(step, is_evaluation);
        judge_pairs(step, sink);
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kInput || !is_float(info.dtype)) continue;
            if (sample.statistics.count < 2 || sample.statistics.not_finite() > 0) continue;
            Input& input = inputs_[sample.tensor];
            Side& side = is_evaluation ? input.evaluation : input.training;
            model::merge(side.all, sample.statistics);
            ++side.batches;
            if (is_evaluation && input.first_evaluated.count == 0) input.first_evaluated = sample.statistics;
            if (!is_evaluation && input.first.batches < kFirst) {
                model::merge(input.first.all, sample.statistics);
                ++input.first.batches;
                input.first_means.add(sample.statistics.mean);
                input.first_stds.add(sample.statistics.std);
            }
            if (!is_evaluation) {
                input.is_data = is_data(info, step);
                input.most_values = std::max(input.most_values, sample.statistics.count);
                input.values_of_row = values_of_row(info);
                input.means.add(sample.statistics.mean);
                input.stds.add(sample.statistics.std);
                input.zeros.add(share_of_zeros(sample.statistics));
                note_blank(input, info, sample.statistics.zero);
            }
            if (input.training.batches >= 5 && is_seen(input.evaluation)) any = true;
        }
        if (!any) return;
        ++judged_;
        for (auto& [id, input] : inputs_) judge(step, id, input, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no inputs of floating point were seen both in training and in evaluation; model.eval() marks "
               "one";
    }

  private:
    static constexpr std::size_t kOfVaryingNumber = 0;  // inputs
    static constexpr char kMark = '@';                  // before the number of a further batch of a step
    static constexpr double kAlike = 0.15;              // of the spread of the values that are not zero
    static constexpr double kSomeZeros = 0.01;          // of the values
    static constexpr double kMostIsGone = 0.8;
    static constexpr double kDrowned =
        4;  // times as wide as without the noise: of what varies a sixteenth is left
    static constexpr std::uint64_t kManyValues = 5000;
    static constexpr std::size_t kFewestLooks = 3;
    static constexpr std::size_t kFirst = 5;  // batches at either end of what drifts
    static constexpr std::uint64_t kFewestBatches = 15;
    static constexpr std::uint64_t kFewestValues = 64;  // of a batch that is evaluated
    static constexpr double kNearMean = 0.3, kNearStd = 1.3;
    static constexpr std::uint64_t kNoGrid = 4;    // values of a row
    static constexpr double kNextTo = 0.05;        // of the training's range
    static constexpr double kEven = 0.25;          // of the deviation of evenly spread values
    static constexpr double kWorse = 1.3;          // loss of the evaluation, of that of the training
    static constexpr double kFewestOwn = 2;        // columns: a single one of grey images is often made so
    static constexpr double kMostKnown = 0.1;      // rows of the training
    static constexpr double kAgain = 2;            // evaluations that were the same as the first one
    static constexpr double kClearlyBelow = 0.85;  // loss of the evaluation, of that of the training

    struct Side {
        model::Statistics all;
        std::uint64_t batches = 0;
    };
    struct Input {
        Side training, evaluation;
        Side first;                         // batches of the training
        model::Statistics first_evaluated;  // batch
        Recent first_means{kFirst}, first_stds{kFirst};
        Recent means{64}, stds{64}, zeros{64};             // of training batches
        std::uint64_t most_values = 0, values_of_row = 0;  // of training batches
        bool has_drifted = false;
        bool is_data = false;           // of the only model, and not computed by others that are trained
        bool is_blank_or_whole = true;  // each sample of them, as their zeros tell
        std::string firing;
    };

    // Of images: how far the first channel lies above the last one, and how far that is from the evaluation.
    struct ChannelOrder {
        double ours = 0, theirs = 0, apart = 0, exchanged = 0;
        int in_a_row = 0;  // evaluations in which they were exchanged
    };
    // Of two distances that are chance their squares are together above 9 in one case of ninety, and
    // never 40.
    static constexpr double kApart = 40, kTogether = 9, kTogetherOfApart = 0.1;
    static constexpr int kFewestExchanged = 2;
    static constexpr std::size_t kMostPaired = 4, kFewestPaired = 10;  // inputs; batches of the training
    static constexpr double kFewestPairedRows = 64;                    // of evaluations
    static constexpr double kTurned = 0.25;  // of how far the channels are apart in evaluation
    static constexpr double kHighOfColours = 2.0 / 3;
    static constexpr std::string_view kFirstInput = "input/0";  // whose channels are looked at

    // What the first layer with weights is given: shares of zeros.
    struct Inside {
        std::string layer;
        Recent ours{16};  // of training steps
        double theirs = 0;
    };

    // With an evaluation's batch, or after an evaluation of which no loss was seen.
    void note_rows(const model::StepView& step) {
        const auto known = loop_fact(step, "rows_known"), looked = loop_fact(step, "rows_looked_at");
        const auto pairs = loop_fact(step, "rows_pairs"), alike = loop_fact(step, "rows_alike");
        if (!known || !looked) return;
        // Of 500 rows hardly any came again: they are augmented, or there are very many of them. Those that
        // are alike within a batch, as where nothing of a row is left, are one row that comes often.
        const double wiped_out =
            pairs && alike && pairs->value > 0 ? std::sqrt(alike->value / pairs->value) : 0;
        are_others_ = looked->value >= 500 && known->value > (0.95 - wiped_out) * looked->value &&
                      known->value > 0.5 * looked->value;
    }
    // Of evaluations that were standardised by their own mean and spread.
    struct Own {
        double columns = 0, of = 0, values = 0;
        model::StepIndex step = 0;
    };
    // Whether something was told.
    bool note_own(const model::StepView& step) {
        const auto columns = loop_fact(step, "own_columns"), of = loop_fact(step, "own_columns_of"),
                   values = loop_fact(step, "own_columns_values");
        if (columns && of && values && columns->value > own_.columns)
            own_ = {columns->value, of->value, values->value, step.step()};
        constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kRows = {
            {{"rows_evaluated", "rows_evaluated_trained"}, {"rows_unscored", "rows_unscored_trained"}}};
        for (const auto& [rows, those_trained] : kRows) {
            const auto all = loop_fact(step, rows), trained = loop_fact(step, those_trained);
            if (!all || !trained || !(all->value > 0)) continue;
            // Of two sets that are evaluated in turn it is not known which one is standardised.
            is_own_data_evaluated_ = is_own_data_evaluated_ || trained->value > kMostKnown * all->value;
        }
        return columns.has_value();
    }
    // Whether something was told.
    bool note_channels(const model::StepView& step) {
        const auto ours = loop_fact(step, "channels_difference"),
                   theirs = loop_fact(step, "channels_difference_evaluated");
        const auto apart = loop_fact(step, "channels_apart"),
                   exchanged = loop_fact(step, "channels_apart_exchanged");
        if (!ours || !theirs || !apart || !exchanged) return false;
        const bool is = apart->value > kApart && exchanged->value < kTogether &&
                        exchanged->value < kTogetherOfApart * apart->value;
        channels_ = {.ours = ours->value,
                     .theirs = theirs->value,
                     .apart = apart->value,
                     .exchanged = exchanged->value,
                     .in_a_row = is ? channels_.in_a_row + 1 : 0};
        return true;
    }
    void judge_channels(FindingSink& sink) {
        constexpr const char* kKey = "channels";
        const std::optional<double> ratio = loss_ratio();
        if (channels_.in_a_row < kFewestExchanged || !ratio || *ratio <= kWorse) {
            if (std::exchange(is_firing_channels_, false)) sink.clear(kKey);
            return;
        }
        ++judged_;
        model::Finding finding;
        finding.key = kKey;
        finding.mode = model::Mode::kEval;
        finding.severity = model::Severity::kWarning;
        finding.tensor = "input/0";
        finding.message = base::format(
            "The channels of the images that are evaluated come the other way round than in training, as "
            "with BGR and RGB: the mean of the first less that of the last is {} in training and {} in "
            "evaluation. With the first and the last exchanged, all that was compared is alike. The "
            "evaluation's loss is {:.3g} times that of the training.",
            human_number(channels_.ours), human_number(channels_.theirs), *ratio);
        finding.fix =
            "Read the images of both in one way, by one function: OpenCV gives BGR (image[..., ::-1] or "
            "cv2.cvtColor), Pillow and torchvision RGB.";
        finding.evidence.push_back({"squared distance, in standard errors", channels_.apart,
                                    "with channels exchanged", channels_.exchanged});
        finding.evidence.push_back({"evaluation loss, as a multiple", *ratio, "limit", kWorse});
        sink.fire(std::move(finding));
        is_firing_channels_ = true;
    }
    // Two inputs of one shape, by the numbers of their tensors: how far the first one's mean and standard
    // deviation lie above those of the second, in the same batch.
    struct Pair {
        Recent means{64}, stds{64}, rows{64};  // of training batches
        double evaluated_mean = 0, evaluated_std = 0;
        double evaluated_rows = 0, evaluated_batches = 0;
        bool is_firing = false;
    };

    void compare_pairs(const model::StepView& step, bool is_evaluation) {
        std::vector<const model::TensorSample*> given;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kInput || !is_float(info.dtype) || info.shape.size() < 2) continue;
            if (info.name.find(kMark) != std::string::npos || given.size() >= kMostPaired) continue;
            if (sample.statistics.count >= 2 && sample.statistics.not_finite() == 0) given.push_back(&sample);
        }
        for (std::size_t i = 0; i < given.size(); ++i)
            for (std::size_t j = i + 1; j < given.size(); ++j) {
                const std::vector<std::int64_t>& shape = step.info(given[i]->tensor).shape;
                const model::Statistics &one = given[i]->statistics, &other = given[j]->statistics;
                if (shape != step.info(given[j]->tensor).shape || one.count != other.count) continue;
                const double values = static_cast<double>(values_of_row(step.info(given[i]->tensor)));
                const double rows = static_cast<double>(one.count) / std::max(values, 1.0);
                Pair& pair = pairs_[{given[i]->tensor, given[j]->tensor}];
                if (is_evaluation) {
                    pair.evaluated_mean += rows * (one.mean - other.mean);
                    pair.evaluated_std += rows * (one.std - other.std);
                    pair.evaluated_rows += rows;
                    ++pair.evaluated_batches;
                } else {
                    pair.means.add(one.mean - other.mean);
                    pair.stds.add(one.std - other.std);
                    pair.rows.add(rows);
                }
            }
    }
    void judge_pairs(const model::StepView& step, FindingSink& sink) {
        for (auto& entry : pairs_) {
            const auto& ids = entry.first;
            auto& pair = entry.second;
            if (pair.means.values().size() < kFewestPaired || pair.evaluated_rows < kFewestPairedRows)
                continue;
            if (pair.evaluated_batches < 2 && evaluated_again_ < kAgain) continue;
            ++judged_;
            const std::string &first = step.info(ids.first).name, &second = step.info(ids.second).name;
            const std::string key = base::format("exchanged {} {}", first, second);
            double apart = 0, exchanged = 0;
            const auto batches = static_cast<double>(pair.means.values().size());
            const auto add = [&](const Recent& ours, double theirs) {
                const double level = mean_of(ours.values());
                // Of so many rows as were evaluated, and of the mean of all batches.
                const double share = mean_of(pair.rows.values()) / pair.evaluated_rows + 1 / batches;
                const double error = spread(ours.values()) * std::sqrt(share);
                if (!(error > 0)) return;
                apart += std::pow((theirs - level) / error, 2);
                exchanged += std::pow((theirs + level) / error, 2);
            };
            add(pair.means, pair.evaluated_mean / pair.evaluated_rows);
            add(pair.stds, pair.evaluated_std / pair.evaluated_rows);
            const bool is = apart > kApart && exchanged < kTogether && exchanged < kTogetherOfApart * apart &&
                            is_one_input(first) && is_one_input(second);
            if (!is) {
                if (std::exchange(pair.is_firing, false)) sink.clear(key);
                continue;
            }
            pair.is_firing = true;
            const std::optional<double> ratio = loss_ratio();
            model::Finding finding;
            finding.key = key;
            finding.mode = model::Mode::kEval;
            finding.severity = !ratio || *ratio > kWorse ? model::Severity::kWarning : model::Severity::kInfo;
            finding.tensor = first;
            finding.message = base::format(
                "{} and {} are exchanged in evaluation: the mean of the first less that of the second is {} "
                "in training and {} in evaluation, and of their standard deviations it is {} and {}. With "
                "the two the other way round, all that was compared is alike.",
                first, second, human_number(mean_of(pair.means.values())),
                human_number(pair.evaluated_mean / pair.evaluated_rows),
                human_number(mean_of(pair.stds.values())),
                human_number(pair.evaluated_std / pair.evaluated_rows));
            if (ratio)
                finding.message +=
                    base::format(" The evaluation's loss is {:.3g} times that of the training.", *ratio);
            finding.fix =
                "Call the model in one way in training and evaluation: by the names of its arguments, as in "
                "model(before=batch[\"before\"], after=batch[\"after\"]), not by the order of a dictionary.";
            finding.evidence.push_back(
                {"squared distance, in standard errors", apart, "with inputs exchanged", exchanged});
            finding.plots = {{first, "mean"}, {second, "mean"}};
            sink.fire(std::move(finding));
        }
    }
    static double mean_of(std::span<const double> values) {
        double sum = 0;
        for (const double value : values) sum += value;
        return sum / static_cast<double>(values.size());
    }
    void judge_own(FindingSink& sink) {
        constexpr const char* kKey = "own statistics";
        if (own_.columns < kFewestOwn) return;
        ++judged_;
        if (is_own_data_evaluated_) {
            if (std::exchange(is_firing_own_, false)) sink.clear(kKey);
            return;
        }
        const std::optional<double> ratio = loss_ratio();
        model::Finding finding;
        finding.key = kKey;
        finding.severity = ratio && *ratio > kWorse ? model::Severity::kWarning : model::Severity::kInfo;
        finding.first_step = own_.step;
        finding.tensor = "input/0";
        finding.message = base::format(
            "What is evaluated was standardised by itself: of its {:.0f} columns, each with {:.0f} values, "
            "{:.0f} have a mean of 0 and a standard deviation of 1 to the last digits, which no part of the "
            "data has that the scaler was not fitted to.",
            own_.of, own_.values, own_.columns);
        if (ratio)
            finding.message +=
                base::format(" The evaluation's loss is {:.3g} times that of the training.", *ratio);
        finding.fix =
            "Fit mean and standard deviation to the training part alone and apply them to every other one: "
            "scaler.transform(x_val), not fit_transform.";
        finding.evidence.push_back({"standardised columns", own_.columns, "columns", own_.of});
        if (ratio) finding.evidence.push_back({"evaluation loss, as a multiple", *ratio, "limit", kWorse});
        sink.fire(std::move(finding));
        is_firing_own_ = true;
    }
    // What a model does to its inputs in training mode alone is not seen of them.
    void look_inside(const model::StepView& step, FindingSink& sink) {
        const auto ours = loop_fact(step, "given_zeros");
        const auto theirs = loop_fact(step, "given_zeros_in_evaluation");
        if (!ours || !theirs) return;
        if (ours->place != inside_.layer) inside_ = {.layer = std::string(ours->place)};
        inside_.ours.add(ours->value);
        inside_.theirs = theirs->value;
        ++judged_;
        const bool on = is_destroyed_inside();
        if (on) fire_inside(sink);
        else if (is_firing_inside_) sink.clear("augmentation inside");
        is_firing_inside_ = on;
    }
    [[nodiscard]] bool is_destroyed_inside() const {
        const auto zeros = inside_.ours.values();
        if (zeros.size() < kFewestLooks || guessing_.loss().count() < steps_) return false;
        if (median({zeros.begin(), zeros.end()}) - inside_.theirs < kMostIsGone) return false;
        const std::optional<double> share = guessing_.share();
        if (!share || *share < high_ || guessing_.loss().is_game()) return false;
        // What is to be put back, as by an auto-encoder of masked inputs, is learned all the same.
        const std::optional<double> ratio = loss_ratio();
        return guessing_.loss().classes() > 1 || !ratio || *ratio > 1;
    }
    void fire_inside(FindingSink& sink) const {
        const auto zeros = inside_.ours.values();
        const double ours = median({zeros.begin(), zeros.end()});
        model::Finding finding;
        finding.key = "augmentation inside";
        finding.kind = "destructive_augmentation";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = "input/0";
        finding.message = base::format(
            "In training {:.0f} % of what {} is given is zero, in evaluation {:.0f} %, of the same kind of "
            "inputs: something in the model in front of it takes the rest away, in training mode only. After "
            "{} steps the training's loss is {:.0f} % of that of guessing.",
            100 * ours, inside_.layer, 100 * inside_.theirs, guessing_.loss().count(),
            100 * guessing_.share().value_or(1));
        finding.fix =
            "Weaken the augmentation in the model: masks and erased parts that leave most of a sample; their "
            "widths are numbers of bands, frames or pixels, to be chosen for inputs of this size. Look at a "
            "dozen augmented samples: a person must be able to label them.";
        finding.evidence.push_back({"share of zeros in training", ours, "in evaluation", inside_.theirs});
        finding.evidence.push_back(
            {"share of the loss of guessing", guessing_.share().value_or(1), "limit", high_});
        finding.plots = {{base::format("loop/given_zeros/{}", inside_.layer), "value"}};
        sink.fire(std::move(finding));
    }
    // "input/0" is, "input/head.0" need not be.
    [[nodiscard]] bool is_data(const model::TensorInfo& info, const model::StepView& step) {
        for (const LoopFact& fact : loop_facts(step, "input_is_computed"))
            computed_.insert("input/" + std::string(fact.place));
        const std::string_view number = std::string_view(info.name).substr(info.name.find('/') + 1);
        return number.find_first_not_of("0123456789") == std::string_view::npos &&
               !computed_.contains(info.name);
    }
    // Whose input it is: a name without its number, of the model or of a part that stands in for it.
    static std::string_view owner_of(std::string_view name) {
        return name.substr(0, name.find_last_not_of("0123456789") + 1);
    }
    // How many inputs each model was given by a pass. They have numbers, which go through lists.
    void count_inputs(const model::StepView& step) {
        std::map<std::string_view, std::size_t> given;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const std::string_view name = info.name;
            if (info.role == model::Role::kInput && name.find(kMark) == std::string_view::npos)
                ++given[owner_of(name)];
        }
        for (const auto& [owner, count] : given) {
            const auto known = given_.find(owner);
            if (known == given_.end()) given_.emplace(owner, count);
            else if (known->second != count) known->second = kOfVaryingNumber;
        }
    }
    // Whether a number stands for one input of the model, in training and evaluation: the first one does.
    [[nodiscard]] bool is_one_input(std::string_view name) const {
        name = name.substr(0, name.find(kMark));
        const std::string_view owner = owner_of(name);
        const auto known = given_.find(owner);
        return name.substr(owner.size()) == "0" || known == given_.end() || known->second != kOfVaryingNumber;
    }
    static std::uint64_t values_of_row(const model::TensorInfo& info) {
        std::uint64_t values = 1;
        for (std::size_t i = 1; i < info.shape.size(); ++i)
            values *= static_cast<std::uint64_t>(info.shape[i]);
        return values;
    }
    // Zeros of every batch are just those of so many samples.
    static void note_blank(Input& input, const model::TensorInfo& info, std::uint64_t zeros) {
        const std::uint64_t values = values_of_row(info);
        if (values < 2 || zeros % values != 0) input.is_blank_or_whole = false;
    }
    // Of evaluations without a loss one batch is looked at: enough for what is no matter of a few values.
    static bool is_seen(const Side& evaluation) {
        return evaluation.batches >= 2 || evaluation.all.count >= kManyValues;
    }
    // The same rows are evaluated at intervals, which are no grid of coordinates, no noise that is drawn anew
    // and nothing that the model makes, step by step, of noise that was kept. What is narrower in evaluation
    // may lack no more than the noise that training adds, and what is wider the masks.
    [[nodiscard]] bool is_validation(const Input& input) const {
        const model::Statistics& ours = input.training.all;
        const model::Statistics& theirs = input.evaluation.all;
        const bool is_large = theirs.count >= kManyValues && theirs.count >= input.most_values;
        const bool is_narrower =
            theirs.std < ours.std && std::abs(theirs.mean - ours.mean) <= shift_ * theirs.std;
        const bool is_unmasked =
            share_of_zeros(theirs) < share_of_zeros(ours) && are_alike_but_for_zeros(ours, theirs);
        // Samples in the order of their classes begin with some of these alone, of which the training has
        // more: their values are none that it never had.
        const double values = rows_evaluated_ * static_cast<double>(input.values_of_row);
        const bool is_half = static_cast<double>(theirs.count) >= 0.5 * values;
        const bool is_beyond = theirs.max - theirs.min > scale_ * (ours.max - ours.min);
        return is_large && input.values_of_row >= kNoGrid && evaluated_again_ >= kAgain && !is_narrower &&
               !is_unmasked && (is_half || is_beyond);
    }
    static bool is_float(tensor::DType dtype) {
        using tensor::DType;
        return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
               dtype == DType::kFloat64;
    }
    static double share_of_zeros(const model::Statistics& values) {
        return static_cast<double>(values.zero) / static_cast<double>(values.count);
    }
    // What padding leaves as it is.
    struct NotZero {
        double mean = 0, std = 0;
    };
    static NotZero not_zero(const model::Statistics& values) {
        const auto count = static_cast<double>(values.count);
        const double rest = count - static_cast<double>(values.zero);
        if (!(rest > 0)) return {};
        const double mean = values.mean * count / rest;
        const double square = (values.std * values.std + values.mean * values.mean) * count / rest;
        return {mean, std::sqrt(std::max(0.0, square - mean * mean))};
    }
    // Both have zeros, one of them more, and the other values are alike. Zeros that one of them alone has, or
    // next to alone, are values that a model never met.
    static bool is_padding(const Input& input) {
        const model::Statistics& ours = input.training.all;
        const model::Statistics& theirs = input.evaluation.all;
        return std::min(share_of_zeros(ours), share_of_zeros(theirs)) >= kSomeZeros &&
               are_alike_but_for_zeros(ours, theirs);
    }
    static bool are_alike_but_for_zeros(const model::Statistics& ours, const model::Statistics& theirs) {
        const NotZero a = not_zero(ours), b = not_zero(theirs);
        return a.std > 0 && std::abs(a.mean - b.mean) <= kAlike * a.std &&
               std::abs(a.std - b.std) <= kAlike * a.std;
    }
    // The training began with inputs like those of the first evaluation and has others by now, batch by
    // batch: something works on its own result each time that the data is read. So it may for the evaluation.
    [[nodiscard]] bool has_drifted(const Input& input) const {
        const model::Statistics& first = input.first.all;
        if (!input.is_data) return false;
        const model::Statistics& theirs = input.first_evaluated;
        if (input.training.batches < kFewestBatches || theirs.count < kFewestValues || !(first.std > 0) ||
            !(theirs.std > 0))
            return false;
        if (std::abs(theirs.mean - first.mean) > kNearMean * first.std ||
            std::max(theirs.std / first.std, first.std / theirs.std) > kNearStd)
            return false;
        const double mean_noise =
            std::max({spread(input.first_means.values()), jumps(input.means), 1e-6 * first.std});
        const double std_noise =
            std::max({spread(input.first_stds.values()), jumps(input.stds), 1e-6 * first.std});
        const auto means = input.means.last(kFirst), stds = input.stds.last(kFirst);
        // One batch that comes again, as in the steps of a task, is one.
        for (std::size_t i = 1; i < means.size(); ++i)
            if (means[i] == means[i - 1] && stds[i] == stds[i - 1]) return input.has_drifted;
        const auto all = [&](std::span<const double> values, auto&& is_off) {
            return std::all_of(values.begin(), values.end(), is_off);
        };
        const double low = std::min(1 / scale_ * first.std, first.std - 6 * std_noise);
        const double high = std::max(scale_ * first.std, first.std + 6 * std_noise);
        const double apart = std::max(shift_ * first.std, 6 * mean_noise);
        return all(means, [&](double mean) { return mean > first.mean + apart; }) ||
               all(means, [&](double mean) { return mean < first.mean - apart; }) ||
               all(stds, [&](double std) { return std > high; }) ||
               all(stds, [&](double std) { return std < low; });
    }
    // A number by which data are split, the time of a forecast: it goes up evenly, and on in the evaluation.
    static bool goes_on(const Input& input) {
        const model::Statistics& ours = input.training.all;
        const model::Statistics& theirs = input.evaluation.all;
        const double range = ours.max - ours.min;
        const double even = range / std::sqrt(12.0);  // standard deviation
        const double gap = std::max(theirs.min - ours.max, ours.min - theirs.max);
        return input.values_of_row == 1 && gap >= 0 && gap <= kNextTo * range && theirs.std < ours.std &&
               std::abs(ours.std - even) <= kEven * even;
    }
    // In training the first channel is above the last one as often as below, in evaluation it is not.
    [[nodiscard]] bool are_colours_turned() const {
        return std::abs(channels_.ours) < kTurned * std::abs(channels_.theirs) && channels_.apart > kApart &&
               channels_.exchanged > kApart;
    }
    // What is random in the training's inputs is more than what they say.
    [[nodiscard]] bool is_destroyed(const Input& input, bool are_images) const {
        const model::Statistics& ours = input.training.all;
        const model::Statistics& theirs = input.evaluation.all;
        if (!are_others_ || guessing_.loss().count() < steps_ || guessing_.loss().is_game()) return false;
        const std::optional<double> share = guessing_.share();
        const bool is_turned = are_images && are_colours_turned();
        const double high = is_turned ? kHighOfColours * high_ : high_;
        if (!share || *share < high || !(theirs.std > 0)) return false;
        const double more_zeros = share_of_zeros(ours) - share_of_zeros(theirs);
        // What is learned of them serves the evaluation; where next to nothing is left of them, it is slow.
        const std::optional<double> ratio = loss_ratio();
        const bool serves = ratio && (*ratio < kClearlyBelow || *ratio * *share < high);
        // Samples that come without this input leave the others as they are.
        const bool are_others_whole = input.is_blank_or_whole && spread(input.zeros.values()) > 0;
        if ((serves || are_others_whole) && more_zeros < kMostIsGone) return false;
        if (is_turned) return true;
        const bool is_one_batch = input.evaluation.batches < 2;
        if (is_one_batch && more_zeros < kMostIsGone && ours.std < kDrowned * theirs.std) return false;
        const bool is_wider =
            ours.std > noise_ * theirs.std &&
            ours.std - theirs.std > 6 * std::max(spread(input.stds.values()), 1e-6 * ours.std);
        return is_wider || (more_zeros > 0.2 && more_zeros > 6 * spread(input.zeros.values()));
    }
    static double spread(std::span<const double> values) {
        double mean = 0, squares = 0;
        for (const double value : values) mean += value / static_cast<double>(values.size());
        for (const double value : values) squares += (value - mean) * (value - mean);
        return std::sqrt(squares / static_cast<double>(values.size() - 1));
    }

    // The standard deviation of values that were independent of each other, by how they change where they do:
    // the batches of some steps may be of one task, and those that follow of another.
    static double jumps(const Recent& recent) {
        const std::span<const double> values = recent.values();
        double squares = 0, changes = 0;
        for (std::size_t at = 1; at < values.size(); ++at) {
            const double change = values[at] - values[at - 1];
            squares += change * change;
            changes += change != 0 ? 1 : 0;
        }
        return changes > 0 ? std::sqrt(squares / changes / 2) : 0;
    }

    static double middle(const Recent& values) {
        const auto last = values.last(kFirst);
        return median({last.begin(), last.end()});
    }

    // The loss of the evaluation as a multiple of the training's, of the function that both have.
    [[nodiscard]] std::optional<double> loss_ratio() const {
        for (const auto& [id, values] : evaluation_loss_) {
            const auto training = training_loss_.find(id);
            if (training == training_loss_.end()) continue;
            const auto ours = training->second.last(10);
            const auto theirs = values.last(10);
            const double level = median({ours.begin(), ours.end()});
            if (level > 0) return median({theirs.begin(), theirs.end()}) / level;
        }
        return std::nullopt;
    }

    void judge(const model::StepView& step, model::TensorId id, Input& input, FindingSink& sink) const {
        if (input.training.batches < kFirst || !is_seen(input.evaluation)) return;
        const model::Statistics& ours = input.training.all;
        const model::Statistics& theirs = input.evaluation.all;
        if (!(ours.std > 0)) return;
        const double moved = std::abs(theirs.mean - ours.mean);
        const double times =
            theirs.std > 0 ? std::max(theirs.std / ours.std, ours.std / theirs.std) : INFINITY;
        const double mean_noise = std::max(spread(input.means.values()), 1e-6 * ours.std);
        const double std_noise = std::max(spread(input.stds.values()), 1e-6 * ours.std);
        const bool is_moved = moved > shift_ * ours.std && moved > 6 * mean_noise;
        const bool is_scaled = times > scale_ && std::abs(theirs.std - ours.std) > 6 * std_noise;
        const std::optional<double> ratio = loss_ratio();
        const bool is_one = is_one_input(step.info(id).name);
        const bool are_images = step.info(id).name == kFirstInput;
        const bool is_random = is_destroyed(input, are_images);
        const bool differ = (is_moved || is_scaled) && !is_padding(input) &&
                            (input.evaluation.batches >= 2 || is_validation(input));
        const bool is_of_training = step.mode() == model::Mode::kTrain;
        if (is_of_training) input.has_drifted = has_drifted(input);
        const bool is_drift = input.has_drifted;
        const char* key = !is_one                                          ? ""
                          : is_drift                                       ? "drift"
                          : is_random                                      ? "augmentation"
                          : !differ                                        ? ""
                          : (!ratio || *ratio > kWorse) && !goes_on(input) ? "inputs"
                                                                           : "inputs_harmless";
        const std::string wanted = *key == '\0' ? "" : base::format("{} {}", key, id);
        if (!input.firing.empty() && input.firing != wanted) sink.clear(input.firing);
        input.firing = wanted;
        if (wanted.empty() || (is_drift && !is_of_training)) return;

        const std::string& name = step.info(id).name;
        model::Finding finding;
        finding.key = wanted;
        finding.mode = is_drift ? model::Mode::kTrain : model::Mode::kEval;
        finding.severity =
            std::string_view(key) == "inputs_harmless" ? model::Severity::kInfo : model::Severity::kWarning;
        finding.tensor = name;
        finding.message = base::format(
            "{} has mean {} and standard deviation {} in training, {} and {} in evaluation (from {} to {}, "
            "and from {} to {}).",
            name, human_number(ours.mean), human_number(ours.std), human_number(theirs.mean),
            human_number(theirs.std), human_number(ours.min), human_number(ours.max),
            human_number(theirs.min), human_number(theirs.max));
        if (is_drift) {
            const model::Statistics& first = input.first.all;
            const model::Statistics& evaluated = input.first_evaluated;
            finding.message = base::format(
                "The training's {} has drifted away: mean {} and standard deviation {} in its first {} "
                "batches, about as in the first evaluation ({} and {}), and {} and {} in the last {} that "
                "were looked at, up to step {}.",
                name, human_number(first.mean), human_number(first.std), kFirst, human_number(evaluated.mean),
                human_number(evaluated.std), human_number(middle(input.means)),
                human_number(middle(input.stds)), kFirst, step.step());
        } else if (is_random) {
            finding.kind = "destructive_augmentation";
            if (are_images && are_colours_turned())
                finding.message += base::format(
                    " The mean of the first channel less that of the last is {} in evaluation and {} in "
                    "training, where colours are turned one way and another.",
                    human_number(channels_.theirs), human_number(channels_.ours));
            finding.message += base::format(
                " The training's rows are other ones each time, and after {} steps its loss is {:.0f} % of "
                "that of guessing: the augmentation leaves too little of what is to be learned.",
                guessing_.loss().count(), 100 * guessing_.share().value_or(1));
            finding.evidence.push_back(
                {"share of the loss of guessing", guessing_.share().value_or(1), "limit", high_});
        } else if (ratio)
            finding.message +=
                base::format(" The evaluation's loss is {:.3g} times that of the training.", *ratio);
        finding.fix =
            "Prepare both alike: the same transform, with mean and standard deviation of the training part; "
            "leave out of the evaluation only what is random.";
        if (is_drift)
            finding.fix =
                "Look for what changes the data in place where it is read or prepared: x -= mean, x /= std, "
                "sub_(), div_(), out=..., of an array or tensor that the data set keeps (a slice, .numpy() "
                "and torch.from_numpy are no copies). Write x = (x - mean) / std.";
        if (is_random && !is_drift)
            finding.fix =
                "Weaken the augmentation: noise well below the spread of the inputs, crops and erased parts "
                "that leave most of a sample, flips and scales under which the label still holds. Look at a "
                "dozen augmented samples: a person must be able to label them.";
        if (is_random && !is_drift && are_images && are_colours_turned())
            finding.fix =
                "Weaken the augmentation of colours: 0.5 turns the hue (ColorJitter, adjust_hue) all round, "
                "and 0.02 to 0.1 are usual; channels in any order do likewise. Look at a dozen augmented "
                "samples: a person must be able to label them.";
        finding.evidence.push_back({"mean in evaluation", theirs.mean, "in training", ours.mean});
        finding.evidence.push_back({"standard deviation in evaluation", theirs.std, "in training", ours.std});
        finding.evidence.push_back({"means of training batches differ by", mean_noise, "", 0});
        finding.plots = {{name, "mean"}, {name, "std"}};
        sink.fire(std::move(finding));
    }

    double shift_, scale_, noise_, high_;
    std::uint64_t steps_;
    std::uint64_t judged_ = 0;
    bool is_firing_inside_ = false, is_firing_own_ = false, is_firing_channels_ = false;
    bool is_own_data_evaluated_ = false;  // that of the training
    Own own_;
    ChannelOrder channels_;
    Inside inside_;
    double evaluated_again_ = 0, rows_evaluated_ = 0;        // rows of the largest evaluation without a loss
    bool are_others_ = false;                                // the training's rows, each time
    std::set<std::string> computed_;                         // inputs, of what is trained
    std::map<std::string, std::size_t, std::less<>> given_;  // inputs of each pass, by whose they are
    Guessing guessing_;
    std::map<model::TensorId, Input> inputs_;
    std::map<std::pair<model::TensorId, model::TensorId>, Pair> pairs_;
    std::map<model::TensorId, Recent> training_loss_, evaluation_loss_;
};

std::vector<model::Requirement> train_val_mismatch_needs(const Parameters&) {
    using enum model::Mode;
    constexpr auto kStatistics = model::What::kStatistics;
    std::vector<model::Requirement> all = {
        {"losses", kTrain, kStatistics, {.every = 1}, kTrainValMismatch.name},
        {"losses", kEval, kStatistics, {.every = 1}, kTrainValMismatch.name},
        {"inputs", kTrain, kStatistics, {.every = 50, .dense_until = 10}, kTrainValMismatch.name},
        {"inputs", kEval, kStatistics, {.every = 50, .dense_until = 10}, kTrainValMismatch.name}};
    for (model::Requirement& more : loss_requirements(kTrainValMismatch.name)) all.push_back(std::move(more));
    for (model::Requirement& more : argument_requirements(kTrainValMismatch.name))
        all.push_back(std::move(more));
    for (model::Requirement& more : row_requirements(kTrainValMismatch.name)) all.push_back(std::move(more));
    return all;
}

}  // namespace

RuleEntry builtin::train_val_mismatch() {
    return {&kTrainValMismatch, &train_val_mismatch_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<TrainValMismatch>(p);
            }};
}

}  // namespace traindbg::rules
