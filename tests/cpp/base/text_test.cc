#include "traindbg/base/text.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "traindbg/base/status.h"

namespace traindbg::base {
namespace {

TEST(Text, TheNearestNameIsTheOneMeant) {
    const std::vector<std::string> names = {"weights", "gradients", "losses", "vanishing_gradient"};
    EXPECT_EQ(nearest_match("gradient", names), "gradients");
    EXPECT_EQ(nearest_match("wieghts", names), "weights");
    EXPECT_EQ(nearest_match("lsoses", names), "losses") << "two letters swapped";
    EXPECT_EQ(nearest_match("chekc", std::vector<std::string>{"check", "report"}), "check");
    EXPECT_EQ(nearest_match("vanishing", names), "vanishing_gradient");
    EXPECT_EQ(nearest_match("xyz", names), std::nullopt);
    EXPECT_EQ(nearest_match("", names), std::nullopt);
    EXPECT_EQ(nearest_match("weights", {}), std::nullopt);
    EXPECT_EQ(did_you_mean("loses", names), " (did you mean 'losses'?)");
    EXPECT_EQ(did_you_mean("qqqqqqq", names), "");
}

TEST(Text, BytesForPeople) {
    EXPECT_EQ(human_bytes(0), "0 B");
    EXPECT_EQ(human_bytes(999), "999 B");
    EXPECT_EQ(human_bytes(1000), "1.0 kB");
    EXPECT_EQ(human_bytes(3'240'000), "3.2 MB");
    EXPECT_EQ(human_bytes(999'960), "1.0 MB") << "not 1000.0 kB";
    EXPECT_EQ(human_bytes(UINT64_MAX), "18446.7 PB");
}

TEST(Text, DurationsForPeople) {
    EXPECT_EQ(human_duration(0), "0 ns");
    EXPECT_EQ(human_duration(999), "999 ns");
    EXPECT_EQ(human_duration(410'000), "410 µs");
    EXPECT_EQ(human_duration(2'300'000'000), "2.3 s");
    EXPECT_EQ(human_duration(61'000'000'000), "1 min 01 s");
    EXPECT_EQ(human_duration(3840LL * 1'000'000'000), "1 h 04 min");
}

TEST(Text, NumbersForPeople) {
    EXPECT_EQ(human_number(0.0031), "0.0031");
    EXPECT_EQ(human_number(1.2e-9), "1.2e-09");
    EXPECT_EQ(human_number(std::nan("")), "nan");
    EXPECT_EQ(human_number(-std::numeric_limits<double>::infinity()), "-inf");
}

TEST(Text, TimesInUtc) {
    EXPECT_EQ(iso_time(0), "1970-01-01T00:00:00Z");
    EXPECT_EQ(iso_time(1'700'000'000LL * 1'000'000'000), "2023-11-14T22:13:20Z");
}

TEST(Text, WhatCannotBePrintedIsShownAsBytes) {
    EXPECT_EQ(printable("plain, täxt, 文, 🙂"), "plain, täxt, 文, 🙂");
    EXPECT_EQ(printable(std::string("a\n\x1b[31m\0b", 9)), "a\\x0a\\x1b[31m\\x00b");
    EXPECT_EQ(printable("\x7f"), "\\x7f");
    EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
    EXPECT_EQ(printable("\xc3"), "\\xc3") << "cut off";
    EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
    EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
    EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "a control character of C1";
    EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae") << "turns the text after it around";
}

TEST(Status, CarriesCodeAndMessage) {
    EXPECT_TRUE(Status::ok());
    const Status lost(Code::kDataLoss, "/runs/a: cut off");
    EXPECT_FALSE(lost);
    EXPECT_EQ(lost.to_string(), "data_loss: /runs/a: cut off");
    const Result<int> none = lost;
    EXPECT_FALSE(none);
    EXPECT_EQ(none.status().code(), Code::kDataLoss);
    const Result<int> some = 3;
    EXPECT_TRUE(some.status());
    EXPECT_EQ(*some, 3);
}

TEST(Text, SizesAreReadAsPeopleWriteThem) {
    EXPECT_EQ(parse_bytes("4096"), 4096U);
    EXPECT_EQ(parse_bytes("0"), 0U);
    EXPECT_EQ(parse_bytes("10GiB"), 10ULL << 30);
    EXPECT_EQ(parse_bytes("10 GB"), 10'000'000'000U);
    EXPECT_EQ(parse_bytes("1.5k"), 1500U);
    EXPECT_EQ(parse_bytes("2Mi"), 2ULL << 20);
    EXPECT_EQ(parse_bytes("3tb"), 3'000'000'000'000U);
    EXPECT_EQ(parse_bytes("512B"), 512U);
    for (const char* text : {"", "GiB", "-1", "-0", "1e3", "10XB", "10Gib2", "10 GiB x", "nan", "inf",
                             "9999999PB", "1kk", "0x10", " 5"})
        EXPECT_FALSE(parse_bytes(text).has_value()) << text;
}

TEST(Text, DurationsAreReadAsPeopleWriteThem) {
    EXPECT_EQ(parse_duration("30d"), 30 * 86'400'000'000'000);
    EXPECT_EQ(parse_duration("12h"), 12 * 3'600'000'000'000);
    EXPECT_EQ(parse_duration("90min"), 90 * 60'000'000'000);
    EXPECT_EQ(parse_duration("0.5 s"), 500'000'000);
    EXPECT_EQ(parse_duration("2w"), 14 * 86'400'000'000'000);
    for (const char* text : {"", "30", "d", "-1d", "30 days", "1e9d", "999999999w"})
        EXPECT_FALSE(parse_duration(text).has_value()) << text;
}

TEST(Status, FromErrnoKeepsTheKindOfFailure) {
    EXPECT_EQ(Status::from_errno("f", ENOENT).code(), Code::kNotFound);
    EXPECT_EQ(Status::from_errno("f", EEXIST).code(), Code::kAlreadyExists);
    EXPECT_EQ(Status::from_errno("f", EACCES).code(), Code::kPermissionDenied);
    EXPECT_EQ(Status::from_errno("f", ENOSPC).code(), Code::kResourceExhausted);
    EXPECT_TRUE(Status::from_errno("/x: open", ENOENT).message().starts_with("/x: open"));
}

Result<int> half(int value) {
    if (value % 2 != 0) return Status(Code::kInvalidArgument, "odd");
    return value / 2;
}
Result<int> quarter(int value) {
    TRAINDBG_ASSIGN_OR_RETURN(const int first, half(value));
    TRAINDBG_ASSIGN_OR_RETURN(const int second, half(first));
    return second;
}

TEST(Status, TheMacrosLeaveAtTheFirstError) {
    EXPECT_EQ(*quarter(8), 2);
    EXPECT_EQ(quarter(6).status().message(), "odd");
    EXPECT_EQ(quarter(5).status().message(), "odd");
}

}  // namespace
}  // namespace traindbg::base
