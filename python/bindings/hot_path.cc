#include "hot_path.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "bindings.h"
#include "python_objects.h"
#include "traindbg/reduce/reducer.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace traindbg::bindings {
namespace {

using capture::mask_of;
using capture::RoleMask;
using model::Role;

constexpr std::size_t kMostHeld = 1024;
constexpr std::size_t kMostTaken = 64;
constexpr std::size_t kMostKnown = 16;
constexpr int kTrain = static_cast<int>(model::Mode::kTrain);
constexpr RoleMask kForward = capture::kForwardRoles;
// What an optimizer's step needs the other hooks for: before it, and after it.
constexpr RoleMask kAfterStep = mask_of(Role::kOptimizerState) | mask_of(Role::kWeightUpdate);
constexpr RoleMask kBeforeStep = mask_of(Role::kWeight) | mask_of(Role::kBias) | mask_of(Role::kGradient) |
                                 mask_of(Role::kGradientBefore) | mask_of(Role::kLoop) | kAfterStep;
// What a loss function is given.
constexpr RoleMask kArguments = mask_of(Role::kPrediction) | mask_of(Role::kLabel);

// At the end of steps that needed one of these there is more to do than to end them.
constexpr RoleMask kEndOfStep = kForward | kAfterStep | kArguments | mask_of(Role::kBuffer) |
                                mask_of(Role::kGradientBefore) | mask_of(Role::kLoop);

// Names of attributes, made once.
struct Names {
    PyObject* training = PyUnicode_InternFromString("training");
    PyObject* param_groups = PyUnicode_InternFromString("param_groups");
    PyObject* lr = PyUnicode_InternFromString("lr");
    PyObject* requires_grad = PyUnicode_InternFromString("requires_grad");
};
const Names& names() {
    static const Names made;
    return made;
}

// Of what an optimizer has as its parameter groups; -1: they are no list.
Py_ssize_t group_count(const nb::object& groups) noexcept {
    return groups.is_valid() && PyList_CheckExact(groups.ptr()) ? PyList_GET_SIZE(groups.ptr()) : -1;
}

// The id that a dictionary has for a key.
std::optional<model::TensorId> id_in(const nb::dict& ids, nb::handle key) noexcept {
    PyObject* const found = PyDict_GetItemWithError(ids.ptr(), key.ptr());
    const unsigned long number = found == nullptr ? 0 : PyLong_AsUnsignedLong(found);
    const bool is_known = found != nullptr && PyErr_Occurred() == nullptr;
    if (!is_known) PyErr_Clear();
    return is_known ? std::optional(static_cast<model::TensorId>(number)) : std::nullopt;
}
std::optional<model::TensorId> id_in(const nb::dict& ids, model::TensorId id) noexcept {
    const nb::object key = nb::steal(PyLong_FromUnsignedLong(id));
    if (!key.is_valid()) PyErr_Clear();
    return key.is_valid() ? id_in(ids, key) : std::nullopt;
}

}  // namespace

HotPath::HotPath(Session& session, nb::type_object tensor_type)
    : session_(session), tensor_type_(std::move(tensor_type)) {}

void HotPath::arm(const nb::list& models, nb::object optimizer, std::vector<double> rates, nb::dict losses,
                  nb::object classifiers, nb::set evaluations, const nb::list& others) {
    const auto must_be_weak = [](nb::handle reference) {
        if (!PyWeakref_Check(reference.ptr()))
            throw nb::type_error("arm: models and optimizers must be weak references");
    };
    must_be_weak(optimizer);
    if (!PyAnySet_Check(classifiers.ptr())) throw nb::type_error("arm: classifiers must be a set");
    std::vector<nb::object> all;
    for (const nb::handle model : models) {
        must_be_weak(model);
        all.push_back(nb::borrow(model));
    }
    std::vector<Other> beside;
    for (const nb::handle each : others) {
        const auto one = nb::cast<nb::tuple>(each);
        if (one.size() != 5) throw nb::type_error("arm: what is known of another optimizer has five parts");
        must_be_weak(one[0]);
        beside.push_back({nb::object(one[0]), nb::cast<Py_ssize_t>(one[1]), nb::object(one[2]),
                          nb::cast<std::uint64_t>(one[3]), nb::cast<nb::dict>(one[4])});
    }
    models_ = std::move(all);
    others_ = std::move(beside);
    optimizer_ = std::move(optimizer);
    rates_ = std::move(rates);
    losses_ = std::move(losses);
    classifiers_ = std::move(classifiers);
    evaluations_ = std::move(evaluations);
    known_.clear();
    is_armed_ = true;
}

