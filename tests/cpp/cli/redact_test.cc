#include "traindbg/cli/redact.h"

#include <gtest/gtest.h>

namespace traindbg::cli {
namespace {

using Words = std::vector<std::string>;

TEST(Redact, TheValueOfASecretOptionIsTakenOutInBothSpellings) {
    EXPECT_EQ(redacted({"python", "t.py", "--api-key", "abc", "--lr", "0.1"}),
              (Words{"python", "t.py", "--api-key", "[redacted]", "--lr", "0.1"}));
    EXPECT_EQ(
        redacted({"python", "t.py", "--API_KEY=abc", "wandb.token=x=y", "--Password=p"}),
        (Words{"python", "t.py", "--API_KEY=[redacted]", "wandb.token=[redacted]", "--Password=[redacted]"}));
}

TEST(Redact, EveryKindOfSecretNameIsKnown) {
    for (const char* name :
         {"--secret", "--aws_secret_access_key", "--hub-token", "--passwd", "--db.password", "--credentials",
          "--apikey", "--api_key", "--session", "--SESSION-ID"})
        EXPECT_TRUE(names_a_secret(name)) << name;
    for (const char* name : {"--lr", "--tokenizer", "--tokenizer_name", "--pass", "--key", "--epochs"})
        EXPECT_FALSE(names_a_secret(name)) << name;
}

TEST(Redact, AFlagWithASecretNameDoesNotHideTheNextOption) {
    EXPECT_EQ(redacted({"t", "--use-session", "--lr", "1"}), (Words{"t", "--use-session", "--lr", "1"}));
}

TEST(Redact, ASecretThatBeginsWithADashIsTakenOut) {
    EXPECT_EQ(redacted({"t", "--password", "-x9"}), (Words{"t", "--password", "[redacted]"}));
}

TEST(Redact, AccessKeyIdsAreTakenOutAnywhere) {
    EXPECT_EQ(redacted({"t", "--id", "xAKIAIOSFODNN7EXAMPLEx"}), (Words{"t", "--id", "x[redacted]x"}));
    EXPECT_EQ(redacted({"t", "AKIATOOSHORT"}), (Words{"t", "AKIATOOSHORT"}));
}

TEST(Redact, TheUserPartOfAnUrlIsTakenOut) {
    EXPECT_EQ(redacted({"t", "s3://me:k@y@host/a@b", "https://host/x@y", "two http://u@a http://v@b"}),
              (Words{"t", "s3://[redacted]@host/a@b", "https://host/x@y",
                     "two http://[redacted]@a http://[redacted]@b"}));
}

TEST(Redact, TheNameOfTheProgramIsKept) {
    EXPECT_EQ(redacted({"token-trainer", "x"}), (Words{"token-trainer", "x"}));
    EXPECT_TRUE(redacted({}).empty());
}

}  // namespace
}  // namespace traindbg::cli
