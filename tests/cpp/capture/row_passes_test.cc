#include "traindbg/capture/row_passes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace traindbg::capture {
namespace {

// A batch of rows that are known by numbers; each has `changes`, and a label if there are some.
RowPrints numbered(const std::vector<std::int64_t>& numbers, const std::vector<std::int64_t>& labels = {},
                   std::int64_t changes = 9) {
    const auto rows = static_cast<std::int64_t>(numbers.size());
    RowPrints prints(rows, 12);
    std::vector<std::int64_t> halves;
    for (const std::int64_t number : numbers)
        for (const std::int64_t half : {number * 1'000'003, number * 998'244'353, number * 1'000'003})
            halves.push_back(half);
    EXPECT_TRUE(prints.put_halves(halves));
    EXPECT_TRUE(prints.put_changes(std::vector<std::int64_t>(numbers.size(), changes)));
    if (!labels.empty()) {
        EXPECT_TRUE(prints.take_labels({labels.data(), tensor::DType::kInt64, {&rows, 1}, {}}));
    }
    return prints;
}

TEST(RowPasses, CountRowsThatCameBeforeInThePass) {
    RowPasses passes;
    EXPECT_FALSE(passes.told());
    passes.batch({.of = {1, 12}, .step = 4, .size = 4}, numbered({1, 2, 3, 4}));
    passes.batch({.of = {1, 12}, .step = 5, .size = 4}, numbered({5, 6, 3, 7}));
    const auto told = passes.told();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->looked_at, 8);
    EXPECT_EQ(told->of, 12);
    EXPECT_EQ(told->again, 1);
    EXPECT_EQ(told->most, 2);
    EXPECT_EQ(told->distinct, 7);
    EXPECT_DOUBLE_EQ(told->effective, 8.0 * 8 / (6 * 1 + 2 * 2));
    EXPECT_EQ(told->half_again, 0);
    EXPECT_EQ(told->before_step, 4);
    EXPECT_EQ(told->before, 2);
    EXPECT_EQ(told->again_step, 5);
    EXPECT_EQ(told->again_place, 2);
}

TEST(RowPasses, CompareClassesOfRowsThatComeAgain) {
    RowPasses passes;
    passes.batch({.of = {1, 12}, .step = 0, .size = 4, .are_classes = true},
                 numbered({1, 2, 3, 4}, {0, 1, -100, 0}));
    passes.batch({.of = {1, 12}, .step = 1, .size = 4, .are_classes = true},
                 numbered({5, 6, 7, 1}, {0, 1, 0, 1}));
    passes.batch({.of = {1, 12}, .step = 2, .size = 4, .are_classes = true},
                 numbered({8, 2, 9, 3}, {0, 1, 0, 1}));
    const auto told = passes.told();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->again, 3);
    EXPECT_EQ(told->labelled, 2);  // of the third the class is not known
    EXPECT_EQ(told->contradicting, 1);
    EXPECT_DOUBLE_EQ(told->by_chance, 1 - (6.0 * 6 + 5 * 5) / (11 * 11));
}

TEST(RowPasses, WeighTheRowsOfEachClassAlone) {
    RowPasses passes;
    // Of class 0 each row comes once, of class 1 each three times, of class 2 one four times and one once.
    passes.batch({.of = {1, 12}, .step = 0, .size = 4, .are_classes = true},
                 numbered({1, 2, 3, 11}, {0, 0, 0, 1}));
    passes.batch({.of = {1, 12}, .step = 1, .size = 4, .are_classes = true},
                 numbered({11, 11, 21, 21}, {1, 1, 2, 2}));
    ASSERT_TRUE(passes.told());
    EXPECT_DOUBLE_EQ(passes.told()->effective_in_class, 3.0 + 1 + 1);
    passes.batch({.of = {1, 12}, .step = 2, .size = 4, .are_classes = true},
                 numbered({21, 21, 22, 4}, {2, 2, 2, 0}));
    const auto told = passes.told();
    EXPECT_EQ(told->distinct_in_class, 7);
    EXPECT_DOUBLE_EQ(told->effective_in_class, 4 + 1 + 5.0 * 5 / (4 * 4 + 1));
}

