// What of the process's Python objects is an instance of given types.
//
// Before Python 3.12 a list of them all is made first (`gc.get_objects()`), which is most of the time that it
// takes; to look at half a million of these in Python would take twice as long as that again. Types are
// compared as they are, never by `isinstance`, which would wake up lazy proxies of other packages.
#include <Python.h>
#include <nanobind/nanobind.h>

#include <exception>
#include <unordered_map>
#include <vector>

#include "bindings.h"

namespace traindbg::bindings {

namespace nb = nanobind;
using namespace nb::literals;

namespace {

class Kinds {
  public:
    Kinds(nb::handle kinds, bool is_exact) : is_exact_(is_exact) {
        if (PyTuple_Check(kinds.ptr()))
            for (const nb::handle kind : nb::borrow<nb::tuple>(kinds)) add(kind);
        else add(kinds);
    }

    bool has(PyTypeObject* type) {
        if (type == last_) return has_last_;
        const auto [place, is_new] = known_.try_emplace(type, false);
        if (is_new)
            for (PyTypeObject* kind : kinds_)
                if (type == kind || (!is_exact_ && PyType_IsSubtype(type, kind) != 0)) place->second = true;
        last_ = type;
        return has_last_ = place->second;
    }

  private:
    void add(nb::handle kind) {
        if (!PyType_Check(kind.ptr())) throw nb::type_error("kinds must be a type or a tuple of types");
        kinds_.push_back(reinterpret_cast<PyTypeObject*>(kind.ptr()));
    }

    bool is_exact_;
    std::vector<PyTypeObject*> kinds_;
    std::unordered_map<PyTypeObject*, bool> known_;
    PyTypeObject* last_ = nullptr;
    bool has_last_ = false;
};

#if PY_VERSION_HEX >= 0x030C0000

struct Search {
    Kinds wanted;
    std::vector<nb::object> found{};
    std::exception_ptr failed{};
};

// Called for each object while the collector waits: nothing of Python may be made here.
int look_at(PyObject* object, void* search) {
    auto& [wanted, found, failed] = *static_cast<Search*>(search);
    try {
        if (wanted.has(Py_TYPE(object))) found.push_back(nb::borrow(object));
        return 1;
    } catch (...) {
        failed = std::current_exception();
        return 0;
    }
}

nb::list instances_of(nb::handle kinds, bool exact) {
    Search search{Kinds(kinds, exact)};
    PyUnstable_GC_VisitObjects(&look_at, &search);
    if (search.failed) std::rethrow_exception(search.failed);
    nb::list found;
    for (const nb::object& object : search.found) found.append(object);
    return found;
}

#else

nb::list instances_of(nb::handle kinds, bool exact) {
    Kinds wanted(kinds, exact);
    const nb::object all = nb::module_::import_("gc").attr("get_objects")();
    nb::list found;
    const Py_ssize_t number = PyList_GET_SIZE(all.ptr());
    for (Py_ssize_t i = 0; i < number; ++i)
        if (PyObject* const object = PyList_GET_ITEM(all.ptr(), i); wanted.has(Py_TYPE(object)))
            found.append(nb::handle(object));
    return found;
}

#endif

}  // namespace

void bind_live_objects(nb::module_& module) {
    module.def(
        "instances_of", &instances_of, "kinds"_a, nb::kw_only(), "exact"_a = false,
        nb::sig(
            "def instances_of(kinds: type | tuple[type, ...], *, exact: bool = False) -> list[typing.Any]"),
        "All live objects that the garbage collector knows whose type is one of `kinds`, or with "
        "`exact=False` a subclass of one. Goes through all objects of the process: 0.1 us each.");
}

}  // namespace traindbg::bindings
