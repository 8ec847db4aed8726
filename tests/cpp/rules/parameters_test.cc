#include "traindbg/rules/parameters.h"

#include <gtest/gtest.h>

#include <limits>

namespace traindbg::rules {
namespace {

using model::ParameterType;
using model::ParameterValue;

const model::RuleInfo kInfo = {
    .name = "sample",
    .title = "Sample",
    .summary = "",
    .when = "",
    .why = "",
    .fix = "",
    .healthy = "",
    .cost = "",
    .original = "",
    .source = "",
    .parameters = {{"share", "share", 0.75, 0, 1, ""},
                   {"window", "steps", 5, 1, 100, "", ParameterType::kWhole},
                   {"limit", "", {}, -10, 10, ""},
                   {"only_nan", "", false, 0, 0, "", ParameterType::kFlag},
                   {"regex", "", ".*relu", 0, 0, "", ParameterType::kPattern},
                   {"names", "", {}, 0, 0, "", ParameterType::kTexts},
                   {"mode", "", "GLOBAL", 0, 0, "", ParameterType::kChoice, {"EVAL", "TRAIN", "GLOBAL"}}},
};

std::string problem(const Parameters& given) {
    const auto complete = complete_parameters(kInfo, given);
    return complete.is_ok() ? "" : complete.status().message();
}

TEST(Parameters, DefaultsAreFilledIn) {
    const auto complete = complete_parameters(kInfo, {{"window", 7}});
    ASSERT_TRUE(complete.is_ok());
    EXPECT_EQ(complete->at("window"), 7);
    EXPECT_EQ(complete->at("share"), 0.75);
    EXPECT_FALSE(complete->flag("only_nan"));
    EXPECT_EQ(complete->text("regex"), ".*relu");
    EXPECT_FALSE(complete->has("limit"));
    EXPECT_EQ(complete->number_if_any("limit"), std::nullopt);
    EXPECT_EQ(complete->texts("names"), std::vector<std::string>());
    EXPECT_EQ(complete->size(), kInfo.parameters.size());
}

TEST(Parameters, ATextStandsForAValueOfAnyType) {
    const auto complete = complete_parameters(kInfo, {{"share", " 1e-1"},
                                                      {"limit", "-3"},
                                                      {"only_nan", "True"},
                                                      {"regex", "a|b"},
                                                      {"names", "weights, biases,"},
                                                      {"mode", "eval"}});
    ASSERT_TRUE(complete.is_ok()) << complete.status().message();
    EXPECT_EQ(complete->at("share"), 0.1);
    EXPECT_EQ(complete->number_if_any("limit"), -3);
    EXPECT_TRUE(complete->flag("only_nan"));
    EXPECT_EQ(complete->text("regex"), "a|b");
    EXPECT_EQ(complete->texts("names"), (std::vector<std::string>{"weights", "biases"}));
    EXPECT_EQ(complete->text("mode"), "EVAL");
}

TEST(Parameters, NoneIsForThoseThatHaveNoDefault) {
    for (const char* none : {"None", "none", ""}) {
        const auto complete = complete_parameters(kInfo, {{"limit", none}, {"names", none}});
        ASSERT_TRUE(complete.is_ok()) << complete.status().message();
        EXPECT_FALSE(complete->has("limit"));
    }
    EXPECT_EQ(problem({{"share", "none"}}), "sample.share: 'none' is not a number");
    EXPECT_EQ(problem({{"share", ParameterValue()}}), "sample.share: needs a value");
    EXPECT_EQ(problem({{"limit", ParameterValue()}}), "");
}

TEST(Parameters, AnUnknownNameOrAValueThatIsNotOfItsTypeIsRefused) {
    EXPECT_TRUE(problem({{"windov", 7}})
                    .starts_with("rule sample: no parameter is called 'windov' (did you mean 'window'?); "))
        << problem({{"windov", 7}});
    const std::string far = problem({{"x", 7}});
    EXPECT_TRUE(far.starts_with("rule sample: no parameter is called 'x'; there are share, window, ")) << far;
    EXPECT_TRUE(far.ends_with(", hold, see traindbg rules explain sample")) << far;
    EXPECT_EQ(problem({{"share", 1.5}}), "sample.share: 1.5 is out of range; give a number from 0 to 1");
    EXPECT_EQ(problem({{"share", 1.0}}), "");
    EXPECT_NE(problem({{"share", std::numeric_limits<double>::quiet_NaN()}}), "");
    for (const char* bad : {"", "1x", "nan", "inf", "0x1", "1,5"})
        EXPECT_NE(problem({{"share", bad}}).find("is not a number"), std::string::npos) << bad;
    EXPECT_EQ(problem({{"share", true}}), "sample.share: is not a number");
    EXPECT_EQ(problem({{"window", 2.5}}), "sample.window: 2.5 is not a whole number");
    EXPECT_EQ(problem({{"only_nan", "yes"}}), "sample.only_nan: 'yes' is neither true nor false");
    EXPECT_EQ(problem({{"only_nan", 1}}), "sample.only_nan: is neither true nor false");
    EXPECT_NE(problem({{"regex", "("}}).find("'(' is no regular expression"), std::string::npos);
    EXPECT_EQ(problem({{"mode", "EVALL"}}),
              "sample.mode: 'EVALL' is not one of EVAL, TRAIN, GLOBAL (did you mean 'EVAL'?)");
}

TEST(Parameters, AskingForAnotherTypeIsTheRulesMistake) {
    const Parameters complete = defaults_of(kInfo);
    EXPECT_THROW(static_cast<void>(complete.at("mode")), std::out_of_range);
    EXPECT_THROW(static_cast<void>(complete.at("limit")), std::out_of_range);
    EXPECT_THROW(static_cast<void>(complete.flag("nothing")), std::out_of_range);
}

TEST(Parameters, TheirRangesAreWords) {
    std::vector<std::string> words;
    for (const auto& parameter : kInfo.parameters) words.push_back(model::range_in_words(parameter));
    EXPECT_EQ(words,
              (std::vector<std::string>{"0 to 1", "whole, 1 to 100", "-10 to 10, or none", "true or false",
                                        "a regular expression", "texts, separated by commas, or none",
                                        "EVAL, TRAIN, GLOBAL"}));
}

}  // namespace
}  // namespace traindbg::rules