void HotPath::disarm() noexcept { is_armed_ = false; }

[[gnu::hot]] bool HotPath::has_model_in_training() const {
    for (std::size_t i = 0; i < models_.size(); ++i) {  // a property may arm anew
        const nb::object model = alive(models_[i]);
        if (model.is_valid() && attribute(model, names().training).ptr() == Py_True) return true;
    }
    return false;
}

[[gnu::hot]] const HotPath::Known* HotPath::find_known(nb::handle name) noexcept {
    for (const Known& each : known_)
        if (each.name.ptr() == name.ptr()) return &each;
    const std::optional<model::TensorId> id = id_in(losses_, name);
    if (!id) return nullptr;
    const int is_classifier = PySet_Contains(classifiers_.ptr(), name.ptr());
    if (is_classifier < 0) PyErr_Clear();
    try {
        if (known_.size() >= kMostKnown) known_.clear();
        return &known_.emplace_back(Known{nb::borrow(name), *id, is_classifier != 0});
    } catch (...) {  // out of memory
        return nullptr;
    }
}

[[gnu::hot]] bool HotPath::is_driver(nb::handle optimizer) const noexcept {
    return alive(optimizer_).ptr() == optimizer.ptr();
}

bool HotPath::has_open_evaluation() const noexcept { return PySet_GET_SIZE(evaluations_.ptr()) != 0; }

[[gnu::hot]] bool HotPath::settings_are_unchanged(nb::handle optimizer) const {
    const nb::object groups = attribute(optimizer, names().param_groups);
    if (group_count(groups) != static_cast<Py_ssize_t>(rates_.size())) return false;
    for (std::size_t i = 0; i < rates_.size(); ++i) {
        PyObject* group = PyList_GET_ITEM(groups.ptr(), static_cast<Py_ssize_t>(i));
        if (!PyDict_CheckExact(group)) return false;
        PyObject* rate = PyDict_GetItemWithError(group, names().lr);
        if (rate == nullptr) PyErr_Clear();
        if (rate == nullptr || !PyFloat_CheckExact(rate) || PyFloat_AS_DOUBLE(rate) != rates_[i])
            return false;
    }
    return true;
}

[[gnu::hot]] bool HotPath::hold(model::TensorId id, nb::handle value) noexcept {
    TensorReader reader;
    tensor::TensorView view;
    const Readable readable = reader.read(value.ptr(), view);
    try {
        Held held{id, 0, LateValues::kNone};
        if (readable == Readable::kOnDevice) {
            if (reader.place()) held.ticket = session_.begin_value(view, *reader.place());
            if (held.ticket == LateValues::kNone) return false;
        } else {
            if (readable != Readable::kYes || view.element_count() != 1) return false;
            const base::Result<double> number = reduce::scalar_value(view);
            if (!number.is_ok()) return false;
            held.value = *number;
        }
        if (held_.size() >= kMostHeld) release();  // of a loop that never steps
        held_.push_back(held);
        return true;
    } catch (...) {  // out of memory
        return false;
    }
}

[[gnu::hot]] void HotPath::record(const Held& held) noexcept {
    if (held.ticket == LateValues::kNone) session_.observe_scalar(kTrain, held.tensor, held.value);
    else session_.observe_value_later(kTrain, held.tensor, held.ticket);
}

void HotPath::record(const std::vector<Held>& held, const nb::dict* ids) noexcept {
    for (const Held& each : held) {
        const std::optional<model::TensorId> id = ids == nullptr ? each.tensor : id_in(*ids, each.tensor);
        if (id) record(Held{*id, each.value, each.ticket});
        else if (each.ticket != LateValues::kNone) session_.drop_value(each.ticket);
    }
}

[[gnu::hot]] void HotPath::give_to_driver() noexcept {
    if (of_driver_.empty()) {
        of_driver_.swap(held_);
        return;
    }
    record(of_driver_, nullptr);  // of a step that raised
    of_driver_.swap(held_);
    held_.clear();
}

