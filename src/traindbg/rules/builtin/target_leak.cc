// A column of the input is the label, or one of its channels.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kTargetLeak = {
    .name = "target_leak",
    .title = "The input holds the label",
    .summary =
        "A column of the model's input is the label itself, perhaps in other units, or a channel of images "
        "the mask that is to be found in them; or the token that a model of a language is asked for is the "
        "one that it is given.",
    .when =
        "A column or a channel of the model's input gives the label away, or a language model is asked for "
        "the very token that it is given.\n"
        "- Looked at: the model's input, or a further one behind inputs that are no such table, is a table "
        "of at least 24 rows and two columns of floating point, with one label for each row. The first "
        "five steps are looked at.\n"
        "- Series: as many series are also looked at, at their last step, as (rows, steps, values), "
        "(steps, rows, values) or (rows, channels, steps). This is for the case \"copy of the label\" "
        "alone.\n"
        "- Copy of the label (warning): in `looks` of these steps in a row, one and the same column has a "
        "correlation with the label whose size is 1 but for rounding (1e-6).\n"
        "- Mask among the channels (warning): of images or series with a label of a class for each place, or "
        "0 and 1, one and the same channel is that label at all places, by a correlation of 1 but for "
        "rounding (1e-6), in `looks` of these steps in a row. Another channel is something else, and differs "
        "from row to row.\n"
        "- Mask among the channels, note only (info): loss functions are called several times in such a "
        "step. An auto-encoder or a world model gives each channel back by a loss of its own.\n"
        "- Filled in later (warning), labels 0 and 1: one and the same column has its usual value in all "
        "rows of one label, and another value only in rows of the other. Whether its value is the usual "
        "one agrees with the label in at least `agreement` of the rows of each step, in `looks` steps in a "
        "row.\n"
        "- Limit (warning), labels 0 and 1: one and the same column, and no other, has a value beyond "
        "which lie all rows of one label, over `looks` or more steps together, with at least 20 rows of "
        "each label.\n"
        "- Limit, how near: rows of both labels must lie as near to that value as rows lie to each other "
        "(16 standard deviations divided by the number of rows). So lies the limit by which a label is "
        "made of a number.\n"
        "- Order (warning): in a table of at least three columns, one and the same column, and no other, "
        "has the rows in the order of their labels, which is not the order that they came in. A curve "
        "leads from the one to the other.\n"
        "- Order, when: in `looks` of these steps, and in all of them whose labels differ in half of the "
        "rows and at least 24.\n"
        "- Limit and order, note only (info): the other columns tell no more than by chance. (rows - 1) "
        "r², where r is the correlation with the label, is below 2 on average.\n"
        "- Mean of a group (warning), labels 0 and 1: one and the same column, and no other, is the mean "
        "label of few rows, of which the own one is one. At each of the steps looked at, `looks` of them at "
        "least, all rows with its least value have label 0, and all with its greatest label 1.\n"
        "- Mean of a group, in between: nine tenths of these values are fractions with a denominator of at "
        "most 12, but no multiples of one step (a thirtieth of the range or more). Of those below and above "
        "one half the share of labels 1 is what they say, within three standard errors. There are 100 rows "
        "of either half, and 20 rows "
        "of each of these four kinds.\n"
        "- Parts of the label (warning): columns whose usual value half of the rows or more have, and which "
        "have amounts in the others, add up to the label in those rows, with one weight each and but for "
        "rounding (1e-4 of its standard deviation), in `looks` steps in a row.\n"
        "- Parts, which rows: 8 rows more than there are such columns. The labels of the other rows, 8 or "
        "more, differ, too.\n"
        "- Own tokens (warning): the classes given to a negative log-likelihood are the tokens that an "
        "embedding was given, each at its own place, in two steps in a row of the first three. Nothing "
        "between the two moves them along.\n"
        "- Own tokens, which models: a language model that goes from left to right (attention that hides "
        "later positions, or a recurrent layer of one direction).",
    .why =
        "The model copies that column. The loss falls far below what the problem allows, in validation, too, "
        "and the column is not there when it counts.",
    .fix = "Remove the column, or the join, shift or window that brought it in.",
    .healthy =
        "Columns that say much of the label, also those that part it, as groups that lie apart do; tables of "
        "one column, as in exercises; series whose label is an earlier value, as where memory is tried out; "
        "rows that come one after the other in time, by which the label goes one way, too; images of which "
        "nothing but a mask is known, or that are to be given back as they are; tokens that a model shifts "
        "inside, hides or brings back out of a code (an autoencoder).",
    .cost =
        "At the first 5 steps about a hundred passes over the model's input, where it is a table of at most "
        "a million values; and a sort of its columns, of at most 65,536. Of images and series four passes "
        "over "
        "at most as many. At the first 3 a way through some "
        "hundred nodes of a loss's graph, where it is a negative log-likelihood. On the CPU, at the first 5, "
        "a least squares fit of the columns that are filled in for some rows.",
    .original = "",
    .source =
        "Kapoor, Narayanan, \"Leakage and the reproducibility crisis in machine-learning-based science\", "
        "Patterns 2023",
    .severity = model::Severity::kWarning,
    .parameters = {{"looks", "steps", 3, 1, 5, "steps that must show it"},
                   {"agreement", "share", 0.93, 0.5, 1, "of rows that a one-sided column tells right"}},
};

