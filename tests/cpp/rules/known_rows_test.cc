#include "traindbg/rules/known_rows.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace traindbg::rules {
namespace {

// What is known after a step that tells these facts.
KnownRows rows_told(const std::vector<std::pair<std::string, double>>& facts) {
    model::TensorTable tensors;
    model::StepRecord record;
    for (const auto& [name, value] : facts) {
        record.scalars.push_back({static_cast<model::TensorId>(tensors.size()), value});
        model::TensorInfo& info = tensors.emplace_back();
        info.name = "loop/" + name;
        info.role = model::Role::kLoop;
    }
    const model::WorkerMeta meta;
    KnownRows rows;
    rows.observe({0, &record, &tensors, &meta});
    return rows;
}

TEST(KnownRowsTest, RowsThatHardlyComeAgainAreOthersEachTime) {
    EXPECT_TRUE(rows_told({{"rows_known", 600}, {"rows_looked_at", 600}}).are_others());
    EXPECT_FALSE(rows_told({{"rows_known", 300}, {"rows_looked_at", 600}}).are_others());
    EXPECT_FALSE(rows_told({{"rows_known", 400}, {"rows_looked_at", 400}}).are_others());
}

TEST(KnownRowsTest, RowsOfWhichNothingIsLeftAreOneThatComesOften) {
    // A third of them is alike: of pairs a ninth.
    EXPECT_TRUE(
        rows_told({{"rows_known", 400}, {"rows_looked_at", 600}, {"rows_pairs", 900}, {"rows_alike", 100}})
            .are_others());
    EXPECT_FALSE(
        rows_told({{"rows_known", 400}, {"rows_looked_at", 600}, {"rows_pairs", 900}, {"rows_alike", 1}})
            .are_others());
}

TEST(KnownRowsTest, TheSameRowsAreEvaluatedAgain) {
    EXPECT_FALSE(rows_told({{"rows_unscored_of", 64}, {"rows_unscored_again", 1}}).are_evaluated_again());
    const KnownRows rows = rows_told({{"rows_unscored_of", 64}, {"rows_unscored_again", 2}});
    EXPECT_TRUE(rows.are_evaluated_again());
    EXPECT_EQ(rows.evaluated(), 64);
}

}  // namespace
}  // namespace traindbg::rules
