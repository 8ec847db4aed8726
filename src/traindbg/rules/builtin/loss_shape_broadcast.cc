// Prediction and target of different shapes, which the loss compares each with each.

#include <algorithm>
#include <set>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kLossShapeBroadcast = {
    .name = "loss_shape_broadcast",
    .title = "Prediction and target of different shapes",
    .summary =
        "The shapes of prediction and target differ, and the loss compares every sample with every other.",
    .when =
        "Prediction and target differ in their number of dimensions, and broadcasting makes the loss "
        "compare each with many others: (32, 1) and (32,) become (32, 32). The check is exact.\n"
        "- Loss function (error): an element-wise loss is given a prediction and a target with different "
        "numbers of dimensions, and their common shape after broadcasting has more elements than either.\n"
        "- Loss written out by hand (error): its graph shows n predictions combined with data that have no "
        "gradient, n * n values come of it, and all of them go into the loss one by one.\n"
        "- Multiplied by predictions once more (error), as in a focal loss: where both times they are made "
        "of "
        "the same ones, element by element, and are first multiplied by data of shape (n,).\n"
        "- Rows and images (error): the same for a loss written out by hand with rows of predictions, (n, "
        "k) with (n, 1, 1), and with images, (n, 1, h, w) with (n, h, w).\n"
        "- Reported at the first step at which both are captured.",
    .why =
        "Each prediction is pulled to all targets of the batch, so the model learns their mean and nothing "
        "else. The loss falls to the variance of the targets and looks like a model that is too small.",
    .fix =
        "Give both one shape: prediction.squeeze(-1), or target.unsqueeze(-1) (target[:, None]); assert "
        "prediction.shape == target.shape in front of the loss.",
    .healthy =
        "One target for all predictions, a row of weights or targets for the whole batch, several critics "
        "against one target: the prediction keeps its shape. Pairs that are made on purpose, by dimensions "
        "of size one in both (quantile regression), by a dimension that is put in for them, or of the "
        "predictions among themselves (energy distance, ranking), also where they are added as a column and "
        "as a row (x - x.t(), potentials of optimal transport).",
    .cost =
        "Shapes, and one pass over what the model and the loss functions are given, at the first 10 steps "
        "and every 50th; of a loss that is written out and has three dimensions, a pass over what it "
        "compares.",
    .original = "",
    .source = "PyTorch documentation, torch.nn.functional.mse_loss: sizes that differ are broadcast",
    .severity = model::Severity::kError,
    .parameters = {},
};

constexpr std::array<std::string_view, 8> kElementwise = {
    "mse_loss",         "l1_loss",          "smooth_l1_loss",       "huber_loss",
    "poisson_nll_loss", "soft_margin_loss", "hinge_embedding_loss", "kl_div"};

using Shape = std::vector<std::int64_t>;

