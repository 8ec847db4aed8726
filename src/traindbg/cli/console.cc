#include "traindbg/cli/console.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "traindbg/base/text.h"

namespace traindbg::cli {

base::Result<ColourMode> parse_colour_mode(std::string_view word) {
    if (word == "auto" || word.empty()) return ColourMode::kAuto;
    if (word == "always") return ColourMode::kAlways;
    if (word == "never") return ColourMode::kNever;
    return base::Status(base::Code::kInvalidArgument,
                        "colour: '" + base::printable(word) + "' is none of auto, always, never");
}

bool use_colour(std::string_view option, const char* traindbg_color, const char* no_color, const char* term,
                bool is_terminal) {
    for (const std::string_view word :
         {option, std::string_view(traindbg_color != nullptr ? traindbg_color : "")}) {
        const auto mode = parse_colour_mode(word);
        if (!mode.is_ok() || *mode == ColourMode::kAuto) {
            if (word == "auto") break;  // asked for: NO_COLOR and the terminal decide
            continue;
        }
        return *mode == ColourMode::kAlways;
    }
    if (no_color != nullptr && *no_color != '\0') return false;
    if (term != nullptr && std::string_view(term) == "dumb") return false;
    return is_terminal;
}

std::string styled(std::string_view text, Style style, bool colour) {
    const char* code = nullptr;
    switch (style) {
        case Style::kPlain: break;
        case Style::kBold: code = "1"; break;
        case Style::kDim: code = "2"; break;
        case Style::kRed: code = "31"; break;
        case Style::kYellow: code = "33"; break;
        case Style::kGreen: code = "32"; break;
        case Style::kCyan: code = "36"; break;
    }
    if (!colour || code == nullptr || text.empty()) return std::string(text);
    std::string out = "\x1b[";
    out += code;
    out += 'm';
    out += text;
    out += "\x1b[0m";
    return out;
}

std::size_t display_width(std::string_view text) noexcept {
    std::size_t width = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        if (byte == 0x1B && i + 1 < text.size() && text[i + 1] == '[') {
            i += 2;
            while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
            continue;
        }
        if ((byte & 0xC0) != 0x80) ++width;
    }
    return width;
}

std::string padded(std::string_view text, std::size_t width, bool right) {
    const std::size_t have = display_width(text);
    const std::string blanks(have < width ? width - have : 0, ' ');
    return right ? blanks + std::string(text) : std::string(text) + blanks;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
    std::string out;
    std::size_t used = 0;
    while (!text.empty()) {
        std::size_t space = text.find(' ');
        // A per cent stays with its number.
        if (space != std::string_view::npos && text.substr(space + 1, 1) == "%")
            space = text.find(' ', space + 1);
        const std::string_view word = text.substr(0, space);
        if (used != 0 && used + 1 + display_width(word) > width) {
            out += "\n" + std::string(indent, ' ');
            used = 0;
        } else if (used != 0) {
            out += ' ';
            ++used;
        }
        out += word;
        used += display_width(word);
        text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    }
    return out;
}

std::size_t columns_of(int descriptor) noexcept {
    constexpr std::size_t kMost = 100;
    winsize size{};
    if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kMost;
    return std::min<std::size_t>(size.ws_col, kMost);
}

bool write_all(int descriptor, std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t written = ::write(descriptor, text.data(), text.size());
        if (written > 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
            continue;
        }
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 &&
            errno == EAGAIN) {  // somebody made our terminal non-blocking: wait, but not for ever
            pollfd waiting{descriptor, POLLOUT, 0};
            if (::poll(&waiting, 1, 1000) > 0) continue;
        }
        return false;
    }
    return true;
}

Console::Console()
    : out_is_terminal_(::isatty(STDOUT_FILENO) == 1), error_is_terminal_(::isatty(STDERR_FILENO) == 1) {
    set_colour("");
}

void Console::set_colour(std::string_view option) {
    const char* own = std::getenv("TRAINDBG_COLOR");
    const char* none = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    out_colour_ = use_colour(option, own, none, term, out_is_terminal_);
    error_colour_ = use_colour(option, own, none, term, error_is_terminal_);
}

std::size_t Console::out_columns() const noexcept { return columns_of(STDOUT_FILENO); }
std::size_t Console::error_columns() const noexcept { return columns_of(STDERR_FILENO); }

void Console::out(std::string_view text) {
    buffer_ += text;
    constexpr std::size_t kMostBuffered = 1 << 20;
    if (buffer_.size() > kMostBuffered) static_cast<void>(flush());
}

void Console::error(std::string_view text) const { static_cast<void>(write_all(STDERR_FILENO, text)); }

void Console::complain(std::string_view message) const {
    error(styled("traindbg:", Style::kRed, error_colour_) + " " + std::string(message) + "\n");
}

void Console::warn(std::string_view message) const {
    error(styled("traindbg: warning:", Style::kYellow, error_colour_) + " " + std::string(message) + "\n");
}

bool Console::flush() {
    if (!buffer_.empty() && !write_all(STDOUT_FILENO, buffer_)) failed_ = true;
    buffer_.clear();
    return !failed_;
}

}  // namespace traindbg::cli
