#include "traindbg/extend/protocol.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace traindbg::extend {
namespace {

using nlohmann::json;

model::Requirement need(const char* collection, model::What what = model::What::kStatistics) {
    model::Requirement out;
    out.collection = collection;
    out.what = what;
    return out;
}

// A loss and two gradients, one of which is in a collection of the user's.
struct Sample {
    model::TensorTable tensors;
    model::StepRecord record;
    model::WorkerMeta meta;

    Sample() {
        const auto add = [&](const char* name, model::Role role) -> model::TensorInfo& {
            model::TensorInfo& info = tensors.emplace_back();
            info.id = static_cast<model::TensorId>(tensors.size() - 1);
            info.name = name;
            info.role = role;
            info.shape = {2, 2};
            return info;
        };
        add("loss/total", model::Role::kLoss);
        add("gradient/fc1.weight", model::Role::kGradient);
        add("gradient/fc2.weight", model::Role::kGradient).collections = {"heads"};
        record.step = 7;
        record.scalars = {{0, 2.5}};
        model::TensorSample sample;
        sample.tensor = 2;
        sample.statistics.count = 4;
        sample.statistics.l2 = 3;
        record.tensors = {sample, sample};
        record.tensors[1].tensor = 1;
        record.histograms = {{1, {{0, 4}}}};
        model::RawTensor raw;
        raw.tensor = 1;
        raw.dtype = tensor::DType::kInt8;
        raw.shape = {2, 2};
        raw.bytes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
        record.raw = {raw};
        meta.model_type = "Net";
    }
    [[nodiscard]] model::StepView view() const { return {3, &record, &tensors, &meta}; }
};

std::vector<std::string> names_of(const ShownStep& step) {
    std::vector<std::string> names;
    for (const ShownTensor& tensor : step.tensors) names.push_back(tensor.info->name);
    return names;
}

TEST(StepFilterTest, ShowsWhatWasAskedForAndNothingElse) {
    const Sample sample;
    StepFilter losses({need("losses")});
    EXPECT_EQ(names_of(losses.show(sample.view())), std::vector<std::string>{"loss/total"});
    StepFilter heads({need("heads")});
    EXPECT_EQ(names_of(heads.show(sample.view())), std::vector<std::string>{"gradient/fc2.weight"});
    StepFilter histograms({need("gradients", model::What::kHistogram)});
    const ShownStep& step = histograms.show(sample.view());
    ASSERT_EQ(step.tensors.size(), 1U);
    EXPECT_EQ(step.tensors[0].what(), model::What::kHistogram);
    StepFilter nothing({});
    EXPECT_TRUE(nothing.show(sample.view()).empty());
    StepFilter everything({}, true);
    EXPECT_EQ(everything.show(sample.view()).tensors.size(), 3U);
}

TEST(StepFilterTest, AnotherModeIsNotShown) {
    Sample sample;
    sample.record.mode = model::Mode::kEval;
    StepFilter losses({need("losses")});
    EXPECT_TRUE(losses.show(sample.view()).empty());
}

struct Frame {
    json object;
    std::string blob;
};

Frame read(const std::string& bytes) {
    const auto size = [&](std::size_t at) {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        return value;
    };
    EXPECT_EQ(bytes.size(), kFrameHead + size(0) + size(4));
    return {json::parse(bytes.substr(kFrameHead, size(0))), bytes.substr(kFrameHead + size(0))};
}

TEST(StepEncoderTest, TellsWhatATensorIsOnce) {
    const Sample sample;
    StepFilter filter({need("gradients", model::What::kStatistics | model::What::kRaw)});
    StepEncoder encoder;
    const auto first = encoder.encode(5, filter.show(sample.view()));
    ASSERT_TRUE(first.is_ok());
    const Frame told = read(*first);
    EXPECT_EQ(told.object["rule"], 5);
    const json& step = told.object["step"];
    EXPECT_EQ(step["worker"], 3);
    EXPECT_EQ(step["mode"], "train");
    EXPECT_EQ(step["step"], 7);
    EXPECT_EQ(step["training"]["model_type"], "Net");
    ASSERT_EQ(step["tensors"].size(), 2U);
    EXPECT_EQ(step["tensors"][0]["new"]["name"], "gradient/fc1.weight");
    EXPECT_EQ(step["tensors"][0]["new"]["original_name"], "gradient/Net_fc1.weight");
    EXPECT_EQ(step["tensors"][0]["new"]["original_collections"], json({"all", "default"}));
    EXPECT_EQ(step["tensors"][0]["statistics"], json({4, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0}));
    EXPECT_EQ(step["tensors"][0]["raw"], json({"int8", {2, 2}, 0, 4}));
    EXPECT_EQ(told.blob, std::string("\1\2\3\4"));
    const auto second = encoder.encode(5, filter.show(sample.view()));
    ASSERT_TRUE(second.is_ok());
    const Frame again = read(*second);
    EXPECT_FALSE(again.object["step"].contains("training"));
    EXPECT_FALSE(again.object["step"]["tensors"][0].contains("new"));
}

TEST(StepEncoderTest, NumbersThatAreNotFiniteHaveWords) {
    Sample sample;
    sample.record.scalars[0].value = std::numeric_limits<double>::quiet_NaN();
    StepFilter filter({need("losses")});
    StepEncoder encoder;
    const auto bytes = encoder.encode(0, filter.show(sample.view()));
    ASSERT_TRUE(bytes.is_ok());
    EXPECT_EQ(read(*bytes).object["step"]["tensors"][0]["value"], "nan");
}

TEST(AnswerTest, IsWholeOrYetToComeOrNone) {
    const std::string whole = frame("{}");
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const auto part = answer_in(std::string_view(whole).substr(0, size));
        ASSERT_TRUE(part.is_ok());
        EXPECT_FALSE(part->has_value()) << size;
    }
    const auto answer = answer_in(whole);
    ASSERT_TRUE(answer.is_ok());
    EXPECT_EQ(**answer, "{}");
    EXPECT_FALSE(answer_in(whole + "x").is_ok());
    EXPECT_FALSE(answer_in("Traceback (most recent call last)").is_ok());
    EXPECT_FALSE(answer_in(frame("{}", "blob")).is_ok());
}

