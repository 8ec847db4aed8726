// Facts about a run that are not measurements. Never holds a secret: environment variables are
// taken from an allow-list, command lines are redacted before they come here.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/model/source_line.h"
#include "traindbg/model/step.h"

namespace traindbg::model {

struct OptimizerInfo {
    std::string type;                                      // "SGD"
    std::vector<std::pair<std::string, double>> settings;  // of the first parameter group: lr, momentum, ...

    friend bool operator==(const OptimizerInfo&, const OptimizerInfo&) = default;
};

// What a training process says about itself when it starts recording.
struct WorkerMeta {
    WorkerId worker = 0;
    std::int64_t pid = 0;
    std::string host;
    std::string framework;   // "torch 2.13.0"
    std::string python;      // "3.11.7"
    std::string traindbg;    // version that recorded
    std::string model_type;  // class of the root module
    std::uint64_t parameters = 0;
    std::vector<OptimizerInfo> optimizers;
    std::vector<std::pair<std::string, std::string>> environment;  // allow-listed variables and facts
    std::vector<SourceLine> sources;                               // where in its code things happen

    friend bool operator==(const WorkerMeta&, const WorkerMeta&) = default;
};

// What the process that made the run directory says.
struct RunMeta {
    std::string run_id;  // the directory's name
    std::string uuid;
    std::vector<std::string> command;  // redacted
    std::string working_directory;
    std::int64_t started_wall_nanos = 0;
    std::string host;
    std::string platform;  // "Linux 6.1 x86_64, 2 cores, 24 GiB"
    std::string traindbg;

    friend bool operator==(const RunMeta&, const RunMeta&) = default;
};

// How a training ended, as its supervisor saw it.
struct RunEnd {
    std::int64_t wall_nanos = 0;
    int exit_code = -1;  // as a shell would report it: 128+n after signal n; -1: unknown
    bool stopped_by_rule = false;
    std::string reason;

    friend bool operator==(const RunEnd&, const RunEnd&) = default;
};

}  // namespace traindbg::model
