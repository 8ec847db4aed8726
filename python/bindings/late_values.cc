#include "late_values.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "traindbg/base/log.h"

namespace nb = nanobind;

namespace traindbg::bindings {

using model::Mode;
using model::TensorId;
using model::What;
using reduce::DeviceReducer;
using tensor::TensorView;

void LateValues::reduce_by(std::unique_ptr<DeviceReducer> reducer, bool on_host) noexcept {
    reducer_ = std::move(reducer);
    on_host_ = on_host;
}

bool LateValues::read(nb::handle tensor, TensorReader& reader, TensorView& view,
                      DeviceReducer::Place& place) const noexcept {
    const Readable readable = reader.read(tensor.ptr(), view);
    if (on_host_) return readable == Readable::kYes;
    if (readable != Readable::kOnDevice || !reader.place()) return false;
    place = *reader.place();
    return true;
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

bool LateValues::observe(Mode mode, TensorId id, nb::handle tensor, What apart) noexcept {
    if (reducer_ == nullptr) return false;
    try {
        const Due now = due(mode, id, apart);
        if (!now.fits) return false;
        if (!now.is_any) return true;
        TensorReader reader;
        DeviceReducer::Wanted wanted;
        DeviceReducer::Place place;
        if (!read(tensor, reader, wanted.view, place)) return false;
        if (now.has_units) wanted.units_of = session_->activation(id);
        make_room(1);
        Ticket ticket = kNone;
        reducer_->begin(place, {&wanted, 1}, {&ticket, 1});
        if (ticket == kNone) return false;
        late_.push_back({Late::Kind::kStatistics, session_->begin_late(mode, id), {}, ticket});
        return true;
    } catch (...) {  // out of memory
        return false;
    }
}

std::vector<std::size_t> LateValues::observe_batch(Mode mode, const nb::list& ids, const nb::list& tensors,
                                                   const std::vector<std::size_t>& positions) noexcept {
    // Those of one stream of a device.
    struct Group {
        DeviceReducer::Place place;
        std::vector<DeviceReducer::Wanted> wanted;
        std::vector<std::size_t> positions;
        std::vector<TensorId> ids;
    };
    std::vector<std::size_t> left;
    try {
        if (reducer_ == nullptr) return positions;
        left.reserve(positions.size());
        TensorReader reader;
        std::vector<Group> groups;
        const std::size_t size = std::min(nb::len(ids), nb::len(tensors));
        for (const std::size_t position : positions) {
            if (position >= size) continue;
            const auto index = static_cast<Py_ssize_t>(position);
            PyObject* const object = PyList_GET_ITEM(tensors.ptr(), index);
            if (object == Py_None) continue;
            const auto id = static_cast<TensorId>(PyLong_AsUnsignedLong(PyList_GET_ITEM(ids.ptr(), index)));
            if (PyErr_Occurred() != nullptr) {
                PyErr_Clear();
                ++lost_;
                continue;
            }
            const Due now = due(mode, id);
            if (now.fits && !now.is_any) continue;
            DeviceReducer::Wanted wanted;
            DeviceReducer::Place place;
            if (!now.fits || !read(object, reader, wanted.view, place)) {
                left.push_back(position);
                continue;
            }
            if (now.has_units) wanted.units_of = session_->activation(id);
            auto group = std::ranges::find(groups, place, &Group::place);
            if (group == groups.end()) group = groups.insert(groups.end(), Group{place, {}, {}, {}});
            group->wanted.push_back(wanted);
            group->positions.push_back(position);
            group->ids.push_back(id);
        }
        for (const Group& group : groups) {
            std::vector<Ticket> tickets(group.wanted.size());
            make_room(tickets.size());
            reducer_->begin(group.place, group.wanted, tickets);
            for (std::size_t i = 0; i < tickets.size(); ++i) {
                if (tickets[i] == kNone) left.push_back(group.positions[i]);
                else
                    late_.push_back(
                        {Late::Kind::kStatistics, session_->begin_late(mode, group.ids[i]), {}, tickets[i]});
            }
        }
    } catch (...) {  // out of memory: these are not recorded
        ++lost_;
    }
    return left;
}

bool LateValues::observe_update(Mode mode, TensorId update, TensorId ratio, nb::handle before,
                                nb::handle after) noexcept {
    if (reducer_ == nullptr) return false;
    try {
        const Due of_update = due(mode, update);
        const Due of_ratio = due(mode, ratio);
        if (!of_update.fits || !of_ratio.fits) return false;
        if (!of_update.is_any && !of_ratio.is_any) return true;
        TensorReader reader;
        TensorView was;
        TensorView now;
        DeviceReducer::Place place;
        if (!read(before, reader, was, place) || !read(after, reader, now, place)) return false;
        make_room(1);
        const Ticket ticket = reducer_->begin_difference(place, was, now);
        if (ticket == kNone) return false;
        late_.push_back({Late::Kind::kUpdate, session_->begin_late(mode, update),
                         session_->begin_late(mode, ratio), ticket});
        return true;
    } catch (...) {  // out of memory
        return false;
    }
}

LateValues::Ticket LateValues::begin_value(nb::handle tensor) noexcept {
    Ticket ticket = kNone;
    TensorReader reader;
    DeviceReducer::Wanted wanted;
    DeviceReducer::Place place;
    if (reducer_ == nullptr || !read(tensor, reader, wanted.view, place) || wanted.view.element_count() != 1)
        return ticket;
    reducer_->begin(place, {&wanted, 1}, {&ticket, 1});
    return ticket;
}

void LateValues::observe_value(Mode mode, TensorId id, Ticket ticket) noexcept {
    try {
        make_room(1);
        late_.push_back({Late::Kind::kScalar, session_->begin_late(mode, id), {}, ticket});
    } catch (...) {  // out of memory
        ++lost_;
    }
}

double LateValues::take_value(Ticket ticket) noexcept {
    if (reducer_ == nullptr) return std::nan("");
    const double value = reducer_->wait() ? reducer_->value(ticket) : std::nan("");
    reducer_->release(ticket);
    return value;
}

capture::StepDirective LateValues::end_step() noexcept {
    while (!held_.empty() && reducer_->is_over(held_.front().mark)) complete_oldest();
    const bool is_awaited = !late_.empty();
    const DeviceReducer::Mark mark = is_awaited ? reducer_->mark() : 0;
    // What is there already may have a say in what the next step needs.
    if (held_.empty() && (!is_awaited || reducer_->is_over(mark))) {
        if (is_awaited) take_all(std::exchange(late_, {}), reducer_->wait(mark));
        return session_->end_step();
    }
    try {
        held_.push_back({mark, {}});
        held_.back().late.swap(late_);
        const capture::StepDirective directive = session_->end_step_held_back(is_awaited);
        if (!directive.is_held_back) held_.pop_back();
        return directive;
    } catch (...) {  // out of memory: what is late is lost with its step
        return session_->end_step();
    }
}

void LateValues::complete_oldest() noexcept {
    if (held_.empty()) return;
    const Held& held = held_.front();
    if (!held.late.empty()) take_all(held.late, reducer_->wait(held.mark));
    session_->release_step();
    held_.pop_front();
}

void LateValues::complete_all() noexcept {
    while (!held_.empty()) complete_oldest();
    if (late_.empty()) return;
    take_all(late_, reducer_->wait());
    late_.clear();
}

void LateValues::take_all(const std::vector<Late>& late, const base::Status& arrived) noexcept {
    for (const Late& each : late) {
        if (arrived.is_ok()) take(each);
        reducer_->release(each.ticket);
    }
    if (arrived.is_ok()) return;
    lost_ += late.size();
    base::log_once(base::LogLevel::kWarning, "capture.device",
                   "what was to be recorded of tensors on a device is lost: " + arrived.message());
}

void LateValues::take(const Late& late) noexcept {
    switch (late.kind) {
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

}  // namespace traindbg::bindings
