#include "forward_path.h"

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "bindings.h"
#include "module_calls.h"
#include "python_objects.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace traindbg::bindings {
namespace {

// Names of attributes, made once.
struct Names {
    PyObject* is_taken = PyUnicode_InternFromString("is_taken");
    PyObject* taken_as = PyUnicode_InternFromString("taken_as");
    PyObject* modules = PyUnicode_InternFromString("_modules");
};
const Names& names() {
    static const Names made;
    return made;
}

// Calls with what an exception in it leaves: the exception.
template <typename... Arguments>
nb::object call(nb::handle function, Arguments... arguments) {
    PyObject* result = PyObject_CallFunctionObjArgs(function.ptr(), arguments.ptr()..., nullptr);
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
}

int visit_all(visitproc visit, void* arg, std::initializer_list<nb::handle> objects) {
    for (const nb::handle each : objects) Py_VISIT(each.ptr());
    return 0;
}

}  // namespace

ForwardPath::ForwardPath(Session& session, HotPath& hot, nb::type_object tensor_type, nb::object transforms)
    : session_(session), hot_(hot), tensor_type_(std::move(tensor_type)), transforms_(std::move(transforms)) {
    module_calls::add(*this);
}

ForwardPath::~ForwardPath() { module_calls::remove(*this); }

void ForwardPath::attach(nb::object root, nb::callable before, nb::callable after, nb::callable leaf_called) {
    if (!PyWeakref_Check(root.ptr())) throw nb::type_error("attach: root must be a weak reference");
    root_ = std::move(root);
    root_at_ = alive(root_).ptr();
    before_ = std::move(before);
    after_ = std::move(after);
    leaf_called_ = std::move(leaf_called);
}

bool ForwardPath::is_root(nb::handle module) const noexcept {
    return root_.is_valid() && alive(root_).ptr() == module.ptr();
}

nb::object ForwardPath::place_of(nb::handle module) const noexcept {
    const nb::object id = nb::steal(PyLong_FromVoidPtr(module.ptr()));
    PyObject* place = id.is_valid() ? PyDict_GetItemWithError(known.ptr(), id.ptr()) : nullptr;
    if (place == nullptr) PyErr_Clear();
    return nb::borrow(place);
}

nb::object ForwardPath::before(nb::handle module, nb::handle args) {
    if (is_of_another_thread()) return nb::none();
    if (observing && !without_root) {
        const nb::object place = place_of(module);
        if (place.is_valid()) {
            part_begins(place);
            return nb::none();
        }
        if (!is_root(module)) return nb::none();
    } else if (!observing && !is_root(module)) {
        return nb::none();
    }
    return before_.is_valid() ? call(before_, module, args) : nb::none();
}

nb::object ForwardPath::after(nb::handle module, nb::handle args, nb::handle kwargs, nb::handle output) {
    if ((!observing && !inputs_only) || is_of_another_thread()) return nb::none();
    if (!after_.is_valid()) return nb::none();
    if (without_root) return call(after_, module, args, kwargs, output);
    const nb::object place = place_of(module);
    if (!place.is_valid()) return is_root(module) ? call(after_, module, args, kwargs, output) : nb::none();
    part_returned(place, output);
    return nb::none();
}

void ForwardPath::part_begins(nb::handle place) noexcept {
    if (PyList_Append(running.ptr(), place.ptr()) < 0) PyErr_Clear();  // out of memory
}

void ForwardPath::part_left(nb::handle place) noexcept {
    PyObject *type = nullptr, *error = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &error, &traceback);
    Py_ssize_t last = PyList_GET_SIZE(running.ptr());  // modules inside may have raised
    while (last > 0 && PyList_GET_ITEM(running.ptr(), last - 1) != place.ptr()) --last;
    if (PyList_SetSlice(running.ptr(), last > 0 ? last - 1 : 0, PY_SSIZE_T_MAX, nullptr) < 0) PyErr_Clear();
    PyErr_Restore(type, error, traceback);
}

void ForwardPath::part_returned(nb::handle place, nb::handle output) {
    part_left(place);
    const nb::object is_taken = attribute(place, names().is_taken);
    if (is_taken.ptr() != Py_True) return;
    const unsigned number = count_call(place);
    if ((number == 1 || !takes_calls) && take(place, output)) ++outputs;
    else if (leaf_called_.is_valid()) call(leaf_called_, place, output, nb::int_(number));
}

nb::object ForwardPath::after_raise(nb::handle module, nb::handle args, nb::handle output) {
    if ((!observing && !inputs_only) || !after_.is_valid()) return nb::none();
    return call(after_, module, args, output);
}

