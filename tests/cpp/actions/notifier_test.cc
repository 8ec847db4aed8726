// Telling findings: what becomes of slow, failing and refusing receivers. Webhooks with a real server:
// tests/e2e/test_notify.py.
#include "traindbg/actions/notifier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace traindbg::actions {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

bool never() { return false; }

// Answers as it is told, in turn; then with the last one.
class ScriptedChannel final : public Channel {
  public:
    struct Heard {
        std::vector<std::string> rules;
        std::vector<std::uint64_t> withheld;
        std::atomic<int> tries{0};
    };
    ScriptedChannel(Heard& heard, std::vector<base::Status> answers, milliseconds takes = milliseconds(0))
        : heard_(heard), answers_(std::move(answers)), takes_(takes) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "scripted"; }
    [[nodiscard]] std::string intention() const override { return "say it"; }
    [[nodiscard]] base::Status deliver(const Notification& notification,
                                       const storage::Patience& patience) override {
        const auto turn = static_cast<std::size_t>(heard_.tries++);
        for (auto waited = milliseconds(0); waited < takes_ && !patience.is_over(); waited += milliseconds(5))
            std::this_thread::sleep_for(milliseconds(5));
        if (patience.is_over()) return {base::Code::kUnavailable, "no time left"};
        const base::Status answer = answers_[std::min(turn, answers_.size() - 1)];
        if (answer.is_ok()) {
            heard_.rules.push_back(notification.finding.rule);
            heard_.withheld.push_back(notification.withheld);
        }
        return answer;
    }

  private:
    Heard& heard_;
    std::vector<base::Status> answers_;
    milliseconds takes_;
};

class NotifierTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "traindbg-notify-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory_ = pattern;
        options_.run_directory = directory_;
        options_.run_identity = "0f1e";
        options_.run = "a-run";
        options_.host = "here";
        options_.pause = milliseconds(5);
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    [[nodiscard]] static model::Finding finding(const std::string& rule,
                                                model::Severity severity = model::Severity::kWarning) {
        model::Finding made;
        made.rule = rule;
        made.key = "key";
        made.severity = severity;
        made.step = 7;
        made.layer = "fc1";
        made.message = "It is so.";
        made.fix = "Change it.";
        return made;
    }
    [[nodiscard]] Notifier notifier(std::unique_ptr<Channel> channel) const {
        std::vector<Receiver> receivers;
        receivers.push_back({std::move(channel), {}});
        return {options_, std::move(receivers)};
    }
    [[nodiscard]] std::unique_ptr<Channel> channel(const std::string& target) const {
        auto made = make_channel(target);
        EXPECT_TRUE(made.is_ok()) << made.status().message();
        return std::move(made).value();
    }
    [[nodiscard]] std::vector<json> lines_of(const std::string& name) const {
        std::ifstream file(directory_ + "/" + name);
        std::vector<json> lines;
        for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
        return lines;
    }

    std::string directory_;
    NotifierOptions options_;
};

TEST_F(NotifierTest, AFindingIsToldOnceAndWrittenDown) {
    ScriptedChannel::Heard heard;
    Notifier notifier =
        this->notifier(std::make_unique<ScriptedChannel>(heard, std::vector{base::Status::ok()}));
    notifier.tell(finding("dead_relu"));
    notifier.tell(finding("dead_relu"));
    notifier.tell(finding("overfit"));
    notifier.finish(seconds(10), &never);
    EXPECT_EQ(heard.rules, (std::vector<std::string>{"dead_relu", "overfit"}));
    EXPECT_TRUE(notifier.take_troubles().empty());
    const auto journal = lines_of("actions.jsonl");
    ASSERT_EQ(journal.size(), 2U);
    EXPECT_EQ(journal[0]["action"], "scripted");
    EXPECT_EQ(journal[0]["intention"], "say it");
    EXPECT_EQ(journal[0]["result"], "done");
}

TEST_F(NotifierTest, WhatFailsForAWhileIsTriedAgain) {
    ScriptedChannel::Heard heard;
    const base::Status away(base::Code::kUnavailable, "503");
    Notifier notifier =
        this->notifier(std::make_unique<ScriptedChannel>(heard, std::vector{away, away, base::Status::ok()}));
    notifier.tell(finding("dead_relu"));
    notifier.finish(seconds(10), &never);
    EXPECT_EQ(heard.tries, 3);
    EXPECT_EQ(heard.rules, std::vector<std::string>{"dead_relu"});
    EXPECT_TRUE(notifier.take_troubles().empty());
}

