// A disk that cannot read a sector, a file that may not be opened: what lies around it is read, and it is
// told.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/sample_records.h"
#include "traindbg/base/format.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::read {
namespace {

using base::ByteBuffer;
using base::Code;
using model::StepRecord;
using storage::FaultFileSystem;
using storage::FaultPlan;
using storage::FileCall;
using storage::MemoryFileSystem;
using namespace std::chrono_literals;

constexpr std::uint64_t kUnreadableSteps = 120;
constexpr std::uint64_t kSector = 4096;

// Every step that is given, whole; `run` may miss some.
std::vector<StepRecord> steps_of(Run& run) {
    std::vector<StepRecord> steps;
    const base::Status status = run.for_each_step(
        [&](const model::StepView& view) {
            steps.push_back(*view.record);
            return true;
        },
        true);
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return steps;
}

bool tells_of(const std::vector<Damage>& damage, const std::string& file) {
    for (const Damage& place : damage)
        if (place.file == file) return true;
    return false;
}

// Of logs, and of sealed parts.
class UnreadableTest : public ::testing::TestWithParam<bool> {
  protected:
    void record(std::uint64_t part_bytes) {
        ASSERT_TRUE(memory_.create_directories("/run").is_ok());
        ASSERT_TRUE(memory_.put_atomic("/run/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
        write::WriterOptions options;
        options.run_directory = "/run";
        options.part_bytes = part_bytes;
        options.seals_parts = GetParam();
        options.sealer_nice = 0;
        auto writer = write::RunWriter::open(memory_, options);
        ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
        for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
        (*writer)->describe(testing::sample_meta());
        for (std::uint64_t step = 0; step < kUnreadableSteps; ++step) {
            (*writer)->append(testing::sample_step(step, step % 2 == 0));
            if (step % 10 == 0) {
                ASSERT_TRUE((*writer)->flush(240s));
            }
        }
        ASSERT_TRUE((*writer)->close(240s).is_ok());
        const auto entries = memory_.list("/run/w0000");
        ASSERT_TRUE(entries.is_ok());
        for (const storage::DirectoryEntry& entry : *entries)
            if (entry.name != "lock") paths_.push_back("/run/w0000/" + entry.name);
    }
    [[nodiscard]] std::unique_ptr<FaultFileSystem> without_access_to(const std::string& path) {
        FaultPlan plan;
        plan.error = EACCES;
        plan.fails = [this, path](FileCall call, const std::string& of) {
            return is_closed_ && call == FileCall::kOpen && of == path;
        };
        return std::make_unique<FaultFileSystem>(memory_, plan);
    }

    MemoryFileSystem memory_;
    std::vector<std::string> paths_;  // of parts and whole tensors, by name
    bool is_closed_ = true;
};

// As much is read as from a copy that has zeros there, which is what the tests of damage look at.
TEST_P(UnreadableTest, ABadSectorCostsWhatLiesInItAndIsTold) {
    record(64 << 20);
    std::size_t sectors = 0;
    for (const std::string& path : paths_) {
        const ByteBuffer whole = memory_.content(path);
        for (std::uint64_t at = 0; at < whole.size(); at += kSector) {
            const std::string where = base::format("{}, sector at {}", path, at);
            const std::uint64_t size = std::min<std::uint64_t>(kSector, whole.size() - at);
            if (size == whole.size()) continue;  // nothing of it can be read
            FaultPlan plan;
            plan.bad_sector = {path, at, kSector};
            FaultFileSystem files(memory_, plan);
            MemoryFileSystem copy;
            for (const std::string& each : memory_.paths()) copy.set_content(each, memory_.content(each));
            ByteBuffer zeroed = whole;
            std::fill_n(zeroed.begin() + static_cast<std::ptrdiff_t>(at), size, std::byte{0});
            copy.set_content(path, std::move(zeroed));

            auto run = Run::open("/run", files);
            auto expected = Run::open("/run", copy);
            if (!run.is_ok()) {
                EXPECT_EQ(at, 0U) << where << ": " << run.status().to_string();
                continue;  // without its header, nothing of a file can be read
            }
            ASSERT_TRUE(expected.is_ok()) << where;
            const std::vector<StepRecord> steps = steps_of(**run);
            std::vector<StepRecord> zeros = steps_of(**expected);
            ASSERT_EQ(steps.size(), zeros.size()) << where;
            for (std::size_t i = 0; i < steps.size(); ++i) {
                const auto& whole_tensors = testing::sample_step(steps[i].step, true).raw;
                EXPECT_TRUE(steps[i].raw.empty() || steps[i].raw == whole_tensors) << where;
                zeros[i].raw = steps[i].raw;  // zeros may be what a tensor holds
                EXPECT_TRUE(steps[i] == zeros[i]) << where;
            }
            ASSERT_TRUE((*run)->verify().is_ok()) << where;
            bool is_told = false;
            for (const Damage& place : (*run)->damage())
                is_told = is_told || (place.file == path && place.offset <= at &&
                                      (place.bytes == 0 || at < place.offset + place.bytes));
            EXPECT_TRUE(is_told) << where;
            ++sectors;
            if (HasFailure()) return;
        }
    }
    EXPECT_GT(sectors, 2U);
}

TEST_P(UnreadableTest, AFileThatMayNotBeOpenedHidesNoOther) {
    record(4 << 10);
    ASSERT_GT(paths_.size(), 4U);
    for (const std::string& path : paths_) {
        is_closed_ = true;
        const auto files = without_access_to(path);
        auto run = Run::open("/run", *files);
        ASSERT_TRUE(run.is_ok()) << path << ": " << run.status().to_string();
        const std::vector<StepRecord> some = steps_of(**run);
        EXPECT_TRUE(tells_of((*run)->damage(), path)) << path;
        for (const Damage& place : (*run)->damage()) EXPECT_EQ(place.file, path) << place.what;
        if (path.ends_with(".blob")) {
            EXPECT_EQ(some.size(), kUnreadableSteps) << path;
        } else {
            EXPECT_LT(some.size(), kUnreadableSteps) << path;
            EXPECT_GT(some.size(), kUnreadableSteps / 2) << path;
        }
        is_closed_ = false;
        ASSERT_TRUE((*run)->refresh().is_ok());
        std::uint64_t step = 0;
        for (const StepRecord& record : steps_of(**run)) {
            EXPECT_TRUE(record == testing::sample_step(step, step % 2 == 0)) << path << ", " << step;
            ++step;
        }
        EXPECT_EQ(step, kUnreadableSteps) << path;
        EXPECT_TRUE((*run)->damage().empty()) << path;
    }
}

TEST_P(UnreadableTest, AFollowerDoesNotWaitForAFileThatItCannotRead) {
    record(4 << 10);
    for (const std::string& path : paths_) {
        if (path.ends_with(".blob")) continue;
        const auto files = without_access_to(path);
        auto tail = RunTail::open("/run", *files);
        ASSERT_TRUE(tail.is_ok()) << tail.status().to_string();
        (*tail)->finish_when_idle();
        std::vector<std::uint64_t> steps;
        while (true) {
            const auto view = (*tail)->next(0ns);
            ASSERT_TRUE(view.is_ok()) << view.status().to_string();
            if (!view->has_value()) break;
            EXPECT_TRUE(steps.empty() || steps.back() < (**view).record->sequence);
            steps.push_back((**view).record->sequence);
        }
        EXPECT_TRUE((*tail)->ended());
        EXPECT_LT(steps.size(), kUnreadableSteps) << path;
        EXPECT_GT(steps.size(), kUnreadableSteps / 2) << path;
        EXPECT_TRUE(tells_of((*tail)->damage(), path)) << path;
    }
}

TEST_P(UnreadableTest, WhereNothingCanBeReadThatIsTheAnswer) {
    record(64 << 20);
    const auto files = without_access_to(paths_.back());
    const base::Status status = Run::open("/run", *files).status();
    EXPECT_EQ(status.code(), Code::kPermissionDenied) << status.to_string();
    EXPECT_NE(status.message().find(paths_.back()), std::string::npos) << status.message();
}

INSTANTIATE_TEST_SUITE_P(All, UnreadableTest, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "Segment" : "Log"; });

}  // namespace
}  // namespace traindbg::read
