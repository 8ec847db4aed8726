#include <gtest/gtest.h>

#include "aws/scripted_transport.h"
#include "traindbg/s3/s3_object_store.h"

namespace traindbg::s3 {
namespace {

using base::Code;

TEST(List, EveryPrefixIsRefused) {
    const std::string whole =
        "<ListBucketResult><IsTruncated>false</IsTruncated><EncodingType>url</"
        "EncodingType><Contents><Key>a%2Fb"
        "</Key><ETag>&quot;1&quot;</ETag><Size>5</Size></Contents></ListBucketResult>";
    const auto page = internal::parse_list(whole);
    ASSERT_TRUE(page.is_ok());
    ASSERT_EQ(page->objects.size(), 1U);
    EXPECT_EQ(page->objects[0].key, "a/b");
    EXPECT_EQ(page->objects[0].etag, "\"1\"");
    EXPECT_EQ(page->objects[0].size, 5U);
    for (std::size_t cut = 0; cut < whole.size(); ++cut)
        EXPECT_FALSE(internal::parse_list(std::string_view(whole).substr(0, cut)).is_ok()) << cut;
}

TEST(List, HostileAnswersAreRefused) {
    const auto list = [](const std::string& inside) {
        return internal::parse_list("<ListBucketResult>" + inside + "</ListBucketResult>").status().code();
    };
    EXPECT_EQ(list("<Contents><Key></Key><Size>1</Size></Contents>"), Code::kDataLoss);
    EXPECT_EQ(list("<Contents><Key>a</Key><Size>-1</Size></Contents>"), Code::kDataLoss);
    EXPECT_EQ(list("<Contents><Key>a</Key><Size>99999999999999999999</Size></Contents>"), Code::kDataLoss);
    EXPECT_EQ(list("<EncodingType>url</EncodingType><Contents><Key>a%0</Key><Size>1</Size></Contents>"),
              Code::kDataLoss);
    EXPECT_EQ(list("<IsTruncated>true</IsTruncated>"), Code::kDataLoss);
}

TEST(Error, TheRegionCannotBecomeAnotherHost) {
    EXPECT_EQ(internal::parse_error("<Error><Code>X</Code><Region>eu-west-1</Region></Error>").region,
              "eu-west-1");
    EXPECT_EQ(internal::parse_error("<Error><Region>evil.example/</Region></Error>").region, "");
    EXPECT_EQ(internal::parse_error("not xml").code, "");
}

TEST(Url, BucketsAndPrefixes) {
    const auto url = parse_s3_url("s3://my-bucket/runs/night/");
    ASSERT_TRUE(url.is_ok());
    EXPECT_EQ(url->bucket, "my-bucket");
    EXPECT_EQ(url->key, "runs/night");
    EXPECT_EQ(parse_s3_url("s3://my-bucket")->key, "");
    for (const char* bad : {"s3://", "s3:///a", "s3://ab/x", "s3://a_b/x", "s3://ABC/x", "s3://a..b/x",
                            "s3://-ab/x", "s3://user:pw@host/x", "http://bucket/x", "s3://bu cket/x"})
        EXPECT_EQ(parse_s3_url(bad).status().code(), Code::kInvalidArgument) << bad;
}

TEST(Addressing, ComesFromTheEnvironmentThenTheProfile) {
    aws::Profile profile;
    profile.config["s3.addressing_style"] = "virtual";
    const auto addressing = [&](std::map<std::string, std::string> values) {
        return internal::load_addressing(aws::testing::environment_of(std::move(values)), profile);
    };
    EXPECT_EQ(*addressing({}), Addressing::kVirtual);
    EXPECT_EQ(*addressing({{"TRAINDBG_S3_ADDRESSING", "path"}}), Addressing::kPath);
    EXPECT_FALSE(addressing({{"TRAINDBG_S3_ADDRESSING", "sideways"}}).is_ok());
}

}  // namespace
}  // namespace traindbg::s3
