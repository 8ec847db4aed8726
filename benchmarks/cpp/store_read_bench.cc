// What reading a run costs: opening it, one statistic over all steps, all values of a tensor, a scan;
// and how much memory it needs, for runs that are larger than memory.
//
//   store_read_bench [--json] [SECTION ...]      (store_read_bench --help names the sections)
//
// Makes its runs in a temporary directory ($TMPDIR): of logs alone, sealed, and as a training leaves
// them while it runs, sealed but for the part under way, all with the same numbers. Times are of this
// thread's CPU and of the wall, minimum / median / maximum of several repetitions, each in a fresh
// `Run`; "cold" ones are the first in a fresh process. Files are in the page cache if they fit.
//
// Memory is that of a fresh process, told apart: "anonymous" is what it allocated and wrote to (RssAnon
// of /proc/self/status, the largest of those looked at after the opening, each series and some hundred
// times in a scan), "files" is the largest of what it has mapped of files (RssFile: its own program, the
// libraries, and mappings of the run, where it is read that way), which the system can take back.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "traindbg/base/clock.h"
#include "traindbg/base/crc32c.h"
#include "traindbg/base/format.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/frame_scanner.h"
#include "traindbg/format/records.h"
#include "traindbg/format/segment.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg {
namespace {

using base::ByteWriter;

constexpr std::size_t kPartBytes = std::size_t{16} << 20;
std::string made_in;  // the directory of all runs

void check(const base::Status& status) {
    if (status.is_ok()) return;
    std::fprintf(stderr, "store_read_bench: %s\n", status.message().c_str());
    std::exit(1);
}

double cpu_seconds() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
double wall_seconds() { return static_cast<double>(base::monotonic_nanos()) * 1e-9; }

// Which parts of a run are sealed; of a training that runs it is all but the last.
enum class Sealed { kNone, kAllButTheLast, kAll };

const char* word_of(Sealed sealed) {
    switch (sealed) {
        case Sealed::kNone: return "unsealed";
        case Sealed::kAllButTheLast: return "the last part unsealed";
        case Sealed::kAll: return "sealed";
    }
    return "";
}

struct Shape {
    std::uint64_t steps = 0;
    std::uint32_t tensors = 0;
    Sealed sealed = Sealed::kNone;
    bool histograms = false;
};

// Numbers that move like those of a training: each tensor has a level that drifts, and noise around it.
class Records {
  public:
    explicit Records(const Shape& shape) : shape_(shape), levels_(shape.tensors, 0.01F), random_(1) {
        for (float& level : levels_) level = std::exp(noise(2));
    }

    model::TensorTable table() const {
        model::TensorTable table(shape_.tensors + 1);
        for (std::uint32_t id = 0; id < table.size(); ++id) {
            table[id].id = id;
            table[id].name = id == shape_.tensors ? "loss" : base::format("gradient/layers.{}.weight", id);
            table[id].role = id == shape_.tensors ? model::Role::kLoss : model::Role::kGradient;
            table[id].module = base::format("layers.{}", id);
            table[id].module_type = "Linear";
            table[id].dtype = tensor::DType::kFloat32;
            if (id != shape_.tensors) table[id].shape = {256, 64};
        }
        return table;
    }

