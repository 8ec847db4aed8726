#include "traindbg/cli/notifying.h"

#include <gtest/gtest.h>

namespace traindbg::cli {
namespace {

using settings::ActionKind;
using settings::RequestedAction;

RuleAction stop(const std::string& rule, const std::string& prefix) {
    return {rule, {ActionKind::kStop, prefix, ""}};
}

TEST(WhatToDo, NobodyStopsWhatNobodyAskedToStop) {
    EXPECT_EQ(what_to_do("", {}, "run", "").action, "none");
    EXPECT_EQ(what_to_do("none", {{"", {ActionKind::kSms, "", "+1"}}}, "run", "").action, "none");
    EXPECT_EQ(what_to_do("stop", {}, "run", "").action, "stop");
    EXPECT_EQ(what_to_do("roll-back", {}, "run", "").action, "roll-back");
}

TEST(WhatToDo, AnActionIsForItsRuleAndForJobsOfItsPrefix) {
    const Acting some =
        what_to_do("none", {stop("A", "night"), stop("B", ""), stop("C", "day")}, "Night-1", "");
    EXPECT_EQ(some.action, "stop");
    EXPECT_EQ(some.rules, (std::set<std::string>{"A", "B"}));
    ASSERT_EQ(some.notes.size(), 1U);
    EXPECT_NE(some.notes[0].find("'day'"), std::string::npos);
    EXPECT_EQ(what_to_do("none", {stop("A", "day")}, "night", "").action, "none");
    EXPECT_EQ(what_to_do("none", {stop("A", "day")}, "night", "Day-of-the-job").action, "stop");
    EXPECT_TRUE(what_to_do("none", {stop("", "night"), stop("A", "")}, "night", "").rules.empty());
    EXPECT_TRUE(what_to_do("stop", {stop("A", "")}, "night", "").rules.empty());
}

TEST(WhatToDo, OneThingIsDone) {
    const Acting acting = what_to_do("lower-lr", {stop("A", "")}, "run", "");
    EXPECT_EQ(acting.action, "lower-lr");
    EXPECT_TRUE(acting.rules.empty());
    EXPECT_EQ(acting.notes.size(), 1U);
}

TEST(WhatToDo, StalledTrainingStopsRunsOfItsPrefixAndEndsThoseThatHang) {
    EXPECT_TRUE(
        actions_of_parameters({{"StalledTrainingRule", {{"threshold", 3.0}}}, {"overfit", {}}}).empty());
    const auto asked = [](const char* prefix) {
        return actions_of_parameters({{"StalledTrainingRule",
                                       {{"stop_training_on_fire", std::string("True")},
                                        {"training_job_name_prefix", std::string(prefix)}}}});
    };
    const Acting any = what_to_do("none", asked(""), "run", "");
    EXPECT_EQ(any.action, "stop");
    EXPECT_EQ(any.rules, std::set<std::string>{"StalledTrainingRule"});
    EXPECT_EQ(any.stalls, std::set<std::string>{"StalledTrainingRule"});
    EXPECT_EQ(what_to_do("none", asked("Night"), "night-1", "").action, "stop");
    EXPECT_EQ(what_to_do("none", asked("night"), "run", "Night-job").action, "stop");

    const Acting another = what_to_do("none", asked("day"), "night", "");
    EXPECT_EQ(another.action, "none");
    EXPECT_TRUE(another.stalls.empty());
    ASSERT_EQ(another.notes.size(), 1U);
    EXPECT_NE(
        another.notes[0].find("StalledTrainingRule.stop_training_on_fire is for jobs that begin with 'day'"),
        std::string::npos)
        << another.notes[0];

    EXPECT_TRUE(what_to_do("stop", asked(""), "run", "").rules.empty()) << "--on-finding is about any rule";
    EXPECT_EQ(what_to_do("checkpoint-stop", asked(""), "run", "").stalls.size(), 1U);
    EXPECT_TRUE(what_to_do("lower-lr", asked(""), "run", "").stalls.empty());
    EXPECT_TRUE(what_to_do("stop", {stop("A", "")}, "run", "").stalls.empty())
        << "nothing says that it hangs";
}

TEST(Targets, WhoLooksAtMetricsIsNotTold) {
    options::NotifyOptions options;
    options.targets = {"prometheus:0"};
    EXPECT_FALSE(tells_somebody(options, {}));
    EXPECT_FALSE(tells_somebody(options, {stop("", "")}));
    EXPECT_TRUE(tells_somebody(options, {{"", {ActionKind::kEmail, "", "a@b.co"}}}));
    EXPECT_TRUE(check_targets(options, {}).is_ok());
    options.targets = {"prometheus:x"};
    EXPECT_FALSE(check_targets(options, {}).is_ok());
    options.targets = {"file:x"};
    EXPECT_TRUE(tells_somebody(options, {}));
}

}  // namespace
}  // namespace traindbg::cli
