#include "traindbg/settings/original_names.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/pattern.h"
#include "traindbg/model/loss_classes.h"

namespace traindbg::settings {
namespace {

constexpr auto kNowhere = std::string_view::npos;
constexpr const char* kOfModel = "^output/model($|@)";  // what the model itself returns

// What the original's losses have, and what that is here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kOfLosses = {
    {{"_output_0", "loss"}, {"_input_0", "prediction"}, {"_input_1", "label"}}};

// Calls `visit(at)` for each place that is in no group, class or escape, until it says true.
template <typename Visit>
std::size_t find_outside(std::string_view pattern, const Visit& visit) {
    std::size_t depth = 0;
    bool is_in_class = false;
    for (std::size_t at = 0; at < pattern.size(); ++at) {
        const char c = pattern[at];
        if (depth == 0 && !is_in_class && visit(at)) return at;
        if (c == '\\') ++at;
        else if (is_in_class) is_in_class = c != ']';
        else if (c == '[') is_in_class = true;
        else if (c == '(') ++depth;
        else if (c == ')' && depth > 0) --depth;
    }
    return kNowhere;
}

std::vector<std::string> branches_of(std::string_view pattern) {
    std::vector<std::string> out;
    for (;;) {
        const std::size_t bar = find_outside(pattern, [&](std::size_t at) { return pattern[at] == '|'; });
        out.emplace_back(pattern.substr(0, bar));
        if (bar == kNowhere) return out;
        pattern.remove_prefix(bar + 1);
    }
}

bool matches(const std::string& pattern, std::string_view name) {
    const auto compiled = base::Pattern::make(pattern);
    return compiled.is_ok() && compiled->matches(name);
}

// What stands before `word` and after it, where it stands for itself.
std::optional<std::pair<std::string, std::string>> around(std::string_view branch, std::string_view word) {
    const std::size_t at =
        find_outside(branch, [&](std::size_t i) { return branch.substr(i).starts_with(word); });
    if (at == kNowhere) return std::nullopt;
    return std::pair(std::string(branch.substr(0, at)), std::string(branch.substr(at + word.size())));
}

// Where it begins with the name of a class and `_`, what comes after that.
std::optional<std::string> behind_class(std::string_view branch) {
    if (branch.empty() || branch.front() < 'A' || branch.front() > 'Z') return std::nullopt;
    const auto is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    const auto end =
        static_cast<std::size_t>(std::find_if_not(branch.begin(), branch.end(), is_letter) - branch.begin());
    if (end == branch.size() || branch[end] != '_') return std::nullopt;
    return std::string(branch.substr(end + 1));
}

// Losses, and what they were given.
bool add_losses(const std::string& branch, std::vector<std::string>& out) {
    bool is_any = false;
    for (const auto& [suffix, role] : kOfLosses) {
        std::vector<std::string> found;
        for (const auto& [type, function] : model::kLossClasses)
            if (matches(branch, std::string(type) + std::string(suffix)))
                found.push_back(base::format("^{}/{}($|[.@])", role, function));
        if (found.empty()) continue;
        is_any = true;
        if (found.size() == model::kLossClasses.size()) out.push_back(base::format("^{}/", role));
        else out.insert(out.end(), found.begin(), found.end());
    }
    return is_any;
}

std::string_view add_branch(std::string branch, std::vector<std::string>& out) {
    const bool is_of_loss = add_losses(branch, out);
    const bool is_anchored = branch.starts_with('^');
    if (is_anchored) branch.erase(0, 1);
    if (const auto output = around(branch, "_output")) {
        auto [module, rest] = *output;
        if (!matches("^_output" + rest, "_output_0"))
            return "other outputs of a module than the first one of its first call";
        const std::optional<std::string> behind = behind_class(module + "_");
        if (is_of_loss && behind) return {};  // of nothing but the loss
        if (behind && behind->empty() && !module.ends_with("Loss")) out.emplace_back(kOfModel);
        if (module.empty()) out.emplace_back("^(output|activation)/");
        else if (is_anchored) out.push_back(base::format("^(output|activation)/({})($|@)", module));
        else out.push_back(base::format("^(output|activation)/(.*)({})($|@)", module));
        return {};
    }
    if (const auto input = around(branch, "_input")) {
        const bool is_all = input->first.empty() || input->first == ".*";
        if (is_all) out.emplace_back("^input/");
        return is_all || is_of_loss
                   ? std::string_view()
                   : "inputs of modules inside of the model (its own are the collection 'inputs')";
    }
    constexpr std::string_view kGradient = "gradient/";
    if (branch.starts_with(kGradient)) {
        if (const auto rest = behind_class(std::string_view(branch).substr(kGradient.size())))
            out.push_back("^gradient/" + *rest);
    } else if (const auto rest = behind_class(branch)) {
        out.push_back("^(weight|bias)/" + *rest);
    }
    return {};
}

}  // namespace

OurPatterns in_our_names(const std::string& pattern) {
    OurPatterns out;
    if (!base::Pattern::make(pattern).is_ok()) return out;
    for (std::string& branch : branches_of(pattern)) {
        const std::string_view missing = add_branch(std::move(branch), out.patterns);
        if (out.missing.empty()) out.missing = missing;
    }
    return out;
}

}  // namespace traindbg::settings
