// Data that comes in the order of its regression target, or of a column of the inputs, and is not shuffled.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/input_order.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kTargetsInOrder = {
    .name = "targets_in_order",
    .title = "Targets come in order",
    .summary =
        "From batch to batch the targets go up, or down, or a column of the inputs does: the data is in that "
        "order, and not shuffled.",
    .when =
        "From batch to batch the mean of a regression's targets only rises, or only falls, by far more "
        "than targets differ within a batch, and the predictions do not follow. Or a column of the inputs "
        "does.\n"
        "- Losses: mse, l1, smooth_l1 or huber, with one target per sample.\n"
        "- Order (warning): over `batches` or more batches, one right after the other, the mean of the "
        "targets only rises, or only falls. The whole way is more than `drift` times the spread of targets "
        "within a batch.\n"
        "- Predictions: over these batches their mean goes less than half of that way in the same "
        "direction.\n"
        "- Order of time, note only (info): the targets are the input's next values.\n"
        "- Order of time, note only (info): an input has the mean of the targets at both ends of that way, "
        "within a quarter of the way, and differs within a batch as windows of the same series do.\n"
        "- Column, note only (info): over the first 8 or more batches, 20 at most, the middle between the "
        "least and the greatest value of one column of an input of rows and columns only rises, or only "
        "falls, by more than twice of what lies between them in a batch.\n"
        "- Column, and forgotten: in three or more passes in a row behind the first, of 10 or more batches, "
        "the mean loss of the first tenth of the batches is more than twice that of the others. No layer is "
        "recurrent.",
    .why =
        "Each batch pulls the model to its own targets, and the last ones of an epoch win. The loss of the "
        "batches is small, that of other data is not.",
    .fix =
        "Shuffle: DataLoader(..., shuffle=True), from a buffer as large as the data where it streams. If the "
        "order is that of time and meant, leave it.",
    .healthy =
        "Batches that are unlike each other and in no order, of one task each, say; a series that goes up "
        "and down; targets that a model makes, as of a value function. A series with a trend, in the order "
        "of time, as for online learning, a recurrent net whose state goes on, or truncated backpropagation: "
        "a note (info) where its inputs are windows of the series itself; a warning where they are something "
        "else, which may be ignored.",
    .cost =
        "One pass over the inputs and what the loss functions are given at the first 10 steps and then at "
        "every 50th; the least and greatest value of each column at the first 20; the facts about sequences "
        "of the first 6.",
    .original = "",
    .source = "Bottou, \"Stochastic gradient descent tricks\", 2012 (shuffle the examples)",
    .severity = model::Severity::kWarning,
    .parameters = {{"batches", "batches", 8, 4, 10, "in a row whose means only rise, or only fall"},
                   {"drift", "times", 3, 0.5, 1e6, "their way beside the spread within a batch"}},
};

