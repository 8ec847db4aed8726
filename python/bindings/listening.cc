#include "listening.h"

#include <structmember.h>

#include <array>
#include <cstddef>
#include <utility>

#include "bindings.h"
#include "python_objects.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace traindbg::bindings {
namespace {

constexpr capture::RoleMask kLoop = capture::mask_of(model::Role::kLoop);

thread_local bool inside_loss = false;

// Names, made once.
struct Names {
    PyObject* reduction = PyUnicode_InternFromString("reduction");
    PyObject* mean = PyUnicode_InternFromString("mean");
    PyObject* hears_backward = PyUnicode_InternFromString("hears_backward");
};
const Names& names() {
    static const Names made;
    return made;
}

// A function that is listened to. Python objects, because a call is to pass through without being packed.
struct Heard {
    PyObject ob_base;
    vectorcallfunc call;
    PyObject* listening;  // the object that holds `state`
    Listening* state;
    PyObject* original;
    PyObject* rest;  // see heard_loss and heard_backward
    PyObject* name;  // of a loss
};

Heard& heard_of(PyObject* self) noexcept { return *reinterpret_cast<Heard*>(self); }

int traverse(PyObject* self, visitproc visit, void* arg) {
    const Heard& heard = heard_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(heard.listening);
    Py_VISIT(heard.original);
    Py_VISIT(heard.rest);
    Py_VISIT(heard.name);
    return 0;
}

int clear(PyObject* self) {
    Heard& heard = heard_of(self);
    heard.state = nullptr;
    Py_CLEAR(heard.listening);
    Py_CLEAR(heard.rest);
    Py_CLEAR(heard.name);
    Py_CLEAR(heard.original);
    return 0;
}

void free_heard(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    clear(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Heard, call), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&traverse)},
                       {Py_tp_clear, reinterpret_cast<void*>(&clear)},
                       {Py_tp_dealloc, reinterpret_cast<void*>(&free_heard)},
                       {Py_tp_call, reinterpret_cast<void*>(&PyVectorcall_Call)},
                       {Py_tp_members, members},
                       {0, nullptr}};
PyType_Spec spec = {"traindbg._core.Heard", sizeof(Heard), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};

nb::object make_heard(vectorcallfunc call, nb::handle listening, nb::handle original, nb::handle rest,
                      nb::handle name) {
    static PyObject* const type = PyType_FromSpec(&spec);
    if (type == nullptr) throw nb::python_error();
    PyObject* const made = PyType_GenericAlloc(reinterpret_cast<PyTypeObject*>(type), 0);
    if (made == nullptr) throw nb::python_error();
    Heard& heard = heard_of(made);
    heard.call = call;
    heard.state = nb::cast<Listening*>(listening);
    heard.listening = Py_NewRef(listening.ptr());
    heard.original = Py_NewRef(original.ptr());
    heard.rest = Py_NewRef(rest.ptr());
    heard.name = Py_NewRef(name.ptr());
    return nb::steal(made);
}

// Whether a call asks for the sum of a loss, which is recorded as a mean.
[[gnu::hot]] bool is_sum(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) noexcept {
    const Py_ssize_t count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (PyTuple_GET_ITEM(keywords, i) != names().reduction) continue;
        PyObject* const value = args[positional + i];
        if (value == names().mean) return false;
        return PyUnicode_Check(value) == 0 || PyUnicode_CompareWithASCIIString(value, "sum") == 0;
    }
    return false;
}

// `rest(value, args, kwargs)` with the arguments of a call.
nb::object call_rest(PyObject* rest, nb::handle value, PyObject* const* args, Py_ssize_t positional,
                     PyObject* keywords) {
    const nb::object given = nb::steal(PyTuple_New(positional));
    const nb::object named = nb::steal(PyDict_New());
    if (!given.is_valid() || !named.is_valid()) throw nb::python_error();
    for (Py_ssize_t i = 0; i < positional; ++i) PyTuple_SET_ITEM(given.ptr(), i, Py_NewRef(args[i]));
    const Py_ssize_t count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i < count; ++i)
        if (PyDict_SetItem(named.ptr(), PyTuple_GET_ITEM(keywords, i), args[positional + i]) < 0)
            throw nb::python_error();
    PyObject* const result =
        PyObject_CallFunctionObjArgs(rest, value.ptr(), given.ptr(), named.ptr(), nullptr);
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
}

