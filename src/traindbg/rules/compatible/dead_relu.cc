// DeadRelu: layers most of whose ReLU units are never active.

#include <algorithm>

#include "traindbg/base/format.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleDeadRelu = {
    .name = "DeadRelu",
    .title = "Dead ReLU",
    .summary = "Most ReLU units of a layer are hardly ever active.",
    .when =
        "At a step, more than `threshold_layer` % of the units of a layer whose name matches `tensor_regex` "
        "are above 0 for less than `threshold_inactivity` % of the values that they had.",
    .why = "A unit that is 0 for all samples has no gradient and does not come back.",
    .fix = "Lower the learning rate, initialise biases at 0, take He initialisation or LeakyReLU.",
    .healthy =
        "It looks at one batch at a time: a sparse layer with small batches fires. Ours is `dead_relu`, "
        "which looks at several batches.",
    .cost = "The channels of activations at every 500th step of training.",
    .original = "DeadRelu",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"tensor_regex", "", ".*relu_output", 0, 0, "names of outputs of ReLUs",
                    model::ParameterType::kPatterns},
                   {"threshold_inactivity", "%", 1, 0, 100,
                    "share of values above 0 below which a unit is dead"},
                   {"threshold_layer", "%", 50, 0, 100, "share of units that must be dead"}},
    .readings =
        "A unit is a channel (a column of a linear layer), its values are those of the batch and of all "
        "places. The default of `tensor_regex` also stands for every ReLU of a model, whatever it is called "
        "here. Where only units that are never active were counted, these are taken for the units below "
        "`threshold_inactivity`.",
};

class DeadRelu final : public CompatibleRule {
  public:
    explicit DeadRelu(const Parameters& parameters)
        : CompatibleRule("no output of a ReLU was recorded"),
          selection_({}, parameters.texts("tensor_regex"),
                     is_default(kCompatibleDeadRelu, parameters, "tensor_regex")
                         ? +[](const model::TensorInfo&
                                   info) { return info.activation == model::ActivationKind::kRelu; }
                         : nullptr),
          active_(parameters.at("threshold_inactivity")),
          layer_(parameters.at("threshold_layer")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        std::vector<Place> met;
        const auto look = [&](model::TensorId tensor, std::size_t dead, std::size_t units) {
            if (units == 0) return;
            any = looked(tensor);
            const double percent = 100 * static_cast<double>(dead) / static_cast<double>(units);
            if (percent > layer_) met.push_back({tensor, percent});
        };
        for (const model::ChannelSample& sample : step.record->channels)
            if (selection_.includes(step, sample.tensor)) {
                const std::vector<float>& zero = sample.channels.zero;
                const auto dead = std::count_if(zero.begin(), zero.end(),
                                                [&](float share) { return 100 * (1.0 - share) < active_; });
                look(sample.tensor, static_cast<std::size_t>(dead), zero.size());
            }
        for (const model::TensorSample& sample : step.record->tensors) {
            if (sample.units.units == 0 || has_channels(*step.record, sample.tensor)) continue;
            if (!selection_.includes(step, sample.tensor)) continue;
            // Of a whole tensor the shares are known, else only which units had no value above 0.
            const model::RawTensor* raw = raw_of(*step.record, sample.tensor);
            std::size_t dead = active_ > 0 ? sample.units.inactive_units : 0;
            std::size_t units = sample.units.units;
            if (const auto values = raw == nullptr ? std::nullopt : values_of(*raw)) {
                const Channels channels(step.info(sample.tensor).role, raw->shape);
                std::vector<std::uint64_t> above(channels.count()), all(channels.count());
                for (std::size_t i = 0; i < values->size(); ++i) {
                    ++all[channels.of(i)];
                    if ((*values)[i] > 0) ++above[channels.of(i)];
                }
                units = channels.count();
                dead = 0;
                for (std::size_t i = 0; i < units; ++i)
                    if (100 * static_cast<double>(above[i]) < active_ * static_cast<double>(all[i])) ++dead;
            }
            look(sample.tensor, dead, units);
        }
        if (!any) return;
        if (met.empty()) return pass(sink);
        model::Finding finding = finding_at(step, met);
        finding.message = base::format(
            "{:.1f} % of the units of {} are active for less than {:.3g} % of step {}'s values; {} layer{} "
            "like this.",
            met.front().value, finding.layer.empty() ? finding.tensor : finding.layer, active_, step.step(),
            met.size(), met.size() == 1 ? " is" : "s are");
        finding.fix = kCompatibleDeadRelu.fix;
        finding.evidence.push_back({"dead units (%)", met.front().value, "limit", layer_});
        fire(sink, std::move(finding));
    }

  private:
    static bool has_channels(const model::StepRecord& record, model::TensorId tensor) {
        return std::any_of(record.channels.begin(), record.channels.end(),
                           [&](const model::ChannelSample& sample) { return sample.tensor == tensor; });
    }

    Selection selection_;
    double active_, layer_;
};

std::vector<model::Requirement> compatible_dead_relu_needs(const Parameters&) {
    return {{"activations",
             model::Mode::kTrain,
             model::What::kStatistics | model::What::kChannels,
             {.every = kSaveInterval},
             kCompatibleDeadRelu.name}};
}

}  // namespace

RuleEntry dead_relu() {
    return {&kCompatibleDeadRelu, &compatible_dead_relu_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<DeadRelu>(p); }, true};
}

}  // namespace traindbg::rules::compatible
