#include "session.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "bindings.h"
#include "errors.h"
#include "traindbg/model/json.h"
#include "traindbg/reduce/reducer.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace traindbg::bindings {
namespace {

using capture::CaptureSession;
using capture::RoleMask;
using model::Mode;
using tensor::TensorView;

// A batch of at least this many bytes is worth giving up the GIL for.
constexpr std::uint64_t kBigBatchBytes = 1U << 20;

template <typename Word, typename Parse>
Word word_or_raise(const std::string& text, const char* what, Parse parse) {
    if (const auto value = parse(text)) return *value;
    raise({base::Code::kInvalidArgument, text + ": not a " + what});
}

Mode mode_of(int number) noexcept {
    return number > 0 && number < model::kModeCount ? static_cast<Mode>(number) : Mode::kTrain;
}

std::uint64_t bytes_of(const TensorView& view) noexcept {
    return static_cast<std::uint64_t>(view.element_count()) * tensor::byte_size(view.dtype);
}

}  // namespace

Session::Session(const std::string& run_directory, const std::string& config_json, model::WorkerId worker) {
    capture::SessionOptions options;
    options.run_directory = run_directory;
    options.config = value_or_raise(model::capture_config_from_json(config_json));
    options.worker = worker;
    session_ = value_or_raise(CaptureSession::open(std::move(options)));
    late_.serve(*session_);
}

model::TensorId Session::register_tensor(std::string name, const std::string& role,
                                         const std::string& activation, std::string module,
                                         std::string module_type, std::int32_t layer,
                                         const std::string& dtype, std::vector<std::int64_t> shape,
                                         std::optional<std::vector<std::int64_t>> whole_shape,
                                         std::vector<std::int64_t> offset, std::string placement,
                                         bool always) {
    model::TensorInfo info;
    info.name = std::move(name);
    info.role = word_or_raise<model::Role>(role, "role", model::parse_role);
    info.activation =
        word_or_raise<model::ActivationKind>(activation, "kind of activation", model::parse_activation_kind);
    info.module = std::move(module);
    info.module_type = std::move(module_type);
    info.layer = layer;
    info.dtype = tensor::parse_dtype(dtype).value_or(tensor::DType::kUnknown);
    info.shape = std::move(shape);
    if (whole_shape)
        info.shard = model::ShardInfo{.whole_shape = std::move(*whole_shape),
                                      .offset = std::move(offset),
                                      .placement = std::move(placement)};
    const Inside inside(*this);
    if (!inside) return capture::kNoTensor;
    const model::TensorId id = session_->register_tensor(std::move(info));
    if (always) session_->keep_always(id);
    return id;
}

void Session::describe(const std::string& json) {
    model::WorkerMeta meta = value_or_raise(model::worker_meta_from_json(json));
    if (const Inside inside(*this); inside) session_->describe(std::move(meta));
}
void Session::event(const std::string& kind, const std::string& json) {
    if (const Inside inside(*this); inside) session_->event(kind, json);
}

void Session::ask_for(const std::string& config_json) {
    const model::CaptureConfig config = value_or_raise(model::capture_config_from_json(config_json));
    ignores_losses_ = false;
    if (const Inside inside(*this); inside) raise_if_error(session_->ask_for(config));
}

RoleMask Session::due(int mode) noexcept {
    const Inside inside(*this);
    return inside ? session_->due(mode_of(mode)) : 0;
}
RoleMask Session::asked(int mode) noexcept {
    const Inside inside(*this);
    return inside ? session_->asked(mode_of(mode)) : 0;
}
RoleMask Session::eager(int mode) noexcept {
    const Inside inside(*this);
    return inside ? session_->eager(mode_of(mode)) : 0;
}
bool Session::note_block(const std::string& name) noexcept {
    const Inside inside(*this);
    return inside && session_->note_block(name);
}
void Session::forward_passed() noexcept {
    if (const Inside inside(*this); inside) session_->forward_passed();
}
std::uint64_t Session::step(int mode) noexcept {
    const Inside inside(*this);
    return inside ? session_->step(mode_of(mode)) : 0;
}

void Session::cannot_take(int mode, model::TensorId id, const std::string& why) noexcept {
    {
        const Inside inside(*this);
        if (!inside) return;
        if (session_->wanted(mode_of(mode), id) != model::What::kNothing)
            return session_->cannot_take(mode_of(mode), id, why);
    }
    ++unreadable_;
}

