// How far a long piece of work is, on a line of standard error that is drawn over again. Where standard
// error is no terminal, nothing.
//
// Drawn at most five times a second and not before half a second has gone by, so that short work says
// nothing. The line is wiped when the object goes. Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string>

#include "traindbg/cli/console.h"

namespace traindbg::cli {

class ProgressLine {
  public:
    enum class Unit : std::uint8_t { kSteps, kBytes };

    // `console` must outlive the line. `quiet`: never draw.
    ProgressLine(const Console& console, std::string what, Unit unit, bool quiet = false);
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    ~ProgressLine();

    void show(std::uint64_t done, std::uint64_t total);
    void clear();

  private:
    const Console& console_;
    std::string what_;
    Unit unit_;
    bool enabled_;
    bool drawn_ = false;
    std::int64_t next_nanos_;
};

// "exporting: 42 % (420 of 1000 steps)"; without a total the amount alone.
[[nodiscard]] std::string progress_text(const std::string& what, ProgressLine::Unit unit, std::uint64_t done,
                                        std::uint64_t total);

}  // namespace traindbg::cli
