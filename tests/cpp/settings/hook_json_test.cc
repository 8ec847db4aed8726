#include "traindbg/settings/hook_json.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace traindbg::settings {
namespace {

using base::Code;
using model::Mode;
using model::Requirement;
using model::Schedule;
using model::What;

Settings read(std::string_view text) {
    auto settings = parse_hook_json(text, "hook.json");
    EXPECT_TRUE(settings.is_ok()) << settings.status().message();
    return settings.is_ok() ? std::move(settings).value() : Settings();
}

void expect_refused(std::string_view text, const std::vector<std::string>& parts) {
    const auto settings = parse_hook_json(text, "hook.json");
    ASSERT_FALSE(settings.is_ok()) << text;
    EXPECT_EQ(settings.status().code(), Code::kInvalidArgument);
    for (const std::string& part : parts)
        EXPECT_NE(settings.status().message().find(part), std::string::npos)
            << settings.status().message() << " lacks " << part;
}

TEST(HookJson, WhatACollectionSaysBeatsTheHookAndWithoutReductionsTensorsAreWhole) {
    const Settings settings = read(R"({
        "S3OutputPath": "s3://ignored", "LocalPath": "/ignored",
        "HookParameters": {"save_interval": "100", "start_step": 5, "unknown": "ignored"},
        "CollectionConfigurations": [
            {"CollectionName": "losses", "CollectionParameters": {"save_interval": "50"}},
            {"CollectionName": "weights", "CollectionParameters": {
                "save_steps": "70, 3", "end_step": "2000", "reductions": "min, abs_mean,l2_norm"}},
            {"CollectionName": "biases", "CollectionParameters": {"reductions": "", "save_raw_tensor": true}},
            {"CollectionName": "gradients", "CollectionParameters": {"reductions": "min,abs_prod"}},
            {"CollectionName": "heads", "CollectionParameters": {"include_regex": "attn.*q, attn.*k"}},
            {"CollectionName": "relu_output", "CollectionParameters": null}]})");
    ASSERT_EQ(settings.captures.size(), 7U);
    Requirement expected;
    expected.collection = "losses";
    expected.mode = Mode::kGlobal;
    expected.what = What::kStatistics | What::kRaw;
    expected.schedule = {.every = 50, .start = 5};
    expected.asked_by = "user";
    EXPECT_EQ(settings.captures[0], expected);
    expected.collection = "weights";
    expected.what = What::kStatistics;
    expected.schedule = {.every = 100, .start = 5, .end = 2000};
    expected.steps = {70};
    EXPECT_EQ(settings.captures[1], expected);
    expected.schedule = {.every = 0};
    expected.steps = {3};
    EXPECT_EQ(settings.captures[2], expected);
    EXPECT_EQ(settings.captures[3].what, What::kStatistics | What::kRaw);
    EXPECT_EQ(settings.captures[4].what, What::kStatistics | What::kDigest);
    EXPECT_EQ(settings.captures[5].collection, "heads");
    ASSERT_EQ(settings.collections.size(), 2U);
    EXPECT_EQ(settings.collections[0], (model::CollectionSpec{"heads", {"attn.*q", "attn.*k"}, {}}));
    EXPECT_EQ(settings.collections[1].name, "relu_output");
}

TEST(HookJson, ModesHaveValuesOfTheirOwn) {
    const Settings settings = read(R"({
        "HookParameters": {"save_interval": "100", "train.save_interval": "10", "eval.start_step": "3"},
        "CollectionConfigurations": [
            {"CollectionName": "gradients"},
            {"CollectionName": "weights", "CollectionParameters": {"save_interval": "7", "eval.save_interval": "2"}}]})");
    ASSERT_EQ(settings.captures.size(), 9U);
    const auto expect_schedule = [&](std::size_t at, Mode mode, const Schedule& schedule) {
        EXPECT_EQ(settings.captures[at].mode, mode) << at;
        EXPECT_EQ(settings.captures[at].schedule, schedule) << at;
    };
    expect_schedule(0, Mode::kTrain, {.every = 10});
    expect_schedule(1, Mode::kEval, {.every = 100, .start = 3});
    expect_schedule(2, Mode::kPredict, {.every = 100});
    expect_schedule(3, Mode::kTrain, {.every = 7});  // the collection's value for all modes beats the hook's
    expect_schedule(4, Mode::kEval, {.every = 2, .start = 3});
    expect_schedule(5, Mode::kPredict, {.every = 7});
    EXPECT_EQ(settings.captures[6].collection, "losses");
    expect_schedule(6, Mode::kTrain, {.every = 10});
}

