#include "traindbg/capture/tensor_copies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "traindbg/reduce/reducer.h"

namespace traindbg::capture {
namespace {

using tensor::DType;
using tensor::TensorView;

struct Matrix {
    std::vector<float> data;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;

    Matrix(std::size_t elements, std::vector<std::int64_t> extents, std::vector<std::int64_t> steps)
        : data(elements), shape(std::move(extents)), strides(std::move(steps)) {
        std::iota(data.begin(), data.end(), 1.0F);
    }
    [[nodiscard]] TensorView view() const { return {data.data(), DType::kFloat32, shape, strides}; }
};

double l2_between(const TensorView& before, const TensorView& after) {
    const auto found = reduce::difference_statistics(before, after);
    EXPECT_TRUE(found) << found.status().message();
    return found ? found->difference.l2 : -1;
}

TEST(TensorCopies, HoldWhatTheTensorsHeldWhateverHappensToThem) {
    Matrix row_major(6, {2, 3}, {});
    Matrix transposed(6, {2, 3}, {1, 2});
    Matrix columns(20, {4, 3}, {5, 1});
    Matrix expanded(3, {4, 3}, {0, 1});
    Matrix turned(5, {5}, {-1});
    Matrix large(5000, {50, 100}, {});
    TensorView turned_view = turned.view();
    turned_view.data = turned.data.data() + 4;
    const std::vector<TensorView> views = {row_major.view(), transposed.view(), columns.view(),
                                           expanded.view(),  turned_view,       large.view()};
    const auto copies = TensorCopies::make(views);
    ASSERT_TRUE(copies) << copies.status().message();
    ASSERT_EQ(copies->size(), views.size());
    for (std::size_t i = 0; i < views.size(); ++i) EXPECT_EQ(l2_between(copies->view(i), views[i]), 0) << i;
    for (Matrix* matrix : {&row_major, &transposed, &columns, &expanded, &turned, &large})
        for (float& value : matrix->data) value += 2;
    for (std::size_t i = 0; i < views.size(); ++i) {
        const auto count = static_cast<double>(views[i].element_count());
        EXPECT_DOUBLE_EQ(l2_between(copies->view(i), views[i]), 2 * std::sqrt(count)) << i;
    }
}

TEST(TensorCopies, WhatHasNoElementsOrCannotBeReadIsLeftOut) {
    Matrix matrix(2, {2}, {});
    Matrix empty(1, {0}, {});
    TensorView unknown = matrix.view();
    unknown.dtype = DType::kUnknown;
    TensorView wrong = matrix.view();
    const std::vector<std::int64_t> two_strides = {1, 1};
    wrong.strides = two_strides;
    const auto copies =
        TensorCopies::make(std::vector<TensorView>{{}, empty.view(), unknown, wrong, matrix.view()});
    ASSERT_TRUE(copies);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(copies->view(i).data, nullptr) << i;
    EXPECT_NE(copies->view(4).data, nullptr);
    EXPECT_EQ(TensorCopies::make({})->size(), 0U);
}

TEST(TensorCopies, MoreThanCanBeCountedIsAnError) {
    const std::vector<std::int64_t> shape = {std::int64_t{1} << 58};
    const float value = 1;
    const TensorView huge{&value, DType::kFloat32, shape, {}};
    EXPECT_EQ(TensorCopies::make(std::vector<TensorView>(40, huge)).status().code(),
              base::Code::kResourceExhausted);
}

}  // namespace
}  // namespace traindbg::capture
