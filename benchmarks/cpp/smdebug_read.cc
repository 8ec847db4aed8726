// Opens a run of the SageMaker Debugger client and reads all values of one tensor, once:
//   smdebug_read RUN TENSOR
// The same as benchmarks/python/original_store.py has the original library do; it runs both.
#include <cstdio>
#include <string>

#include "traindbg/base/clock.h"
#include "traindbg/compat/smdebug_run.h"

using namespace traindbg;

int main(int count, char** arguments) {
    if (count != 3) return 2;
    const std::int64_t began = base::monotonic_nanos();
    auto run = compat::SmdebugRun::open(arguments[1]);
    if (!run) {
        std::fprintf(stderr, "%s\n", run.status().message().c_str());
        return 1;
    }
    const std::size_t names = (*run)->tensor_names().size();
    const std::size_t steps = (*run)->steps().size();
    const std::int64_t opened = base::monotonic_nanos();
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
    const std::int64_t read = base::monotonic_nanos();
    std::printf(R"({"open_seconds": %.6f, "names": %zu, "steps": %zu, "values_seconds": %.6f, )"
                R"("values": %zu, "value_bytes": %zu})"
                "\n",
                static_cast<double>(opened - began) / 1e9, names, steps,
                static_cast<double>(read - opened) / 1e9, values, bytes);
    return 0;
}
