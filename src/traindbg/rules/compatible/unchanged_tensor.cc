// UnchangedTensor: a tensor that is the same at several steps.

#include <cmath>
#include <map>

#include "traindbg/base/format.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleUnchangedTensor = {
    .name = "UnchangedTensor",
    .title = "Unchanged tensor",
    .summary = "A tensor no longer changes.",
    .when =
        "Over the last `num_steps` steps at which it was recorded, each value of a tensor is within `atol` + "
        "`rtol` times the absolute value of what it is one such step later (numpy.allclose); NaN equals NaN "
        "if `equal_nan` is true. The tensors are those of `collection_names` and those whose names match "
        "`tensor_regex`; with neither, all that were recorded.",
    .why = "Weights that stand still do not learn; outputs that do not change do not depend on the inputs.",
    .fix =
        "Look for layers that are frozen or are not in the optimizer, for a learning rate of zero, for dead "
        "units.",
    .healthy = "It knows none: frozen layers, buffers and inputs that are meant to be the same fire.",
    .cost =
        "Nothing by itself but the losses at every 500th step; collections that `collection_names` names "
        "whole at every 500th step of training. What else is recorded whole is judged, too.",
    .original = "UnchangedTensor",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters =
        [] {
            std::vector<model::ParameterInfo> all = selection_parameters();
            all.push_back({"num_steps", "steps", 3, 2, 1e9, "recorded steps over which it must be the same",
                           model::ParameterType::kWhole});
            all.push_back({"rtol", "ratio", 1e-5, 0, 1e300, "relative tolerance"});
            all.push_back({"atol", "value", 1e-8, 0, 1e300, "absolute tolerance"});
            all.push_back(
                {"equal_nan", "", false, 0, 0, "NaN is the same as NaN", model::ParameterType::kFlag});
            return all;
        }(),
    .readings =
        "Each step is compared with the one recorded before it, not the first of them with the last. Whole "
        "tensors are needed; statistics that are equal prove nothing. Numbers (losses, metrics) are tensors "
        "of one element.",
};

class UnchangedTensor final : public CompatibleRule {
  public:
    explicit UnchangedTensor(const Parameters& parameters)
        : CompatibleRule("no tensor that it inspects was recorded whole at `num_steps` steps"),
          selection_(parameters),
          steps_(static_cast<std::uint64_t>(parameters.at("num_steps"))),
          relative_(parameters.at("rtol")),
          absolute_(parameters.at("atol")),
          equal_nan_(parameters.flag("equal_nan")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        std::vector<Place> met;
        const auto look = [&](model::TensorId tensor, std::vector<double> values) {
            Last& last = last_[tensor];
            const bool is_same = last.steps > 0 && is_close(last.values, values);
            ++last.steps;
            last.same = is_same ? last.same + 1 : 1;
            last.values = std::move(values);
            if (last.steps < steps_) return;
            any = looked(tensor);
            if (last.same >= steps_) met.push_back({tensor, static_cast<double>(last.same)});
        };
        for (const model::RawTensor& raw : step.record->raw)
            if (selection_.includes(step, raw.tensor))
                if (auto values = values_of(raw)) look(raw.tensor, std::move(*values));
        for (const model::ScalarSample& scalar : step.record->scalars)
            if (selection_.includes(step, scalar.tensor)) look(scalar.tensor, {scalar.value});
        if (!any) return;
        if (met.empty()) return pass(sink);
        model::Finding finding = finding_at(step, met);
        finding.message = base::format(
            "{} was the same at the last {:.0f} recorded steps up to {}; {} tensor{} like this.",
            finding.tensor, met.front().value, step.step(), met.size(), met.size() == 1 ? " is" : "s are");
        finding.fix = kCompatibleUnchangedTensor.fix;
        finding.evidence.push_back(
            {"steps without a change", met.front().value, "limit", static_cast<double>(steps_)});
        fire(sink, std::move(finding));
    }

  private:
    struct Last {
        std::vector<double> values;
        std::uint64_t steps = 0;  // at which it was seen
        std::uint64_t same = 0;   // of them in a row with these values
    };

    // numpy.allclose(before, now): |before - now| <= atol + rtol * |now|.
    [[nodiscard]] bool is_close(const std::vector<double>& before, const std::vector<double>& now) const {
        if (before.size() != now.size()) return false;
        for (std::size_t i = 0; i < now.size(); ++i) {
            const double a = before[i], b = now[i];
            if (std::isnan(a) || std::isnan(b)) {
                if (!(equal_nan_ && std::isnan(a) && std::isnan(b))) return false;
            } else if (std::isinf(a) || std::isinf(b)) {
                if (a != b) return false;
            } else if (!(std::abs(a - b) <= absolute_ + relative_ * std::abs(b))) {
                return false;
            }
        }
        return true;
    }

    Selection selection_;
    std::uint64_t steps_;
    double relative_, absolute_;
    bool equal_nan_;
    std::map<model::TensorId, Last> last_;  // one step's values
};

std::vector<model::Requirement> compatible_unchanged_tensor_needs(const Parameters& parameters) {
    return selection_requirements(parameters, kCompatibleUnchangedTensor.name,
                                  model::What::kStatistics | model::What::kRaw);
}

}  // namespace

RuleEntry unchanged_tensor() {
    return {&kCompatibleUnchangedTensor, &compatible_unchanged_tensor_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<UnchangedTensor>(p); },
            true};
}

}  // namespace traindbg::rules::compatible
