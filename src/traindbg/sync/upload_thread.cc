#include "traindbg/sync/upload_thread.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <exception>

#include "traindbg/base/clock.h"

namespace traindbg::sync {

using base::Code;
using base::Status;
using storage::Patience;

UploadThread::UploadThread(UploadOptions options, storage::FileSystem& files, storage::ObjectStore& store,
                           std::chrono::nanoseconds interval, bool is_once)
    : interval_(interval), uploader_(std::move(options), files, store), is_last_(is_once) {
    // The new thread inherits the mask: signals stay with the thread that deals with them.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { work(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

UploadThread::~UploadThread() {
    cancel();
    if (thread_.joinable()) thread_.join();
}

void UploadThread::work() {
    pthread_setname_np(pthread_self(), "traindbg-upload");
    // On Linux this is the thread's own: the training goes first.
    static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 10));
    std::unique_lock lock(mutex_);
    int fruitless = 0;  // last rounds in a row that failed and put nothing
    while (!is_cancelled_) {
        const bool is_last = is_last_;
        const Patience patience{is_last ? deadline_nanos_ : INT64_MAX, &is_cancelled_};
        lock.unlock();
        const std::uint64_t put_before = uploader_.counts().objects_put;
        const Status status = [&]() -> Status {
            try {
                return uploader_.round(is_last, patience);
            } catch (const std::exception& error) {  // no memory: what is beside it goes on
                return {Code::kUnavailable, error.what()};
            }
        }();
        has_end_ = uploader_.has_end();
        lock.lock();
        if (is_cancelled_) break;
        if (status.is_ok()) {
            trouble_.reset();
            is_told_ = false;
        } else if (!trouble_) {
            trouble_ = status;
        }
        if (is_last) {
            // What passes is tried again while there is time; a refusal is not.
            const bool passes = status.code() == Code::kUnavailable || status.code() == Code::kDataLoss ||
                                status.code() == Code::kAlreadyExists;
            trouble_ = status.is_ok() ? std::nullopt : std::optional(status);
            fruitless = uploader_.counts().objects_put == put_before ? fruitless + 1 : 0;
            constexpr int kMostFruitless = 3;
            if (status.is_ok() || !passes || base::monotonic_nanos() >= deadline_nanos_ ||
                fruitless == kMostFruitless)
                break;
            changed_.wait_for(lock, std::chrono::milliseconds(200), [this] { return is_cancelled_.load(); });
            continue;
        }
        changed_.wait_for(lock, interval_, [this] { return is_last_ || is_cancelled_; });
    }
    is_ended_ = true;
    changed_.notify_all();
}

void UploadThread::cancel() {
    {
        const std::lock_guard lock(mutex_);
        is_cancelled_ = true;
    }
    changed_.notify_all();
}

std::optional<Status> UploadThread::ended() {
    const std::lock_guard lock(mutex_);
    if (!is_ended_) return std::nullopt;
    return trouble_.value_or(Status::ok());
}

std::optional<Status> UploadThread::news() {
    const std::lock_guard lock(mutex_);
    if (!trouble_ || is_told_) return std::nullopt;
    is_told_ = true;
    return trouble_;
}

Status UploadThread::finish(std::chrono::nanoseconds patience) {
    const std::int64_t deadline = base::monotonic_nanos() + patience.count();
    std::unique_lock lock(mutex_);
    is_last_ = true;
    deadline_nanos_ = deadline;
    changed_.notify_all();
    const bool ended = changed_.wait_for(lock, patience, [this] { return is_ended_; });
    if (!ended) {
        is_cancelled_ = true;
        changed_.notify_all();
        return trouble_.value_or(Status(Code::kUnavailable, "there was not enough time"));
    }
    return trouble_.value_or(Status::ok());
}

}  // namespace traindbg::sync
