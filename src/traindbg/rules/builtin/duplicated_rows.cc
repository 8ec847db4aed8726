// Rows of the training data that are there several times.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/neighbours.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kDuplicatedRows = {
    .name = "duplicated_rows",
    .title = "Rows that are there several times",
    .summary =
        "Rows of the training data come several times in one pass over it, and with other labels each time.",
    .when =
        "A DataLoader draws each row once in a pass, but many rows are copies of rows that came earlier in "
        "the same pass. A note, or a warning where the copies do harm.\n"
        "- Copies: the DataLoader shuffles without replacement or keeps the order. Of the rows looked at "
        "in one pass, at least `rows`, and about `share` of all in the data, equal earlier rows bit for "
        "bit, in all inputs of the model.\n"
        "- Note only (info): copies may be meant.\n"
        "- Warnings need inputs of floating point.\n"
        "- Contradicting labels (warning): in a classification, `labelled` or more of the copies have a "
        "label. The share that has another class than before is at least `contradicting` of what it would "
        "be if classes were dealt out at random. Not with a binary cross-entropy: its labels may say what "
        "came of several trials of one thing.\n"
        "- Few rows dominate a regression (warning): all losses are of a regression, called as functions or "
        "written out, `uneven` or more of the rows came before, and one came twenty times or more.\n"
        "- The different rows must also have no more weight together than a quarter as many would have "
        "that come equally often.\n"
        "- Few rows dominate a classification (warning): the same, with rows weighed within each class and "
        "added up. `labelled` or more of the rows that came before must have a label, and with a binary "
        "cross-entropy all of these the same one as before.\n"
        "- Whole data repeated (warning): all rows come equally often, three times or more with equal "
        "labels, or eight times or more where they have no classes or two of a binary cross-entropy. No "
        "ConcatDataset has one data set several times.\n"
        "- Each part with all of those before (a note, too, as copies may be weights): in a regression, rows "
        "come once to five times or "
        "more, and of each number of times there are about as many. In a whole pass, the mean is within 10 % "
        "of that, and the weight of the different rows together within 5 %.\n"
        "- For that, rows must be copies as a whole: of the first few hundred rows of the training, 20 pairs "
        "or more are equal, and 99 % of these have the same label.\n"
        "- Alike by nature, not judged: rows of which one half alone comes again more than a tenth as "
        "often as the whole row.\n"
        "- Also not judged: rows of hardly more than one value, a batch that is given once more, and steps "
        "in which the model is called several times.",
    .why =
        "Each copy is one more weight on its row: the loss says how well the copied rows are known. With "
        "other labels for equal inputs there is nothing to learn: a join that multiplied rows, a default "
        "that stands for what could not be read, an index that is not used. Copies that are split afterwards "
        "leak into the evaluation.",
    .fix =
        "Look at the rows that are named: drop_duplicates() where copies are not meant; raise where a file "
        "cannot be read instead of returning another; join by a key that is unique (validate=\"one_to_one\" "
        "in pandas); of exports that each hold all earlier rows, read the last one.",
    .healthy =
        "Sampling with replacement or by weights; augmentation, which makes each copy another row; rows of "
        "few values that are equal by nature; rows that are copied on purpose to balance classes or to make "
        "a pass longer, which is a note.",
    .cost =
        "At the first 100 steps and then at every 50th, where the data comes from a DataLoader: fingerprints "
        "of up to 64 rows, as for train_val_overlap. At most 16,384 rows of one pass are remembered.",
    .original = "",
    .source =
        "Lee et al., \"Deduplicating training data makes language models better\", ACL 2022; Barz, Denzler, "
        "\"Do we train on test data? Purging CIFAR of near-duplicates\", J. Imaging 2020",
    .severity = model::Severity::kWarning,
    .parameters = {{"share", "share", 0.05, 0.001, 1, "of the rows of a pass that came before in it"},
                   {"rows", "rows", 20, 2, 1e6, "that came before, of those that were looked at"},
                   {"labelled", "rows", 30, 2, 1e6, "that came before and have a label, to be judged by it"},
                   {"contradicting", "share", 0.6, 0.1, 1,
                    "of the contradictions that there would be by chance"},
                   {"uneven", "share", 0.4, 0.1, 1,
                    "of rows that came before, where few rows have most of them"}},
};

