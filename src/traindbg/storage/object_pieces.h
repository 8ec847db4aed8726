// How a file that grows is kept in a store of immutable objects: in pieces, "000003.log.0000",
// "000003.log.0001" and so on, each with the next bytes of it. docs/s3.md repeats it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace traindbg::storage {

// What the names of files that grow end with.
inline constexpr std::array<std::string_view, 3> kGrowingSuffixes = {".log", ".blob", ".raw"};

struct PieceName {
    std::string_view file;  // "w0000/000003.log"; borrows the name
    std::uint32_t index = 0;
};
// Of "w0000/000003.log.0001"; nothing for any other name.
[[nodiscard]] std::optional<PieceName> parse_piece(std::string_view name);
[[nodiscard]] std::string piece_name(std::string_view file, std::uint32_t index);

}  // namespace traindbg::storage
