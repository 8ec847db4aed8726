// The shared files of the AWS tools, ~/.aws/config and ~/.aws/credentials: sections of "key = value".
//
//   [profile night]            a section; in `credentials` without "profile"
//   region = eu-west-1
//   s3 =                       a key without a value, and below it, indented, its own keys:
//     addressing_style = path  found as "s3.addressing_style"
//   # a comment, as is "; ..."; both only where a line begins
//
// Thread-safety: plain values. Errors: kInvalidArgument with the number of the line, never its text,
// which may be a secret. Cost: a file of more than 1 MiB is refused.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"

namespace traindbg::aws {

using IniSection = std::map<std::string, std::string>;  // keys in lower case
using IniFile = std::map<std::string, IniSection>;

// `name` is what errors begin with. The last of two equal keys counts.
[[nodiscard]] base::Result<IniFile> parse_ini(std::string_view text, const std::string& name);
// Empty: there is none.
[[nodiscard]] std::string value_of(const IniSection& section, const std::string& key);

}  // namespace traindbg::aws
