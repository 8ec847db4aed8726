// Channels to mail servers and services of AWS: what is sent, and what becomes of answers that no server
// gives on demand. With real servers: tests/e2e/test_notify_mail.py, tests/e2e/test_notify_aws.py.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "aws/scripted_transport.h"
#include "traindbg/actions/channel.h"
#include "traindbg/actions/target_options.h"
#include "traindbg/storage/memory_file_system.h"

namespace traindbg::actions {
namespace {

using aws::testing::answers;
using aws::testing::ScriptedTransport;
using base::Code;
using nlohmann::json;

Notification sample() {
    Notification notification;
    notification.id = "0123456789abcdef";
    notification.run = "a-run";
    notification.host = "here";
    notification.finding.rule = "dead_relu";
    notification.finding.severity = model::Severity::kError;
    notification.finding.step = 7;
    notification.finding.layer = "relu1";
    notification.finding.message = "All 32 units are dead.";
    return notification;
}

TEST(MailTarget, IsAServerAUserAndThoseToTell) {
    ::setenv("TRAINDBG_TEST_PASSWORD", "a+b c", 1);
    const auto mail = parse_mail_target(
        "smtp://me%40example.org@mail.example.org?to=a@b.org,c+d@e.org&password=env:TRAINDBG_TEST_PASSWORD",
        false);
    ASSERT_TRUE(mail.is_ok()) << mail.status().message();
    EXPECT_EQ(mail->url, "smtp://mail.example.org:587");
    EXPECT_EQ(mail->user, "me@example.org");
    EXPECT_EQ(mail->password, "a+b c");
    EXPECT_EQ(mail->sender, "me@example.org");
    EXPECT_EQ(mail->recipients, (std::vector<std::string>{"a@b.org", "c+d@e.org"}));
    EXPECT_TRUE(mail->needs_tls);
    EXPECT_EQ(parse_mail_target("smtps://h?to=a@b.org", false)->url, "smtps://h:465");
    EXPECT_EQ(parse_mail_target("smtp://[::1]:25/?to=a@b.org", false)->url, "smtp://[::1]:25");
    EXPECT_EQ(
        parse_mail_target("smtp://me@host.org@relay?to=a@b.org&password=@/dev/null", false).status().code(),
        Code::kInvalidArgument);
}

TEST(MailTarget, APasswordStandsWhereNobodyElseReadsIt) {
    const std::string url = "smtp://me:SECRET@h?to=a@b.org";
    const auto shown = parse_mail_target(url, false);
    ASSERT_FALSE(shown.is_ok());
    EXPECT_EQ(shown.status().message().find("SECRET"), std::string::npos);
    const auto hidden = parse_mail_target(url, true);
    ASSERT_TRUE(hidden.is_ok());
    EXPECT_EQ(hidden->password, "SECRET");
    EXPECT_EQ(make_mail_channel(*hidden)->intention(), "mail to a@b.org by smtp://h:587");
    EXPECT_FALSE(parse_mail_target("smtp://me@h?to=a@b.org&password=SECRET", false).is_ok());
    EXPECT_FALSE(parse_mail_target("smtp://me:SECRET@h?to=a@b.org&tls=off", true).is_ok()) << "in the clear";
    EXPECT_TRUE(parse_mail_target("smtp://me:SECRET@127.0.0.1:25?to=a@b.org&tls=off", true).is_ok());
}

TEST(MailTarget, NothingOfATargetBecomesAHeaderOrACommand) {
    for (const char* bad :
         {"smtp://h?to=a@b.org%0d%0aBcc:x@y.org", "smtp://h?to=<a@b.org>", "smtp://h?to=a b@c.org",
          "smtp://h?to=a@b.org&from=x@y%0d%0a", "smtp://h%0d?to=a@b.org", "smtp://?to=a@b.org",
          "smtp://h?to=", "smtp://h?to=a@b.org&to=c@d.org", "smtp://h?to=a@b.org&tls=maybe",
          "smtps://h?to=a@b.org&tls=off", "smtp://h?tls=off&to=%00@b.org"})
        EXPECT_FALSE(parse_mail_target(bad, false).is_ok()) << bad;
}

TEST(MailText, IsAsciiInShortLinesWhateverATrainingSays) {
    Notification notification = sample();
    notification.finding.layer = "größe\r\nBcc: x@y.org";
    for (int i = 0; i < 100; ++i) notification.finding.message += " ünïcode";
    const std::string mail =
        mail_text(notification, "me@example.org", {"a@b.org", "c@d.org"}, 1'700'000'000LL * 1'000'000'000);
    std::size_t begin = 0;
    while (begin < mail.size()) {
        const std::size_t end = mail.find("\r\n", begin);
        ASSERT_NE(end, std::string::npos);
        EXPECT_LE(end - begin, 78U);
        for (const char letter : mail.substr(begin, end - begin)) EXPECT_TRUE(letter >= ' ' && letter <= '~');
        begin = end + 2;
    }
    EXPECT_NE(mail.find("Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"), std::string::npos);
    EXPECT_NE(mail.find("\r\nMessage-ID: <0123456789abcdef@example.org>\r\n"), std::string::npos);
    EXPECT_NE(mail.find("\r\nTo: a@b.org,\r\n c@d.org\r\n"), std::string::npos);
    EXPECT_NE(mail.find("\r\nSubject: =?utf-8?B?"), std::string::npos);
    EXPECT_EQ(mail.find("\r\nBcc"), std::string::npos);
}

class AwsChannelTest : public ::testing::Test {
  protected:
    // The channel owns the transport.
    std::unique_ptr<Channel> channel(const std::string& target) {
        auto transport = std::make_unique<ScriptedTransport>();
        transport_ = transport.get();
        auto made = make_aws_channel(target, environment_, files_, std::move(transport));
        EXPECT_TRUE(made.is_ok()) << made.status().message();
        return std::move(made).value();
    }
    base::Status status_of(const std::string& target, int status, const std::string& body) {
        const auto made = channel(target);
        transport_->answers = {answers(status, body)};
        return made->deliver(sample(), {});
    }