class TargetsInOrder final : public Rule {
  public:
    explicit TargetsInOrder(const Parameters& parameters)
        : needed_(static_cast<std::uint64_t>(parameters.at("batches"))), drift_(parameters.at("drift")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain || has_fired_) return;
        game_.observe(step);
        inputs_in_order_.observe(step);
        if (const auto found = inputs_in_order_.take(); found && !game_.is_on()) fire_inputs(*found, sink);
        are_next_ = are_next_ || loop_fact(step, "later_seen").has_value();
        for (const LossCall& call : loss_calls(step)) {
            if (!is_regression(call.function) || call.labelled == nullptr) continue;
            const std::vector<std::int64_t>& shape = call.label->shape;
            const bool is_one = shape.size() == 1 || (shape.size() == 2 && shape[1] == 1);
            if (!is_one || call.labelled->count < kFewest) return;
            ++judged_;
            add(step.step(), call.labelled->mean, call.labelled->std, call.predicted->mean);
            add_inputs(step);
            if (count_ >= needed_ && !game_.is_on() && within() > 0 && drift() > drift_ * within() &&
                !follows_predictions())
                fire(call.label->name, call.function, sink);
            return;
        }
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no regression loss with one target a sample was seen";
    }

  private:
    // Goes on with the row of batches, or begins another with the last two.
    void add(model::StepIndex step, double mean, double std, double predicted) {
        const int way = mean > last_mean_ ? 1 : mean < last_mean_ ? -1 : 0;
        const bool goes_on = count_ > 0 && step == last_step_ + 1 && way != 0;
        if (!goes_on) {
            begin(step, mean, std, predicted);
        } else {
            if (count_ > 1 && way != way_) begin(last_step_, last_mean_, last_std_, last_predicted_);
            way_ = way;
            ++count_;
            spread_ += std;
        }
        last_step_ = step;
        last_mean_ = mean;
        last_std_ = std;
        last_predicted_ = predicted;
    }
    void begin(model::StepIndex step, double mean, double std, double predicted) {
        first_predicted_ = predicted;
        first_step_ = step;
        first_mean_ = mean;
        spread_ = std;
        count_ = 1;
    }
    // Targets that a model makes, of a value function say, go where its predictions go.
    [[nodiscard]] bool follows_predictions() const {
        const double way = (last_predicted_ - first_predicted_) * (way_ > 0 ? 1 : -1);
        return way > 0.5 * drift();
    }
    // The same of the inputs, at each batch of the row.
    void add_inputs(const model::StepView& step) {
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const model::Statistics& s = sample.statistics;
            if (info.role != model::Role::kInput || s.count == 0 || s.not_finite() > 0) continue;
            Input& input = inputs_[info.id];
            if (count_ == 2 && input.last_step + 1 == step.step()) {
                input.first_mean = input.last_mean;
                input.spread = input.last_std;
                input.batches = 1;
            } else if (count_ <= 2) {
                input = {.first_mean = s.mean};
            }
            ++input.batches;
            input.spread += s.std;
            input.last_step = step.step();
            input.last_mean = s.mean;
            input.last_std = s.std;
            if (info.shape.size() >= 2 && info.shape[0] > 0)
                input.length = static_cast<double>(info.shape[1]) / static_cast<double>(info.shape[0]);
        }
    }
    // The targets are an input's next values, or an input is where they are and goes where they go: windows
    // of the same series, of which a batch holds as many values as it has rows and a window has.
    [[nodiscard]] bool is_of_time() const {
        const double near = 0.25 * drift();
        return are_next_ || std::any_of(inputs_.begin(), inputs_.end(), [&](const auto& one) {
                   const Input& input = one.second;
                   return input.batches == count_ && std::abs(input.first_mean - first_mean_) < near &&
                          std::abs(input.last_mean - last_mean_) < near &&
                          input.spread < 1.5 * (1 + input.length) * spread_;
               });
    }
    [[nodiscard]] double drift() const { return std::abs(last_mean_ - first_mean_); }
    [[nodiscard]] double within() const { return spread_ / static_cast<double>(count_); }

    void fire(std::string_view label, std::string_view function, FindingSink& sink) {
        has_fired_ = true;
        const bool is_time = is_of_time();
        model::Finding finding;
        finding.key = is_time ? "order_of_time" : "order";
        finding.kind = "unshuffled_data";
        finding.severity = is_time ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = first_step_;
        finding.tensor = label;
        finding.message = base::format(
            "The targets of {} only {} from batch to batch, from {} at step {} to {} at step {}, and differ "
            "by {} within a batch: {}.",
            function, way_ > 0 ? "rise" : "fall", human_number(first_mean_), first_step_,
            human_number(last_mean_), last_step_, human_number(within()),
            is_time ? "a series with a trend, in the order of time"
                    : "the data is in their order, sorted by them or by a time in which they drift");
        finding.fix = kTargetsInOrder.fix;
        finding.evidence.push_back({"way of the mean target", drift(), "spread in a batch", within()});
        finding.plots = {{finding.tensor, "mean"}};
        sink.fire(std::move(finding));
    }

    void fire_inputs(const InputOrder::Found& found, FindingSink& sink) {
        ++judged_;  // of classes, too, whose order is not judged here
        model::Finding finding;
        finding.key = "order_of_inputs";
        finding.kind = "unshuffled_data";
        finding.severity = model::Severity::kInfo;  // the rows at the beginning may be harder in themselves
        finding.first_step = 0;
        finding.tensor = found.input;
        finding.message = base::format(
            "Column {} of the model's input only {} from batch to batch, from {} to {} over the first {}, "
            "and has values within {} in a batch: the data is in its order. In each of {} passes the first "
            "batches have a loss far above all others, now {} beside {}: they are forgotten by the end of a "
            "pass, or harder than the others.",
            found.column, found.last > found.first ? "rises" : "falls", human_number(found.first),
            human_number(found.last), found.batches, human_number(found.spread), found.passes,
            human_number(found.head), human_number(found.rest));
        finding.fix = kTargetsInOrder.fix;
        finding.evidence.push_back(
            {"way of the column", std::abs(found.last - found.first), "spread in a batch", found.spread});
        finding.evidence.push_back(
            {"loss of the first batches of a pass", found.head, "of the others", found.rest});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    struct Input {
        double first_mean = 0, last_mean = 0, last_std = 0, spread = 0;
        double length = 0;  // of a window, in rows of a batch
        std::uint64_t batches = 0;
        model::StepIndex last_step = 0;
    };

    static constexpr std::uint64_t kFewest = 4;  // targets of a batch

    std::uint64_t needed_;
    double drift_;
    std::uint64_t judged_ = 0, count_ = 0;
    int way_ = 0;
    bool has_fired_ = false;
    bool are_next_ = false;  // the targets are the next values of an input
    std::map<model::TensorId, Input> inputs_;
    model::StepIndex first_step_ = 0, last_step_ = 0;
    double first_mean_ = 0, last_mean_ = 0, last_std_ = 0, spread_ = 0;
    double first_predicted_ = 0, last_predicted_ = 0;
    Game game_;
    InputOrder inputs_in_order_;
};

std::vector<model::Requirement> targets_in_order_needs(const Parameters&) {
    std::vector<model::Requirement> all = argument_requirements(kTargetsInOrder.name);
    all.push_back({"inputs",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 50, .dense_until = 10},
                   kTargetsInOrder.name});
    for (model::Requirement& more : sequence_requirements(kTargetsInOrder.name))
        all.push_back(std::move(more));
    for (model::Requirement& more : input_order_requirements(kTargetsInOrder.name))
        all.push_back(std::move(more));
    return all;
}

}  // namespace

RuleEntry builtin::targets_in_order() {
    return {&kTargetsInOrder, &targets_in_order_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<TargetsInOrder>(p); }};
}

}  // namespace traindbg::rules
