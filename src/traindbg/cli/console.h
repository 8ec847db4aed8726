// The two streams of the program: results on standard output, everything else on standard error.
//
// Thread-safety: one thread at a time. Errors: output that cannot be written (a full disk behind a
// redirection) is remembered and makes the program end with code 3.
#pragma once

#include <string>
#include <string_view>

#include "traindbg/base/status.h"

namespace traindbg::cli {

enum class ColourMode { kAuto, kAlways, kNever };
[[nodiscard]] base::Result<ColourMode> parse_colour_mode(std::string_view word);
// --color, else TRAINDBG_COLOR, else NO_COLOR, else whether `is_terminal`. An empty word is "not given".
[[nodiscard]] bool use_colour(std::string_view option, const char* traindbg_color, const char* no_color,
                              const char* term, bool is_terminal);

enum class Style { kPlain, kBold, kDim, kRed, kYellow, kGreen, kCyan };
// `text` in that style, or as it is.
[[nodiscard]] std::string styled(std::string_view text, Style style, bool colour);
// How many columns `text` takes on a terminal: UTF-8 characters, without escape sequences. Wide
// characters count as one.
[[nodiscard]] std::size_t display_width(std::string_view text) noexcept;
// `text`, filled up with blanks to `width` columns.
[[nodiscard]] std::string padded(std::string_view text, std::size_t width, bool right = false);

// `text` in lines of at most `width` columns, broken at blanks, each after the first beginning with
// `indent` blanks more. A longer word has a line of its own.
[[nodiscard]] std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);
// Columns for prose on a terminal: as many as `descriptor` has, at most 100; 100 where it is none.
[[nodiscard]] std::size_t columns_of(int descriptor) noexcept;

// Writes all of `text` to a descriptor; false when that fails. Never raises SIGPIPE by itself.
bool write_all(int descriptor, std::string_view text) noexcept;

class Console {
  public:
    Console();
    // After the options are known.
    void set_colour(std::string_view option);

    [[nodiscard]] bool out_colour() const noexcept { return out_colour_; }
    [[nodiscard]] bool error_colour() const noexcept { return error_colour_; }
    [[nodiscard]] bool error_is_terminal() const noexcept { return error_is_terminal_; }

    [[nodiscard]] std::size_t out_columns() const noexcept;
    [[nodiscard]] std::size_t error_columns() const noexcept;

    // Buffered until the verb ends.
    void out(std::string_view text);
    // At once, whole.
    void error(std::string_view text) const;
    // "traindbg: <message>" and a line end; `message` is one line.
    void complain(std::string_view message) const;
    void warn(std::string_view message) const;

    // Writes what is buffered. False: standard output refused some of it.
    [[nodiscard]] bool flush();

  private:
    std::string buffer_;
    bool out_is_terminal_;
    bool error_is_terminal_;
    bool out_colour_ = false;
    bool error_colour_ = false;
    bool failed_ = false;
};

}  // namespace traindbg::cli
