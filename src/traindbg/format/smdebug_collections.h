// The collections files of a run in the layout of the SageMaker Debugger client: which tensors belong to
// which collection, what was saved of them, and of how many workers.
//
// Errors: kDataLoss says what is wrong. Thread-safety: free functions and plain values. Memory is bounded by
// the text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"

namespace traindbg::format {

struct SmdebugReductionConfig {
    bool save_raw_tensor = false;
    bool save_shape = false;
    std::vector<std::string> reductions;  // "mean", "abs_mean", "l1_norm", "abs_l1_norm"

    friend bool operator==(const SmdebugReductionConfig&, const SmdebugReductionConfig&) = default;
};

struct SmdebugCollection {
    std::string name;
    std::vector<std::string> include_regex;  // Python's, searched in a tensor's name
    std::vector<std::string> tensor_names;   // those that were seen when the file was written
    std::optional<SmdebugReductionConfig> reduction_config;

    friend bool operator==(const SmdebugCollection&, const SmdebugCollection&) = default;
};

struct SmdebugCollections {
    std::vector<SmdebugCollection> collections;
    std::uint64_t workers = 1;

    friend bool operator==(const SmdebugCollections&, const SmdebugCollections&) = default;
};

[[nodiscard]] base::Result<SmdebugCollections> decode_smdebug_collections(std::string_view text);
[[nodiscard]] std::string encode_smdebug_collections(const SmdebugCollections& collections);

}  // namespace traindbg::format
