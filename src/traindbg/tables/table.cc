#include "traindbg/tables/table.h"

#include "traindbg/base/text.h"

namespace traindbg::tables {
namespace {

// Length of the UTF-8 character at the beginning of `text`; 0: it is none.
std::size_t character_bytes(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    if (first < 0x80) return 1;
    const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
    const bool surrogate = first == 0xED && byte(1) > 0x9F;
    const bool beyond = first == 0xF4 && byte(1) > 0x8F;
    return overlong || surrogate || beyond ? 0 : size;
}

}  // namespace

void Texts::add(std::string_view text) {
    while (!text.empty()) {
        const std::size_t size = character_bytes(text);
        if (size == 0) bytes += "\xEF\xBF\xBD";  // U+FFFD: consumers trust that this is UTF-8
        else bytes.append(text.substr(0, size));
        text.remove_prefix(size == 0 ? 1 : size);
    }
    offsets.push_back(static_cast<std::int32_t>(bytes.size()));
}

std::int32_t Dictionary::number_of(std::string_view text) {
    const auto [entry, is_new] = numbers_.emplace(text, static_cast<std::int32_t>(texts_.size()));
    if (is_new) texts_.add(text);
    return entry->second;
}

std::shared_ptr<const Texts> Dictionary::snapshot() {
    if (!last_ || last_->size() != texts_.size()) last_ = std::make_shared<const Texts>(texts_);
    return last_;
}

std::size_t width_of(Type type) noexcept {
    switch (type) {
        case Type::kUInt32:
        case Type::kInt32:
        case Type::kWord: return 4;
        case Type::kUInt64:
        case Type::kInt64:
        case Type::kDouble:
        case Type::kTime: return 8;
        case Type::kText:
        case Type::kInt64List:
        case Type::kTextList: break;
    }
    return 0;
}

void Column::end_row(bool valid) {
    const std::size_t row = rows++;
    if (valid && validity.empty()) return;
    if (validity.empty()) validity.assign(row / 8 + 1, 0xFF);
    if (validity.size() <= row / 8) validity.push_back(0xFF);
    if (valid) return;
    ++nulls;
    validity[row / 8] = static_cast<std::uint8_t>(validity[row / 8] & ~(1U << (row % 8)));
}

void Column::add_text(std::string_view text) {
    texts.add(text);
    end_row(true);
}

void Column::add_list(const std::vector<std::int64_t>& list) {
    const std::size_t at = values.size();
    values.resize(at + list.size() * sizeof(std::int64_t));
    if (!list.empty()) std::memcpy(values.data() + at, list.data(), list.size() * sizeof(std::int64_t));
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(list.size()));
    end_row(true);
}

void Column::add_list(const std::vector<std::string>& list) {
    for (const std::string& text : list) texts.add(text);
    offsets.push_back(offsets.back() + static_cast<std::int32_t>(list.size()));
    end_row(true);
}

void Column::add_null() {
    if (type == Type::kText) texts.add({});
    else if (!offsets.empty()) offsets.push_back(offsets.back());
    else values.resize(values.size() + width_of(type));
    end_row(false);
}

}  // namespace traindbg::tables
