// SaturatedActivation: layers most of whose tanh or sigmoid units are at their flat ends.

#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"
#include "traindbg/rules/compatible/original_names.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleSaturatedActivation = {
    .name = "SaturatedActivation",
    .title = "Saturated activation",
    .summary = "Most tanh or sigmoid units of a layer are saturated.",
    .when =
        "At a step, more than `threshold_layer` % of the units of a layer are saturated: less than "
        "`threshold_inactivity` % of their inputs lie between `threshold_tanh_min` and `threshold_tanh_max`, "
        "of a sigmoid between `threshold_sigmoid_min` and `threshold_sigmoid_max`. The layers are those of "
        "`collection_names` and those whose names match `tensor_regex`.",
    .why = "At the flat ends of the function there is no gradient: what lies before does not learn.",
    .fix = "Scale the inputs, take Xavier initialisation, lower the learning rate, or take another function.",
    .healthy = "Gates and outputs that are meant to be sure. Ours is `saturated_activation`.",
    .cost = "Whole activations at every 500th step of training.",
    .original = "SaturatedActivation",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"collection_names",
                    "",
                    {},
                    0,
                    0,
                    "collections of inputs of tanh and sigmoid",
                    model::ParameterType::kTexts},
                   {"tensor_regex", "", ".*tanh_input|.*sigmoid_input", 0, 0, "their names",
                    model::ParameterType::kPatterns},
                   {"threshold_tanh_min", "input", -9.4999, -1e300, 1e300, "lower end of tanh"},
                   {"threshold_tanh_max", "input", 9.4999, -1e300, 1e300, "upper end of tanh"},
                   {"threshold_sigmoid_min", "input", -23, -1e300, 1e300, "lower end of a sigmoid"},
                   {"threshold_sigmoid_max", "input", 16.99999, -1e300, 1e300, "upper end of a sigmoid"},
                   {"threshold_inactivity", "%", 1, 0, 100,
                    "share of inputs between the ends below which a unit is saturated"},
                   {"threshold_layer", "%", 50, 0, 100, "share of units that must be saturated"}},
    .readings =
        "A unit is a channel. Our hooks see what a function returns, not what it is given: there its outputs "
        "are compared with those of the limits, tanh(`threshold_tanh_max`) and so on, in double precision. "
        "In float32 an input above 9.01 of tanh and above 17.33 of a sigmoid gives the same as any larger "
        "one, so that the first counts as saturated from 9.01 rather than from 9.4999. In runs of the "
        "original its inputs are taken. The default of `tensor_regex` also stands for every tanh and sigmoid "
        "of a model, whatever it is called here.",
};

using model::ActivationKind;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Ends {
    double low = 0;
    double high = 0;
};

class SaturatedActivation final : public CompatibleRule {
  public:
    explicit SaturatedActivation(const Parameters& parameters)
        : CompatibleRule("no input or output of a tanh or sigmoid was recorded whole"),
          selection_(parameters.texts("collection_names"), parameters.texts("tensor_regex"),
                     is_default(kCompatibleSaturatedActivation, parameters, "tensor_regex")
                         ? +[](const model::TensorInfo& info) {
                               return info.activation == ActivationKind::kTanh ||
                                      info.activation == ActivationKind::kSigmoid;
                           }
                         : nullptr),
          tanh_{parameters.at("threshold_tanh_min"), parameters.at("threshold_tanh_max")},
          sigmoid_{parameters.at("threshold_sigmoid_min"), parameters.at("threshold_sigmoid_max")},
          between_(parameters.at("threshold_inactivity")),
          layer_(parameters.at("threshold_layer")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        std::vector<Place> met;
        for (const model::RawTensor& raw : step.record->raw) {
            if (!selection_.includes(step, raw.tensor)) continue;
            const std::optional<Ends> ends = ends_of(step.info(raw.tensor), step.meta->model_type);
            const auto values = ends ? values_of(raw) : std::nullopt;
            if (!values || values->empty()) continue;
            any = looked(raw.tensor);
            const Channels channels(model::Role::kActivation, raw.shape);
            std::vector<std::uint64_t> inside(channels.count()), all(channels.count());
            for (std::size_t i = 0; i < values->size(); ++i) {
                const std::size_t channel = channels.of(i);
                ++all[channel];
                if ((*values)[i] > ends->low && (*values)[i] < ends->high) ++inside[channel];
            }
            std::uint64_t saturated = 0;
            for (std::size_t i = 0; i < all.size(); ++i)
                if (100 * static_cast<double>(inside[i]) < between_ * static_cast<double>(all[i]))
                    ++saturated;
            const double percent = 100 * static_cast<double>(saturated) / static_cast<double>(all.size());
            if (percent > layer_) met.push_back({raw.tensor, percent});
        }
        if (!any) return;
        if (met.empty()) return pass(sink);
        model::Finding finding = finding_at(step, met);
        finding.message =
            base::format("{:.1f} % of the units of {} are saturated at step {}; {} layer{} like this.",
                         met.front().value, finding.layer.empty() ? finding.tensor : finding.layer,
                         step.step(), met.size(), met.size() == 1 ? " is" : "s are");
        finding.fix = kCompatibleSaturatedActivation.fix;
        finding.evidence.push_back({"saturated units (%)", met.front().value, "limit", layer_});
        fire(sink, std::move(finding));
    }

  private:
    // Between which values of this tensor its units are not saturated.
    [[nodiscard]] std::optional<Ends> ends_of(const model::TensorInfo& info, const std::string& root) const {
        const bool is_output = info.role == model::Role::kActivation;
        ActivationKind kind = info.activation;
        if (kind == ActivationKind::kNone) {
            const std::string name = original_name(info, root);
            if (name.find("tanh") != std::string::npos) kind = ActivationKind::kTanh;
            if (name.find("sigmoid") != std::string::npos) kind = ActivationKind::kSigmoid;
        }
        if (kind == ActivationKind::kTanh)
            return is_output ? Ends{std::tanh(tanh_.low), std::tanh(tanh_.high)} : tanh_;
        if (kind == ActivationKind::kSigmoid)
            return is_output ? Ends{sigmoid(sigmoid_.low), sigmoid(sigmoid_.high)} : sigmoid_;
        return std::nullopt;
    }

    Selection selection_;
    Ends tanh_, sigmoid_;
    double between_, layer_;
};

std::vector<model::Requirement> compatible_saturated_activation_needs(const Parameters&) {
    return {{"activations",
             model::Mode::kTrain,
             model::What::kStatistics | model::What::kRaw,
             {.every = kSaveInterval},
             kCompatibleSaturatedActivation.name}};
}

}  // namespace

RuleEntry saturated_activation() {
    return {
        &kCompatibleSaturatedActivation, &compatible_saturated_activation_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<SaturatedActivation>(p); },
        true};
}

}  // namespace traindbg::rules::compatible
