// One line on the last row of the terminal that tells how the training does, while the training
// itself writes to the rows above as it always did.
//
// The terminal is told to scroll all rows but the last; every redraw is one write that saves and
// restores the cursor. The region is set again with each redraw, so that a training that resets the
// terminal costs one redraw at most. A training that uses the whole screen (an editor, a pager, its
// own scroll region) should be run with --quiet.
//
// Thread-safety: one thread at a time. The terminal is put back when the object goes, and by a
// handler when the program dies of a signal of its own making.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace traindbg::cli {

// What the line says. A member that is not known is left out.
struct StatusFacts {
    std::string run_name;
    bool attached = false;
    std::uint64_t steps = 0;
    std::optional<double> steps_per_second;
    std::optional<double> loss;
    std::uint64_t findings = 0;
    std::optional<double> capture_share;  // of the time of the recorded steps, 0..1
    std::string note;                     // "stopping"

    friend bool operator==(const StatusFacts&, const StatusFacts&) = default;
};
// At most `columns` wide, without escape sequences; from the right, whole facts are left out first.
[[nodiscard]] std::string status_text(const StatusFacts& facts, std::size_t columns);

class StatusLine {
  public:
    // Nothing when standard error is no terminal, is too small, or does not understand the sequences
    // (TERM=dumb).
    [[nodiscard]] static std::unique_ptr<StatusLine> open(bool colour);
    StatusLine(const StatusLine&) = delete;
    StatusLine& operator=(const StatusLine&) = delete;
    ~StatusLine();

    // Draws when there is something new and the last time is 200 ms ago. `force`: in any case.
    void show(const StatusFacts& facts, bool force = false);
    // Nanoseconds until a change that was held back may be drawn; nothing when there is none.
    [[nodiscard]] std::optional<std::int64_t> due_in() const noexcept;
    // After SIGWINCH.
    void resized();
    // Gives the last row back (before the program stops or writes its summary) and takes it again.
    void suspend();
    void resume();

  private:
    explicit StatusLine(bool colour) noexcept : colour_(colour) {}
    bool measure() noexcept;
    void claim();
    void draw();

    bool colour_;
    bool active_ = false;
    bool dirty_ = false;
    unsigned short rows_ = 0;
    unsigned short columns_ = 0;
    std::int64_t drawn_nanos_ = 0;
    StatusFacts facts_;
};

}  // namespace traindbg::cli
