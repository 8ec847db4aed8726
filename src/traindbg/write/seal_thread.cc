#include "traindbg/write/seal_thread.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "traindbg/base/fork_generation.h"
#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/seal/retention.h"
#include "traindbg/seal/sealer.h"
#include "traindbg/write/gone.h"
#include "traindbg/write/thread.h"

namespace traindbg::write {
namespace {

using base::LogLevel;
using base::Result;

struct Finished {
    std::uint32_t part;
    std::uint32_t first_blob_kept;
    std::uint64_t closed_bytes;
};

}  // namespace

// Shared with the thread, which may be left behind.
struct SealThread::State {
    State(storage::FileSystem& files_in, storage::RunLayout layout_in, model::WorkerId worker_in,
          const model::Retention& retention_in, int nice_in, std::shared_ptr<Shared> shared_in,
          std::shared_ptr<storage::FileLock> lock_in, std::function<bool()> is_loss_told_in)
        : files(files_in),
          layout(std::move(layout_in)),
          worker(worker_in),
          retention(retention_in),
          nice(nice_in),
          shared(std::move(shared_in)),
          is_loss_told(std::move(is_loss_told_in)),
          directory_lock(std::move(lock_in)) {}

    void run() {
        while (true) {
            Finished next;
            {
                std::unique_lock lock(mutex);
                changed.wait(lock, [this] { return is_closed || !parts.empty(); });
                if (parts.empty() || is_left_behind) break;
                next = parts.front();
                parts.pop_front();
            }
            try {
                seal(next);
            } catch (const std::bad_alloc&) {
                tell({base::Code::kResourceExhausted, "out of memory"});
            } catch (const std::exception& error) {
                tell({base::Code::kInternal, error.what()});
            }
        }
        tell_at_end();
        directory_lock.reset();
        {
            const std::lock_guard lock(mutex);
            is_finished = true;
        }
        changed.notify_all();
    }

    void seal(const Finished& finished) {
        const Result<seal::SealedPart> sealed = seal::seal_part(files, layout, worker, finished.part);
        if (sealed) shared->parts_sealed.fetch_add(1, std::memory_order_relaxed);
        else tell(sealed.status());
        const Result<seal::RetentionReport> kept = seal::apply_retention(
            files, layout, worker, retention,
            {.first_live_part = finished.part + 1, .first_live_blob = finished.first_blob_kept});
        if (!kept) return tell(kept.status());
        {
            const std::lock_guard lock(mutex);
            if (is_left_behind) return;  // nobody asks any more
        }
        const Result<seal::WorkerFiles> left = seal::list_worker(files, layout, worker);
        if (!left) return tell(left.status());
        Kept now{0, finished.closed_bytes};
        for (const auto* kind : {&left->logs, &left->segments})
            for (const seal::WorkerFiles::File& file : *kind)
                if (file.number <= finished.part) now.bytes += file.bytes;
        for (const seal::WorkerFiles::File& blob : left->blobs)
            if (blob.number < finished.first_blob_kept) now.bytes += blob.bytes;
        const std::lock_guard lock(mutex);
        found = now;
    }

    void tell(const base::Status& status) noexcept {
        if (was_told) return;
        try {
            if (tell_if_gone(files, layout, worker, is_loss_told)) {
                was_told = true;
                return;
            }
            // Somebody removes files, and the directory may be next; or the disk is full, of which the
            // writer tells when it meets it. At the end it is known.
            if (status.code() == base::Code::kNotFound || status.code() == base::Code::kResourceExhausted) {
                if (open_question.is_ok()) open_question = status;
                return;
            }
            was_told = true;
            base::log(LogLevel::kWarning,
                      base::format("a finished part of the log stays as it is, nothing is lost: {}",
                                   status.message()));
        } catch (const std::exception&) {
            return;  // out of memory: silence is better than harm
        }
    }

