#include "traindbg/compat/smdebug_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace traindbg::compat {
namespace {

using model::ActivationKind;
using model::Role;
using model::TensorInfo;

constexpr auto kNowhere = std::string_view::npos;

constexpr std::array<std::pair<std::string_view, Role>, 8> kCollections = {{
    {"losses", Role::kLoss},
    {"metrics", Role::kMetric},
    {"sm_metrics", Role::kMetric},
    {"gradients", Role::kGradient},
    {"biases", Role::kBias},
    {"weights", Role::kWeight},
    {"inputs", Role::kInput},
    {"outputs", Role::kOutput},
}};
// Collections that every run has, or that say nothing about a tensor.
constexpr std::array<std::string_view, 3> kCommon = {"all", "default", "layers"};

std::string lower(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

// What stands before "_output_3" for `kind` "_output_"; nothing where the name does not end so.
std::optional<std::string_view> before_number(std::string_view name, std::string_view kind) {
    const std::size_t at = name.rfind(kind);
    if (at == kNowhere || at == 0) return std::nullopt;
    const std::string_view number = name.substr(at + kind.size());
    if (number.empty() ||
        !std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; }))
        return std::nullopt;
    return name.substr(0, at);
}

// Module types are not recorded: an activation is known by what its module is called.
ActivationKind activation_of(std::string_view module) {
    const std::size_t dot = module.rfind('.');
    const std::string word = lower(dot == kNowhere ? module : module.substr(dot + 1));
    const auto has = [&](std::string_view part) { return word.find(part) != std::string::npos; };
    for (const std::string_view smooth :
         {"leaky", "prelu", "rrelu", "gelu", "silu", "swish", "selu", "softplus"})
        if (has(smooth)) return ActivationKind::kSmooth;
    if (has("relu")) return ActivationKind::kRelu;
    if (has("sigmoid")) return ActivationKind::kSigmoid;
    if (has("tanh")) return ActivationKind::kTanh;
    return has("elu") ? ActivationKind::kSmooth : ActivationKind::kNone;
}

std::string_view without_gradient(std::string_view name) {
    for (const std::string_view prefix : {"gradient/", "gradients/"})
        if (name.starts_with(prefix)) return name.substr(prefix.size());
    return name;
}

}  // namespace

SmdebugNames::SmdebugNames(const SmdebugRun& run) {
    for (const format::SmdebugCollection& from : run.collections()) {
        if (std::find(kCommon.begin(), kCommon.end(), from.name) != kCommon.end()) continue;
        Collection& to = collections_.emplace_back();
        to.name = from.name;
        to.tensors.insert(from.tensor_names.begin(), from.tensor_names.end());
        for (const std::string& text : from.include_regex)
            if (auto pattern = NamePattern::make(text)) to.patterns.push_back(std::move(*pattern));
    }
    // The root has an output of its own, and its parameters begin with its name; or a common beginning of
    // all parameters has to do.
    std::vector<std::string> parameters;
    std::vector<std::string> modules;
    for (const std::string& name : run.tensor_names()) {
        const std::string_view plain = without_gradient(name);
        if (before_number(plain, "_output_")) modules.emplace_back(*before_number(plain, "_output_"));
        else if (before_number(plain, "_input_")) modules.emplace_back(*before_number(plain, "_input_"));
        else if (plain.ends_with(".weight") || plain.ends_with(".bias")) parameters.emplace_back(plain);
    }
    const auto is_root = [&](const std::string& module) {
        return !parameters.empty() &&
               std::all_of(parameters.begin(), parameters.end(),
                           [&](const std::string& name) { return name.starts_with(module + "_"); });
    };
    const auto found = std::find_if(modules.begin(), modules.end(), is_root);
    if (found != modules.end()) root_ = *found;
    else if (!parameters.empty()) {
        const std::string first = parameters.front().substr(0, parameters.front().find('_'));
        if (is_root(first)) root_ = first;
    }
}

TensorInfo SmdebugNames::describe(std::string_view name) const {
    TensorInfo info;
    info.name = std::string(name);
    std::optional<Role> role;
    for (const Collection& collection : collections_) {
        if (!collection.tensors.contains(name) &&
            std::none_of(collection.patterns.begin(), collection.patterns.end(),
                         [&](const NamePattern& pattern) { return pattern.matches(name); }))
            continue;
        const auto known = std::find_if(kCollections.begin(), kCollections.end(),
                                        [&](const auto& row) { return row.first == collection.name; });
        if (known == kCollections.end()) info.collections.push_back(collection.name);
        else if (!role) role = known->second;
    }

    const std::string_view plain = without_gradient(name);
    const auto output = before_number(plain, "_output_");
    const auto input = before_number(plain, "_input_");
    if (name.starts_with("scalar/")) {
        role = Role::kMetric;
    } else if (plain.size() != name.size()) {
        if (!role) role = Role::kGradient;
    } else if (output) {
        const bool is_loss = lower(*output).ends_with("loss");
        if (!role) role = is_loss ? Role::kLoss : Role::kOutput;
        info.module = std::string(*output);
        if (*role == Role::kOutput) {
            info.activation = activation_of(*output);
            if (info.activation != ActivationKind::kNone) role = Role::kActivation;
        }
    } else if (input) {
        if (!role && *input == root_) role = Role::kInput;
        info.module = std::string(*input);
    } else if (!role) {
        if (name == "loss" || name == "val_loss") role = Role::kLoss;
        else if (name.ends_with(".weight")) role = Role::kWeight;
        else if (name.ends_with(".bias")) role = Role::kBias;
    }
    info.role = role.value_or(Role::kOther);

    if (info.role == Role::kWeight || info.role == Role::kBias || info.role == Role::kGradient) {
        std::string_view path = plain;
        if (!root_.empty() && path.starts_with(root_ + "_")) path.remove_prefix(root_.size() + 1);
        const std::size_t end = path.find('/') != kNowhere ? path.find('/') : path.rfind('.');
        info.module = std::string(end == kNowhere ? path : path.substr(0, end));
    }
    return info;
}

}  // namespace traindbg::compat
