// Runs, opened for reading. Series come as NumPy arrays; facts as JSON, which Python takes apart.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "bindings.h"
#include "errors.h"
#include "run_files.h"
#include "tensor_access.h"
#include "traindbg/model/json.h"
#include "traindbg/read/merged_series.h"
#include "traindbg/read/run.h"
#include "traindbg/reduce/reducer.h"
#include "waiting.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace traindbg::bindings {
namespace {

using base::Result;
using base::Status;
using model::Mode;
using model::Statistics;

template <typename T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

using Bytes = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>;

// Looks until that gives true or the time is up, sleeping on `descriptor` between two looks. Other threads of
// Python run meanwhile, and may use the run. Ctrl-C is heard.
template <typename Look, typename Descriptor>
bool look_until(double timeout_seconds, const Look& look, const Descriptor& descriptor) {
    using Clock = std::chrono::steady_clock;
    const auto patience =
        std::chrono::nanoseconds(static_cast<std::int64_t>(std::clamp(timeout_seconds, 0.0, 1e9) * 1e9));
    const Clock::time_point deadline = Clock::now() + patience;
    for (;;) {
        if (look()) return true;
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        if (left <= left.zero()) return false;
        pollfd events{descriptor(), POLLIN, 0};  // a negative descriptor is ignored: a plain sleep
        const int longest = events.fd < 0 ? 20 : 100;
        {
            const OthersMayRun while_it_sleeps;
            ::poll(&events, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 1, longest)));
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
}

template <typename T>
Array<T> to_array(std::vector<T> values) {
    auto kept = std::make_unique<std::vector<T>>(std::move(values));
    T* data = kept->data();
    const std::size_t size = kept->size();
    nb::capsule owner(kept.get(), [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
    static_cast<void>(kept.release());  // the capsule owns it now
    return Array<T>(data, {size}, owner);
}

// Bytes are unsigned numbers to NumPy.
Array<std::uint8_t> to_array(base::ByteBuffer bytes) {
    auto kept = std::make_unique<base::ByteBuffer>(std::move(bytes));
    auto* data = reinterpret_cast<std::uint8_t*>(kept->data());
    const std::size_t size = kept->size();
    nb::capsule owner(kept.get(),
                      [](void* buffer) noexcept { delete static_cast<base::ByteBuffer*>(buffer); });
    static_cast<void>(kept.release());  // the capsule owns it now
    return Array<std::uint8_t>(data, {size}, owner);
}

Mode mode_or_raise(const std::string& word) {
    if (const auto mode = model::parse_mode(word)) return *mode;
    raise({base::Code::kInvalidArgument, "mode '" + word + "': use train, eval, predict or global"});
}

// A tensor's numbers at one step.
struct Sample {
    Statistics statistics;
    model::UnitStatistics units;
};

// One step of one worker, with names instead of ids; owns everything.
struct Step {
    model::WorkerId worker = 0;
    std::string mode;
    model::StepIndex step = 0;
    std::int64_t wall_nanos = 0;
    std::uint64_t step_nanos = 0;
    std::uint64_t capture_nanos = 0;
    std::map<std::string, double> scalars;
    std::map<std::string, Sample> tensors;
    std::map<std::string, model::ClassCounts> classes;
};

Step to_step(model::WorkerId worker, const model::StepRecord& record, const model::TensorTable& table) {
    Step out;
    out.worker = worker;
    out.mode = std::string(model::to_string(record.mode));
    out.step = record.step;
    out.wall_nanos = record.wall_nanos;
    out.step_nanos = record.step_nanos;
    out.capture_nanos = record.capture_nanos;
    for (const model::ScalarSample& sample : record.scalars)
        if (sample.tensor < table.size()) out.scalars[table[sample.tensor].name] = sample.value;
    for (const model::TensorSample& sample : record.tensors)
        if (sample.tensor < table.size())
            out.tensors[table[sample.tensor].name] = {sample.statistics, sample.units};
    for (const model::ClassSample& sample : record.classes)
        if (sample.tensor < table.size()) out.classes[table[sample.tensor].name] = sample.counts;
    return out;
}

nb::dict info_dict(const model::TensorInfo& info) {
    nb::dict out;
    out["name"] = info.name;
    out["role"] = std::string(model::to_string(info.role));
    out["collection"] = std::string(model::collection_of(info.role));
    out["activation"] = std::string(model::to_string(info.activation));
    out["module"] = info.module;
    out["module_type"] = info.module_type;
    out["layer"] = info.layer;
    out["dtype"] = std::string(tensor::to_string(info.dtype));
    out["shape"] = nb::tuple(nb::cast(info.shape));
    out["collections"] = info.collections;
    out["is_number"] = model::is_number(info);
    if (info.shard) {
        nb::dict shard;
        shard["whole_shape"] = nb::tuple(nb::cast(info.shard->whole_shape));
        shard["offset"] = nb::tuple(nb::cast(info.shard->offset));
        shard["placement"] = info.shard->placement;
        out["shard"] = std::move(shard);
    }
    return out;
}

template <typename Opened>
std::unique_ptr<Opened> open_or_raise(const std::string& path, const RunFiles& files) {
    auto opened = [&] {
        const OthersMayRun while_it_reads;
        return Opened::open(path, *files);
    }();
    return value_or_raise(std::move(opened));
}

// Any number of Python threads may use one: they take turns. Whatever may have to read waits without the GIL.
class RunReader {
  public:
    RunReader(const std::string& path, const std::string& program)
        : files_(path, program), run_(open_or_raise<read::Run>(path, files_)), path_(run_->path()) {}
    RunReader(const RunReader&) = delete;
    RunReader& operator=(const RunReader&) = delete;
    ~RunReader() {
        const OthersMayRun while_files_are_closed;
        run_.reset();
    }

    [[nodiscard]] const RunFiles& files() const noexcept { return files_; }
    const std::string& path() const noexcept { return path_; }

    // A file of the run's own directory; nothing when it is not there.
    std::optional<nb::bytes> file(const std::string& name) {
        const auto bytes = [&] {
            const OthersMayRun while_it_reads;
            return storage::read_whole(*files_, path_ + "/" + name);
        }();
        if (bytes.status().code() == base::Code::kNotFound) return std::nullopt;
        const base::ByteBuffer content = value_or_raise(bytes);
        return nb::bytes(content.data(), content.size());
    }

    bool is_complete() {
        return turns_.look([this] { return run_->is_complete(); });
    }
    bool refresh() {
        return value_or_raise(turns_.wait_for([this] { return run_->refresh(); }));
    }
    std::string meta() {
        return turns_.look([this] { return model::to_json(run_->meta()).dump(); });
    }
    std::optional<std::string> end() {
        const std::optional<model::RunEnd> end = turns_.wait_for([this] { return run_->end(); });
        if (!end) return std::nullopt;
        return model::to_json(*end).dump();
    }
    std::vector<model::WorkerId> workers() {
        return turns_.look([this] { return run_->workers(); });
    }
    std::string worker_meta(model::WorkerId worker) {
        return value_or_raise(turns_.look([&]() -> Result<std::string> {
            TRAINDBG_RETURN_IF_ERROR(check(worker));
            return model::to_json(run_->worker_meta(worker)).dump();
        }));
    }
    nb::list tensors(model::WorkerId worker) {
        const model::TensorTable table = value_or_raise(turns_.look([&]() -> Result<model::TensorTable> {
            TRAINDBG_RETURN_IF_ERROR(check(worker));
            return run_->tensors(worker);
        }));
        nb::list out;
        for (const model::TensorInfo& info : table) out.append(info_dict(info));
        return out;
    }
    std::vector<std::string> tensor_names() {
        return turns_.look([this] { return run_->tensor_names(); });
    }
    Array<std::uint64_t> steps(const std::string& mode) {
        const Mode wanted = mode_or_raise(mode);
        return to_array(turns_.wait_for([&] { return run_->steps(wanted); }));
    }

    nb::list damage() {
        return to_list(turns_.look([this] { return run_->damage(); }));
    }
    nb::list events() {
        nb::list out;
        for (const read::RunEvent& event : turns_.look([this] { return run_->events(); })) {
            nb::dict entry;
            entry["worker"] = event.worker;
            entry["wall_nanos"] = event.wall_nanos;
            entry["kind"] = event.kind;
            entry["json"] = event.json;
            out.append(entry);
        }
        return out;
    }
    nb::dict totals() {
        const read::RunTotals totals = turns_.wait_for([this] { return run_->totals(); });
        nb::dict out;
        out["steps"] = totals.steps;
        out["bytes"] = totals.bytes;
        out["step_nanos"] = totals.step_nanos;
        out["capture_nanos"] = totals.capture_nanos;
        out["steps_dropped"] = totals.steps_dropped;
        out["raw_tensors_dropped"] = totals.raw_tensors_dropped;
        return out;
    }

    nb::tuple series(model::WorkerId worker, const std::string& tensor, const std::string& statistic,
                     const std::string& mode) {
        const Mode wanted = mode_or_raise(mode);
        std::vector<std::uint64_t> steps;
        std::vector<double> values;
        raise_if_error(turns_.wait_for([&]() -> Status {
            TRAINDBG_RETURN_IF_ERROR(check(worker));
            TRAINDBG_ASSIGN_OR_RETURN(const std::vector<read::SeriesPoint> points,
                                      run_->series(worker, tensor, statistic));
            for (const read::SeriesPoint& point : points) {
                if (point.mode != wanted) continue;
                steps.push_back(point.step);
                values.push_back(point.value);
            }
            return Status::ok();
        }));
        return nb::make_tuple(to_array(std::move(steps)), to_array(std::move(values)));
    }

    // (steps, values, steps left out) over all workers.
    nb::tuple merged_series(const std::string& tensor, const std::string& statistic,
                            const std::string& mode) {
        const Mode wanted = mode_or_raise(mode);
        const read::MergedSeries merged =
            value_or_raise(turns_.wait_for([&] { return read::merged_series(*run_, tensor, statistic); }));
        std::vector<std::uint64_t> steps;
        std::vector<double> values;
        std::vector<std::uint64_t> left_out;
        for (const read::SeriesPoint& point : merged.points) {
            if (point.mode != wanted) continue;
            steps.push_back(point.step);
            values.push_back(point.value);
        }
        for (const auto& [its_mode, step] : merged.left_out)
            if (its_mode == wanted) left_out.push_back(step);
        return nb::make_tuple(to_array(std::move(steps)), to_array(std::move(values)),
                              to_array(std::move(left_out)));
    }

    std::optional<Step> step(model::WorkerId worker, const std::string& mode, model::StepIndex step) {
        const Mode wanted = mode_or_raise(mode);
        return value_or_raise(turns_.wait_for([&]() -> Result<std::optional<Step>> {
            TRAINDBG_RETURN_IF_ERROR(check(worker));
            TRAINDBG_ASSIGN_OR_RETURN(const auto record, run_->step(worker, wanted, step));
            if (!record) return std::optional<Step>();
            return std::optional(to_step(worker, *record, run_->tensors(worker)));
        }));
    }

    // (dtype, shape, bytes) of a whole tensor, which lies where it is as long as the array lives; None
    // when it was not kept at that step.
    nb::object raw(model::WorkerId worker, const std::string& mode, model::StepIndex step,
                   const std::string& tensor) {
        const Mode wanted = mode_or_raise(mode);
        auto found = value_or_raise(turns_.wait_for([&]() -> Result<std::optional<read::MappedTensor>> {
            TRAINDBG_RETURN_IF_ERROR(check(worker));
            return run_->map_raw(worker, wanted, step, tensor);
        }));
        if (!found) return nb::none();
        std::unique_ptr<storage::Mapping> mapping = std::move(found->mapping);
        const base::ByteSpan bytes = mapping->bytes();
        nb::capsule owner(mapping.get(),
                          [](void* kept) noexcept { delete static_cast<storage::Mapping*>(kept); });
        static_cast<void>(mapping.release());  // the capsule owns it now
        return nb::make_tuple(
            std::string(tensor::to_string(found->dtype)), nb::tuple(nb::cast(found->shape)),
            nb::cast(Bytes(reinterpret_cast<const std::uint8_t*>(bytes.data()), {bytes.size()}, owner)));
    }

    // (least, largest, share of zeros) by channel, float32; None when that was not recorded at that step.
    nb::object channels(model::WorkerId worker, const std::string& mode, model::StepIndex step,
                        const std::string& tensor) {
        auto found = sample_at(worker, mode, step, tensor, &model::StepRecord::channels);
        if (!found) return nb::none();
        model::ChannelStatistics& of = found->channels;
        return nb::make_tuple(to_array(std::move(of.min)), to_array(std::move(of.max)),
                              to_array(std::move(of.zero)));
    }

    // (fingerprint, product); None when that was not recorded at that step.
    nb::object digest(model::WorkerId worker, const std::string& mode, model::StepIndex step,
                      const std::string& tensor) {
        const auto found = sample_at(worker, mode, step, tensor, &model::StepRecord::digests);
        if (!found) return nb::none();
        return nb::make_tuple(found->digest.fingerprint, found->digest.product);
    }

    Array<std::uint64_t> raw_steps(model::WorkerId worker, const std::string& mode,
                                   const std::string& tensor) {
        const Mode wanted = mode_or_raise(mode);
        return to_array(value_or_raise(turns_.wait_for([&]() -> Result<std::vector<model::StepIndex>> {
            TRAINDBG_RETURN_IF_ERROR(check(worker));
            return run_->raw_steps(worker, tensor, wanted);
        })));
    }

    // (dtype, shape, steps, bytes) of a whole tensor at all steps at which it was kept.
    nb::tuple raw_series(model::WorkerId worker, const std::string& mode, const std::string& tensor) {
        const Mode wanted = mode_or_raise(mode);
        read::RawSeries series = value_or_raise(turns_.wait_for([&]() -> Result<read::RawSeries> {
            TRAINDBG_RETURN_IF_ERROR(check(worker));
            return run_->raw_series(worker, tensor, wanted);
        }));
        std::vector<std::uint64_t> steps(series.steps.begin(), series.steps.end());
        return nb::make_tuple(std::string(tensor::to_string(series.dtype)), nb::tuple(nb::cast(series.shape)),
                              to_array(std::move(steps)), to_array(std::move(series.bytes)));
    }

    bool wait(double timeout_seconds) {
        return look_until(
            timeout_seconds,
            [this] {
                return value_or_raise(
                    turns_.wait_for([this] { return run_->wait(std::chrono::nanoseconds(0)); }));
            },
            [this] { return turns_.look([this] { return run_->wake_descriptor(); }); });
    }
    std::vector<model::WorkerId> missing_workers() {
        return turns_.wait_for([this] { return run_->missing_workers(); });
    }
    void verify() {
        raise_if_error(turns_.wait_for([this] { return run_->verify(); }));
    }

  private:
    // What a list of a step holds of a tensor.
    template <typename Kept>
    std::optional<Kept> sample_at(model::WorkerId worker, const std::string& mode, model::StepIndex step,
                                  const std::string& tensor, std::vector<Kept> model::StepRecord::*samples) {
        const Mode wanted = mode_or_raise(mode);
        return value_or_raise(turns_.wait_for([&]() -> Result<std::optional<Kept>> {
            TRAINDBG_RETURN_IF_ERROR(check(worker));
            TRAINDBG_ASSIGN_OR_RETURN(auto record, run_->step(worker, wanted, step));
            if (!record) return std::optional<Kept>();
            const model::TensorTable& table = run_->tensors(worker);
            for (Kept& sample : (*record).*samples)
                if (sample.tensor < table.size() && table[sample.tensor].name == tensor)
                    return std::optional(std::move(sample));
            return std::optional<Kept>();
        }));
    }

    Status check(model::WorkerId worker) const {
        const std::vector<model::WorkerId> workers = run_->workers();
        if (std::find(workers.begin(), workers.end(), worker) != workers.end()) return Status::ok();
        return {base::Code::kNotFound,
                path_ + ": worker " + std::to_string(worker) + " has recorded nothing"};
    }

    const RunFiles files_;  // must outlive the run
    Turns turns_;           // of those who use the run
    std::unique_ptr<read::Run> run_;
    const std::string path_;
};

// As RunReader: threads take turns, and wait without the GIL.
class Tail {
  public:
    explicit Tail(const RunReader& reader)
        : files_(reader.files()), tail_(open_or_raise<read::RunTail>(reader.path(), files_)) {}
    Tail(const Tail&) = delete;
    Tail& operator=(const Tail&) = delete;
    ~Tail() {
        const OthersMayRun while_files_are_closed;
        tail_.reset();
    }

    std::optional<Step> next(double timeout_seconds) {
        std::optional<Step> step;
        look_until(
            timeout_seconds,
            [&] {
                return value_or_raise(turns_.wait_for([&]() -> Result<bool> {
                    TRAINDBG_ASSIGN_OR_RETURN(const std::optional<model::StepView> view,
                                              tail_->next(std::chrono::nanoseconds(0)));
                    if (view) step = to_step(view->worker, *view->record, *view->tensors);
                    return view.has_value() || tail_->ended();
                }));
            },
            [this] { return turns_.look([this] { return tail_->wake_descriptor(); }); });
        return step;
    }
    bool ended() {
        return turns_.look([this] { return tail_->ended(); });
    }
    nb::list damage() {
        return to_list(turns_.look([this] { return tail_->damage(); }));
    }
    void finish_when_idle() {
        turns_.look([this] { tail_->finish_when_idle(); });
    }

  private:
    const RunFiles files_;  // the reader's: in a bucket, both must see the same moment
    Turns turns_;
    std::unique_ptr<read::RunTail> tail_;
};

}  // namespace

nb::list to_list(const std::vector<read::Damage>& places) {
    nb::list out;
    for (const read::Damage& damage : places) {
        nb::dict entry;
        entry["file"] = damage.file;
        entry["offset"] = damage.offset;
        entry["bytes"] = damage.bytes;
        entry["what"] = damage.what;
        entry["tail"] = damage.tail;
        entry["newer"] = damage.newer;
        out.append(entry);
    }
    return out;
}

void bind_reader(nb::module_& module) {
    nb::class_<Statistics>(module, "Statistics",
                           "What one pass over a tensor tells; moments of finite values.")
        .def(
            "__init__",
            [](Statistics* self, std::uint64_t count, std::uint64_t nan, std::uint64_t positive_infinite,
               std::uint64_t negative_infinite, std::uint64_t zero, double min, double max, double mean,
               double std, double l1, double l2) {
                new (self) Statistics{
                    count, nan, positive_infinite, negative_infinite, zero, min, max, mean, std, l1, l2};
            },
            "count"_a = 0, "nan"_a = 0, "positive_infinite"_a = 0, "negative_infinite"_a = 0, "zero"_a = 0,
            "min"_a = 0.0, "max"_a = 0.0, "mean"_a = 0.0, "std"_a = 0.0, "l1"_a = 0.0, "l2"_a = 0.0)
        .def_ro("count", &Statistics::count)
        .def_ro("nan", &Statistics::nan)
        .def_ro("positive_infinite", &Statistics::positive_infinite)
        .def_ro("negative_infinite", &Statistics::negative_infinite)
        .def_ro("zero", &Statistics::zero)
        .def_ro("min", &Statistics::min)
        .def_ro("max", &Statistics::max)
        .def_ro("mean", &Statistics::mean)
        .def_ro("std", &Statistics::std, "population standard deviation, as numpy.std")
        .def_ro("l1", &Statistics::l1)
        .def_ro("l2", &Statistics::l2)
        .def("__repr__",
             [](const Statistics& self) { return "Statistics(" + model::to_json(self).dump() + ")"; });
    nb::class_<Sample>(module, "Sample", "A tensor's numbers at one step.")
        .def_ro("statistics", &Sample::statistics)
        .def_prop_ro("units", [](const Sample& self) { return self.units.units; })
        .def_prop_ro("inactive_units", [](const Sample& self) { return self.units.inactive_units; })
        .def_prop_ro("low", [](const Sample& self) { return self.units.low; })
        .def_prop_ro("high", [](const Sample& self) { return self.units.high; });
    nb::class_<model::ClassCounts>(module, "ClassCounts", "How often each class was label, prediction, both.")
        .def_ro("labels", &model::ClassCounts::labels)
        .def_ro("predictions", &model::ClassCounts::predictions)
        .def_ro("hits", &model::ClassCounts::hits);
    nb::class_<Step>(module, "Step", "All that one worker recorded about one step.")
        .def_ro("worker", &Step::worker)
        .def_ro("mode", &Step::mode)
        .def_ro("step", &Step::step)
        .def_ro("wall_nanos", &Step::wall_nanos)
        .def_ro("step_nanos", &Step::step_nanos)
        .def_ro("capture_nanos", &Step::capture_nanos)
        .def_ro("scalars", &Step::scalars)
        .def_ro("tensors", &Step::tensors)
        .def_ro("classes", &Step::classes)
        .def("__repr__", [](const Step& self) {
            return "<Step " + self.mode + " " + std::to_string(self.step) + " of worker " +
                   std::to_string(self.worker) + ": " + std::to_string(self.scalars.size()) + " scalars, " +
                   std::to_string(self.tensors.size()) + " tensors>";
        });

    nb::class_<RunFiles>(module, "RunFiles", "Where a run's files are: on this machine, or in a bucket.")
        .def(nb::init<const std::string&, const std::string&>(), "path"_a, "program"_a = "");
    nb::class_<RunReader>(module, "RunReader",
                          "A run, opened for reading. Threads take turns, and wait without the GIL.")
        .def(nb::init<const std::string&, const std::string&>(), "path"_a, "program"_a = "",
             "`program`: the native program, which reads runs in buckets.")
        .def_prop_ro("path", &RunReader::path)
        .def_prop_ro("files", &RunReader::files)
        .def("file", &RunReader::file, "name"_a, "A file of the run's directory; None when it is not there.")
        .def_prop_ro("is_complete", &RunReader::is_complete)
        .def("refresh", &RunReader::refresh, "Reads what was appended since; whether there was anything.")
        .def("meta", &RunReader::meta)
        .def("end", &RunReader::end)
        .def("workers", &RunReader::workers)
        .def("worker_meta", &RunReader::worker_meta, "worker"_a)
        .def("tensors", &RunReader::tensors,
             nb::sig("def tensors(self, worker: int) -> list[dict[str, typing.Any]]"), "worker"_a)
        .def("tensor_names", &RunReader::tensor_names)
        .def("steps", &RunReader::steps,
             nb::sig("def steps(self, mode: str) -> numpy.typing.NDArray[numpy.uint64]"), "mode"_a)
        .def("damage", &RunReader::damage, nb::sig("def damage(self) -> list[dict[str, typing.Any]]"))
        .def("events", &RunReader::events, nb::sig("def events(self) -> list[dict[str, typing.Any]]"))
        .def("totals", &RunReader::totals, nb::sig("def totals(self) -> dict[str, int]"))
        .def("series", &RunReader::series,
             nb::sig("def series(self, worker: int, tensor: str, statistic: str, mode: str) -> "
                     "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.float64]]"),
             "worker"_a, "tensor"_a, "statistic"_a, "mode"_a)
        .def("merged_series", &RunReader::merged_series,
             nb::sig("def merged_series(self, tensor: str, statistic: str, mode: str) -> "
                     "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.float64], "
                     "numpy.typing.NDArray[numpy.uint64]]"),
             "tensor"_a, "statistic"_a, "mode"_a)
        .def("step", &RunReader::step, "worker"_a, "mode"_a, "step"_a)
        .def("raw", &RunReader::raw,
             nb::sig("def raw(self, worker: int, mode: str, step: int, tensor: str) -> tuple[str, tuple[int, "
                     "...], numpy.typing.NDArray[numpy.uint8]] | None"),
             "worker"_a, "mode"_a, "step"_a, "tensor"_a)
        .def("channels", &RunReader::channels,
             nb::sig("def channels(self, worker: int, mode: str, step: int, tensor: str) -> "
                     "tuple[numpy.typing.NDArray[numpy.float32], numpy.typing.NDArray[numpy.float32], "
                     "numpy.typing.NDArray[numpy.float32]] | None"),
             "worker"_a, "mode"_a, "step"_a, "tensor"_a)
        .def("digest", &RunReader::digest,
             nb::sig("def digest(self, worker: int, mode: str, step: int, tensor: str) -> "
                     "tuple[int, float] | None"),
             "worker"_a, "mode"_a, "step"_a, "tensor"_a)
        .def("raw_steps", &RunReader::raw_steps,
             nb::sig("def raw_steps(self, worker: int, mode: str, tensor: str) -> "
                     "numpy.typing.NDArray[numpy.uint64]"),
             "worker"_a, "mode"_a, "tensor"_a)
        .def("raw_series", &RunReader::raw_series,
             nb::sig(
                 "def raw_series(self, worker: int, mode: str, tensor: str) -> tuple[str, tuple[int, ...], "
                 "numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.uint8]]"),
             "worker"_a, "mode"_a, "tensor"_a)
        .def("wait", &RunReader::wait, "timeout"_a,
             "Reads what was appended since, waiting for it; whether anything came.")
        .def("missing_workers", &RunReader::missing_workers)
        .def("verify", &RunReader::verify, "Reads every byte; `damage` holds what is wrong afterwards.");
    nb::class_<Tail>(module, "Tail", "Follows a run that is being written.")
        .def(nb::init<const RunReader&>(), "reader"_a)
        .def("next", &Tail::next, "timeout"_a, "The next step, or None when none came in `timeout` seconds.")
        .def_prop_ro("ended", &Tail::ended)
        .def("damage", &Tail::damage, nb::sig("def damage(self) -> list[dict[str, typing.Any]]"))
        .def("finish_when_idle", &Tail::finish_when_idle);
    module.def("statistic_names", [] { return read::Run::statistic_names(); });
    module.def(
        "statistics",
        [](nb::handle tensor) {
            TensorReader reader;
            tensor::TensorView view;
            if (reader.read(tensor.ptr(), view) != Readable::kYes)
                raise({base::Code::kInvalidArgument,
                       "statistics: not a dense tensor in this process's memory"});
            return value_or_raise(reduce::statistics(view));
        },
        "tensor"_a.none(), "One pass over a NumPy array or CPU tensor of any shape.");
}

}  // namespace traindbg::bindings
