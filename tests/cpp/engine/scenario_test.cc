// Runs every file of tests/scenarios.
#include "traindbg/engine/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "traindbg/rules/other_run.h"

namespace traindbg::scenario {
namespace {

std::vector<std::string> scenario_files() {
    std::vector<std::string> files;
    const std::filesystem::path root = std::filesystem::path(TRAINDBG_SOURCE_DIR) / "tests/scenarios";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
        if (entry.path().extension() == ".txt")
            files.push_back(std::filesystem::relative(entry.path(), root).string());
    std::sort(files.begin(), files.end());
    return files;
}

std::string text_of(const std::string& file) {
    std::ifstream in(std::filesystem::path(TRAINDBG_SOURCE_DIR) / "tests/scenarios" / file);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
    std::string name;
    for (const char c : info.param.substr(0, info.param.size() - 4))
        name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
    return name;
}

// Another run of a rule is another scenario, named by its file.
class OtherScenario final : public model::StepSource {
  public:
    explicit OtherScenario(Scenario scenario) : scenario_(std::move(scenario)), source_(scenario_) {}
    [[nodiscard]] base::Result<std::optional<model::StepView>> next(std::chrono::nanoseconds wait) override {
        return source_.next(wait);
    }
    [[nodiscard]] bool ended() const override { return source_.ended(); }

  private:
    Scenario scenario_;
    ScenarioSource source_;
};

base::Result<std::unique_ptr<model::StepSource>> open_scenario(const std::string& file) {
    const std::string text = text_of(file);
    if (text.empty()) return base::Status(base::Code::kNotFound, file + ": there is no such run");
    TRAINDBG_ASSIGN_OR_RETURN(Scenario scenario, parse(text));
    return std::unique_ptr<model::StepSource>(std::make_unique<OtherScenario>(std::move(scenario)));
}

[[maybe_unused]] const bool kOpensScenarios = [] {
    rules::set_other_run_opener(&open_scenario);
    return true;
}();

class ScenarioTest : public testing::TestWithParam<std::string> {};

TEST_P(ScenarioTest, ComesOutAsExpected) {
    const auto scenario = parse(text_of(GetParam()));
    ASSERT_TRUE(scenario.is_ok()) << GetParam() << ": " << scenario.status().message();
    const auto verdict = run(*scenario);
    ASSERT_TRUE(verdict.is_ok()) << verdict.status().message();
    const std::vector<std::string> wrong = mismatches(*scenario, *verdict);
    for (const std::string& sentence : wrong) ADD_FAILURE() << GetParam() << ": " << sentence;
    if (!wrong.empty()) std::puts(describe(*verdict).c_str());
}

INSTANTIATE_TEST_SUITE_P(All, ScenarioTest, testing::ValuesIn(scenario_files()), test_name);

TEST(ScenarioFiles, EveryRuleHasTwoThatFireAndThreeThatDoNot) {
    std::map<std::string, int> fires, silent;
    for (const std::string& file : scenario_files()) {
        const auto scenario = parse(text_of(file));
        ASSERT_TRUE(scenario.is_ok()) << file;
        const std::string folder = file.substr(0, file.rfind('/'));
        const bool any = std::any_of(
            scenario->expectations.begin(), scenario->expectations.end(), [](const Expectation& e) {
                const auto severity = e.conditions.find("severity");
                return e.what == "finding" && (severity == e.conditions.end() || severity->second != "info");
            });
        ++(any ? fires : silent)[folder];
    }
    for (const rules::RuleEntry& entry : rules::builtin_rules()) {
        EXPECT_GE(fires[entry.info->name], 2) << entry.info->name;
        EXPECT_GE(silent[entry.info->name], 3) << entry.info->name;
    }
    // Of those that are a documented condition: one on each side of it.
    for (const rules::RuleEntry& entry : rules::compatible_rules()) {
        EXPECT_GE(fires["compatible/" + entry.info->name], 1) << entry.info->name;
        EXPECT_GE(silent["compatible/" + entry.info->name], 1) << entry.info->name;
    }
}

TEST(ScenarioParser, NamesTheLineThatIsWrong) {
    const auto scenario = parse("scenario: a\nseries loss value train 0..9: 1 2\n");
    ASSERT_FALSE(scenario.is_ok());
    EXPECT_NE(scenario.status().message().find("line 2: 2 values for 10 steps"), std::string::npos)
        << scenario.status().message();
}

TEST(ScenarioParser, AFindingThatNobodyExpectsIsAMismatch) {
    const auto scenario = parse("scenario: a\nseries loss value train 0..9: nan\nexpect clean overfit\n");
    ASSERT_TRUE(scenario.is_ok());
    const auto verdict = run(*scenario);
    ASSERT_TRUE(verdict.is_ok());
    const auto wrong = mismatches(*scenario, *verdict);
    ASSERT_EQ(wrong.size(), 2U);
    EXPECT_NE(wrong[0].find("overfit is not_checked"), std::string::npos);
    EXPECT_NE(wrong[1].find("not expected: non_finite"), std::string::npos);
}

}  // namespace
}  // namespace traindbg::scenario
