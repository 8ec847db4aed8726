#include "traindbg/model/micro_batch.h"

#include <gtest/gtest.h>

#include <string>

namespace traindbg::model {
namespace {

bool is_later(std::string name, Role role) {
    TensorInfo info;
    info.name = std::move(name);
    info.role = role;
    return is_of_later_micro_batch(info);
}

TEST(MicroBatch, ATensorsNameSaysWhetherItIsOfALaterOne) {
    EXPECT_TRUE(is_later("loss@2", Role::kLoss));
    EXPECT_TRUE(is_later("output/block.0.fc@64", Role::kOutput));
    EXPECT_TRUE(is_later("activation/model.relu#2@3", Role::kActivation));
    EXPECT_TRUE(is_later("label/cross_entropy@2", Role::kLabel));
    EXPECT_FALSE(is_later("loss", Role::kLoss));
    EXPECT_FALSE(is_later("output/block.2", Role::kOutput));
    EXPECT_FALSE(is_later("loss/mine@", Role::kLoss));
    EXPECT_FALSE(is_later("loss/mine@2b", Role::kLoss));
    EXPECT_FALSE(is_later("2", Role::kLoss));
    EXPECT_FALSE(is_later("", Role::kLoss));
    EXPECT_FALSE(is_later("metric/recall@5", Role::kMetric));  // the user's own name
    EXPECT_FALSE(is_later("weight/a@2", Role::kWeight));
}

TEST(MicroBatch, AStepOfOneIsShownAsItIs) {
    TensorTable tensors(2);
    tensors[0].name = "loss";
    tensors[0].role = Role::kLoss;
    tensors[1].name = "metric/recall@5";
    tensors[1].role = Role::kMetric;
    StepRecord record;
    record.scalars = {{0, 1.0}, {1, 2.0}};
    const WorkerMeta meta;
    StepRecord scratch;
    const StepView view{0, &record, &tensors, &meta};
    EXPECT_EQ(of_first_micro_batch(view, scratch).record, &record);
}

TEST(MicroBatch, OfAStepOfSeveralTheFirstOnesTensorsAreLeft) {
    TensorTable tensors(4);
    tensors[0].name = "loss";
    tensors[0].role = Role::kLoss;
    tensors[1].name = "loss@2";
    tensors[1].role = Role::kLoss;
    tensors[2].name = "output/fc";
    tensors[2].role = Role::kOutput;
    tensors[3].name = "output/fc@2";
    tensors[3].role = Role::kOutput;
    StepRecord record;
    record.step = 7;
    record.scalars = {{0, 1.0}, {1, 2.0}};
    record.tensors = {{2, {}, {}}, {3, {}, {}}};
    record.histograms = {{3, {}}};
    record.channels = {{3, {}}};
    record.digests = {{3, {}}};
    const WorkerMeta meta;
    StepRecord scratch;
    const StepView shown = of_first_micro_batch({5, &record, &tensors, &meta}, scratch);
    EXPECT_EQ(shown.worker, 5U);
    EXPECT_EQ(shown.step(), 7U);
    ASSERT_EQ(shown.record->scalars.size(), 1U);
    EXPECT_EQ(shown.record->scalars[0].value, 1.0);
    ASSERT_EQ(shown.record->tensors.size(), 1U);
    EXPECT_EQ(shown.record->tensors[0].tensor, 2U);
    EXPECT_TRUE(shown.record->histograms.empty());
    EXPECT_TRUE(shown.record->channels.empty());
    EXPECT_TRUE(shown.record->digests.empty());
    EXPECT_EQ(record.scalars.size(), 2U);
}

}  // namespace
}  // namespace traindbg::model