TEST_F(NotifierTest, WhatFailsAlwaysIsGivenUpAndSaid) {
    ScriptedChannel::Heard heard;
    const base::Status away(base::Code::kUnavailable, "503");
    options_.attempts = 3;
    Notifier notifier = this->notifier(std::make_unique<ScriptedChannel>(heard, std::vector{away}));
    notifier.tell(finding("dead_relu"));
    notifier.finish(seconds(10), &never);
    EXPECT_EQ(heard.tries, 3);
    EXPECT_EQ(notifier.take_troubles(), std::vector<std::string>{"dead_relu was not told: 503"});
    EXPECT_EQ(lines_of("actions.jsonl").at(0)["result"], "503");
}

TEST_F(NotifierTest, WhatIsRefusedIsNotTriedAgain) {
    ScriptedChannel::Heard heard;
    Notifier notifier = this->notifier(std::make_unique<ScriptedChannel>(
        heard, std::vector{base::Status(base::Code::kPermissionDenied, "403")}));
    notifier.tell(finding("dead_relu"));
    notifier.finish(seconds(10), &never);
    EXPECT_EQ(heard.tries, 1);
    EXPECT_EQ(notifier.take_troubles().size(), 1U);
}

TEST_F(NotifierTest, NobodyWaitsForAReceiverThatDoesNotAnswer) {
    ScriptedChannel::Heard heard;
    Notifier notifier = this->notifier(
        std::make_unique<ScriptedChannel>(heard, std::vector{base::Status::ok()}, seconds(600)));
    notifier.tell(finding("dead_relu"));
    notifier.tell(finding("overfit"));
    while (heard.tries == 0) std::this_thread::sleep_for(milliseconds(1));
    notifier.finish(milliseconds(30), &never);
    EXPECT_EQ(notifier.take_troubles().size(), 2U);
    EXPECT_TRUE(notifier.is_idle());
    EXPECT_EQ(lines_of("actions.jsonl").size(), 2U);
}

TEST_F(NotifierTest, WithinTheCooldownTheMostSevereStandsForAll) {
    ScriptedChannel::Heard heard;
    options_.cooldown = seconds(600);
    Notifier notifier =
        this->notifier(std::make_unique<ScriptedChannel>(heard, std::vector{base::Status::ok()}));
    notifier.tell(finding("first"));
    while (heard.tries == 0 || !notifier.is_idle()) std::this_thread::sleep_for(milliseconds(1));
    notifier.tell(finding("second"));
    notifier.tell(finding("worst", model::Severity::kError));
    notifier.tell(finding("last"));
    std::this_thread::sleep_for(milliseconds(30));
    EXPECT_EQ(heard.tries, 1);
    notifier.finish(seconds(10), &never);  // the end waits for no cooldown
    EXPECT_EQ(heard.rules, (std::vector<std::string>{"first", "worst"}));
    EXPECT_EQ(heard.withheld, (std::vector<std::uint64_t>{0, 2}));
    EXPECT_EQ(lines_of("actions.jsonl").at(1)["withheld"], 2);
}

TEST_F(NotifierTest, WhoGoesOnDoesNotTellAgainWhatWasTold) {
    ScriptedChannel::Heard heard;
    const std::vector answers{base::Status::ok(), base::Status(base::Code::kInvalidArgument, "no")};
    Notifier first = notifier(std::make_unique<ScriptedChannel>(heard, answers));
    first.tell(finding("dead_relu"));
    first.tell(finding("overfit"));  // refused
    first.finish(seconds(10), &never);
    options_.past = PastActions::read(directory_);
    EXPECT_EQ(options_.past.trouble(), "");
    Notifier second = notifier(std::make_unique<ScriptedChannel>(heard, std::vector{base::Status::ok()}));
    for (const char* rule : {"dead_relu", "overfit", "non_finite"}) second.tell(finding(rule));
    second.finish(seconds(10), &never);
    EXPECT_EQ(heard.rules, (std::vector<std::string>{"dead_relu", "overfit", "non_finite"}));
}

