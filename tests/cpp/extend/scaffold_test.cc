#include "traindbg/extend/scaffold.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "storage/temporary_directory.h"

namespace traindbg::extend {
namespace {

std::string text_of(const std::string& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

TEST(ScaffoldTest, WritesARuleOfEachKind) {
    const testing::TemporaryDirectory directory;
    for (const auto& [kind, source] :
         {std::pair(RuleKind::kPython, "stale_norm.py"), {RuleKind::kCpp, "stale_norm.cc"}}) {
        const std::string folder = directory.path() + "/" + source;
        const auto written = write_new_rule("stale_norm", kind, folder);
        ASSERT_TRUE(written.is_ok()) << written.status().message();
        for (const std::string& path : *written) {
            EXPECT_EQ(text_of(path).find("@NAME@"), std::string::npos) << path;
            EXPECT_FALSE(text_of(path).empty()) << path;
        }
        EXPECT_NE(text_of(folder + "/" + source).find("StaleNorm"), std::string::npos);
        EXPECT_TRUE(std::filesystem::exists(folder + "/README.md"));
    }
    EXPECT_EQ(text_of(directory.path() + "/stale_norm.cc/include/traindbg/plugin.h"),
              text_of(TRAINDBG_SOURCE_DIR "/include/traindbg/plugin.h"));
}

TEST(ScaffoldTest, OverwritesNothing) {
    const testing::TemporaryDirectory directory;
    ASSERT_TRUE(write_new_rule("stale_norm", RuleKind::kPython, directory.path()).is_ok());
    const std::string file = directory.path() + "/stale_norm.py";
    std::ofstream(file) << "mine";
    for (const RuleKind kind : {RuleKind::kPython, RuleKind::kCpp})
        EXPECT_EQ(write_new_rule("other", kind, directory.path()).status().code(),
                  base::Code::kAlreadyExists);
    EXPECT_EQ(text_of(file), "mine");
}

TEST(ScaffoldTest, ANameIsAFaultInSmallLetters) {
    for (const char* name : {"", "Stale", "stale norm", "../stale", "1st", "stale_"})
        EXPECT_EQ(write_new_rule(name, RuleKind::kPython, "/nowhere").status().code(),
                  base::Code::kInvalidArgument)
            << name;
}

}  // namespace
}  // namespace traindbg::extend
