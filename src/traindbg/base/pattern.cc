#include "traindbg/base/pattern.h"

#include <regex>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::base {
namespace {

// libstdc++ offers a matcher whose time is bounded by pattern times text (no back-references).
constexpr std::regex::flag_type kFlags = std::regex::ECMAScript
#ifdef __GLIBCXX__
                                         | std::regex_constants::__polynomial
#endif
    ;
constexpr std::size_t kLongestName = 4096;

}  // namespace

struct Pattern::Compiled {
    std::regex regex;
};

Result<Pattern> Pattern::make(const std::string& text) {
    try {
        return Pattern(std::make_shared<const Compiled>(Compiled{std::regex(text, kFlags)}));
    } catch (const std::regex_error& error) {
        return Status(Code::kInvalidArgument,
                      format("'{}' is no regular expression ({})", printable(text), error.what()));
    }
}

bool Pattern::matches(std::string_view name) const {
    return name.size() <= kLongestName && std::regex_search(name.begin(), name.end(), compiled_->regex);
}

}  // namespace traindbg::base