std::string why_not(std::string_view text) {
    const auto judgement = judgement_from_answer(text);
    return judgement.is_ok() ? "" : judgement.status().message();
}

TEST(AnswerTest, ARulesOwnErrorIsItsWords) {
    EXPECT_EQ(why_not("{\"error\": \"ValueError: no (a.py, line 3)\"}"), "ValueError: no (a.py, line 3)");
}

TEST(AnswerTest, WhatIsNoAnswerIsNamed) {
    for (const char* text :
         {"", "[]", "7", "{\"events\": 7}", "{\"events\": [7]}", "{\"events\": [{}]}", "{\"error\": 7}",
          "{\"events\": [{\"fire\": {\"message\": \"m\", \"severity\": \"fatal\"}}]}",
          "{\"events\": [{\"fire\": {\"severity\": \"error\"}}]}", "{\"events\": [{\"fire\": []}]}"})
        EXPECT_NE(why_not(text).find("answered what is no answer"), std::string::npos)
            << text << why_not(text);
}

TEST(AnswerTest, EventsKeepTheirOrderAndFindingsTheirWords) {
    const auto judgement = judgement_from_answer(
        R"({"judged": true, "events": [{"clear": "a"}, {"fire": {"key": "a", "message": "m", "severity": "error",
            "first_step": 3, "places": 2, "tensor": "t",
            "evidence": [{"name": "n", "value": "inf", "relation": "limit", "reference": 2}],
            "plots": [{"tensor": "t", "statistic": "l2"}]}}]})");
    ASSERT_TRUE(judgement.is_ok()) << judgement.status().message();
    EXPECT_TRUE(judgement->judged);
    ASSERT_EQ(judgement->events.size(), 2U);
    EXPECT_EQ(std::get<Cleared>(judgement->events[0]).key, "a");
    const auto& finding = std::get<model::Finding>(judgement->events[1]);
    EXPECT_EQ(finding.severity, model::Severity::kError);
    EXPECT_EQ(finding.first_step, 3U);
    EXPECT_EQ(finding.places, 2U);
    ASSERT_EQ(finding.evidence.size(), 1U);
    EXPECT_TRUE(std::isinf(finding.evidence[0].value));
    EXPECT_EQ(finding.plots, (std::vector<std::pair<std::string, std::string>>{{"t", "l2"}}));
}

