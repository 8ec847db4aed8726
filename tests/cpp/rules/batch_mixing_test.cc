#include "traindbg/rules/batch_mixing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace traindbg::rules {
namespace {

class ClassMixingTest : public testing::Test {
  protected:
    // `labels_at`: of the batch of a step.
    bool is_unmixed(const std::function<std::vector<std::uint32_t>(std::uint32_t)>& labels_at) {
        for (std::uint32_t step = 0; step < 40; ++step) {
            const std::vector<std::uint32_t> labels = labels_at(step);
            const model::ClassCounts counts = {.labels = labels, .predictions = labels, .hits = labels};
            double all = 0;
            for (const std::uint32_t label : counts.labels) all += label;
            mixing_.add(counts, all, step);
            tally_.add(counts, all);
        }
        return mixing_.is_unmixed(tally_);
    }

    ClassMixing mixing_;
    ClassTally tally_;
};

TEST_F(ClassMixingTest, BatchesOfOneClassEachAreNotMixed) {
    EXPECT_TRUE(is_unmixed([](std::uint32_t step) {
        std::vector<std::uint32_t> labels(4, 0);
        labels[step % 4] = 32;
        return labels;
    }));
}

TEST_F(ClassMixingTest, BatchesLikeAllDataAreMixed) {
    EXPECT_FALSE(is_unmixed([](std::uint32_t) { return std::vector<std::uint32_t>{8, 8, 8, 8}; }));
}

TEST_F(ClassMixingTest, BatchesOfFewClassesAreNotMixedWhereTheyAreThoseOfTheStepBefore) {
    EXPECT_TRUE(is_unmixed([](std::uint32_t step) {
        std::vector<std::uint32_t> labels(16, 0);
        labels[step / 5 * 2] = labels[step / 5 * 2 + 1] = 16;
        return labels;
    }));
}

TEST_F(ClassMixingTest, BatchesOfFewClassesOfAnyKindAreMixed) {
    EXPECT_FALSE(is_unmixed([](std::uint32_t step) {
        std::vector<std::uint32_t> labels(16, 0);
        labels[step * 7 % 16] = 16;
        labels[(step * 7 + 5) % 16] += 16;
        return labels;
    }));
}

TEST_F(ClassMixingTest, SmallBatchesTellNothing) {
    EXPECT_FALSE(is_unmixed([](std::uint32_t step) {
        std::vector<std::uint32_t> labels(4, 0);
        labels[step % 4] = 4;
        return labels;
    }));
}

}  // namespace
}  // namespace traindbg::rules
