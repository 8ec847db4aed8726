#include "traindbg/model/checked_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traindbg/base/bytes.h"
#include "traindbg/base/crc32c.h"
#include "traindbg/base/format.h"

namespace traindbg::model {
namespace {

constexpr std::string_view kBefore = "\"crc32c\": \"";
constexpr std::string_view kAfter = "\"\n}\n";
constexpr std::size_t kDigits = 8;
constexpr std::size_t kEndBytes = kBefore.size() + kDigits + kAfter.size();
// An end with no more wrong bytes than this was a checksum's before it was damaged.
constexpr std::size_t kMostWrongBytes = 2;
// Where the end moved because bytes are missing or too many, the key is still near.
constexpr std::size_t kNearEndBytes = 2 * kEndBytes;

std::string digits_of(std::string_view text) {
    return base::format("{:08x}", base::crc32c(base::as_bytes(text)));
}

std::size_t wrong_bytes(std::string_view found, std::string_view wanted) noexcept {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) wrong += found[i] != wanted[i] ? 1 : 0;
    return wrong;
}

}  // namespace

std::string to_checked_text(const nlohmann::ordered_json& object) {
    std::string text = object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    text.resize(object.empty() ? 1 : text.size() - 2);  // without its end: "}", or a line feed and "}"
    text += object.empty() ? "\n  " : ",\n  ";
    const std::string digits = digits_of(text);
    return text.append(kBefore).append(digits).append(kAfter);
}

TextCheck check_text(std::string_view text) {
    const std::string_view near = text.substr(text.size() - std::min(text.size(), kNearEndBytes));
    const bool has_key = near.find(kBefore) != std::string_view::npos;
    if (text.size() < kEndBytes) return has_key ? TextCheck::kDamaged : TextCheck::kUnchecked;
    const std::string_view before = text.substr(0, text.size() - kEndBytes);
    const std::string_view end = text.substr(before.size());
    const std::size_t wrong =
        wrong_bytes(end, kBefore) + wrong_bytes(end.substr(kBefore.size() + kDigits), kAfter);
    if (wrong != 0) return has_key || wrong <= kMostWrongBytes ? TextCheck::kDamaged : TextCheck::kUnchecked;
    return end.substr(kBefore.size(), kDigits) == digits_of(before) ? TextCheck::kWhole : TextCheck::kDamaged;
}

}  // namespace traindbg::model
