// Tables of runs, handed over by Arrow's PyCapsule interface.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <set>

#include "bindings.h"
#include "errors.h"
#include "run_files.h"
#include "traindbg/tables/arrow_stream.h"
#include "waiting.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace traindbg::bindings {
namespace {

constexpr const char* kStreamCapsule = "arrow_array_stream";
constexpr const char* kSchemaCapsule = "arrow_schema";

template <typename Structure>
void release(Structure* structure) noexcept {
    const std::unique_ptr<Structure> owned(structure);
    if (owned->release != nullptr) owned->release(owned.get());  // a consumer may have moved it out
}

[[noreturn]] void raise_no_memory() { raise({base::Code::kResourceExhausted, "no memory for a table"}); }

// A capsule that owns `structure` until a consumer moves its content out.
template <typename Structure>
nb::object to_capsule(std::unique_ptr<Structure> structure, const char* name) {
    PyObject* const capsule = PyCapsule_New(structure.get(), name, [](PyObject* object) {
        const char* const named = PyCapsule_GetName(object);
        release(static_cast<Structure*>(PyCapsule_GetPointer(object, named)));
    });
    if (capsule == nullptr) {
        release(structure.release());
        throw nb::python_error();
    }
    static_cast<void>(structure.release());
    return nb::steal(capsule);
}

// What the stream that was asked for last could not read. It may be pulled by any thread.
struct MetDamage {
    std::mutex mutex;
    std::vector<read::Damage> places;
};

// Tells Python of damage when the stream ends. A consumer pulls with or without Python's lock and may keep
// another thread from it meanwhile: so the main thread is asked to do it, when it comes to it.
class TellingReader final : public tables::TableReader {
  public:
    TellingReader(std::unique_ptr<tables::TableReader> reader, std::shared_ptr<MetDamage> met,
                  std::uint64_t receiver)
        : reader_(std::move(reader)), met_(std::move(met)), receiver_(receiver) {}
    ~TellingReader() override { tell(); }

    const std::vector<tables::Field>& fields() const noexcept override { return reader_->fields(); }
    std::uint64_t steps_read() const noexcept override { return reader_->steps_read(); }
    const std::vector<read::Damage>& damage() const override { return reader_->damage(); }
    base::Result<std::optional<tables::Batch>> next() override {
        auto batch = reader_->next();
        if (!batch.is_ok() || !*batch) tell();
        return batch;
    }

  private:
    struct Message {
        std::uint64_t receiver;
        std::vector<read::Damage> places;
    };

    void tell() noexcept {
        try {
            try_to_tell();
        } catch (const std::exception&) {
            return;  // out of memory: the values that are whole have been given
        }
    }
    void try_to_tell() {
        const std::vector<read::Damage>& places = reader_->damage();
        if (places.size() == told_) return;
        told_ = places.size();
        {
            const std::scoped_lock lock(met_->mutex);
            met_->places = places;
        }
        if (Py_IsInitialized() == 0) return;
        auto message = std::make_unique<Message>(Message{receiver_, places});
        if (Py_AddPendingCall(&deliver, message.get()) == 0) static_cast<void>(message.release());
    }
    static int deliver(void* argument) {
        const std::unique_ptr<Message> message(static_cast<Message*>(argument));
        try {
            nb::module_::import_("traindbg._damage")
                .attr("deliver")(message->receiver, to_list(message->places));
        } catch (nb::python_error& error) {
            if (!error.matches(PyExc_Exception)) {  // Ctrl-C, which is the main thread's
                error.restore();
                return -1;
            }
            error.discard_as_unraisable("traindbg._damage.deliver");  // for the main thread no error
        } catch (const std::exception&) {
            return 0;  // out of memory
        }
        return 0;
    }

    std::unique_ptr<tables::TableReader> reader_;
    std::shared_ptr<MetDamage> met_;
    std::uint64_t receiver_;
    std::size_t told_ = 0;
};

// A stream around the core's, which keeps the run's files and waits for them without the GIL: some consumers
// come with it, some without.
struct PatientStream {
    RunFiles files;
    ArrowArrayStream inner{};

