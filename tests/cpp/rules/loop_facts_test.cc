#include "traindbg/rules/loop_facts.h"

#include <gtest/gtest.h>

#include "traindbg/model/step_source.h"

namespace traindbg::rules {
namespace {

class LoopFactsTest : public testing::Test {
  protected:
    void tell(const std::string& name, double value, model::Role role = model::Role::kLoop) {
        model::TensorInfo info;
        info.id = static_cast<model::TensorId>(tensors_.size());
        info.name = name;
        info.role = role;
        tensors_.push_back(info);
        record_.scalars.push_back({info.id, value});
    }
    [[nodiscard]] model::StepView view() const { return {0, &record_, &tensors_, &meta_}; }

    model::StepRecord record_;
    model::TensorTable tensors_;
    model::WorkerMeta meta_;
};

TEST_F(LoopFactsTest, AFactIsFoundWithItsPlace) {
    tell("loop/not_in_optimizer_fresh", 1);
    tell("loop/not_in_optimizer/head.0", 2);
    const auto fact = loop_fact(view(), "not_in_optimizer");
    ASSERT_TRUE(fact);
    EXPECT_EQ(fact->value, 2);
    EXPECT_EQ(fact->place, "head.0");
    EXPECT_EQ(fact->tensor, "loop/not_in_optimizer/head.0");
    EXPECT_EQ(and_more(*fact), " (head.0 and 1 more)");
}

TEST_F(LoopFactsTest, AFactWithoutAPlaceIsFoundToo) {
    tell("loop/backward_passes", 4);
    const auto fact = loop_fact(view(), "backward_passes");
    ASSERT_TRUE(fact);
    EXPECT_EQ(fact->value, 4);
    EXPECT_EQ(and_more(*fact), "");
}

TEST_F(LoopFactsTest, AFactOfSeveralPlacesIsFoundAtEachOfThem) {
    tell("loop/output_size/encoder", 3);
    tell("loop/output_sizes/encoder", 4);
    tell("loop/output_size/model.1", 5);
    const auto facts = loop_facts(view(), "output_size");
    ASSERT_EQ(facts.size(), 2U);
    EXPECT_EQ(facts[0].place, "encoder");
    EXPECT_EQ(facts[1].place, "model.1");
    EXPECT_EQ(facts[1].value, 5);
    EXPECT_TRUE(loop_facts(view(), "output_deviation").empty());
}

TEST_F(LoopFactsTest, NumbersOfOtherRolesAndLongerNamesAreNotMeant) {
    tell("loop/backward_passes", 4, model::Role::kMetric);
    tell("loop/backward_passes_more", 4);
    EXPECT_FALSE(loop_fact(view(), "backward_passes"));
}

TEST(InARowTest, AStepThatDoesNotShowItBeginsAnew) {
    model::StepRecord record;
    const model::TensorTable tensors;
    const model::WorkerMeta meta;
    InARow seen(2);
    for (const bool shows : {true, false, true, true}) {
        seen.add({0, &record, &tensors, &meta}, shows);
        ++record.step;
    }
    EXPECT_TRUE(seen.is_enough());
    EXPECT_EQ(seen.count(), 2U);
    EXPECT_EQ(seen.first(), 2U);
    EXPECT_EQ(seen.judged(), 4U);
}

}  // namespace
}  // namespace traindbg::rules