void Session::cannot_read(int mode, model::TensorId id, PyObject* object) noexcept {
    try {
        std::string why;  // none: it was told
        if (wanted(mode, id) != 0) {
            if (unreadable_named_.size() <= id) unreadable_named_.resize(std::size_t{id} + 1);
            if (!unreadable_named_[id]) why = why_unreadable(object);
            unreadable_named_[id] = true;
        }
        cannot_take(mode, id, why);
    } catch (...) {  // out of memory
        ++unreadable_;
    }
}

bool Session::observe(int mode, model::TensorId id, nb::handle tensor) noexcept {
    TensorReader reader;
    TensorView view;
    const Readable readable = reader.read(tensor.ptr(), view);
    if (readable == Readable::kOnDevice) return false;
    if (readable == Readable::kNo) {
        cannot_read(mode, id, tensor.ptr());
        return true;
    }
    if (bytes_of(view) >= kBigBatchBytes) {
        const nb::gil_scoped_release others_may_run;
        if (const Inside inside(*this); inside) session_->observe(mode_of(mode), id, view);
    } else if (const Inside inside(*this); inside) {
        session_->observe(mode_of(mode), id, view);
    }
    return true;
}

// The positions of tensors that live on a device. None stands for one that is not there, such as a gradient.
std::vector<std::size_t> Session::observe_batch(int mode, const nb::list& ids,
                                                const nb::list& tensors) noexcept {
    std::vector<std::size_t> on_device;
    try {
        TensorReader reader;
        std::vector<nb::object> held;  // the list may change while other threads run
        std::vector<std::pair<model::TensorId, nb::object>> unreadable;
        std::uint64_t bytes = 0;
        views_.clear();
        view_ids_.clear();
        const std::size_t size = std::min(nb::len(ids), nb::len(tensors));
        held.reserve(size);
        for (std::size_t i = 0; i < size; ++i) {
            PyObject* object = PyList_GET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(i));
            if (object == Py_None) continue;
            const unsigned long id =
                PyLong_AsUnsignedLong(PyList_GET_ITEM(ids.ptr(), static_cast<Py_ssize_t>(i)));
            if (PyErr_Occurred() != nullptr) {
                PyErr_Clear();
                ++unreadable_;
                continue;
            }
            TensorView view;
            const Readable readable = reader.read(object, view);
            if (readable == Readable::kOnDevice) on_device.push_back(i);
            if (readable == Readable::kNo)
                unreadable.emplace_back(static_cast<model::TensorId>(id), nb::borrow(object));
            if (readable != Readable::kYes) continue;
            held.push_back(nb::borrow(object));
            views_.push_back(view);
            view_ids_.push_back(static_cast<model::TensorId>(id));
            bytes += bytes_of(view);
        }
        // Moved out, because another thread may start a batch of its own meanwhile.
        std::vector<TensorView> views = std::move(views_);
        std::vector<model::TensorId> view_ids = std::move(view_ids_);
        if (bytes >= kBigBatchBytes) {
            const nb::gil_scoped_release others_may_run;
            if (const Inside inside(*this); inside) session_->observe_batch(mode_of(mode), view_ids, views);
        } else if (const Inside inside(*this); inside) {
            session_->observe_batch(mode_of(mode), view_ids, views);
        }
        views_ = std::move(views);
        view_ids_ = std::move(view_ids);
        for (const auto& [id, object] : unreadable) cannot_read(mode, id, object.ptr());
    } catch (...) {  // out of memory: this batch is not recorded
        ++unreadable_;
    }
    return on_device;
}

CopiedTensors Session::copy(const nb::list& tensors) noexcept {
    CopiedTensors out;
    try {
        TensorReader reader;
        std::vector<nb::object> held;
        std::vector<TensorView> views(nb::len(tensors));
        std::uint64_t bytes = 0;
        held.reserve(views.size());
        for (std::size_t i = 0; i < views.size(); ++i) {
            PyObject* object = PyList_GET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(i));
            TensorView view;
            const Readable readable = reader.read(object, view);
            if (readable == Readable::kOnDevice) out.on_device.push_back(i);
            if (readable == Readable::kNo) ++unreadable_;
            if (readable != Readable::kYes) continue;
            held.push_back(nb::borrow(object));
            views[i] = view;
            bytes += bytes_of(view);
        }
        base::Result<capture::TensorCopies> copies = [&] {
            if (bytes < kBigBatchBytes) return capture::TensorCopies::make(views);
            const nb::gil_scoped_release others_may_run;
            return capture::TensorCopies::make(views);
        }();
        if (copies) out.copies = std::move(copies).value();
        else unreadable_ += held.size();
    } catch (...) {  // out of memory: nothing is copied
        ++unreadable_;
    }
    return out;
}

