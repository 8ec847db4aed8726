#include "traindbg/rules/input_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace traindbg::rules {
namespace {

model::TensorInfo input_of(std::vector<std::int64_t> shape, tensor::DType dtype = tensor::DType::kFloat32) {
    model::TensorInfo info;
    info.name = "input/0";
    info.role = model::Role::kInput;
    info.dtype = dtype;
    info.shape = std::move(shape);
    return info;
}

model::Statistics values_with_zeros(std::uint64_t count, std::uint64_t zeros) {
    model::Statistics values;
    values.count = count;
    values.zero = zeros;
    values.std = 1;
    return values;
}

TEST(InputValuesTest, OnlyFiniteValuesOfFloatingPointAreCompared) {
    model::Statistics values = values_with_zeros(64, 0);
    EXPECT_TRUE(is_compared_input(input_of({8, 8}), values));
    EXPECT_FALSE(is_compared_input(input_of({8, 8}, tensor::DType::kInt64), values));
    values.nan = 1;
    EXPECT_FALSE(is_compared_input(input_of({8, 8}), values));
}

TEST(InputValuesTest, ARowIsAllButTheFirstDimension) {
    EXPECT_EQ(values_in_row(input_of({32, 3, 8, 8})), 192U);
    EXPECT_EQ(values_in_row(input_of({32})), 1U);
    EXPECT_EQ(values_in_row(input_of({})), 1U);
}

TEST(InputValuesTest, DeviationsAreOfTheValuesAndOfTheirChanges) {
    EXPECT_NEAR(deviation_of(std::vector<double>{1, 3, 5, 7}), std::sqrt(20.0 / 3), 1e-12);
    EXPECT_NEAR(deviation_of_changes(std::vector<double>{0, 2, 2, 2, 0}), std::sqrt(2.0), 1e-12);
    EXPECT_EQ(deviation_of_changes(std::vector<double>{4, 4, 4}), 0);
}

TEST(InputValuesTest, OneEvaluatedBatchIsEnoughWhereItIsLarge) {
    InputValues large, small;
    for (InputValues* input : {&large, &small})
        for (int i = 0; i < 5; ++i) input->add_training(input_of({32, 4}), values_with_zeros(128, 0));
    EXPECT_FALSE(large.is_known());
    large.add_evaluation(values_with_zeros(InputValues::kManyValues, 0));
    small.add_evaluation(values_with_zeros(InputValues::kManyValues - 1, 0));
    EXPECT_TRUE(large.is_known());
    EXPECT_FALSE(small.is_known());
    small.add_evaluation(values_with_zeros(1, 0));
    EXPECT_TRUE(small.is_known());
}

TEST(InputValuesTest, ZerosOfWholeSamplesTellThatSomeComeWithoutTheInput) {
    InputValues whole, masked;
    for (std::uint64_t batch = 0; batch < 4; ++batch) {
        whole.add_training(input_of({32, 10}), values_with_zeros(320, 10 * batch));
        masked.add_training(input_of({32, 10}), values_with_zeros(320, 10 * batch + 3));
    }
    EXPECT_TRUE(whole.come_some_without());
    EXPECT_FALSE(masked.come_some_without());
}

}  // namespace
}  // namespace traindbg::rules