    const model::StepRecord& next() {
        record_.step = record_.sequence = step_++;
        record_.wall_nanos = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(step_) * 31'000'000 +
                             static_cast<std::int64_t>(random_() % 1'000'000);
        record_.monotonic_nanos = record_.wall_nanos - 1'699'000'000'000'000'000;
        record_.step_nanos = 31'000'000 + random_() % 500'000;
        record_.capture_nanos = 200'000 + random_() % 20'000;
        record_.tensors.resize(shape_.tensors);
        record_.histograms.clear();
        for (std::uint32_t id = 0; id < shape_.tensors; ++id) {
            levels_[id] *= std::exp(noise(0.01F));
            const float level = levels_[id];
            const auto about = [&](float factor) {
                return static_cast<double>(level * factor * (1 + noise(0.05F)));
            };
            model::TensorSample& sample = record_.tensors[id];
            sample.tensor = id;
            sample.statistics = {16384,
                                 0,
                                 0,
                                 0,
                                 random_() % 4,
                                 -about(4),
                                 about(4),
                                 about(0.01F) * (random_() % 2 == 0 ? 1 : -1),
                                 about(1),
                                 about(13000),
                                 about(128)};
            if (shape_.histograms) {
                model::HistogramSample histogram;
                histogram.tensor = id;
                const int center = model::bin_of(static_cast<double>(level));
                for (int k = -16; k < 16; ++k) {
                    const auto count =
                        static_cast<std::uint64_t>(1500 * std::exp(-k * k / 60.0) * (1 + noise(0.1F)));
                    if (count == 0) continue;
                    histogram.bins.push_back({static_cast<std::int16_t>(center + k), count});
                }
                std::vector<model::HistogramBin> negative;
                for (auto it = histogram.bins.rbegin(); it != histogram.bins.rend(); ++it)
                    negative.push_back({static_cast<std::int16_t>(-it->bin), it->count + random_() % 5});
                histogram.bins.insert(histogram.bins.begin(), negative.begin(), negative.end());
                record_.histograms.push_back(std::move(histogram));
            }
        }
        record_.scalars = {
            {shape_.tensors, static_cast<double>(2 * std::exp(-1e-4 * static_cast<double>(step_))) +
                                 static_cast<double>(noise(0.05F))}};
        return record_;
    }

  private:
    float noise(float sigma) { return sigma * normal_(random_); }

    Shape shape_;
    std::vector<float> levels_;
    std::mt19937 random_;
    std::normal_distribution<float> normal_{0, 1};
    std::uint64_t step_ = 0;
    model::StepRecord record_;
};

struct Made {
    std::uint64_t bytes = 0;
    double seal_cpu = 0;
    std::uint64_t last_part_bytes = 0;  // of its log
};

// Writes parts as the writer does, without its threads.
class PartFiles {
  public:
    PartFiles(std::string root, Sealed sealed) : layout_{std::move(root)}, sealed_(sealed) {
        storage::FileSystem& files = storage::posix_file_system();
        check(files.create_directories(layout_.worker_directory(0)));
        check(files.put_atomic(layout_.run_json(), base::as_bytes("{}")));
    }

    void begin(const model::TensorTable& table) {
        table_ = table;
        header_.salt = 0x1234567 + part_;
        header_.part = part_;
        log_.clear();
        sequence_ = 2;
        format::append_file_header(log_, header_);
        for (std::size_t first = 0; first < table.size(); first += 1000) {
            payload_.clear();
            format::encode_schema(
                payload_,
                {table.begin() + static_cast<std::ptrdiff_t>(first),
                 table.begin() + static_cast<std::ptrdiff_t>(std::min(table.size(), first + 1000))});
            add(format::FrameType::kSchema);
        }
    }
    void step(const model::StepRecord& record, std::span<const format::RawPlace> places = {}) {
        payload_.clear();
        format::encode_step(payload_, record, table_, places);
        add(format::FrameType::kStep);
        ++steps_;
        if (log_.size() < kPartBytes) return;
        finish(false);
        begin(table_);
    }

    Made end() {
        finish(true);
        return made_;
    }

  private:
    void add(format::FrameType type) {
        check(format::append_frame(log_, type, sequence_++, payload_.bytes(), header_.salt));
    }
    void finish(bool is_last) {
        if (is_last) {
            payload_.clear();
            format::encode_totals(payload_, {1, steps_, 0, 0});
            add(format::FrameType::kEnd);
        }
        const bool seals = sealed_ == Sealed::kAll || (sealed_ == Sealed::kAllButTheLast && !is_last);
        made_.last_part_bytes = log_.size();
        base::ByteBuffer bytes;
        if (seals) {
            const double begin = cpu_seconds();
            format::FrameScanner scanner;
            format::SegmentBuilder builder(header_, header_.salt + 1'000'000);
            while (true) {
                const format::ScanItem item = scanner.next(
                    base::ByteSpan(log_.bytes()).subspan(static_cast<std::size_t>(scanner.position())), true);
                if (item.kind != format::ScanItem::Kind::kFrame) break;
                check(builder.add(item.frame));
            }
            auto segment = builder.finish();
            check(segment.status());
            bytes = std::move(segment).value();
            made_.seal_cpu += cpu_seconds() - begin;
        } else {
            bytes = log_.bytes();
        }
        std::ofstream file(seals ? layout_.segment(0, part_) : layout_.log(0, part_), std::ios::binary);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        made_.bytes += bytes.size();
        ++part_;
    }