void Session::observe_updates(int mode, const std::vector<model::TensorId>& updates,
                              const std::vector<model::TensorId>& ratios, const CopiedTensors& before,
                              const nb::list& tensors) noexcept {
    struct Update {
        model::TensorId update, ratio;
        TensorView before, after;
    };
    try {
        TensorReader reader;
        std::vector<nb::object> held;
        std::vector<Update> all;
        std::uint64_t bytes = 0;
        const std::size_t size =
            std::min({updates.size(), ratios.size(), before.copies.size(), nb::len(tensors)});
        for (std::size_t i = 0; i < size; ++i) {
            Update one{updates[i], ratios[i], before.copies.view(i), {}};
            if (one.before.data == nullptr) continue;
            PyObject* object = PyList_GET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(i));
            if (reader.read(object, one.after) != Readable::kYes) {
                ++unreadable_;
                continue;
            }
            held.push_back(nb::borrow(object));
            bytes += bytes_of(one.after);
            all.push_back(one);
        }
        const auto observe = [&] {
            const Inside inside(*this);
            if (!inside) return;
            for (const Update& one : all)
                session_->observe_update(mode_of(mode), one.update, one.ratio, one.before, one.after);
        };
        if (bytes < kBigBatchBytes) return observe();
        const nb::gil_scoped_release others_may_run;
        observe();
    } catch (...) {  // out of memory: these updates are not recorded
        ++unreadable_;
    }
}

void Session::observe_scalar(int mode, model::TensorId id, double value) noexcept {
    if (const Inside inside(*this); inside) session_->observe_scalar(mode_of(mode), id, value);
}

[[gnu::hot]] void Session::observe_scalars(int mode, std::span<const model::ScalarSample> scalars) noexcept {
    if (const Inside inside(*this); inside) session_->observe_scalars(mode_of(mode), scalars);
}

// Takes the value of a tensor with one element. False when it lives on a device.
bool Session::observe_scalar_tensor(int mode, model::TensorId id, nb::handle tensor) noexcept {
    TensorReader reader;
    TensorView view;
    const Readable readable = reader.read(tensor.ptr(), view);
    if (readable == Readable::kOnDevice) return false;
    if (readable == Readable::kNo) {
        cannot_read(mode, id, tensor.ptr());
        return true;
    }
    try {
        if (const auto value = reduce::scalar_value(view); value.is_ok()) {
            observe_scalar(mode, id, *value);
            return true;
        }
    } catch (...) {  // out of memory
    }
    ++unreadable_;
    return true;
}

void Session::reduce_on_cuda(const std::vector<std::string>& compilers) {
    auto reducer = value_or_raise(reduce::DeviceReducer::on_cuda(compilers));
    if (const Inside inside(*this); inside) late_.reduce_by(std::move(reducer), false);
}
void Session::reduce_on_host(unsigned behind) {
    if (const Inside inside(*this); inside) late_.reduce_by(reduce::DeviceReducer::on_host(behind), true);
}
// Where the tensor lies, if what is late can be taken of it there. Called without the mutex: to read a tensor
// can be to call Python.
std::optional<LateValues::Place> Session::read_for_device(PyObject* tensor, TensorReader& reader,
                                                          TensorView& view) noexcept {
    const Readable readable = reader.read(tensor, view);
    if (late_.takes_host())
        return readable == Readable::kYes ? std::optional(LateValues::Place{}) : std::nullopt;
    return readable == Readable::kOnDevice ? reader.place() : std::nullopt;
}

bool Session::observe_later(int mode, model::TensorId id, nb::handle tensor, bool without_channels) noexcept {
    const model::What apart = without_channels ? model::What::kChannels : model::What::kNothing;
    LateValues::Due due;
    {
        const Inside inside(*this);
        if (!inside) return true;
        if (!late_.is_ready()) return false;
        due = late_.due(mode_of(mode), id, apart);
    }
    if (!due.fits) return false;
    if (!due.is_any) return true;
    TensorReader reader;
    LateValues::Read read{id, {}, {}, due.has_units};
    const auto place = read_for_device(tensor.ptr(), reader, read.view);
    if (!place) return false;
    read.place = *place;
    std::vector<bool> begun;
    if (const Inside inside(*this); inside) late_.begin(mode_of(mode), {&read, 1}, begun);
    return !begun.empty() && begun[0];
}