TEST_F(NotifierTest, WhatWasWithheldCountsAsToldToWhoGoesOn) {
    options_.cooldown = seconds(600);
    ScriptedChannel::Heard heard;
    const auto tell_all = [&] {
        Notifier notifier =
            this->notifier(std::make_unique<ScriptedChannel>(heard, std::vector{base::Status::ok()}));
        for (const char* rule : {"first", "second", "third"}) {
            notifier.tell(finding(rule));
            while (heard.rules.empty()) std::this_thread::sleep_for(milliseconds(1));
        }
        notifier.finish(seconds(10), &never);
    };
    tell_all();
    EXPECT_EQ(heard.rules.size(), 2U);
    options_.past = PastActions::read(directory_);
    tell_all();
    EXPECT_EQ(heard.rules.size(), 2U);
}

// As two webhooks of one host are, of which only the host is written down.
TEST_F(NotifierTest, ReceiversThatLookAlikeAreToldApartByWhoGoesOn) {
    ScriptedChannel::Heard one;
    ScriptedChannel::Heard other;
    const base::Status refused(base::Code::kInvalidArgument, "no");
    const auto tell = [&](const base::Status& first_answer) {
        std::vector<Receiver> receivers;
        receivers.push_back({std::make_unique<ScriptedChannel>(one, std::vector{first_answer}), {}});
        receivers.push_back({std::make_unique<ScriptedChannel>(other, std::vector{base::Status::ok()}), {}});
        Notifier notifier(options_, std::move(receivers));
        notifier.tell(finding("dead_relu"));
        notifier.finish(seconds(10), &never);
    };
    tell(refused);
    options_.past = PastActions::read(directory_);
    tell(base::Status::ok());
    EXPECT_EQ(one.rules.size(), 1U);
    EXPECT_EQ(other.rules.size(), 1U);
}

TEST_F(NotifierTest, ADryRunTellsNobody) {
    ScriptedChannel::Heard heard;
    options_.dry_run = true;
    Notifier notifier =
        this->notifier(std::make_unique<ScriptedChannel>(heard, std::vector{base::Status::ok()}));
    notifier.tell(finding("dead_relu"));
    notifier.finish(seconds(10), &never);
    EXPECT_EQ(heard.tries, 0);
    EXPECT_EQ(lines_of("actions.jsonl").at(0)["result"], "dry run");
}

TEST_F(NotifierTest, ACommandGetsTheFindingOnItsInputAndInItsEnvironment) {
    Notifier notifier = this->notifier(channel("command:cat > " + directory_ +
                                               "/heard.jsonl; echo \"$TRAINDBG_RULE $TRAINDBG_SEVERITY "
                                               "$TRAINDBG_STEP $TRAINDBG_PLACE\" > " +
                                               directory_ + "/words"));
    notifier.tell(finding("dead_relu", model::Severity::kError));
    notifier.finish(seconds(20), &never);
    EXPECT_TRUE(notifier.take_troubles().empty());
    const auto heard = lines_of("heard.jsonl");
    ASSERT_EQ(heard.size(), 1U);
    EXPECT_EQ(heard[0]["event"], "finding");
    EXPECT_EQ(heard[0]["finding"]["rule"], "dead_relu");
    EXPECT_EQ(heard[0]["id"].get<std::string>().size(), 32U);
    std::ifstream words(directory_ + "/words");
    std::string line;
    std::getline(words, line);
    EXPECT_EQ(line, "dead_relu error 7 fc1");
    EXPECT_EQ(lines_of("actions.jsonl").at(0)["intention"], "run cat");
}

TEST_F(NotifierTest, ACommandThatFailsIsNotRunAgainAndItsWordsAreTold) {
    Notifier notifier =
        this->notifier(channel("command:echo run >> " + directory_ + "/runs; echo no such user >&2; exit 3"));
    notifier.tell(finding("dead_relu"));
    notifier.finish(seconds(20), &never);
    EXPECT_EQ(notifier.take_troubles(),
              std::vector<std::string>{"dead_relu was not told: run echo: ended with code 3: no such user"});
    EXPECT_EQ(std::filesystem::file_size(directory_ + "/runs"), 4U);
}