void HotPath::release() noexcept {
    for (std::vector<Held>* losses : {&of_driver_, &held_}) {
        record(*losses, nullptr);
        losses->clear();
    }
}

[[gnu::hot]] void HotPath::record_others() noexcept {
    for (const Taken& taken : taken_) {
        const bool is_shared = taken.passes == passes;  // they are the last ones
        record(taken.held, is_shared ? nullptr : &taken.ids);
        if (is_shared) take_back_turn();
    }
    taken_.clear();
}

void HotPath::drop_held() noexcept {
    for (const Held& each : held_)
        if (each.ticket != LateValues::kNone) session_.drop_value(each.ticket);
    begin_losses();
}

void HotPath::begin_losses() noexcept {
    held_.clear();
    calls_.clear();
    passes_of_graph_ = 0;
    retains_ = false;
}

nb::list HotPath::pairs_of(const std::vector<Held>& held) {
    nb::list out;
    for (const Held& each : held) {
        const bool is_here = each.ticket == LateValues::kNone;
        out.append(nb::make_tuple(each.tensor, is_here ? each.value : session_.take_value(each.ticket)));
    }
    return out;
}

nb::list HotPath::take_held() {
    nb::list out = pairs_of(held_);
    begin_losses();
    return out;
}

nb::list HotPath::take_others() {
    nb::list out;
    for (const Taken& each : taken_) out.append(nb::make_tuple(each.name, each.passes, pairs_of(each.held)));
    taken_.clear();
    return out;
}

const HotPath::Other* HotPath::find_other(nb::handle optimizer) const noexcept {
    for (const Other& each : others_)
        if (alive(each.optimizer).ptr() == optimizer.ptr()) return &each;
    return nullptr;
}

bool HotPath::give_to(const Other& other) {
    if (held_.empty()) return true;
    if (taken_.size() >= kMostTaken) return false;
    for (const Held& each : held_)
        if (!id_in(other.ids, each.tensor)) return false;
    taken_.push_back({other.name, other.ids, passes, std::move(held_)});
    begin_losses();
    turn_ends(other.name);
    return true;
}

void HotPath::reach_turn() noexcept {
    if (turns_of_ == steps) return;
    turns_before_.clear();
    if (turns_of_ + 1 == steps) turns_before_.swap(turns_);
    turns_.clear();
    turns_of_ = steps;
}

void HotPath::turn_ends(nb::handle whose) {
    reach_turn();
    turns_.push_back(nb::borrow(whose));
}

void HotPath::take_back_turn() noexcept {
    if (!turns_.empty()) turns_.pop_back();
}

nb::object HotPath::whose_turn() {
    reach_turn();
    return turns_.size() < turns_before_.size() ? turns_before_[turns_.size()] : nb::object(nb::str(""));
}

[[gnu::hot]] std::uint32_t HotPath::calls_of(model::TensorId id) const noexcept {
    for (const Calls& each : calls_)
        if (each.id == id) return each.count;
    return 0;
}

[[gnu::hot]] std::uint32_t HotPath::count_call(model::TensorId id) noexcept {
    for (Calls& each : calls_)
        if (each.id == id) return ++each.count;
    try {
        calls_.push_back({id, 1});
    } catch (...) {  // out of memory: the next one is taken for the first
    }
    return 1;
}

[[gnu::hot]] std::uint32_t HotPath::count_pass(bool retains) noexcept {
    passes_of_graph_ = retains_ ? passes_of_graph_ + 1 : 1;
    if (!retains) calls_.clear();
    retains_ = retains;
    return passes_of_graph_;
}

// A further call in one pass has a name of its own.
model::TensorId HotPath::id_of_further(nb::handle name, std::uint32_t number) const noexcept {
    const nb::object further = nb::steal(PyUnicode_FromFormat("%U#%u", name.ptr(), number));
    if (!further.is_valid()) PyErr_Clear();
    return further.is_valid() ? id_in(losses_, further).value_or(capture::kNoTensor) : capture::kNoTensor;
}

