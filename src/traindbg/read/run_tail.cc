#include <algorithm>
#include <map>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/read/run.h"
#include "traindbg/read/run_impl.h"

namespace traindbg::read {
namespace {

using base::Result;
using internal::DirectoryWatcher;
using internal::Part;
using internal::StepKey;
using internal::WorkerState;
using model::StepView;
using model::WorkerId;
using std::chrono::nanoseconds;

constexpr nanoseconds kBetweenLooks = std::chrono::milliseconds(100);
constexpr unsigned kMostLastLooks = 10;

}  // namespace

class RunTail::Impl {
  public:
    Impl(std::unique_ptr<Run::Impl> run, bool with_raw) : run_(std::move(run)), with_raw_(with_raw) {
        watch_all();
    }

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
            const bool was_undecided = has_undecided();
            TRAINDBG_ASSIGN_OR_RETURN(const bool is_new, run_->refresh());
            const bool is_undecided = has_undecided();
            // A worker that was found just now may have written between the look and its watch.
            const bool look_again = watch_all();
            if (is_new || look_again || (was_undecided && !is_undecided)) continue;
            // There may be steps that nobody has seen: the caller decides how often to try.
            TRAINDBG_RETURN_IF_ERROR(run_->passing_trouble());
            if (is_finishing) {
                if (is_undecided && ++last_looks_ < kMostLastLooks) continue;
                has_ended_ = true;
                return std::optional<StepView>();
            }
            const nanoseconds left(deadline - base::monotonic_nanos());
            if (left <= nanoseconds::zero()) return std::optional<StepView>();
            // Nobody tells when a file can be read again.
            watcher_.wait(is_undecided ? std::min(left, kBetweenLooks) : left);
        }
    }

    [[nodiscard]] bool ended() const noexcept { return has_ended_; }
    [[nodiscard]] const std::vector<Damage>& damage() { return run_->damage(); }
    [[nodiscard]] WorkerGaps worker_gaps() { return run_->worker_gaps(); }
    void finish_when_idle() noexcept { is_finishing_ = true; }
    [[nodiscard]] int wake_descriptor() const noexcept { return watcher_.descriptor(); }

  private:
    // The next whole step that is known already: of the worker that is least far.
    Result<std::optional<StepView>> take() {
        while (true) {
            WorkerState* best = nullptr;
            Part* part = nullptr;
            WorkerId chosen = 0;
            model::StepIndex least = 0;
            for (const auto& [id, worker] : run_->workers()) {
                internal::Cursor& cursor = cursors_[id];
                const std::uint32_t before = cursor.part;
                Part* const next = worker->next(cursor);
                for (auto it = worker->unread.lower_bound(before);
                     it != worker->unread.end() && it->first < cursor.part; ++it)
                    run_->note_passed(it->second);
                if (next == nullptr) continue;
                TRAINDBG_ASSIGN_OR_RETURN(const std::optional<StepKey> key, next->key(cursor.row));
                // In TRAIN steps: one that evaluates, as only rank 0 may, is no farther than before. A
                // damaged step is told at once.
                model::StepIndex progress = 0;
                if (key) progress = key->mode == model::Mode::kTrain ? key->step + 1 : trained_[id];
                if (best != nullptr && progress >= least) continue;
                best = worker.get();
                part = next;
                chosen = id;
                least = progress;
            }
            if (best == nullptr) return std::optional<StepView>();
            internal::Cursor& cursor = cursors_[chosen];
            TRAINDBG_ASSIGN_OR_RETURN(
                const bool is_whole,
                run_->load_if_whole(chosen, *best, part->number(), cursor.row, record_, with_raw_));
            ++cursor.row;  // after an error the same step is tried again
            if (is_whole && record_.mode == model::Mode::kTrain) trained_[chosen] = record_.step + 1;
            if (is_whole) return std::optional(StepView{chosen, &record_, &best->tensors, &best->meta});
        }
    }

    [[nodiscard]] bool has_undecided() const {
        return std::any_of(run_->workers().begin(), run_->workers().end(),
                           [](const auto& worker) { return worker.second->is_undecided(); });
    }

    bool watch_all() { return run_->watch_all(watcher_); }

    std::unique_ptr<Run::Impl> run_;
    bool with_raw_;
    DirectoryWatcher watcher_;
    std::map<WorkerId, internal::Cursor> cursors_;  // behind the steps that were given
    std::map<WorkerId, model::StepIndex> trained_;  // TRAIN steps of each that were given
    model::StepRecord record_;
    bool is_finishing_ = false;
    unsigned last_looks_ = 0;  // for what could not be read, when all else was
    bool has_ended_ = false;
};

RunTail::RunTail(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
RunTail::~RunTail() = default;

Result<std::unique_ptr<RunTail>> RunTail::open(const std::string& path, storage::FileSystem& files,
                                               bool with_raw) {
    TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<Run::Impl> run, Run::Impl::open(path, files));
    return std::unique_ptr<RunTail>(new RunTail(std::make_unique<Impl>(std::move(run), with_raw)));
}

Result<std::optional<StepView>> RunTail::next(nanoseconds patience) { return impl_->next(patience); }
bool RunTail::ended() const { return impl_->ended(); }
const std::vector<Damage>& RunTail::damage() const { return impl_->damage(); }
WorkerGaps RunTail::worker_gaps() const { return impl_->worker_gaps(); }
void RunTail::finish_when_idle() noexcept { impl_->finish_when_idle(); }
int RunTail::wake_descriptor() const noexcept { return impl_->wake_descriptor(); }

}  // namespace traindbg::read
