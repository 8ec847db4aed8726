// TensorBoard's event files as a run, so that the rules can judge any training that left a log.
//
// Scalars in both forms (simple_value, tensor), histograms in both forms (HistogramProto, tensor); files of
// several sub-runs, workers and restarts. A value that was written again for the same step (after a restart)
// replaces the one before it. What is damaged is named with its file and offset; everything else is taken.
//
// Statistics of histograms: min, max, mean, std and l2 are those that the log holds; where it holds bucket
// counts only (the tensor form) they are approximate, and l1 always is, from the middles of the buckets. A
// histogram whose sums are not finite stands for a tensor with at least one NaN.
//
// Memory: the whole log in memory, 40 bytes per scalar and about 1 KiB per histogram, up to a bound.
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/exchange/tensorboard_names.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::exchange {

struct ImportRequest {
    std::string from;                    // directory of event files, or one such file
    std::string to;                      // the run's directory, which must not be there
    std::vector<std::string> command{};  // for RUN.json; redacted
    RoleChooser role{};
    storage::FileSystem* files = &storage::posix_file_system();               // that `from` is read through
    std::function<void(std::uint64_t done, std::uint64_t total)> progress{};  // in bytes
};

struct ImportProblem {
    std::string file;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::string what;
    bool tail = false;  // at the end of the file: what a crash leaves behind
};

struct ImportResult {
    std::uint64_t files = 0;
    std::uint64_t bytes = 0;
    std::uint64_t events = 0;
    std::uint64_t scalars = 0;
    std::uint64_t histograms = 0;
    std::uint64_t replaced = 0;  // of these two, written again later
    std::uint64_t skipped = 0;   // values of other kinds: images, text, ...
    std::uint64_t steps = 0;     // that were made of them
    std::uint64_t tensors = 0;
    std::uint64_t workers = 0;
    std::uint64_t problems_in_all = 0;
    std::vector<ImportProblem> problems{};  // the first hundred
    std::vector<std::string> notes{};
};

// kNotFound: there is nothing to import; kAlreadyExists: `to` is there.
[[nodiscard]] base::Result<ImportResult> import_tensorboard(const ImportRequest& request);

// For fuzzing: reads one file's content as an import does, and forgets it.
[[nodiscard]] ImportResult scan_event_file(base::ByteSpan content);

}  // namespace traindbg::exchange
