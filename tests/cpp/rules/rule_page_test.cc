// docs/rules is what the rules say about themselves. TRAINDBG_WRITE_RULE_PAGES=1 writes it.
#include "traindbg/rules/rule_page.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace traindbg::rules {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(TRAINDBG_SOURCE_DIR) / "docs/rules";

void check(const std::string& file, const std::string& text) {
    if (std::getenv("TRAINDBG_WRITE_RULE_PAGES") != nullptr) std::ofstream(kFolder / file) << text;
    std::ifstream in(kFolder / file);
    std::stringstream stored;
    stored << in.rdbuf();
    EXPECT_EQ(stored.str(), text) << file << " is out of date: TRAINDBG_WRITE_RULE_PAGES=1 rules_test";
}

TEST(RulePages, AreWhatTheRulesSay) {
    for (const RuleEntry& entry : builtin_rules()) check(entry.info->name + ".md", rule_page_markdown(entry));
    check("README.md", rule_index_markdown());
    for (const RuleEntry& entry : compatible_rules())
        check("compatible/" + entry.info->name + ".md", rule_page_markdown(entry));
    check("compatible/README.md", compatible_index_markdown());
}

TEST(RulePages, ThereIsNoneForARuleThatIsGone) {
    for (const auto& page : std::filesystem::recursive_directory_iterator(kFolder)) {
        if (page.is_directory()) continue;
        const std::string name = page.path().stem().string();
        EXPECT_TRUE(name == "README" || find_rule(name).is_ok()) << page.path();
    }
}

}  // namespace
}  // namespace traindbg::rules