    void tell_at_end() noexcept {
        if (was_told || open_question.is_ok()) return;
        try {
            if (tell_if_gone(files, layout, worker, is_loss_told)) return;
            if (open_question.code() == base::Code::kNotFound)
                base::log(
                    LogLevel::kWarning,
                    base::format("a finished part of the log was removed before it was sealed, and what "
                                 "it held is lost: {}",
                                 open_question.message()));
            else if (!shared->raw_is_off.load(std::memory_order_relaxed))
                base::log(LogLevel::kWarning,
                          base::format("a finished part of the log stays as it is, nothing is lost: {}",
                                       open_question.message()));
        } catch (const std::exception&) {
            return;  // out of memory: silence is better than harm
        }
    }

    storage::FileSystem& files;
    const storage::RunLayout layout;
    const model::WorkerId worker;
    const model::Retention retention;
    const int nice;
    const std::shared_ptr<Shared> shared;
    const std::function<bool()> is_loss_told;
    bool was_told = false;       // by the thread alone
    base::Status open_question;  // why a part could not be sealed, where the end tells more; the same
    std::shared_ptr<storage::FileLock> directory_lock;  // the thread's, where there is one

    std::mutex mutex;  // guards all below
    std::condition_variable changed;
    std::deque<Finished> parts;
    Kept found;
    std::jthread thread;
    bool is_closed = false;
    bool is_left_behind = false;
    bool is_finished = false;
};

SealThread::SealThread(storage::FileSystem& files, storage::RunLayout layout, model::WorkerId worker,
                       const model::Retention& retention, int nice, std::shared_ptr<Shared> shared,
                       std::shared_ptr<storage::FileLock> lock, std::function<bool()> is_loss_told)
    : state_(std::make_unique<std::shared_ptr<State>>(
          std::make_shared<State>(files, std::move(layout), worker, retention, nice, std::move(shared),
                                  std::move(lock), std::move(is_loss_told)))),
      generation_(base::fork_generation()) {}

SealThread::~SealThread() {
    if (base::fork_generation() == generation_) {
        finish(std::chrono::nanoseconds::zero());
        return;
    }
    // The parent's thread may hold the lock, and it is not here to let it go.
    static_cast<void>(state_.release());
}

void SealThread::add(std::uint32_t part, std::uint32_t first_blob_kept, std::uint64_t closed_bytes) noexcept {
    try {
        const std::lock_guard guard(state().mutex);
        if (state().is_closed) return;
        if (!state().thread.joinable()) {
            Result<std::jthread> thread =
                start_thread({.name = "traindbg-sealer", .nice = state().nice, .is_batch = true},
                             [state = *state_] { state->run(); });
            if (!thread) return base::log_once(LogLevel::kWarning, "write.sealer", thread.status().message());
            state().thread = std::move(thread).value();
        }
        state().parts.push_back({part, first_blob_kept, closed_bytes});
    } catch (const std::exception& error) {
        return base::log_once(LogLevel::kWarning, "write.sealer", error.what());
    }
    state().changed.notify_all();
}

SealThread::Kept SealThread::kept() const noexcept {
    const std::lock_guard lock(state().mutex);
    return state().found;
}

bool SealThread::finish(std::chrono::nanoseconds patience) noexcept {
    std::unique_lock lock(state().mutex);
    const bool was_closed = std::exchange(state().is_closed, true);
    if (!state().thread.joinable()) {
        if (was_closed) return state().is_finished;
        // There was nothing to seal.
        state().is_finished = true;
        const std::shared_ptr<storage::FileLock> let_go = std::move(state().directory_lock);
        lock.unlock();
        return true;
    }
    state().changed.notify_all();
    if (patience > std::chrono::nanoseconds::zero())
        state().changed.wait_for(lock, patience, [this] { return state().is_finished; });
    std::jthread thread = std::move(state().thread);
    const bool is_finished = state().is_finished;
    if (!is_finished) state().is_left_behind = true;
    lock.unlock();
    if (is_finished) thread.join();
    else thread.detach();
    return is_finished;
}

}  // namespace traindbg::write
