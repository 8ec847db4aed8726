#include "traindbg/actions/notifier.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "traindbg/actions/action_journal.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"

namespace traindbg::actions {
namespace {

using base::Code;
using base::Status;

// Findings are one per fault: a run that has so many waiting has another problem.
constexpr std::size_t kMostWaiting = 1000;
constexpr auto kLongestPause = std::chrono::seconds(60);
constexpr auto kBetweenDrains = std::chrono::milliseconds(20);

}  // namespace

// One channel, its queue and its thread.
class Notifier::Line {
  public:
    // `number`: among those whose lines in the journal look the same, from 0.
    Line(const NotifierOptions& options, Receiver receiver, std::size_t number)
        : options_(options),
          channel_(std::move(receiver.channel)),
          rules_(std::move(receiver.rules)),
          number_(number) {
        counts_.channel = channel_->name();
    }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;
    ~Line() {
        given_up_ = true;
        thread_.request_stop();
    }

    void add(Notification notification) {
        if (!rules_.empty() && !rules_.contains(notification.finding.rule)) return;
        if (options_.past.was_told(entry({}), FindingKey::of(notification.finding), options_.dry_run)) return;
        const std::lock_guard lock(mutex_);
        if (waiting_.size() == kMostWaiting) {
            ++counts_.failed;
            troubles_.push_back(base::format("{}: too many findings wait; one of {} was left out",
                                             channel_->intention(), notification.finding.rule));
            return;
        }
        waiting_.push_back(std::move(notification));
        changed_.notify_all();
        if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
    }

    void hurry() {
        const std::lock_guard lock(mutex_);
        hurries_ = true;
        changed_.notify_all();
    }

    // What waits, and what is under way, will not be told.
    void give_up() {
        given_up_ = true;
        const std::lock_guard lock(mutex_);
        for (const Notification& left : waiting_) fail(left, "there was no time left");
        waiting_.clear();
        changed_.notify_all();
    }

    [[nodiscard]] bool is_idle() const {
        const std::lock_guard lock(mutex_);
        return waiting_.empty() && !is_busy_;
    }

    [[nodiscard]] ChannelCounts counts() const {
        const std::lock_guard lock(mutex_);
        ChannelCounts counts = counts_;
        counts.waiting = waiting_.size() + (is_busy_ ? 1 : 0);
        return counts;
    }

    void take_troubles(std::vector<std::string>& out) {
        const std::lock_guard lock(mutex_);
        std::move(troubles_.begin(), troubles_.end(), std::back_inserter(out));
        troubles_.clear();
    }

  private:
    void loop(const std::stop_token& stop) {
        std::int64_t told_nanos = 0;
        while (!stop.stop_requested()) {
            Notification next;
            std::vector<FindingKey> withheld;
            {
                std::unique_lock lock(mutex_);
                changed_.wait(lock, stop, [this] { return !waiting_.empty(); });
                if (stop.stop_requested()) return;
                const std::int64_t left = told_nanos + options_.cooldown.count() - base::monotonic_nanos();
                if (options_.cooldown.count() > 0 && told_nanos != 0 && left > 0 && !hurries_) {
                    changed_.wait_for(lock, stop, std::chrono::nanoseconds(left),
                                      [this] { return hurries_; });
                    continue;
                }
                if (waiting_.empty()) continue;
                if (options_.cooldown.count() > 0) {
                    next = most_severe(withheld);
                    waiting_.clear();
                } else {
                    next = std::move(waiting_.front());
                    waiting_.pop_front();
                }
                is_busy_ = true;
            }
            tell(next, withheld, stop);
            told_nanos = base::monotonic_nanos();
            const std::lock_guard lock(mutex_);
            is_busy_ = false;
        }
    }

    // Stands for all that wait.
    [[nodiscard]] Notification most_severe(std::vector<FindingKey>& withheld) const {
        const auto most = std::max_element(waiting_.begin(), waiting_.end(),
                                           [](const Notification& a, const Notification& b) {
                                               return a.finding.severity < b.finding.severity;
                                           });
        for (auto other = waiting_.begin(); other != waiting_.end(); ++other)
            if (other != most) withheld.push_back(FindingKey::of(other->finding));
        Notification chosen = *most;
        chosen.withheld = withheld.size();
        return chosen;
    }

    // As it is written down.
    [[nodiscard]] JournalEntry entry(std::string result) const {
        return {channel_->name(), channel_->intention(), std::move(result), {}, number_};
    }

