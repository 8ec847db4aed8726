#include "traindbg/storage/run_layout.h"

#include <gtest/gtest.h>

#include <string>

namespace traindbg::storage {
namespace {

TEST(RunLayoutTest, NamesAreThoseOfTheFormat) {
    const RunLayout layout{"/runs/a"};
    EXPECT_EQ(layout.run_json(), "/runs/a/RUN.json");
    EXPECT_EQ(layout.plan_change_json(1), "/runs/a/plan-000001.json");
    EXPECT_EQ(layout.flight(), "/runs/a/flight");
    EXPECT_EQ(layout.worker_directory(3), "/runs/a/w0003");
    EXPECT_EQ(layout.worker_directory(12345), "/runs/a/w12345");
    EXPECT_EQ(layout.ring(3), "/runs/a/w0003/ring");
    EXPECT_EQ(layout.log(3, 12), "/runs/a/w0003/000012.log");
    EXPECT_EQ(layout.segment(0, 7), "/runs/a/w0000/000007.seg");
    EXPECT_EQ(layout.blob(0, 0), "/runs/a/w0000/000000.blob");
}

TEST(RunLayoutTest, WorkerDirectoriesAreParsed) {
    EXPECT_EQ(parse_worker_directory("w0003"), 3U);
    EXPECT_EQ(parse_worker_directory("w12345"), 12345U);
    for (const char* name :
         {"", "w", "w3", "w003", "w00003", "w000x", "x0003", "w0003 ", "w-001", "w9999999999"})
        EXPECT_FALSE(parse_worker_directory(name).has_value()) << name;
}

TEST(RunLayoutTest, PartsAreParsed) {
    EXPECT_EQ(parse_part("000012.log", ".log"), 12U);
    EXPECT_EQ(parse_part("1234567.blob", ".blob"), 1234567U);
    for (const char* name : {"", ".log", "12.log", "0000012.log", "000012.raw", "00001a.log", "000012.log~"})
        EXPECT_FALSE(parse_part(name, ".log").has_value()) << name;
}

TEST(RunLayoutTest, RunIdsAreSafeFileNames) {
    EXPECT_TRUE(is_valid_run_id("2026-11-20_run.1"));
    EXPECT_TRUE(is_valid_run_id(std::string(128, 'a')));
    for (const std::string& id :
         {std::string(), std::string(129, 'a'), std::string(".."), std::string(".a"), std::string("a/b"),
          std::string("a b"), std::string("a\0b", 3), std::string("ä")})
        EXPECT_FALSE(is_valid_run_id(id)) << id;
}

}  // namespace
}  // namespace traindbg::storage
