#include "module_calls.h"

#include <algorithm>
#include <array>
#include <vector>

#include "forward_path.h"
#include "python_objects.h"

namespace nb = nanobind;

namespace traindbg::bindings::module_calls {
namespace {

// Names of attributes, made once.
struct Names {
    PyObject* call_impl = PyUnicode_InternFromString("_call_impl");
    PyObject* forward = PyUnicode_InternFromString("forward");
    PyObject* is_quiet = PyUnicode_InternFromString("is_quiet");
    // Tables of a module's own hooks.
    std::array<PyObject*, 4> own_hooks = {
        PyUnicode_InternFromString("_backward_hooks"), PyUnicode_InternFromString("_backward_pre_hooks"),
        PyUnicode_InternFromString("_forward_hooks"), PyUnicode_InternFromString("_forward_pre_hooks")};
};
const Names& names() {
    static const Names made;
    return made;
}

// PyTorch's tables of global hooks, and whether each path that is armed has one in it.
struct GlobalHooks {
    const char* name;
    bool has_ours;
};
constexpr std::array<GlobalHooks, 4> kGlobalHooks = {{{"_global_backward_pre_hooks", false},
                                                      {"_global_backward_hooks", false},
                                                      {"_global_forward_pre_hooks", true},
                                                      {"_global_forward_hooks", true}}};

// What belongs to PyTorch, looked up once. It lives as long as the process, as PyTorch does.
struct Torch {
    PyObject* module_type = nullptr;  // torch.nn.Module
    PyObject* call_impl = nullptr;    // its own method
    PyObject* tracing_state = nullptr;
    std::array<PyObject*, kGlobalHooks.size()> hooks = {};
    // The stack of function modes: its length, one of it, take one, put one.
    PyObject* modes = nullptr;
    PyObject* mode_at = nullptr;
    PyObject* pop_mode = nullptr;
    PyObject* push_mode = nullptr;
    PyObject* ours = nullptr;  // the method that takes the short way
};

// From 3.13 on Python looks up attributes of a class slowly for good, once it was changed a thousand times.
constexpr bool kClassesWearOut = PY_VERSION_HEX >= 0x030D0000;
constexpr unsigned kMostChanges = 200;  // there

// One for the process: the class whose method is replaced is one, too. Under the GIL.
struct State {
    Torch torch;
    bool is_known = false;    // what `torch` holds
    bool is_missing = false;  // this PyTorch has not what is needed
    std::vector<ForwardPath*> paths;
    ForwardPath* path = nullptr;  // whose pass takes the short way now
    nb::object mode;              // that leaves need not run under
    unsigned changes_left = kMostChanges;
};
State& state() {
    static State* const one = new State;  // never freed: Python objects must not outlive the interpreter
    return *one;
}

PyObject* called(PyObject* module, PyObject* const* args, Py_ssize_t count, PyObject* keywords);
PyMethodDef method = {"_call_impl", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&called)),
                      METH_FASTCALL | METH_KEYWORDS, nullptr};

bool find_torch(Torch& torch) {
    const nb::object module = nb::module_::import_("torch.nn.modules.module");
    const nb::object core = nb::module_::import_("torch._C");
    const auto keep = [](nb::object value) { return value.release().ptr(); };
    torch.module_type = keep(module.attr("Module"));
    torch.call_impl = keep(nb::getattr(nb::handle(torch.module_type), "_call_impl"));
    torch.tracing_state = keep(core.attr("_get_tracing_state"));
    for (std::size_t i = 0; i < kGlobalHooks.size(); ++i)
        torch.hooks[i] = keep(module.attr(kGlobalHooks[i].name));
    torch.modes = keep(core.attr("_len_torch_function_stack"));
    torch.mode_at = keep(core.attr("_get_function_stack_at"));
    torch.pop_mode = keep(core.attr("_pop_torch_function_stack"));
    torch.push_mode = keep(core.attr("_push_on_torch_function_stack"));
    if (PyType_Check(torch.module_type) == 0 || PyFunction_Check(torch.call_impl) == 0) return false;
    if (!std::all_of(torch.hooks.begin(), torch.hooks.end(),
                     [](PyObject* table) { return PyDict_Check(table) != 0; }))
        return false;
    torch.ours = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(torch.module_type), &method);
    if (torch.ours == nullptr) throw nb::python_error();
    return true;
}

