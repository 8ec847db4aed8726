#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "traindbg/cli/completion.h"
#include "traindbg/cli/console.h"
#include "traindbg/cli/status_line.h"
#include "traindbg/cli/step_range.h"
#include "traindbg/cli/summary.h"

namespace traindbg::cli {
namespace {

StatusFacts some_facts() {
    StatusFacts facts;
    facts.run_name = "night";
    facts.attached = true;
    facts.steps = 1200;
    facts.findings = 1;
    facts.loss = 0.25;
    facts.steps_per_second = 42;
    facts.capture_share = 0.0123;
    return facts;
}

TEST(StatusText, TellsAllWhereThereIsRoom) {
    EXPECT_EQ(status_text(some_facts(), 200),
              "traindbg night | step 1200 | 1 finding | loss 0.25 | 42 steps/s | capture 1.2 %");
}

TEST(StatusText, LeavesOutWholeFactsFromTheRight) {
    EXPECT_EQ(status_text(some_facts(), 60), "traindbg night | step 1200 | 1 finding | loss 0.25");
    EXPECT_EQ(status_text(some_facts(), 16), "traindbg night");
}

TEST(StatusText, NeverExceedsItsColumnsOrCutsACharacter) {
    StatusFacts facts = some_facts();
    facts.run_name = "größe-größe";
    for (std::size_t columns = 0; columns < 90; ++columns) {
        const std::string text = status_text(facts, columns);
        EXPECT_LE(display_width(text), columns);
        EXPECT_TRUE(text.empty() || (static_cast<unsigned char>(text.back()) & 0xC0) != 0xC0);
    }
}

TEST(StatusText, ANameCannotCarryEscapeSequences) {
    StatusFacts facts;
    facts.run_name = "a\x1b[2Jb";
    EXPECT_EQ(status_text(facts, 200).find('\x1b'), std::string::npos);
}

TEST(Wrapped, BreaksAtBlanksAndLosesNothing) {
    EXPECT_EQ(wrapped("one two three", 7, 0), "one two\nthree");
    EXPECT_EQ(wrapped("one two three", 7, 2), "one two\n  three");
    EXPECT_EQ(wrapped("größe größe", 11, 0), "größe größe") << "characters count, not bytes";
    EXPECT_EQ(wrapped("a longer-than-that b", 5, 0), "a\nlonger-than-that\nb");
    EXPECT_EQ(wrapped("", 5, 0), "");
    EXPECT_EQ(wrapped("it is 56 % of", 8, 0), "it is\n56 % of");
    EXPECT_EQ(wrapped("it is 56 %", 8, 0), "it is\n56 %");
}

TEST(Wrapped, AFileHasAHundredColumns) {
    const int file = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ASSERT_GE(file, 0);
    EXPECT_EQ(columns_of(file), 100U);
    ::close(file);
}

TEST(Colour, TheOptionBeatsTheVariableAndTheVariableBeatsNoColor) {
    EXPECT_TRUE(use_colour("always", "never", "1", "xterm", false));
    EXPECT_FALSE(use_colour("never", "always", nullptr, "xterm", true));
    EXPECT_TRUE(use_colour("", "always", "1", "xterm", false));
    EXPECT_FALSE(use_colour("", nullptr, "1", "xterm", true));
    EXPECT_FALSE(use_colour("auto", "always", nullptr, "xterm", false));
    EXPECT_TRUE(use_colour("", nullptr, "", "xterm", true));
    EXPECT_FALSE(use_colour("", nullptr, nullptr, "dumb", true));
    EXPECT_FALSE(use_colour("", nullptr, nullptr, "xterm", false));
}

TEST(DisplayWidth, CountsCharactersAndNotEscapes) {
    EXPECT_EQ(display_width("abc"), 3U);
    EXPECT_EQ(display_width("µs"), 2U);
    EXPECT_EQ(display_width(styled("µs", Style::kRed, true)), 2U);
    EXPECT_EQ(padded("µs", 4), "µs  ");
    EXPECT_EQ(padded("µs", 4, true), "  µs");
}

TEST(StepRange, EveryFormIsUnderstood) {
    const auto is = [](const char* text, std::uint64_t first, std::uint64_t end) {
        const auto range = parse_step_range(text);
        return range.is_ok() && range->first == first && range->end == end;
    };
    EXPECT_TRUE(is("", 0, UINT64_MAX));
    EXPECT_TRUE(is("10:20", 10, 20));
    EXPECT_TRUE(is("10:", 10, UINT64_MAX));
    EXPECT_TRUE(is(":20", 0, 20));
    EXPECT_TRUE(is("7", 7, 8));
    for (const char* wrong : {"20:10", "5:5", "a:b", "1:2:3", "-1:3", "1.5:", "x"})
        EXPECT_FALSE(parse_step_range(wrong).is_ok()) << wrong;
}

TEST(SummaryText, WithoutAModelItSaysWhyAndNothingElse) {
    Supervised supervised;
    supervised.was_judged = true;
    supervised.verdict.outcomes = {{"dead_relu", model::CheckState::kNotChecked, "no step was recorded", 0}};
    Summary summary;
    summary.run_name = "night";
    summary.run = "runs/night";
    summary.command = {"python", "-I", "train.py"};
    summary.supervised = &supervised;
    const std::string text = summary_text(summary, false, 60);
    EXPECT_NE(text.find("no model was seen"), std::string::npos);
    EXPECT_NE(text.find("-I"), std::string::npos);
    EXPECT_EQ(text.find("dead_relu"), std::string::npos) << text;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = text.find('\n', begin);
        EXPECT_LE(end - begin, 60U) << text;
        begin = end + 1;
    }
    supervised.attached = true;
    EXPECT_NE(summary_text(summary, false).find("dead_relu"), std::string::npos);
}

TEST(WhyNotAttached, NamesThePythonOptionThatKeptUsOut) {
    for (const char* option : {"-I", "-E", "-S", "-uE"})
        EXPECT_NE(why_not_attached({"python3", option, "train.py"}, 0).find(option), std::string::npos)
            << option;
    // Behind the script an -E is the script's own.
    EXPECT_EQ(why_not_attached({"python", "train.py", "-E"}, 0).find("-E"), std::string::npos);
    EXPECT_EQ(why_not_attached({"python", "-W", "Ignore", "t.py"}, 0).find("option"), std::string::npos);
    EXPECT_EQ(why_not_attached({"make", "-I"}, 0).find("-I"), std::string::npos);
    EXPECT_NE(why_not_attached({"python", "t.py"}, 1).find("before a step"), std::string::npos);
}

TEST(Completion, EveryVerbAndEveryOptionIsInEveryScript) {
    const CompletionTree tree = completion_tree();
    ASSERT_FALSE(tree.empty());
    const std::string bash = bash_completion(tree);
    const std::string zsh = zsh_completion(tree);
    const std::string fish = fish_completion(tree);
    for (const CompletionVerbEntry& verb : tree) {
        const std::string word =
            verb.name.substr(verb.name.find(' ') == std::string::npos ? 0 : verb.name.find(' ') + 1);
        for (const std::string* script : {&bash, &zsh, &fish})
            EXPECT_NE(script->find(word), std::string::npos) << verb.name;
        for (const Option& option : verb.options) {
            if (option.positional) continue;
            const std::string spelling = option.spellings().back();
            EXPECT_NE(bash.find(spelling), std::string::npos) << spelling;
            EXPECT_NE(zsh.find("'" + std::string(option.repeatable ? "*" : "") + spelling), std::string::npos)
                << spelling;
            EXPECT_NE(fish.find(" -l " + spelling.substr(2)), std::string::npos) << spelling;
        }
    }
}

}  // namespace
}  // namespace traindbg::cli
