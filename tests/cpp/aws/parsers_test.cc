#include <gtest/gtest.h>

#include "traindbg/aws/endpoint.h"
#include "traindbg/aws/ini_file.h"
#include "traindbg/aws/xml.h"

namespace traindbg::aws {
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

TEST(Endpoint, IsASchemeAHostAndAPath) {
    const auto endpoint = parse_endpoint("https://[::1]:443/base//");
    ASSERT_TRUE(endpoint.is_ok());
    EXPECT_EQ(endpoint->scheme, "https");
    EXPECT_EQ(endpoint->host, "[::1]");
    EXPECT_EQ(endpoint->path, "/base");
    for (const char* bad :
         {"", "host", "ftp://h", "http://", "http://SECRET@h", "http://h?SECRET", "http://h h"}) {
        const auto parsed = parse_endpoint(bad);
        ASSERT_FALSE(parsed.is_ok()) << bad;
        EXPECT_EQ(parsed.status().message().find("SECRET"), std::string::npos);
    }
    EXPECT_EQ(amazon_host("sns", "cn-north-1"), "sns.cn-north-1.amazonaws.com.cn");
}

}  // namespace
}  // namespace traindbg::aws
