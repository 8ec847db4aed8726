// The original library's runs, read by us, against what its own reader gives for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traindbg/compat/smdebug_run.h"
#include "traindbg/format/smdebug_index.h"

namespace traindbg::compat {
namespace {

using nlohmann::json;
using tensor::DType;

std::string golden(const std::string& name) {
    return std::string(TRAINDBG_SOURCE_DIR) + "/tests/data/smdebug/" + name;
}

json expected_of(const std::string& run) {
    std::ifstream file(golden(run + ".json"));
    return json::parse(file);
}

std::string hex(const std::vector<std::byte>& bytes) {
    std::string text;
    for (const std::byte byte : bytes) {
        constexpr const char* kDigits = "0123456789abcdef";
        text += kDigits[std::to_integer<unsigned>(byte) >> 4];
        text += kDigits[std::to_integer<unsigned>(byte) & 15];
    }
    return text;
}

json as_json(const SmdebugValue& value) {
    if (value.dtype == DType::kUnknown)
        return {{"dtype", "str"}, {"shape", value.shape}, {"text", value.texts}};
    // The original reads int8 as uint8.
    const DType dtype = value.dtype == DType::kInt8 ? DType::kUInt8 : value.dtype;
    return {{"dtype", tensor::to_string(dtype)}, {"shape", value.shape}, {"hex", hex(value.bytes)}};
}

class SmdebugGoldenTest : public ::testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        auto opened = SmdebugRun::open(golden(GetParam()));
        ASSERT_TRUE(opened.is_ok()) << opened.status().message();
        run = std::move(opened).value();
        expected = expected_of(GetParam());
    }
    std::unique_ptr<SmdebugRun> run;
    json expected;
};

TEST_P(SmdebugGoldenTest, NamesModesStepsAndWorkersAreTheOriginals) {
    EXPECT_EQ(run->is_complete(), expected["ended"].get<bool>());
    EXPECT_EQ(json(run->tensor_names()), expected["names"]);
    EXPECT_EQ(json(run->workers()), expected["workers"]);
    EXPECT_TRUE(run->damage().empty());
    std::vector<std::string> modes;
    for (const model::Mode mode : run->modes()) modes.emplace_back(format::smdebug_mode_name(mode));
    std::sort(modes.begin(), modes.end());
    EXPECT_EQ(json(modes), expected["modes"]);
    json steps = {{"TRAIN", json::array()},
                  {"EVAL", json::array()},
                  {"PREDICT", json::array()},
                  {"GLOBAL", json::array()}};
    json global = json::object();
    for (const SmdebugStep& step : run->steps()) {
        const std::string mode(format::smdebug_mode_name(step.mode));
        if (mode != "GLOBAL") steps[mode].push_back(step.mode_step);
        steps["GLOBAL"].push_back(step.global_step);
        global[std::to_string(step.global_step)] = {mode, step.mode_step};
    }
    EXPECT_EQ(steps, expected["steps"]);
    EXPECT_EQ(global, expected["global"]);
}

TEST_P(SmdebugGoldenTest, CollectionsHaveTheOriginalsTensors) {
    json collections = json::object();
    for (const format::SmdebugCollection& collection : run->collections()) {
        collections[collection.name] = {{"include_regex", collection.include_regex},
                                        {"tensor_names", collection.tensor_names},
                                        {"matches", run->names_of(collection)}};
    }
    EXPECT_EQ(collections, expected["collections"]);
}

