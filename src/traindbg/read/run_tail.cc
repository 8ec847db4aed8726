#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/read/run.h"
#include "traindbg/read/run_impl.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::read {
namespace {

using base::Result;
using internal::StepEntry;
using internal::WorkerState;
using model::StepView;
using model::WorkerId;
using std::chrono::nanoseconds;

constexpr nanoseconds kPollInterval = std::chrono::milliseconds(20);  // without inotify
// With inotify nothing should be missed; a look now and then costs nothing and heals what is.
constexpr nanoseconds kLookInterval = std::chrono::seconds(1);

// Watches directories for files that are made or written. A system without inotify, or without one
// to spare, gives a watcher that does not work: `descriptor()` is -1 then.
class DirectoryWatcher {
  public:
    DirectoryWatcher() : descriptor_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}
    DirectoryWatcher(const DirectoryWatcher&) = delete;
    DirectoryWatcher& operator=(const DirectoryWatcher&) = delete;
    ~DirectoryWatcher() { stop(); }

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

    // True when the directory was not watched before.
    bool watch(const std::string& directory, std::uint32_t events) {
        if (descriptor_ < 0 || !watched_.insert(directory).second) return false;
        const int watch = ::inotify_add_watch(descriptor_, directory.c_str(), events | IN_ONLYDIR);
        if (watch < 0) stop();  // half of the directories would be worse than none
        return true;
    }

    // Forgets the events so far: the caller is about to look for itself.
    void drain() noexcept {
        alignas(inotify_event) std::array<std::byte, 4096> events;
        while (descriptor_ >= 0 && ::read(descriptor_, events.data(), events.size()) > 0) continue;
    }

    void wait(nanoseconds patience) const noexcept {
        const timespec time{static_cast<time_t>(patience.count() / 1'000'000'000),
                            static_cast<long>(patience.count() % 1'000'000'000)};
        pollfd events{descriptor_, POLLIN, 0};  // a negative descriptor is ignored: a plain sleep
        ::ppoll(&events, 1, &time, nullptr);
    }

  private:
    void stop() noexcept {
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = -1;
    }

    int descriptor_;
    std::set<std::string> watched_;
};

}  // namespace

class RunTail::Impl {
  public:
    explicit Impl(std::unique_ptr<Run::Impl> run) : run_(std::move(run)) { watch_all(); }

    Result<std::optional<StepView>> next(nanoseconds patience) {
        const std::int64_t deadline =
            base::monotonic_nanos() + std::max(patience, nanoseconds::zero()).count();
        while (true) {
            TRAINDBG_ASSIGN_OR_RETURN(std::optional<StepView> view, take());
            if (view) return view;
            if (has_ended_) return std::optional<StepView>();
            // Read before looking: what is written after the last look counts as written in time.
            const bool is_finishing = is_finishing_;
            watcher_.drain();
            TRAINDBG_ASSIGN_OR_RETURN(const bool is_new, run_->refresh());
            // A worker that was found just now may have written between the look and its watch.
            const bool look_again = watch_all();
            if (is_new || look_again) continue;
            if (is_finishing) {
                has_ended_ = true;
                return std::optional<StepView>();
            }
            const nanoseconds left(deadline - base::monotonic_nanos());
            if (left <= nanoseconds::zero()) return std::optional<StepView>();
            watcher_.wait(std::min(left, watcher_.descriptor() < 0 ? kPollInterval : kLookInterval));
        }
    }

    [[nodiscard]] bool ended() const noexcept { return has_ended_; }
    void finish_when_idle() noexcept { is_finishing_ = true; }
    [[nodiscard]] int wake_descriptor() const noexcept { return watcher_.descriptor(); }

  private:
    // The next whole step that is known already.
    Result<std::optional<StepView>> take() {
        while (true) {
            WorkerState* worker = choose();
            if (worker == nullptr) return std::optional<StepView>();
            const StepEntry& entry = worker->steps[given_[chosen_]++];
            TRAINDBG_ASSIGN_OR_RETURN(const bool is_whole,
                                      run_->load_if_whole(chosen_, *worker, entry, record_, false));
            if (is_whole) return std::optional(StepView{chosen_, &record_, &worker->tensors, &worker->meta});
        }
    }

    // The worker that is least far of those with a step to give.
    [[nodiscard]] WorkerState* choose() {
        WorkerState* best = nullptr;
        for (const auto& [id, worker] : run_->workers()) {
            const std::size_t given = given_[id];
            if (given == worker->steps.size()) continue;
            if (best != nullptr && worker->steps[given].sequence >= best->steps[given_[chosen_]].sequence)
                continue;
            chosen_ = id;
            best = worker.get();
        }
        return best;
    }

    // Watches every directory that is not watched yet; true when there was one.
    bool watch_all() {
        // In the run's own directory only `control` is written to in place, and that is no news here.
        bool any = watcher_.watch(run_->layout().root, IN_CREATE | IN_MOVED_TO);
        for (const auto& [id, worker] : run_->workers())
            any = watcher_.watch(run_->layout().worker_directory(id), IN_CREATE | IN_MODIFY | IN_MOVED_TO) ||
                  any;
        return any;
    }

    std::unique_ptr<Run::Impl> run_;
    DirectoryWatcher watcher_;
    std::map<WorkerId, std::size_t> given_;  // steps, of each worker
    WorkerId chosen_ = 0;                    // by `choose`
    model::StepRecord record_;
    bool is_finishing_ = false;
    bool has_ended_ = false;
};

RunTail::RunTail(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
RunTail::~RunTail() = default;

Result<std::unique_ptr<RunTail>> RunTail::open(const std::string& path, storage::FileSystem& files) {
    TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<Run::Impl> run, Run::Impl::open(path, files));
    return std::unique_ptr<RunTail>(new RunTail(std::make_unique<Impl>(std::move(run))));
}

Result<std::optional<StepView>> RunTail::next(nanoseconds patience) { return impl_->next(patience); }
bool RunTail::ended() const { return impl_->ended(); }
void RunTail::finish_when_idle() noexcept { impl_->finish_when_idle(); }
int RunTail::wake_descriptor() const noexcept { return impl_->wake_descriptor(); }

}  // namespace traindbg::read
