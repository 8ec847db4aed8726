// A read-only file system in another process, over two pipes: how a process that must not talk to a
// network reads from a bucket. The other process is the program `traindbg --serve-files URL`; it ends
// when its input does, that is, with the last `PipeFileSystem` or file object of it.
//
// One request and one answer at a time, each a 32-bit length and that many bytes:
//
//   request  u8 what (1 list, 2 open, 3 read, 4 size, 5 exists, 6 close), then path, or handle and what
//            is asked of it
//   answer   u8 code (base::Code; 0: ok), then the content, or the message
//
// Both sides bound what they accept: the other process is ours, and its bytes are not trusted all the same.
//
// Thread-safety: the file system from any thread, a file from one at a time; calls wait for each other.
// After a `fork` the child's calls give kUnavailable: the pipes are its parent's. Errors: those of the
// other file system; kUnavailable when its process has ended or does not answer for two minutes;
// kUnsupported for whatever writes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "traindbg/storage/file_system.h"

namespace traindbg::storage {

class PipeFileSystem final : public FileSystem {
  public:
    // Starts `command` (a path and its arguments); its standard error stays ours. It has a process group of
    // its own, so that a Ctrl-C does not end it.
    [[nodiscard]] static base::Result<std::unique_ptr<PipeFileSystem>> start(
        const std::vector<std::string>& command);
    ~PipeFileSystem() override;

    // Asked about ten times a second while an answer is waited for, in the thread that waits; true: the call
    // gives kUnavailable now. The next call finds everything as it was. It must not call this file system.
    void set_interrupt(std::function<bool()> is_interrupted);

    base::Result<std::unique_ptr<AppendFile>> create(const std::string& path) override;
    base::Result<std::unique_ptr<ReadFile>> open(const std::string& path) override;
    base::Status put_atomic(const std::string& path, base::ByteSpan bytes) override;
    base::Status create_directories(const std::string& path) override;
    base::Status create_directory(const std::string& path) override;
    base::Result<std::vector<DirectoryEntry>> list(const std::string& path) override;
    base::Status remove(const std::string& path) override;
    bool exists(const std::string& path) override;

    class Connection;

  private:
    explicit PipeFileSystem(std::shared_ptr<Connection> connection) noexcept;
    std::shared_ptr<Connection> connection_;
};

// The other side: answers until `input` ends. kDataLoss when what comes is no request.
[[nodiscard]] base::Status serve_files(FileSystem& files, int input, int output);

}  // namespace traindbg::storage