    storage::RunLayout layout_;
    Sealed sealed_;
    model::TensorTable table_;
    format::FileHeader header_;
    ByteWriter log_;
    ByteWriter payload_;
    std::uint64_t sequence_ = 2;
    std::uint64_t steps_ = 0;
    std::uint32_t part_ = 0;
    Made made_;
};

Made make_run(const std::string& root, const Shape& shape) {
    Records records(shape);
    PartFiles parts(root, shape.sealed);
    parts.begin(records.table());
    for (std::uint64_t step = 0; step < shape.steps; ++step) parts.step(records.next());
    return parts.end();
}

struct Spread {
    double min = 0;
    double median = 0;
    double max = 0;
};

Spread spread_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return {values.front(), values[values.size() / 2], values.back()};
}

std::vector<std::string> rows_of_json;
bool as_json = false;

void report(const std::string& what, const char* unit, const Spread& cpu, const Spread& wall) {
    if (as_json) {
        rows_of_json.push_back(base::format(
            R"({{"what":"{}","unit":"{}","cpu":[{:.6g},{:.6g},{:.6g}],"wall":[{:.6g},{:.6g},{:.6g}]}})", what,
            unit, cpu.min, cpu.median, cpu.max, wall.min, wall.median, wall.max));
        return;
    }
    std::printf("%-66s CPU %8.3f / %8.3f / %8.3f   wall %8.3f / %8.3f / %8.3f %s\n", what.c_str(), cpu.min,
                cpu.median, cpu.max, wall.min, wall.median, wall.max, unit);
    std::fflush(stdout);
}

void report_number(const std::string& what, double value, const char* unit) {
    if (as_json) {
        rows_of_json.push_back(
            base::format(R"({{"what":"{}","unit":"{}","value":{:.6g}}})", what, unit, value));
        return;
    }
    std::printf("%-66s %10.3f %s\n", what.c_str(), value, unit);
    std::fflush(stdout);
}

void measure(const std::string& what, int repeats, const std::function<void()>& work) {
    std::vector<double> cpu;
    std::vector<double> wall;
    for (int i = 0; i < repeats; ++i) {
        const double wall_begin = wall_seconds();
        const double cpu_begin = cpu_seconds();
        work();
        cpu.push_back((cpu_seconds() - cpu_begin) * 1e3);
        wall.push_back((wall_seconds() - wall_begin) * 1e3);
    }
    report(what, "ms", spread_of(cpu), spread_of(wall));
}

std::unique_ptr<read::Run> open_run(const std::string& path) {
    auto run = read::Run::open(path);
    check(run.status());
    return std::move(run).value();
}

// ---- memory of this process

struct Memory {
    double anonymous_mib = 0;
    double files_mib = 0;

    // The larger of what it was and what it is now.
    void look() {
        std::ifstream status("/proc/self/status");
        std::string line;
        while (std::getline(status, line)) {
            if (line.rfind("RssAnon:", 0) == 0)
                anonymous_mib = std::max(anonymous_mib, std::strtod(line.c_str() + 8, nullptr) / 1024);
            if (line.rfind("RssFile:", 0) == 0)
                files_mib = std::max(files_mib, std::strtod(line.c_str() + 8, nullptr) / 1024);
        }
    }
};

// ---- what is measured

