// The few lines that traindbg itself says on standard error, each prefixed "traindbg: ".
//
// The training's terminal belongs to the training: a message is said once, whole lines only, and
// nothing here blocks, throws or allocates without bound. `TRAINDBG_LOG=quiet` silences everything
// but errors; `TRAINDBG_LOG=debug` adds details.
#pragma once

#include <string_view>

namespace traindbg::base {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

void log(LogLevel level, std::string_view message) noexcept;
// Says `message` unless one with this key was said before in this process.
void log_once(LogLevel level, std::string_view key, std::string_view message) noexcept;

}  // namespace traindbg::base
