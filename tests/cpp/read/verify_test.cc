// `Run::verify` over a whole run directory: no byte changes, and no file goes, without a word.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "format/sample_records.h"
#include "read/every_nth.h"
#include "read/sealed_run.h"
#include "traindbg/format/removals.h"
#include "traindbg/model/checked_json.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::read {
namespace {

using base::ByteBuffer;
using model::Json;
using storage::MemoryFileSystem;
using namespace std::chrono_literals;

struct Verified {
    std::vector<Damage> damage;
    std::vector<Unverified> unverified;
    std::vector<model::WorkerId> unclosed;
    bool is_refused = false;

    [[nodiscard]] bool is_silent() const { return !is_refused && damage.empty() && unverified.empty(); }
};

class VerifyTest : public ::testing::Test {
  protected:
    // Worker 0: sealed parts and whole tensors; worker 1: logs.
    void SetUp() override {
        ASSERT_TRUE(files_.create_directories("/run").is_ok());
        for (const char* name : {"RUN.json", "plan.json", "END.json", "verdict.json"})
            put(std::string("/run/") + name,
                model::to_checked_text({{"schema_version", 1}, {"run_id", "sample"}, {"exit_code", 0}}));
        for (const model::WorkerId worker : {0U, 1U}) {
            write::WriterOptions options;
            options.run_directory = "/run";
            options.worker = worker;
            options.part_bytes = 800;
            options.seals_parts = false;
            auto writer = write::RunWriter::open(files_, options);
            ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
            for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
            (*writer)->describe(testing::sample_meta());
            for (std::uint64_t step = 0; step < 5; ++step) {
                (*writer)->append(testing::sample_step(step, worker == 0 && step % 2 == 0));
                ASSERT_TRUE((*writer)->flush(60s));  // a part ends between two commits
            }
            ASSERT_TRUE((*writer)->close(240s).is_ok());
        }
        for (const storage::DirectoryEntry& entry : list("/run/w0000"))
            if (const auto part = storage::parse_part(entry.name, ".log"))
                testing::seal(files_, "/run", 0, *part);
        ASSERT_TRUE(files_.exists("/run/w0000/000001.seg")) << "parts are to be small";
        ASSERT_TRUE(files_.exists("/run/w0001/000001.log"));
        for (const char* directory : {"/run", "/run/w0000", "/run/w0001"})
            for (const storage::DirectoryEntry& entry : list(directory))
                if (entry.is_regular && entry.name != "lock") {
                    const std::string path = std::string(directory) + "/" + entry.name;
                    whole_[path] = files_.content(path);
                }
    }
    std::vector<storage::DirectoryEntry> list(const std::string& directory) {
        auto entries = files_.list(directory);
        EXPECT_TRUE(entries.is_ok());
        return entries.is_ok() ? *entries : std::vector<storage::DirectoryEntry>();
    }
    void put(const std::string& path, const std::string& text) {
        ASSERT_TRUE(files_.put_atomic(path, base::as_bytes(text)).is_ok());
    }
    Verified verify() {
        Verified out;
        auto run = Run::open("/run", files_);
        out.is_refused = !run.is_ok();
        if (out.is_refused) return out;
        const base::Status status = (*run)->verify();
        EXPECT_TRUE(status.is_ok()) << status.to_string();
        out.damage = (*run)->damage();
        out.unverified = (*run)->unverified();
        out.unclosed = (*run)->unclosed_workers();
        return out;
    }
    // What is told of the run without `paths`.
    Verified without(const std::vector<std::string>& paths) {
        for (const std::string& path : paths) EXPECT_TRUE(files_.remove(path).is_ok()) << path;
        Verified found = verify();
        for (const std::string& path : paths) files_.set_content(path, whole_[path]);
        return found;
    }
    void expect_every_flip_is_told(const std::string& path) {
        const ByteBuffer whole = files_.content(path);
        for (std::size_t at = 0; at < whole.size(); at += testing::kEveryNthByte) {
            ByteBuffer bytes = whole;
            bytes[at] ^= static_cast<std::byte>(1U << (at % 8));
            files_.set_content(path, std::move(bytes));
            const Verified found = verify();
            EXPECT_TRUE(found.is_refused || !found.damage.empty()) << path << ", byte " << at;
            // Damage of one file is not told of another one.
            for (const Damage& place : found.damage) EXPECT_EQ(place.file, path) << "byte " << at;
            if (HasFailure()) return;
        }
        files_.set_content(path, whole);
    }

