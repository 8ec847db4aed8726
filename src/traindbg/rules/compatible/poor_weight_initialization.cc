// PoorWeightInitialization: what the first steps tell of how the weights began.

#include <algorithm>
#include <cmath>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/histogram.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatiblePoorWeightInitialization = {
    .name = "PoorWeightInitialization",
    .title = "Poor weight initialization",
    .summary = "The weights were initialised badly.",
    .when =
        "At a step below `steps`: the variance of the inputs of one layer, of those whose names match "
        "`activation_inputs_regex`, is more than `threshold` times that of another; or of a gradient the "
        "distance from the 5th to the 95th percentile is less than `distribution_range`; or the loss has had "
        "no new best for `patience` steps.",
    .why =
        "Signals that grow or shrink from layer to layer, gradients that are all alike, and a loss that does "
        "not move at the start come from weights that are too large, too small or equal.",
    .fix = "Take He initialisation before ReLU, Xavier before tanh and sigmoid; normalise the inputs.",
    .healthy =
        "Variances that differ tenfold are usual in healthy nets. Ours judge activations, gradients and loss "
        "apart.",
    .cost =
        "Statistics of outputs and activations and histograms of gradients at the first step and at every "
        "500th; the losses at every step below `steps`.",
    .original = "PoorWeightInitialization",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"activation_inputs_regex", "", ".*relu_input", 0, 0, "names of inputs of activations",
                    model::ParameterType::kPattern},
                   {"threshold", "ratio", 10, 0, 1e300, "largest ratio of two layers' variances"},
                   {"distribution_range", "gradient", 0.001, 0, 1e300, "least distance of the percentiles"},
                   {"patience", "steps", 5, 1, 1e9, "steps without a new best loss",
                    model::ParameterType::kWhole},
                   {"steps", "steps", 10, 0, 1e9, "steps that are judged"}},
    .readings =
        "The original gives the first condition the name of the third: `threshold` is of the ratio of "
        "variances. Steps count from 0; `steps` is documented as a float. Inputs of ReLUs: our hooks see "
        "outputs, so the input of a ReLU is the output that came before it in the order of the forward pass "
        "and has its shape. Percentiles are those of a histogram, within 3 % of what they are, or of the "
        "whole gradient where it was recorded.",
};

