// What stands behind the "?" of a target, as in smtp://host?to=me@example.org&tls=off.
//
// Thread-safety: free functions. Errors: kInvalidArgument names the option, never its value, which may be
// secret.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"

namespace traindbg::actions {

struct Target {
    std::string_view name;                                    // what stands before the "?"
    std::map<std::string, std::string, std::less<>> options;  // decoded

    // Empty: it was not given.
    [[nodiscard]] std::string option(std::string_view name) const;
};

// %XX is decoded; "+" is a plus, as in an address. An option that is not `known`, or given twice, is an
// error.
[[nodiscard]] base::Result<Target> parse_target(std::string_view text, std::span<const std::string> known);

// Without blanks at its ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);

// %XX alone. False: it is not well-formed, or holds a zero.
[[nodiscard]] bool percent_decoded(std::string_view text, std::string& out);

// Of env:NAME or @FILE (its first line): what is secret and hence stands somewhere else.
[[nodiscard]] bool is_reference(std::string_view text) noexcept;
[[nodiscard]] base::Result<std::string> dereference(std::string_view text);

}  // namespace traindbg::actions
