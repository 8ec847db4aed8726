#include "late_values.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/base/log.h"

namespace traindbg::bindings {

using base::Status;
using model::Mode;
using model::TensorId;
using model::What;
using reduce::DeviceReducer;
using tensor::TensorView;

namespace {
constexpr int kLooksBeforeSleep = 50;
constexpr std::chrono::microseconds kBetweenLooks{50};
}  // namespace

// The time until it ends is on the step's account.
class LateValues::Cost {
  public:
    explicit Cost(capture::CaptureSession& session) noexcept : session_(session) {}
    Cost(const Cost&) = delete;
    Cost& operator=(const Cost&) = delete;
    ~Cost() { session_.add_cost(static_cast<std::uint64_t>(base::monotonic_nanos() - begin_)); }

  private:
    capture::CaptureSession& session_;
    const std::int64_t begin_ = base::monotonic_nanos();
};

void LateValues::reduce_by(std::unique_ptr<DeviceReducer> reducer, bool takes_host) noexcept {
    reducer_ = std::move(reducer);
    takes_host_ = takes_host;
}

LateValues::Due LateValues::due(Mode mode, TensorId id, What apart) const noexcept {
    const What what = session_->wanted(mode, id);
    const auto others =
        static_cast<unsigned>(what) & ~static_cast<unsigned>(What::kStatistics | What::kUnits | apart);
    return {what != What::kNothing, model::has(what, What::kUnits), others == 0};
}

// So that nothing fails once a device is at it.
void LateValues::make_room(std::size_t more) {
    if (late_.capacity() - late_.size() < more)
        late_.reserve(std::max(late_.size() + more, 2 * late_.size()));
}

void LateValues::begin(Mode mode, std::span<const Read> tensors, std::vector<bool>& begun) noexcept {
    if (reducer_ == nullptr) return;
    try {
        begun.assign(tensors.size(), false);
        make_room(tensors.size());
        std::vector<DeviceReducer::Wanted> wanted;
        std::vector<std::size_t> which;
        std::vector<Ticket> tickets;
        std::vector<bool> is_done(tensors.size(), false);
        for (std::size_t first = 0; first < tensors.size(); ++first) {
            if (is_done[first]) continue;
            // Those of one stream of a device at a time.
            wanted.clear();
            which.clear();
            for (std::size_t i = first; i < tensors.size(); ++i) {
                if (is_done[i] || tensors[i].place != tensors[first].place) continue;
                is_done[i] = true;
                which.push_back(i);
                wanted.push_back({tensors[i].view, tensors[i].has_units ? session_->activation(tensors[i].id)
                                                                        : model::ActivationKind::kNone});
            }
            tickets.assign(wanted.size(), kNone);
            {
                const Cost cost(*session_);
                reducer_->begin(tensors[first].place, wanted, tickets);
            }
            for (std::size_t i = 0; i < which.size(); ++i) {
                if (tickets[i] == kNone) continue;
                begun[which[i]] = true;
                late_.push_back({Late::Kind::kStatistics,
                                 session_->begin_late(mode, tensors[which[i]].id),
                                 {},
                                 tickets[i]});
            }
        }
    } catch (...) {  // out of memory: these are not recorded
        lost_.fetch_add(1, std::memory_order_relaxed);
    }
    say_failure();
    publish();
}

bool LateValues::begin_update(Mode mode, const Read& update, TensorId ratio,
                              const TensorView& before) noexcept {
    if (reducer_ == nullptr) return false;
    Ticket ticket = kNone;
    try {
        make_room(1);
        const Cost cost(*session_);
        ticket = reducer_->begin_difference(update.place, before, update.view);
    } catch (...) {  // out of memory
    }
    say_failure();
    if (ticket == kNone) return false;
    late_.push_back({Late::Kind::kUpdate, session_->begin_late(mode, update.id),
                     session_->begin_late(mode, ratio), ticket});
    publish();
    return true;
}

LateValues::Ticket LateValues::begin_value(const TensorView& view, const Place& place) noexcept {
    Ticket ticket = kNone;
    if (reducer_ == nullptr || view.element_count() != 1) return ticket;
    const DeviceReducer::Wanted wanted{view, model::ActivationKind::kNone};
    {
        const Cost cost(*session_);
        reducer_->begin(place, {&wanted, 1}, {&ticket, 1});
    }
    say_failure();
    return ticket;
}

void LateValues::observe_value(Mode mode, TensorId id, Ticket ticket) noexcept {
    try {
        make_room(1);
        late_.push_back({Late::Kind::kScalar, session_->begin_late(mode, id), {}, ticket});
    } catch (...) {  // out of memory
        lost_.fetch_add(1, std::memory_order_relaxed);
    }
    publish();
}

void LateValues::drop_value(Ticket ticket) noexcept {
    try {
        late_.push_back({Late::Kind::kDropped, {}, {}, ticket});
    } catch (...) {  // out of memory: its place is not used again
    }
    publish();
}

double LateValues::take_value(Ticket ticket) noexcept {
    if (reducer_ == nullptr) return std::nan("");
    const Cost cost(*session_);
    if (!reducer_->wait(kPatience)) return std::nan("");
    const double value = reducer_->value(ticket);
    reducer_->release(ticket);
    return value;
}

capture::StepDirective LateValues::end_step() noexcept {
    while (!held_.empty()) {
        const std::optional<Status> arrived =
            held_.front().late.empty() ? std::optional(Status::ok()) : reducer_->poll(held_.front().mark);
        if (!arrived) break;
        complete(*arrived);
    }
    const bool is_awaited = !late_.empty();
    const DeviceReducer::Mark mark = is_awaited ? reducer_->mark() : 0;
    // What is there already may have a say in what the next step needs.
    if (held_.empty()) {
        const std::optional<Status> arrived = is_awaited ? reducer_->poll(mark) : std::optional(Status::ok());
        if (arrived) {
            take_all(late_, *arrived);
            late_.clear();
            publish();
            return session_->end_step();
        }
    }
    capture::StepDirective directive;
    const model::StepIndex step = session_->step(Mode::kTrain);
    try {
        held_.push_back({step, mark, {}});
        held_.back().late.swap(late_);
        directive = session_->end_step_held_back(is_awaited);
        if (!directive.is_held_back) held_.pop_back();  // nothing was taken of it, or the session is closed
    } catch (...) {  // out of memory: what is late is lost with its step, its places are not used again
        lost_.fetch_add(late_.size(), std::memory_order_relaxed);
        late_.clear();
        directive = session_->end_step();
    }
    publish();
    return directive;
}

void LateValues::complete_oldest(std::chrono::nanoseconds patience) noexcept {
    if (held_.empty()) return;
    const Cost cost(*session_);
    const std::int64_t deadline = base::monotonic_nanos() + patience.count();
    const Held& held = held_.front();
    std::optional<Status> arrived;
    if (held.late.empty()) arrived = Status::ok();
    for (int looks = 0; !arrived; ++looks) {
        arrived = reducer_->poll(held.mark);
        if (arrived || base::monotonic_nanos() >= deadline) break;
        if (looks > kLooksBeforeSleep) std::this_thread::sleep_for(kBetweenLooks);
    }
    try {
        if (!arrived) arrived = Status(base::Code::kUnavailable, "the device did not come so far in time");
        complete(*arrived);
    } catch (...) {  // out of memory
    }
}

void LateValues::complete_all(std::chrono::nanoseconds patience) noexcept {
    const std::int64_t deadline = base::monotonic_nanos() + patience.count();
    const auto left = [&] {
        return std::chrono::nanoseconds(std::max<std::int64_t>(deadline - base::monotonic_nanos(), 0));
    };
    while (!held_.empty()) complete_oldest(left());
    if (!late_.empty()) {
        const Cost cost(*session_);
        take_all(late_, reducer_->wait(left()));
        late_.clear();
    }
    publish();
}

void LateValues::complete(const Status& arrived) noexcept {
    take_all(held_.front().late, arrived);
    session_->release_step(held_.front().step);
    held_.pop_front();
    publish();
}

void LateValues::take_all(const std::vector<Late>& late, const Status& arrived) noexcept {
    if (arrived.is_ok()) {
        for (const Late& each : late) {
            take(each);
            reducer_->release(each.ticket);
        }
        return;
    }
    // Kernels may write to these places still: they are not used again.
    lost_.fetch_add(late.size(), std::memory_order_relaxed);
    try {
        base::log_once(base::LogLevel::kWarning, "capture.device",
                       "what was to be recorded of tensors on a device is lost: " + arrived.message());
    } catch (...) {  // out of memory
    }
}

void LateValues::take(const Late& late) noexcept {
    switch (late.kind) {
        case Late::Kind::kDropped: return;
        case Late::Kind::kScalar: return session_->observe_late(late.sample, reducer_->value(late.ticket));
        case Late::Kind::kStatistics:
            return session_->observe_late(late.sample, reducer_->statistics(late.ticket),
                                          reducer_->units(late.ticket));
        case Late::Kind::kUpdate: {
            const model::Statistics difference = reducer_->statistics(late.ticket);
            session_->observe_late(late.sample, difference, {});
            const double relative = difference.l2 / reducer_->before_l2(late.ticket);
            if (difference.count > 0 && difference.not_finite() == 0 && std::isfinite(relative))
                session_->observe_late(late.ratio, relative);
        }
    }
}

void LateValues::say_failure() noexcept {
    if (has_said_failure_ || reducer_->failure().is_ok()) return;
    has_said_failure_ = true;
    try {
        base::log_once(
            base::LogLevel::kWarning, "capture.device_kernels",
            "statistics on a device are taken by the framework's operations from now on, which is slow: " +
                reducer_->failure().message());
    } catch (...) {  // out of memory
    }
}

void LateValues::publish() noexcept {
    steps_held_.store(held_.size(), std::memory_order_release);
    outstanding_.store(held_.size() + late_.size(), std::memory_order_release);
}

}  // namespace traindbg::bindings
