#include "traindbg/rules/class_facts.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace traindbg::rules {
namespace {

TEST(ClassFactsTest, ANumberIsAllOfThePlaceAndNotTooLarge) {
    EXPECT_EQ(number_in("12"), 12U);
    EXPECT_EQ(number_in("63"), 63U);
    for (const char* place : {"", "64", "-1", "1a", "a1", " 1", "99999999999999999999"})
        EXPECT_FALSE(number_in(place)) << place;
}

TEST(ClassFactsTest, ValuesAreReadIntoTheirPlaces) {
    model::TensorTable tensors(3);
    model::StepRecord record;
    const char* const names[] = {"loop/drawn_weight/2", "loop/drawn_weight/0", "loop/drawn_weight_rows/1"};
    for (model::TensorId i = 0; i < 3; ++i) {
        tensors[i].name = names[i];
        tensors[i].role = model::Role::kLoop;
        record.scalars.push_back({i, i + 1.0});
    }
    const model::WorkerMeta meta;
    std::vector<double> values;
    read_numbered({0, &record, &tensors, &meta}, "drawn_weight", values);
    EXPECT_EQ(values, (std::vector<double>{2, 0, 1}));
}

}  // namespace
}  // namespace traindbg::rules