void scan(const std::string& path, bool with_raw, Memory& memory) {
    std::uint64_t seen = 0;
    std::uint64_t steps = 0;
    const std::unique_ptr<read::Run> run = open_run(path);
    memory.look();
    const std::uint64_t interval = std::max<std::uint64_t>(run->totals().steps / 500, 1);
    check(run->for_each_step(
        [&](const model::StepView& view) {
            seen += view.record->tensors.size() + view.record->raw.size();
            if (steps++ % interval == 0) memory.look();
            return true;
        },
        with_raw));
    memory.look();
    if (seen == 0 || !run->damage().empty()) {
        std::fprintf(stderr, "store_read_bench: the scan of %s went wrong\n", path.c_str());
        std::exit(1);
    }
}

// As rules and exports see a run.
void tail(const std::string& path, Memory& memory) {
    auto opened = read::RunTail::open(path);
    check(opened.status());
    (*opened)->finish_when_idle();
    std::uint64_t steps = 0;
    while (true) {
        const auto view = (*opened)->next(std::chrono::seconds(0));
        check(view.status());
        if (!view->has_value()) break;
        if (steps++ % 200 == 0) memory.look();
    }
    if (steps == 0) std::exit(1);
    memory.look();
}

// Whole tensors where they lie, of every tenth step; what else a step holds is not looked at.
void scan_mapped(const std::string& path, Memory& memory) {
    const std::unique_ptr<read::Run> run = open_run(path);
    std::uint64_t bytes = 0;
    std::vector<std::string> names;
    for (const model::TensorInfo& info : run->tensors(0))
        if (info.collections.size() == 1) names.push_back(info.name);
    for (const model::StepIndex step : run->steps(model::Mode::kTrain)) {
        if (step % 10 != 0) continue;
        for (const std::string& name : names) {
            const auto mapped = run->map_raw(0, model::Mode::kTrain, step, name);
            check(mapped.status());
            if (mapped->has_value()) bytes += (*mapped)->mapping->bytes().size();
            if (name == names.front()) memory.look();
        }
    }
    if (bytes == 0) std::exit(1);
}

void several_series(const std::string& path, Memory& memory) {
    const std::unique_ptr<read::Run> run = open_run(path);
    memory.look();
    for (int i = 0; i < 20; ++i) {
        const auto points = run->series(0, base::format("gradient/layers.{}.weight", 47 * i % 1000),
                                        i % 2 == 0 ? "l2" : "zero");
        check(points.status());
        if (points->empty()) std::exit(1);
        memory.look();
    }
}

// What a fresh process does: this program, started again with `--child WORK PATH`.
void work_of_child(const std::string& work, const std::string& path, Memory& memory) {
    if (work == "open") open_run(path);
    else if (work == "scan") scan(path, false, memory);
    else if (work == "scan_raw") scan(path, true, memory);
    else if (work == "scan_mapped") scan_mapped(path, memory);
    else if (work == "tail") tail(path, memory);
    else if (work == "several") several_series(path, memory);
    else check(open_run(path)->series(0, "gradient/layers.2.weight", "l2").status());
}

struct Child {
    double cpu_millis = 0;
    double wall_millis = 0;
    Memory memory;
};

int run_child(const std::string& work, const std::string& path) {
    Memory memory;
    const double wall_begin = wall_seconds();
    const double cpu_begin = cpu_seconds();
    work_of_child(work, path, memory);
    const double cpu = (cpu_seconds() - cpu_begin) * 1e3;
    const double wall = (wall_seconds() - wall_begin) * 1e3;
    memory.look();
    std::printf("%.9g %.9g %.9g %.9g\n", cpu, wall, memory.anonymous_mib, memory.files_mib);
    return 0;
}

Child in_child(const std::string& work, const std::string& path) {
    const std::string command = base::format("/proc/{}/exe --child {} '{}'", ::getpid(), work, path);
    FILE* const output = ::popen(command.c_str(), "r");
    Child result;
    if (output == nullptr ||
        std::fscanf(output, "%lf %lf %lf %lf", &result.cpu_millis, &result.wall_millis,
                    &result.memory.anonymous_mib, &result.memory.files_mib) != 4 ||
        ::pclose(output) != 0) {
        std::fprintf(stderr, "store_read_bench: a measurement failed\n");
        std::exit(1);
    }
    return result;
}

