// A run whose part is a sealed segment, read in every way there is.
#include "segment_input.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/memory_file_system.h"

using namespace traindbg;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    storage::MemoryFileSystem files;
    files.create_directories("/run/w0000").ignore();
    files.set_content("/run/RUN.json", {std::byte{'{'}, std::byte{'}'}});
    files.set_content("/run/w0000/000000.seg", fuzz::segment_of(data, size));
    const auto run = read::Run::open("/run", files);
    if (!run) return 0;
    static_cast<void>((*run)->totals());
    static_cast<void>((*run)->steps(model::Mode::kTrain));
    for (const std::string& name : (*run)->tensor_names())
        for (const char* const statistic : {"value", "mean", "inf", "count", "units", "rms"})
            static_cast<void>((*run)->series(0, name, statistic));
    for (const std::string& name : (*run)->tensor_names())
        static_cast<void>((*run)->raw_series(0, name, model::Mode::kTrain));
    for (const std::string& name : (*run)->tensor_names()) static_cast<void>((*run)->digests(0, name));
    (*run)->for_each_step([](const model::StepView&) { return true; }, true).ignore();
    (*run)->verify().ignore();
    static_cast<void>((*run)->damage());
    return 0;
}
