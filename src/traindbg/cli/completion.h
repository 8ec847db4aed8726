// Completion scripts for shells, made from the options that the verbs declare.
#pragma once

#include <string>
#include <vector>

#include "traindbg/options/option_set.h"

namespace traindbg::cli {

using options::Option;

struct CompletionVerbEntry {
    std::string name;  // "rules list"
    std::string summary;
    std::vector<Option> options;  // positional ones among them
    bool takes_command = false;
};
using CompletionTree = std::vector<CompletionVerbEntry>;

// Of all verbs, as their --help shows them.
[[nodiscard]] CompletionTree completion_tree();

[[nodiscard]] std::string bash_completion(const CompletionTree& tree);
[[nodiscard]] std::string zsh_completion(const CompletionTree& tree);
[[nodiscard]] std::string fish_completion(const CompletionTree& tree);

}  // namespace traindbg::cli