    MemoryFileSystem files_;
    std::map<std::string, ByteBuffer> whole_;
};

TEST_F(VerifyTest, AWholeRunHasNothingToTell) {
    const Verified found = verify();
    EXPECT_TRUE(found.is_silent());
    EXPECT_TRUE(found.unclosed.empty());
}

TEST_F(VerifyTest, EveryFlippedByteOfEveryFileIsTold) {
    EXPECT_GE(whole_.size(), 9U);
    for (const auto& [path, content] : whole_) expect_every_flip_is_told(path);
}

TEST_F(VerifyTest, EveryFlippedByteOfRemovedJsonIsTold) {
    const std::string path = "/run/w0000/removed.json";
    put(path, format::to_json(format::Removals{17, 4, "over the quota of 1 MB"}));
    EXPECT_TRUE(verify().is_silent());
    expect_every_flip_is_told(path);
}

TEST_F(VerifyTest, EveryMissingPartAndBlobIsTold) {
    EXPECT_EQ(without({"/run/w0000/000000.seg"}).damage.at(0).what, "part 0 is missing");
    EXPECT_EQ(without({"/run/w0001/000000.log"}).damage.at(0).what, "part 0 is missing");
    EXPECT_EQ(without({"/run/w0000/000000.blob"}).damage.size(), 1U);
    std::vector<std::string> logs;
    for (const auto& [path, content] : whole_)
        if (path.starts_with("/run/w0001/")) logs.push_back(path);
    ASSERT_GT(logs.size(), 1U);
    const Verified found = without(logs);
    ASSERT_EQ(found.damage.size(), 1U);
    EXPECT_EQ(found.damage[0].what, "no part of what this worker recorded is there");
    // The last one may be still to come: no damage, but no record that was closed.
    const Verified cut = without({logs.back()});
    EXPECT_TRUE(cut.damage.empty());
    EXPECT_EQ(cut.unclosed, std::vector<model::WorkerId>{1});
}

TEST_F(VerifyTest, AFirstPartThatWasRemovedOnPurposeIsNoDamage) {
    put("/run/w0000/removed.json", format::to_json(format::Removals{17, 4, "over the quota of 1 MB"}));
    EXPECT_TRUE(without({"/run/w0000/000000.seg"}).damage.empty());
}

TEST_F(VerifyTest, WhatHasNoChecksumIsNamedAndNoDamage) {
    put("/run/plan.json", "{\"schema_version\": 1}\n");
    Verified found = verify();
    EXPECT_TRUE(found.damage.empty());
    ASSERT_EQ(found.unverified.size(), 1U);
    EXPECT_EQ(found.unverified[0].file, "/run/plan.json");
    put("/run/plan.json", "{\"schema_ver");
    found = verify();
    ASSERT_EQ(found.damage.size(), 1U);
    EXPECT_EQ(found.damage[0].what, "is not JSON");
}

TEST_F(VerifyTest, WholeTensorsOfStepsThatAreGoneAreNamedAndNoDamage) {
    const std::string path = "/run/w0000/000000.blob";
    ByteBuffer bytes = whole_[path];
    bytes.resize(bytes.size() + 64, std::byte{7});
    files_.set_content(path, std::move(bytes));
    const Verified found = verify();
    EXPECT_TRUE(found.damage.empty());
    ASSERT_EQ(found.unverified.size(), 1U);
    EXPECT_EQ(found.unverified[0].file, path);
}

TEST_F(VerifyTest, ASecondLookTellsTheSame) {
    ByteBuffer bytes = whole_["/run/w0000/000000.blob"];
    bytes[200] = std::byte{1};
    files_.set_content("/run/w0000/000000.blob", std::move(bytes));
    auto run = Run::open("/run", files_);
    ASSERT_TRUE(run.is_ok());
    for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE((*run)->verify().is_ok());
        EXPECT_EQ((*run)->damage().size(), 1U);
    }
}

}  // namespace
}  // namespace traindbg::read
