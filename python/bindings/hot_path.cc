#include "hot_path.h"

#include <nanobind/stl/vector.h>

#include <algorithm>
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
constexpr int kTrain = static_cast<int>(model::Mode::kTrain);
constexpr RoleMask kForward = capture::kForwardRoles;
// What an optimizer's step needs the other hooks for: before it, and after it.
constexpr RoleMask kAfterStep = mask_of(Role::kOptimizerState) | mask_of(Role::kWeightUpdate);
constexpr RoleMask kBeforeStep = mask_of(Role::kWeight) | mask_of(Role::kBias) | mask_of(Role::kGradient) |
                                 mask_of(Role::kGradientBefore) | mask_of(Role::kLoop) | kAfterStep;
// What a loss function is given.
constexpr RoleMask kArguments = mask_of(Role::kPrediction) | mask_of(Role::kLabel);

// At the end of steps that needed one of these there is more to do than to end them.
constexpr RoleMask kEndOfStep =
    kForward | kAfterStep | kArguments | mask_of(Role::kGradientBefore) | mask_of(Role::kLoop);

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

}  // namespace

HotPath::HotPath(Session& session, nb::type_object tensor_type, nb::callable is_grad_enabled)
    : session_(session), tensor_type_(std::move(tensor_type)), is_grad_enabled_(std::move(is_grad_enabled)) {}

void HotPath::arm(nb::object model, nb::object optimizer, std::vector<double> rates, nb::dict losses,
                  nb::object classifiers, nb::set evaluations) {
    if (!PyWeakref_Check(model.ptr()) || !PyWeakref_Check(optimizer.ptr()))
        throw nb::type_error("arm: model and optimizer must be weak references");
    if (!PyAnySet_Check(classifiers.ptr())) throw nb::type_error("arm: classifiers must be a set");
    model_ = std::move(model);
    optimizer_ = std::move(optimizer);
    rates_ = std::move(rates);
    losses_ = std::move(losses);
    classifiers_ = std::move(classifiers);
    evaluations_ = std::move(evaluations);
    is_armed_ = true;
}

void HotPath::disarm() noexcept { is_armed_ = false; }

bool HotPath::is_training() const {
    const nb::object model = alive(model_);
    if (!model.is_valid() || attribute(model, names().training).ptr() != Py_True) return false;
    PyObject* enabled = PyObject_CallNoArgs(is_grad_enabled_.ptr());
    if (enabled == nullptr) forget_error();
    Py_XDECREF(enabled);  // True and False live for ever
    return enabled == Py_True;
}

bool HotPath::is_driver(nb::handle optimizer) const noexcept {
    return alive(optimizer_).ptr() == optimizer.ptr();
}

bool HotPath::has_open_evaluation() const noexcept { return PySet_GET_SIZE(evaluations_.ptr()) != 0; }

