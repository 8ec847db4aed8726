// What is tried again and what is not, against answers that no server gives on demand.
#include <gtest/gtest.h>

#include "aws/scripted_transport.h"
#include "traindbg/s3/s3_object_store.h"
#include "traindbg/storage/memory_file_system.h"

namespace traindbg::s3 {
namespace {

using aws::testing::answers;
using aws::testing::breaks;
using aws::testing::environment_of;
using aws::testing::ScriptedTransport;
using base::Code;

std::string error(const std::string& code, const std::string& more = "") {
    return "<Error><Code>" + code + "</Code>" + more + "</Error>";
}

class Retry : public ::testing::Test {
  protected:
    S3ObjectStore& open(std::map<std::string, std::string> values = {}, std::string endpoint = "http://h:1") {
        values.emplace("AWS_ACCESS_KEY_ID", "KEY");
        values.emplace("AWS_SECRET_ACCESS_KEY", "CANARYSECRET");
        S3Options options;
        options.bucket = "bucket";
        options.endpoint_url = std::move(endpoint);
        options.retry.first_wait = std::chrono::milliseconds(1);
        options.retry.longest_wait = std::chrono::milliseconds(2);
        auto store = open_s3(options, transport_, environment_of(values), files_);
        EXPECT_TRUE(store.is_ok()) << store.status().to_string();
        store_ = std::move(store).value();
        return *store_;
    }

