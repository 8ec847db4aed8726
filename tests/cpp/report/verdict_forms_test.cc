// The verdict as SARIF and as JUnit XML. What other programs read of them: tests/e2e/test_check_formats.py.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "traindbg/report/report.h"

namespace traindbg::report {
namespace {

using nlohmann::json;

const model::RuleInfo kDeadRelu = {
    .name = "dead_relu",
    .title = "Dead ReLU",
    .summary = "Most units pass nothing.",
    .when = "",
    .why = "They do not learn.",
    .fix = "Lower the rate.",
    .healthy = "Sparse layers.",
    .cost = "",
    .original = "",
    .source = "",
    .severity = model::Severity::kError,
    .parameters = {},
};
const std::array<const model::RuleInfo*, 1> kRules = {&kDeadRelu};

model::RunMeta sample_run() {
    model::RunMeta run;
    run.run_id = "20261120-213045-train";
    run.command = {"python", "./my train.py", "--epochs", "3"};
    run.working_directory = "/home/me/project";
    return run;
}

model::Verdict sample_verdict() {
    model::Finding dead;
    dead.rule = "dead_relu";
    dead.key = "layer";
    dead.kind = "dead_relu";
    dead.severity = model::Severity::kError;
    dead.first_step = 3;
    dead.step = dead.last_step = 9;
    dead.tensor = "activation/relu<1>";
    dead.layer = "relu<1>";
    dead.message = "All 32 units & \"more\" are \x01 zero.";
    dead.fix = "Lower the rate.\nOr clip.";
    dead.evidence = {{"units", 32, "of", 32}};
    model::Finding note = dead;
    note.key = "other";
    note.severity = model::Severity::kInfo;
    note.message = "A note.";
    model::Verdict verdict;
    verdict.findings = {dead, note};
    verdict.outcomes = {{"dead_relu", model::CheckState::kFired, "", 9},
                        {"non_finite", model::CheckState::kClean, "", 9},
                        {"overfit", model::CheckState::kNotChecked, "no evaluation <seen>", 0}};
    verdict.causes = {{"learning_rate_too_high",
                       "Learning rate too high",
                       0.9,
                       "It died.",
                       "Lower it.",
                       {"dead_relu"},
                       {{"All 32 units are zero.", "dead_relu", "layer", model::StepIndex{3}}},
                       {{"SGD has a learning rate of 0.01.", "", "", std::nullopt}}}};
    return verdict;
}

std::string count_of(std::string_view text, std::string_view part) {
    int count = 0;
    for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1))
        ++count;
    return std::to_string(count);
}

TEST(SarifLogTest, AFindingIsAResultWithItsRuleItsPlaceAndItsNumbers) {
    const json log = json::parse(sarif_log(sample_run(), sample_verdict(), kRules));
    EXPECT_EQ(log["version"], "2.1.0");
    const json& run = log["runs"][0];
    EXPECT_EQ(run["tool"]["driver"]["rules"].size(), 3U);
    EXPECT_EQ(run["tool"]["driver"]["rules"][0]["shortDescription"]["text"], "Dead ReLU");
    ASSERT_EQ(run["results"].size(), 2U);
    const json& result = run["results"][0];
    EXPECT_EQ(result["ruleId"], "dead_relu");
    EXPECT_EQ(result["level"], "error");
    EXPECT_EQ(result["message"]["text"],
              "All 32 units & \"more\" are \\x01 zero.\n\nFix: Lower the rate.\nOr clip.");
    EXPECT_EQ(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "my%20train.py");
    EXPECT_EQ(result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "relu<1>");
    EXPECT_EQ(result["properties"]["tags"], json::array({"dead_relu"}));
    EXPECT_EQ(result["properties"]["cause"], "learning_rate_too_high");
    EXPECT_EQ(result["properties"]["evidence"][0]["value"], 32);
    EXPECT_EQ(run["results"][1]["level"], "note");
    EXPECT_NE(result["partialFingerprints"], run["results"][1]["partialFingerprints"]);
    EXPECT_EQ(run["properties"]["causes"][0]["name"], "learning_rate_too_high");
    EXPECT_EQ(run["properties"]["causes"][0]["evidence_for"][0]["step"], 3);
    EXPECT_EQ(run["properties"]["causes"][0]["evidence_against"][0]["text"],
              "SGD has a learning rate of 0.01.");
}

TEST(SarifLogTest, APendingFindingIsOpen) {
    model::Verdict verdict = sample_verdict();
    verdict.findings[0].state = model::FindingState::kPending;
    verdict.findings[0].times = 0;
    const json log = json::parse(sarif_log(sample_run(), verdict, kRules));
    EXPECT_EQ(log["runs"][0]["results"][0]["kind"], "open");
    EXPECT_EQ(log["runs"][0]["results"][0]["level"], "none");
    EXPECT_FALSE(log["runs"][0]["results"][1].contains("kind"));
}

