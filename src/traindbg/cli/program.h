// The whole program: finds the verb, reads its options, runs it, gives the exit code.
#pragma once

namespace traindbg::cli {

// Exceptions (out of memory, a defect) end here, as code 3.
[[nodiscard]] int run_program(int argc, char** argv) noexcept;

}  // namespace traindbg::cli