TEST_F(NotifierTest, ACommandThatHangsIsEndedWithAllItStarted) {
    options_.attempt = milliseconds(200);
    Notifier notifier = this->notifier(channel("command:sleep 600 & sleep 600"));
    notifier.tell(finding("dead_relu"));
    notifier.finish(seconds(20), &never);
    const auto troubles = notifier.take_troubles();
    ASSERT_EQ(troubles.size(), 1U);
    EXPECT_NE(troubles[0].find("took too long"), std::string::npos) << troubles[0];
}

TEST_F(NotifierTest, AFileGetsALineForEachFinding) {
    Notifier notifier = this->notifier(channel("file:" + directory_ + "/findings.jsonl"));
    notifier.tell(finding("dead_relu"));
    notifier.tell(
        finding("over\xFF"
                "fit"));
    notifier.finish(seconds(10), &never);
    EXPECT_TRUE(notifier.take_troubles().empty());
    EXPECT_EQ(lines_of("findings.jsonl").size(), 2U);
}

TEST(NotificationTest, AnIdIsOfTheRunAndTheFault) {
    model::Finding finding;
    finding.rule = "dead_relu";
    finding.key = "layer";
    const std::string id = notification_id("run", finding);
    finding.step = 99;  // another step of the same fault
    EXPECT_EQ(notification_id("run", finding), id);
    EXPECT_NE(notification_id("other run", finding), id);
    finding.worker = 1;
    EXPECT_NE(notification_id("run", finding), id);
}

Notification sample() {
    Notification notification;
    notification.run = "a-run";
    notification.host = "here";
    notification.finding.rule = "dead_relu";
    notification.finding.severity = model::Severity::kError;
    notification.finding.step = 7;
    notification.finding.layer = "relu<1>";
    notification.finding.message = "All *32* & <b>more</b> @everyone.";
    return notification;
}

TEST(WebhookBodyTest, TextOfATrainingIsNoMarkupInAChat) {
    const json slack = json::parse(webhook_body(sample(), WebhookForm::kSlack));
    EXPECT_NE(slack["text"].get<std::string>().find("All *32* &amp; &lt;b&gt;"), std::string::npos);
    const json discord = json::parse(webhook_body(sample(), WebhookForm::kDiscord));
    EXPECT_NE(discord["content"].get<std::string>().find("\\@everyone"), std::string::npos);
    EXPECT_TRUE(discord["allowed_mentions"]["parse"].empty());
    const json teams = json::parse(webhook_body(sample(), WebhookForm::kTeams));
    EXPECT_EQ(teams["attachments"][0]["content"]["body"][0]["text"], "error: dead_relu at step 7 in relu<1>");
}

TEST(WebhookBodyTest, AChatGetsNoMoreThanItTakes) {
    Notification notification = sample();
    for (int i = 0; i < 2000; ++i) notification.finding.message += "ä*";
    EXPECT_LE(
        json::parse(webhook_body(notification, WebhookForm::kDiscord))["content"].get<std::string>().size(),
        2000U);
    EXPECT_LE(json::parse(webhook_body(notification, WebhookForm::kSlack))["text"].get<std::string>().size(),
              3000U);
}

TEST(MakeChannelTest, WhatIsNoTargetIsRefusedWithoutShowingWhatMayBeSecret) {
    for (const char* target : {"", "carrier-pigeon", "slack:hooks/SECRET", "command:", "file: ", "https://",
                               "env:TRAINDBG_NO_SUCH_VARIABLE", "@/no/such/file", "ftp://host/SECRET"}) {
        const auto made = make_channel(target);
        ASSERT_FALSE(made.is_ok()) << target;
        EXPECT_EQ(made.status().message().find("SECRET"), std::string::npos) << made.status().message();
    }
}

TEST(MakeChannelTest, TheIntentionShowsNoSecret) {
    const auto made = make_channel("slack:https://user:SECRET@hooks.slack.com/services/SECRET?SECRET");
    ASSERT_TRUE(made.is_ok());
    EXPECT_EQ((*made)->intention(), "post to https://hooks.slack.com");
}

}  // namespace
}  // namespace traindbg::actions
