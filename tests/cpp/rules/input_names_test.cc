#include "traindbg/rules/input_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace traindbg::rules {
namespace {

class InputNamesTest : public testing::Test {
  protected:
    // A pass that was given these inputs.
    void give(const std::vector<std::string>& inputs) {
        model::TensorTable tensors;
        model::StepRecord record;
        for (const std::string& name : inputs) {
            record.tensors.emplace_back().tensor = static_cast<model::TensorId>(tensors.size());
            model::TensorInfo& info = tensors.emplace_back();
            info.name = name;
            info.role = model::Role::kInput;
        }
        names_.count({0, &record, &tensors, &meta_});
    }

    model::WorkerMeta meta_;
    InputNames names_;
};

TEST_F(InputNamesTest, NumbersStandForInputsWhereEveryPassIsGivenEquallyMany) {
    give({"input/0", "input/1"});
    give({"input/0", "input/1", "input/0@2", "input/1@2"});
    EXPECT_TRUE(names_.is_one_input("input/1"));
    give({"input/0"});
    EXPECT_FALSE(names_.is_one_input("input/1"));
    EXPECT_FALSE(names_.is_one_input("input/1@2"));
    EXPECT_TRUE(names_.is_one_input("input/0"));
}

TEST_F(InputNamesTest, PartsOfAModelHaveNumbersOfTheirOwn) {
    give({"input/0", "input/head.0", "input/head.1"});
    give({"input/0", "input/head.0"});
    EXPECT_FALSE(names_.is_one_input("input/head.1"));
    EXPECT_TRUE(names_.is_one_input("input/1"));
}

TEST_F(InputNamesTest, DataIsWhatTheOnlyModelIsGivenAndWasNotComputed) {
    EXPECT_TRUE(names_.is_data("input/0"));
    EXPECT_FALSE(names_.is_data("input/head.0"));
    model::TensorTable tensors(1);
    tensors[0].name = "loop/input_is_computed/0";
    tensors[0].role = model::Role::kLoop;
    model::StepRecord record;
    record.scalars = {{0, 1}};
    names_.note_computed({0, &record, &tensors, &meta_});
    EXPECT_FALSE(names_.is_data("input/0"));
    EXPECT_TRUE(names_.is_data("input/1"));
}

}  // namespace
}  // namespace traindbg::rules