    void tell(const Notification& notification, const std::vector<FindingKey>& withheld,
              const std::stop_token& stop) {
        Status status;
        if (!options_.dry_run) {
            std::chrono::nanoseconds pause = options_.pause;
            for (int attempt = 1;; ++attempt) {
                status = channel_->deliver(notification,
                                           {base::monotonic_nanos() + options_.attempt.count(), &given_up_});
                if (status.code() != Code::kUnavailable || attempt >= options_.attempts || given_up_) break;
                std::unique_lock lock(mutex_);
                changed_.wait_for(lock, stop, pause, [this] { return given_up_.load(); });
                if (given_up_) break;
                ++counts_.retries;
                pause = std::min<std::chrono::nanoseconds>(2 * pause, kLongestPause);
            }
        }
        const std::string result = options_.dry_run ? std::string(kDryRunResult)
                                   : status.is_ok() ? "done"
                                                    : status.message();
        JournalEntry line = entry(result);
        line.stands_for = withheld;
        const Status kept = write_down(options_.run_directory, line, notification.finding);
        const std::lock_guard lock(mutex_);
        ++(options_.dry_run ? counts_.dry_run : status.is_ok() ? counts_.done : counts_.failed);
        counts_.withheld += notification.withheld;
        if (!status.is_ok())
            troubles_.push_back(base::format("{} was not told: {}", notification.finding.rule, result));
        if (!kept.is_ok() && !std::exchange(journal_failed_, true)) troubles_.push_back(kept.message());
    }

    // `mutex_` is held.
    void fail(const Notification& notification, const std::string& why) {
        ++counts_.failed;
        troubles_.push_back(
            base::format("{} was not told: {}: {}", notification.finding.rule, channel_->intention(), why));
        static_cast<void>(write_down(options_.run_directory, entry(why), notification.finding));
    }

    const NotifierOptions& options_;
    std::unique_ptr<Channel> channel_;
    const std::set<std::string> rules_;
    const std::size_t number_;
    std::atomic<bool> given_up_{false};
    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    std::deque<Notification> waiting_;
    std::vector<std::string> troubles_;
    ChannelCounts counts_;
    bool is_busy_ = false;
    bool hurries_ = false;
    bool journal_failed_ = false;
    std::jthread thread_;  // last: it uses all of the above
};

Notifier::Notifier(NotifierOptions options, std::vector<Receiver> receivers) : options_(std::move(options)) {
    std::map<std::pair<std::string, std::string>, std::size_t> alike;
    for (Receiver& receiver : receivers) {
        const std::size_t number =
            alike[{std::string(receiver.channel->name()), receiver.channel->intention()}]++;
        lines_.push_back(std::make_unique<Line>(options_, std::move(receiver), number));
    }
}

Notifier::~Notifier() = default;

void Notifier::tell(const model::Finding& finding) {
    Notification notification;
    notification.id = notification_id(options_.run_identity, finding);
    if (std::find(told_.begin(), told_.end(), notification.id) != told_.end()) return;
    told_.push_back(notification.id);
    notification.run = options_.run;
    notification.directory = options_.run_directory;
    notification.host = options_.host;
    notification.finding = finding;
    for (const std::unique_ptr<Line>& line : lines_) line->add(notification);
}

void Notifier::finish(std::chrono::nanoseconds patience, const std::function<bool()>& interrupted) {
    for (const std::unique_ptr<Line>& line : lines_) line->hurry();
    const std::int64_t deadline = base::monotonic_nanos() + patience.count();
    while (!is_idle() && base::monotonic_nanos() < deadline && !interrupted())
        std::this_thread::sleep_for(kBetweenDrains);
    if (is_idle()) return;
    for (const std::unique_ptr<Line>& line : lines_) line->give_up();
    // Who is in the middle of a request leaves it soon.
    const std::int64_t soon =
        base::monotonic_nanos() + std::chrono::nanoseconds(std::chrono::seconds(2)).count();
    while (!is_idle() && base::monotonic_nanos() < soon) std::this_thread::sleep_for(kBetweenDrains);
}

std::vector<std::string> Notifier::take_troubles() {
    std::vector<std::string> troubles;
    for (const std::unique_ptr<Line>& line : lines_) line->take_troubles(troubles);
    return troubles;
}

std::vector<ChannelCounts> Notifier::counts() const {
    std::vector<ChannelCounts> counts;
    for (const std::unique_ptr<Line>& line : lines_) counts.push_back(line->counts());
    return counts;
}

bool Notifier::is_idle() const {
    return std::all_of(lines_.begin(), lines_.end(), [](const auto& line) { return line->is_idle(); });
}

}  // namespace traindbg::actions
