#include "traindbg/capture/number_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <unordered_map>

namespace traindbg::capture {
namespace {

TEST(NumberTable, HoldsWhatAMapHolds) {
    NumberTable<std::uint64_t> table;
    std::unordered_map<std::uint64_t, std::uint64_t> expected;
    EXPECT_FALSE(table.has(0));
    std::uint64_t state = 1;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
        state = mixed(state + i);
        const std::uint64_t number = i % 2 == 0 ? i / 4 : state % 3'000;
        const auto [value, is_new] = table.insert(number);
        EXPECT_EQ(is_new, expected.count(number) == 0);
        *value += i;
        expected[number] += i;
    }
    ASSERT_EQ(table.size(), expected.size());
    for (const auto& [number, value] : expected) {
        ASSERT_NE(table.find(number), nullptr);
        EXPECT_EQ(*table.find(number), value);
    }
    EXPECT_FALSE(table.has(1'000'000));
}

TEST(NumberTable, IsEmptyAgainWhenCleared) {
    NumberTable<int> table;
    for (std::uint64_t number : {0U, 1U, 0xFFFFFFFFU}) *table.insert(number).first = 7;
    table.clear();
    EXPECT_EQ(table.size(), 0U);
    EXPECT_FALSE(table.has(0));
    const auto [value, is_new] = table.insert(1);
    EXPECT_TRUE(is_new);
    EXPECT_EQ(*value, 0);
}

TEST(NumberTable, NumbersAFewBitsApartAreApart) {
    NumberSet numbers;
    for (unsigned bit = 0; bit < 64; ++bit)
        for (unsigned other = 0; other < 64; ++other)
            numbers.insert((std::uint64_t{1} << bit) | (std::uint64_t{1} << other));
    EXPECT_EQ(numbers.size(), 64U * 65U / 2U);
}

}  // namespace
}  // namespace traindbg::capture