std::vector<std::size_t> Session::observe_batch_later(int mode, const nb::list& ids, const nb::list& tensors,
                                                      const std::vector<std::size_t>& positions) noexcept {
    std::vector<std::size_t> left;
    try {
        left.reserve(positions.size());
        TensorReader reader;
        std::vector<nb::object> held;  // the list may change while other threads run
        std::vector<LateValues::Read> read;
        std::vector<std::size_t> places;
        const std::size_t size = std::min(nb::len(ids), nb::len(tensors));
        std::vector<LateValues::Due> due(size);
        std::vector<model::TensorId> numbers(size, capture::kNoTensor);
        for (std::size_t i = 0; i < size; ++i) {
            const unsigned long number =
                PyLong_AsUnsignedLong(PyList_GET_ITEM(ids.ptr(), static_cast<Py_ssize_t>(i)));
            if (PyErr_Occurred() != nullptr) PyErr_Clear();
            else numbers[i] = static_cast<model::TensorId>(number);
        }
        {
            const Inside inside(*this);
            if (!inside) return left;
            if (!late_.is_ready()) return positions;
            for (const std::size_t position : positions)
                if (position < size) due[position] = late_.due(mode_of(mode), numbers[position]);
        }
        for (const std::size_t position : positions) {
            if (position >= nb::len(tensors) || position >= size) continue;
            PyObject* const object = PyList_GET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(position));
            if (object == Py_None || (due[position].fits && !due[position].is_any)) continue;
            LateValues::Read one{numbers[position], {}, {}, due[position].has_units};
            held.push_back(nb::borrow(object));
            const auto place = due[position].fits ? read_for_device(object, reader, one.view) : std::nullopt;
            if (!place) {
                left.push_back(position);
                continue;
            }
            one.place = *place;
            read.push_back(one);
            places.push_back(position);
        }
        std::vector<bool> begun(read.size(), false);
        if (const Inside inside(*this); inside) late_.begin(mode_of(mode), read, begun);
        for (std::size_t i = 0; i < read.size(); ++i)
            if (i >= begun.size() || !begun[i]) left.push_back(places[i]);
    } catch (...) {  // out of memory: those are not recorded
        ++unreadable_;
    }
    return left;
}
LateValues::Ticket Session::begin_value(nb::handle tensor) noexcept {
    if (!late_.is_ready()) return LateValues::kNone;
    TensorReader reader;
    TensorView view;
    const auto place = read_for_device(tensor.ptr(), reader, view);
    if (!place) return LateValues::kNone;
    const Inside inside(*this);
    return inside ? late_.begin_value(view, *place) : LateValues::kNone;
}
LateValues::Ticket Session::begin_value(const TensorView& view, const LateValues::Place& place) noexcept {
    if (!late_.is_ready() || late_.takes_host()) return LateValues::kNone;
    const Inside inside(*this);
    return inside ? late_.begin_value(view, place) : LateValues::kNone;
}
double Session::take_value(LateValues::Ticket ticket) noexcept {
    const nb::gil_scoped_release others_may_run;
    const Inside inside(*this);
    return inside ? late_.take_value(ticket) : std::nan("");
}
void Session::drop_value(LateValues::Ticket ticket) noexcept {
    if (const Inside inside(*this); inside) late_.drop_value(ticket);
}
void Session::observe_value_later(int mode, model::TensorId id, LateValues::Ticket ticket) noexcept {
    if (const Inside inside(*this); inside) late_.observe_value(mode_of(mode), id, ticket);
}
bool Session::observe_scalar_later(int mode, model::TensorId id, nb::handle tensor) noexcept {
    const LateValues::Ticket ticket = begin_value(tensor);
    if (ticket != LateValues::kNone) observe_value_later(mode, id, ticket);
    return ticket != LateValues::kNone;
}
bool Session::observe_update_later(int mode, model::TensorId update, model::TensorId ratio, nb::handle before,
                                   nb::handle after) noexcept {
    LateValues::Due of_update;
    LateValues::Due of_ratio;
    {
        const Inside inside(*this);
        if (!inside) return true;
        if (!late_.is_ready()) return false;
        of_update = late_.due(mode_of(mode), update);
        of_ratio = late_.due(mode_of(mode), ratio);
    }
    if (!of_update.fits || !of_ratio.fits) return false;
    if (!of_update.is_any && !of_ratio.is_any) return true;
    TensorReader reader;
    TensorView was;
    LateValues::Read read{update, {}, {}, false};
    const auto before_at = read_for_device(before.ptr(), reader, was);
    const auto after_at = read_for_device(after.ptr(), reader, read.view);
    if (!before_at || !after_at || before_at->device != after_at->device) return false;
    read.place = *after_at;
    const Inside inside(*this);
    return !inside || late_.begin_update(mode_of(mode), read, ratio, was);
}
void Session::complete_late(std::chrono::nanoseconds patience) noexcept {
    if (late_.empty()) return;
    const nb::gil_scoped_release others_may_run;
    if (const Inside inside(*this); inside) late_.complete_all(patience);
}

