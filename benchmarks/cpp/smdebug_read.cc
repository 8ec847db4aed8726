// Opens a run of the SageMaker Debugger client and reads all values of one tensor, once:
//   smdebug_read RUN TENSOR
// The same as benchmarks/python/original_store.py has the original library do; it runs both.
#include <cstdio>
#include <string>

#include "traindbg/base/clock.h"
#include "traindbg/compat/smdebug_run.h"

using namespace traindbg;

namespace {

// Of the wall and of the processor: on a busy machine only the second says much.
struct Moment {
    std::int64_t wall = base::monotonic_nanos();
    std::int64_t cpu = base::clock_nanos(CLOCK_PROCESS_CPUTIME_ID);
};

double seconds(std::int64_t nanos) { return static_cast<double>(nanos) / 1e9; }

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    const Moment began;
    auto run = compat::SmdebugRun::open(arguments[1]);
    if (!run) {
        std::fprintf(stderr, "%s\n", run.status().message().c_str());
        return 1;
    }
    const std::size_t names = (*run)->tensor_names().size();
    const std::size_t steps = (*run)->steps().size();
    const Moment opened;
    std::size_t values = 0;
    std::size_t bytes = 0;
    for (const std::string& worker : (*run)->workers()) {
        for (const std::uint64_t step : (*run)->steps_with(worker, arguments[2])) {
            const auto value = (*run)->value(worker, step, arguments[2]);
            if (!value) {
                std::fprintf(stderr, "%s\n", value.status().message().c_str());
                return 1;
            }
            ++values;
            bytes += value->bytes.size();
        }
    }
    const Moment read;
    std::printf(R"({"open_seconds": %.6f, "open_cpu_seconds": %.6f, "names": %zu, "steps": %zu, )"
                R"("values_seconds": %.6f, "values_cpu_seconds": %.6f, "values": %zu, "value_bytes": %zu})"
                "\n",
                seconds(opened.wall - began.wall), seconds(opened.cpu - began.cpu), names, steps,
                seconds(read.wall - opened.wall), seconds(read.cpu - opened.cpu), values, bytes);
    return 0;
}
