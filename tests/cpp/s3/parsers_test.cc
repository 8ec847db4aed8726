#include <gtest/gtest.h>

#include "traindbg/s3/ini_file.h"
#include "traindbg/s3/s3_object_store.h"
#include "traindbg/s3/xml.h"

namespace traindbg::s3 {
namespace {

using base::Code;

std::string walk(std::string_view document) {
    std::string seen;
    const auto status = scan_xml(document, [&](const XmlEvent& event) {
        if (!event.is_begin) seen += std::string(event.path) + "=" + std::string(event.text) + ";";
    });
    return status.is_ok() ? seen : "error";
}

TEST(Xml, TellsTextWithItsPath) {
    EXPECT_EQ(
        walk("<?xml version=\"1.0\"?>\n<a xmlns='x>y'><b>1</b><b/><c>&lt;&amp;&#228;&#x20AC;</c></a>\n"),
        "a/b=1;a/b=;a/c=<&ä€;a=;");
    EXPECT_EQ(walk("<a><!-- <b> -->x</a>"), "a=x;");
}

TEST(Xml, WhatIsNotWholeOrNotMeantIsRefused) {
    for (const char* bad : {"",
                            "  ",
                            "<a>",
                            "<a></b>",
                            "</a>",
                            "<a></a><b></b>",
                            "<a>&unknown;</a>",
                            "<a>&#xD800;</a>",
                            "<a>&#0;</a>",
                            "<a>&#99999999999;</a>",
                            "<a>&amp</a>",
                            "x<a></a>",
                            "<a></a>x",
                            "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
                            "<a><![CDATA[x]]></a>",
                            "<a b='></a>",
                            "<a",
                            "<>",
                            "< a></a>",
                            "<a><?php x?></a>",
                            "<!-- x"})
        EXPECT_EQ(walk(bad), "error") << bad;
    std::string deep;
    for (int i = 0; i < 17; ++i) deep += "<a>";
    for (int i = 0; i < 17; ++i) deep += "</a>";
    EXPECT_EQ(walk(deep), "error");
}

TEST(Xml, EveryPrefixOfAListIsRefused) {
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

TEST(Ini, SectionsKeysAndNestedKeys) {
    const auto file = parse_ini(
        "\xEF\xBB\xBF# comment\n[default]\nAWS_Access_Key_ID = A=B \n; x\n\n[profile  "
        "night]\r\nregion=eu-west-1\r\n"
        "s3 =\n  addressing_style = path\n  max = 1\nlast = #1\n[ spaced ]\nk=\n",
        "f");
    ASSERT_TRUE(file.is_ok()) << file.status().to_string();
    EXPECT_EQ(file->at("default").at("aws_access_key_id"), "A=B");
    EXPECT_EQ(file->at("profile night").at("region"), "eu-west-1");
    EXPECT_EQ(file->at("profile night").at("s3.addressing_style"), "path");
    EXPECT_EQ(file->at("profile night").at("last"), "#1");
    EXPECT_EQ(file->at("spaced").at("k"), "");
}

TEST(Ini, ErrorsNameTheLineAndNeverItsText) {
    for (const char* bad :
         {"SECRETCANARY", "[default\nSECRETCANARY=1", "[a]\nSECRETCANARY", "[a]\n=SECRETCANARY"}) {
        const auto file = parse_ini(bad, "f");
        ASSERT_FALSE(file.is_ok()) << bad;
        EXPECT_NE(file.status().message().find("f: line "), std::string::npos);
        EXPECT_EQ(file.status().message().find("CANARY"), std::string::npos);
    }
    EXPECT_FALSE(parse_ini(std::string("[a]\nb\0=c", 8), "f").is_ok());
    EXPECT_FALSE(parse_ini(std::string((1 << 20) + 1, '\n'), "f").is_ok());
}

}  // namespace
}  // namespace traindbg::s3
