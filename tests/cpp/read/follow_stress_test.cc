// Many followers at once, each in a thread of its own, while the parts under them are sealed and thinned.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "format/sample_records.h"
#include "storage/temporary_directory.h"
#include "traindbg/read/run.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::read {
namespace {

using testing::sample_step;
using namespace std::chrono_literals;

constexpr std::uint64_t kSteps = 2400;
constexpr std::uint64_t kFollowers = 8;

// How far the training is, and whether it is over: what a follower that is to be late waits for.
struct Progress {
    std::atomic<std::uint64_t> steps{0};
    std::atomic<bool> is_over{false};

    void wait_for(std::uint64_t step) {
        for (std::uint64_t now = steps.load(); now < step; now = steps.load()) steps.wait(now);
    }
};

// Follows until the end and gives the steps that it saw.
std::vector<model::StepIndex> follow(const std::string& run, Progress& progress, std::uint64_t behind) {
    std::vector<model::StepIndex> seen;
    auto tail = RunTail::open(run);
    EXPECT_TRUE(tail.is_ok()) << tail.status().to_string();
    if (!tail.is_ok()) return seen;
    while (!(*tail)->ended()) {
        if (progress.is_over.load()) (*tail)->finish_when_idle();
        const auto view = (*tail)->next(100ms);
        EXPECT_TRUE(view.is_ok()) << view.status().to_string();
        if (!view.is_ok()) break;
        if (!view->has_value()) continue;
        const model::StepIndex step = (**view).step();
        EXPECT_EQ(*(**view).record, sample_step(step));
        EXPECT_TRUE(seen.empty() || seen.back() < step) << step << " after " << seen.back();
        seen.push_back(step);
        // One that is late finds the parts sealed, thinned or gone since it last looked.
        if (behind != 0) progress.wait_for(std::min(kSteps, step + behind));
    }
    EXPECT_TRUE((*tail)->damage().empty()) << (*tail)->damage().front().what;
    return seen;
}

TEST(FollowStressTest, EachStepThatIsKeptComesOnceAndInOrder) {
    const testing::TemporaryDirectory directory;
    storage::FileSystem& files = storage::posix_file_system();
    ASSERT_TRUE(
        files.put_atomic(directory.path() + "/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
    Progress progress;
    std::vector<std::vector<model::StepIndex>> seen(kFollowers);
    write::WriterCounts counts;
    {
        std::vector<std::jthread> threads;
        for (std::uint64_t i = 0; i < kFollowers; ++i)
            threads.emplace_back([&, i] {
                if (i == 7) progress.wait_for(kSteps / 2);  // one that comes later
                // Half of them keep up; the others are a part, ten parts and more behind.
                seen[i] = follow(directory.path(), progress, i % 2 == 0 ? 0 : 50 * i);
            });
        write::WriterOptions options;
        options.run_directory = directory.path();
        options.part_bytes = 16 << 10;
        options.sealer_nice = 0;
        options.overflow = write::OverflowPolicy::kBlockFor;
        options.block_for = 300s;
        options.queue_bytes = 64 << 10;
        options.retention.keep_last = 100;
        options.retention.thin = 10;
        auto writer = write::RunWriter::open(files, options);
        EXPECT_TRUE(writer.is_ok()) << writer.status().to_string();
        if (writer.is_ok()) {
            for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
            for (std::uint64_t step = 0; step < kSteps; ++step) {
                (*writer)->append(sample_step(step));
                if (step % 16 != 15) continue;
                EXPECT_TRUE((*writer)->flush(300s));
                progress.steps.store(step + 1);
                progress.steps.notify_all();
            }
            EXPECT_TRUE((*writer)->close(300s).is_ok());
            counts = (*writer)->counts();
        }
        progress.is_over.store(true);
        progress.steps.store(kSteps);
        progress.steps.notify_all();
    }
    EXPECT_EQ(counts.steps_dropped, 0U);
    EXPECT_GT(counts.parts_sealed, 20U);

    auto run = Run::open(directory.path());
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    std::vector<model::StepIndex> kept;
    ASSERT_TRUE((*run)
                    ->for_each_step([&](const model::StepView& view) {
                        EXPECT_EQ(*view.record, sample_step(view.step()));
                        kept.push_back(view.step());
                        return true;
                    })
                    .is_ok());
    EXPECT_TRUE((*run)->damage().empty());
    EXPECT_LT(kept.size(), kSteps) << "retention had something to do";
    EXPECT_EQ(kept.back(), kSteps - 1);
    for (std::uint64_t i = 0; i < kFollowers; ++i)
        EXPECT_TRUE(std::includes(seen[i].begin(), seen[i].end(), kept.begin(), kept.end()))
            << "follower " << i << " saw " << seen[i].size() << " steps, " << kept.size() << " are kept";
}

}  // namespace
}  // namespace traindbg::read