void Session::observe_channels(int mode, model::TensorId id, nb::handle extremes) noexcept {
    TensorReader reader;
    TensorView view;
    const bool is_readable = reader.read(extremes.ptr(), view) == Readable::kYes &&
                             view.dtype == tensor::DType::kFloat32 && view.shape.size() == 2 &&
                             view.shape[0] == 3 && view.strides[1] == 1 && view.strides[0] == view.shape[1];
    if (!is_readable) {
        ++unreadable_;
        return;
    }
    try {
        const auto count = static_cast<std::size_t>(view.shape[1]);
        const auto* const first = static_cast<const float*>(view.data);
        model::ChannelStatistics channels{{first, first + count},
                                          {first + count, first + 2 * count},
                                          {first + 2 * count, first + 3 * count}};
        if (const Inside inside(*this); inside)
            session_->observe_channels(mode_of(mode), id, std::move(channels));
    } catch (...) {  // out of memory
        ++unreadable_;
    }
}
std::size_t Session::channel_dimension(model::TensorId id, std::size_t rank) noexcept {
    const Inside inside(*this);
    return inside ? session_->channel_dimension(id, rank) : 0;
}
bool Session::observe_classes(int mode, model::TensorId id, nb::handle logits, nb::handle labels) noexcept {
    TensorReader reader;
    TensorView logits_view;
    TensorView labels_view;
    const Readable first = reader.read(logits.ptr(), logits_view);
    const Readable second = reader.read(labels.ptr(), labels_view);
    if (first == Readable::kOnDevice || second == Readable::kOnDevice) return false;
    if (first == Readable::kNo || second == Readable::kNo) {
        cannot_read(mode, id, first == Readable::kNo ? logits.ptr() : labels.ptr());
        return true;
    }
    if (const Inside inside(*this); inside)
        session_->observe_classes(mode_of(mode), id, logits_view, labels_view);
    return true;
}

int Session::wanted(int mode, model::TensorId id) noexcept {
    const Inside inside(*this);
    return inside ? static_cast<int>(session_->wanted(mode_of(mode), id)) : 0;
}
std::string Session::activation(model::TensorId id) {
    const Inside inside(*this);
    const auto kind = inside ? session_->activation(id) : model::ActivationKind::kNone;
    return std::string(model::to_string(kind));
}
void Session::observe_statistics(int mode, model::TensorId id, const model::Statistics& statistics,
                                 const model::UnitStatistics& units) noexcept {
    if (const Inside inside(*this); inside)
        session_->observe_statistics(mode_of(mode), id, statistics, units);
}
void Session::capture_everything_for(std::uint64_t steps) noexcept {
    ignores_losses_ = false;
    if (const Inside inside(*this); inside) session_->capture_everything_for(steps);
}

void Session::begin_training(bool of_another_model) noexcept {
    if (const Inside inside(*this); inside) session_->begin_training(of_another_model);
}

void Session::keep_flight(const std::string& reason) noexcept {
    if (const Inside inside(*this); inside) session_->keep_flight(reason);
}

