// A rule's page in docs/rules/, made from what the rule says about itself.
#pragma once

#include <string>

#include "traindbg/rules/rule.h"

namespace traindbg::rules {

// Markdown, ending with a newline. The same text as `docs/rules/<name>.md`, or
// `docs/rules/compatible/<name>.md`.
[[nodiscard]] std::string rule_page_markdown(const RuleEntry& entry);
// The table of all rules: `docs/rules/README.md`.
[[nodiscard]] std::string rule_index_markdown();
// That of the compatible ones: `docs/rules/compatible/README.md`.
[[nodiscard]] std::string compatible_index_markdown();

}  // namespace traindbg::rules