void measure_cold(const std::string& what, int repeats, const std::string& work, const std::string& path) {
    std::vector<double> cpu;
    std::vector<double> wall;
    Memory memory;
    for (int i = 0; i < repeats; ++i) {
        const Child child = in_child(work, path);
        cpu.push_back(child.cpu_millis);
        wall.push_back(child.wall_millis);
        memory.anonymous_mib = std::max(memory.anonymous_mib, child.memory.anonymous_mib);
        memory.files_mib = std::max(memory.files_mib, child.memory.files_mib);
    }
    report(what, "ms", spread_of(cpu), spread_of(wall));
    report_number("    anonymous memory", memory.anonymous_mib, "MiB");
    report_number("    files mapped", memory.files_mib, "MiB");
}

// ---- sections

void sizes(const std::string& root) {
    for (const bool histograms : {false, true}) {
        for (const Sealed sealed : {Sealed::kNone, Sealed::kAll}) {
            const Shape shape{2000, 100, sealed, histograms};
            const std::string path =
                base::format("{}/size_{}_{}", root, static_cast<int>(sealed), histograms);
            const Made made = make_run(path, shape);
            const double entries = static_cast<double>(shape.steps) * shape.tensors;
            report_number(base::format("bytes per (tensor, step), {}{}", word_of(sealed),
                                       histograms ? ", with a histogram of 64 bins" : ""),
                          static_cast<double>(made.bytes) / entries, "B");
            if (sealed == Sealed::kAll)
                report_number(base::format("sealing{}", histograms ? " with histograms" : ""),
                              made.seal_cpu / entries * 1e9, "ns CPU per (tensor, step)");
        }
    }
}

