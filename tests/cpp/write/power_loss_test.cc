// Switches the machine off at many moments of a recording and looks at what is left.
//
// The moments are file system calls of the writer's and the sealer's threads, chosen by a seed. At each of
// them two losses are looked at: the strict one, which takes all that was not synced, and one that takes a
// part of that by chance. The number of losses is TRAINDBG_POWER_LOSSES (200).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "format/sample_records.h"
#include "traindbg/read/run.h"
#include "traindbg/seal/sealer.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::write {
namespace {

using model::StepRecord;
using storage::FaultFileSystem;
using storage::FaultPlan;
using storage::FileCall;
using storage::MemoryFileSystem;
using storage::PowerLoss;
using storage::UnsyncedBytes;
using storage::UnsyncedNames;
using testing::sample_step;
using namespace std::chrono_literals;

constexpr std::uint64_t kSteps = 120;

StepRecord expected_step(std::uint64_t step) {
    StepRecord record = sample_step(step, step % 3 == 0);
    if (step % 3 == 0) {
        record.raw[0].shape = {static_cast<std::int64_t>(300 + step)};
        record.raw[0].bytes.assign((300 + step) * 4, static_cast<std::byte>(step));
    }
    return record;
}

// All steps of an image, by number. A step that is wrong in any way fails the test; one may lack whole
// tensors where `tensors_may_be_lost`.
std::map<std::uint64_t, StepRecord> steps_of(MemoryFileSystem& image, bool tensors_may_be_lost) {
    std::map<std::uint64_t, StepRecord> steps;
    auto run = read::Run::open("/run", image);
    EXPECT_TRUE(run.is_ok()) << run.status().to_string();
    if (!run.is_ok()) return steps;
    const base::Status status = (*run)->for_each_step(
        [&](const model::StepView& view) {
            const StepRecord& record = *view.record;
            StepRecord expected = expected_step(record.step);
            if (tensors_may_be_lost && record.raw.size() < expected.raw.size()) {
                std::erase_if(expected.raw, [&](const model::RawTensor& raw) {
                    return std::none_of(
                        record.raw.begin(), record.raw.end(),
                        [&](const model::RawTensor& found) { return found.tensor == raw.tensor; });
                });
            }
            EXPECT_TRUE(record == expected) << "step " << record.step << " is not what was recorded";
            EXPECT_TRUE(steps.emplace(record.step, record).second) << "step " << record.step << " twice";
            return true;
        },
        true);
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return steps;
}

// One recording that is looked at in `share` of its calls.
class PoweredRecording {
  public:
    PoweredRecording(std::uint64_t seed, double share) : random_(seed), share_(share) {}

    void run() {
        ASSERT_TRUE(memory_.create_directories("/run").is_ok());
        ASSERT_TRUE(memory_.put_atomic("/run/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
        FaultPlan plan;
        plan.before = [this](FileCall call, const std::string&) {
            if (call != FileCall::kRead && call != FileCall::kOpen && call != FileCall::kSize)
                maybe_lose_power();
        };
        FaultFileSystem files(memory_, plan);
        WriterOptions options;
        options.run_directory = "/run";
        options.sealer_nice = 0;  // it is waited for
        options.part_bytes = 2000 + random_() % 10'000;
        options.blob_bytes = 5000 + random_() % 20'000;
        options.sync_interval = std::chrono::milliseconds(1 + random_() % 3);
        options.seals_parts = random_() % 2 == 0;  // else the logs alone must hold what was synced
        auto writer = RunWriter::open(files, options);
        ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
        for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
        for (std::uint64_t step = 0; step < kSteps; ++step) {
            (*writer)->append(expected_step(step));
            if (step % 7 == 0) {
                ASSERT_TRUE((*writer)->flush(240s));
            }
        }
        ASSERT_TRUE((*writer)->close(240s).is_ok());
        lose_power();
        EXPECT_EQ(durable_, kSteps) << "what was closed is on the disk";
    }
    [[nodiscard]] std::uint64_t losses() const noexcept { return losses_; }

  private:
    void maybe_lose_power() {
        const std::lock_guard lock(mutex_);
        if (std::uniform_real_distribution<double>(0, 1)(random_) < share_) lose_power();
    }

    void lose_power() {
        const PowerLoss strict{UnsyncedBytes::kLost, UnsyncedNames::kLost, 0};
        const PowerLoss mixed{static_cast<UnsyncedBytes>(random_() % 4),
                              static_cast<UnsyncedNames>(random_() % 3), random_()};
        const auto at_least_image = memory_.after_power_loss(strict);
        const auto mixed_image = memory_.after_power_loss(mixed);
        losses_ += 2;
        const auto at_least = steps_of(*at_least_image, false);
        const auto found = steps_of(*mixed_image, true);
        // The first image was taken a moment earlier than the second: its steps are in both, whole.
        for (const auto& [step, record] : at_least) {
            const auto it = found.find(step);
            ASSERT_TRUE(it != found.end()) << "step " << step << " was synced and is lost";
            EXPECT_TRUE(it->second == record) << "step " << step << " was synced and lacks tensors";
        }
        EXPECT_GE(at_least.size(), durable_) << "steps that were on the disk before are not there now";
        durable_ = at_least.size();
        // What a later `traindbg compact` makes of it holds the same.
        auto compacted = seal::compact_run(*mixed_image, "/run");
        ASSERT_TRUE(compacted.is_ok()) << compacted.status().to_string();
        EXPECT_TRUE(steps_of(*mixed_image, true) == found) << "compacting has changed the record";
    }

    std::mutex mutex_;
    std::mt19937_64 random_;
    const double share_;
    MemoryFileSystem memory_;
    std::uint64_t losses_ = 0;
    std::uint64_t durable_ = 0;  // steps on the disk when it was looked at last
};

TEST(PowerLossTest, WhatWasSyncedIsThereAndNothingIsWrong) {
    const char* wanted = std::getenv("TRAINDBG_POWER_LOSSES");
    const std::uint64_t losses = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 200;
    std::uint64_t done = 0;
    for (std::uint64_t seed = 1; done < losses && !HasFatalFailure() && !HasNonfatalFailure(); ++seed) {
        PoweredRecording recording(seed, 0.1);
        recording.run();
        done += recording.losses();
    }
    RecordProperty("losses", static_cast<int>(done));
}

}  // namespace
}  // namespace traindbg::write
