#include "traindbg/storage/object_pieces.h"

#include <charconv>

#include "traindbg/base/format.h"

namespace traindbg::storage {

std::optional<PieceName> parse_piece(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const std::string_view digits = name.substr(dot + 1);
    PieceName piece;
    piece.file = name.substr(0, dot);
    bool grows = false;
    for (const std::string_view suffix : kGrowingSuffixes) grows = grows || piece.file.ends_with(suffix);
    if (!grows || digits.size() < 4 || digits.size() > 9) return std::nullopt;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), piece.index);
    // "00001" would be another name of the piece "0001".
    if (error != std::errc() || end != digits.data() + digits.size() ||
        (digits.size() > 4 && digits.front() == '0'))
        return std::nullopt;
    return piece;
}

std::string piece_name(std::string_view file, std::uint32_t index) {
    return base::format("{}.{:04}", file, index);
}

}  // namespace traindbg::storage