    explicit PatientStream(RunFiles its_files) : files(std::move(its_files)) {}
    PatientStream(const PatientStream&) = delete;
    PatientStream& operator=(const PatientStream&) = delete;
    ~PatientStream() {
        const OthersMayRun while_files_are_closed;
        if (inner.release != nullptr) inner.release(&inner);
    }
    static PatientStream& of(ArrowArrayStream* stream) noexcept {
        return *static_cast<PatientStream*>(stream->private_data);
    }
};

std::unique_ptr<ArrowArrayStream> to_patient_stream(std::unique_ptr<tables::TableReader> reader,
                                                    const RunFiles& files) {
    auto patient = std::make_unique<PatientStream>(files);
    if (!tables::to_arrow_stream(std::move(reader), &patient->inner)) return nullptr;
    auto stream = std::make_unique<ArrowArrayStream>();
    stream->get_schema = [](ArrowArrayStream* self, ArrowSchema* out) {
        ArrowArrayStream& inner = PatientStream::of(self).inner;
        return inner.get_schema(&inner, out);
    };
    stream->get_next = [](ArrowArrayStream* self, ArrowArray* out) {
        ArrowArrayStream& inner = PatientStream::of(self).inner;
        const OthersMayRun while_it_reads;
        return inner.get_next(&inner, out);
    };
    stream->get_last_error = [](ArrowArrayStream* self) {
        ArrowArrayStream& inner = PatientStream::of(self).inner;
        return inner.get_last_error(&inner);
    };
    stream->release = [](ArrowArrayStream* self) {
        const std::unique_ptr<PatientStream> last(&PatientStream::of(self));
        self->release = nullptr;
        self->private_data = nullptr;
    };
    stream->private_data = patient.release();
    return stream;
}

// Nothing in it changes once it is made: any number of threads may take streams of it, each its own.
class Table {
  public:
    Table(const RunFiles& files, std::string path, const std::string& name,
          std::optional<std::vector<std::string>> names, std::vector<std::string> collections,
          const std::optional<std::string>& mode, std::uint64_t first_step, std::uint64_t end_step,
          std::optional<model::WorkerId> worker, std::vector<std::string> statistics)
        : files_(files), path_(std::move(path)), kind_(value_or_raise(tables::parse_table(name))) {
        if (names) {
            // No call into Python: consumers pull from threads that do not hold its lock.
            auto wanted =
                std::make_shared<const std::set<std::string, std::less<>>>(names->begin(), names->end());
            selection_.name = [wanted](std::string_view tensor) { return wanted->contains(tensor); };
        }
        selection_.collections = std::move(collections);
        if (mode) {
            selection_.mode = model::parse_mode(*mode);
            if (!selection_.mode)
                raise({base::Code::kInvalidArgument,
                       "mode '" + *mode + "': use train, eval, predict or global"});
        }
        selection_.first_step = first_step;
        selection_.end_step = end_step;
        selection_.worker = worker;
        selection_.statistics = std::move(statistics);
        // Finds mistakes now and not when it is read.
        auto fields = [this]() -> base::Result<std::vector<tables::Field>> {
            const OthersMayRun while_it_reads;
            TRAINDBG_ASSIGN_OR_RETURN(const std::unique_ptr<tables::TableReader> reader, open());
            return reader->fields();
        }();
        fields_ = value_or_raise(std::move(fields));
    }

    std::vector<std::string> columns() const {
        std::vector<std::string> out;
        for (const tables::Field& field : fields_) out.emplace_back(field.name);
        return out;
    }

    nb::object schema() const {
        auto schema = std::make_unique<ArrowSchema>();
        if (!tables::to_arrow_schema(fields_, schema.get())) raise_no_memory();
        return to_capsule(std::move(schema), kSchemaCapsule);
    }

    nb::object stream(const nb::object& requested_schema, std::uint64_t receiver) const {
        check_request(requested_schema);
        using Stream = std::unique_ptr<ArrowArrayStream>;
        auto opened = [&]() -> base::Result<Stream> {
            const OthersMayRun while_it_reads;
            TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<tables::TableReader> reader, open());
            return to_patient_stream(std::make_unique<TellingReader>(std::move(reader), met_, receiver),
                                     files_);
        }();
        Stream stream = value_or_raise(std::move(opened));
        if (!stream) raise_no_memory();
        return to_capsule(std::move(stream), kStreamCapsule);
    }

    nb::list damage() const {
        std::vector<read::Damage> places;
        {
            const std::scoped_lock lock(met_->mutex);
            places = met_->places;
        }
        return to_list(places);
    }

  private:
    [[nodiscard]] base::Result<std::unique_ptr<tables::TableReader>> open() const {
        return tables::TableReader::open(path_, kind_, selection_, *files_);
    }

    // A consumer may ask for other representations, which a producer need not have; what it may not do is
    // to ask for other columns.
    void check_request(const nb::object& request) const {
        if (request.is_none()) return;
        const auto* const schema =
            static_cast<const ArrowSchema*>(PyCapsule_GetPointer(request.ptr(), kSchemaCapsule));
        if (schema == nullptr) throw nb::python_error();
        bool fits = schema->release != nullptr && std::strcmp(schema->format, "+s") == 0 &&
                    schema->n_children == static_cast<std::int64_t>(fields_.size());
        for (std::size_t i = 0; fits && i < fields_.size(); ++i) {
            const char* const name = schema->children[i]->name;
            fits = name != nullptr && fields_[i].name == name;
        }
        if (!fits)
            raise({base::Code::kInvalidArgument,
                   "requested_schema: it must have the columns of this table, in their order"});
    }

    RunFiles files_;
    std::string path_;
    tables::TableKind kind_;
    tables::Selection selection_;
    std::vector<tables::Field> fields_;
    std::shared_ptr<MetDamage> met_ = std::make_shared<MetDamage>();
};

}  // namespace

void bind_tables(nb::module_& module) {
    module.def("table_names", [] {
        std::vector<std::string> out;
        for (const tables::TableInfo& table : tables::all_tables()) out.emplace_back(table.name);
        return out;
    });
    nb::class_<Table>(module, "Table", "A table of a run; read through Arrow.")
        .def(nb::init<const RunFiles&, std::string, const std::string&,
                      std::optional<std::vector<std::string>>, std::vector<std::string>,
                      const std::optional<std::string>&, std::uint64_t, std::uint64_t,
                      std::optional<model::WorkerId>, std::vector<std::string>>(),
             "files"_a, "path"_a, "name"_a, "names"_a.none(), "collections"_a, "mode"_a.none(),
             "first_step"_a, "end_step"_a, "worker"_a.none(), "statistics"_a)
        .def_prop_ro("columns", &Table::columns)
        .def("schema", &Table::schema, nb::sig("def schema(self) -> typing.Any"))
        .def(
            "stream", &Table::stream,
            nb::sig("def stream(self, requested_schema: typing.Any = None, receiver: int = 0) -> typing.Any"),
            "requested_schema"_a = nb::none(), "receiver"_a = 0)
        .def("damage", &Table::damage, nb::sig("def damage(self) -> list[dict[str, typing.Any]]"));
}

}  // namespace traindbg::bindings