TEST(AnswerTest, TextsAreCutBetweenLetters) {
    std::string letters;
    for (int i = 0; i < 3000; ++i) letters += "ä";
    const json answer = {{"events", {{{"fire", {{"message", "m" + letters}, {"severity", "info"}}}}}}};
    const auto judgement = judgement_from_answer(answer.dump());
    ASSERT_TRUE(judgement.is_ok()) << judgement.status().message();
    EXPECT_EQ(std::get<model::Finding>(judgement->events[0]).message.size(), 4095U);
}

TEST(AnswerTest, TooManyEventsAreGarbage) {
    json answer = {{"events", json::array()}};
    for (int i = 0; i < 1001; ++i) answer["events"].push_back({{"clear", "a"}});
    EXPECT_NE(why_not(answer.dump()).find("1001 entries"), std::string::npos);
}

constexpr std::string_view kRule =
    R"({"class": "Big", "name": "big", "severity": "warning", "everything": false,
    "parameters": [{"name": "limit", "type": "number", "default": 2, "min": 0, "max": 10}]})";
constexpr std::string_view kNeeds =
    R"({"needs": [{"collection": "losses", "mode": "train", "what": ["statistics", "raw"], "every": 5}]})";

TEST(DescriptionTest, SaysWhatARuleIs) {
    const auto rules = rules_from_answer(R"({"rules": [)" + std::string(kRule) + "]}");
    ASSERT_TRUE(rules.is_ok()) << rules.status().message();
    ASSERT_EQ(rules->size(), 1U);
    const PythonRuleInfo& rule = rules->front();
    EXPECT_EQ(rule.class_name, "Big");
    EXPECT_EQ(rule.info.parameters.at(0).max, 10);
}

TEST(NeedsTest, SayWhatIsCapturedAndForWhom) {
    const auto needs = needs_from_answer(kNeeds, "big");
    ASSERT_TRUE(needs.is_ok()) << needs.status().message();
    ASSERT_EQ(needs->size(), 1U);
    EXPECT_EQ(needs->front().asked_by, "big");
    EXPECT_EQ(needs->front().schedule.every, 5U);
    EXPECT_TRUE(has(needs->front().what, model::What::kRaw));
}

TEST(NeedsTest, WhatIsWrongIsNamed) {
    const auto with = [](std::string_view from, std::string_view to) {
        std::string needs(kNeeds);
        needs.replace(needs.find(from), from.size(), to);
        return needs_from_answer(needs, "big").status().message();
    };
    EXPECT_NE(with("\"raw\"", "\"everything\"").find("a need of 'everything'"), std::string::npos);
    EXPECT_NE(with("\"train\"", "\"test\"").find("mode 'test'"), std::string::npos);
}

TEST(AnswerTest, AnErrorOfMemoryIsTold) {
    EXPECT_TRUE(done_from_answer("{}").is_ok());
    EXPECT_EQ(done_from_answer(R"({"error": "a"})").code(), base::Code::kInvalidArgument);
    EXPECT_EQ(done_from_answer(R"({"error": "a", "out_of_memory": true})").code(),
              base::Code::kResourceExhausted);
}

TEST(DescriptionTest, WhatIsWrongIsNamed) {
    const auto with = [](std::string_view from, std::string_view to) {
        std::string rule(kRule);
        rule.replace(rule.find(from), from.size(), to);
        const auto rules = rules_from_answer(R"({"rules": [)" + rule + "]}");
        return rules.is_ok() ? std::string() : rules.status().message();
    };
    EXPECT_NE(with("\"big\"", "\"two words\"").find("rule 'two words'"), std::string::npos);
    EXPECT_NE(with("\"warning\"", "\"fatal\"").find("no severity 'fatal'"), std::string::npos);
    EXPECT_NE(with("\"default\": 2", "\"default\": 20").find("limit: 20 is out of range"), std::string::npos);
    EXPECT_NE(with("\"number\"", "\"matrix\"").find("type 'matrix'"), std::string::npos);
}

}  // namespace
}  // namespace traindbg::extend