bool ForwardPath::take(nb::handle place, nb::handle output) noexcept {
    const bool is_tuple = PyTuple_CheckExact(output.ptr()) != 0;
    if (mode == 0 || (!is_tuple && output.type().ptr() != tensor_type_.ptr())) return false;
    const Timed timed(hot_.nanos);
    const nb::object ids = nb::steal(PyObject_GetAttr(place.ptr(), names().taken_as));
    const bool is_named = ids.is_valid() && is_tuple == (PyTuple_CheckExact(ids.ptr()) != 0);
    if (!is_named) {
        PyErr_Clear();
        return false;
    }
    if (is_wrapping()) return false;
    if (!is_tuple) return take_as(ids, output);
    if (PyTuple_GET_SIZE(ids.ptr()) != PyTuple_GET_SIZE(output.ptr())) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(ids.ptr()); ++i) {
        PyObject* const id = PyTuple_GET_ITEM(ids.ptr(), i);
        PyObject* const part = PyTuple_GET_ITEM(output.ptr(), i);
        if (id == Py_None && part == Py_None) continue;
        // What was taken before it is taken once, also when all of it is looked at again.
        if (reinterpret_cast<PyObject*>(Py_TYPE(part)) != tensor_type_.ptr() || !take_as(id, part))
            return false;
    }
    return true;
}

bool ForwardPath::function_returned(nb::handle id, nb::handle output) noexcept {
    if (mode == 0 || output.type().ptr() != tensor_type_.ptr()) return false;
    const Timed timed(hot_.nanos);
    return !is_wrapping() && take_as(id, output);
}

// Whether values are wrapped, or that is not known.
bool ForwardPath::is_wrapping() const noexcept {
    if (transforms_.is_none()) return false;
    const nb::object wraps = nb::steal(PyObject_CallNoArgs(transforms_.ptr()));
    if (!wraps.is_valid()) PyErr_Clear();
    return !wraps.is_valid() || !wraps.is_none();
}

bool ForwardPath::take_as(nb::handle id, nb::handle tensor) noexcept {
    if (PyLong_CheckExact(id.ptr()) == 0) return false;  // it was not named yet
    const unsigned long number = PyLong_AsUnsignedLong(id.ptr());
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return false;
    }
    return session_.observe(mode, static_cast<model::TensorId>(number), tensor);
}

int ForwardPath::traverse(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    const ForwardPath& path = *nb::inst_ptr<ForwardPath>(self);
    const int stopped = visit_all(visit, arg,
                                  {path.known, path.running, path.tensor_type_, path.transforms_, path.root_,
                                   path.before_, path.after_, path.leaf_called_});
    return stopped != 0 ? stopped : path.structure_.traverse(visit, arg);
}

int ForwardPath::clear(PyObject* self) noexcept {
    if (!nb::inst_ready(self)) return 0;
    ForwardPath& path = *nb::inst_ptr<ForwardPath>(self);
    path.observing = path.inputs_only = false;
    path.before_.reset();
    path.after_.reset();
    path.leaf_called_.reset();
    path.structure_.clear();
    return 0;
}

namespace {

// Calls `visit(name, module)` for each part of a module, until it gives false. False: it did.
template <typename Visit>
bool for_each_part(nb::handle module, Visit&& visit) {
    const nb::object parts = nb::steal(PyObject_GetAttr(module.ptr(), names().modules));
    if (!parts.is_valid()) throw nb::python_error();
    if (PyDict_CheckExact(parts.ptr()) != 0) {
        PyObject* name = nullptr;
        PyObject* part = nullptr;
        for (Py_ssize_t position = 0; PyDict_Next(parts.ptr(), &position, &name, &part) != 0;)
            if (!visit(nb::handle(name), nb::handle(part))) return false;
        return true;
    }
    for (const nb::handle item : nb::steal(PyMapping_Items(parts.ptr())))  // of a scripted module
        if (!visit(nb::object(item[0]), nb::object(item[1]))) return false;
    return true;
}

}  // namespace

bool ForwardPath::Structure::is_same(nb::handle root) {
    if (is_as_taken(root)) return true;
    take(root);
    return false;
}

bool ForwardPath::Structure::is_as_taken(nb::handle root) const {
    if (modules_.empty() || modules_.front().module != root.ptr()) return false;
    auto part = parts_.begin();
    // Each was found in one before; asking for parts may run code that puts others in their place.
    std::vector<nb::object> alive;
    alive.reserve(parts_.size());
    for (const Module& each : modules_) {
        const auto end = part + static_cast<std::ptrdiff_t>(each.parts);
        const bool has_same_parts = for_each_part(each.module, [&](nb::handle name, nb::handle module) {
            const bool is_same = part != end && part->name.is(name) && part->module == module.ptr() &&
                                 part->type.is(module.type());
            if (!is_same) return false;
            ++part;
            if (!module.is_none()) alive.push_back(nb::borrow(module));
            return true;
        });
        if (!has_same_parts || part != end) return false;
    }
    return true;
}

