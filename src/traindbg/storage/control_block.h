// The few words of shared memory through which the supervisor steers a training, and the training
// says how far it is. One page, the file `<run>/control`, both directions.
//
// Words are read from a mapping of the page and written with `pwrite`: a store into the mapping can end
// the process with SIGBUS where the file system needs a new block for it and the disk is full
// (copy-on-write file systems, pages shared by a reflink), or where somebody cut the file off.
//
// The training reads one atomic word per step and never waits. Either side may die or never have
// been there: the other notices only that nothing changes. A training without a supervisor works
// the same.
//
// Thread-safety: all members may be called from any thread and take no lock. Cost: nanoseconds to read,
// a system call to write. The layout is documented in docs/format/control.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "traindbg/base/status.h"

namespace traindbg::storage {

enum class TrainingState : std::uint32_t {
    kNotAttached = 0,  // no training has opened the run yet
    kAttached = 1,     // a model is being watched
    kStopping = 2,     // it saw the stop request and is leaving its loop
    kEnded = 3,        // recording was closed
};

// In the place of a step.
inline constexpr std::uint64_t kStepNotKnown = UINT64_MAX;

// How often which change of the training was asked for, and with what. See actions/correction_action.cc.
struct CorrectionsAsked {
    std::uint32_t lower_lr = 0;   // multiply the learning rate
    std::uint32_t roll_back = 0;  // go back to parameters of before a step
    // The first TRAIN step that the fault touched, of the last asking for a roll-back or a checkpoint;
    // kStepNotKnown: nobody knows which.
    std::uint64_t bad_since = 0;
    std::uint32_t checkpoint = 0;  // not 0: write a checkpoint before a stop

    friend bool operator==(const CorrectionsAsked&, const CorrectionsAsked&) = default;
};

class ControlBlock {
  public:
    // Makes the file (mode 0600) with zeros when it is not there, and maps it.
    [[nodiscard]] static base::Result<std::unique_ptr<ControlBlock>> open(const std::string& path);
    ControlBlock(const ControlBlock&) = delete;
    ControlBlock& operator=(const ControlBlock&) = delete;
    ~ControlBlock();

    // Supervisor -> training.
    void request_stop() noexcept;
    [[nodiscard]] bool stop_requested() const noexcept;  // one relaxed atomic load

    // Asks the training to keep what its flight recorder holds. Counted, so that each asking is one.
    void request_flight_copy() noexcept;
    [[nodiscard]] std::uint32_t flight_copies_requested() const noexcept;
    // Tells it that there is a new capture plan in the run; the same.
    void announce_plan() noexcept;
    [[nodiscard]] std::uint32_t plans_announced() const noexcept;

    // Each asking is one: counted. `bad_since`: as in CorrectionsAsked.
    void request_lower_lr() noexcept;
    void request_roll_back(std::uint64_t bad_since) noexcept;
    // Together with the next stop request. Not counted: one checkpoint is enough.
    void request_checkpoint(std::uint64_t bad_since) noexcept;
    [[nodiscard]] CorrectionsAsked corrections_asked() const noexcept;

    // Training -> training: the processes of one training leave together. The first that sees the request
    // says after how many TRAIN steps; 0: nobody has yet.
    void announce_stop_step(std::uint64_t step) noexcept;
    [[nodiscard]] std::uint64_t stop_step() const noexcept;

    // Training -> supervisor.
    // TRAIN steps completed. The other side sees it within 100 ms and a step: of faster steps, one each
    // 100 ms is written, and the last when the state changes.
    void publish_step(std::uint64_t step) noexcept;
    void publish_state(TrainingState state) noexcept;
    void publish_pid(std::int64_t pid) noexcept;
    [[nodiscard]] std::uint64_t step() const noexcept;
    [[nodiscard]] TrainingState state() const noexcept;
    [[nodiscard]] std::int64_t pid() const noexcept;
    // Somebody, in whatever process, holds the file locked: a supervisor does as long as it lives. Also where
    // the file has been removed.
    [[nodiscard]] bool is_supervised() const noexcept;
    // Monotonic nanoseconds of the last publish_step; 0: none yet.
    [[nodiscard]] std::int64_t last_step_nanos() const noexcept;

  private:
    struct Page;
    ControlBlock(Page* page, int descriptor) noexcept : page_(page), descriptor_(descriptor) {}
    void put(std::size_t offset, const void* word, std::size_t bytes) const noexcept;
    void put_step(std::uint64_t step, std::int64_t nanos) noexcept;

    Page* const page_;  // read from only
    const int descriptor_;
    std::atomic<std::uint64_t> step_{0};  // the last that was published here; written or not
    std::atomic<std::int64_t> step_nanos_{0};
    std::atomic<std::int64_t> written_nanos_{0};  // of the last step that was written
};

}  // namespace traindbg::storage
