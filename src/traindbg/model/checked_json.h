// The JSON files of a run directory: an object, and behind its members a checksum of the text before it.
//
// docs/format/native.md describes it: the text ends with the 23 bytes `"crc32c": "`, eight hexadecimal
// digits,
// `"`, line feed, `}`, line feed, and the digits are the CRC-32C of all bytes before these. To every other
// program it is a member like any other. A file without it (of an older version, or written by hand) is as
// good for reading; nobody can tell whether it is as it was written.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace traindbg::model {

// `object` must be one. Bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string to_checked_text(const nlohmann::ordered_json& object);

enum class TextCheck : std::uint8_t {
    kWhole,      // every byte is as it was written
    kDamaged,    // the checksum differs, or is itself damaged
    kUnchecked,  // there is none
};
// For kDamaged.
inline constexpr std::string_view kWrongText =
    "the checksum does not match: the file is damaged, or was changed by hand";
[[nodiscard]] TextCheck check_text(std::string_view text);

}  // namespace traindbg::model
