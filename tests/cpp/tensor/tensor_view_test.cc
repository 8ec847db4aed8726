#include "traindbg/tensor/tensor_view.h"

#include <gtest/gtest.h>

#include <vector>

namespace traindbg::tensor {
namespace {

struct Case {
    const char* name;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    bool dense;
    bool row_major;
};

TEST(TensorView, KnowsWhichLayoutsHaveNoGaps) {
    const std::vector<Case> cases = {
        {"scalar", {}, {}, true, true},
        {"without strides", {2, 3}, {}, true, true},
        {"row-major", {2, 3, 4}, {12, 4, 1}, true, true},
        {"transposed", {2, 3}, {1, 2}, true, false},
        {"channels last", {2, 3, 4, 5}, {60, 1, 15, 3}, true, false},
        {"turned around", {4}, {-1}, true, false},
        {"one inside", {2, 1, 3}, {3, 99, 1}, true, true},
        {"ones, any strides", {1, 1}, {7, 9}, true, true},
        {"every second", {4}, {2}, false, false},
        {"some columns", {2, 2}, {3, 1}, false, false},
        {"expanded", {3, 4}, {0, 1}, false, false},
        {"overlapping", {3, 3}, {1, 1}, false, false},
        {"empty", {0, 3}, {3, 1}, true, true},
    };
    const float data[120] = {};
    for (const Case& layout : cases) {
        const TensorView view{&data[60], DType::kFloat32, layout.shape, layout.strides};
        EXPECT_EQ(view.is_dense(), layout.dense) << layout.name;
        EXPECT_EQ(view.is_row_major(), layout.row_major) << layout.name;
    }
}

TEST(TensorView, TheBlockBeginsBeforeDataWhereAStrideIsNegative) {
    const float data[12] = {};
    const std::vector<std::int64_t> shape = {3, 4};
    const std::vector<std::int64_t> strides = {-4, 1};
    const TensorView view{&data[8], DType::kFloat32, shape, strides};
    EXPECT_EQ(view.element_count(), 12);
    EXPECT_TRUE(view.is_dense());
    EXPECT_EQ(view.block_begin(), &data[0]);
}

}  // namespace
}  // namespace traindbg::tensor