[[gnu::hot]] bool HotPath::loss_computed(nb::handle name, nb::handle value) {
    if (!is_armed_ || hears_next_loss || has_open_evaluation()) return false;
    if (value.type().ptr() != tensor_type_.ptr()) return false;
    if ((due & (kArguments | mask_of(Role::kLoop))) != 0) return false;
    const Timed timed(nanos);
    const Known* const known = find_known(name);
    if (known == nullptr || (known->is_classifier && (due & mask_of(Role::kClasses)) != 0)) return false;
    const model::TensorId first = known->id;
    const std::uint32_t calls = calls_of(first);
    // What requires a gradient was computed with gradients on.
    if (attribute(value, names().requires_grad).ptr() != Py_True || !has_model_in_training()) return false;
    if (calls > kMostCalls) return true;  // not looked at, which was said
    if (!ignores_losses()) {
        const model::TensorId id = calls == 0 ? first : id_of_further(name, calls + 1);
        if (id == capture::kNoTensor || !hold(id, value)) return false;
    }
    count_call(first);
    return true;
}

[[gnu::hot]] bool HotPath::backward_begins(nb::handle root, bool retains) noexcept {
    if (!is_armed_ || root_loss < 0 || has_scaler || retains_ || has_open_evaluation()) return false;
    if (root.type().ptr() != tensor_type_.ptr()) return false;
    if ((due & (mask_of(Role::kLoop) | mask_of(Role::kGradientBefore))) != 0) return false;
    if (passes >= kOrdinaryPasses) return false;
    const Timed timed(nanos);
    if (!ignores_losses() && !hold(static_cast<model::TensorId>(root_loss), root)) return false;
    count_pass(retains);
    ++passes;
    first_backward = false;
    return true;
}

[[gnu::hot]] bool HotPath::optimizer_will_step(nb::handle optimizer) {
    if (!is_armed_ || has_others || has_open_evaluation() || (due & kBeforeStep) != 0) return false;
    const Timed timed(nanos);
    if (is_driver(optimizer)) {
        if (!settings_are_unchanged(optimizer)) return false;
        record_others();
        give_to_driver();
        return true;
    }
    const Other* const other = find_other(optimizer);
    if (other == nullptr) return false;
    if (other->groups < 0) return give_to(*other);
    const Other known = *other;  // a property may arm anew
    return group_count(attribute(optimizer, names().param_groups)) == known.groups && give_to(known);
}

[[gnu::hot]] std::int64_t HotPath::optimizer_stepped(nb::handle optimizer) noexcept {
    if (!is_armed_ || has_deferred || watches_mode || (due & kEndOfStep) != 0) return kNotHandled;
    const Timed timed(nanos);
    if (is_driver(optimizer)) {
        const RoleMask answer = end_step();
        return (answer & (kForward | mask_of(Role::kLoop) | kAsked)) != 0 ? static_cast<std::int64_t>(answer)
                                                                          : kNothingToDo;
    }
    const Other* const other = find_other(optimizer);
    if (other == nullptr || !held_.empty()) return kNotHandled;  // held: of its closure
    if (other->drives_after == 0) return kNothingToDo;
    if (!alive(optimizer_).is_valid() || foreign_steps + 1 >= other->drives_after) return kNotHandled;
    ++foreign_steps;
    return kNothingToDo;
}

[[gnu::hot]] RoleMask HotPath::end_step() noexcept {
    give_to_driver();
    calls_.clear();
    passes_of_graph_ = 0;
    retains_ = false;
    // Moved out, because another thread may end a step meanwhile.
    std::vector<model::ScalarSample> of_host = std::move(of_host_);
    of_host.clear();
    for (const Held& each : of_driver_) {
        if (each.ticket == LateValues::kNone) {
            try {
                of_host.push_back({each.tensor, each.value});
                continue;
            } catch (...) {  // out of memory: told by itself
            }
        }
        record(each);
    }
    of_driver_.clear();
    const RoleMask answer = session_.end_step(std::exchange(nanos, 0), of_host);
    of_host_ = std::move(of_host);
    due = answer & ~kAsked;
    ++steps;
    foreign_steps = 0;
    passes = 0;
    first_backward = true;
    forward_seen = false;
    return answer;
}