class DuplicatedRows final : public Rule {
  public:
    explicit DuplicatedRows(const Parameters& parameters)
        : share_(parameters.at("share")),
          rows_(parameters.at("rows")),
          labelled_(parameters.at("labelled")),
          contradicting_(parameters.at("contradicting")),
          uneven_(parameters.at("uneven")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        look_at_input(step);
        if (const auto same = loop_fact(step, "neighbours_same")) same_ = same->value;
        if (const auto same = loop_fact(step, "neighbours_same_labels")) same_labels_ = same->value;
        // A squared or absolute error that the loop writes out calls no loss function.
        if (const auto written = loop_fact(step, "loss_is_written_out"); written && written->value != 0)
            is_regression_ = true;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const std::string_view function = function_of_loss(step.info(sample.tensor).name);
            if (function.empty()) continue;
            (is_regression(function) ? is_regression_ : is_other_) = true;
            if (function.starts_with("binary_cross_entropy")) is_of_two_ = true;
        }
        const auto looked = loop_fact(step, "pass_rows");
        const auto of = loop_fact(step, "pass_rows_of");
        const auto again = loop_fact(step, "pass_rows_again");
        if (!looked || !of || !again || looked->value < 1) return;
        ++judged_;
        const double half = number(step, "pass_rows_half_again");
        // Of a part of the rows only that part of the copies is seen.
        const double part = of->value > looked->value ? looked->value / of->value : 1;
        const double share = std::min(1.0, again->value / looked->value / part);
        const bool are_copies = again->value >= rows_ && share >= share_ && half <= 0.1 * again->value;
        std::string key;
        if (are_copies)
            key = contradict(step)                                ? "contradicting"
                  : is_uneven(step, again->value / looked->value) ? "uneven"
                  : is_whole(step, looked->value, of->value)      ? "whole"
                  : is_cumulative(step, looked->value, of->value) ? "cumulative"
                                                                  : "copies";
        if (key != firing_ && !firing_.empty()) sink.clear(firing_);
        firing_ = key;
        if (!key.empty()) fire(step, looked->value, of->value, again->value, share, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no DataLoader was seen that draws each row once, into one model that is called once in a "
               "step";
    }

  private:
    static double number(const model::StepView& step, std::string_view fact) {
        const auto found = loop_fact(step, fact);
        return found ? found->value : 0;
    }

