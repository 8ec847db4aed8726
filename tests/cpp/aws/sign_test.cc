#include "traindbg/aws/sign.h"

#include <gtest/gtest.h>

namespace traindbg::aws {
namespace {

// The examples of the AWS documentation, "Signature Calculations for the Authorization Header:
// Transferring Payload in a Single Chunk": key, moment, bucket and signatures are from there.
constexpr std::int64_t kMoment = 1369353600LL * 1'000'000'000;  // 20130524T000000Z

Credentials example() {
    Credentials credentials;
    credentials.access_key = "AKIAIOSFODNN7EXAMPLE";
    credentials.secret_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    return credentials;
}

std::string signature(const std::string& method, const std::string& path,
                      std::vector<std::pair<std::string, std::string>> query, http::HeaderList headers,
                      std::string_view body) {
    RequestTarget target;
    target.host = "examplebucket.s3.amazonaws.com";
    target.path = path;
    target.query = std::move(query);
    sign_request(method, target, headers, base::as_bytes(body), example(), "us-east-1", "s3", kMoment);
    const std::string& line = headers.back().second;
    return line.substr(line.find("Signature=") + 10);
}

TEST(Sign, GetOfARange) {
    EXPECT_EQ(signature("GET", "/test.txt", {}, {{"range", "bytes=0-9"}}, ""),
              "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(Sign, PutOfAKeyWithAnOddLetter) {
    EXPECT_EQ(
        signature("PUT", "/test$file.text", {},
                  {{"date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                  "Welcome to Amazon S3."),
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

TEST(Sign, ParameterWithoutAValue) {
    EXPECT_EQ(signature("GET", "/", {{"lifecycle", ""}}, {}, ""),
              "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
}

TEST(Sign, ParametersInAnyOrder) {
    const std::string right = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
    EXPECT_EQ(signature("GET", "/", {{"max-keys", "2"}, {"prefix", "J"}}, {}, ""), right);
    EXPECT_EQ(signature("GET", "/", {{"prefix", "J"}, {"max-keys", "2"}}, {}, ""), right);
}

TEST(Sign, TheUrlIsWhatIsSigned) {
    RequestTarget target;
    target.host = "h:1";
    target.path = "/b/a b+c%/ä";
    target.query = {{"uploads", ""}, {"prefix", "x/y&z"}};
    EXPECT_EQ(url_of(target), "https://h:1/b/a%20b%2Bc%25/%C3%A4?prefix=x%2Fy%26z&uploads=");
}

// Of a request that botocore signed, whose signer is another's.
TEST(Sign, OtherServicesThanS3SignAPathThatIsEncodedTwice) {
    RequestTarget target;
    target.host = "lambda.eu-west-1.amazonaws.com";
    target.path = "/2015-03-31/functions/arn:aws:lambda:eu-west-1:1:function:f/invocations";
    http::HeaderList headers = {{"content-type", "application/json"}, {"x-amz-invocation-type", "Event"}};
    sign_request("POST", target, headers, base::as_bytes(std::string_view("{\"a\":1}")), example(),
                 "eu-west-1", "lambda", kMoment);
    EXPECT_TRUE(headers.back().second.ends_with(
        "Signature=dfee58601e1cf4f6366b51226350b9f8fe9575029a62adb4af81f63177f94893"));
}

TEST(Sign, ASessionTokenIsSigned) {
    Credentials credentials = example();
    credentials.session_token = "TOKEN";
    http::HeaderList headers;
    RequestTarget target;
    target.host = "h";
    sign_request("GET", target, headers, {}, credentials, "us-east-1", "s3", kMoment);
    EXPECT_NE(headers.back().second.find(";x-amz-security-token"), std::string::npos);
}

TEST(Percent, DecodingUndoesEncoding) {
    std::string all;
    for (int i = 1; i < 256; ++i) all += static_cast<char>(i);
    std::string back;
    ASSERT_TRUE(percent_decode(percent_encode(all, false), back));
    EXPECT_EQ(back, all);
    EXPECT_FALSE(percent_decode("a%2", back));
    EXPECT_FALSE(percent_decode("a%", back));
    EXPECT_FALSE(percent_decode("%zz", back));
}

}  // namespace
}  // namespace traindbg::aws
