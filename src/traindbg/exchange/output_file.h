// Files and directories that appear under their name when they are whole, or not at all.
//
// Both are written beside their place under a name of their own (".name.<pid>.part") and renamed by
// `commit`; an object that goes before that takes its leavings along. Errors: kAlreadyExists at opening, or
// at commit when somebody else was quicker. Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"

namespace traindbg::exchange {

class OutputFile {
  public:
    // "-" is standard output, where nothing is renamed. `overwrite`: a regular file there is replaced.
    [[nodiscard]] static base::Result<OutputFile> create(const std::string& path, bool overwrite);
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&& other) = delete;
    ~OutputFile();

    // Buffered; an error of a write shows here or at `commit`.
    [[nodiscard]] base::Status write(base::ByteSpan bytes);
    [[nodiscard]] base::Status write(std::string_view text) { return write(base::as_bytes(text)); }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] base::Status commit();

  private:
    OutputFile() = default;
    [[nodiscard]] base::Status flush();
    [[nodiscard]] base::Status put(base::ByteSpan bytes);

    int descriptor_ = -1;
    std::string path_;
    std::string partial_;  // empty: standard output
    bool overwrite_ = false;
    base::ByteBuffer buffer_;
    std::uint64_t size_ = 0;
};

// A directory of files. What `overwrite` may replace is a directory in which all files have `mark` in
// their names: nobody's other files are removed by a slip of the hand.
class OutputDirectory {
  public:
    [[nodiscard]] static base::Result<OutputDirectory> create(const std::string& path, bool overwrite,
                                                              std::string_view mark);
    OutputDirectory(OutputDirectory&& other) noexcept;
    OutputDirectory& operator=(OutputDirectory&& other) = delete;
    ~OutputDirectory();

    // A path inside, for an OutputFile; its directories are made.
    [[nodiscard]] base::Result<std::string> place(const std::string& relative);
    [[nodiscard]] base::Status commit();

  private:
    OutputDirectory() = default;
    std::string path_;
    std::string partial_;
    std::string mark_;
    bool overwrite_ = false;
};

}  // namespace traindbg::exchange
