// HTML as text, escaped by construction: only string literals of ours go in through `raw`.
#pragma once

#include <string>
#include <string_view>

namespace traindbg::report {

class Markup {
  public:
    // Markup that we wrote ourselves, never text that came from a training.
    Markup& raw(std::string_view markup) {
        out_ += markup;
        return *this;
    }
    // Any text: made printable and escaped for element content and quoted attributes.
    Markup& text(std::string_view text);
    // <name class="classes">content</name>; no class attribute when `classes` is empty.
    Markup& element(std::string_view name, std::string_view content, std::string_view classes = {});
    // Text in which `backticks` mark code.
    Markup& rich(std::string_view content);
    // A paragraph per line; lines that are indented, assign or call become a block of code.
    Markup& paragraphs(std::string_view content, std::string_view classes = {});
    // A path or tensor name: cut by style where it is too long, with its full text as title.
    Markup& name(std::string_view content);

    [[nodiscard]] const std::string& str() const noexcept { return out_; }

  private:
    std::string out_;
};

}  // namespace traindbg::report