    storage::MemoryFileSystem files_;
    aws::Environment environment_ = aws::testing::environment_of(
        {{"AWS_ACCESS_KEY_ID", "AKID"}, {"AWS_SECRET_ACCESS_KEY", "SECRET"}, {"AWS_REGION", "eu-north-1"}});
    ScriptedTransport* transport_ = nullptr;
};

TEST_F(AwsChannelTest, EachServiceIsAskedWhereItIs) {
    const auto url_of = [&](const std::string& target, const std::string& body = "{}") {
        const auto made = channel(target);
        transport_->answers = {answers(200, body)};
        EXPECT_TRUE(made->deliver(sample(), {}).is_ok()) << target;
        return transport_->asked.at(0).url;
    };
    EXPECT_EQ(url_of("sns:arn:aws:sns:ap-south-1:1:t"), "https://sns.ap-south-1.amazonaws.com/")
        << "the ARN's";
    EXPECT_EQ(url_of("sns:+49123"), "https://sns.eu-north-1.amazonaws.com/");
    EXPECT_EQ(url_of("cloudwatch:Night?region=us-west-2"), "https://monitoring.us-west-2.amazonaws.com/");
    EXPECT_EQ(url_of("events:bus?endpoint=http://127.0.0.1:5000"), "http://127.0.0.1:5000/");
    EXPECT_EQ(url_of("lambda:arn:aws:lambda:eu-west-1:1:function:f"),
              "https://lambda.eu-west-1.amazonaws.com/2015-03-31/functions/"
              "arn%3Aaws%3Alambda%3Aeu-west-1%3A1%3Afunction%3Af/invocations");
}

TEST_F(AwsChannelTest, WhatPassesIsToldFromWhatIsFinal) {
    const std::string topic = "sns:arn:aws:sns:eu-west-1:1:t";
    const auto error = [](const std::string& code) {
        return "<ErrorResponse><Error><Type>Sender</Type><Code>" + code +
               "</Code><Message>so it is</Message></Error></ErrorResponse>";
    };
    EXPECT_EQ(status_of(topic, 500, "").code(), Code::kUnavailable);
    EXPECT_EQ(status_of(topic, 400, error("Throttling")).code(), Code::kUnavailable);
    EXPECT_EQ(status_of(topic, 404, error("NotFound")).code(), Code::kInvalidArgument);
    const auto denied = status_of(topic, 403, error("AuthorizationError"));
    EXPECT_EQ(denied.code(), Code::kPermissionDenied);
    EXPECT_EQ(
        denied.message(),
        "publish to topic t at AWS eu-west-1: AWS eu-west-1 answered 403 AuthorizationError (so it is); "
        "credentials of AWS_ACCESS_KEY_ID");
    EXPECT_EQ(status_of("events:bus", 400, R"({"__type":"com.amazon#ThrottlingException"})").code(),
              Code::kUnavailable);
}

TEST_F(AwsChannelTest, ExpiredCredentialsAreFetchedAnewOnce) {
    const auto made = channel("events:bus");
    transport_->answers = {answers(400, R"({"__type":"ExpiredTokenException","message":"old"})"),
                           answers(200, R"({"FailedEntryCount":0})")};
    EXPECT_TRUE(made->deliver(sample(), {}).is_ok());
    transport_->reset();
    transport_->answers = {answers(400, R"({"__type":"ExpiredTokenException","message":"old"})")};
    EXPECT_EQ(made->deliver(sample(), {}).code(), Code::kPermissionDenied);
    EXPECT_EQ(transport_->asked.size(), 2U);
}

TEST_F(AwsChannelTest, AnEntryMayFailThoughTheCallDidNot) {
    const auto failed = [&](const std::string& code) {
        return status_of(
            "events:bus", 200,
            R"({"FailedEntryCount":1,"Entries":[{"ErrorCode":")" + code + R"(","ErrorMessage":"m"}]})");
    };
    EXPECT_EQ(failed("InternalFailure").code(), Code::kUnavailable);
    EXPECT_EQ(failed("NotAuthorizedForSource").code(), Code::kInvalidArgument);
}

TEST_F(AwsChannelTest, WhoHasNotConfirmedIsSaidNotToBeTold) {
    const auto made = channel("sns:me@example.org?topic=t");
    const std::string topic =
        "<CreateTopicResponse><CreateTopicResult><TopicArn>arn:aws:sns:e:1:t</TopicArn></CreateTopicResult>"
        "</CreateTopicResponse>";
    const std::string none =
        "<ListSubscriptionsByTopicResponse><ListSubscriptionsByTopicResult><Subscriptions/>"
        "</ListSubscriptionsByTopicResult></ListSubscriptionsByTopicResponse>";
    const std::string pending =
        "<ListSubscriptionsByTopicResponse><ListSubscriptionsByTopicResult><Subscriptions><member>"
        "<SubscriptionArn>PendingConfirmation</SubscriptionArn><Protocol>email</Protocol>"
        "<Endpoint>me@example.org</Endpoint></member></Subscriptions></ListSubscriptionsByTopicResult>"
        "</ListSubscriptionsByTopicResponse>";
    const std::string asked =
        "<SubscribeResponse><SubscribeResult><SubscriptionArn>pending confirmation</SubscriptionArn>"
        "</SubscribeResult></SubscribeResponse>";
    transport_->answers = {answers(200, topic), answers(200, none), answers(200, asked),
                           answers(200, pending)};
    for (int i = 0; i < 2; ++i) {
        const auto status = made->deliver(sample(), {});
        EXPECT_EQ(status.code(), Code::kPermissionDenied);
        EXPECT_NE(status.message().find("confirmation"), std::string::npos);
    }
    EXPECT_EQ(transport_->asked.size(), 4U) << "subscribed once";
}

TEST_F(AwsChannelTest, AnSmsIsOneAndAFifoTopicTellsTwinsApart) {
    auto made = channel("sns:+49123");
    transport_->answers = {answers(200)};
    Notification notification = sample();
    for (int i = 0; i < 100; ++i) notification.run += "-länger";
    ASSERT_TRUE(made->deliver(notification, {}).is_ok());
    std::string text = transport_->asked[0].body;
    text = text.substr(text.find("Message=") + 8);
    std::string decoded;
    ASSERT_TRUE(percent_decoded(text, decoded));
    EXPECT_EQ(decoded.size(), 140U);
    made = channel("sns:arn:aws:sns:eu-west-1:1:t.fifo");
    transport_->answers = {answers(200)};
    ASSERT_TRUE(made->deliver(sample(), {}).is_ok());
    EXPECT_NE(transport_->asked[0].body.find("&MessageDeduplicationId=0123456789abcdef"), std::string::npos);
}

TEST_F(AwsChannelTest, WhatIsNoTargetIsRefused) {
    for (const char* bad :
         {"sns:", "sns:topic", "sns:+49x", "sns:arn:aws:sqs:eu-west-1:1:q", "sns:a@b.org?topic=a/b",
          "sns:+49?tpic=x", "cloudwatch:", "cloudwatch:AWS/EC2", "events:", "events:a bus",
          "lambda:", "lambda:a/b", "events:bus?region=evil.example/", "events:bus?endpoint=ftp://h",
          "sns:arn:aws:sns:evil%2f:1:t"}) {
        const auto made = make_aws_channel(bad, environment_, files_, std::make_unique<ScriptedTransport>());
        EXPECT_FALSE(made.is_ok()) << bad;
    }
}

TEST(Targets, AnOptionThatIsNoneNamesTheNearest) {
    const std::vector<std::string> known = {"region", "endpoint"};
    const auto target = parse_target("name?region=a%2Bb+c", known);
    ASSERT_TRUE(target.is_ok());
    EXPECT_EQ(target->name, "name");
    EXPECT_EQ(target->option("region"), "a+b+c");
    EXPECT_EQ(parse_target("name?regoin=SECRET", known).status().message(),
              "no option 'regoin' (did you mean 'region'?)");
    for (const char* bad : {"n?region", "n?region=%0", "n?region=%00", "n?region=1&region=2"})
        EXPECT_FALSE(parse_target(bad, known).is_ok()) << bad;
}

}  // namespace
}  // namespace traindbg::actions
