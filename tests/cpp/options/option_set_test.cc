#include "traindbg/options/option_set.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "traindbg/options/settings_file.h"

namespace traindbg::options {
namespace {

// Options like those of `run`, with a command after them.
struct RunLike {
    bool quiet = false;
    std::string name;
    std::string action = "none";
    std::vector<std::string> rules;
    std::vector<std::string> settings;
    double grace = 30;
    std::uint64_t every = 10;
    std::vector<std::string> command;
    OptionSet options{"run"};

    RunLike() {
        options.text({.names = "--name", .placeholder = "NAME"}, name);
        options.group("Settable", true);
        options.flag({.names = "-q,--quiet"}, quiet);
        options.text({.names = "--on-finding", .placeholder = "ACTION", .choices = {"none", "stop"}}, action);
        options.texts({.names = "--rules", .placeholder = "A,B"}, rules, true);
        options.texts({.names = "--rule", .placeholder = "SETTING"}, settings, false);
        options.number({.names = "--stop-grace", .placeholder = "SECONDS"}, grace, 0, 100);
        options.count({.names = "--every", .placeholder = "N"}, every, 1);
        options.command(command);
    }
    base::Status parse(const std::vector<std::string>& arguments) { return options.parse(arguments); }
};
using Words = std::vector<std::string>;

TEST(OptionSet, TheCommandBeginsAtTheFirstArgumentThatIsNoOption) {
    RunLike run;
    ASSERT_TRUE(run.parse({"--name", "a", "-q", "python", "train.py", "--name", "b", "--", "-q"}).is_ok());
    EXPECT_EQ(run.name, "a");
    EXPECT_TRUE(run.quiet);
    EXPECT_EQ(run.command, (Words{"python", "train.py", "--name", "b", "--", "-q"}));
}

TEST(OptionSet, TheFirstDoubleDashIsNotPartOfTheCommandAndALaterOneIs) {
    RunLike run;
    ASSERT_TRUE(run.parse({"--", "--odd-program", "--", "x"}).is_ok());
    EXPECT_EQ(run.command, (Words{"--odd-program", "--", "x"}));
}

TEST(OptionSet, AValueMayBeJoinedByAnEqualsSign) {
    RunLike run;
    ASSERT_TRUE(run.parse({"--name=a=b", "--stop-grace=1.5", "python"}).is_ok());
    EXPECT_EQ(run.name, "a=b");
    EXPECT_EQ(run.grace, 1.5);
    EXPECT_EQ(run.command, (Words{"python"}));
}

TEST(OptionSet, WhatTheCommandLineLeftOpenComesFromElsewhereTheFirstPlaceCounts) {
    RunLike run;
    ASSERT_TRUE(run.parse({"--every", "5", "python"}).is_ok());
    ASSERT_TRUE(run.options
                    .apply({{"every", {"7"}, "TRAINDBG_EVERY"},
                            {"rules", {"a,b"}, "TRAINDBG_RULES"},
                            {"name", {"x"}, "not settable"}})
                    .is_ok());
    ASSERT_TRUE(run.options
                    .apply({{"every", {"8"}, "file:1"},
                            {"rules", {"c", "d"}, "file:2"},
                            {"quiet", {"true"}, "file:3"},
                            {"on-finding", {"stop"}, "file:4"},
                            {"stop-grace", {"1.5"}, "file:5"},
                            {"rule", {"x.y=1", "x.z=2"}, "file:6"}})
                    .is_ok());
    EXPECT_EQ(run.every, 5U);
    EXPECT_EQ(run.rules, (Words{"a", "b"}));
    EXPECT_EQ(run.name, "");
    EXPECT_TRUE(run.quiet);
    EXPECT_EQ(run.action, "stop");
    EXPECT_EQ(run.grace, 1.5);
    EXPECT_EQ(run.settings, (Words{"x.y=1", "x.z=2"}));
    EXPECT_EQ(run.options.settable(), (Words{"quiet", "on-finding", "rules", "rule", "stop-grace", "every"}));
}

TEST(OptionSet, ABadValueFromElsewhereNamesItsPlace) {
    const std::vector<std::pair<settings::Setting, std::string>> cases = {
        {{"every", {"x"}, "file:7"}, "file:7: every: 'x' is not a whole number"},
        {{"every", {"0"}, "file:7"}, "file:7: every: 0 is less than 1"},
        {{"every", {"1", "2"}, "file:7"}, "file:7: every: expected one value"},
        {{"every", {}, "file:7"}, "file:7: every: expected a value"},
        {{"quiet", {"yes"}, "file:7"}, "file:7: quiet: 'yes' is not true or false"},
        {{"on-finding", {"stopp"}, "TRAINDBG_ON_FINDING"}, "TRAINDBG_ON_FINDING: on-finding: 'stopp' is not"},
    };
    for (const auto& [setting, message] : cases) {
        RunLike run;
        ASSERT_TRUE(run.parse({"python"}).is_ok());
        const base::Status status = run.options.apply({setting});
        EXPECT_EQ(status.code(), base::Code::kInvalidArgument) << message;
        EXPECT_NE(status.message().find(message), std::string::npos) << status.message();
    }
}

TEST(OptionSet, AnOptionIsCalledByThePlaceWhereItsValueStands) {
    RunLike run;
    ASSERT_TRUE(run.parse({"--every", "5", "python"}).is_ok());
    ASSERT_TRUE(run.options.apply({{"rules", {"a"}, "TRAINDBG_RULES"}}).is_ok());
    ASSERT_TRUE(
        run.options
            .apply({{"every", {"8"}, "file:1"}, {"rules", {"b"}, "file:2"}, {"rule", {"x.y=1"}, "file:3"}})
            .is_ok());
    EXPECT_EQ(run.options.place_of("every"), "--every");
    EXPECT_EQ(run.options.place_of("rules"), "TRAINDBG_RULES: rules");
    EXPECT_EQ(run.options.place_of("rule"), "file:3: rule");
    EXPECT_EQ(run.options.place_of("stop-grace"), "--stop-grace");
    EXPECT_EQ(place_of(nullptr, "every"), "--every");
}

TEST(OptionSet, TheLastOfTwoValuesCounts) {
    RunLike run;
    ASSERT_TRUE(run.parse({"--name", "a", "--name", "b", "python"}).is_ok());
    EXPECT_EQ(run.name, "b");
}

TEST(OptionSet, ListsAreSplitAndAccumulateAndSettingsAreNotSplit) {
    RunLike run;
    ASSERT_TRUE(
        run.parse({"--rules", "a,b", "--rules", "c", "--rule", "x.y=1,2", "--rule", "z.w=3", "python"})
            .is_ok());
    EXPECT_EQ(run.rules, (Words{"a", "b", "c"}));
    EXPECT_EQ(run.settings, (Words{"x.y=1,2", "z.w=3"}));
    EXPECT_EQ(run.command, (Words{"python"}));
}

TEST(OptionSet, AnUnknownOptionNamesTheNearest) {
    RunLike run;
    const base::Status status = run.parse({"--quite", "python"});
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "unknown option '--quite' (did you mean '--quiet'?); see traindbg run --help");
}

TEST(OptionSet, AnUnknownChoiceNamesTheNearestAndAllOfThem) {
    RunLike run;
    const base::Status status = run.parse({"--on-finding", "stp", "python"});
    EXPECT_EQ(status.message(),
              "--on-finding ACTION: 'stp' is not one of none, stop (did you mean 'stop'?); see traindbg run "
              "--help");
}

TEST(OptionSet, NumbersOutOfRangeOrNoNumbersAreRefused) {
    for (const char* value : {"-1", "101", "nan", "inf", "1s", "", "0x10"}) {
        RunLike run;
        EXPECT_FALSE(run.parse({std::string("--stop-grace=") + value, "python"}).is_ok()) << value;
        EXPECT_EQ(run.grace, 30) << value;
    }
    for (const char* value : {"0", "-1", "1.5", "18446744073709551616", "x"}) {
        RunLike run;
        EXPECT_FALSE(run.parse({std::string("--every=") + value, "python"}).is_ok()) << value;
    }
}

TEST(OptionSet, AMissingValueAndAMissingCommandAreErrors) {
    EXPECT_FALSE(RunLike().parse({"--name"}).is_ok());
    const base::Status status = RunLike().parse({"-q"});
    EXPECT_NE(status.message().find("command to run is missing"), std::string::npos) << status.message();
    EXPECT_FALSE(RunLike().parse({"--"}).is_ok());
}

TEST(OptionSet, PositionalArgumentsAreRequiredInOrderAndNoneTooMany) {
    struct Get {
        std::string run;
        std::string tensor;
        OptionSet options{"get"};
        Get() {
            options.text({.names = "RUN", .placeholder = "RUN", .positional = true, .required = true}, run);
            options.text({.names = "TENSOR", .placeholder = "TENSOR", .positional = true, .required = true},
                         tensor);
        }
    };
    Get good;
    ASSERT_TRUE(good.options.parse({"last", "gradient/fc.weight"}).is_ok());
    EXPECT_EQ(good.run, "last");
    EXPECT_EQ(good.tensor, "gradient/fc.weight");
    EXPECT_EQ(Get().options.parse({}).message(), "RUN is missing; see traindbg get --help");
    EXPECT_EQ(Get().options.parse({"last"}).message(), "TENSOR is missing; see traindbg get --help");
    EXPECT_EQ(Get().options.parse({"last", "a", "b"}).message(),
              "unexpected argument 'b'; see traindbg get --help");
}

TEST(OptionSet, AnOptionThatIsNotListedIsUnderstoodOnTheCommandLineAndOfferedNowhere) {
    std::uint64_t steps = 0;
    std::uint64_t every = 0;
    OptionSet options("set");
    options.group("Capture", true);
    options.count({.names = "--every", .placeholder = "N"}, every);
    options.count({.names = "--steps", .placeholder = "N", .listed = false}, steps);
    ASSERT_TRUE(options.parse({"--steps", "3"}).is_ok());
    EXPECT_EQ(steps, 3U);
    EXPECT_EQ(options.settable(), Words{"every"});
    ASSERT_EQ(options.groups().back().options.size(), 1U);
    EXPECT_EQ(options.groups().back().options.front().names, "--every");
    const base::Status unknown = options.parse({"--step", "3"});
    EXPECT_EQ(unknown.message().find("--steps"), std::string::npos) << unknown.message();
}

TEST(OptionSet, TerminalEscapesInArgumentsAreNotEchoed) {
    const base::Status status = RunLike().parse({"--\x1b[31mred", "python"});
    EXPECT_EQ(status.message().find('\x1b'), std::string::npos);
}

TEST(OptionSet, ARepeatablePositionalTakesAllThatAreNoOptions) {
    OptionSet options("gc");
    std::vector<std::string> runs;
    std::vector<std::string> words;
    bool flag = false;
    options.texts(
        {.names = "RUN", .placeholder = "RUN", .positional = true, .required = true, .repeatable = true},
        runs, false);
    options.texts({.names = "--word", .placeholder = "WORD"}, words, false);
    options.flag({.names = "--flag"}, flag);
    ASSERT_TRUE(options.parse({"a", "--word", "x", "b", "--flag", "c"}).is_ok());
    EXPECT_EQ(runs, (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(words, std::vector<std::string>{"x"});
    EXPECT_TRUE(flag);
}

TEST(UnknownVariables, OfThoseThatBeginLikeOursTheUnknownOnesAreNamedWithTheNearest) {
    const std::vector<std::string> environment = {
        "TRAINDBG_EVRY=5",      "TRAINDBG_EVERY=5",
        "TRAINDBG_RUN_DIR=/x",  "TRAINDBG_ZZZZ=1",
        "TRAINDBG_COLECT=",     "TRAINDBG_MY_SECRET=x",
        "TRAINDBG_HOOK=https:", "MY_TRAINDBG_EVRY=1",
        "HOME=/root",           "TRAINDBG_NOTIFY=env:TRAINDBG_HOOK"};
    const std::vector<std::string> words = {"smtp://me@host?to=a@b&password=env:TRAINDBG_MY_SECRET"};
    EXPECT_EQ(
        unknown_variables(environment, words),
        (std::vector<std::string>{"TRAINDBG_EVRY: traindbg knows no such variable, and it counts nothing "
                                  "(did you mean 'TRAINDBG_EVERY'?)",
                                  "TRAINDBG_ZZZZ: traindbg knows no such variable, and it counts "
                                  "nothing"}));
}

TEST(UnknownVariables, AllThatTheProjectReadsAreKnown) {
    const std::regex in_code(
        R"re((?:getenv\(|process_environment\(|environ(?:\.get\(|\.pop\(|\[))["'](TRAINDBG_[A-Z0-9_]+)["'])re");
    const std::regex in_scripts(R"re((?:\$\{?|\boption\(|@)(TRAINDBG_[A-Z0-9_]+)[ :=}])re");
    const std::filesystem::path root = TRAINDBG_SOURCE_DIR;
    std::set<std::string> variables;
    const auto look_at = [&](const std::filesystem::path& file) {
        static const std::set<std::string> kKinds = {".cc", ".h", ".py", ".sh", ".txt"};
        if (!kKinds.contains(file.extension().string()) && file.filename() != "Makefile") return;
        if (file.filename() == "CMakeLists.txt" && file.parent_path() != root) return;
        const bool is_code =
            file.extension() == ".cc" || file.extension() == ".h" || file.extension() == ".py";
        std::ifstream in(file);
        for (std::string line; std::getline(in, line);)
            for (std::sregex_iterator found(line.begin(), line.end(), is_code ? in_code : in_scripts), end;
                 found != end; ++found)
                variables.insert((*found)[1].str() + "=1");
    };
    for (const char* folder : {"src", "python", "tools", "benchmarks", "tests"})
        for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder))
            if (entry.is_regular_file()) look_at(entry.path());
    look_at(root / "Makefile");
    look_at(root / "CMakeLists.txt");
    for (const char* known : {"TRAINDBG_RUNS=1", "TRAINDBG_STRICT=1", "TRAINDBG_ORIGINAL_ENV=1"})
        EXPECT_TRUE(variables.contains(known)) << known;
    EXPECT_EQ(unknown_variables(std::vector<std::string>(variables.begin(), variables.end()), {}),
              std::vector<std::string>());
}

}  // namespace
}  // namespace traindbg::options
