#include "traindbg/rules/compatible/original_names.h"

#include <algorithm>
#include <optional>

#include "traindbg/model/loss_classes.h"

namespace traindbg::rules::compatible {
namespace {

using model::Role;
using model::TensorInfo;

// What is behind our prefix, as "fc1.weight" of "weight/fc1.weight"; nothing of a name without it.
std::optional<std::string> behind(const TensorInfo& info) {
    const std::string prefix = std::string(model::to_string(info.role)) + "/";
    if (!info.name.starts_with(prefix)) return std::nullopt;
    return info.name.substr(prefix.size());
}

// What we alone record of a training.
bool is_of_ours(Role role) {
    return role == Role::kLoop || role == Role::kClasses || role == Role::kWeightUpdate ||
           role == Role::kGradientBefore || role == Role::kBuffer || role == Role::kOptimizerState;
}

// What a loss is called there: after its class. Ours may be told apart by a number, as "cross_entropy@2".
std::string_view loss_class(const TensorInfo& info, std::string_view path) {
    if (!info.module_type.empty()) return info.module_type;
    const std::string_view function = path.substr(0, path.find_first_of(".@"));
    const auto known = std::find_if(model::kLossClasses.begin(), model::kLossClasses.end(),
                                    [&](const auto& row) { return row.second == function; });
    return known == model::kLossClasses.end() ? path : known->first;
}

bool holds(const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string original_name(const TensorInfo& info, const std::string& root) {
    const std::optional<std::string> path = behind(info);
    if (!path) return info.name;
    const std::string parameter = root.empty() ? *path : root + "_" + *path;
    switch (info.role) {
        case Role::kWeight:
        case Role::kBias: return parameter;
        case Role::kGradient: return "gradient/" + parameter;
        case Role::kBlockOutput: return (*path == "model" && !root.empty() ? root : *path) + "_output_0";
        case Role::kOutput:
        case Role::kActivation: return *path + "_output_0";
        case Role::kInput: return root + "_input_" + *path;
        case Role::kLoss: return std::string(loss_class(info, *path)) + "_output_0";
        case Role::kPrediction: return "predictions";
        case Role::kLabel: return "labels";
        default: return info.name;
    }
}

std::vector<std::string_view> original_collections(const TensorInfo& info) {
    std::vector<std::string_view> names;
    if (!is_of_ours(info.role)) names = {"all", "default"};
    if (info.activation == model::ActivationKind::kRelu) names.emplace_back("relu_output");
    if (info.role == Role::kActivation) names.insert(names.end(), {"outputs", "layers"});
    if (info.role == Role::kOptimizerState) names.emplace_back("optimizer_variables");
    return names;
}

bool is_in_collection(const TensorInfo& info, std::string_view collection) {
    return holds(info.collections, collection) || model::collection_of(info.role) == collection ||
           holds(original_collections(info), collection);
}

}  // namespace traindbg::rules::compatible
