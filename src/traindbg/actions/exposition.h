// Metrics where others can read them: at http://127.0.0.1:PORT/metrics, or in a file for the textfile
// collector of Prometheus' node exporter.
//
// Nobody is told anything: whoever wants to know looks.
//
// Thread-safety: one thread at a time; a server answers in a thread of its own, which takes no signals.
// Errors: those of the operating system, with the port or path in front.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traindbg/actions/metrics.h"
#include "traindbg/base/status.h"

namespace traindbg::actions {

class Exposition {
  public:
    Exposition() = default;
    Exposition(const Exposition&) = delete;
    Exposition& operator=(const Exposition&) = delete;
    virtual ~Exposition() = default;

    // Takes the port. Nothing to do for a file.
    [[nodiscard]] virtual base::Status open() = 0;
    // From now on this is what is read. Never waits for a reader.
    [[nodiscard]] virtual base::Status publish(const Metrics& metrics) = 0;
    // "http://127.0.0.1:9464/metrics", or the path.
    [[nodiscard]] virtual std::string place() const = 0;
};

// prometheus:PORT (0: any that is free) or prometheus-file:PATH
[[nodiscard]] bool is_exposition(std::string_view target) noexcept;
[[nodiscard]] base::Result<std::unique_ptr<Exposition>> make_exposition(std::string_view target);

}  // namespace traindbg::actions