bool HotPath::settings_are_unchanged(nb::handle optimizer) const {
    const nb::object groups = attribute(optimizer, names().param_groups);
    if (!groups.is_valid() || !PyList_CheckExact(groups.ptr())) return false;
    if (static_cast<std::size_t>(PyList_GET_SIZE(groups.ptr())) != rates_.size()) return false;
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

bool HotPath::hold(model::TensorId id, nb::handle value) noexcept {
    TensorReader reader;
    tensor::TensorView view;
    if (reader.read(value.ptr(), view) != Readable::kYes || view.element_count() != 1) return false;
    try {
        const base::Result<double> number = reduce::scalar_value(view);
        if (!number.is_ok()) return false;
        if (held_.size() >= kMostHeld) release();  // of a loop that never steps
        held_.push_back({id, *number});
        return true;
    } catch (...) {  // out of memory
        return false;
    }
}

void HotPath::release() noexcept {
    for (const Held& each : held_) session_.observe_scalar(kTrain, each.id, each.value);
    held_.clear();
}

nb::list HotPath::take_held() {
    nb::list out;
    for (const Held& each : held_) out.append(nb::make_tuple(each.id, each.value));
    held_.clear();
    calls_.clear();
    passes_of_graph_ = 0;
    retains_ = false;
    return out;
}

std::uint32_t HotPath::calls_of(model::TensorId id) const noexcept {
    for (const Calls& each : calls_)
        if (each.id == id) return each.count;
    return 0;
}

std::uint32_t HotPath::count_call(model::TensorId id) noexcept {
    for (Calls& each : calls_)
        if (each.id == id) return ++each.count;
    try {
        calls_.push_back({id, 1});
    } catch (...) {  // out of memory: the next one is taken for the first
    }
    return 1;
}

std::uint32_t HotPath::count_pass(bool retains) noexcept {
    passes_of_graph_ = retains_ ? passes_of_graph_ + 1 : 1;
    if (!retains) calls_.clear();
    retains_ = retains;
    return passes_of_graph_;
}

bool HotPath::loss_computed(nb::handle name, nb::handle value) {
    if (!is_armed_ || value.type().ptr() != tensor_type_.ptr() || has_open_evaluation()) return false;
    if ((due & (kArguments | mask_of(Role::kLoop))) != 0) return false;
    const Timed timed(nanos);
    PyObject* id = PyDict_GetItemWithError(losses_.ptr(), name.ptr());
    if (id == nullptr) {
        PyErr_Clear();
        return false;
    }
    if ((due & mask_of(Role::kClasses)) != 0 && PySet_Contains(classifiers_.ptr(), name.ptr()) != 0) {
        PyErr_Clear();
        return false;
    }
    if (!is_training() || attribute(value, names().requires_grad).ptr() != Py_True) return false;
    const unsigned long number = PyLong_AsUnsignedLong(id);
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return false;
    }
    const auto tensor = static_cast<model::TensorId>(number);
    // A second call in one pass has another name, until there are too many.
    const std::uint32_t calls = calls_of(tensor);
    return calls > kMostCalls || (calls == 0 && hold(tensor, value) && count_call(tensor) == 1);
}

bool HotPath::backward_begins(nb::handle root, bool retains) noexcept {
    if (!is_armed_ || root_loss < 0 || has_scaler || retains_ || has_open_evaluation()) return false;
    if (root.type().ptr() != tensor_type_.ptr()) return false;
    if ((due & (mask_of(Role::kLoop) | mask_of(Role::kGradientBefore))) != 0) return false;
    if (passes >= kOrdinaryPasses) return false;
    const Timed timed(nanos);
    if (!hold(static_cast<model::TensorId>(root_loss), root)) return false;
    count_pass(retains);
    ++passes;
    first_backward = false;
    return true;
}

bool HotPath::optimizer_will_step(nb::handle optimizer) {
    if (!is_armed_ || has_others || has_open_evaluation() || (due & kBeforeStep) != 0) return false;
    const Timed timed(nanos);
    if (!is_driver(optimizer) || !settings_are_unchanged(optimizer)) return false;
    release();
    return true;
}

std::int64_t HotPath::optimizer_stepped(nb::handle optimizer) noexcept {
    if (!is_armed_ || has_deferred || watches_mode || (due & kEndOfStep) != 0 || !is_driver(optimizer))
        return kNotHandled;
    const Timed timed(nanos);
    const RoleMask answer = end_step();
    return (answer & (kForward | mask_of(Role::kLoop) | kAsked)) != 0 ? static_cast<std::int64_t>(answer)
                                                                      : kNothingToDo;
}

RoleMask HotPath::end_step() noexcept {
    session_.account(std::exchange(nanos, 0));
    release();
    calls_.clear();
    passes_of_graph_ = 0;
    retains_ = false;
    const RoleMask answer = session_.end_step();
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
        .def(nb::init<Session&, nb::type_object, nb::callable>(), nb::keep_alive<1, 2>(), "session"_a,
             "tensor_type"_a, "is_grad_enabled"_a,
             nb::sig("def __init__(self, session: Session, tensor_type: type, "
                     "is_grad_enabled: collections.abc.Callable[[], bool]) -> None"))
        .def(
            "arm", &HotPath::arm, "model"_a, "optimizer"_a, "rates"_a, "losses"_a, "classifiers"_a,
            "evaluations"_a,
            nb::sig("def arm(self, model: object, optimizer: object, rates: collections.abc.Sequence[float], "
                    "losses: dict[str, int], classifiers: object, evaluations: set[str]) -> None"),
            "Says what an ordinary step looks like; `model` and `optimizer` are weak references.")
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
        .def_rw("has_deferred", &HotPath::has_deferred)
        .def_rw("has_others", &HotPath::has_others)
        .def_rw("watches_mode", &HotPath::watches_mode);
}

}  // namespace traindbg::bindings