TEST(HookJson, WithoutCollectionsThoseOfTheHookOrTheLosses) {
    for (const char* text : {"{}", R"({"HookParameters": null, "CollectionConfigurations": null})"}) {
        const Settings settings = read(text);
        ASSERT_EQ(settings.captures.size(), 1U);
        EXPECT_EQ(settings.captures[0].collection, "losses");
        EXPECT_EQ(settings.captures[0].schedule.every, 500U);
    }
    const Settings all = read(R"({"HookParameters": {"save_all": "true", "include_regex": "conv1"}})");
    EXPECT_EQ(all.captures.size(), 10U);
    ASSERT_EQ(all.collections.size(), 1U);
    EXPECT_EQ(all.collections[0], (model::CollectionSpec{"default", {"conv1"}, {}}));
}

TEST(HookJson, BuffersAreNotOfAllAndMayBeNamedBesideIt) {
    const auto has_buffers = [](const Settings& settings) {
        return std::any_of(settings.captures.begin(), settings.captures.end(),
                           [](const auto& capture) { return capture.collection == "buffers"; });
    };
    EXPECT_FALSE(has_buffers(read(R"({"CollectionConfigurations": [{"CollectionName": "all"}]})")));
    const Settings named =
        read(R"({"CollectionConfigurations": [{"CollectionName": "all"}, {"CollectionName": "buffers"}]})");
    EXPECT_TRUE(has_buffers(named));
    EXPECT_TRUE(named.collections.empty()) << "it is one of ours and needs no pattern";
}

TEST(HookJson, LossesAreSavedWhateverElseIs) {
    const Settings settings = read(R"({"HookParameters": {"save_interval": "3"},
        "CollectionConfigurations": [{"CollectionName": "weights"}, {"CollectionName": "default"}]})");
    ASSERT_EQ(settings.captures.size(), 2U);  // nothing is in `default`
    EXPECT_EQ(settings.captures[0].collection, "weights");
    EXPECT_EQ(settings.captures[1].collection, "losses");
    EXPECT_EQ(settings.captures[1].schedule, (Schedule{.every = 3}));
    EXPECT_TRUE(settings.collections.empty());
}

TEST(HookJson, StepsThatAreNamedCountBeforeTheStartAndBehindTheEnd) {
    const Settings settings = read(R"({"CollectionConfigurations": [{"CollectionName": "losses",
        "CollectionParameters": {"start_step": 5, "end_step": 9, "save_interval": 2, "save_steps": "3,7,20"}}]})");
    ASSERT_EQ(settings.captures.size(), 2U);
    std::vector<std::uint64_t> due;
    for (std::uint64_t step = 0; step < 30; ++step)
        if (settings.captures[0].is_due(step) || settings.captures[1].is_due(step)) due.push_back(step);
    EXPECT_EQ(due, (std::vector<std::uint64_t>{3, 6, 7, 8, 20}));
}

TEST(HookJson, PatternsOfACollectionOfOursAddToIt) {
    const Settings settings = read(R"({"CollectionConfigurations": [{"CollectionName": "losses",
        "CollectionParameters": {"include_regex": "bias", "save_interval": 4}}]})");
    ASSERT_EQ(settings.captures.size(), 2U);
    EXPECT_EQ(settings.captures[0].collection, "losses");
    EXPECT_EQ(settings.captures[1].collection, "losses.include_regex");
    EXPECT_EQ(settings.captures[0].schedule, settings.captures[1].schedule);
    ASSERT_EQ(settings.collections.size(), 1U);
    EXPECT_EQ(settings.collections[0], (model::CollectionSpec{"losses.include_regex", {"bias"}, {}}));
}

TEST(HookJson, WhatIsSaidOfDefaultHoldsForThePatternsOfTheHook) {
    const Settings settings = read(R"({
        "HookParameters": {"save_interval": "100", "include_regex": "conv1"},
        "CollectionConfigurations": [{"CollectionName": "default",
            "CollectionParameters": {"save_interval": "7", "include_regex": "fc"}}]})");
    ASSERT_EQ(settings.captures.size(), 2U);
    EXPECT_EQ(settings.captures[0].collection, "default");
    EXPECT_EQ(settings.captures[0].schedule.every, 7U);
    ASSERT_EQ(settings.collections.size(), 1U);
    EXPECT_EQ(settings.collections[0], (model::CollectionSpec{"default", {"fc", "conv1"}, {}}));
}

TEST(HookJson, PatternsForTheOriginalsNamesFindOurs) {
    const Settings settings = read(R"({"CollectionConfigurations": [{"CollectionName": "mine",
        "CollectionParameters": {"include_regex": "relu1_output, gradient/Net_fc"}}]})");
    ASSERT_EQ(settings.collections.size(), 1U);
    EXPECT_EQ(settings.collections[0].include,
              (std::vector<std::string>{"relu1_output", "^(output|activation)/(.*)(relu1)($|@)",
                                        "gradient/Net_fc", "^gradient/fc"}));
}

