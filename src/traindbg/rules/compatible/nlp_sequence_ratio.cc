// NLPSequenceRatio: sequences in which one token is most of them.

#include <algorithm>

#include "traindbg/base/format.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleNlpSequenceRatio = {
    .name = "NLPSequenceRatio",
    .title = "NLP sequence ratio",
    .summary = "One token, such as that of padding, makes up much of the sequences.",
    .when =
        "At a step, the share of one of `token_values` among the tokens of the inputs that match "
        "`tensor_regex` is more than the percentage of `token_thresholds_percent` at the same place.",
    .why = "Time is spent on padding, and a mean over positions is one over padding.",
    .fix = "Put sequences of like lengths into one batch, pack them, or make them shorter.",
    .healthy = "Short answers in long windows, where padding is masked.",
    .cost = "Whole inputs at every 500th step of training.",
    .original = "NLPSequenceRatio",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"tensor_regex", "", ".*embedding0_input_0", 0, 0, "names of tokens",
                    model::ParameterType::kPatterns},
                   {"token_values", "tokens", "0", 0, 0, "tokens that are counted",
                    model::ParameterType::kNumbers},
                   {"token_thresholds_percent", "%", "50", 0, 0, "largest share of each",
                    model::ParameterType::kNumbers}},
    .readings =
        "As many thresholds as values are wanted; a single one holds for all. The default of `tensor_regex` "
        "also stands for every input of whole numbers of a model, whatever it is called here.",
};

class NLPSequenceRatio final : public CompatibleRule {
  public:
    explicit NLPSequenceRatio(const Parameters& parameters)
        : CompatibleRule("no whole tokens were recorded"),
          selection_({}, parameters.texts("tensor_regex"),
                     is_default(kCompatibleNlpSequenceRatio, parameters, "tensor_regex")
                         ? +[](const model::TensorInfo& info) {
                               return info.role == model::Role::kInput && tensor::is_integer(info.dtype);
                           }
                         : nullptr),
          values_(parameters.numbers("token_values")),
          limits_(parameters.numbers("token_thresholds_percent")) {
        if (limits_.size() == 1) limits_.resize(values_.size(), limits_.front());
        if (limits_.size() != values_.size()) {
            why_not("token_values and token_thresholds_percent do not have one length");
            values_.clear();
        }
    }

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        std::vector<Place> met;
        std::string message;
        for (const model::RawTensor& raw : step.record->raw) {
            if (values_.empty() || !selection_.includes(step, raw.tensor)) continue;
            const auto tokens = values_of(raw);
            if (!tokens || tokens->empty()) continue;
            any = looked(raw.tensor);
            for (std::size_t i = 0; i < values_.size(); ++i) {
                const auto count = std::count(tokens->begin(), tokens->end(), values_[i]);
                const double percent = 100 * static_cast<double>(count) / static_cast<double>(tokens->size());
                if (!(percent > limits_[i])) continue;
                if (met.empty())
                    message = base::format(
                        "{:.1f} % of the tokens of {} are {} at step {}, more than {:.4g} %.", percent,
                        step.info(raw.tensor).name, values_[i], step.step(), limits_[i]);
                met.push_back({raw.tensor, percent});
                break;
            }
        }
        if (!any) return;
        if (met.empty()) return pass(sink);
        model::Finding finding = finding_at(step, met);
        finding.message = std::move(message);
        finding.fix = kCompatibleNlpSequenceRatio.fix;
        finding.evidence.push_back({"share of the token (%)", met.front().value, "", 0});
        fire(sink, std::move(finding));
    }

  private:
    Selection selection_;
    std::vector<double> values_, limits_;
};

std::vector<model::Requirement> compatible_nlp_sequence_ratio_needs(const Parameters&) {
    return {{"inputs",
             model::Mode::kTrain,
             model::What::kStatistics | model::What::kRaw,
             {.every = kSaveInterval},
             kCompatibleNlpSequenceRatio.name}};
}

}  // namespace

RuleEntry nlp_sequence_ratio() {
    return {
        &kCompatibleNlpSequenceRatio, &compatible_nlp_sequence_ratio_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<NLPSequenceRatio>(p); },
        true};
}

}  // namespace traindbg::rules::compatible
