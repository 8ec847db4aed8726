#include "traindbg/capture/row_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "traindbg/capture/number_table.h"

namespace traindbg::capture {
namespace {

// Rows of which the halves are given by number; no number is that of a fingerprint made otherwise. Every
// other value is one of the first half.
RowPrints prints_of(const std::vector<std::int64_t>& halves, const std::vector<std::int64_t>& labels = {}) {
    const auto rows = static_cast<std::int64_t>(halves.size() / 2);
    RowPrints prints(rows, 12);
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i + 1 < halves.size(); i += 2)
        for (const std::int64_t number : {halves[i], halves[i + 1], halves[i]}) numbers.push_back(number);
    EXPECT_TRUE(prints.put_halves(numbers));
    if (!labels.empty()) {
        EXPECT_TRUE(prints.take_labels({labels.data(), tensor::DType::kInt64, {&rows, 1}, {}}));
    }
    return prints;
}

// `count` rows from the row `first` on, all different, of classes that are given for all rows.
RowPrints rows_from(std::int64_t first, std::int64_t count, const std::vector<std::int64_t>& classes = {}) {
    std::vector<std::int64_t> halves;
    std::vector<std::int64_t> labels;
    for (std::int64_t row = first; row < first + count; ++row) {
        for (std::int64_t half : {2 * row, 2 * row + 1})
            halves.push_back(static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(half) + 1)));
        if (!classes.empty()) labels.push_back(classes[static_cast<std::size_t>(row)]);
    }
    return prints_of(halves, labels);
}

TEST(RowMemory, KnowsRowsAgain) {
    RowMemory memory;
    memory.learn(rows_from(0, 40));
    const RowMemory::Found found = memory.find(rows_from(30, 20));
    EXPECT_EQ(found.known, 10);
    EXPECT_EQ(found.half_alike, 0);
    memory.learn(rows_from(20, 40));
    const RowMemory::Figures figures = memory.figures();
    EXPECT_EQ(figures.known, 60);
    EXPECT_EQ(figures.looked_at, 80);
    EXPECT_EQ(figures.pairs, 2 * 40 * 39 / 2);
    EXPECT_EQ(figures.alike, 0);
}

// The rows with a number in a second input, another one for each row from `first` on.
RowPrints with_numbers(RowPrints rows, std::int64_t first) {
    std::vector<std::int64_t> numbers;
    for (std::size_t row = 0; row < rows.size(); ++row)
        numbers.push_back(first + static_cast<std::int64_t>(row));
    EXPECT_TRUE(rows.put_further(numbers));
    return rows;
}

TEST(RowMemory, KnowsRowsAgainByAllTheirInputs) {
    RowMemory memory;
    memory.learn(with_numbers(rows_from(0, 40), 100));
    memory.learn(with_numbers(rows_from(0, 40), 200));  // of the same nodes, say, with other edges
    EXPECT_EQ(memory.figures().known, 80);
    EXPECT_EQ(memory.find(with_numbers(rows_from(0, 40), 100)).known, 40);
    EXPECT_EQ(memory.find(with_numbers(rows_from(0, 40), 300)).known, 0);
    EXPECT_EQ(memory.find(with_numbers(rows_from(0, 40), 300)).half_alike, 40);
    EXPECT_EQ(memory.find(rows_from(0, 40)).known, 40);  // of them, the second input is not known
}

TEST(RowMemory, ASecondInputThatIsMadeAnewEachTimeTellsNothing) {
    RowMemory memory;
    memory.learn(with_numbers(rows_from(0, 40), 100));
    for (std::int64_t pass = 1; pass < 3; ++pass) {
        EXPECT_EQ(memory.find(with_numbers(rows_from(0, 40), 9000)).known, 0);
        memory.learn(with_numbers(rows_from(0, 40), 100 * (pass + 1)));
    }
    EXPECT_EQ(memory.find(with_numbers(rows_from(0, 40), 9000)).known, 40);
}

TEST(RowMemory, ASecondInputCountsWhereFirstOnesAreAlike) {
    std::vector<std::int64_t> kinds;  // eight, each of them in five rows
    for (std::int64_t row = 0; row < 40; ++row) {
        kinds.push_back(100 + row % 8);
        kinds.push_back(200 + row % 8);
    }
    RowMemory memory;
    for (std::int64_t batch = 1; batch < 6; ++batch)
        memory.learn(with_numbers(prints_of(kinds), 1000 * batch));
    EXPECT_EQ(memory.find(with_numbers(prints_of(kinds), 9000)).known, 0);
    EXPECT_EQ(memory.find(with_numbers(prints_of(kinds), 3000)).known, 40);
}