TEST(SarifLogTest, AFindingIsAtTheLineThatItIsAbout) {
    model::Verdict verdict = sample_verdict();
    verdict.findings[0].sources = {{"module/relu", "nets/my net.py", 12, "Net.__init__"},
                                   {"optimizer", "/opt/shared/train.py", 24, ""}};
    const json result = json::parse(sarif_log(sample_run(), verdict, kRules))["runs"][0]["results"][0];
    const json& place = result["locations"][0]["physicalLocation"];
    EXPECT_EQ(place["artifactLocation"], (json{{"uri", "nets/my%20net.py"}, {"uriBaseId", "SRCROOT"}}));
    EXPECT_EQ(place["region"]["startLine"], 12);
    ASSERT_EQ(result["relatedLocations"].size(), 2U);
    const json& other = result["relatedLocations"][1];
    EXPECT_EQ(other["physicalLocation"]["artifactLocation"], (json{{"uri", "file:///opt/shared/train.py"}}));
    EXPECT_EQ(other["physicalLocation"]["region"]["startLine"], 24);
    EXPECT_EQ(other["message"]["text"], "/opt/shared/train.py:24, where the optimizer is made");
}

TEST(SarifLogTest, WhatWasNotCheckedIsANotification) {
    const json log = json::parse(sarif_log(sample_run(), sample_verdict(), {}));
    const json& told = log["runs"][0]["invocations"][0]["toolExecutionNotifications"];
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0]["associatedRule"]["id"], "overfit");
    EXPECT_EQ(told[0]["message"]["text"], "not checked: no evaluation <seen>");
}

TEST(SarifLogTest, AScriptElsewhereIsNoPlaceInTheProject) {
    model::RunMeta run = sample_run();
    const auto has_script = [&](const char* script) {
        run.command = {"python", script};
        const json log = json::parse(sarif_log(run, sample_verdict(), kRules));
        return log["runs"][0]["results"][0]["locations"][0].contains("physicalLocation");
    };
    EXPECT_TRUE(has_script("/home/me/project/src/train.py"));
    EXPECT_FALSE(has_script("/home/me/projects/train.py"));
    EXPECT_FALSE(has_script("../train.py"));
    EXPECT_FALSE(has_script("-m"));
}

TEST(SarifLogTest, NothingFoundIsAnEmptyLog) {
    const json log = json::parse(sarif_log({}, {}, {}));
    EXPECT_TRUE(log["runs"][0]["results"].empty());
}

TEST(JUnitXmlTest, ACauseSaysWhatSpeaksForItAndAgainst) {
    const std::string xml = junit_xml(sample_run(), sample_verdict(), model::Severity::kWarning);
    EXPECT_NE(xml.find("likely cause: Learning rate too high (90 %)"), std::string::npos) << xml;
    EXPECT_NE(xml.find("\nfor: dead_relu, step 3: All 32 units are zero.\n"), std::string::npos) << xml;
    EXPECT_NE(xml.find("\nagainst: SGD has a learning rate of 0.01."), std::string::npos) << xml;
}

TEST(JUnitXmlTest, APendingFindingFailsNothing) {
    model::Verdict verdict = sample_verdict();
    verdict.findings[0].state = model::FindingState::kPending;
    verdict.findings[0].times = 0;
    const std::string xml = junit_xml(sample_run(), verdict, model::Severity::kWarning);
    EXPECT_NE(xml.find("failures=\"0\""), std::string::npos) << xml;
    EXPECT_NE(xml.find("dead_relu (pending), steps 3 to 9"), std::string::npos) << xml;
}

TEST(JUnitXmlTest, ARuleIsATestCaseThatFailsOrIsSkipped) {
    const std::string xml = junit_xml(sample_run(), sample_verdict(), model::Severity::kWarning);
    EXPECT_NE(xml.find("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""), std::string::npos) << xml;
    EXPECT_EQ(count_of(xml, "<testcase "), "3");
    EXPECT_NE(
        xml.find("<failure type=\"error\" message=\"All 32 units &amp; &quot;more&quot; are \\x01 zero.\">"),
        std::string::npos)
        << xml;
    EXPECT_NE(xml.find("<skipped message=\"no evaluation &lt;seen&gt;\"/>"), std::string::npos);
    EXPECT_NE(xml.find("A note."), std::string::npos);
    EXPECT_NE(xml.find("likely cause: Learning rate too high (90 %)"), std::string::npos);
}

TEST(JUnitXmlTest, WithoutALimitNothingFails) {
    const std::string xml = junit_xml(sample_run(), sample_verdict(), std::nullopt);
    EXPECT_EQ(count_of(xml, "<failure"), "0");
    EXPECT_NE(xml.find("All 32 units"), std::string::npos) << "it is told all the same";
}

TEST(JUnitXmlTest, CharactersThatXmlForbidsAreReplaced) {
    model::Verdict verdict = sample_verdict();
    verdict.findings[0].message = "bad \xEF\xBF\xBF\xEF\xBF\xBE end";
    const std::string xml = junit_xml(sample_run(), verdict, model::Severity::kInfo);
    EXPECT_EQ(xml.find("\xEF\xBF\xBF"), std::string::npos);
    EXPECT_EQ(xml.find("\xEF\xBF\xBE"), std::string::npos);
}

TEST(TerminalExplainedTest, EachFindingSaysWhatStandsBehindIt) {
    const std::string text = terminal_explained(sample_verdict(), kRules, false);
    for (const char* part : {"units", "of 32", "fix: Lower the rate.", "why it matters: They do not learn.",
                             "no fault, though alike: Sparse layers.", "likely cause: ", "not checked"})
        EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

}  // namespace
}  // namespace traindbg::report
