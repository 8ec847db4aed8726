// What reading a run costs: opening it, one statistic over all steps, all values of a tensor, a scan.
//
//   store_read_bench [--json] [--large]
//
// Makes its runs in a temporary directory: of logs alone and sealed, each in the same numbers. Times
// are of this thread's CPU and of the wall, minimum / median / maximum of several repetitions, each in
// a fresh `Run`; "cold" ones are the first in a fresh process. With --large, the runs of 10^8 entries
// and of 20 GB that the memory bars speak of.
#include <time.h>
#include <unistd.h>

#include <algorithm>
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

struct Shape {
    std::uint64_t steps = 0;
    std::uint32_t tensors = 0;
    bool sealed = false;
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
    std::uint64_t files = 0;
    double seal_cpu = 0;
};

// Writes parts as the writer does, without its threads.
class PartFiles {
  public:
    PartFiles(std::string root, bool sealed) : layout_{std::move(root)}, sealed_(sealed) {
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
        base::ByteBuffer bytes;
        if (sealed_) {
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
        std::ofstream file(sealed_ ? layout_.segment(0, part_) : layout_.log(0, part_), std::ios::binary);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        made_.bytes += bytes.size();
        ++made_.files;
        ++part_;
    }

    storage::RunLayout layout_;
    bool sealed_;
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

void scan(const std::string& path) {
    std::uint64_t seen = 0;
    check(open_run(path)->for_each_step([&](const model::StepView& view) {
        seen += view.record->tensors.size();
        return true;
    }));
    if (seen == 0) std::exit(1);
}

// What a fresh process does: this program, started again with `--child WORK PATH`.
void work_of_child(const std::string& work, const std::string& path) {
    if (work == "open") open_run(path);
    else if (work == "scan") scan(path);
    else check(open_run(path)->series(0, "gradient/layers.3.weight", "l2").status());
}

struct Child {
    double cpu_millis = 0;
    double wall_millis = 0;
    double peak_mib = 0;
};

int run_child(const std::string& work, const std::string& path) {
    const double wall_begin = wall_seconds();
    const double cpu_begin = cpu_seconds();
    work_of_child(work, path);
    const double cpu = (cpu_seconds() - cpu_begin) * 1e3;
    const double wall = (wall_seconds() - wall_begin) * 1e3;
    double peak = 0;
    std::ifstream status("/proc/self/status");
    std::string line;
    while (std::getline(status, line))
        if (line.rfind("VmHWM:", 0) == 0) peak = std::strtod(line.c_str() + 6, nullptr) / 1024;
    std::printf("%.9g %.9g %.9g\n", cpu, wall, peak);
    return 0;
}

Child in_child(const std::string& work, const std::string& path) {
    const std::string command = base::format("/proc/{}/exe --child {} '{}'", ::getpid(), work, path);
    FILE* const output = ::popen(command.c_str(), "r");
    Child result;
    if (output == nullptr ||
        std::fscanf(output, "%lf %lf %lf", &result.cpu_millis, &result.wall_millis, &result.peak_mib) != 3 ||
        ::pclose(output) != 0) {
        std::fprintf(stderr, "store_read_bench: a measurement failed\n");
        std::exit(1);
    }
    return result;
}

void measure_cold(const std::string& what, int repeats, const std::string& work, const std::string& path) {
    std::vector<double> cpu;
    std::vector<double> wall;
    double peak = 0;
    for (int i = 0; i < repeats; ++i) {
        const Child child = in_child(work, path);
        cpu.push_back(child.cpu_millis);
        wall.push_back(child.wall_millis);
        peak = std::max(peak, child.peak_mib);
    }
    report(what + base::format(" (peak {:.0f} MiB)", peak), "ms", spread_of(cpu), spread_of(wall));
}

void statistics(const std::string& root) {
    for (const bool histograms : {false, true}) {
        for (const bool sealed : {false, true}) {
            const Shape shape{2000, 100, sealed, histograms};
            const std::string path = base::format("{}/size{}{}", root, sealed ? 1 : 0, histograms ? 1 : 0);
            const Made made = make_run(path, shape);
            const double entries = static_cast<double>(shape.steps) * shape.tensors;
            report_number(base::format("bytes per (tensor, step), {}{}", sealed ? "sealed" : "unsealed",
                                       histograms ? ", with a histogram of 64 bins" : ""),
                          static_cast<double>(made.bytes) / entries, "B");
            if (sealed)
                report_number(base::format("sealing{}", histograms ? " with histograms" : ""),
                              made.seal_cpu / entries * 1e9, "ns CPU per (tensor, step)");
        }
    }
    for (const bool sealed : {true, false}) {
        const char* const word = sealed ? "sealed" : "unsealed";
        const std::string million = base::format("{}/million{}", root, sealed ? 1 : 0);
        make_run(million, {1000, 1000, sealed, false});
        measure_cold(base::format("opening 10^6 entries, cold process, {}", word), 9, "open", million);
        measure(base::format("scan of 10^6 entries, step by step, {}", word), 5, [&] { scan(million); });
        const std::string steps = base::format("{}/steps{}", root, sealed ? 1 : 0);
        make_run(steps, {100'000, 10, sealed, false});
        measure(base::format("one statistic of one tensor over 10^5 steps, {}, Run open", word), 15,
                [&, run = std::shared_ptr<read::Run>()]() mutable {
                    if (!run) run = open_run(steps);
                    const auto points = run->series(0, "gradient/layers.3.weight", "l2");
                    check(points.status());
                    if (points->size() != 100'000) std::exit(1);
                });
        measure(base::format("the same with opening, {}", word), 9,
                [&] { check(open_run(steps)->series(0, "gradient/layers.3.weight", "l2").status()); });
    }
}

void whole_tensors(const std::string& root) {
    for (const bool sealed : {true, false}) {
        const std::string path = base::format("{}/raw{}", root, sealed ? 1 : 0);
        PartFiles parts(path, sealed);
        model::TensorTable table(1);
        table[0].name = "weight/fc";
        table[0].dtype = tensor::DType::kFloat32;
        table[0].shape = {256};
        parts.begin(table);
        format::FileHeader header;
        header.kind = format::FileKind::kBlob;
        header.salt = 99;
        ByteWriter blob;
        format::append_file_header(blob, header);
        blob.pad_to(format::kBlobHeaderBytes);
        std::mt19937 random(3);
        std::vector<float> values(256);
        for (std::uint64_t step = 0; step < 2000; ++step) {
            for (float& value : values) value = static_cast<float>(random());
            const auto bytes = std::as_bytes(std::span(values));
            const format::RawPlace place{0,
                                         tensor::DType::kFloat32,
                                         {256},
                                         0,
                                         blob.size(),
                                         bytes.size(),
                                         base::crc32c(bytes, format::checksum_seed(header.salt))};
            blob.append(bytes);
            model::StepRecord record;
            record.step = record.sequence = step;
            parts.step(record, std::span(&place, 1));
        }
        parts.end();
        std::ofstream file(storage::RunLayout{path}.blob(0, 0), std::ios::binary);
        file.write(reinterpret_cast<const char*>(blob.bytes().data()),
                   static_cast<std::streamsize>(blob.size()));
        file.close();
        const auto all = [&] {
            const auto series = open_run(path)->raw_series(0, "weight/fc", model::Mode::kTrain);
            check(series.status());
            if (series->bytes.size() != 2000 * 1024) std::exit(1);
        };
        measure(base::format("all values of a 256-float tensor over 2,000 steps, {}",
                             sealed ? "sealed" : "unsealed"),
                15, all);
    }
}

void large(const std::string& root) {
    const std::string path = root + "/large";
    const Made made = make_run(path, {100'000, 1000, true, false});
    report_number("files for 10^5 steps x 1,000 tensors", static_cast<double>(made.files), "files");
    report_number("bytes of them", static_cast<double>(made.bytes) / 1e9, "GB");
    measure_cold("opening 10^8 entries", 5, "open", path);
    measure_cold("opening 10^8 entries and one statistic over 10^5 steps", 5, "series", path);
    measure_cold("scan of 10^8 entries, step by step", 1, "scan", path);
}

}  // namespace
}  // namespace traindbg

int main(int argc, char** argv) {
    if (argc == 4 && std::strcmp(argv[1], "--child") == 0) return traindbg::run_child(argv[2], argv[3]);
    bool with_large = false;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument == "--json") traindbg::as_json = true;
        else if (argument == "--large") with_large = true;
        else {
            std::fprintf(stderr, "usage: store_read_bench [--json] [--large]\n");
            return 2;
        }
    }
    std::string pattern = (std::filesystem::temp_directory_path() / "traindbg-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) return 1;
    traindbg::statistics(pattern);
    traindbg::whole_tensors(pattern);
    if (with_large) traindbg::large(pattern);
    std::filesystem::remove_all(pattern);
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