bool knows_torch(State& one) {
    if (!one.is_known && !one.is_missing) {
        try {
            one.is_known = find_torch(one.torch);
        } catch (nb::python_error&) {  // another PyTorch has no such thing
        }
        one.is_missing = !one.is_known;
    }
    return one.is_known;
}

bool has_only_our_hooks(const State& now) noexcept {
    const Py_ssize_t armed = std::count_if(now.paths.begin(), now.paths.end(),
                                           [](const ForwardPath* path) { return path->armed; });
    for (std::size_t i = 0; i < kGlobalHooks.size(); ++i)
        if (PyDict_GET_SIZE(now.torch.hooks[i]) != (kGlobalHooks[i].has_ours ? armed : 0)) return false;
    return true;
}

// Whether a module's tables of hooks are there and empty.
bool has_no_hooks(PyObject* attributes) noexcept {
    for (PyObject* name : names().own_hooks) {
        PyObject* table = PyDict_GetItemWithError(attributes, name);
        if (table == nullptr || PyDict_Check(table) == 0 || PyDict_GET_SIZE(table) != 0) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

// Keeps the exception that is set, if there is one, for the end of the scope.
class KeepsError {
  public:
    KeepsError() noexcept { PyErr_Fetch(&type_, &error_, &traceback_); }
    KeepsError(const KeepsError&) = delete;
    KeepsError& operator=(const KeepsError&) = delete;
    ~KeepsError() { PyErr_Restore(type_, error_, traceback_); }

  private:
    PyObject* type_ = nullptr;
    PyObject* error_ = nullptr;
    PyObject* traceback_ = nullptr;
};

// Our function mode, off as long as this lives, if it is the innermost one.
class WithoutMode {
  public:
    WithoutMode(const Torch& torch, const nb::object& mode) : torch_(torch) {
        const nb::object count = nb::steal(PyObject_CallNoArgs(torch.modes));
        const Py_ssize_t length = count.is_valid() ? PyLong_AsSsize_t(count.ptr()) : 0;
        if (length > 0) {
            const nb::object last = nb::steal(PyLong_FromSsize_t(length - 1));
            const nb::object top =
                last.is_valid() ? nb::steal(PyObject_CallOneArg(torch.mode_at, last.ptr())) : nb::object();
            if (top.is_valid() && top.ptr() == mode.ptr())
                taken_ = nb::steal(PyObject_CallNoArgs(torch.pop_mode));
        }
        if (PyErr_Occurred() != nullptr) PyErr_Clear();
    }
    WithoutMode(const WithoutMode&) = delete;
    WithoutMode& operator=(const WithoutMode&) = delete;
    ~WithoutMode() {
        if (!taken_.is_valid()) return;
        const KeepsError kept;
        Py_XDECREF(PyObject_CallOneArg(torch_.push_mode, taken_.ptr()));
    }

  private:
    const Torch& torch_;
    nb::object taken_;
};

// The arguments of a call with the module before them, as functions that are no methods take them.
class WithModule {
  public:
    WithModule(PyObject* module, PyObject* const* args, Py_ssize_t count, PyObject* keywords)
        : count_(static_cast<std::size_t>(1 + count)), keywords_(keywords) {
        const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
        const auto all = static_cast<std::size_t>(count + named);
        if (1 + all > usual_.size()) {
            many_.resize(1 + all);
            first_ = many_.data();
        }
        first_[0] = module;
        std::copy(args, args + all, first_ + 1);
    }
    WithModule(const WithModule&) = delete;
    WithModule& operator=(const WithModule&) = delete;

    [[nodiscard]] PyObject* call_method(PyObject* name) const {
        return PyObject_VectorcallMethod(name, first_, count_, keywords_);
    }
    [[nodiscard]] PyObject* call(PyObject* function) const {
        return PyObject_Vectorcall(function, first_, count_, keywords_);
    }

  private:
    std::array<PyObject*, 16> usual_;
    std::vector<PyObject*> many_;
    PyObject** first_ = usual_.data();
    std::size_t count_;
    PyObject* keywords_;
};

// The place of a module that may be called the short way, or nothing.
nb::object place_of(const State& now, PyObject* module) {
    if (now.path == nullptr || now.path->is_of_another_thread()) return {};
    nb::object place = now.path->place_of(module);
    if (!place.is_valid() || !has_only_our_hooks(now)) return {};
    // It may be the root of another model that is watched, too.
    const bool is_root = std::any_of(now.paths.begin(), now.paths.end(),
                                     [&](const ForwardPath* path) { return path->may_be_root(module); });
    if (is_root) return {};
    const nb::object state = nb::steal(PyObject_CallNoArgs(now.torch.tracing_state));
    if (state.ptr() != Py_None) {
        PyErr_Clear();
        return {};
    }
    return place;
}

// Whether nobody but PyTorch's own code runs in the forward of this leaf, so that functions called in it are
// none of the model's.
bool is_quiet(const nb::object& place, PyObject* attributes) noexcept {
    const nb::object quiet = nb::steal(PyObject_GetAttr(place.ptr(), names().is_quiet));
    const bool has_own_forward = PyDict_GetItemWithError(attributes, names().forward) != nullptr;
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
    return quiet.ptr() == Py_True && !has_own_forward;
}

PyObject* called(PyObject* module, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
    State& now = state();
    try {
        const WithModule arguments(module, args, count, keywords);
        const nb::object place = place_of(now, module);
        const nb::object attributes =
            place.is_valid() ? nb::steal(PyObject_GenericGetDict(module, nullptr)) : nb::object();
        if (!attributes.is_valid() || !has_no_hooks(attributes.ptr())) {
            PyErr_Clear();
            return arguments.call(now.torch.call_impl);
        }
        ForwardPath& path = *now.path;
        const nb::list running = path.running;  // another one, once the pass is over
        path.part_begins(place);
        nb::object result;
        if (now.mode.is_valid() && is_quiet(place, attributes.ptr())) {
            const WithoutMode off(now.torch, now.mode);
            result = nb::steal(arguments.call_method(names().forward));
        } else {
            result = nb::steal(arguments.call_method(names().forward));
        }
        const bool goes_on = std::find(now.paths.begin(), now.paths.end(), &path) != now.paths.end() &&
                             path.observing && path.running.is(running);
        if (!result.is_valid()) {
            if (goes_on) path.part_left(place);
            return nullptr;
        }
        if (goes_on) path.part_returned(place, result);
        return result.release().ptr();
    } catch (nb::python_error& error) {  // what the code written in Python let through: Ctrl-C
        error.restore();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
    }
    return nullptr;
}

}  // namespace

void add(ForwardPath& path) { state().paths.push_back(&path); }

void remove(ForwardPath& path) noexcept {
    State& now = state();
    if (now.path == &path) restore();
    std::erase(now.paths, &path);
}

bool shorten(ForwardPath& path, nb::handle mode) {
    State& now = state();
    const bool is_alone = std::none_of(now.paths.begin(), now.paths.end(), [&](const ForwardPath* other) {
        return other != &path && other->observing;
    });
    if (!is_alone) {
        restore();
        return false;
    }
    if (!knows_torch(now) || !has_only_our_hooks(now)) return false;
    if (now.path == nullptr) {
        if (now.changes_left == 0) return false;
        const nb::object there = nb::steal(PyObject_GetAttr(now.torch.module_type, names().call_impl));
        if (there.ptr() != now.torch.call_impl) {
            PyErr_Clear();
            return false;
        }
        if (PyObject_SetAttr(now.torch.module_type, names().call_impl, now.torch.ours) < 0)
            throw nb::python_error();
        if (kClassesWearOut) --now.changes_left;
    }
    now.path = &path;
    now.mode = mode.is_none() ? nb::object() : nb::borrow(mode);
    return true;
}

void restore() noexcept {
    State& now = state();
    if (now.path == nullptr) return;
    const KeepsError kept;
    now.path = nullptr;
    now.mode.reset();
    const nb::object there = nb::steal(PyObject_GetAttr(now.torch.module_type, names().call_impl));
    if (there.ptr() == now.torch.ours)
        PyObject_SetAttr(now.torch.module_type, names().call_impl, now.torch.call_impl);
    if (PyErr_Occurred() != nullptr) PyErr_Clear();
}

}  // namespace traindbg::bindings::module_calls