TEST(RowMemory, RowsThatWereTrainedWithoutASecondInput) {
    RowMemory memory;
    memory.learn(rows_from(0, 40));
    EXPECT_EQ(memory.find(with_numbers(rows_from(0, 40), 100)).known, 40);
}

TEST(RowMemory, CountsWhatIsAlikeInOneHalfApart) {
    RowMemory memory;
    memory.learn(prints_of({1, 5, 1, 6, 2, 6, 2, 6}));
    const RowMemory::Figures figures = memory.figures();
    EXPECT_EQ(figures.alike, 1);
    EXPECT_EQ(figures.half_alike, 1);  // 1 pair by the first half, 2 by the second
    const RowMemory::Found found = memory.find(prints_of({2, 5, 1, 5, 3, 5}));
    EXPECT_EQ(found.known, 1);
    EXPECT_EQ(found.half_alike, 1);
}

TEST(RowMemory, CountsWhatIsAlikeInEveryOtherValueWhereTheSecondHalfIsPadding) {
    // The first half, the second and the even one; the odd one is what the first two have beyond that.
    RowPrints rows(4, 12);
    EXPECT_TRUE(rows.put_halves(std::vector<std::int64_t>{31, 9, 5, 41, 9, 5, 52, 9, 6, 32, 9, 6}));
    RowMemory memory;
    memory.learn(rows);
    EXPECT_EQ(memory.figures().alike, 0);
    EXPECT_EQ(memory.figures().half_alike, 1);  // 2 pairs by the even half, 1 by the odd one
    RowPrints others(2, 12);
    EXPECT_TRUE(others.put_halves(std::vector<std::int64_t>{42, 9, 6, 50, 9, 5}));
    EXPECT_EQ(memory.find(others).known, 0);
    EXPECT_EQ(memory.find(others).half_alike, 1);
}

TEST(RowMemory, IsBounded) {
    RowMemory memory;
    for (std::int64_t batch = 0; batch < 400; ++batch) memory.learn(rows_from(64 * batch, 64));
    EXPECT_EQ(memory.figures().known, 16'384);
    EXPECT_EQ(memory.figures().looked_at, 16'384);
    EXPECT_EQ(memory.figures().pairs, 400 * 64 * 63 / 2);
}

TEST(RowMemory, CountsRowsOfAnotherClassThanBefore) {
    std::vector<std::int64_t> classes(64);
    for (std::size_t row = 0; row < classes.size(); ++row) classes[row] = static_cast<std::int64_t>(row % 4);
    RowMemory memory;
    memory.learn(rows_from(0, 64, classes));
    EXPECT_FALSE(memory.relabelled());  // none came again
    memory.learn(rows_from(0, 32, classes));
    EXPECT_FALSE(memory.relabelled());  // too few
    for (std::size_t row = 40; row < 45; ++row) classes[row] = 7;
    memory.learn(rows_from(32, 32, classes));
    const auto found = memory.relabelled();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->again, 64);
    EXPECT_EQ(found->changed, 5);
    EXPECT_DOUBLE_EQ(found->by_chance, 0.75);
}

TEST(RowMemory, RowsThatStandForManyHaveNoClass) {
    RowMemory memory;
    std::vector<std::int64_t> halves;
    for (std::int64_t row = 0; row < 64; ++row) {
        halves.push_back(row / 2);
        halves.push_back(row / 2);
    }
    std::vector<std::int64_t> labels(64, 1);
    for (int times = 0; times < 10; ++times) memory.learn(prints_of(halves, labels));
    EXPECT_FALSE(memory.relabelled());
}

TEST(RowMemory, RowsThatAreAlikeComeAgainByChance) {
    RowMemory memory;
    const auto row = [](std::int64_t number) { return std::vector<std::int64_t>{number, number}; };
    for (std::int64_t batch = 0; batch < 100; ++batch) {
        std::vector<std::int64_t> halves;
        for (std::int64_t i = 0; i < 8; ++i)
            for (const std::int64_t half : row((batch * 3 + i * (i < 7 ? 1 : 0)) % 20))
                halves.push_back(half);
        memory.learn(prints_of(halves, std::vector<std::int64_t>(8, 0)));
    }
    EXPECT_FALSE(memory.relabelled());
}

TEST(RowMemory, AmountsAreNoClasses) {
    RowMemory memory;
    const std::int64_t rows = 64;
    for (int times = 0; times < 3; ++times) {
        RowPrints prints = rows_from(0, rows);
        const std::vector<double> amounts(64, 0.5);
        EXPECT_TRUE(prints.take_labels({amounts.data(), tensor::DType::kFloat64, {&rows, 1}, {}}));
        memory.learn(prints);
    }
    EXPECT_FALSE(memory.relabelled());
}

}  // namespace
}  // namespace traindbg::capture