[[gnu::hot]] RoleMask Session::end_step(std::uint64_t nanos,
                                        std::span<const model::ScalarSample> losses) noexcept {
    if (!late_.empty() && !session_->can_hold_back()) complete_late(LateValues::kPatience);
    const std::uint64_t inside_nanos = inside_nanos_.exchange(0, std::memory_order_relaxed);
    capture::StepDirective directive;
    {
        const Inside inside(*this);
        if (!inside) return 0;
        if (nanos > inside_nanos) session_->add_cost(nanos - inside_nanos);
        if (!losses.empty()) session_->observe_scalars(model::Mode::kTrain, losses);
        directive = late_.empty() ? session_->end_step() : late_.end_step();
    }
    if (late_.must_wait()) {
        const nb::gil_scoped_release others_may_run;
        if (const Inside inside(*this); inside) late_.complete_oldest(LateValues::kPatience);
    }
    ignores_losses_ = directive.ignores_losses;
    return directive.due | (directive.stop_requested ? kStopRequested : 0) |
           (directive.plan_changed ? kPlanChanged : 0) | (directive.correction_asked ? kCorrectionAsked : 0);
}
nb::tuple Session::take_corrections() {
    const Inside inside(*this);
    const storage::CorrectionsAsked asked =
        inside ? session_->take_corrections() : storage::CorrectionsAsked{};
    return nb::make_tuple(asked.lower_lr, asked.roll_back, asked.bad_since);
}
std::optional<std::uint64_t> Session::checkpoint_asked() noexcept {
    const Inside inside(*this);
    return inside ? session_->checkpoint_asked() : std::nullopt;
}
std::string Session::plan() {
    const Inside inside(*this);
    return inside ? model::to_json(session_->plan().config()).dump() : std::string();
}
void Session::end_eval_step() noexcept {
    complete_late(LateValues::kPatience);
    if (const Inside inside(*this); inside) session_->end_eval_step();
}

namespace {
std::chrono::nanoseconds patience_of(double seconds) noexcept {
    const double some = seconds > 0 ? std::min(seconds, 3600.0) : 0.0;
    return std::chrono::nanoseconds(static_cast<std::int64_t>(some * 1e9));
}

class Deadline {
  public:
    explicit Deadline(std::chrono::nanoseconds patience) noexcept
        : at_(base::monotonic_nanos() + patience.count()) {}
    [[nodiscard]] std::chrono::nanoseconds left() const noexcept {
        return std::chrono::nanoseconds(std::max<std::int64_t>(at_ - base::monotonic_nanos(), 0));
    }

  private:
    const std::int64_t at_;
};
}  // namespace

// Under one lock, so that no step ends in between.
bool Session::flush(double patience_seconds) noexcept {
    const Deadline deadline(patience_of(patience_seconds));
    const nb::gil_scoped_release others_may_run;
    const Inside inside(*this);
    if (!inside) return false;
    if (!late_.empty()) late_.complete_all(deadline.left());
    return session_->flush(deadline.left());
}
void Session::close(double patience_seconds) noexcept {
    const Deadline deadline(patience_of(patience_seconds));
    const nb::gil_scoped_release others_may_run;
    const Inside inside(*this, false);
    if (!inside) return;
    if (!late_.empty()) late_.complete_all(deadline.left());
    session_->close(deadline.left());
}
// In the child of a fork: takes no lock, because nobody is left there to release it.
void Session::abandon() noexcept {
    abandoned_.store(true, std::memory_order_relaxed);
    session_->abandon();
}
nb::dict Session::counts() {
    const capture::SessionCounts counts = session_->counts();
    nb::dict out;
    out["steps_written"] = counts.writer.steps_written;
    out["bytes_written"] = counts.writer.bytes_written;
    out["steps_dropped"] = counts.writer.steps_dropped;
    out["raw_tensors_dropped"] = counts.writer.raw_tensors_dropped;
    out["failed"] = counts.writer.failed;
    out["failure"] = counts.writer.failure;
    out["tensors_skipped"] = counts.tensors_skipped + unreadable_ + late_.lost();
    out["capture_nanos"] = counts.capture_nanos;
    return out;
}

