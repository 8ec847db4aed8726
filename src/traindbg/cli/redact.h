// Takes secrets out of a command line before it is written anywhere.
//
// What is taken for a secret: the value of an argument whose name speaks of a secret, token,
// password, credential, API key or session (`--api-key X`, `--api-key=X`, `hydra.token=X`), the user
// part of an URL, and anything that looks like an AWS access key id. Rather one too many than one
// too few: the command line in a run is for people to recognise it by.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace traindbg::cli {

inline constexpr std::string_view kRedacted = "[redacted]";

[[nodiscard]] std::vector<std::string> redacted(const std::vector<std::string>& command);
// Whether an argument of this name holds something secret: "--aws_secret_access_key".
[[nodiscard]] bool names_a_secret(std::string_view name);

}  // namespace traindbg::cli
