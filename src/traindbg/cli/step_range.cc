#include "traindbg/cli/step_range.h"

#include <charconv>
#include <string_view>

#include "traindbg/base/text.h"

namespace traindbg::cli {
namespace {

bool read_step(std::string_view text, model::StepIndex& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

base::Result<StepRange> parse_step_range(const std::string& text) {
    StepRange range;
    if (text.empty()) return range;
    const std::size_t colon = text.find(':');
    const std::string_view first = std::string_view(text).substr(0, colon);
    const std::string_view last =
        colon == std::string::npos ? std::string_view() : std::string_view(text).substr(colon + 1);
    bool good = first.empty() || read_step(first, range.first);
    if (colon == std::string::npos) range.end = range.first == UINT64_MAX ? range.first : range.first + 1;
    else good = good && (last.empty() || read_step(last, range.end));
    if (!good || range.end <= range.first)
        return base::Status(base::Code::kInvalidArgument,
                            "--steps: '" + base::printable(text) +
                                "' is not a range of steps; write A:B (from A up to, not with, B), A: or :B");
    return range;
}

}  // namespace traindbg::cli
