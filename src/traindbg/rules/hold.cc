#include "traindbg/rules/hold.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::rules {

using base::Code;
using base::Result;
using base::Status;

Result<Hold> parse_hold(std::string_view text) {
    Hold hold;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, hold.steps);
    if (error == std::errc() && rest == end) return hold;
    const std::optional<std::int64_t> nanos = base::parse_duration(text);
    if (!nanos)
        return Status(Code::kInvalidArgument,
                      base::format("'{}' is neither a number of steps, as 20, nor a time, as 30s",
                                   base::printable(text)));
    return Hold{0, *nanos};
}

bool is_hold(const model::RuleInfo& info, std::string_view name) {
    return name == kHoldParameter &&
           std::none_of(info.parameters.begin(), info.parameters.end(),
                        [&](const model::ParameterInfo& known) { return known.name == name; });
}

Result<Hold> hold_of(const model::RuleInfo& info, const Parameters& given) {
    if (!is_hold(info, kHoldParameter) || !given.contains(kHoldParameter)) return Hold();
    const model::ParameterValue& value = given.value(kHoldParameter);
    const double* number = value.number();
    const bool is_whole =
        number != nullptr && *number >= 0 && *number < 1e18 && *number == std::floor(*number);
    if (is_whole) return Hold{static_cast<std::uint64_t>(*number), 0};
    Result<Hold> hold = parse_hold(model::to_text(value));
    if (hold.is_ok()) return hold;
    return Status(hold.status().code(),
                  base::format("{}.{}: {}", info.name, kHoldParameter, hold.status().message()));
}

}  // namespace traindbg::rules