void statistics(const std::string& root) {
    for (const Sealed sealed : {Sealed::kAll, Sealed::kNone}) {
        const char* const word = word_of(sealed);
        const std::string million = base::format("{}/million_{}", root, static_cast<int>(sealed));
        make_run(million, {1000, 1000, sealed, false});
        measure_cold(base::format("opening 10^6 entries, cold process, {}", word), 9, "open", million);
        Memory ignored;
        measure(base::format("scan of 10^6 entries, step by step, {}", word), 5,
                [&] { scan(million, false, ignored); });
    }
    struct Case {
        std::uint32_t tensors;
        Sealed sealed;
    };
    for (const Case& each :
         {Case{10, Sealed::kAll}, Case{10, Sealed::kNone}, Case{10, Sealed::kAllButTheLast},
          Case{9, Sealed::kAllButTheLast}, Case{3, Sealed::kAllButTheLast}}) {
        const std::string steps =
            base::format("{}/steps_{}_{}", root, each.tensors, static_cast<int>(each.sealed));
        const Made made = make_run(steps, {100'000, each.tensors, each.sealed, false});
        std::string word = base::format("{} tensors, {}", each.tensors, word_of(each.sealed));
        if (each.sealed == Sealed::kAllButTheLast)
            word += base::format(" ({:.1f} MB)", static_cast<double>(made.last_part_bytes) * 1e-6);
        measure(base::format("one statistic over 10^5 steps, {}, Run open", word), 25,
                [&, run = std::shared_ptr<read::Run>()]() mutable {
                    if (!run) run = open_run(steps);
                    const auto points = run->series(0, "gradient/layers.2.weight", "l2");
                    check(points.status());
                    if (points->size() != 100'000) std::exit(1);
                });
        measure(base::format("the same with opening, {}", word), 9,
                [&] { check(open_run(steps)->series(0, "gradient/layers.2.weight", "l2").status()); });
    }
}

// A blob of whole tensors, as the writer makes it.
class Blob {
  public:
    Blob(const std::string& run, std::uint32_t number)
        : number_(number), file_(storage::RunLayout{run}.blob(0, number), std::ios::binary) {
        header_.kind = format::FileKind::kBlob;
        header_.part = number;
        header_.salt = 99 + number;
        ByteWriter begin;
        format::append_file_header(begin, header_);
        begin.pad_to(format::kBlobHeaderBytes);
        put(begin.bytes());
    }
    format::RawPlace add(model::TensorId tensor, std::span<const float> values) {
        while (size_ % 64 != 0) put(std::as_bytes(std::span("", 1)));
        const auto bytes = std::as_bytes(values);
        const format::RawPlace place{tensor,
                                     tensor::DType::kFloat32,
                                     {static_cast<std::int64_t>(values.size())},
                                     number_,
                                     size_,
                                     bytes.size(),
                                     base::crc32c(bytes, format::checksum_seed(header_.salt))};
        put(bytes);
        return place;
    }
    [[nodiscard]] std::uint64_t size() const { return size_; }

  private:
    void put(base::ByteSpan bytes) {
        file_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        if (!file_) check({base::Code::kResourceExhausted, "a blob cannot be written"});
        size_ += bytes.size();
    }

    std::uint32_t number_;
    std::ofstream file_;
    format::FileHeader header_;
    std::uint64_t size_ = 0;
};

void tensors(const std::string& root) {
    for (const Sealed sealed : {Sealed::kAll, Sealed::kNone}) {
        const std::string path = base::format("{}/raw_{}", root, static_cast<int>(sealed));
        PartFiles parts(path, sealed);
        model::TensorTable table(1);
        table[0].name = "weight/fc";
        table[0].dtype = tensor::DType::kFloat32;
        table[0].shape = {256};
        parts.begin(table);
        {
            Blob blob(path, 0);
            std::mt19937 random(3);
            std::vector<float> values(256);
            for (std::uint64_t step = 0; step < 2000; ++step) {
                for (float& value : values) value = static_cast<float>(random());
                const format::RawPlace place = blob.add(0, values);
                model::StepRecord record;
                record.step = record.sequence = step;
                parts.step(record, std::span(&place, 1));
            }
        }
        parts.end();
        const auto all = [&] {
            const auto series = open_run(path)->raw_series(0, "weight/fc", model::Mode::kTrain);
            check(series.status());
            if (series->bytes.size() != 2000 * 1024) std::exit(1);
        };
        measure(base::format("all values of a 256-float tensor over 2,000 steps, {}", word_of(sealed)), 15,
                all);
    }
}

std::uint64_t files_below(const std::string& path) {
    std::uint64_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
        files += entry.is_regular_file() ? 1 : 0;
    return files;
}

void entries(const std::string& root) {
    const std::string path = root + "/entries";
    const Made made = make_run(path, {100'000, 1000, Sealed::kAllButTheLast, false});
    report_number("10^5 steps x 1,000 tensors: files", static_cast<double>(files_below(path)), "files");
    report_number("    bytes of them", static_cast<double>(made.bytes) / 1e9, "GB");
    report_number("    of these in the last part, unsealed", static_cast<double>(made.last_part_bytes) / 1e6,
                  "MB");
    measure_cold("opening 10^8 entries", 5, "open", path);
    measure_cold("opening 10^8 entries and one statistic over 10^5 steps", 5, "series", path);
    measure_cold("opening 10^8 entries and twenty series of 10^5 steps", 3, "several", path);
    measure_cold("scan of 10^8 entries, step by step (for_each_step)", 1, "scan", path);
    measure_cold("scan of 10^8 entries, as rules and exports see them (RunTail)", 1, "tail", path);
    std::filesystem::remove_all(path);
}

// 10,000 steps with statistics of 1,000 tensors and 50 whole tensors of 40 KB.
void bytes(const std::string& root) {
    constexpr std::uint64_t kSteps = 10'000;
    constexpr std::uint32_t kTensors = 1000;
    constexpr std::uint32_t kWhole = 50;
    constexpr std::uint64_t kBlobBytes = std::uint64_t{1} << 30;
    const std::string path = root + "/bytes";
    std::uint64_t blob_bytes = 0;
    PartFiles parts(path, Sealed::kAllButTheLast);
    {
        Records records({kSteps, kTensors, Sealed::kAllButTheLast, false});
        model::TensorTable table = records.table();
        for (std::uint32_t id = 0; id < kWhole; ++id) table[id].collections = {"whole"};
        parts.begin(table);
        std::mt19937 random(5);
        std::vector<float> values(kWhole * 10'000);
        for (float& value : values) value = static_cast<float>(random());
        std::uint32_t number = 0;
        auto blob = std::make_unique<Blob>(path, number);
        for (std::uint64_t step = 0; step < kSteps; ++step) {
            if (blob->size() >= kBlobBytes) {
                blob_bytes += blob->size();
                blob = std::make_unique<Blob>(path, ++number);
            }
            std::vector<format::RawPlace> places;
            for (std::uint32_t id = 0; id < kWhole; ++id) {
                values[id * 10'000] = static_cast<float>(step);
                places.push_back(blob->add(id, std::span(values).subspan(id * 10'000, 10'000)));
            }
            parts.step(records.next(), places);
        }
        blob_bytes += blob->size();
    }
    const Made made = parts.end();
    report_number("10,000 steps, 1,000 statistics and 50 whole tensors of 40 KB in each: all",
                  static_cast<double>(made.bytes + blob_bytes) / 1e9, "GB");
    report_number("    of these in parts, all but the last sealed", static_cast<double>(made.bytes) / 1e9,
                  "GB");
    measure_cold("scan of all of it, with whole tensors, copied (for_each_step)", 1, "scan_raw", path);
    measure_cold("whole tensors of every tenth step, where they lie (map_raw)", 1, "scan_mapped", path);
    measure_cold("scan of the statistics alone (for_each_step)", 1, "scan", path);
    std::filesystem::remove_all(path);
}

struct Section {
    const char* name;
    void (*run)(const std::string& root);
    bool is_default;
    const char* what;
};

constexpr std::array kSections = {
    Section{"sizes", sizes, true, "bytes per (tensor, step), what sealing costs"},
    Section{"statistics", statistics, true, "opening, scanning, one statistic: 10^6 entries"},
    Section{"tensors", tensors, true, "all values of one tensor"},
    Section{"entries", entries, false, "memory and files of 10^8 entries; needs 2.5 GB of disk, minutes"},
    Section{"bytes", bytes, false, "memory of a scan of 20 GB; needs 20 GB of disk, minutes"},
};

int usage(FILE* out, int code) {
    std::fputs(
        "usage: store_read_bench [--json] [SECTION ...]\n\n"
        "What reading a run costs. Runs are made in $TMPDIR and removed. Sections (* without any named):\n",
        out);
    for (const Section& section : kSections)
        std::fprintf(out, "  %c %-11s %s\n", section.is_default ? '*' : ' ', section.name, section.what);
    return code;
}

}  // namespace
}  // namespace traindbg

int main(int argc, char** argv) {
    using traindbg::kSections;
    if (argc == 4 && std::strcmp(argv[1], "--child") == 0) return traindbg::run_child(argv[2], argv[3]);
    std::vector<const traindbg::Section*> chosen;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--help") return traindbg::usage(stdout, 0);
        if (argument == "--json") {
            traindbg::as_json = true;
            continue;
        }
        const auto* section =
            std::find_if(kSections.begin(), kSections.end(),
                         [&](const traindbg::Section& each) { return argument == each.name; });
        if (section == kSections.end()) return traindbg::usage(stderr, 2);
        chosen.push_back(section);
    }
    if (chosen.empty())
        for (const traindbg::Section& section : kSections)
            if (section.is_default) chosen.push_back(&section);
    std::string pattern = (std::filesystem::temp_directory_path() / "traindbg-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
        std::perror(pattern.c_str());
        return 1;
    }
    traindbg::made_in = pattern;
    std::atexit([] {  // also after a failure: it may be 20 GB
        std::error_code ignored;
        std::filesystem::remove_all(traindbg::made_in, ignored);
    });
    for (const traindbg::Section* section : chosen) section->run(pattern);
    if (traindbg::as_json) {
        std::string separator = "[";
        for (const std::string& row : traindbg::rows_of_json) {
            std::printf("%s%s", separator.c_str(), row.c_str());
            separator = ",\n ";
        }
        std::printf("]\n");
    }
    return 0;
}
