#include "traindbg/settings/actions_json.h"

#include <gtest/gtest.h>

#include "traindbg/settings/rules_json.h"

namespace traindbg::settings {
namespace {

std::vector<RequestedAction> actions(std::string_view text) {
    auto read = parse_actions_json(text, "actions");
    EXPECT_TRUE(read.is_ok()) << read.status().message();
    return read.is_ok() ? *read : std::vector<RequestedAction>();
}
std::string error(std::string_view text) { return parse_actions_json(text, "actions").status().message(); }

TEST(ActionsJson, OneOrAListInAnyCaseAndWithEscapedQuotes) {
    const RequestedAction stop{ActionKind::kStop, "night", ""};
    EXPECT_EQ(actions(R"({"name":"stoptraining","training_job_prefix":"night"})"), std::vector{stop});
    EXPECT_EQ(actions(R"([{"Name": "StopTraining", "Training_Job_Prefix": "Night"}])"), std::vector{stop});
    EXPECT_EQ(actions(R"({\"name\":\"stoptraining\",\"training_job_prefix\":\"night\"})"), std::vector{stop});
    EXPECT_EQ(actions(R"([{"name":"email","endpoint":"Me+x@b.co"},{"name":"sms","endpoint":"+15551234"}])"),
              (std::vector<RequestedAction>{{ActionKind::kEmail, "", "Me+x@b.co"},
                                            {ActionKind::kSms, "", "+15551234"}}));
    EXPECT_EQ(actions(R"({"name":"stoptraining","training_job_prefix":null})"),
              std::vector<RequestedAction>(1))
        << "of any training";
    for (const char* none : {"", "  \n", "null", "[]"}) EXPECT_TRUE(actions(none).empty()) << none;
}

TEST(ActionsJson, WhatTheOriginalSkipsIsAnErrorThatNamesTheNearest) {
    EXPECT_EQ(
        error(R"([{"name":"sms","endpoint":"+1"},{"name":"emali","endpoint":"a@b.co"}])"),
        "actions: action 2: no action 'emali' (did you mean 'email'?); there are stoptraining, email, sms");
    EXPECT_EQ(error(R"({"name":"email","adress":"a@b.co"})"),
              "actions: action 1: email has no key 'adress'; it has name, endpoint");
    EXPECT_EQ(error(R"({"name":"stoptraining","training_job_prefx":"x"})"),
              "actions: action 1: stoptraining has no key 'training_job_prefx' (did you mean "
              "'training_job_prefix'?); it has name, training_job_prefix");
    for (const char* bad :
         {"{", "1", "[1]", "{}", R"({"name":1})", R"({"name":"email"})",
          R"({"name":"email","endpoint":"a b@c.d"})", R"({"name":"email","endpoint":"a@b.co?topic=x"})",
          R"({"name":"sms","endpoint":"123"})", R"({"name":"sms","endpoint":"+1234567890123456"})",
          R"({"name":"stoptraining","training_job_prefix":"a/b"})",
          R"({"name":"stoptraining","training_job_prefix":["a"]})"})
        EXPECT_FALSE(parse_actions_json(bad, "actions").is_ok()) << bad;
}

TEST(ActionsJson, AreThoseOfTheirRule) {
    const auto rules = parse_rules_json(
        R"([{"RuleConfigurationName": "mine", "RuleParameters": {"rule_to_invoke": "DeadRelu",
             "action_json": "{\"name\": \"sms\", \"endpoint\": \"+1\"}", "threshold_layer": "60"}},
            {"RuleParameters": {"rule_to_invoke": "Overfit", "action_json": [{"name": "stoptraining"}]}}])",
        "rules");
    ASSERT_TRUE(rules.is_ok()) << rules.status().message();
    EXPECT_EQ((*rules)[0].actions, (std::vector<RequestedAction>{{ActionKind::kSms, "", "+1"}}));
    EXPECT_EQ((*rules)[0].parameters.size(), 1U) << "it is no parameter";
    EXPECT_EQ((*rules)[1].actions, std::vector<RequestedAction>(1));
    const auto wrong = parse_rules_json(
        R"([{"RuleConfigurationName": "mine", "RuleParameters": {"rule_to_invoke": "A", "action_json": "{}"}}])",
        "rules");
    EXPECT_NE(wrong.status().message().find("(mine): action_json: action 1: has no name"), std::string::npos)
        << wrong.status().message();
}

}  // namespace
}  // namespace traindbg::settings
