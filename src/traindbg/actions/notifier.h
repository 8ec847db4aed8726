// Tells findings to the world outside without making anybody wait.
//
// Each channel has a thread and a queue of its own, so that a server that does not answer holds up neither
// the judging nor another channel. What fails for a while is tried again, with growing pauses; what came of
// each finding is written into the run's journal (action_journal.h).
//
// Thread-safety: one thread at a time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "traindbg/actions/action_journal.h"
#include "traindbg/actions/channel.h"
#include "traindbg/actions/metrics.h"
#include "traindbg/actions/notification.h"

namespace traindbg::actions {

struct NotifierOptions {
    std::string run_directory;  // where the journal is
    std::string run_identity;   // see notification_id
    std::string run;            // its name
    std::string host;
    bool dry_run = false;  // nothing is sent; the journal says what would have been
    PastActions past{};    // who was told of what before, and is not told again
    // At most one notification of a channel in so long; the findings between two are told with the next.
    std::chrono::nanoseconds cooldown{0};
    // One attempt, and the pause after the first that failed; each further pause is twice as long.
    std::chrono::nanoseconds attempt = std::chrono::seconds(30);
    std::chrono::nanoseconds pause = std::chrono::seconds(1);
    int attempts = 6;
};

// Somebody to be told, of all findings or of some rules' alone.
struct Receiver {
    std::unique_ptr<Channel> channel;
    std::set<std::string> rules = {};  // empty: all
};

class Notifier {
  public:
    Notifier(NotifierOptions options, std::vector<Receiver> receivers);
    Notifier(const Notifier&) = delete;
    Notifier& operator=(const Notifier&) = delete;
    ~Notifier();  // gives up what has not been told

    // Returns at once. A finding that was told before is not told again.
    void tell(const model::Finding& finding);
    // Nothing more comes: what waits is told now, whatever the cooldown says. Until all is told, `patience`
    // is over or `interrupted` says to leave; what has not been told then is given up, and counted as a
    // trouble.
    void finish(std::chrono::nanoseconds patience, const std::function<bool()>& interrupted);
    // What could not be told, since the last call.
    [[nodiscard]] std::vector<std::string> take_troubles();
    [[nodiscard]] bool is_idle() const;
    // What came of all so far, in the order of the receivers.
    [[nodiscard]] std::vector<ChannelCounts> counts() const;

  private:
    class Line;
    NotifierOptions options_;
    std::vector<std::unique_ptr<Line>> lines_;
    std::vector<std::string> told_;  // ids
};

}  // namespace traindbg::actions
