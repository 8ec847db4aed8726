// Where things lie in a run directory. The one place that knows the names; docs/format/native.md
// repeats them.
//
//   <run>/RUN.json        identity and command (RunMeta), published atomically
//   <run>/plan.json       what is captured (CaptureConfig)
//   <run>/plan-000001.json  what is captured since somebody changed it while the training ran; numbered
//   <run>/control         ControlBlock, not part of the record
//   <run>/END.json        how the training ended (RunEnd), written by the supervisor
//   <run>/verdict.json    findings, rule outcomes, causes (Verdict), rewritten as they change
//   <run>/w0000/lock      held by the one process that may change this directory
//   <run>/w0000/000000.log   frames of worker 0: tensors, steps, events
//   <run>/w0000/000000.seg   the same part, sealed; the log is removed then
//   <run>/w0000/000000.blob  whole tensors, where asked for; numbered on their own
//   <run>/w0000/removed.json  what was removed from it to save space
//   <run>/w0000/ring      its parts are a flight recorder's: of older steps only some were kept
//   <run>/flight          the flight recorder's last steps: a run of its own
//   <run>/report.html
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace traindbg::storage {

struct RunLayout {
    std::string root;

    [[nodiscard]] std::string run_json() const { return root + "/RUN.json"; }
    [[nodiscard]] std::string plan_json() const { return root + "/plan.json"; }
    [[nodiscard]] std::string plan_change_json(std::uint32_t number) const;  // <root>/plan-000001.json
    [[nodiscard]] std::string flight() const { return root + "/flight"; }
    [[nodiscard]] std::string control() const { return root + "/control"; }
    [[nodiscard]] std::string end_json() const { return root + "/END.json"; }
    [[nodiscard]] std::string verdict_json() const { return root + "/verdict.json"; }
    [[nodiscard]] std::string report_html() const { return root + "/report.html"; }
    [[nodiscard]] std::string worker_directory(std::uint32_t worker) const;             // <root>/w0003
    [[nodiscard]] std::string lock(std::uint32_t worker) const;                         // <root>/w0003/lock
    [[nodiscard]] std::string removed_json(std::uint32_t worker) const;                 // .../removed.json
    [[nodiscard]] std::string ring(std::uint32_t worker) const;                         // .../ring
    [[nodiscard]] std::string log(std::uint32_t worker, std::uint32_t part) const;      // .../000000.log
    [[nodiscard]] std::string segment(std::uint32_t worker, std::uint32_t part) const;  // .../000000.seg
    [[nodiscard]] std::string blob(std::uint32_t worker, std::uint32_t number) const;   // .../000000.blob
};

// 3 for "w0003"; nothing for any other name.
[[nodiscard]] std::optional<std::uint32_t> parse_worker_directory(std::string_view name);
// 12 for "000012.log" with suffix ".log"; nothing for any other name.
[[nodiscard]] std::optional<std::uint32_t> parse_part(std::string_view name, std::string_view suffix);
// A run's name: [A-Za-z0-9._-]{1,128}, not starting with a dot.
[[nodiscard]] bool is_valid_run_id(std::string_view id);

}  // namespace traindbg::storage
