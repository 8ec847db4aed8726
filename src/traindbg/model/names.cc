// The words that stand for the enumerations of the model, in one place: the same word is used in
// C++, Python, JSON, on the command line and in the documentation.
#include <array>

#include "traindbg/model/finding.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/rule_info.h"
#include "traindbg/model/step.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::model {
namespace {

template <typename Enum>
struct Word {
    Enum value;
    std::string_view text;
};

template <typename Enum, std::size_t kSize>
std::string_view word_of(const std::array<Word<Enum>, kSize>& table, Enum value) noexcept {
    for (const Word<Enum>& row : table)
        if (row.value == value) return row.text;
    return "unknown";
}

template <typename Enum, std::size_t kSize>
std::optional<Enum> value_of(const std::array<Word<Enum>, kSize>& table, std::string_view text) noexcept {
    for (const Word<Enum>& row : table)
        if (row.text == text) return row.value;
    return std::nullopt;
}

constexpr std::array kModes = {
    Word<Mode>{Mode::kTrain, "train"},
    Word<Mode>{Mode::kEval, "eval"},
    Word<Mode>{Mode::kPredict, "predict"},
    Word<Mode>{Mode::kGlobal, "global"},
};
constexpr std::array kRoles = {
    Word<Role>{Role::kOther, "other"},
    Word<Role>{Role::kWeight, "weight"},
    Word<Role>{Role::kBias, "bias"},
    Word<Role>{Role::kGradient, "gradient"},
    Word<Role>{Role::kLoss, "loss"},
    Word<Role>{Role::kInput, "input"},
    Word<Role>{Role::kOutput, "output"},
    Word<Role>{Role::kActivation, "activation"},
    Word<Role>{Role::kMetric, "metric"},
    Word<Role>{Role::kClasses, "classes"},
    Word<Role>{Role::kLoop, "loop"},
    Word<Role>{Role::kOptimizerState, "optimizer_state"},
    Word<Role>{Role::kWeightUpdate, "weight_update"},
    Word<Role>{Role::kPrediction, "prediction"},
    Word<Role>{Role::kLabel, "label"},
    Word<Role>{Role::kAttention, "attention"},
    Word<Role>{Role::kGradientBefore, "gradient_before"},
    Word<Role>{Role::kBuffer, "buffer"},
    Word<Role>{Role::kBlockOutput, "block_output"},
};
constexpr std::array kCollections = {
    Word<Role>{Role::kOther, "other"},
    Word<Role>{Role::kWeight, "weights"},
    Word<Role>{Role::kBias, "biases"},
    Word<Role>{Role::kGradient, "gradients"},
    Word<Role>{Role::kLoss, "losses"},
    Word<Role>{Role::kInput, "inputs"},
    Word<Role>{Role::kOutput, "outputs"},
    Word<Role>{Role::kActivation, "activations"},
    Word<Role>{Role::kMetric, "metrics"},
    Word<Role>{Role::kClasses, "classes"},
    Word<Role>{Role::kLoop, "loop"},
    Word<Role>{Role::kOptimizerState, "optimizer_state"},
    Word<Role>{Role::kWeightUpdate, "weight_updates"},
    Word<Role>{Role::kPrediction, "predictions"},
    Word<Role>{Role::kLabel, "labels"},
    Word<Role>{Role::kAttention, "attention_maps"},
    Word<Role>{Role::kGradientBefore, "gradients_before"},
    Word<Role>{Role::kBuffer, "buffers"},
    Word<Role>{Role::kBlockOutput, "block_outputs"},
};
constexpr std::array kOverflowPolicies = {
    Word<OverflowPolicy>{OverflowPolicy::kBlockFor, "block_for"},
    Word<OverflowPolicy>{OverflowPolicy::kDropNewest, "drop_newest"},
    Word<OverflowPolicy>{OverflowPolicy::kKeepReductionsOnly, "keep_reductions_only"},
};
constexpr std::array kCompiledModels = {
    Word<CompiledModels>{CompiledModels::kAuto, "auto"},
    Word<CompiledModels>{CompiledModels::kSkip, "skip"},
    Word<CompiledModels>{CompiledModels::kEager, "eager"},
};
constexpr std::array kMicroBatches = {
    Word<MicroBatches>{MicroBatches::kFirst, "first"},
    Word<MicroBatches>{MicroBatches::kAll, "all"},
};
constexpr std::array kActivations = {
    Word<ActivationKind>{ActivationKind::kNone, "none"},
    Word<ActivationKind>{ActivationKind::kRelu, "relu"},
    Word<ActivationKind>{ActivationKind::kTanh, "tanh"},
    Word<ActivationKind>{ActivationKind::kSigmoid, "sigmoid"},
    Word<ActivationKind>{ActivationKind::kSmooth, "smooth"},
};
constexpr std::array kSeverities = {
    Word<Severity>{Severity::kInfo, "info"},
    Word<Severity>{Severity::kWarning, "warning"},
    Word<Severity>{Severity::kError, "error"},
};
constexpr std::array kFindingStates = {
    Word<FindingState>{FindingState::kPending, "pending"},
    Word<FindingState>{FindingState::kFiring, "firing"},
    Word<FindingState>{FindingState::kResolved, "resolved"},
};
constexpr std::array kCheckStates = {
    Word<CheckState>{CheckState::kNotChecked, "not_checked"},
    Word<CheckState>{CheckState::kClean, "clean"},
    Word<CheckState>{CheckState::kFired, "fired"},
};

}  // namespace