[[gnu::hot]] PyObject* loss_called(PyObject* self, PyObject* const* args, std::size_t flags,
                                   PyObject* keywords) {
    const Heard& heard = heard_of(self);
    try {
        if (heard.state == nullptr || inside_loss || !heard.state->is_on())
            return PyObject_Vectorcall(heard.original, args, flags, keywords);
        inside_loss = true;
        nb::object value = nb::steal(PyObject_Vectorcall(heard.original, args, flags, keywords));
        inside_loss = false;
        if (!value.is_valid() || !heard.state->is_on()) return value.release().ptr();
        const Py_ssize_t positional = PyVectorcall_NARGS(flags);
        if (is_sum(args, positional, keywords) || !heard.state->loss_computed(heard.name, value))
            call_rest(heard.rest, value, args, positional, keywords);
        return value.release().ptr();
    } catch (nb::python_error& error) {  // Ctrl-C
        error.restore();
        return nullptr;
    }
}

[[gnu::hot]] PyObject* backward_called(PyObject* self, PyObject* const* args, std::size_t flags,
                                       PyObject* keywords) {
    const Heard& heard = heard_of(self);
    bool is_done = heard.state == nullptr;
    try {
        if (!is_done && PyVectorcall_NARGS(flags) > 2) {  // tensors, grad_tensors, retain_graph
            const bool retains = args[2] == Py_True;
            const bool is_plain = retains || args[2] == Py_None || args[2] == Py_False;
            is_done = is_plain && heard.state->backward_begins(args[0], retains);
        }
    } catch (nb::python_error& error) {  // Ctrl-C
        error.restore();
        return nullptr;
    }
    return PyObject_Vectorcall(is_done ? heard.original : heard.rest, args, flags, keywords);
}

}  // namespace

Listening::Listening(nb::callable is_tracing) : is_tracing_(std::move(is_tracing)) {}

void Listening::listen(nb::object listener, nb::object hot, nb::object threads) {
    path_ = hot.is_none() ? nullptr : nb::cast<HotPath*>(hot);
    const std::array<nb::object, 3> before = {listener_, hot_, threads_};  // their ends may run code
    listener_ = std::move(listener);
    hot_ = std::move(hot);
    threads_ = std::move(threads);
}

[[gnu::hot]] bool Listening::is_on() const {
    if (listener_.is_none()) return false;
    const unsigned long only = path_ == nullptr ? 0 : path_->only_thread;
    return only == 0 || only == PyThread_get_thread_ident();
}

bool Listening::is_inside_loss() noexcept { return inside_loss; }
void Listening::set_inside_loss(bool inside) noexcept { inside_loss = inside; }

[[gnu::hot]] bool Listening::loss_computed(nb::handle name, nb::handle value) {
    if (path_ == nullptr) return false;
    const nb::object kept = hot_;  // what is asked may be code of the user's
    const nb::object traces = nb::steal(PyObject_CallNoArgs(is_tracing_.ptr()));
    if (!traces.is_valid()) forget_error();
    // A value that torch.func has wrapped cannot be read, so that it is not handled.
    return traces.ptr() == Py_False && path_->loss_computed(name, value);
}

[[gnu::hot]] bool Listening::backward_begins(nb::handle root, bool retains) {
    if (listener_.is_none()) return true;
    const nb::object kept = hot_, threads = threads_;
    const bool is_settled = path_ != nullptr && path_->settled_thread == PyThread_get_thread_ident();
    if (!is_settled && !threads.is_none()) {
        const nb::object heard =
            nb::steal(PyObject_CallMethodOneArg(threads.ptr(), names().hears_backward, root.ptr()));
        if (!heard.is_valid()) forget_error();
        if (heard.is_valid() && heard.ptr() != Py_True) return true;
        if (!heard.is_valid()) return false;
    }
    if (!is_on()) return false;
    if (path_ == nullptr || (path_->due & (kLoop | ~capture::kAllRoles)) != 0) return false;
    return path_->backward_begins(root, retains);
}