std::string in_words(const Shape& shape) {
    return base::format("({}{})", base::join(shape, ", "), shape.size() == 1 ? "," : "");
}
std::int64_t elements(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return count;
}
// Empty: they do not go together.
Shape broadcast(const Shape& a, const Shape& b) {
    Shape all(std::max(a.size(), b.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::int64_t from_a = i < a.size() ? a[a.size() - 1 - i] : 1;
        const std::int64_t from_b = i < b.size() ? b[b.size() - 1 - i] : 1;
        if (from_a != from_b && from_a != 1 && from_b != 1) return {};
        all[all.size() - 1 - i] = from_a == 1 ? from_b : from_a;
    }
    return all;
}

class LossShapeBroadcast final : public Rule {
  public:
    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        bool any = false;
        for (const LossCall& call : loss_calls(step)) {
            if (call.label == nullptr ||
                std::find(kElementwise.begin(), kElementwise.end(), call.function) == kElementwise.end())
                continue;
            any = true;
            const Shape& given = call.prediction->shape;
            const Shape& wanted = call.label->shape;
            const Shape both = broadcast(given, wanted);
            if (given.size() == wanted.size() ||
                elements(both) <= std::max(elements(given), elements(wanted)))
                continue;
            fire(call, both, sink);
        }
        any = look_at_written_out(step, sink) || any;
        if (any) ++judged_;
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no loss that compares element by element was seen";
    }

  private:
    // A loss without a function of the framework: the hook reads shapes from its graph. (n, 1) and (n,) make
    // (n, n). The target's own shape is not known.
    bool look_at_written_out(const model::StepView& step, FindingSink& sink) {
        const model::TensorInfo* given = nullptr;
        const model::TensorInfo* both = nullptr;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.name == "loop/prediction_compared") given = &info;
            else if (info.name == "loop/difference_compared") both = &info;
        }
        if (given == nullptr || both == nullptr) return false;
        const std::optional<LoopFact> repeated = loop_fact(step, "target_is_repeated");
        if (repeated && repeated->value > 0 && given->shape.size() == 2 && given->shape == both->shape) {
            ++repeated_;
            if (repeated_ >= kLooks) fire_repeated(*given, sink);
            return true;
        }
        if (repeated_ >= kLooks) sink.clear("repeated");
        repeated_ = 0;
        const std::int64_t count = elements(given->shape);
        const bool is_flat = given->shape.size() == 1 || (given->shape.size() == 2 && given->shape[1] == 1);
        const bool is_pair_of_rows = is_each_row_with_all(step, given->shape, both->shape);
        if (!is_pair_of_rows && (!is_flat || count < 2 || both->shape != Shape{count, count})) return true;
        model::Finding finding;
        finding.key = "written_out";
        finding.severity = model::Severity::kError;
        finding.tensor = "loss";
        finding.message = base::format(
            "The loss takes a prediction of shape {} together with a target and gets {}: each prediction "
            "goes with the targets of all samples.",
            in_words(given->shape), in_words(both->shape));
        const bool is_of_one = given->shape.size() > 2;
        finding.fix = is_pair_of_rows && is_of_one
                          ? "Give both as many dimensions: prediction.squeeze(1), or target.unsqueeze(1); "
                            "assert prediction.shape == target.shape in front of the loss."
                      : is_pair_of_rows ? "Give both as many dimensions: target.squeeze(-1), or "
                                          "prediction.unsqueeze(1) where each row is for all of it; assert "
                                          "prediction.dim() == target.dim() in front of the loss."
                      : given->shape.size() == 2
                          ? "Give both one shape: prediction.squeeze(-1), or target.unsqueeze(-1)."
                          : "Give both one shape: target.squeeze(-1), or prediction.unsqueeze(-1).";
        finding.evidence.push_back({"values compared", static_cast<double>(elements(both->shape)),
                                    "predictions", static_cast<double>(count)});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
        return true;
    }

    // (n, k) or (n, 1, k) of n samples, and (n, n, k) of all pairs of them; k may be several dimensions.
    static bool is_each_row_with_all(const model::StepView& step, const Shape& given, const Shape& both) {
        if (both.size() < 3 || both[0] != both[1] || both[0] < 4) return false;
        Shape one = both;
        one[1] = 1;
        const bool is_row = both.size() == 3 && both[0] != both[2] && given == Shape{both[0], both[2]};
        // Rows of what is fitted to a whole series, with as many series as it has rows, are no samples.
        return (is_row || given == one) && rows_of_input(step) == static_cast<double>(both[0]);
    }

    // The model itself made (n, n) of (n,) and (n, 1): the target (n,) goes with each of its rows.
    static void fire_repeated(const model::TensorInfo& given, FindingSink& sink) {
        model::Finding finding;
        finding.key = "repeated";
        finding.severity = model::Severity::kError;
        finding.tensor = "loss";
        finding.message = base::format(
            "The model gives {} for {} samples, and the loss compares each of its rows with the same {} "
            "targets: each sample with the targets of all.",
            in_words(given.shape), given.shape[0], given.shape[0]);
        finding.fix =
            "Look in forward() for a sum or product of (n,) and (n, 1), which makes (n, n): .squeeze(-1) "
            "what an nn.Embedding(..., 1) or an nn.Linear(..., 1) gives.";
        const auto count = static_cast<double>(given.shape[0]);
        finding.evidence.push_back({"values compared", count * count, "samples", count});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }

    static void fire(const LossCall& call, const Shape& both, FindingSink& sink) {
        const Shape& given = call.prediction->shape;
        const Shape& wanted = call.label->shape;
        model::Finding finding;
        finding.key = call.function;
        finding.severity = model::Severity::kError;
        finding.tensor = base::format("loss/{}", call.function);
        finding.message = base::format(
            "{} compares a prediction of shape {} with a target of shape {} as {}: each prediction with the "
            "targets of other samples, too.",
            call.function, in_words(given), in_words(wanted), in_words(both));
        finding.fix =
            given.size() > wanted.size()
                ? base::format(
                      "Give both one shape: prediction.squeeze(-1) in front of {}, or target.unsqueeze(-1).",
                      call.function)
                : base::format(
                      "Give both one shape: target.squeeze(-1) in front of {}, or prediction.unsqueeze(-1).",
                      call.function);
        finding.evidence.push_back({"values compared", static_cast<double>(elements(both)), "predictions",
                                    static_cast<double>(elements(given))});
        finding.plots = {{finding.tensor, "value"}};
        sink.fire(std::move(finding));
    }

    static constexpr int kLooks = 3;  // in a row
    std::uint64_t judged_ = 0;
    int repeated_ = 0;
};

std::vector<model::Requirement> loss_shape_broadcast_needs(const Parameters&) {
    std::vector<model::Requirement> all = argument_requirements(kLossShapeBroadcast.name);
    all.push_back({"loop",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 50, .dense_until = 10},
                   kLossShapeBroadcast.name});
    all.push_back({"inputs",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 50, .dense_until = 10},
                   kLossShapeBroadcast.name});
    return all;
}

}  // namespace

RuleEntry builtin::loss_shape_broadcast() {
    return {
        &kLossShapeBroadcast, &loss_shape_broadcast_needs,
        [](const Parameters&) -> std::unique_ptr<Rule> { return std::make_unique<LossShapeBroadcast>(); }};
}

}  // namespace traindbg::rules
