#include "traindbg/settings/settings.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace traindbg::settings {
namespace {

using base::Code;
using model::Mode;
using model::Requirement;
using model::What;

Settings read(std::string_view text, Form form = Form::kTraindbg) {
    auto settings = parse(text, "traindbg.toml", form);
    EXPECT_TRUE(settings.is_ok()) << settings.status().message();
    return settings.is_ok() ? std::move(settings).value() : Settings();
}

void expect_refused(std::string_view text, const std::vector<std::string>& parts) {
    const auto settings = parse(text, "traindbg.toml", Form::kTraindbg);
    ASSERT_FALSE(settings.is_ok()) << text;
    EXPECT_EQ(settings.status().code(), Code::kInvalidArgument);
    for (const std::string& part : parts)
        EXPECT_NE(settings.status().message().find(part), std::string::npos)
            << settings.status().message() << " lacks " << part;
}

TEST(Settings, OptionsAreTextsAsOnTheCommandLineAndSayWhereTheyStand) {
    const Settings settings = read(R"(on-finding = "stop"
collect = ["weights", "gradients"]
every = 20
stop_grace = 2.5
no-report = true
)");
    const std::vector<Setting> expected = {
        {"collect", {"weights", "gradients"}, "traindbg.toml:2"},
        {"every", {"20"}, "traindbg.toml:3"},
        {"no-report", {"true"}, "traindbg.toml:5"},
        {"on-finding", {"stop"}, "traindbg.toml:1"},
        {"stop-grace", {"2.5"}, "traindbg.toml:4"},
    };
    EXPECT_EQ(settings.options, expected);
}

TEST(Settings, ParametersOfRulesAreThoseOfTheOption) {
    const Settings settings = read("[rule.vanishing_gradient]\nratio = 1e-5\nsteps = 3\n[rule.overfit]\n");
    EXPECT_EQ(settings.rule_settings, (std::vector<std::string>{"overfit", "vanishing_gradient.ratio=1e-05",
                                                                "vanishing_gradient.steps=3"}));
}

TEST(Settings, AParameterMayBeATextATruthOrAList) {
    const Settings settings = read("[rule.some]\nregex = '.*relu'\nonly_nan = true\nnames = ['a', 'b']\n");
    EXPECT_EQ(settings.rule_settings,
              (std::vector<std::string>{"some.names=a,b", "some.only_nan=true", "some.regex=.*relu"}));
}

TEST(Settings, CollectionsHaveOnePatternOrListsOfThem) {
    const Settings settings = read(R"([collection]
heads = "attention.*weight"
some = ["a", "b"]
blocks = {include = ["block"], exclude = "bias$"}
)");
    ASSERT_EQ(settings.collections.size(), 3U);
    EXPECT_EQ(settings.collections[0], (model::CollectionSpec{"blocks", {"block"}, {"bias$"}}));
    EXPECT_EQ(settings.collections[1], (model::CollectionSpec{"heads", {"attention.*weight"}, {}}));
    EXPECT_EQ(settings.collections[2], (model::CollectionSpec{"some", {"a", "b"}, {}}));
}

TEST(Settings, ACaptureSaysWhatAndWhen) {
    const Settings settings = read(R"(
[[capture]]
collection = ["weights", "gradients"]
what = ["statistics", "raw"]
every = 100
start = 10
end = 1000

[[capture]]
collection = "activations"
mode = "eval"
steps = [100, 0, 7]

[[capture]]
collection = "outputs"
what = "histogram"
mode = "every"
seconds = 1.5

[[capture]]
collection = "inputs"

[[capture]]
collection = "inputs"
what = ["channels", "digest"]
)");
    ASSERT_EQ(settings.captures.size(), 6U);
    Requirement expected;
    expected.collection = "weights";
    expected.what = What::kStatistics | What::kRaw;
    expected.schedule = {.every = 100, .start = 10, .end = 1000};
    expected.asked_by = "user";
    EXPECT_EQ(settings.captures[0], expected);
    expected.collection = "gradients";
    EXPECT_EQ(settings.captures[1], expected);
    EXPECT_EQ(settings.captures[2].mode, Mode::kEval);
    EXPECT_EQ(settings.captures[2].steps, (std::vector<model::StepIndex>{0, 7, 100}));
    EXPECT_EQ(settings.captures[2].schedule.every, 0U) << "at no other steps";
    EXPECT_EQ(settings.captures[3].mode, Mode::kGlobal);
    EXPECT_EQ(settings.captures[3].what, What::kStatistics | What::kHistogram);
    EXPECT_EQ(settings.captures[3].every_ms, 1500U);
    EXPECT_EQ(settings.captures[3].schedule.every, 0U);
    EXPECT_EQ(settings.captures[4].schedule.every, 1U) << "nothing said: every step";
    EXPECT_EQ(settings.captures[5].what, What::kStatistics | What::kChannels | What::kDigest);
}

TEST(Settings, TextsAndCommentsMayHaveAnyLetters) {
    const Settings settings = read(
        "\xEF\xBB\xBF# \xC3\xA4\nname = \"\xC3\xA4 \\\" \xC3\xB6\"  # \xC3\xBC\n"
        "other = '''\n'\xC3\xA4\n'''\nthird = \"\"\"\xC3\xA4\n\\\"\"\"\"\nfourth = 'C:\\'\n");
    EXPECT_EQ(settings.options.size(), 4U);
}

TEST(Settings, OfAPyprojectOnlyItsTableIsRead) {
    const std::string text = "[project]\nname = \"x\"\n[tool.other]\nevery = 1\n";
    EXPECT_TRUE(read(text, Form::kPyproject).options.empty());
    const Settings settings = read(text + "[tool.traindbg]\nevery = 5\n", Form::kPyproject);
    ASSERT_EQ(settings.options.size(), 1U);
    EXPECT_EQ(settings.options[0].origin, "traindbg.toml:6");
}

TEST(Settings, WhatIsWrongIsNamedWithItsLine) {
    expect_refused("every = 1\nevery = 2\n", {"traindbg.toml:2"});
    expect_refused("every = \n", {"traindbg.toml:1"});
    expect_refused("\nevery = {a = 1}\n", {"traindbg.toml:2", "every"});
    expect_refused("every = [[1]]\n", {"traindbg.toml:1", "every"});
    expect_refused("rule = 3\n", {"rule", "[rule."});
    expect_refused("[rule]\nx = 3\n", {"traindbg.toml:2", "rule.x"});
    expect_refused("[rule.x]\ny = {a = 1}\n", {"rule.x.y", "value"});
    expect_refused("collection = 3\n", {"collection"});
    expect_refused("[collection]\na = 3\n", {"collection.a", "regular expression"});
    expect_refused("[collection]\na = {includ = \"x\"}\n", {"includ", "include"});
    expect_refused("[collection]\na = {exclude = \"x\"}\n", {"collection.a", "include"});
    expect_refused("[collection]\na = []\n", {"collection.a", "include"});
    expect_refused("[capture]\ncollection = \"x\"\n", {"capture", "[[capture]]"});
    expect_refused("[[capture]]\nevery = 3\n", {"capture", "collection"});
    expect_refused("[[capture]]\ncollection = \"x\"\nevry = 3\n", {"traindbg.toml:3", "evry", "every"});
    expect_refused("[[capture]]\ncollection = \"x\"\nevery = -3\n", {"capture.every"});
    expect_refused("[[capture]]\ncollection = \"x\"\nevery = \"3\"\n", {"capture.every"});
    expect_refused("[[capture]]\ncollection = \"x\"\nevery = 0\n", {"capture.every", "from 1 up"});
    expect_refused("[[capture]]\ncollection = \"x\"\nstart = 10\nend = 5\n", {"capture.end"});
    expect_refused("[[capture]]\ncollection = \"x\"\nstart = 10\nend = 20\nevery = 100\n",
                   {"no step is due", "start 10, end 20, every 100"});
    expect_refused("[[capture]]\ncollection = \"x\"\nstart = 10\nsteps = [1, 2]\n", {"no step is due"});
    expect_refused("[[capture]]\ncollection = \"x\"\nmode = \"predict\"\n", {"capture.mode"});
    expect_refused("[[capture]]\ncollection = \"x\"\nwhat = \"mean\"\n", {"mean", "histogram"});
    expect_refused("[[capture]]\ncollection = \"x\"\nmode = \"test\"\n", {"capture.mode", "eval"});
    expect_refused("[[capture]]\ncollection = \"x\"\nsteps = 3\n", {"capture.steps", "list"});
    expect_refused("[[capture]]\ncollection = \"x\"\nseconds = 0\n", {"capture.seconds"});
    expect_refused("# \xC3\xA4\nx = \"\xC3\xA4\"\n\xCF\xB3 = 1\n", {"traindbg.toml:3", "quoted"});
    // In a word a quote begins no text: such letters come to where toml++ asks whether they are spaces.
    expect_refused("c = 1{{\"Hook\xEF\xBB\x9F!\"\n", {"traindbg.toml:1"});
    expect_refused("x 11=11='1{{\"Hook\xEF\xBB\x9F!~", {"traindbg.toml:1"});
    expect_refused("[=a]\n", {"traindbg.toml", "TOML"});
    expect_refused(std::string(kMostBytes + 1, '#'), {"larger"});
}

TEST(Settings, NoiseIsRefusedNotRead) {
    std::string text = "every = 1\n[[capture]]\ncollection = \"x\"\nsteps = [1, 2]\n";
    for (std::size_t at = 0; at < text.size(); ++at)
        for (const char byte : {'\0', '[', '{', '"', '=', '\x80', '\n'}) {
            std::string changed = text;
            changed[at] = byte;
            static_cast<void>(parse(changed, "traindbg.toml", Form::kTraindbg));
        }
    for (const char* deep : {"a = ", "a."}) {
        std::string nested;
        for (int i = 0; i < 10'000; ++i) nested += deep[1] == '.' ? "a." : "[";
        static_cast<void>(parse("x = " + nested, "traindbg.toml", Form::kTraindbg));
        static_cast<void>(parse(nested + "a = 1", "traindbg.toml", Form::kTraindbg));
    }
}

}  // namespace
}  // namespace traindbg::settings
