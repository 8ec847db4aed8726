// The files of a new rule: one that works, its scenarios, a page that says what to do next.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"

namespace traindbg::extend {

enum class RuleKind : std::uint8_t { kPython, kCpp };

// A file of templates/, or the interface of plugins: "cpp/CMakeLists.txt". In its path and its text @NAME@,
// @TITLE@,
// @CLASS@ stand for the rule's.
struct Template {
    std::string_view path;
    std::string_view text;
};
[[nodiscard]] std::span<const Template> templates() noexcept;

// Writes the files of a rule called `name` into `directory`, which must not be there or be empty; gives their
// paths. kInvalidArgument: no name for a rule; kAlreadyExists: nothing is overwritten; else what the system
// said.
[[nodiscard]] base::Result<std::vector<std::string>> write_new_rule(const std::string& name, RuleKind kind,
                                                                    const std::string& directory);

}  // namespace traindbg::extend
