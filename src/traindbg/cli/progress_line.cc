#include "traindbg/cli/progress_line.h"

#include <algorithm>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::cli {
namespace {

constexpr std::int64_t kFirstNanos = 500'000'000;
constexpr std::int64_t kNextNanos = 200'000'000;
constexpr std::string_view kWipe = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine(const Console& console, std::string what, Unit unit, bool quiet)
    : console_(console),
      what_(std::move(what)),
      unit_(unit),
      enabled_(!quiet && console.error_is_terminal()),
      next_nanos_(base::monotonic_nanos() + kFirstNanos) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(std::uint64_t done, std::uint64_t total) {
    if (!enabled_) return;
    const std::int64_t now = base::monotonic_nanos();
    if (now < next_nanos_) return;
    next_nanos_ = now + kNextNanos;
    drawn_ = true;
    const std::string text = progress_text(what_, unit_, done, total);
    console_.error(std::string(kWipe) +
                   text.substr(0, std::max<std::size_t>(console_.error_columns(), 20) - 1));
}

void ProgressLine::clear() {
    if (std::exchange(drawn_, false)) console_.error(kWipe);
}

std::string progress_text(const std::string& what, ProgressLine::Unit unit, std::uint64_t done,
                          std::uint64_t total) {
    const auto amount = [unit](std::uint64_t number) {
        return unit == ProgressLine::Unit::kBytes ? base::human_bytes(number) : base::format("{}", number);
    };
    const std::string_view word = unit == ProgressLine::Unit::kBytes ? "" : " steps";
    if (total == 0) return base::format("{}: {}{}", what, amount(done), word);
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    return base::format("{}: {} % ({} of {}{})", what, static_cast<int>(share * 100), amount(done),
                        amount(total), word);
}

}  // namespace traindbg::cli