TEST(RowPasses, AmountsAreNoClasses) {
    RowPasses passes;
    for (std::int64_t step = 0; step < 3; ++step)
        passes.batch({.of = {1, 12}, .step = step, .size = 4},
                     numbered({step, 10 + step, 20 + step, 0}, {0, 1, 1, step}));
    ASSERT_TRUE(passes.told());
    EXPECT_EQ(passes.told()->again, 3);
    EXPECT_EQ(passes.told()->labelled, 0);
    EXPECT_EQ(passes.told()->by_chance, 0);
}

TEST(RowPasses, TellOfThePassOfWhichMostWasSeen) {
    RowPasses passes;
    for (std::int64_t step = 0; step < 3; ++step)
        passes.batch({.of = {1, 12}, .step = step, .size = 4},
                     numbered({1, 10 + step, 20 + step, 30 + step}));
    passes.batch({.of = {2, 12}, .step = 3, .size = 4}, numbered({1, 2, 3, 4}));
    const auto told = passes.told();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->looked_at, 12);
    EXPECT_EQ(told->again, 2);
}

TEST(RowPasses, WhatGoesOnAfterThePassIsNotOfIt) {
    RowPasses passes;
    for (std::int64_t step = 0; step < 6; ++step)
        passes.batch({.of = {1, 8}, .step = step, .size = 4},
                     numbered({step % 2, 10 + step % 2, 20 + step, 30 + step}));
    ASSERT_TRUE(passes.told());
    EXPECT_EQ(passes.told()->looked_at, 8);
    EXPECT_EQ(passes.told()->again, 0);
}

TEST(RowPasses, ABatchThatIsGivenOnceMoreHasNoCopies) {
    RowPasses passes;
    for (std::int64_t step = 0; step < 3; ++step)
        passes.batch({.of = {1, 100}, .step = step, .size = 4}, numbered({1, 2, 3, 40 + step}));
    ASSERT_TRUE(passes.told());
    EXPECT_EQ(passes.told()->looked_at, 4);
    EXPECT_EQ(passes.told()->again, 0);
}

TEST(RowPasses, RowsOfHardlyMoreThanAValueDoNotCount) {
    RowPasses passes;
    for (std::int64_t step = 0; step < 3; ++step)
        passes.batch({.of = {1, 100}, .step = step, .size = 4}, numbered({1, 1, 1, 1}, {}, 5));
    ASSERT_TRUE(passes.told());
    EXPECT_EQ(passes.told()->looked_at, 12);
    EXPECT_EQ(passes.told()->again, 0);
}

TEST(RowPasses, OfWhatIsNotWhollySeenNothingIsTold) {
    RowPasses passes;
    passes.batch({.of = {1, 100}, .step = 0, .size = 4}, numbered({1, 2, 3, 4}));
    passes.unknown();
    passes.batch({.of = {1, 100}, .step = 1, .size = 4}, numbered({5, 6, 7, 8}));
    EXPECT_FALSE(passes.told());
}

TEST(RowPasses, AreBounded) {
    RowPasses passes;
    std::vector<std::int64_t> numbers(64);
    for (std::int64_t step = 0; step < 2000; ++step) {
        for (std::int64_t i = 0; i < 64; ++i) numbers[static_cast<std::size_t>(i)] = 64 * step + i;
        passes.batch({.of = {1, 1'000'000}, .step = step, .size = 64}, numbered(numbers));
    }
    ASSERT_TRUE(passes.told());
    EXPECT_EQ(passes.told()->looked_at, 16'384);
}

}  // namespace
}  // namespace traindbg::capture
