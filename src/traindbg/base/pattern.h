// A regular expression of a user's, searched in names of tensors.
//
// ECMAScript's, which for such names is what Python's is. The time of a search is bounded by pattern times
// text, so that nobody's pattern can stop a training. Thread-safety: const members from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"

namespace traindbg::base {

class Pattern {
  public:
    // kInvalidArgument says what is wrong with it.
    [[nodiscard]] static Result<Pattern> make(const std::string& text);

    // Whether some part of `name` matches. Names of more than 4096 bytes do not.
    [[nodiscard]] bool matches(std::string_view name) const;

  private:
    struct Compiled;
    explicit Pattern(std::shared_ptr<const Compiled> compiled) noexcept : compiled_(std::move(compiled)) {}
    // Shared by copies, never changed.
    std::shared_ptr<const Compiled> compiled_;
};

}  // namespace traindbg::base