TEST(HookJson, WhatIsWrongIsNamed) {
    expect_refused("{", {"hook.json: is not JSON: it ends too early, in line 1"});
    expect_refused(" \n", {"hook.json: is not JSON: it is empty"});
    expect_refused("{\n \"HookParameters\": {\"save_interval\": \"100\",}\n}",
                   {"hook.json: is not JSON at line 2, column 44, near", "\"100\",}'"});
    expect_refused("{\n \"HookParameters\": {\"save_interval\": 1e999}\n}",
                   {"hook.json: has a number that is too large at line 2, column", "1e999"});
    expect_refused("1e999", {"hook.json: has a number that is too large at line 1, column 5, near '1e999'"});
    expect_refused("[]", {"object"});
    expect_refused(R"({"HookParameters": 3})", {"HookParameters"});
    expect_refused(R"({"HookParameters": {"save_interval": "often"}})", {"save_interval", "often"});
    expect_refused(R"({"HookParameters": {"save_interval": 0}})", {"save_interval"});
    expect_refused(R"({"HookParameters": {"save_steps": [1, 2]}})", {"save_steps", "text"});
    expect_refused(R"({"HookParameters": {"save_all": "yes"}})", {"save_all"});
    expect_refused(R"({"HookParameters": {"reductions": "l1"}})", {"l1", "l1_norm"});
    expect_refused(R"({"HookParameters": {"reductions": "", "save_raw_tensor": "True"}})",
                   {"save_raw_tensor"});
    expect_refused(R"({"CollectionConfigurations": {}})", {"CollectionConfigurations"});
    expect_refused(R"({"CollectionConfigurations": [{}]})", {"CollectionName"});
    expect_refused(R"({"CollectionConfigurations": [{"CollectionName": "mine"}]})",
                   {"collection mine: ", "include_regex"});
    expect_refused(R"({"CollectionConfigurations": [{"CollectionName": "weight"}]})",
                   {"collection weight: ", "did you mean 'weights'?"});
}

TEST(HookJson, WhatIsWrongSaysInWhichCollection) {
    expect_refused(
        R"({"CollectionConfigurations": [{"CollectionName": "losses"}, {"CollectionName": "weights",
        "CollectionParameters": {"save_interval": "often"}}]})",
        {"hook.json: collection weights: save_interval: 'often'"});
    expect_refused(R"({"HookParameters": {"end_step": "late"},
        "CollectionConfigurations": [{"CollectionName": "losses"}]})",
                   {"hook.json: HookParameters: end_step: 'late'"});
    expect_refused(R"({"CollectionConfigurations": [{"CollectionName": "losses"}, {}]})", {"in entry 2"});
}

TEST(HookJson, WhetherTensorsAreWholeIsSaidBesideTheReductions) {
    const Settings settings = read(R"({
        "HookParameters": {"reductions": "min", "save_raw_tensor": true},
        "CollectionConfigurations": [
            {"CollectionName": "losses", "CollectionParameters": {"reductions": "max"}},
            {"CollectionName": "weights", "CollectionParameters": {"save_raw_tensor": false}}]})");
    ASSERT_EQ(settings.captures.size(), 2U);
    EXPECT_EQ(settings.captures[0].what, What::kStatistics);
    EXPECT_EQ(settings.captures[1].what, What::kStatistics | What::kRaw);
}

// What is said of a file that is taken, as in the original.
std::string told_of(std::string_view text) {
    ::testing::internal::CaptureStderr();
    static_cast<void>(read(text));
    return ::testing::internal::GetCapturedStderr();
}

TEST(HookJson, AScheduleThatComesToNothingIsTakenAndTold) {
    EXPECT_EQ(told_of(R"({"CollectionConfigurations": [{"CollectionName": "weights", "CollectionParameters": {
                  "start_step": "9", "end_step": "3"}}]})"),
              "traindbg: warning: hook.json: collection weights: no step is due, so that nothing is recorded "
              "by it: end_step 3 is not after start_step 9; change one of them\n");
    EXPECT_EQ(told_of(R"({"HookParameters": {"train.save_interval": "100", "train.start_step": "10",
                  "train.end_step": "20"}, "CollectionConfigurations": [{"CollectionName": "weights"},
                  {"CollectionName": "biases"}]})"),
              "traindbg: warning: hook.json: HookParameters: no step is due in train, so that nothing is "
              "recorded by it: there is no multiple of save_interval 100 from start_step 10 on, before "
              "end_step 20; change one of them\n")
        << "once, not of each collection that takes it over";
}

TEST(HookJson, AScheduleOfWhichOneStepIsDueIsNotTold) {
    for (const char* parameters :
         {R"("start_step": "9", "end_step": "3", "save_steps": "5")", R"("end_step": "1")",
          R"("save_interval": "7", "start_step": "7", "end_step": "8")", R"("start_step": "10")"})
        EXPECT_EQ(told_of(std::string(R"({"HookParameters": {)") + parameters + "}}"), "") << parameters;
}

}  // namespace
}  // namespace traindbg::settings
