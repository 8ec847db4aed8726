#include "traindbg/cli/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/console.h"

namespace traindbg::cli {
namespace {

constexpr std::int64_t kLeastNanosBetween = 200'000'000;
constexpr unsigned short kLeastRows = 4;
constexpr unsigned short kLeastColumns = 20;

// ESC 7 and ESC 8 save and restore the cursor; CSI a;b r sets the rows that scroll (and moves the
// cursor, hence the pair around it); CSI row;1 H moves; CSI 2K clears the row.
std::string release_sequence(unsigned short rows) {
    return base::format(
        "\x1b"
        "7\x1b[r\x1b[{};1H\x1b[2K\x1b"
        "8",
        rows);
}

// For the handler of fatal signals: what to write, made beforehand.
std::array<char, 64> emergency_text{};
std::atomic<std::size_t> emergency_size{0};

void on_fatal_signal(int signal) {
    const std::size_t size = emergency_size.load();
    if (size != 0) {
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, emergency_text.data(), size);
    }
    ::signal(signal, SIG_DFL);
    ::raise(signal);
}

void arm_emergency(unsigned short rows) {
    const std::string text = release_sequence(rows);
    emergency_size = 0;
    std::memcpy(emergency_text.data(), text.data(), std::min(text.size(), emergency_text.size()));
    emergency_size = std::min(text.size(), emergency_text.size());
    static const bool installed = [] {
        for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU, SIGXFSZ})
            ::signal(signal, &on_fatal_signal);
        return true;
    }();
    static_cast<void>(installed);
}

}  // namespace

std::string status_text(const StatusFacts& facts, std::size_t columns) {
    std::vector<std::string> parts;
    parts.push_back("traindbg " + base::printable(facts.run_name));
    if (!facts.note.empty()) parts.push_back(facts.note);
    if (facts.attached) parts.push_back(base::format("step {}", facts.steps));
    else parts.emplace_back("waiting for a model");
    parts.push_back(facts.findings == 0
                        ? "no findings"
                        : base::format("{} finding{}", facts.findings, facts.findings == 1 ? "" : "s"));
    if (facts.loss) parts.push_back("loss " + base::human_number(*facts.loss));
    if (facts.steps_per_second) parts.push_back(base::human_number(*facts.steps_per_second) + " steps/s");
    if (facts.capture_share) parts.push_back(base::format("capture {:.1f} %", *facts.capture_share * 100));

    const auto joined = [&] { return base::join(parts, " | "); };
    std::string text = joined();
    while (display_width(text) > columns && parts.size() > 1) {
        parts.pop_back();
        text = joined();
    }
    while (display_width(text) > columns) text.pop_back();
    // A character cut in its middle.
    while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0xC0) text.pop_back();
    return text;
}

std::unique_ptr<StatusLine> StatusLine::open(bool colour) {
    const char* term = std::getenv("TERM");
    if (term == nullptr || std::string_view(term) == "dumb" || ::isatty(STDERR_FILENO) != 1) return nullptr;
    // A background job must not draw on what the foreground does, nor a process that merely writes to a
    // terminal that belongs to others.
    if (::tcgetpgrp(STDERR_FILENO) != ::getpgrp()) return nullptr;
    std::unique_ptr<StatusLine> line(new StatusLine(colour));
    if (!line->measure()) return nullptr;
    line->claim();
    return line;
}

StatusLine::~StatusLine() { suspend(); }

bool StatusLine::measure() noexcept {
    winsize size{};
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < kLeastRows ||
        size.ws_col < kLeastColumns)
        return false;
    rows_ = size.ws_row;
    columns_ = size.ws_col;
    return true;
}

void StatusLine::claim() {
    active_ = true;
    arm_emergency(rows_);
    // Should the cursor be on the last row, everything moves up by one.
    write_all(STDERR_FILENO, base::format("\n\x1b[A\x1b"
                                          "7\x1b[1;{}r\x1b"
                                          "8",
                                          rows_ - 1));
    draw();
}

void StatusLine::draw() {
    const std::string text = status_text(facts_, columns_ - 1U);
    const Style style = facts_.findings == 0 ? Style::kDim : Style::kYellow;
    write_all(STDERR_FILENO, base::format("\x1b"
                                          "7\x1b[1;{}r\x1b[{};1H\x1b[2K{}\x1b"
                                          "8",
                                          rows_ - 1, rows_, styled(text, style, colour_)));
    drawn_nanos_ = base::monotonic_nanos();
    dirty_ = false;
}

void StatusLine::show(const StatusFacts& facts, bool force) {
    if (!(facts == facts_)) {
        facts_ = facts;
        dirty_ = true;
    }
    if (!active_) return;
    if (force || (dirty_ && base::monotonic_nanos() - drawn_nanos_ >= kLeastNanosBetween)) draw();
}

std::optional<std::int64_t> StatusLine::due_in() const noexcept {
    if (!active_ || !dirty_) return std::nullopt;
    return std::max<std::int64_t>(0, kLeastNanosBetween - (base::monotonic_nanos() - drawn_nanos_));
}

void StatusLine::resized() {
    if (!active_) return;
    const unsigned short old_rows = rows_;
    if (!measure()) {
        suspend();
        return;
    }
    arm_emergency(rows_);
    // In a shorter terminal the cursor may be on the row that is ours now: one up, as when it was
    // claimed. In a taller one the old line may be left standing where it was: to clear it could clear
    // a line of the training's, because some terminals move the text down and some do not.
    if (rows_ <= old_rows) write_all(STDERR_FILENO, "\n\x1b[A");
    draw();
}

void StatusLine::suspend() {
    if (!active_) return;
    write_all(STDERR_FILENO, release_sequence(rows_));
    active_ = false;
    emergency_size = 0;
}

void StatusLine::resume() {
    if (!active_ && measure()) claim();
}

}  // namespace traindbg::cli