class PoorWeightInitialization final : public CompatibleRule {
  public:
    explicit PoorWeightInitialization(const Parameters& parameters)
        : CompatibleRule("none of the first steps was recorded"),
          selection_({}, {parameters.text("activation_inputs_regex")}),
          stands_for_all_(
              is_default(kCompatiblePoorWeightInitialization, parameters, "activation_inputs_regex")),
          ratio_(parameters.at("threshold")),
          range_(parameters.at("distribution_range")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))),
          steps_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain || static_cast<double>(step.step()) >= steps_) return;
        bool any = look_at_variances(step, sink);
        any = look_at_gradients(step, sink) || any;
        any = look_at_loss(step, sink) || any;
        if (any && !fired_) pass(sink);
    }

  private:
    // Once any of the conditions held, it holds: what the first steps tell does not change later.
    void found(FindingSink& sink, model::Finding finding) {
        if (std::exchange(fired_, true)) return;
        finding.fix = kCompatiblePoorWeightInitialization.fix;
        fire(sink, std::move(finding));
    }

    // The output that the activation `of` was given, as far as order and shape tell.
    const model::TensorSample* input_of(const model::StepView& step, const model::TensorInfo& of) const {
        const model::TensorSample* best = nullptr;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kOutput && info.role != model::Role::kActivation) continue;
            if (info.layer < 0 || info.layer >= of.layer || info.shape != of.shape) continue;
            if (best == nullptr || info.layer > step.info(best->tensor).layer) best = &sample;
        }
        return best;
    }

    bool look_at_variances(const model::StepView& step, FindingSink& sink) {
        std::vector<Place> layers;
        const auto add = [&](const model::TensorSample& sample) {
            const model::Statistics& s = sample.statistics;
            if (s.count > 0 && s.not_finite() == 0 && !std::isnan(s.std))
                layers.push_back({sample.tensor, s.std * s.std});
        };
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (selection_.includes(step, sample.tensor)) add(sample);
            else if (stands_for_all_ && info.activation == model::ActivationKind::kRelu && info.layer >= 0)
                if (const model::TensorSample* input = input_of(step, info)) add(*input);
        }
        if (layers.size() < 2) return false;
        const auto [least, most] = std::minmax_element(
            layers.begin(), layers.end(), [](const Place& a, const Place& b) { return a.value < b.value; });
        if (!(most->value > ratio_ * least->value)) return true;
        model::Finding finding = finding_at(step, {*most, *least});
        finding.message = base::format(
            "The variance of {} is {} at step {} and that of {} {}, more than {:.3g} times that.",
            finding.tensor, base::human_number(most->value), step.step(), step.info(least->tensor).name,
            base::human_number(least->value), ratio_);
        finding.evidence.push_back({"largest variance", most->value, "smallest", least->value});
        found(sink, std::move(finding));
        return true;
    }

    static std::optional<double> distance(const model::StepView& step, model::TensorId tensor) {
        if (const model::RawTensor* raw = raw_of(*step.record, tensor)) {
            auto values = values_of(*raw);
            if (!values || values->empty()) return std::nullopt;
            std::sort(values->begin(), values->end());
            const auto at = [&](double share) {  // as numpy.percentile: between its neighbours in proportion
                const double place = share * static_cast<double>(values->size() - 1);
                const auto below = static_cast<std::size_t>(place);
                const std::size_t above = std::min(below + 1, values->size() - 1);
                return (*values)[below] +
                       (place - static_cast<double>(below)) * ((*values)[above] - (*values)[below]);
            };
            return at(0.95) - at(0.05);
        }
        for (const model::HistogramSample& histogram : step.record->histograms)
            if (histogram.tensor == tensor) {
                const auto low = model::quantile(histogram.bins, 0.05);
                const auto high = model::quantile(histogram.bins, 0.95);
                if (low && high) return *high - *low;
            }
        return std::nullopt;
    }

    bool look_at_gradients(const model::StepView& step, FindingSink& sink) {
        std::optional<Place> least;
        for (const model::TensorSample& sample : step.record->tensors) {
            if (step.info(sample.tensor).role != model::Role::kGradient) continue;
            const std::optional<double> width = distance(step, sample.tensor);
            if (width && (!least || *width < least->value)) least = {sample.tensor, *width};
        }
        if (!least) return false;
        if (!(least->value < range_)) return true;
        model::Finding finding = finding_at(step, {*least});
        finding.message = base::format(
            "From the 5th to the 95th percentile {} has a width of {} at step {}, less than {}.",
            finding.tensor, base::human_number(least->value), step.step(), base::human_number(range_));
        finding.evidence.push_back({"width of the gradient", least->value, "limit", range_});
        found(sink, std::move(finding));
        return true;
    }

    bool look_at_loss(const model::StepView& step, FindingSink& sink) {
        for (const Number& loss : numbers_of(step)) {
            if (step.info(loss.tensor).role != model::Role::kLoss) continue;
            if (!best_ || loss.value < *best_) {
                best_ = loss.value;
                since_ = 0;
            } else if (++since_ >= patience_) {
                model::Finding finding = finding_at(step, {{loss.tensor, loss.value}});
                finding.message = base::format(
                    "The loss is {} at step {} and has had no new best for {} steps: that is {}.",
                    base::human_number(loss.value), step.step(), since_, base::human_number(*best_));
                finding.evidence.push_back({"loss", loss.value, "best", *best_});
                finding.plots = {{finding.tensor, "value"}};
                found(sink, std::move(finding));
            }
            return true;
        }
        return false;
    }

    Selection selection_;
    bool stands_for_all_;
    double ratio_, range_;
    std::uint64_t patience_;
    double steps_;
    std::optional<double> best_;
    std::uint64_t since_ = 0;
    bool fired_ = false;
};

std::vector<model::Requirement> compatible_poor_weight_initialization_needs(const Parameters& parameters) {
    const auto steps = static_cast<std::uint64_t>(parameters.at("steps"));
    const model::Schedule schedule{.every = kSaveInterval};
    return {{"activations", model::Mode::kTrain, model::What::kStatistics, schedule,
             kCompatiblePoorWeightInitialization.name},
            {"outputs", model::Mode::kTrain, model::What::kStatistics, schedule,
             kCompatiblePoorWeightInitialization.name},
            {"gradients", model::Mode::kTrain, model::What::kStatistics | model::What::kHistogram, schedule,
             kCompatiblePoorWeightInitialization.name},
            {"losses",
             model::Mode::kTrain,
             model::What::kStatistics,
             {.every = kSaveInterval, .dense_until = steps},
             kCompatiblePoorWeightInitialization.name}};
}

}  // namespace

RuleEntry poor_weight_initialization() {
    return {&kCompatiblePoorWeightInitialization, &compatible_poor_weight_initialization_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<PoorWeightInitialization>(p);
            },
            true};
}

}  // namespace traindbg::rules::compatible