class TargetLeak final : public Rule {
  public:
    explicit TargetLeak(const Parameters& parameters)
        : looks_(static_cast<std::uint64_t>(parameters.at("looks"))),
          agreement_(parameters.at("agreement")),
          planes_(parameters.at("looks")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        if (const auto compared = loop_fact(step, "label_compared_with")) input_ = compared->value;
        judge_one_sided(step, sink);
        judge_limit(step, sink);
        judge_group_means(step, sink);
        judge_correlation(step, sink);
        judge_order(step, sink);
        judge_parts(step, sink);
        judge_planes(step, sink);
        judge_own_tokens(step, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no input that is a table or series, with one label for each row or place given to a loss of "
               "torch.nn.functional, was seen";
    }

  private:
    void judge_correlation(const model::StepView& step, FindingSink& sink) {
        double correlation = -1, column = -1;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const std::string& name = step.info(sample.tensor).name;
            if (name == "loop/label_in_input_correlation") correlation = sample.value;
            else if (name == "loop/label_in_input_column") column = sample.value;
            else if (name == "loop/label_in_input_is_at_the_end") is_series_ = sample.value > 0;
        }
        if (!(correlation >= 0) || column < 0) return;
        ++judged_;
        if (correlation < 1 - 1e-6) {
            in_a_row_ = 0;
            return;
        }
        if (in_a_row_ == 0 || column != column_) {
            in_a_row_ = 0;
            first_ = step.step();
        }
        column_ = column;
        if (++in_a_row_ >= looks_) fire(correlation, sink);
    }
    void judge_one_sided(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> agreement = loop_fact(step, "label_on_one_side_agreement");
        if (!agreement) return;
        const std::optional<LoopFact> column = loop_fact(step, "label_on_one_side_column");
        const std::optional<LoopFact> rows = loop_fact(step, "label_on_one_side_rows");
        if (!column || !rows) return;
        if (agreement->value < agreement_ || (one_sided_ > 0 && column->value != one_sided_column_)) {
            one_sided_ = 0;
            one_sided_rows_ = 0;
            if (agreement->value < agreement_) return;
        }
        if (one_sided_++ == 0) one_sided_since_ = step.step();
        one_sided_column_ = column->value;
        one_sided_rows_ += rows->value;
        if (one_sided_ < looks_ || one_sided_rows_ < kFewestRows) return;
        model::Finding finding;
        finding.key = "one_sided";
        finding.severity = model::Severity::kWarning;
        finding.first_step = one_sided_since_;
        finding.tensor = input();
        finding.message = base::format(
            "Column {:.0f} of the model's input tells the label: in {} steps all rows of one label have its "
            "usual value, and all {:.0f} rows with another value are of the other label. So looks what is "
            "filled in once the label is known.",
            one_sided_column_, one_sided_, one_sided_rows_);
        finding.fix = base::format(
            "Ask when column {:.0f} is known: if after the label, such as what was paid after a default, "
            "remove it.",
            one_sided_column_);
        finding.evidence.push_back(
            {"share of rows that the column tells right", agreement->value, "limit", agreement_});
        finding.evidence.push_back({"column", one_sided_column_, "", 0});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    void judge_limit(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> columns = loop_fact(step, "label_beyond_columns");
        if (!columns || is_no_limit_) return;
        const std::optional<LoopFact> column = loop_fact(step, "label_beyond_column");
        const std::optional<LoopFact> above = loop_fact(step, "label_beyond_is_above");
        const std::optional<LoopFact> low = loop_fact(step, "label_beyond_low");
        const std::optional<LoopFact> high = loop_fact(step, "label_beyond_high");
        const std::optional<LoopFact> deviation = loop_fact(step, "label_beyond_deviation");
        const std::optional<LoopFact> fewer = loop_fact(step, "label_beyond_fewer");
        const std::optional<LoopFact> others = loop_fact(step, "label_beyond_others");
        const std::optional<LoopFact> rows = loop_fact(step, "label_beyond_rows");
        if (!column || !above || !low || !high || !deviation || !fewer || !others || !rows) return;
        if (limit_.steps++ == 0) {
            limit_.column = column->value;
            limit_.is_above = above->value > 0;
            limit_.since = step.step();
        }
        limit_.low = std::max(limit_.low, low->value);
        limit_.high = std::min(limit_.high, high->value);
        limit_.fewer += fewer->value;
        limit_.rows += rows->value;
        limit_.others += others->value;
        is_no_limit_ = columns->value != 1 || column->value != limit_.column ||
                       (above->value > 0) != limit_.is_above || !(limit_.low < limit_.high);
        if (is_no_limit_ || limit_.steps < looks_ || limit_.fewer < kFewestRows) return;
        const double gap = limit_.high - limit_.low;
        const double usual = kGap * deviation->value / limit_.rows;
        if (gap > usual) return;
        model::Finding finding;
        finding.key = "limit";
        // Where all other columns tell nothing it is an exercise, or the one thing that counts.
        const bool others_tell = limit_.others > kByChance * static_cast<double>(limit_.steps);
        finding.severity = others_tell ? model::Severity::kWarning : model::Severity::kInfo;
        finding.first_step = limit_.since;
        finding.tensor = input();
        finding.message = base::format(
            "Column {:.0f} of the model's input is what the label was made of: of {:.0f} rows in {} steps "
            "all {} {} have label 1, all others label 0, and rows lie on both sides as near as {}.",
            limit_.column, limit_.rows, limit_.steps, limit_.is_above ? "above" : "below",
            base::human_number(limit_.is_above ? limit_.low : limit_.high), base::human_number(gap));
        finding.fix = base::format("Remove column {:.0f}: whoever knows it knows the label.", limit_.column);
        finding.evidence.push_back({"distance of the two labels' values", gap, "limit", usual});
        finding.evidence.push_back({"column", limit_.column, "", 0});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    // Of rows of which the own label is a part of what they are given.
    struct GroupMeans {
        std::uint64_t steps = 0;
        double column = -1, least = 0, most = 0;
        double none = 0, all = 0;
        struct Side {  // of one half
            double rows = 0, excess = 0, variance = 0;
            [[nodiscard]] bool is_as_said() const noexcept {
                return rows >= kFewestOfHalf && std::abs(excess) <= kErrors * std::sqrt(variance);
            }
        };
        Side low, high;
        std::uint64_t sizes = 0;
        bool is_told = false;
        model::StepIndex since = 0;

        // Marks, as from 0 to 5, are fractions, too, but all of one step.
        [[nodiscard]] std::uint64_t steps_of_range() const noexcept {
            std::uint64_t all_of_them = 1;
            for (std::uint64_t size = 2; size < 64; ++size)
                if ((sizes >> size & 1) != 0) all_of_them = std::lcm(all_of_them, size);
            return all_of_them;
        }
    };
    static void add(GroupMeans::Side& side, const model::StepView& step, std::string_view name) {
        const auto fact = [&](std::string_view what) {
            const auto found = loop_fact(step, base::format("label_grouped_{}{}", name, what));
            return found ? found->value : 0;
        };
        side.rows += fact("");
        side.excess += fact("_excess");
        side.variance += fact("_variance");
    }
    void judge_group_means(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> columns = loop_fact(step, "label_grouped_columns");
        if (!columns || are_no_means_) return;
        const std::optional<LoopFact> column = loop_fact(step, "label_grouped_column");
        const std::optional<LoopFact> least = loop_fact(step, "label_grouped_least");
        const std::optional<LoopFact> most = loop_fact(step, "label_grouped_most");
        const std::optional<LoopFact> none = loop_fact(step, "label_grouped_none");
        const std::optional<LoopFact> all = loop_fact(step, "label_grouped_all");
        const std::optional<LoopFact> sizes = loop_fact(step, "label_grouped_sizes");
        if (!column || !least || !most || !none || !all || !sizes) return;
        if (means_.steps++ == 0) {
            means_.column = column->value;
            means_.least = least->value;
            means_.most = most->value;
            means_.since = step.step();
        }
        const double rounding = kRounding * (means_.most - means_.least);
        are_no_means_ = columns->value != 1 || column->value != means_.column ||
                        std::abs(least->value - means_.least) > rounding ||
                        std::abs(most->value - means_.most) > rounding;
        means_.none += none->value;
        means_.all += all->value;
        means_.sizes |= static_cast<std::uint64_t>(sizes->value);
        add(means_.low, step, "low");
        add(means_.high, step, "high");
        const bool on = !are_no_means_ && means_.steps >= looks_ && means_.none >= kFewestRows &&
                        means_.all >= kFewestRows && means_.low.is_as_said() && means_.high.is_as_said() &&
                        means_.steps_of_range() > kMostMarks;
        if (!on) {
            if (means_.is_told) sink.clear("group");
            means_.is_told = false;
            return;
        }
        means_.is_told = true;
        model::Finding finding;
        finding.key = "group";
        finding.severity = model::Severity::kWarning;
        finding.first_step = means_.since;
        finding.tensor = input();
        finding.message = base::format(
            "Column {:.0f} of the model's input is the mean label of a few rows each, and a row's own label "
            "is in its mean: in {} steps all {:.0f} rows with its least value have label 0, all {:.0f} with "
            "its greatest label 1, and between these are fractions of small numbers.",
            means_.column, means_.steps, means_.none, means_.all);
        finding.fix = base::format(
            "Make column {:.0f} of other rows than those that are given it: means of the other folds of the "
            "training rows, and for other data means of the training rows. Smooth them.",
            means_.column);
        finding.evidence.push_back(
            {"rows whose label the column tells for certain", means_.none + means_.all, "", 0});
        finding.evidence.push_back({"rows in between", means_.low.rows + means_.high.rows, "", 0});
        finding.evidence.push_back({"labels 1 of them, beyond what it says",
                                    means_.low.excess + means_.high.excess, "standard error",
                                    std::sqrt(means_.low.variance + means_.high.variance)});
        finding.evidence.push_back({"column", means_.column, "", 0});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    void judge_order(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> columns = loop_fact(step, "label_ordered_columns");
        if (!columns || is_no_order_) return;
        const std::optional<LoopFact> column = loop_fact(step, "label_ordered_column");
        const std::optional<LoopFact> falling = loop_fact(step, "label_ordered_is_falling");
        const std::optional<LoopFact> as_given = loop_fact(step, "label_ordered_is_as_given");
        const std::optional<LoopFact> labels = loop_fact(step, "label_ordered_labels");
        const std::optional<LoopFact> others = loop_fact(step, "label_ordered_others");
        const std::optional<LoopFact> rows = loop_fact(step, "label_ordered_rows");
        if (!column || !falling || !as_given || !labels || !others || !rows) return;
        // Such a step tells nothing: few labels are in order by chance, and what goes one way with time is
        // in the order of the rows.
        if (labels->value < kFewestLabels || 2 * labels->value < rows->value || as_given->value > 0) return;
        if (order_.steps++ == 0) {
            order_.column = column->value;
            order_.is_falling = falling->value > 0;
            order_.since = step.step();
        }
        order_.labels += labels->value;
        order_.others += others->value;
        is_no_order_ = columns->value != 1 || column->value != order_.column ||
                       (falling->value > 0) != order_.is_falling;
        if (is_no_order_) {
            if (order_.is_told) sink.clear("order");
            return;
        }
        const bool is_label_itself = in_a_row_ >= looks_ && column_ == order_.column;  // said already
        if (order_.steps < looks_ || is_label_itself) return;
        order_.is_told = true;
        model::Finding finding;
        finding.key = "order";
        const double told = order_.others / static_cast<double>(order_.steps);
        finding.severity = told > kByChance ? model::Severity::kWarning : model::Severity::kInfo;
        finding.first_step = order_.since;
        finding.tensor = input();
        finding.message = base::format(
            "Column {:.0f} of the model's input has the rows in the {} of their labels, in each of {} steps "
            "with {:.0f} labels together, as where one was made of the other by a curve.",
            order_.column, order_.is_falling ? "reverse order" : "order", order_.steps, order_.labels);
        finding.fix = base::format(
            "Remove column {:.0f}: whoever knows it knows the label, as a price knows its logarithm.",
            order_.column);
        finding.evidence.push_back({"labels in the order of the column", order_.labels, "at least",
                                    kFewestLabels * static_cast<double>(looks_)});
        finding.evidence.push_back({"(rows - 1) r² of the other columns, mean", told, "by chance", 1});
        finding.evidence.push_back({"column", order_.column, "", 0});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    // Columns that are filled in for some of the rows, and add up to the label there.
    void judge_parts(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> columns = loop_fact(step, "label_in_parts_columns");
        const std::optional<LoopFact> column = loop_fact(step, "label_in_parts_column");
        const std::optional<LoopFact> rows = loop_fact(step, "label_in_parts_rows");
        const std::optional<LoopFact> error = loop_fact(step, "label_in_parts_error");
        const std::optional<LoopFact> others = loop_fact(step, "label_in_parts_others");
        if (!columns || !column || !rows || !error || !others) return;
        const bool is_label_itself = in_a_row_ > 0 && column_ == column->value;  // said already
        const bool is_it = error->value <= kPartsRounding && others->value >= kOthersDiffer;
        parts_rows_ = is_it ? parts_rows_ + rows->value : 0;
        parts_.add(step, is_it && !is_label_itself);
        if (parts_.count() < looks_) return;
        model::Finding finding;
        finding.key = "parts";
        finding.severity = model::Severity::kWarning;
        finding.first_step = parts_.first();
        finding.tensor = input();
        finding.message =
            columns->value > 1
                ? base::format(
                      "{:.0f} columns of the model's input, of which the first is column {:.0f}, add up to "
                      "the label wherever they are filled in: in {:.0f} rows of {} steps, with one weight "
                      "each.",
                      columns->value, column->value, parts_rows_, parts_.count())
                : base::format(
                      "Column {:.0f} of the model's input is the label, but for scale and offset, wherever "
                      "it is filled in: in {:.0f} rows of {} steps.",
                      column->value, parts_rows_, parts_.count());
        finding.fix =
            "Ask when these columns are known: if after the label, such as the causes of a delay or the "
            "items of a bill, remove them.";
        finding.evidence.push_back({"largest error of their sum, in deviations of the label", error->value,
                                    "limit", kPartsRounding});
        finding.evidence.push_back({"column", column->value, "", 0});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    // A channel of images or series that is the mask which is to be found in them.
    void judge_planes(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> channels = loop_fact(step, "label_in_planes_channels");
        const std::optional<LoopFact> channel = loop_fact(step, "label_in_planes_channel");
        const std::optional<LoopFact> others = loop_fact(step, "label_in_planes_others");
        if (!channels || !channel || !others) return;
        ++judged_;
        // Of several channels that are alike, or of nothing else, it is an exercise in giving them back.
        const bool is_it = channels->value == 1 && others->value > 0;
        planes_.add(step, is_it && (planes_.count() == 0 || channel->value == plane_));
        plane_ = channel->value;
        has_several_losses_ = has_several_losses_ || calls_of_losses(step) > 1;
        if (!planes_.is_enough()) return;
        model::Finding finding;
        finding.key = "plane";
        // One of the losses may have the model give that channel back on purpose.
        finding.severity = has_several_losses_ ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = planes_.first();
        finding.tensor = input();
        finding.message = base::format(
            "Channel {:.0f} of the model's input is the very mask that it is to find, but for scale and "
            "offset: their correlation is 1 over all places, in each of {} steps.",
            plane_, planes_.count());
        finding.fix = base::format(
            "Give the model the other channels alone. Where channel {:.0f} is the transparency of cut-out "
            "pictures, or was joined with the labels, it is not there when it counts.",
            plane_);
        finding.evidence.push_back(planes_.evidence());
        finding.evidence.push_back({"channel", plane_, "", 0});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    // Of loss functions, in the first micro-batch.
    [[nodiscard]] static std::ptrdiff_t calls_of_losses(const model::StepView& step) {
        return std::ranges::count_if(step.record->scalars, [&](const model::ScalarSample& sample) {
            const model::TensorInfo& info = step.info(sample.tensor);
            return info.role == model::Role::kLoss && !function_of_loss(info.name).empty() &&
                   info.name.find('@') == std::string::npos;
        });
    }

    void judge_own_tokens(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> own = loop_fact(step, "own_tokens");
        if (!own) return;
        ++judged_;
        own_tokens_.add(step, own->value > 0);
        if (!own_tokens_.is_enough()) return;
        model::Finding finding = loop_finding("own_tokens", model::Severity::kWarning, own_tokens_, *own);
        finding.message =
            "The targets of the loss are the tokens that the model is given, each at its own place, and the "
            "model goes from left to right: each position sees the token that it is to tell.";
        finding.fix =
            "Move the targets one position on: logits[:, :-1] with ids[:, 1:]; of a decoder, give it ids[:, "
            ":-1] and compare with ids[:, 1:].";
        finding.evidence.push_back(own_tokens_.evidence());
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    // The table that is compared: the first input, or a further one.
    [[nodiscard]] std::string input() const { return base::format("input/{:.0f}", input_); }

    void fire(double correlation, FindingSink& sink) const {
        model::Finding finding;
        finding.key = "column";
        finding.severity = model::Severity::kWarning;
        finding.first_step = first_;
        finding.tensor = input();
        finding.message = base::format(
            "{} {:.0f} of the model's input is the label, but for scale and offset: their correlation is 1 "
            "in each of {} steps.",
            is_series_ ? "In the last step of each series, column" : "Column", column_, in_a_row_);
        finding.fix = base::format(
            "Remove column {:.0f}, or what brought it in: a join with the labels, a shift, a window that "
            "ends too late.",
            column_);
        finding.evidence.push_back({"correlation with the label", correlation, "limit", 1});
        finding.evidence.push_back({"column", column_, "", 0});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr double kFewestRows = 20;  // with another value than the usual one; of either label
    // Of means below and above one half: as true means of earlier rows are less far from it than they say.
    static constexpr double kFewestOfHalf = 100;
    static constexpr double kFewestLabels = 24;
    static constexpr double kByChance = 2;  // times what columns tell that have nothing to do with it
    static constexpr double kGap = 16;      // times what lies between neighbours, on average and at least

    static constexpr double kErrors = 3;  // standard errors, by which shares may differ
    // Of the labels of the rows where parts of them are known; and of all labels, what the others must have.
    static constexpr double kPartsRounding = 1e-4, kOthersDiffer = 0.05;
    static constexpr double kRounding = 1e-5;        // of a column's range
    static constexpr std::uint64_t kMostMarks = 30;  // steps of one size, from the least to the greatest

    GroupMeans means_;
    bool are_no_means_ = false;  // no column is, for certain
    // A value of a column that parts the labels.
    struct Limit {
        std::uint64_t steps = 0;
        double column = -1;
        bool is_above = false;
        double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
        double fewer = 0, rows = 0, others = 0;
        model::StepIndex since = 0;
    };
    Limit limit_;
    bool is_no_limit_ = false;  // no value does, for certain
    // A column by which the rows are in the order of their labels.
    struct Order {
        std::uint64_t steps = 0;
        double column = -1, labels = 0, others = 0;
        bool is_falling = false, is_told = false;
        model::StepIndex since = 0;
    };
    Order order_;
    bool is_no_order_ = false;  // none does, for certain
    InARow own_tokens_{2}, parts_{1};
    double parts_rows_ = 0;  // of these steps
    double input_ = 0;       // number of the table
    std::uint64_t looks_;
    double agreement_;
    InARow planes_;
    double plane_ = -1;  // number of the channel
    bool has_several_losses_ = false;
    std::uint64_t one_sided_ = 0;  // steps in a row
    double one_sided_column_ = -1, one_sided_rows_ = 0;
    model::StepIndex one_sided_since_ = 0;
    std::uint64_t judged_ = 0, in_a_row_ = 0;
    double column_ = -1;
    bool is_series_ = false;  // else a table
    model::StepIndex first_ = 0;
};

std::vector<model::Requirement> target_leak_needs(const Parameters&) {
    using enum model::Mode;
    constexpr model::Schedule kWhen = {.every = 50, .dense_until = 10};
    constexpr auto kStatistics = model::What::kStatistics;
    return {{"labels", kTrain, kStatistics, kWhen, kTargetLeak.name},
            {"inputs", kTrain, kStatistics, kWhen, kTargetLeak.name},
            {"losses", kTrain, kStatistics, kWhen, kTargetLeak.name},
            {"loop", kTrain, kStatistics, kWhen, kTargetLeak.name}};
}

}  // namespace

RuleEntry builtin::target_leak() {
    return {&kTargetLeak, &target_leak_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<TargetLeak>(p); }};
}

}  // namespace traindbg::rules
