#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "traindbg/model/tensor_info.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {
namespace {

TEST(Registry, IsSortedAndNamesAreUnique) {
    std::vector<std::string> names;
    for (const RuleEntry& entry : builtin_rules()) names.push_back(entry.info->name);
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
    EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
    EXPECT_EQ(default_rules().size(), names.size());
    names.clear();
    for (const RuleEntry& entry : compatible_rules()) names.push_back(entry.info->name);
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
    EXPECT_EQ(all_rules().size(), builtin_rules().size() + names.size());
    for (const std::string& name : names) EXPECT_FALSE(is_on_by_default(name)) << name;
}

TEST(Registry, ACustomRuleTakesNoNameThatIsThere) {
    const std::size_t before = all_rules().size();
    model::RuleInfo mine, other;
    mine.name = "mine";
    other.name = "overfit";
    for (const model::RuleInfo* second : {&other, &mine}) {
        const base::Status added =
            add_custom_rules({{&mine, {}, {}, false, "a.py"}, {second, {}, {}, false, "b.py"}});
        EXPECT_EQ(added.code(), base::Code::kAlreadyExists);
        EXPECT_NE(added.message().find("b.py: there is a rule called " + second->name), std::string::npos)
            << added.message();
    }
    EXPECT_EQ(all_rules().size(), before);
    EXPECT_TRUE(custom_rules().empty());
}

TEST(Registry, EveryRuleSaysWhatItIsAbout) {
    for (const RuleEntry& entry : all_rules()) {
        const model::RuleInfo& info = *entry.info;
        for (const std::string* text :
             {&info.title, &info.summary, &info.when, &info.why, &info.fix, &info.healthy, &info.cost})
            EXPECT_FALSE(text->empty()) << info.name;
        for (const model::ParameterInfo& parameter : info.parameters) {
            EXPECT_NE(info.when.find('`' + parameter.name + '`'), std::string::npos)
                << info.name << " does not say what " << parameter.name << " does to its condition";
        }
    }
}

// What a condition says is read by people: in short, and then item by item.
TEST(Registry, LongConditionsAreLists) {
    const auto words = [](const std::string& line) {
        std::istringstream in(line);
        return std::distance(std::istream_iterator<std::string>(in), {});
    };
    for (const RuleEntry& entry : builtin_rules()) {
        std::istringstream lines(entry.info->when);
        std::string line;
        std::getline(lines, line);
        const bool has_items = line.size() < entry.info->when.size();
        EXPECT_LE(words(line), has_items ? 45 : 90) << entry.info->name;
        while (std::getline(lines, line)) {
            EXPECT_TRUE(line.starts_with("- ")) << entry.info->name << ": " << line;
            EXPECT_LE(words(line), 70) << entry.info->name << ": " << line;
        }
    }
}

TEST(Registry, EveryRuleOfOursHasASourceAndKinThatExist) {
    std::set<std::string> originals;
    for (const RuleEntry& entry : compatible_rules()) originals.insert(entry.info->name);
    for (const RuleEntry& entry : builtin_rules()) {
        EXPECT_FALSE(entry.info->source.empty()) << entry.info->name;
        for (const std::string& name : split_texts(entry.info->original))
            EXPECT_TRUE(originals.contains(name)) << entry.info->name << " names " << name;
    }
}

TEST(Registry, DefaultsAreOfTheirTypesAndInRange) {
    for (const RuleEntry& entry : all_rules()) {
        const auto complete = complete_parameters(*entry.info, defaults_of(*entry.info));
        EXPECT_TRUE(complete.is_ok()) << complete.status().message();
    }
}

TEST(Registry, RequirementsNameCollectionsThatExist) {
    std::vector<RuleChoice> every;
    for (const RuleEntry& entry : all_rules()) every.push_back({entry.info->name, {}});
    const auto all = requirements_of(every);
    ASSERT_TRUE(all.is_ok());
    ASSERT_FALSE(all->empty());
    for (const model::Requirement& need : *all)
        EXPECT_TRUE(model::role_of_collection(need.collection).has_value()) << need.collection;
}

TEST(Registry, EqualRequirementsAreMergedAndNameAllWhoAsk) {
    const auto all = requirements_of({{"dead_relu", {}}, {"loss_not_decreasing", {}}});
    ASSERT_TRUE(all.is_ok());
    const auto losses = std::count_if(all->begin(), all->end(), [](const auto& need) {
        return need.collection == "losses" && need.mode == model::Mode::kTrain;
    });
    EXPECT_EQ(losses, 1);
    EXPECT_EQ(all->front().asked_by, "dead_relu, loss_not_decreasing");
}

TEST(Registry, AnUnknownRuleNamesTheNearest) {
    const auto entry = find_rule("dead_rely");
    ASSERT_FALSE(entry.is_ok());
    EXPECT_EQ(entry.status().code(), base::Code::kNotFound);
    EXPECT_NE(entry.status().message().find("'dead_relu'"), std::string::npos);
    EXPECT_FALSE(requirements_of({{"dead_rely", {}}}).is_ok());
}

}  // namespace
}  // namespace traindbg::rules