void bind_hot_path(nb::module_& module) {
    module.attr("NOTHING_TO_DO") = HotPath::kNothingToDo;
    module.attr("NOT_HANDLED") = HotPath::kNotHandled;
    module.attr("MOST_CALLS") = HotPath::kMostCalls;
    nb::class_<HotPath>(module, "HotPath", "The four moments of an ordinary training step, in native code.")
        .def(nb::init<Session&, nb::type_object>(), nb::keep_alive<1, 2>(), "session"_a, "tensor_type"_a,
             nb::sig("def __init__(self, session: Session, tensor_type: type) -> None"))
        .def(
            "arm", &HotPath::arm, "models"_a, "optimizer"_a, "rates"_a, "losses"_a, "classifiers"_a,
            "evaluations"_a, "others"_a,
            nb::sig("def arm(self, models: list[typing.Any], optimizer: object, "
                    "rates: collections.abc.Sequence[float], losses: dict[str, int], classifiers: object, "
                    "evaluations: set[str], "
                    "others: list[tuple[typing.Any, int, str, int, dict[int, int]]]) -> None"),
            "Says what an ordinary step looks like; models and optimizers are weak references. Of each other "
            "optimizer: its number of parameter groups, its name, after how many steps it drives, the ids "
            "of its losses.")
        .def("disarm", &HotPath::disarm, "Nothing is ordinary any more.")
        .def("loss_computed", &HotPath::loss_computed, "name"_a, "value"_a.none(), "Whether it was handled.")
        .def("backward_begins", &HotPath::backward_begins, "root"_a.none(), "retains"_a,
             "Whether it was handled.")
        .def("optimizer_will_step", &HotPath::optimizer_will_step, "optimizer"_a, "Whether it was handled.")
        .def("optimizer_stepped", &HotPath::optimizer_stepped, "optimizer"_a,
             "NOTHING_TO_DO, NOT_HANDLED, or what `end_step` returned, where that asks for something.")
        .def("end_step", &HotPath::end_step,
             "Ends the step: the roles due at the next, with what was asked for: STOP_REQUESTED, ...")
        .def("hold", &HotPath::hold, "id"_a, "value"_a,
             "Holds a loss until it is known whose it is. False: it lives on a device.")
        .def("release", &HotPath::release, "What is held is of the optimizer that drives.")
        .def("take_held", &HotPath::take_held, nb::sig("def take_held(self) -> list[tuple[int, float]]"),
             "What is held is another optimizer's: ids and values.")
        .def("drop_held", &HotPath::drop_held, "What is held belongs to no step.")
        .def("take_others", &HotPath::take_others,
             nb::sig("def take_others(self) -> list[tuple[str, int, list[tuple[int, float]]]]"),
             "What others took since the last step: names, passes until then, ids and values.")
        .def("turn_ends", &HotPath::turn_ends, nb::sig("def turn_ends(self, whose: str) -> None"), "whose"_a,
             "Another optimizer than the one that drives has stepped.")
        .def("take_back_turn", &HotPath::take_back_turn, "The last one had no turn of its own.")
        .def("whose_turn", &HotPath::whose_turn, nb::sig("def whose_turn(self) -> str"),
             "Whose losses are computed now, by the step before; empty: of the optimizer that drives.")
        .def("count_call", &HotPath::count_call, "id"_a,
             "How many calls of a loss function were in this pass, with this one.")
        .def("count_pass", &HotPath::count_pass, "retains"_a,
             "How many passes were about the same graph, with this one.")
        .def_rw("due", &HotPath::due)
        .def_rw("steps", &HotPath::steps)
        .def_rw("nanos", &HotPath::nanos)
        .def_rw("foreign_steps", &HotPath::foreign_steps)
        .def_rw("passes", &HotPath::passes)
        .def_rw("root_loss", &HotPath::root_loss)
        .def_rw("first_backward", &HotPath::first_backward)
        .def_rw("forward_seen", &HotPath::forward_seen)
        .def_rw("has_scaler", &HotPath::has_scaler)
        .def_rw("hears_next_loss", &HotPath::hears_next_loss)
        .def_rw("has_deferred", &HotPath::has_deferred)
        .def_rw("has_others", &HotPath::has_others)
        .def_rw("watches_mode", &HotPath::watches_mode)
        .def_rw("only_thread", &HotPath::only_thread)
        .def_rw("settled_thread", &HotPath::settled_thread);
}

}  // namespace traindbg::bindings