    void look_at_input(const model::StepView& step) {
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kInput) continue;
            using tensor::DType;
            is_discrete_ = info.dtype != DType::kFloat16 && info.dtype != DType::kBFloat16 &&
                           info.dtype != DType::kFloat32 && info.dtype != DType::kFloat64;
            return;
        }
    }

    // What the copies of a row are labelled as has little to do with the row. Yes and no may be what came of
    // one thing that was tried several times.
    [[nodiscard]] bool contradict(const model::StepView& step) const {
        const double labelled = number(step, "pass_rows_labelled");
        return !is_discrete_ && !is_of_two_ && labelled >= labelled_ &&
               number(step, "pass_rows_contradicting") >=
                   contradicting_ * number(step, "pass_rows_by_chance") * labelled &&
               number(step, "pass_rows_by_chance") > 0.1;
    }

    // What a few rows are labelled as is learned many times. Classes are balanced by copies on purpose: then
    // the rows of one are copied equally often.
    [[nodiscard]] bool is_uneven(const model::StepView& step, double again) const {
        const bool are_values = is_regression_ && !is_other_ && number(step, "pass_rows_labelled") == 0;
        const bool are_classes =
            is_other_ && !is_regression_ && number(step, "pass_rows_labelled") >= labelled_;
        if (!are_values && !are_classes) return false;
        if (is_of_two_ && number(step, "pass_rows_contradicting") > 0) return false;
        const double distinct =
            number(step, are_values ? "pass_rows_distinct" : "pass_rows_distinct_in_class");
        const double effective =
            number(step, are_values ? "pass_rows_effective" : "pass_rows_effective_in_class");
        return !is_discrete_ && again >= uneven_ && number(step, "pass_rows_most") >= kMostTimes &&
               effective > 0 && effective < kFew * distinct &&
               number(step, "pass_rows_half_again") <= 0.1 * distinct;
    }

    // One part of the data takes the place of all: a loop over files, or an index, that stands still. Equal
    // rows of a regression may be measured that often, each with a value of its own.
    [[nodiscard]] bool is_whole(const model::StepView& step, double looked, double of) const {
        const double most = number(step, "pass_rows_most"), distinct = number(step, "pass_rows_distinct");
        const bool is_labelled = !is_of_two_ && number(step, "pass_rows_labelled") >= labelled_;
        return !is_discrete_ && most >= (is_labelled ? kWholeTimes : kWholeTimesOfValues) &&
               number(step, "pass_rows_contradicting") == 0 && looked >= 0.99 * of &&
               distinct >= kWholeRows && std::abs(most * distinct - looked) <= 0.02 * looked;
    }

    // As many rows came once as came twice, and so on: each part of the data holds all of those before it.
    // Copies that give rare rows more weight are few where they are many times there; rows that were measured
    // several times have a value of their own each time.
    [[nodiscard]] bool is_cumulative(const model::StepView& step, double looked, double of) const {
        const double most = number(step, "pass_rows_most"), distinct = number(step, "pass_rows_distinct");
        const double effective = number(step, "pass_rows_effective");
        if (!is_regression_ || is_other_ || is_discrete_ || most < kFewestParts || looked < 0.99 * of ||
            distinct < kRowsOfPart * most || same_ < kFewestSame || same_labels_ < kSameLabels * same_)
            return false;
        // Of the numbers 1 to `most`: their mean, and the square of it over the mean of their squares.
        const double times = (most + 1) / 2, even = 3 * (most + 1) / (2 * (2 * most + 1));
        return std::abs(looked / distinct - times) <= kNearTimes * times &&
               std::abs(effective / distinct - even) <= kNearEven * even;
    }

    void fire(const model::StepView& step, double looked, double of, double again, double share,
              FindingSink& sink) const {
        const bool is_contradiction = firing_ == "contradicting";
        model::Finding finding;
        finding.key = firing_;
        const bool is_uneven = firing_ == "uneven", is_whole = firing_ == "whole",
                   is_cumulative = firing_ == "cumulative";
        finding.severity =
            firing_ == "copies" || is_cumulative ? model::Severity::kInfo : model::Severity::kWarning;
        // The hook counts the steps of the run.
        const auto in_training = [&](std::string_view fact) {
            return number(step, fact) - std::min(number(step, fact), static_cast<double>(step.began));
        };
        finding.first_step = static_cast<model::StepIndex>(in_training("pass_row_again_step"));
        finding.tensor = "input/0";
        finding.message = base::format(
            "{:.0f} of {:.0f} rows that were looked at in one pass over the data came before in it, bit for "
            "bit, although the loader draws each row once (row {:.0f} of the batch at step {:.0f} is row "
            "{:.0f} of that at step {:.0f})",
            again, looked, number(step, "pass_row_again"), in_training("pass_row_again_step"),
            number(step, "pass_row_before"), in_training("pass_row_before_step"));
        finding.message +=
            of > 1.02 * looked
                ? base::format("; of all {:.0f} rows that may be about {:.0f} %.", of, 100 * share)
                : std::string(".");
        if (is_uneven && number(step, "pass_rows_labelled") > 0)
            finding.message += base::format(
                " One came {:.0f} times; within their classes, {:.0f} different ones have as much weight as "
                "{:.0f} that come equally often.",
                number(step, "pass_rows_most"), number(step, "pass_rows_distinct_in_class"),
                number(step, "pass_rows_effective_in_class"));
        else if (is_uneven)
            finding.message += base::format(
                " One came {:.0f} times; the {:.0f} different ones have as much weight as {:.0f} that come "
                "equally often.",
                number(step, "pass_rows_most"), number(step, "pass_rows_distinct"),
                number(step, "pass_rows_effective"));
        if (is_whole)
            finding.message += base::format(
                " Each of the {:.0f} different ones came {:.0f} times: the data is one part of it, taken "
                "again and again.",
                number(step, "pass_rows_distinct"), number(step, "pass_rows_most"));
        if (is_cumulative)
            finding.message += base::format(
                " The {:.0f} different ones came once to {:.0f} times, about as many of them so often as any "
                "other number of times: as if each part of the data held all of those before it.",
                number(step, "pass_rows_distinct"), number(step, "pass_rows_most"));
        const double labelled = number(step, "pass_rows_labelled");
        const double contradicting = number(step, "pass_rows_contradicting");
        if (contradicting > 0) {
            finding.message +=
                base::format(" {:.0f} of {:.0f} with a label have another class than the same row had before",
                             contradicting, labelled);
            finding.message += is_contradiction ? ", about as many as if classes were dealt out by chance."
                                                : std::string(".");
        }
        finding.fix =
            is_contradiction
                ? "Look at these rows: a default that is returned for what cannot be read, a join by a key "
                  "that is not unique, an index that is not used. Their labels cannot be learned."
            : is_uneven
                ? "Leave one of each, drop_duplicates(), before the data is split: a join by a key that is "
                  "not unique, or what was sent or logged again, multiplies some rows. Where each row stands "
                  "for as many cases, give the loss their number as a weight."
            : is_whole
                ? "Look at the loop that puts the data together: a file name, shard or index in it that does "
                  "not change. Where the data is repeated on purpose, to make a pass longer, say so by more "
                  "passes or by a ConcatDataset of the one data set."
            : is_cumulative
                ? "Read the last one of files that each hold all earlier rows again, or drop_duplicates(), "
                  "before the data is split: now the oldest rows count most. Where rows are to count "
                  "differently, give the loss a weight for each."
                : "Nothing, if rows are copied on purpose, as to balance classes; else drop_duplicates(), "
                  "before the data is split.";
        finding.evidence.push_back(
            {"share of the rows that came before in the pass", share, "limit", share_});
        finding.evidence.push_back({"rows that came before", again, "of", looked});
        if (labelled > 0)
            finding.evidence.push_back({"copies of another class", contradicting, "by chance",
                                        number(step, "pass_rows_by_chance") * labelled});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr double kMostTimes = 20, kFew = 0.25;
    static constexpr double kWholeTimes = 3, kWholeTimesOfValues = 8, kWholeRows = 30;

    static constexpr double kFewestParts = 5, kRowsOfPart = 10;    // of cumulative data
    static constexpr double kNearTimes = 0.1, kNearEven = 0.05;    // of what parts of one size would give
    static constexpr double kFewestSame = 20, kSameLabels = 0.99;  // pairs of equal rows

    double share_, rows_, labelled_, contradicting_, uneven_;
    double same_ = 0, same_labels_ = 0;  // of the first rows: pairs that are equal; with equal labels, too
    std::uint64_t judged_ = 0;
    bool is_discrete_ = true;
    // Loss functions that were seen; of the others, binary cross-entropies.
    bool is_regression_ = false, is_other_ = false, is_of_two_ = false;
    std::string firing_;
};

std::vector<model::Requirement> duplicated_rows_needs(const Parameters&) {
    std::vector<model::Requirement> all = row_requirements(kDuplicatedRows.name);
    for (model::Requirement& more : neighbour_requirements(kDuplicatedRows.name))
        all.push_back(std::move(more));
    all.push_back({"losses",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 50, .dense_until = 10},
                   kDuplicatedRows.name});
    return all;
}

}  // namespace

RuleEntry builtin::duplicated_rows() {
    return {&kDuplicatedRows, &duplicated_rows_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<DuplicatedRows>(p); }};
}

}  // namespace traindbg::rules