void bind_session(nb::module_& module) {
    nb::dict roles;
    for (unsigned i = 0; i < model::kRoleCount; ++i) {
        const auto role = static_cast<model::Role>(i);
        roles[nb::str(std::string(model::to_string(role)).c_str())] = capture::mask_of(role);
    }
    module.attr("ROLE_BITS") = roles;
    nb::dict what;
    for (const auto& [word, bit] :
         {std::pair("statistics", model::What::kStatistics), std::pair("units", model::What::kUnits),
          std::pair("channels", model::What::kChannels), std::pair("digest", model::What::kDigest)})
        what[word] = static_cast<int>(bit);
    module.attr("WHAT_BITS") = what;
    module.attr("STOP_REQUESTED") = kStopRequested;
    module.attr("PLAN_CHANGED") = kPlanChanged;
    module.attr("CORRECTION_ASKED") = kCorrectionAsked;
    nb::dict collections;
    for (unsigned i = 0; i < model::kRoleCount; ++i) {
        const auto role = static_cast<model::Role>(i);
        collections[nb::str(std::string(model::to_string(role)).c_str())] =
            std::string(model::collection_of(role));
    }
    module.attr("COLLECTION_OF_ROLE") = collections;
    module.attr("TRAIN") = static_cast<int>(Mode::kTrain);
    module.attr("EVAL") = static_cast<int>(Mode::kEval);

    nb::class_<CopiedTensors>(module, "CopiedTensors", "What tensors held when they were copied.")
        .def_ro("on_device", &CopiedTensors::on_device,
                "The positions of those on a device, which were not copied.");

    nb::class_<Session>(module, "Session", "One process's recording into a run directory.")
        .def(nb::init<const std::string&, const std::string&, model::WorkerId>(), "run_dir"_a, "config"_a,
             "worker"_a = 0, "`config` is the JSON of a plan.json. Raises traindbg.errors.")
        .def("register_tensor", &Session::register_tensor, "name"_a, "role"_a, nb::kw_only(),
             "activation"_a = "none", "module"_a = "", "module_type"_a = "", "layer"_a = -1, "dtype"_a = "",
             "shape"_a = std::vector<std::int64_t>{}, "whole_shape"_a = nb::none(),
             "offset"_a = std::vector<std::int64_t>{}, "placement"_a = "", "always"_a = false,
             "The tensor's id; the same name gives the same id. With `whole_shape`, it is a part of a "
             "distributed tensor, which begins at `offset`. `always`: it is kept whenever it is observed, "
             "due or "
             "not.")
        .def("describe", &Session::describe, "json"_a,
             "Facts about this process, as the JSON of a WorkerMeta.")
        .def("event", &Session::event, "kind"_a, "json"_a)
        .def("ask_for", &Session::ask_for, "config"_a,
             "Captures from now on also what the JSON of a plan asks for beyond the plan in force.")
        .def("due", &Session::due, "mode"_a, "The roles due at the mode's step, as a set of ROLE_BITS.")
        .def("asked", &Session::asked, "mode"_a, "Those of them that are due for what the user asked for.")
        .def("eager", &Session::eager, "mode"_a,
             "Those of the roles due for which a compiled model is to run uncompiled.")
        .def("forward_passed", &Session::forward_passed, "A whole forward pass was looked at.")
        .def("note_block", &Session::note_block, "name"_a,
             "A module with others inside is there, whose output would have this name. Whether it is asked "
             "for.")
        .def("step", &Session::step, "mode"_a)
        .def("observe", &Session::observe, "mode"_a, "id"_a, "tensor"_a.none(),
             "Takes what is due of a tensor. False: it lives on a device and was not read.")
        .def(
            "observe_batch", &Session::observe_batch,
            nb::sig(
                "def observe_batch(self, mode: int, ids: list[int], tensors: list[typing.Any]) -> list[int]"),
            "mode"_a, "ids"_a, "tensors"_a,
            "Takes what is due of many tensors; the positions of those on a device, which were not read.")
        .def("copy", &Session::copy, nb::sig("def copy(self, tensors: list[typing.Any]) -> CopiedTensors"),
             "tensors"_a, "Copies tensors into memory that is given back with the result.")
        .def("observe_updates", &Session::observe_updates,
             nb::sig("def observe_updates(self, mode: int, updates: list[int], ratios: list[int], "
                     "before: CopiedTensors, tensors: list[typing.Any]) -> None"),
             "mode"_a, "updates"_a, "ratios"_a, "before"_a, "tensors"_a,
             "Takes what is due of what became of tensors since they were copied.")
        .def("observe_scalar", &Session::observe_scalar, "mode"_a, "id"_a, "value"_a)
        .def("observe_scalar_tensor", &Session::observe_scalar_tensor, "mode"_a, "id"_a, "tensor"_a.none(),
             "Takes the value of a tensor with one element. False: it lives on a device.")
        .def(
            "reduce_on_cuda", &Session::reduce_on_cuda, "compilers"_a,
            "Statistics of tensors on GPUs are taken there from now on. `compilers`: file names of NVRTC, of "
            "which the first that is there is used. Raises traindbg.errors where something is missing.")
        .def("reduce_on_host", &Session::reduce_on_host, "behind"_a = 0,
             "The same for tensors in host memory that are handed over as if they were on a device, which "
             "seems to be so many steps behind.")
        .def("observe_later", &Session::observe_later, "mode"_a, "id"_a, "tensor"_a.none(),
             "without_channels"_a = false,
             "Begins to take what is due of a tensor on a device. False: it must be taken otherwise.")
        .def("observe_channels", &Session::observe_channels, "mode"_a, "id"_a, "extremes"_a.none(),
             "Takes channels that were made elsewhere: a float32 tensor [3, channels] of the least and the "
             "largest finite element and the share of zeros of each.")
        .def("channel_dimension", &Session::channel_dimension, "id"_a, "rank"_a,
             "Of which dimension of the tensor, which has so many, channels are indexes.")
        .def("observe_batch_later", &Session::observe_batch_later,
             nb::sig("def observe_batch_later(self, mode: int, ids: list[int], tensors: list[typing.Any], "
                     "positions: collections.abc.Sequence[int]) -> list[int]"),
             "mode"_a, "ids"_a, "tensors"_a, "positions"_a,
             "The same of those at `positions`; the positions of those that must be taken otherwise.")
        .def("observe_scalar_later", &Session::observe_scalar_later, "mode"_a, "id"_a, "tensor"_a.none(),
             "Begins to take the value of a tensor with one element. False: as above.")
        .def("observe_update_later", &Session::observe_update_later, "mode"_a, "update"_a, "ratio"_a,
             "before"_a.none(), "after"_a.none(),
             "Begins to take what is due of what became of a tensor. False: as above.")
        .def("observe_classes", &Session::observe_classes, "mode"_a, "id"_a, "logits"_a.none(),
             "labels"_a.none(),
             "Counts classes of logits [n, classes] and labels [n]. False: one lives on a device.")
        .def("wanted", &Session::wanted, "mode"_a, "id"_a,
             "What `observe` would take of the tensor now, as a set of WHAT_BITS.")
        .def("activation", &Session::activation, "id"_a,
             "The kind of activation that the tensor was registered with.")
        .def(
            "observe_statistics",
            [](Session& self, int mode, model::TensorId id, const model::Statistics& statistics,
               const std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint64_t>& units) {
                self.observe_statistics(
                    mode, id, statistics,
                    {std::get<0>(units), std::get<1>(units), std::get<2>(units), std::get<3>(units)});
            },
            "mode"_a, "id"_a, "statistics"_a,
            "units"_a = std::tuple(0U, 0U, std::uint64_t{0}, std::uint64_t{0}),
            "Takes statistics that were made elsewhere. `units`: how many there are, how many are inactive, "
            "how many elements are low and high; zeros where they were not counted.")
        .def("skip", &Session::skip, "tensors"_a = 1, "Counts tensors that could not be taken.")
        .def("cannot_take", &Session::cannot_take, "mode"_a, "id"_a, "why"_a,
             "Counts a tensor that could not be taken; where something of it is due, the run is told why, "
             "once.")
        .def("capture_everything_for", &Session::capture_everything_for, "steps"_a)
        .def("begin_training", &Session::begin_training, "of_another_model"_a,
             "Another training begins with the step under way: what rules look at first is due again.")
        .def("keep_flight", &Session::keep_flight, "reason"_a,
             "What the flight recorder holds is kept, with the next few steps.")
        .def(
            "end_step", [](Session& self) { return self.end_step(0, {}); },
            "Ends the TRAIN step: the roles due at the next one, with STOP_REQUESTED, PLAN_CHANGED and "
            "CORRECTION_ASKED.")
        .def("take_corrections", &Session::take_corrections,
             nb::sig("def take_corrections(self) -> tuple[int, int, int]"),
             "How often since the last call a lower learning rate and a roll-back were asked for, and the "
             "first "
             "step that the fault of the last roll-back touched.")
        .def("checkpoint_asked", &Session::checkpoint_asked,
             "Where a checkpoint is to be written before a stop that was asked for, the first step of the "
             "fault; "
             "else None.")
        .def("end_eval_step", &Session::end_eval_step)
        .def("flush", &Session::flush, "patience"_a = 1.0,
             "Waits until the steps that ended can be read, for at most so many seconds; whether they can.")
        .def("close", &Session::close, "patience"_a = 5.0,
             "Writes what is queued, for at most so many seconds.")
        .def("abandon", &Session::abandon, "In the child of a fork: does nothing from now on.")
        .def_prop_ro("is_open", &Session::is_open)
        .def_prop_ro("run_directory", &Session::run_directory)
        .def_prop_ro("worker", &Session::worker)
        .def("plan", &Session::plan, "The plan that holds now, as the JSON of a plan.json.")
        .def("counts", &Session::counts, nb::sig("def counts(self) -> dict[str, typing.Any]"));
}

}  // namespace traindbg::bindings