[[gnu::hot]] bool Listening::optimizer_will_step(nb::handle optimizer) {
    if (!is_on()) return true;
    if (path_ == nullptr || !corrections.is_none()) return false;
    const nb::object kept = hot_;
    return path_->optimizer_will_step(optimizer);
}

[[gnu::hot]] std::int64_t Listening::optimizer_stepped(nb::handle optimizer) {
    if (!is_on()) return HotPath::kNothingToDo;
    if (path_ == nullptr || !corrections.is_none()) return HotPath::kNotHandled;
    return path_->optimizer_stepped(optimizer);
}

int Listening::traverse(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const Listening& state = *nb::inst_ptr<Listening>(self);
    for (const nb::object* each : {&state.listener_, &state.corrections, &state.hot_, &state.threads_})
        Py_VISIT(each->ptr());
    return 0;
}

int Listening::clear(PyObject* self) noexcept {
    if (!nb::inst_ready(self)) return 0;
    Listening& state = *nb::inst_ptr<Listening>(self);
    state.listen(nb::none(), nb::none(), nb::none());
    state.corrections = nb::none();
    return 0;
}

void bind_listening(nb::module_& module) {
    static PyType_Slot state_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&Listening::traverse)},
                                        {Py_tp_clear, reinterpret_cast<void*>(&Listening::clear)},
                                        {0, nullptr}};
    nb::class_<Listening>(module, "Listening", nb::type_slots(state_slots), "Who listens in this process.")
        .def(nb::init<nb::callable>(), "is_tracing"_a,
             nb::sig("def __init__(self, is_tracing: collections.abc.Callable[[], bool]) -> None"))
        .def("optimizer_will_step", &Listening::optimizer_will_step, "optimizer"_a,
             "Whether there is nothing more to do before the step.")
        .def("optimizer_stepped", &Listening::optimizer_stepped, "optimizer"_a,
             "NOTHING_TO_DO, NOT_HANDLED, or what `end_step` returned, where that asks for something.")
        .def(
            "heard_loss",
            [](nb::handle self, nb::handle original, nb::handle rest, nb::handle name) {
                return make_heard(&loss_called, self, original, rest, name);
            },
            "original"_a, "rest"_a, "name"_a,
            nb::sig("def heard_loss(self, original: collections.abc.Callable[..., typing.Any], "
                    "rest: collections.abc.Callable[..., object], "
                    "name: str) -> collections.abc.Callable[..., typing.Any]"),
            "The loss function `original`, listened to. `rest(value, args, kwargs)` hears of the calls that "
            "are not handled.")
        .def(
            "heard_backward",
            [](nb::handle self, nb::handle original, nb::handle rest) {
                return make_heard(&backward_called, self, original, rest, nb::none());
            },
            "original"_a, "rest"_a,
            nb::sig("def heard_backward(self, original: collections.abc.Callable[..., typing.Any], "
                    "rest: collections.abc.Callable[..., typing.Any]) "
                    "-> collections.abc.Callable[..., typing.Any]"),
            "torch.autograd.backward, `original`, listened to. `rest` is called in its place when something "
            "of the call is not handled.")
        .def("listen", &Listening::listen, "listener"_a.none(), "hot"_a.none(), "threads"_a.none(),
             "Has somebody told from now on; None: nobody.")
        .def_prop_ro("listener", &Listening::listener, nb::sig("def listener(self) -> typing.Any"),
                     "Of this thread.")
        .def_prop_ro("hot", &Listening::hot, nb::sig("def hot(self) -> HotPath | None"), "Of this thread.")
        .def_prop_ro("threads", &Listening::threads, nb::sig("def threads(self) -> typing.Any"))
        .def_rw("corrections", &Listening::corrections, nb::arg().none(),
                nb::for_getter(nb::sig("def corrections(self) -> typing.Any")),
                nb::for_setter(nb::sig("def corrections(self, corrections: typing.Any, /) -> None")))
        .def_prop_rw(
            "inside_loss", [](const Listening&) { return Listening::is_inside_loss(); },
            [](const Listening&, bool inside) { Listening::set_inside_loss(inside); })
        .def_rw("is_scripting", &Listening::is_scripting);
}

}  // namespace traindbg::bindings
