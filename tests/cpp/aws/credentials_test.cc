#include "traindbg/aws/credentials.h"

#include <gtest/gtest.h>

#include "aws/scripted_transport.h"
#include "traindbg/aws/endpoint.h"
#include "traindbg/base/clock.h"
#include "traindbg/storage/memory_file_system.h"

namespace traindbg::aws {
namespace {

using base::Code;
using testing::answers;
using testing::environment_of;
using testing::ScriptedTransport;
using Values = std::map<std::string, std::string>;

class Chain : public ::testing::Test {
  protected:
    void file(const std::string& path, std::string_view text) {
        const base::ByteSpan bytes = base::as_bytes(text);
        files_.set_content(path, {bytes.begin(), bytes.end()});
    }
    base::Result<Credentials> find(Values values) {
        values.emplace("HOME", "/home/u");
        const Environment environment = environment_of(std::move(values));
        TRAINDBG_ASSIGN_OR_RETURN(const Profile profile, load_profile(environment, files_));
        return find_credentials(environment, profile, transport_, {});
    }

    storage::MemoryFileSystem files_;
    ScriptedTransport transport_;
};

TEST_F(Chain, TheEnvironmentComesFirst) {
    file("/home/u/.aws/credentials", "[default]\naws_access_key_id=FILE\naws_secret_access_key=s\n");
    const auto found =
        find({{"AWS_ACCESS_KEY_ID", "ENV"}, {"AWS_SECRET_ACCESS_KEY", "x"}, {"AWS_SESSION_TOKEN", "t"}});
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    EXPECT_EQ(found->access_key, "ENV");
    EXPECT_EQ(found->session_token, "t");
    EXPECT_TRUE(transport_.asked.empty());
}

TEST_F(Chain, HalfAKeyIsNotMadeWholeFromElsewhere) {
    file("/home/u/.aws/credentials", "[default]\naws_access_key_id=FILE\naws_secret_access_key=s\n");
    EXPECT_EQ(find({{"AWS_ACCESS_KEY_ID", "ENV"}}).status().code(), Code::kPermissionDenied);
    EXPECT_EQ(find({{"AWS_SECRET_ACCESS_KEY", "ENV"}}).status().code(), Code::kPermissionDenied);
}

TEST_F(Chain, TheProfileIsLookedUpInBothFiles) {
    file("/home/u/.aws/credentials", "[night]\naws_access_key_id=N\naws_secret_access_key=s\n");
    file("/home/u/.aws/config", "[profile day]\naws_access_key_id=D\naws_secret_access_key=s\n");
    EXPECT_EQ(find({{"AWS_PROFILE", "night"}})->access_key, "N");
    EXPECT_EQ(find({{"AWS_PROFILE", "day"}})->access_key, "D");
    const auto none = find({{"AWS_PROFILE", "dusk"}});
    EXPECT_EQ(none.status().code(), Code::kInvalidArgument);
    EXPECT_NE(none.status().message().find("'dusk'"), std::string::npos);
}

TEST_F(Chain, WaysThatAreNotSupportedAreNamed) {
    file("/home/u/.aws/config",
         "[profile r]\nrole_arn=arn\nsource_profile=x\n[profile s]\nsso_session=y\n"
         "[profile p]\ncredential_process=/bin/x\n");
    for (const auto& [profile, way] :
         Values{{"r", "role_arn"}, {"s", "sso_session"}, {"p", "credential_process"}}) {
        const auto found = find({{"AWS_PROFILE", profile}});
        EXPECT_EQ(found.status().code(), Code::kUnsupported);
        EXPECT_NE(found.status().message().find(way), std::string::npos);
    }
    EXPECT_EQ(find({{"AWS_WEB_IDENTITY_TOKEN_FILE", "/t"}}).status().code(), Code::kUnsupported);
    EXPECT_TRUE(transport_.asked.empty());
}

constexpr const char* kAnswer =
    R"({"AccessKeyId":"C","SecretAccessKey":"CANARY","Token":"T","Expiration":"2031-01-02T03:04:05Z"})";

TEST_F(Chain, ContainersAreAskedWithTheirToken) {
    transport_.answers = {answers(200, kAnswer)};
    const auto found = find({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:9/c"},
                             {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "Bearer b"}});
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    EXPECT_EQ(found->secret_key, "CANARY");
    EXPECT_EQ(found->expires_nanos, 1925089445LL * 1'000'000'000);
    EXPECT_EQ(transport_.asked[0].header("authorization"), "Bearer b");
    const auto relative = find({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x"}});
    ASSERT_TRUE(relative.is_ok());
    EXPECT_EQ(transport_.asked[1].url, "http://169.254.170.2/v2/x");
}

TEST_F(Chain, ContainersElsewhereAreNotTold) {
    for (const char* url :
         {"http://evil.example/", "http://10.0.0.1/", "ftp://localhost/", "http://localhost.evil/",
          "http://127.0.0.1@evil.example/", "http://localhost:80@evil.example/", "file:///etc/passwd",
          "http://evil\r\nx", "http://127.0.0.1\\@evil.example/", "", "http://"})
        EXPECT_FALSE(internal::is_trusted_container_url(url)) << url;
    for (const char* url :
         {"https://any.example/x", "http://localhost:1/x", "http://127.0.0.1/", "http://[::1]:8/x",
          "http://169.254.170.2/x", "http://169.254.170.23/v1/credentials"})
        EXPECT_TRUE(internal::is_trusted_container_url(url)) << url;
    EXPECT_EQ(find({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://evil.example/"}}).status().code(),
              Code::kPermissionDenied);
    EXPECT_TRUE(transport_.asked.empty());
}

TEST_F(Chain, TheMachineIsAskedInThreeSteps) {
    transport_.answers = {answers(200, "tok"), answers(200, "my role\n"), answers(200, kAnswer)};
    const auto found = find({});
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    ASSERT_EQ(transport_.asked.size(), 3U);
    EXPECT_EQ(transport_.asked[0].method, "PUT");
    EXPECT_EQ(transport_.asked[0].url, "http://169.254.169.254/latest/api/token");
    EXPECT_EQ(transport_.asked[2].url,
              "http://169.254.169.254/latest/meta-data/iam/security-credentials/my%20role");
    EXPECT_EQ(transport_.asked[2].header("x-aws-ec2-metadata-token"), "tok");
}

TEST_F(Chain, WithoutAnyTheTriedOnesAreNamed) {
    const auto found = find({});
    EXPECT_EQ(found.status().code(), Code::kPermissionDenied);
    EXPECT_NE(found.status().message().find("AWS_ACCESS_KEY_ID"), std::string::npos);
    EXPECT_EQ(transport_.asked.size(), 1U);
    EXPECT_EQ(find({{"AWS_EC2_METADATA_DISABLED", "true"}}).status().code(), Code::kPermissionDenied);
    EXPECT_EQ(transport_.asked.size(), 1U) << "the metadata service must not be asked";
}

TEST_F(Chain, BadAnswersAreErrorsWithoutSecrets) {
    for (const char* bad : {"", "[]", "{}", R"({"AccessKeyId":1,"SecretAccessKey":"CANARY"})",
                            R"({"AccessKeyId":"a","SecretAccessKey":"CANARY\r\nx: y"})",
                            R"({"AccessKeyId":"a","SecretAccessKey":"CANARY","Expiration":"soon"})"}) {
        const auto found = internal::credentials_from_json(bad, "source");
        ASSERT_FALSE(found.is_ok()) << bad;
        EXPECT_EQ(found.status().message().find("CANARY"), std::string::npos);
    }
}

TEST_F(Chain, TimesOutOfRangeAreBounded) {
    const auto expires = [](const std::string& when) {
        const auto found = internal::credentials_from_json(
            R"({"AccessKeyId":"a","SecretAccessKey":"s","Expiration":")" + when + "\"}", "source");
        return found.is_ok() ? found->expires_nanos : -1;
    };
    EXPECT_EQ(expires("3012-01-02T03:04:04Z"), 7'258'118'400'000'000'000);
    EXPECT_EQ(expires("0001-01-01T00:00:00Z"), 1'000'000'000);
    EXPECT_EQ(expires("1970-01-01T00:00:00Z"), 1'000'000'000) << "0 would mean never";
}

TEST_F(Chain, KeptUntilTheyAreAboutToExpire) {
    const auto expiring = [](std::int64_t seconds) {
        return answers(
            200, R"({"AccessKeyId":"C","SecretAccessKey":"s","Expiration":")" + [&] {
                const std::time_t at = base::wall_nanos() / 1'000'000'000 + seconds;
                std::tm parts{};
                gmtime_r(&at, &parts);
                std::array<char, 32> text{};
                std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
                return std::string(text.data());
            }() + "\"}");
    };
    const Environment environment = environment_of({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x"}});
    CredentialChain chain(environment, *load_profile(environment, files_), transport_);
    transport_.answers = {expiring(3600)};
    ASSERT_TRUE(chain.get({}).is_ok());
    ASSERT_TRUE(chain.get({}).is_ok());
    EXPECT_EQ(transport_.asked.size(), 1U);
    chain.forget();
    transport_.answers = {expiring(100)};
    ASSERT_TRUE(chain.get({}).is_ok());
    ASSERT_TRUE(chain.get({}).is_ok());
    EXPECT_EQ(transport_.asked.size(), 3U) << "100 s is too near the end";
    transport_.answers.clear();
    EXPECT_TRUE(chain.get({}).is_ok()) << "they still hold";
}

TEST_F(Chain, SettingsComeFromTheEnvironmentThenTheProfile) {
    file("/home/u/.aws/config", "[default]\nregion=eu-west-1\nendpoint_url=http://config:1\n");
    const auto settings = [&](Values values) {
        values.emplace("HOME", "/home/u");
        const Environment environment = environment_of(values);
        return load_settings(environment, *load_profile(environment, files_), "S3");
    };
    EXPECT_EQ(settings({})->region, "eu-west-1");
    EXPECT_EQ(settings({})->endpoint_url, "http://config:1");
    EXPECT_EQ(settings({{"AWS_REGION", "us-west-2"}})->region, "us-west-2");
    EXPECT_EQ(
        settings({{"AWS_ENDPOINT_URL", "http://a:1"}, {"AWS_ENDPOINT_URL_S3", "http://b:1"}})->endpoint_url,
        "http://b:1");
    EXPECT_FALSE(settings({{"AWS_REGION", "evil.example/"}}).is_ok());
}

}  // namespace
}  // namespace traindbg::aws