    storage::MemoryFileSystem files_;
    ScriptedTransport transport_;
    std::unique_ptr<S3ObjectStore> store_;
};

TEST_F(Retry, WhatPassesIsTriedAgain) {
    for (const auto& first :
         {answers(500), answers(502), answers(503, error("SlowDown")), answers(504), answers(429), breaks(),
          breaks(Code::kDataLoss), answers(400, error("RequestTimeout")),
          answers(409, error("OperationAborted"))}) {
        transport_.reset();
        transport_.answers = {first, first, answers(200)};
        S3ObjectStore& store = open();
        const auto status = store.put("k", base::as_bytes("x"), {});
        EXPECT_TRUE(status.is_ok()) << status.to_string();
        EXPECT_EQ(transport_.asked.size(), 3U);
        EXPECT_EQ(store.counts().retries, 2U);
        EXPECT_EQ(store.counts().puts, 3U);
    }
}

TEST_F(Retry, RefusalsAreFinalAndHoldNoSecret) {
    for (const auto& [status, code, wanted] : std::vector<std::tuple<int, std::string, Code>>{
             {403, "AccessDenied", Code::kPermissionDenied},
             {403, "SignatureDoesNotMatch", Code::kPermissionDenied},
             {403, "InvalidAccessKeyId", Code::kPermissionDenied},
             {403, "RequestTimeTooSkewed", Code::kPermissionDenied},
             {404, "NoSuchKey", Code::kNotFound},
             {404, "NoSuchBucket", Code::kInvalidArgument},
             {400, "InvalidArgument", Code::kInvalidArgument},
             {501, "NotImplemented", Code::kUnsupported}}) {
        transport_.reset();
        transport_.answers = {answers(status, error(code))};
        const auto refused = open().put("k", base::as_bytes("x"), {});
        EXPECT_EQ(refused.code(), wanted) << code;
        EXPECT_EQ(transport_.asked.size(), 1U) << code;
        EXPECT_EQ(refused.message().find("CANARY"), std::string::npos);
        EXPECT_TRUE(refused.message().starts_with("s3://bucket")) << refused.message();
    }
}

TEST_F(Retry, AClockThatIsWrongIsNamed) {
    transport_.answers = {
        answers(403, error("RequestTimeTooSkewed"), {{"date", "Thu, 01 Jan 2015 00:00:00 GMT"}})};
    const auto refused = open().put("k", base::as_bytes("x"), {});
    EXPECT_NE(refused.message().find("clock"), std::string::npos);
    EXPECT_NE(refused.message().find(" s (RequestTimeTooSkewed)"), std::string::npos) << refused.message();
}

TEST_F(Retry, ItGivesUpAndSaysHowOften) {
    transport_.answers = {answers(503, error("SlowDown"))};
    const auto status = open().put("k", base::as_bytes("x"), {});
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_EQ(transport_.asked.size(), 8U);
    EXPECT_NE(status.message().find("failed 8 times"), std::string::npos) << status.message();
}

TEST_F(Retry, ACancelledCallEnds) {
    std::atomic<bool> cancelled{false};
    transport_.answers = {[&](const aws::testing::Asked&) -> base::Result<http::HttpResponse> {
        cancelled = true;
        return base::Status(Code::kUnavailable, "reset");
    }};
    EXPECT_EQ(open().put("k", base::as_bytes("x"), {INT64_MAX, &cancelled}).code(), Code::kUnavailable);
    EXPECT_EQ(transport_.asked.size(), 1U);
}

TEST_F(Retry, ExpiredCredentialsAreFetchedAnewOnce) {
    transport_.answers = {answers(400, error("ExpiredToken"))};
    EXPECT_EQ(open().put("k", base::as_bytes("x"), {}).code(), Code::kPermissionDenied);
    EXPECT_EQ(transport_.asked.size(), 2U);
    transport_.reset();
    transport_.answers = {answers(403, error("ExpiredToken")), answers(200)};
    EXPECT_TRUE(open().put("k", base::as_bytes("x"), {}).is_ok());
}

TEST_F(Retry, TheBucketsRegionIsFollowedOnce) {
    transport_.answers = {answers(400, error("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>")),
                          answers(200)};
    EXPECT_TRUE(open().put("k", base::as_bytes("x"), {}).is_ok());
    EXPECT_NE(transport_.asked[1].header("authorization").find("/eu-west-1/s3/"), std::string::npos);
    transport_.reset();
    transport_.answers = {answers(301, "", {{"x-amz-bucket-region", "eu-west-1"}})};
    EXPECT_FALSE(open().put("k", base::as_bytes("x"), {}).is_ok());
    EXPECT_EQ(transport_.asked.size(), 2U);
}

TEST_F(Retry, APutIfAbsentWhoseAnswerWasLostHasHappened) {
    transport_.answers = {breaks(), answers(412, error("PreconditionFailed")),
                          answers(206, "x", {{"content-range", "bytes 0-0/1"}})};
    EXPECT_TRUE(open().put_if_absent("k", base::as_bytes("x"), {}).is_ok());
    transport_.reset();
    transport_.answers = {answers(412, error("PreconditionFailed")),
                          answers(206, "yz", {{"content-range", "bytes 0-1/2"}})};
    EXPECT_EQ(open().put_if_absent("k", base::as_bytes("x"), {}).code(), Code::kAlreadyExists);
}

TEST_F(Retry, AServerWithoutConditionsIsAskedFirst) {
    transport_.answers = {answers(501, error("NotImplemented")), answers(404), answers(200)};
    EXPECT_TRUE(open().put_if_absent("k", base::as_bytes("x"), {}).is_ok());
    ASSERT_EQ(transport_.asked.size(), 3U);
    EXPECT_EQ(transport_.asked[1].method, "HEAD");
    EXPECT_EQ(transport_.asked[2].header("if-none-match"), "");
    transport_.reset();
    transport_.answers = {answers(501, error("NotImplemented")), answers(200, "", {{"content-length", "2"}}),
                          answers(206, "yz", {{"content-range", "bytes 0-1/2"}})};
    EXPECT_EQ(open().put_if_absent("k", base::as_bytes("x"), {}).code(), Code::kAlreadyExists);
}

TEST_F(Retry, AnotherRangeThanAskedForIsTriedAgain) {
    for (const char* range :
         {"bytes 1-3/9", "bytes 0-1/9", "bytes 0-2/2", "bytes 0-2", "0-2/9", "bytes a-2/9", ""}) {
        transport_.reset();
        transport_.answers = {answers(206, "abc", {{"content-range", range}}),
                              answers(206, "abc", {{"content-range", "bytes 0-2/9"}})};
        const auto got = open().get_range("k", 0, 3, "", {});
        ASSERT_TRUE(got.is_ok()) << range;
        EXPECT_EQ(transport_.asked.size(), 2U) << range;
    }
    transport_.reset();
    transport_.answers = {answers(206, "ab", {{"content-range", "bytes 0-2/9"}})};
    EXPECT_FALSE(open().get_range("k", 0, 3, "", {}).is_ok()) << "the body is shorter than it says";
}

TEST_F(Retry, AServerWithoutRangesGivesTheSame) {
    transport_.answers = {answers(200, "abcdef")};
    const auto got = open().get_range("k", 2, 3, "", {});
    ASSERT_TRUE(got.is_ok());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(got->data()), got->size()), "cde");
}

