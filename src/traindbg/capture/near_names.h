// Names that somebody may have meant by patterns which match none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace traindbg::capture {

// What a pattern says in plain letters: "output/block1" of "^output/block1$", "block1" of
// "^(output|activation)/(.*)(block1)($|@)".
[[nodiscard]] std::string plain_part(std::string_view pattern);

// The nearest of `names` to what each of the patterns says, at most three; none where nothing is near.
[[nodiscard]] std::vector<std::string> names_near(const std::vector<std::string>& patterns,
                                                  std::span<const std::string> names);

}  // namespace traindbg::capture