std::string_view to_string(Mode mode) noexcept { return word_of(kModes, mode); }
std::optional<Mode> parse_mode(std::string_view word) noexcept { return value_of(kModes, word); }

std::string_view to_string(OverflowPolicy policy) noexcept { return word_of(kOverflowPolicies, policy); }
std::optional<OverflowPolicy> parse_overflow_policy(std::string_view word) noexcept {
    return value_of(kOverflowPolicies, word);
}

std::string_view to_string(CompiledModels choice) noexcept { return word_of(kCompiledModels, choice); }
std::optional<CompiledModels> parse_compiled_models(std::string_view word) noexcept {
    return value_of(kCompiledModels, word);
}

std::string_view to_string(MicroBatches choice) noexcept { return word_of(kMicroBatches, choice); }
std::optional<MicroBatches> parse_micro_batches(std::string_view word) noexcept {
    return value_of(kMicroBatches, word);
}

std::string_view to_string(Role role) noexcept { return word_of(kRoles, role); }
std::optional<Role> parse_role(std::string_view word) noexcept { return value_of(kRoles, word); }
std::string_view collection_of(Role role) noexcept { return word_of(kCollections, role); }
std::optional<Role> role_of_collection(std::string_view collection) noexcept {
    return value_of(kCollections, collection);
}
bool is_number(const TensorInfo& info) noexcept {
    switch (info.role) {
        case Role::kLoss:
        case Role::kMetric: return true;
        case Role::kLoop:
        case Role::kOptimizerState:
        case Role::kWeightUpdate:
        case Role::kGradientBefore: return info.dtype == tensor::DType::kUnknown && info.shape.empty();
        default: return false;
    }
}
const std::vector<std::string>& builtin_collections() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const auto& row : kCollections) all.emplace_back(row.text);
        return all;
    }();
    return names;
}

std::string_view to_string(ActivationKind kind) noexcept { return word_of(kActivations, kind); }
std::optional<ActivationKind> parse_activation_kind(std::string_view word) noexcept {
    return value_of(kActivations, word);
}

std::string_view to_string(Severity severity) noexcept { return word_of(kSeverities, severity); }
std::optional<Severity> parse_severity(std::string_view word) noexcept { return value_of(kSeverities, word); }
std::string_view to_string(FindingState state) noexcept { return word_of(kFindingStates, state); }
std::string_view to_string(CheckState state) noexcept { return word_of(kCheckStates, state); }
std::optional<FindingState> parse_finding_state(std::string_view word) noexcept {
    return value_of(kFindingStates, word);
}
std::optional<CheckState> parse_check_state(std::string_view word) noexcept {
    return value_of(kCheckStates, word);
}

}  // namespace traindbg::model