TEST_F(Retry, AnUploadInPartsThatFailsIsAborted) {
    files_.set_content("/f", base::ByteBuffer(std::size_t{17} << 20));
    const auto file = files_.open("/f");
    transport_.answers = {
        answers(
            200,
            "<InitiateMultipartUploadResult><UploadId>U&amp;1</UploadId></InitiateMultipartUploadResult>"),
        answers(200, "", {{"etag", "\"1\""}}), answers(403, error("AccessDenied")), answers(204)};
    EXPECT_EQ(open().put_file("k", **file, std::size_t{17} << 20, {}).code(), Code::kPermissionDenied);
    ASSERT_EQ(transport_.asked.size(), 4U);
    EXPECT_EQ(transport_.asked[3].method, "DELETE");
    EXPECT_EQ(transport_.asked[3].url, "http://h:1/bucket/k?uploadId=U%261");
}

TEST_F(Retry, AnErrorInTheBodyOfASuccessIsAnError) {
    files_.set_content("/f", base::ByteBuffer(std::size_t{17} << 20));
    const auto file = files_.open("/f");
    const auto part = answers(200, "", {{"etag", "\"1\""}});
    transport_.answers = {
        answers(200, "<InitiateMultipartUploadResult><UploadId>U</UploadId></InitiateMultipartUploadResult>"),
        part,
        part,
        part,
        answers(200, error("InternalError")),
        answers(200, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>")};
    EXPECT_TRUE(open().put_file("k", **file, std::size_t{17} << 20, {}).is_ok());
    EXPECT_EQ(transport_.asked.size(), 6U);
    EXPECT_EQ(transport_.asked[5].method, "POST");
}

TEST_F(Retry, AddressingStyles) {
    transport_.answers = {answers(200)};
    EXPECT_TRUE(open({}, "").put("a/b", base::as_bytes("x"), {}).is_ok());
    EXPECT_EQ(transport_.asked.back().url, "https://bucket.s3.us-east-1.amazonaws.com/a/b");
    EXPECT_TRUE(open({{"TRAINDBG_S3_ADDRESSING", "path"}, {"AWS_REGION", "eu-west-1"}}, "")
                    .put("a/b", base::as_bytes("x"), {})
                    .is_ok());
    EXPECT_EQ(transport_.asked.back().url, "https://s3.eu-west-1.amazonaws.com/bucket/a/b");
    EXPECT_TRUE(open({}, "http://h:9000/base/").put("a", base::as_bytes("x"), {}).is_ok());
    EXPECT_EQ(transport_.asked.back().url, "http://h:9000/base/bucket/a");
    EXPECT_TRUE(
        open({{"TRAINDBG_S3_ADDRESSING", "virtual"}}, "https://h").put("a", base::as_bytes("x"), {}).is_ok());
    EXPECT_EQ(transport_.asked.back().url, "https://bucket.h/a");
}

TEST_F(Retry, EndpointsWithSecretsOrWithoutSenseAreRefused) {
    for (const char* url :
         {"h:1", "ftp://h", "http://", "http://user:CANARY@h", "http://h?x=1", "http://h h"}) {
        S3Options options;
        options.bucket = "bucket";
        options.endpoint_url = url;
        const auto store = open_s3(options, transport_, environment_of({}), files_);
        ASSERT_FALSE(store.is_ok()) << url;
        EXPECT_EQ(store.status().message().find("CANARY"), std::string::npos);
    }
}

}  // namespace
}  // namespace traindbg::s3