TEST_P(SmdebugGoldenTest, ValuesReductionsAndShapesAreTheOriginals) {
    ASSERT_FALSE(expected["tensors"].empty());
    std::map<std::pair<std::string, std::uint64_t>, std::size_t> places;  // of (worker, step): how many
    for (const json& tensor : expected["tensors"]) {
        const auto name = tensor["name"].get<std::string>();
        const auto step = tensor["step"].get<std::uint64_t>();
        const auto worker = tensor["worker"].get<std::string>();
        const std::string place = name + " at " + std::to_string(step) + " of " + worker;
        ++places[{worker, step}];

        const auto value = run->value(worker, step, name);
        const std::string error = tensor["value"].value("error", "");
        if (error.empty()) {
            ASSERT_TRUE(value.is_ok()) << place << ": " << value.status().message();
            EXPECT_EQ(as_json(*value), tensor["value"]) << place;
        } else if (error == "KeyError") {
            // The original cannot read these element types; the name says which it wrote.
            ASSERT_TRUE(value.is_ok()) << place << ": " << value.status().message();
            EXPECT_EQ(tensor::to_string(value->dtype), name.substr(name.rfind('/') + 1));
        } else {
            EXPECT_EQ(value.status().code(), base::Code::kNotFound) << place;
        }

        const auto shape = run->shape(worker, step, name);
        if (tensor["shape"].is_array()) {
            ASSERT_TRUE(shape.is_ok()) << place << ": " << shape.status().message();
            EXPECT_EQ(json(*shape), tensor["shape"]) << place;
        } else if (error != "KeyError") {
            EXPECT_EQ(shape.status().code(), base::Code::kNotFound) << place;
        }

        json reductions = json::object();
        for (const SmdebugSample& sample : run->samples(worker, step)) {
            if (sample.name != name) continue;
            EXPECT_EQ(sample.has_value, value.is_ok()) << place;
            for (const std::string_view reduction : sample.reductions) {
                const auto number = run->reduction(worker, step, name, reduction);
                ASSERT_TRUE(number.is_ok()) << place << ": " << number.status().message();
                reductions[std::string(reduction)] = as_json(*number);
            }
        }
        EXPECT_EQ(reductions, tensor["reductions"]) << place;
        const std::vector<std::uint64_t> steps = run->steps_with(worker, name);
        EXPECT_TRUE(std::binary_search(steps.begin(), steps.end(), step)) << place;
    }
    // And nothing that the original does not give.
    for (const std::string& worker : run->workers())
        for (const SmdebugStep& step : run->steps_of(worker))
            EXPECT_EQ(run->samples(worker, step.global_step).size(), (places[{worker, step.global_step}]))
                << worker << " " << step.global_step;
}

INSTANTIATE_TEST_SUITE_P(Runs, SmdebugGoldenTest,
                         ::testing::Values("torch_raw", "torch_reductions", "torch_shapes", "torch_diverging",
                                           "torch_crash", "dtypes", "two_workers", "devices"),
                         [](const auto& run_name) { return std::string(run_name.param); });

TEST(SmdebugValuesTest, WideTypesAreReadThoughTheOriginalCannot) {
    auto run = SmdebugRun::open(golden("dtypes"));
    ASSERT_TRUE(run.is_ok());
    const std::map<std::string, std::string> bytes = {
        {"wide/int16", "0000010002006400"},
        {"wide/uint16", "0000010002006400"},
        {"wide/uint32", "00000000010000000200000064000000"},
        {"wide/uint64", "0000000000000000010000000000000002000000000000006400000000000000"},
        {"wide/complex64",
         "00000000000000000000803f00000000000000400000000000"
         "00c84200000000"},
    };
    for (const auto& [name, expected] : bytes) {
        const auto value = (*run)->value("worker_0", 0, name);
        ASSERT_TRUE(value.is_ok()) << name << ": " << value.status().message();
        EXPECT_EQ(hex(value->bytes), expected) << name;
    }
    EXPECT_EQ((*run)->value("worker_0", 0, "two/int8")->dtype, DType::kInt8);
    EXPECT_EQ((*run)->value("worker_0", 0, "scalar")->number(), 2.5);
    EXPECT_EQ((*run)->value("worker_0", 0, "four")->number(), std::nullopt);
}

}  // namespace
}  // namespace traindbg::compat
