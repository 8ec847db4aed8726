// The words for what is taken of a tensor (`What`), in one table: in files and settings, and for people.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "traindbg/model/requirement.h"

namespace traindbg::model {

struct WhatWord {
    What bit = What::kNothing;
    std::string_view word;      // in plan.json and settings
    std::string_view in_words;  // for people
    bool is_for_users = false;  // settings may name it; the others follow from what a tensor is
};

namespace internal {

// Has no `default`, so that a bit without words does not compile.
constexpr WhatWord word_of(What bit) noexcept {
    switch (bit) {
        case What::kNothing: break;
        case What::kStatistics: return {bit, "statistics", "statistics", true};
        case What::kUnits: return {bit, "units", "units", false};
        case What::kClasses: return {bit, "classes", "classes", false};
        case What::kRaw: return {bit, "raw", "whole tensors", true};
        case What::kHistogram: return {bit, "histogram", "histograms", true};
        case What::kChannels: return {bit, "channels", "channels", true};
        case What::kDigest: return {bit, "digest", "digests", true};
    }
    return {};
}

constexpr std::size_t kWhatBits = std::numeric_limits<std::underlying_type_t<What>>::digits;
constexpr What what_bit(std::size_t number) noexcept { return static_cast<What>(1U << number); }
constexpr std::size_t count_what_words() noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; i < kWhatBits; ++i) count += word_of(what_bit(i)).word.empty() ? 0 : 1;
    return count;
}

}  // namespace internal

// One row for each bit, in their order.
inline constexpr auto kWhatWords = [] {
    std::array<WhatWord, internal::count_what_words()> words;
    std::size_t count = 0;
    for (std::size_t i = 0; i < internal::kWhatBits; ++i)
        if (const WhatWord row = internal::word_of(internal::what_bit(i)); !row.word.empty())
            words[count++] = row;
    return words;
}();

// "statistics, whole tensors"; "nothing" for none.
[[nodiscard]] std::string what_in_words(What what);

}  // namespace traindbg::model
