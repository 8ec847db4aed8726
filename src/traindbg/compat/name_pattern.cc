#include "traindbg/compat/name_pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::compat {
namespace {

using base::Code;
using base::Result;
using base::Status;
using Matches = bool (*)(std::string_view name);

constexpr auto kNone = std::string_view::npos;

// `word` somewhere in a name that does not begin with "gradient".
bool is_parameter(std::string_view name, std::string_view word) {
    return !name.starts_with("gradient") && name.find(word) != kNone;
}

// From `rest` on no "input" at once, and "output" at any place.
bool is_output(std::string_view rest) { return !rest.starts_with("input") && rest.find("output") != kNone; }

bool is_torch_loss(std::string_view name) {
    constexpr std::string_view kWord = "oss_";
    for (std::size_t at = name.find(kWord, 1); at != kNone; at = name.find(kWord, at + 1))
        if ((name[at - 1] == 'l' || name[at - 1] == 'L') && is_output(name.substr(at + kWord.size())))
            return true;
    return false;
}

bool is_mxnet_loss(std::string_view name) {
    constexpr std::string_view kWord = "loss";
    for (std::size_t at = name.find(kWord); at != kNone; at = name.find(kWord, at + 1)) {
        const std::size_t rest = at + kWord.size() + 2;  // one character of any kind, then `_`
        if (rest <= name.size() && name[rest - 1] == '_' && is_output(name.substr(rest))) return true;
    }
    return false;
}

bool is_keras_weight(std::string_view name) {
    constexpr std::string_view kPrefix = "weights/";
    if (!name.starts_with(kPrefix)) return false;
    const std::size_t slash = name.rfind('/');
    return slash >= kPrefix.size() && name.find("bias", slash + 1) == kNone;
}

bool is_xgboost_loss(std::string_view name) {
    const auto end = std::find_if_not(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'z'; });
    const auto prefix = static_cast<std::size_t>(end - name.begin());
    return prefix != 0 && prefix + 1 < name.size() && name[prefix] == '-' && !name.ends_with("auc") &&
           !name.ends_with("map");
}

constexpr std::array<std::pair<std::string_view, Matches>, 6> kKnown = {{
    {"^(?!gradient).*weight", [](std::string_view name) { return is_parameter(name, "weight"); }},
    {"^(?!gradient).*bias", [](std::string_view name) { return is_parameter(name, "bias"); }},
    {"[Ll]oss_(?!input).*output", is_torch_loss},
    {".*loss._(?!input).*output", is_mxnet_loss},
    {"^weights/.*/((?!bias).)*$", is_keras_weight},
    {"^[a-zA-z]+-.+(?<!(auc|map))$", is_xgboost_loss},
}};

RE2::Options quiet() {
    RE2::Options options;
    options.set_log_errors(false);
    return options;
}

}  // namespace

class NamePattern::Impl {
  public:
    Matches known = nullptr;
    std::unique_ptr<RE2> compiled;  // where it is not known
};

NamePattern::NamePattern(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
NamePattern::NamePattern(NamePattern&& other) noexcept = default;
NamePattern& NamePattern::operator=(NamePattern&& other) noexcept = default;
NamePattern::~NamePattern() = default;

Result<NamePattern> NamePattern::make(const std::string& pattern) {
    auto impl = std::make_unique<Impl>();
    for (const auto& [known, matches] : kKnown)
        if (pattern == known) impl->known = matches;
    if (impl->known == nullptr) {
        impl->compiled = std::make_unique<RE2>(pattern, quiet());
        if (!impl->compiled->ok()) {
            return Status(Code::kUnsupported,
                          base::format("the pattern '{}' cannot be used here: {}", base::printable(pattern),
                                       base::printable(impl->compiled->error())));
        }
    }
    return NamePattern(std::move(impl));
}

bool NamePattern::matches(std::string_view name) const {
    if (impl_->known != nullptr) return impl_->known(name);
    return RE2::PartialMatch(re2::StringPiece(name.data(), name.size()), *impl_->compiled);
}

}  // namespace traindbg::compat