void ForwardPath::Structure::take(nb::handle root) {
    clear();
    std::vector<Module> modules;
    std::vector<Part> parts;
    std::unordered_set<PyObject*> known{root.ptr()};
    std::vector<nb::object> waiting{nb::borrow(root)};
    for (std::size_t i = 0; i < waiting.size(); ++i) {  // it grows
        const std::size_t before = parts.size();
        for_each_part(nb::object(waiting[i]), [&](nb::handle name, nb::handle module) {
            parts.push_back({nb::borrow(name), module.ptr(), nb::borrow(module.type())});
            if (!module.is_none() && known.insert(module.ptr()).second) waiting.push_back(nb::borrow(module));
            return true;
        });
        modules.push_back({waiting[i].ptr(), parts.size() - before});
    }
    modules_ = std::move(modules);
    parts_ = std::move(parts);
}

int ForwardPath::Structure::traverse(visitproc visit, void* arg) const noexcept {
    for (const Part& each : parts_) {
        Py_VISIT(each.name.ptr());
        Py_VISIT(each.type.ptr());
    }
    return 0;
}

void ForwardPath::Structure::clear() noexcept {
    modules_.clear();
    const std::vector<Part> ended = std::exchange(parts_, {});  // their ends may run code
}

void bind_forward_path(nb::module_& module) {
    static PyType_Slot path_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&ForwardPath::traverse)},
                                       {Py_tp_clear, reinterpret_cast<void*>(&ForwardPath::clear)},
                                       {0, nullptr}};
    nb::class_<ForwardPath>(module, "ForwardPath", nb::type_slots(path_slots),
                            "One forward pass of one root module: its state, and the hooks of modules.")
        .def(nb::init<Session&, HotPath&, nb::type_object, nb::object>(), nb::keep_alive<1, 2>(),
             nb::keep_alive<1, 3>(), "session"_a, "hot"_a, "tensor_type"_a, "transforms"_a.none(),
             nb::sig("def __init__(self, session: Session, hot: HotPath, tensor_type: type, "
                     "transforms: collections.abc.Callable[[], object] | None) -> None"))
        .def("attach", &ForwardPath::attach, "root"_a, "before"_a, "after"_a, "leaf_called"_a,
             nb::sig("def attach(self, root: object, before: collections.abc.Callable[..., None], "
                     "after: collections.abc.Callable[..., None], "
                     "leaf_called: collections.abc.Callable[..., None]) -> None"),
             "Says whose pass it is (a weak reference), and what does what is not done here.")
        .def("before", &ForwardPath::before, "The hook before a module's forward.")
        .def("after", &ForwardPath::after, "module"_a, "args"_a, "kwargs"_a, "output"_a.none(),
             "The hook after it.")
        .def("after", &ForwardPath::after_raise, "module"_a, "args"_a, "output"_a.none())
        .def("is_of_another_thread", &ForwardPath::is_of_another_thread,
             "Whether a pass is under way that another thread began.")
        .def(
            "shorten", [](ForwardPath& path, nb::handle mode) { return module_calls::shorten(path, mode); },
            "mode"_a.none(),
            "Modules of the pass are called without PyTorch's detour for hooks, if nothing speaks against "
            "it, "
            "and leaves of its own without the function mode `mode`. Whether they are.")
        .def("function_returned", &ForwardPath::function_returned, "id"_a, "output"_a.none(),
             "Whether the output of a function was taken under this id.")
        .def("has_same_structure", &ForwardPath::has_same_structure, "root"_a,
             "Whether the root has the modules inside that it had at the last call.")
        .def_static("restore", &module_calls::restore, "Calls of modules are PyTorch's own again.")
        .def_rw("armed", &ForwardPath::armed)
        .def_rw("thread", &ForwardPath::thread)
        .def_rw("observing", &ForwardPath::observing)
        .def_rw("inputs_only", &ForwardPath::inputs_only)
        .def_rw("without_root", &ForwardPath::without_root)
        .def("count_call", &ForwardPath::count_call, "place"_a,
             "A module has returned once more in the pass: how often it has now.")
        .def("forget_calls", &ForwardPath::forget_calls, "Another pass begins.")
        .def_rw("takes_calls", &ForwardPath::takes_calls)
        .def_rw("mode", &ForwardPath::mode)
        .def_rw("outputs", &ForwardPath::outputs)
        .def_prop_rw(
            "known", [](ForwardPath& path) { return path.known; },
            [](ForwardPath& path, nb::dict known) { path.known = std::move(known); },
            nb::for_getter(nb::sig("def known(self) -> dict[int, typing.Any]")),
            nb::for_setter(nb::sig("def known(self, known: dict[int, typing.Any], /) -> None")))
        .def_prop_rw(
            "running", [](ForwardPath& path) { return path.running; },
            [](ForwardPath& path, nb::list running) { path.running = std::move(running); },
            nb::for_getter(nb::sig("def running(self) -> list[typing.Any]")),
            nb::for_setter(nb::sig("def running(self, running: list[typing.Any], /) -> None")));
}

}  // namespace traindbg::bindings
