#include "traindbg/rules/rare_classes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace traindbg::rules {
namespace {

using Classes = std::vector<std::size_t>;

constexpr Rarity kRarity = {.ratio = 8};

ClassTally tally_of(std::vector<std::uint32_t> labels, std::vector<std::uint32_t> predictions,
                    std::vector<std::uint32_t> hits, int times = 1) {
    double all = 0;
    for (const std::uint32_t label : labels) all += label;
    const model::ClassCounts counts = {std::move(labels), std::move(predictions), std::move(hits)};
    ClassTally tally;
    for (int i = 0; i < times; ++i) tally.add(counts, all);
    return tally;
}

TEST(RareClassesTest, ARareClassThatIsNeverFoundIsIgnored) {
    EXPECT_EQ(ignored_classes(tally_of({900, 50}, {950, 0}, {900, 0}), kRarity), Classes{1});
    EXPECT_EQ(ignored_classes(tally_of({900, 50}, {940, 10}, {890, 10}), kRarity), Classes{});
}

TEST(RareClassesTest, AClassThatIsNotRareIsNotIgnored) {
    EXPECT_EQ(ignored_classes(tally_of({900, 150}, {1050, 0}, {900, 0}), kRarity), Classes{});
}

TEST(RareClassesTest, WeightsOfTheLossCountAsLabels) {
    const std::vector<double> even = {1, 18}, few = {1, 2};
    const ClassTally tally = tally_of({900, 50}, {950, 0}, {900, 0});
    EXPECT_EQ(ignored_classes(tally, {.ratio = 8, .weights = even}), Classes{});
    EXPECT_EQ(ignored_classes(tally, {.ratio = 8, .weights = few}), Classes{1});
}

TEST(RareClassesTest, AModelThatTellsNothingApartIgnoresNoClass) {
    EXPECT_EQ(ignored_classes(tally_of({900, 50, 50}, {500, 0, 500}, {450, 0, 25}), kRarity), Classes{});
}

TEST(RareClassesTest, FewSamplesOfAClassDoNotTell) {
    EXPECT_EQ(ignored_classes(tally_of({900, 15}, {915, 0}, {900, 0}), kRarity), Classes{});
}

TEST(RareClassesTest, RareWordsMayBeMissedUnlessOneWordIsAll) {
    std::vector<std::uint32_t> labels(30, 20), none(30, 0), predictions(30, 20), hits(30, 20);
    labels[0] = predictions[0] = hits[0] = 400;
    hits[7] = 0;
    EXPECT_EQ(ignored_classes(tally_of(labels, predictions, hits), kRarity), Classes{});
    none[0] = 400;
    EXPECT_EQ(ignored_classes(tally_of(labels, none, none), kRarity).size(), 29U);
    EXPECT_EQ(ignored_classes(tally_of({900, 50}, {900, 50}, {890, 0}), {.ratio = 8, .are_next = true}),
              Classes{});
}

TEST(RareClassesTest, WhatIsMissedToTheEndIsFoundNoMoreThanBefore) {
    const ClassTally tally = tally_of({900, 100}, {980, 20}, {900, 20}, 5);
    EXPECT_EQ(missed_to_the_end(tally, kRarity, {1, 0.2}), Classes{1});
    EXPECT_EQ(missed_to_the_end(tally, kRarity, {1, 0.1}), Classes{});
    EXPECT_EQ(missed_to_the_end(tally, kRarity, {}), Classes{});
}

TEST(RareClassesTest, ShortTrainingsAreNotJudgedAsAWhole) {
    EXPECT_EQ(missed_to_the_end(tally_of({900, 100}, {980, 20}, {900, 20}), kRarity, {1, 0.2}), Classes{});
}

// Evaluations of the classes "classes/cross_entropy", each after one more training step.
class MissedInEvaluationTest : public testing::Test {
  protected:
    MissedInEvaluationTest() {
        model::TensorInfo& info = tensors_.emplace_back();
        info.name = "classes/cross_entropy";
    }
    void evaluate(std::uint32_t found) {
        model::StepRecord record;
        record.mode = model::Mode::kEval;
        record.classes.push_back({0, {.labels = {90, 20}, .predictions = {90, 20}, .hits = {85, found}}});
        evaluations_.observe({0, &record, &tensors_, &meta_}, "classes/cross_entropy", ++step_);
    }
    [[nodiscard]] Classes missed(bool are_told = false) const {
        return missed_in_evaluation(tally_of({900, 100}, {900, 100}, {900, 100}), evaluations_, kRarity,
                                    are_told);
    }

    model::TensorTable tensors_;
    model::WorkerMeta meta_;
    ClassEvaluations evaluations_;
    model::StepIndex step_ = 0;
};

TEST_F(MissedInEvaluationTest, WhatIsKnownByHeartAlone) {
    evaluate(2);
    evaluate(2);
    EXPECT_EQ(missed(), Classes{1});
}

TEST_F(MissedInEvaluationTest, WhatIsFoundMoreAndMoreIsNotMissedYet) {
    evaluate(1);
    evaluate(4);
    EXPECT_EQ(missed(), Classes{});
    EXPECT_EQ(missed(true), Classes{1});
}

TEST_F(MissedInEvaluationTest, NothingIsMissedBeforeAnEvaluation) { EXPECT_EQ(missed(), Classes{}); }

}  // namespace
}  // namespace traindbg::rules
